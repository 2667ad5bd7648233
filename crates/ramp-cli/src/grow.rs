//! `ramp grow`: a tree from a table, as a model file and a drawing.

use crate::output::{note, say};
use crate::printing;
use crate::progress::Counting;
use crate::{Ending, Failure};
use clap::Args;
use ramp::storage::{same_file, write_atomically};
use ramp_io::Origin;
use ramp_io::grow::{GrowSettings, Grown, Progress, State, grow};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Grow {
    /// A table: .csv, .tsv, .parquet, .arrow
    data: PathBuf,
    /// Where to write the model file; the drawing goes beside it, as .svg
    #[arg(long)]
    out: PathBuf,
    /// Parts that are known, in Newick's notation: groups with a name stay together
    #[arg(long, value_name = "NEWICK")]
    keep: Option<String>,
    /// Rounds of changes by what they explain; 0 leaves the tree that distances give
    #[arg(long, default_value_t = GrowSettings::default().rounds)]
    rounds: usize,
    /// Trees of the bootstrap
    #[arg(long, default_value_t = GrowSettings::default().bootstraps as u32, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    bootstraps: u32,
    /// Seed
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// Go on with a growth that was stopped
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Write over a model file that is there
    #[arg(long)]
    overwrite: bool,
}

impl Grow {
    pub fn run(self) -> Result<Ending, Failure> {
        let refuse = |what: &str| Err(Failure::user(format!("`{}` {what}", self.out.display())));
        if same_file(&self.out, &self.data) {
            return refuse(
                "is the data, which the model file would write over; --out takes another name",
            );
        }
        if self.out.extension().is_none_or(|e| e != "toml") {
            return refuse("does not end in .toml, as model files do; --out takes another name");
        }
        if self.out.exists() && !self.overwrite {
            return refuse("is there already; --overwrite replaces it, --out takes another name");
        }
        let folder = self.out.parent().filter(|p| !p.as_os_str().is_empty());
        printing::check_writable(folder.unwrap_or(Path::new(".")))?;
        let kept = self.out.with_extension("growing");
        let resume = match self.resume {
            false => None,
            true => Some(State::read(&kept)?),
        };
        let settings = GrowSettings {
            keep: self.keep.clone(),
            rounds: self.rounds,
            bootstraps: self.bootstraps as usize,
            seed: u64::from(self.seed),
            ..GrowSettings::default()
        };
        let grown = {
            let bar = Counting::new();
            let progress = |at: Progress| {
                let (done, all) = at.share();
                bar.at(&at.stage(), done, all)
            };
            let mut save = |state: &State| state.write(&kept);
            let data = Origin::file(&self.data);
            grow(&data, &settings, resume, &mut save, &progress)?
        };
        let Some(grown) = grown else {
            note!(
                "stopped; go on with: the same command and --resume, which begins with the last round ({})",
                kept.display()
            );
            return Ok(Ending::Interrupted);
        };
        let drawing = self.out.with_extension("svg");
        write_atomically(&drawing, grown.drawing().as_bytes())?;
        write_atomically(&self.out, self.model_file(&grown)?.as_bytes())?;
        // What is done needs no state to go on from.
        let _ = std::fs::remove_file(&kept);
        say!("{}", grown.tree.draw());
        for accepted in &grown.accepted {
            say!(
                "round {}: {}: {:+.3} ± {:.3} nats a row\n",
                accepted.round,
                accepted.sentence,
                accepted.gain,
                accepted.standard_error
            );
        }
        for (column, why) in &grown.left_out {
            note!("note: left out `{column}`, as it {why}");
        }
        if let Some(total) = &grown.total {
            say!("{}\n", total.sentence());
        }
        say!(
            "wrote {} and {}; then: ramp fit {}\n",
            self.out.display(),
            drawing.display(),
            self.out.display()
        );
        Ok(Ending::Done)
    }

    /// The model file that `ramp fit` takes.
    fn model_file(&self, grown: &Grown) -> Result<String, Failure> {
        let newick = grown.tree.to_newick().map_err(ramp::Error::from)?;
        let same_folder = self.data.parent() == self.out.parent();
        let file = match (same_folder, self.data.file_name()) {
            (true, Some(name)) => name.to_string_lossy().into_owned(),
            _ => {
                let whole = self.data.canonicalize();
                whole
                    .unwrap_or_else(|_| self.data.clone())
                    .display()
                    .to_string()
            }
        };
        let mut text = format!(
            "# A tree that was grown from {}.\n# How many of {} bootstrap trees have the edge above each latent:\n",
            self.data.file_name().unwrap_or_default().to_string_lossy(),
            self.bootstraps
        );
        for (latent, part) in &grown.support {
            let plain = latent.replace(|c: char| c.is_control(), " ");
            text += &format!("#   {plain}: {:.0} %\n", 100.0 * part);
        }
        text += &format!(
            "version = 1\n\n[data]\nfile = {}\n\n[tree]\nnewick = {}\n\n[train]\nseed = {}\n",
            toml::Value::from(file),
            toml::Value::from(newick),
            self.seed
        );
        Ok(text)
    }
}
