//! Calibration: the rank of what is true among what was held possible is uniform, for every family, on trees and chains with gaps.
//!
//! Latents are compared with their posteriors where nothing but their signs is free, on linear-Gaussian data. Elsewhere latents are known
//! only up to a bijection, so hidden cells are compared with their imputations, and cells to come with their forecasts.

pub mod data;
mod figures;
mod probe;

use crate::error::LabError;
use crate::harness::{
    Clock, Core, Experiment, Figures, RunInfo, Training, TrainingRun, keep, kept,
};
use data::Case;
use figures::ranks_figure;
pub use probe::{Of, Ranks};
use ramp::graph::Tying;
use ramp::model::Model;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationRun {
    /// What all experiments share; chains take their number of iterations, batch and seed, and their own recipe.
    #[serde(flatten)]
    pub core: Core,
    /// What is asked.
    pub cases: Vec<Case>,
    /// Training samples.
    pub n: usize,
    /// Fresh samples, each of which gives a rank of every kind.
    pub test: usize,
}

/// What was found of one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseResults {
    /// Which.
    pub case: Case,
    /// The family of its latents.
    pub family: String,
    /// Ranks, kind by kind.
    pub ranks: Vec<Ranks>,
    /// How it was trained.
    #[serde(flatten)]
    pub training: TrainingRun,
}

/// Everything a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CalibrationResults {
    /// Case by case.
    pub cases: Vec<CaseResults>,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<CalibrationRun>,
}

impl Experiment for CalibrationRun {
    type Results = CalibrationResults;

    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(CalibrationResults, Figures), LabError> {
        if self.cases.is_empty() {
            return Err(LabError::Invalid("there must be at least one case".into()));
        }
        self.core.train.check()?;
        self.core.train.split(self.n)?;
        let mut cases = vec![];
        for &case in &self.cases {
            let own = folder.join(case.name());
            let file = own.join("found.json");
            // What a case gives does not depend on the others of the run.
            let alone = CalibrationRun {
                cases: vec![case],
                ..self.clone()
            };
            let found = match kept(&file, &alone) {
                Some(found) => found,
                None => {
                    let found = alone.one(case, &own, clock)?;
                    keep(&file, &alone, &found)?;
                    found
                }
            };
            cases.push(found);
        }
        let figures = vec![("ranks", ranks_figure(&cases))];
        let results = CalibrationResults {
            cases,
            info: RunInfo::new(self, clock),
        };
        Ok((results, figures))
    }
}

impl CalibrationRun {
    fn one(
        &self,
        case: Case,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<CaseResults, LabError> {
        let core = &self.core;
        let [train, test] = case.sample(self.n, self.test, core.seed)?;
        let data = train.dataset(0)?;
        let builder = Model::builder(case.tree()?)
            .families(case.family())?
            .inputs(core.inputs)
            .seed(core.seed);
        let builder = match case.is_chain() {
            true => builder.tying(Tying::Role),
            false => builder.init(core.recipe.init()),
        };
        let mut model = builder.build(&data)?;
        let train_spec = self.train(case);
        let training = Training {
            what: case.name(),
            train: &train_spec,
            threads: core.threads,
            folder,
        };
        let (training, _) = training.run(self, &|_, _| Ok(None::<()>), clock, |t| {
            t.fit(&mut model, &data)
        })?;
        let mut ranks = vec![];
        if !test.latents.is_empty() {
            let mut latents = probe::latents(&model, &train, &test)?;
            if let Some(tree) = case.gaussian()? {
                latents.exact = probe::exact_latents(&tree, &test)?;
            }
            ranks.push(latents);
        }
        match case.is_chain() {
            true => ranks.extend(probe::over_time(&model, &train, &test, core.seed)?),
            false => {
                let fresh = train.select(&train_spec.split(self.n)?.validation);
                let hidden = probe::hidden_in_tree(&model, &train, &fresh, &test, core.seed)?;
                ranks.push(hidden);
            }
        }
        Ok(CaseResults {
            case,
            family: case.family().into(),
            ranks,
            training,
        })
    }
}

#[cfg(test)]
mod tests;
