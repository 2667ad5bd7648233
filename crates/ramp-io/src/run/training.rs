//! Training into a run folder: the steps, and what is written of them at the end.

use super::{Project, RunFolder};
use crate::report::{Shown, build, page};
use crate::{Findings, Result};
use ramp::collective::{Collective, Single};
use ramp::train::{Fit, Observer, Record, Trainer};
use std::path::Path;

/// What is said of a training on its page.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// What the run is called.
    pub name: String,
    /// The command, or the call, that it came from.
    pub command: String,
    /// Which weights were kept, in words.
    pub kept: String,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Project {
    /// Trains the model with its checkpoints in the folder of the run, and goes on from the one that is there.
    pub fn train<'a>(
        &mut self,
        place: &RunFolder,
        threads: Option<usize>,
        observer: impl Observer + 'a,
    ) -> ramp::Result<Fit> {
        self.train_among(&Single, &place.checkpoints(), threads, observer)
    }

    /// [`train`](Self::train) together with other ranks, which have the same project. Rank 0 alone reads and writes the folder of checkpoints; the
    /// others may give any.
    pub fn train_among<'a>(
        &mut self,
        ranks: &'a dyn Collective,
        checkpoints: &Path,
        threads: Option<usize>,
        observer: impl Observer + 'a,
    ) -> ramp::Result<Fit> {
        let every = (self.train.iterations / 20).clamp(10, 500);
        let start = self
            .init_factors()?
            .then(|| self.model.parameters().to_vec());
        let mut trainer = Trainer::new(self.train.clone())?
            .ranks(ranks)
            .checkpoints(checkpoints, every)
            .observer(observer);
        if let Some(chosen) = &self.cross_validation {
            trainer = trainer.ends_at(chosen.iteration);
        }
        if start.is_some() {
            trainer = trainer.measure_start();
        }
        if let Some(threads) = threads {
            trainer = trainer.threads(threads);
        }
        let mut fit = trainer.fit(&mut self.model, &self.data)?;
        if let (Some(start), None) = (start, &self.cross_validation) {
            self.judge_beyond_linear(&start)?;
            if self.is_linear() {
                (fit.iteration, fit.held_out) = (0, fit.start.or(fit.held_out));
            }
        }
        Ok(fit)
    }

    /// Which weights a training kept, in words.
    pub fn kept_weights(&self, trained: &Fit) -> String {
        let iteration = trained.iteration;
        match (&self.cross_validation, trained.held_out, iteration) {
            (Some(found), _, 0) => format!(
                "those of the linear factor model that it began as, which {} fits to parts of the rows preferred",
                found.folds
            ),
            (Some(found), ..) => format!(
                "those of iteration {iteration}, as many as {} fits to parts of the rows chose",
                found.folds
            ),
            (None, Some(_), 0) => "those of the linear factor model that it began as, which validation samples preferred".into(),
            (None, Some(_), _) => format!("those of iteration {iteration}, the best on validation samples"),
            (None, None, _) => "the last".into(),
        }
    }
}

impl RunFolder {
    /// Measures what was learned and lets the run take its place, with its page.
    pub fn conclude(
        &self,
        project: &Project,
        shown: &Shown,
        records: &[Record],
        account: Account,
    ) -> Result<Findings> {
        let findings = Findings::of(project)?;
        let mut facts = vec![
            (
                "software".into(),
                format!("ramp {}", env!("CARGO_PKG_VERSION")),
            ),
            ("command".into(), account.command),
            ("seed".into(), project.train.seed.to_string()),
            ("iterations".into(), project.train.iterations.to_string()),
            ("weights kept".into(), account.kept),
            ("this session".into(), format!("{:.1} s", account.seconds)),
        ];
        let filled = project.describe_readout();
        facts.extend(filled.map(|text| ("imputation".into(), text)));
        let report = build(&account.name, project, shown, records, &findings, facts)?;
        self.finish(project, &page(&report))?;
        Ok(findings)
    }
}
