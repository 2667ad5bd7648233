//! `ramp fit`: train on a user's data, say what was learned, leave a run folder with a report.

use crate::output::{note, say};
use crate::printing::{self, Table};
use crate::progress::Bar;
use crate::ranks::{Ranks, Stopped};
use crate::{Ending, Failure};
use clap::Args;
use ramp::train::{Fit as Trained, Record, TrainError, read_records};
use ramp_io::report::Shown;
use ramp_io::run::{Account, Intent, RunFolder};
use ramp_io::{Findings, ModelFile, Project};
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
        let ranks = Ranks::join()?;
        let outcome = ranks.greet().and_then(|()| self.run_among(&ranks));
        ranks.end(outcome)
    }

    /// The model file with what this command says; rank 0 alone looks at the run's folder.
    fn model_file(&self, out: &Path, leads: bool) -> Result<(ModelFile, Vec<PathBuf>), Failure> {
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
        let mut inputs = vec![self.model.clone()];
        inputs.extend(file.data.file.clone());
        if leads {
            RunFolder::check(out, self.intent(), &inputs)?;
        }
        Ok((file, inputs))
    }

    fn intent(&self) -> Intent {
        match (self.resume, self.overwrite) {
            (true, _) => Intent::Resume,
            (_, true) => Intent::Overwrite,
            _ => Intent::New,
        }
    }

    fn run_among(&self, ranks: &Ranks) -> Result<Ending, Stopped> {
        let begun = Instant::now();
        let name = name_of(&self.model);
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| Path::new("out").join(&name));
        let (file, inputs) = ranks.together(self.model_file(&out, ranks.leads()))?;
        let prepared = Project::prepare_among(file, ranks.collective().clone());
        let mut project = ranks.together(prepared.map_err(Failure::from))?;
        // Better now than after an hour of training; and what is shown of the data is what was learned from.
        ranks.together(match ranks.leads() {
            true => printing::check_writable(&out),
            false => Ok(()),
        })?;
        let shown = ranks.together(Shown::of(&project).map_err(Failure::from))?;
        let place = match ranks.leads() {
            true => RunFolder::claim(&out, self.intent(), &inputs).map(Some),
            false => Ok(None),
        };
        let place = ranks.together(place.map_err(Failure::from))?;
        say!("{}", printing::describe(&project));
        let judged = {
            let mut bar = Bar::of("cross-validating");
            project.cross_validate(None, &mut bar)
        };
        if before_training(ranks, judged)?.is_none() {
            return Ok(Ending::Interrupted);
        }
        if !self.resume {
            let tried = {
                let mut bar = Bar::of("pretraining");
                project.initialise(None, &mut bar)
            };
            let Some(tried) = before_training(ranks, tried)? else {
                return Ok(Ending::Interrupted);
            };
            for start in tried.iter().take(1) {
                say!("{}\n", printing::chosen_start(start));
            }
        }
        let checkpoints = match &place {
            Some(place) => place.checkpoints(),
            None => out.clone(),
        };
        let trained = project.train_among(&**ranks.collective(), &checkpoints, None, Bar::new());
        let Some(place) = place else {
            return match trained {
                Ok(_) => {
                    project.follow()?;
                    Ok(Ending::Done)
                }
                Err(ramp::Error::Train(TrainError::Interrupted { .. })) => Ok(Ending::Interrupted),
                Err(error) => {
                    if self.keeps_best(&error) {
                        project.follow()?;
                    }
                    Err(stopped(error))
                }
            };
        };
        if trained
            .as_ref()
            .map_or_else(|error| self.keeps_best(error), |_| true)
        {
            project.lead();
        }
        let ending = self.conclude(&mut project, (&place, &out), &name, &shown, trained, begun);
        // Where this rank alone has failed, the others are ended with it.
        if !matches!(ending, Err(Stopped::Alone(_))) {
            project.release()?;
        }
        ending
    }

    /// Whether a training that ended so leaves a run all the same: where nothing was, the best so far is better than nothing, and what was there before is better than
    /// what diverged.
    fn keeps_best(&self, error: &ramp::Error) -> bool {
        matches!(
            error,
            ramp::Error::Train(TrainError::Diverged { best: Some(_), .. })
        ) && !self.overwrite
    }

    /// What rank 0 does when training has ended.
    fn conclude(
        &self,
        project: &mut Project,
        (place, out): (&RunFolder, &Path),
        name: &str,
        shown: &Shown,
        trained: ramp::Result<Trained>,
        begun: Instant,
    ) -> Result<Ending, Stopped> {
        let trained = match trained {
            Ok(trained) => trained,
            Err(ramp::Error::Train(TrainError::Interrupted {
                iteration,
                iterations,
            })) => {
                note!(
                    "stopped after iteration {iteration} of {iterations}; go on with: {}",
                    self.command(&["--resume"])
                );
                return Ok(Ending::Interrupted);
            }
            Err(ramp::Error::Train(
                error @ TrainError::Diverged {
                    best: Some(best), ..
                },
            )) if !self.overwrite => {
                let records = read_records(&place.checkpoints())?.into_vec();
                project.align_signs()?;
                let kept = format!("those of iteration {best}, the best before training diverged");
                self.finish(project, place, name, shown, &records, kept, begun)?;
                return Err(Stopped::Together(Failure::user(format!(
                    "{error}; the run in `{}` has the weights of iteration {best}, the best so far",
                    out.display()
                ))));
            }
            Err(error) => return Err(stopped(error)),
        };
        project.align_signs()?;
        project.learn_readout()?;
        let kept = project.kept_weights(&trained);
        let fell = trained.fell(&project.train);
        // What was there before is better than what diverged.
        if let (Some(error), true) = (&fell, self.overwrite || self.resume) {
            return Err(Stopped::Together(Failure::user(error.to_string())));
        }
        let findings = self.finish(project, place, name, shown, &trained.records, kept, begun)?;
        if let Some(error) = fell {
            return Err(Stopped::Together(Failure::user(format!(
                "{error}; the run in `{}` has the weights of iteration {}, the best so far",
                out.display(),
                trained.iteration
            ))));
        }
        say!("\n{}", table(&findings));
        if let Some(total) = &findings.total {
            say!("{}\n", total.sentence());
        }
        if let Some(found) = project.beyond_linear {
            say!("{}\n", found.sentence());
        }
        say!("{}", printing::items(&findings.items));
        if let Some(text) = project.describe_readout() {
            say!("{text}\n\n");
        }
        for warning in findings.latents.iter().flat_map(|l| &l.warnings) {
            say!("warning: {warning}\n");
        }
        say!(
            "\n{} iterations{}, {:.1} s; the run is in {}\nreport: {}\n",
            trained.steps,
            match (&project.cross_validation, trained.held_out) {
                (Some(found), _) => format!(
                    ", as many as {} fits to parts of the rows chose",
                    found.folds
                ),
                (None, Some(_)) => format!(", the weights of iteration {} kept", trained.iteration),
                (None, None) => String::new(),
            },
            begun.elapsed().as_secs_f64(),
            out.display(),
            out.join("report.html").display()
        );
        Ok(Ending::Done)
    }

    /// Measures what was learned and lets the run take its place.
    #[allow(clippy::too_many_arguments)]
    fn finish(
        &self,
        project: &Project,
        place: &RunFolder,
        name: &str,
        shown: &Shown,
        records: &[Record],
        kept: String,
        begun: Instant,
    ) -> Result<Findings, Failure> {
        let account = Account {
            name: name.into(),
            command: self.command(&[]),
            kept,
            seconds: begun.elapsed().as_secs_f64(),
        };
        Ok(place.conclude(project, shown, records, account)?)
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
}

/// What was done before training, on all ranks; nothing where one of them was stopped.
fn before_training<T>(ranks: &Ranks, done: ramp_io::Result<T>) -> Result<Option<T>, Stopped> {
    let done = match done {
        Err(ramp_io::Error::Engine(ramp::Error::Train(TrainError::Interrupted { .. }))) => Ok(None),
        done => done.map(Some).map_err(Failure::from),
    };
    let done = ranks.together(done)?;
    let stopped = ranks.collective().maximum(u64::from(done.is_none()));
    if stopped.map_err(ramp::Error::from)? > 0 {
        note!("stopped before training began; the same command starts again");
        return Ok(None);
    }
    Ok(done)
}

/// An error of training: of several ranks all come to the same, but for what happens to one machine.
fn stopped(error: ramp::Error) -> Stopped {
    match error {
        ramp::Error::Train(TrainError::Threads { .. })
        | ramp::Error::Storage(_)
        | ramp::Error::Collective(_) => Stopped::Alone(error.into()),
        // The rank that failed has said why.
        ramp::Error::Train(TrainError::RankFailed) => Stopped::Together(Failure {
            sentence: String::new(),
            user: false,
        }),
        error => Stopped::Together(error.into()),
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

/// The findings as a person reads them.
fn table(findings: &Findings) -> String {
    let held_out = findings.latents.iter().any(|l| l.held_out.is_some());
    let folds = findings.total.as_ref().map_or(0, |total| total.folds);
    let mut table = Table::new(&[
        "latent",
        "family",
        "training",
        match (held_out, folds) {
            (_, 1..) => "cross-validated",
            (true, _) => "held-out",
            (false, _) => "",
        },
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
