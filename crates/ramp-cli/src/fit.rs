//! `ramp fit`: train on a user's data, say what was learned, leave a run folder with a report.

use crate::fit_report;
use crate::output::{note, say};
use crate::printing::{self, Table};
use crate::progress::Bar;
use crate::{Ending, Failure};
use clap::Args;
use ramp::storage::write_atomically;
use ramp::train::{Fit as Trained, Record, TrainError, Trainer, checkpoint_file, read_records};
use ramp_io::{Findings, ModelFile, Project, Run};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Args)]
pub struct Fit {
    /// The model file; `ramp init DATA.csv` writes one to start from
    model: PathBuf,
    /// Data, in place of the model file's
    #[arg(long)]
    data: Option<PathBuf>,
    /// Run folder [default: out/ and the model's name]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Go on with a run that was stopped
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Start anew where a run is already
    #[arg(long)]
    overwrite: bool,
    /// Steps, in place of the model file's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// Seed, in place of the model file's
    #[arg(long)]
    seed: Option<u32>,
}

impl Fit {
    pub fn run(self) -> Result<Ending, Failure> {
        let begun = Instant::now();
        let mut file = ModelFile::read(&self.model)?;
        if let Some(data) = &self.data {
            file.data.file = Some(data.clone());
        }
        if let Some(iterations) = self.iterations {
            file.train
                .insert("iterations".into(), i64::from(iterations).into());
        }
        if let Some(seed) = self.seed {
            file.train.insert("seed".into(), i64::from(seed).into());
        }
        let name = name_of(&self.model);
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| Path::new("out").join(&name));
        self.check_folder(&out)?;
        let mut project = Project::prepare(file)?;
        // Better now than after an hour of training.
        printing::check_writable(&out)?;
        say!("{}", printing::describe(&project));
        // An older run stays whole until there is a new one to take its place.
        if self.overwrite {
            remove(&checkpoint_file(&out.join("checkpoint")))?;
        }
        if !self.resume {
            let tried = {
                let mut bar = Bar::of("trying starts");
                project.initialise(None, &mut bar)
            };
            match tried {
                Ok(tried) => {
                    for start in tried.iter().take(1) {
                        say!("{}\n", printing::chosen_start(start));
                    }
                }
                Err(ramp_io::Error::Engine(ramp::Error::Train(TrainError::Interrupted {
                    ..
                }))) => {
                    note!("stopped before training began; the same command starts again");
                    return Ok(Ending::Interrupted);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let trained = match self.train(&mut project, &out) {
            Ok(trained) => trained,
            Err(ramp::Error::Train(TrainError::Interrupted {
                iteration,
                iterations,
            })) => {
                write_metrics(&out, &read_records(&out.join("checkpoint"))?)?;
                note!(
                    "stopped after iteration {iteration} of {iterations}; go on with: {}",
                    self.command(&["--resume"])
                );
                return Ok(Ending::Interrupted);
            }
            Err(error) => return Err(error.into()),
        };
        write_metrics(&out, &trained.records)?;
        project.align_signs()?;
        for file in ["weights.safetensors", "support.csv", "support.npz"] {
            remove(&out.join(file))?;
        }
        Run::save(&project, &out)?;
        let findings = Findings::of(&project)?;
        let facts = vec![
            (
                "software".into(),
                format!("ramp {}", env!("CARGO_PKG_VERSION")),
            ),
            ("command".into(), self.command(&[])),
            ("seed".into(), project.train.seed.to_string()),
            ("iterations".into(), project.train.iterations.to_string()),
            (
                "weights kept".into(),
                match trained.held_out {
                    Some(_) => format!(
                        "those of iteration {}, the best on held-out samples",
                        trained.iteration
                    ),
                    None => "the last".into(),
                },
            ),
            (
                "this session".into(),
                format!("{:.1} s", begun.elapsed().as_secs_f64()),
            ),
        ];
        let report = fit_report::build(&name, &project, &trained.records, &findings, facts)?;
        fit_report::write(&out, &report)?;
        say!("\n{}", table(&findings));
        for warning in findings.latents.iter().flat_map(|l| &l.warnings) {
            say!("warning: {warning}\n");
        }
        say!(
            "\n{} iterations, {:.1} s; the run is in {}\nreport: {}\n",
            trained.records.len(),
            begun.elapsed().as_secs_f64(),
            out.display(),
            out.join("report.html").display()
        );
        Ok(Ending::Done)
    }

    fn check_folder(&self, out: &Path) -> Result<(), Failure> {
        let user = |sentence: String| Err(Failure::user(sentence));
        let state = checkpoint_file(&out.join("checkpoint"));
        let there = state.exists() || out.join("weights.safetensors").exists();
        if there && !self.resume && !self.overwrite {
            return user(format!(
                "`{}` holds a run already: --resume goes on with it, --overwrite starts anew, --out takes another folder",
                out.display()
            ));
        }
        if self.resume && !state.exists() {
            return user(format!(
                "there is no run in `{}` to go on with{}; leave --resume out to start one",
                out.display(),
                if there {
                    ": its checkpoint is gone"
                } else {
                    ""
                }
            ));
        }
        if out.exists() && !out.is_dir() {
            return user(format!(
                "`{}` is a file; name a folder with --out",
                out.display()
            ));
        }
        Ok(())
    }

    /// The command that this is, as a shell takes it, with more words behind it.
    fn command(&self, more: &[&str]) -> String {
        let mut words = vec!["ramp".to_string(), "fit".into(), shell(&self.model)];
        let mut say = |flag: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|v| [flag.to_string(), v]));
        };
        say("--data", self.data.as_deref().map(shell));
        say("--out", self.out.as_deref().map(shell));
        say("--iterations", self.iterations.map(|n| n.to_string()));
        say("--seed", self.seed.map(|n| n.to_string()));
        words.extend(more.iter().map(|more| more.to_string()));
        words.join(" ")
    }

    fn train(&self, project: &mut Project, out: &Path) -> ramp::Result<Trained> {
        let every = (project.train.iterations / 20).clamp(10, 500);
        Trainer::new(project.train.clone())?
            .checkpoints(out.join("checkpoint"), every)
            .observer(Bar::new())
            .fit(&mut project.model, &project.data)
    }
}

/// A path as one word of a shell.
fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// What a run is called: the model file's name, or its folder's where that says more.
fn name_of(model: &Path) -> String {
    let stem = model
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let folder = model
        .canonicalize()
        .ok()
        .and_then(|p| Some(p.parent()?.file_name()?.to_string_lossy().into_owned()));
    match folder {
        Some(folder) if stem == "model" => folder,
        _ => stem,
    }
}

/// Takes away a file of an older run, if it is there.
fn remove(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(ramp::storage::StorageError::File {
                action: "remove",
                path: path.into(),
                source: e,
            }
            .into())
        }
        _ => Ok(()),
    }
}

fn write_metrics(out: &Path, records: &[Record]) -> Result<(), Failure> {
    let mut text = String::new();
    for record in records {
        text += &serde_json::to_string(record).map_err(|e| Failure {
            sentence: format!("a metric cannot be written: {e}"),
            user: false,
        })?;
        text.push('\n');
    }
    Ok(write_atomically(
        &out.join("metrics.jsonl"),
        text.as_bytes(),
    )?)
}

/// The findings as a person reads them.
fn table(findings: &Findings) -> String {
    let held_out = findings.latents.iter().any(|l| l.held_out.is_some());
    let mut table = Table::new(&[
        "latent",
        "family",
        "training",
        if held_out { "held-out" } else { "" },
        "spread",
        "contribution of each neighbour, in nats",
    ])
    .right(&[2, 3, 4]);
    for latent in &findings.latents {
        let contributions: Vec<String> = latent
            .contributions
            .iter()
            .map(|(from, nats)| format!("{from} {nats:.2}"))
            .collect();
        table.row(vec![
            latent.name.clone(),
            latent.family.clone(),
            format!("{:.3}", latent.train),
            latent.held_out.map_or(String::new(), |f| format!("{f:.3}")),
            format!("{:.2}", latent.spread),
            printing::shortened(&contributions.join(", "), 100),
        ]);
    }
    format!(
        "free energy of each latent, in nats a sample: how much it explains of what hangs on it\n{}",
        table.text()
    )
}
