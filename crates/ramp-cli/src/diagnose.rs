//! `ramp diagnose`: which change of a run's tree would explain more of rows that were not learned from.

use crate::output::{note, say};
use crate::printing::{self, Table};
use crate::progress::Counting;
use crate::{Ending, Failure};
use clap::Args;
use ramp_io::change::Effort;
use ramp_io::diagnose::Diagnosis;
use ramp_io::{Project, Run};
use std::path::PathBuf;

#[derive(Args)]
pub struct Diagnose {
    /// Run folder of a finished fit
    run: PathBuf,
    /// The data that it was fitted to, where it has moved
    #[arg(long)]
    data: Option<PathBuf>,
    /// Write every change that was tried to this .csv
    #[arg(long)]
    out: Option<PathBuf>,
    /// How many changes to print
    #[arg(long, default_value_t = 10)]
    show: usize,
    /// Steps of each small fit
    #[arg(long, default_value_t = Effort::default().iterations as u32, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// How many steps from the latents of a change others are fitted again with it; 0 is quicker, and blind to what their neighbours would make of it
    #[arg(long, value_name = "STEPS", default_value_t = Effort::default().around as u32)]
    around: u32,
}

impl Diagnose {
    pub fn run(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let project = Project::reopen(&run, &self.run, self.data.clone())?;
        if let Some(out) = &self.out {
            if out.extension().is_none_or(|e| e != "csv") {
                return Err(Failure::user(format!(
                    "`{}` does not end in .csv, which is what the changes are written as",
                    out.display()
                )));
            }
            let folder = out.parent().filter(|p| !p.as_os_str().is_empty());
            printing::check_writable(folder.unwrap_or(std::path::Path::new(".")))?;
        }
        let effort = Effort {
            around: self.around as usize,
            iterations: self.iterations as usize,
            ..Effort::default()
        };
        let diagnosis = {
            let bar = Counting::new();
            Diagnosis::of(&project, effort, &|done, all| {
                bar.at("trying changes", done, all)
            })?
        };
        let Some(diagnosis) = diagnosis else {
            note!("stopped; nothing was written");
            return Ok(Ending::Interrupted);
        };
        say!("{}", self.table(&diagnosis));
        let clear = diagnosis.changes.iter().filter(|c| c.is_clear()).count();
        match diagnosis.changes.iter().find(|c| c.is_clear()) {
            Some(best) => say!(
                "{}: {:+.3} ± {:.3} nats a row; {clear} of {} changes gain more than chance\n",
                best.sentence,
                best.gain,
                best.standard_error,
                diagnosis.changes.len()
            ),
            None => say!(
                "no change of the tree gains more than chance on {} held-out rows\n",
                diagnosis.rows
            ),
        }
        match diagnosis.report(&run, &self.run)? {
            true => say!("listed in {}\n", self.run.join("report.html").display()),
            false => note!(
                "note: the report of this run is of an older version and cannot list changes; `ramp report {}` builds it again",
                self.run.display()
            ),
        }
        if let Some(out) = &self.out {
            let mut text = String::from("change,gain,standard_error,p_value,newick\n");
            for change in &diagnosis.changes {
                let newick = change.tree.to_newick().map_err(ramp::Error::from)?;
                text += &format!(
                    "{},{},{},{},{}\n",
                    quoted(&change.sentence),
                    change.gain,
                    change.standard_error,
                    change.p_value,
                    quoted(&newick)
                );
            }
            ramp::storage::write_atomically(out, text.as_bytes())?;
            say!(
                "wrote {} changes to {}\n",
                diagnosis.changes.len(),
                out.display()
            );
        }
        Ok(Ending::Done)
    }

    fn table(&self, diagnosis: &Diagnosis) -> String {
        let mut table = Table::new(&["gain", "± error", "p", "change"]).right(&[0, 1, 2]);
        for change in diagnosis.changes.iter().take(self.show) {
            table.row(vec![
                format!("{:+.3}", change.gain),
                format!("{:.3}", change.standard_error),
                match change.p_value {
                    p if p < 0.001 => "< 0.001".into(),
                    p => format!("{p:.3}"),
                },
                printing::shortened(&change.sentence, 120),
            ]);
        }
        format!(
            "what changes of the tree gain, in nats a row on {} held-out rows; p is corrected for the {} changes tried\n{}",
            diagnosis.rows,
            diagnosis.changes.len(),
            table.text()
        )
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
