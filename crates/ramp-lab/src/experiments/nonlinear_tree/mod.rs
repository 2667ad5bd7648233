//! The nonlinear tree: RAMP against BBVI and a supervised Gaussian approximation (paper, "Nonlinear Tree").

pub mod data;
mod figures;
mod probe;

use crate::baselines::SupervisedGaussian;
use crate::error::LabError;
use crate::experiments::linear_tree::data::TreeSample;
use crate::harness::{
    BbviSettings, BbviTask, Clock, Core, Experiment, Figures, Point, RunInfo, Training, TrainingRun,
};
use data::NonlinearTree;
use figures::{Scatter, bars_figure, learning_figure, scatter_figure};
use probe::{means, reciprocal_pearsons, reciprocals, spearmans};
use ramp::graph::FactorTree;
use ramp::model::Model;
use ramp::network::{MlpSpec, NetworkSpec};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NonlinearTreeRun {
    /// What all experiments share.
    #[serde(flatten)]
    pub core: Core,
    /// Where the data come from.
    pub tree: NonlinearTree,
    /// Training samples.
    pub n: usize,
    /// Fresh samples on which everything is measured.
    pub test: usize,
    /// Hidden layers of every network.
    pub hidden: Vec<usize>,
    /// The settings of BBVI.
    pub bbvi: BbviSettings,
}

/// One number per latent, root first in level order, for each method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerMethod {
    /// RAMP.
    pub ramp: Vec<f64>,
    /// The supervised Gaussian approximation.
    pub gaussian: Vec<f64>,
    /// Black-box variational inference.
    pub bbvi: Vec<f64>,
}

/// Which method's numbers to look at.
pub type Method = fn(&PerMethod) -> &Vec<f64>;

/// A point of a learning curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpearmanPoint {
    /// Steps taken.
    pub iteration: usize,
    /// Absolute Spearman correlation of posterior means with true latents.
    pub spearman: Vec<f64>,
}

impl Point for SpearmanPoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

/// Everything a run measured, on fresh samples unless said otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NonlinearTreeResults {
    /// Absolute Spearman correlations of posterior means with true latents.
    pub spearman: PerMethod,
    /// Absolute Pearson correlations of posterior means with clipped reciprocals of true latents.
    pub pearson_reciprocal: PerMethod,
    /// The level of every latent, 0 for the root.
    pub depth_of_latent: Vec<usize>,
    /// The learning curve of RAMP.
    pub history: Vec<SpearmanPoint>,
    /// The learning curve of BBVI, on the samples it learns from.
    pub bbvi_history: Vec<SpearmanPoint>,
    /// Wall time of BBVI over all sessions, in seconds.
    pub bbvi_seconds: f64,
    /// How RAMP was trained.
    #[serde(flatten)]
    pub training: TrainingRun,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<NonlinearTreeRun>,
}

impl Experiment for NonlinearTreeRun {
    type Results = NonlinearTreeResults;

    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(NonlinearTreeResults, Figures), LabError> {
        let (results, scatter) = self.compare(folder, "", clock)?;
        let figures = vec![
            ("bars", bars_figure(&results)),
            ("learning", learning_figure(&results)),
            (
                "scatter",
                scatter_figure(&scatter, &results.depth_of_latent)?,
            ),
        ];
        Ok((results, figures))
    }
}

impl NonlinearTreeRun {
    /// Trains all methods and measures them; `prefix` stands before the names of pieces of work.
    pub(super) fn compare(
        &self,
        folder: &Path,
        prefix: &str,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(NonlinearTreeResults, Scatter), LabError> {
        let core = &self.core;
        let samples = self.n.saturating_add(self.test);
        let mut train = self.tree.sample(samples, core.seed)?;
        let test = train.split_off(self.n);
        let (data, test_data) = (train.dataset()?, test.dataset()?);
        let gaussian = SupervisedGaussian::fit(&train)?.means(&test.observations)?;

        let tree = FactorTree::balanced(self.tree.depth, self.tree.arity)?;
        let network = NetworkSpec::Mlp(MlpSpec {
            hidden: self.hidden.clone(),
            ..MlpSpec::default()
        });
        let mut model = Model::builder(tree)
            .inputs(core.inputs)
            .message_network(network.clone())
            .observation_network(network)
            .init(core.recipe.init())
            .seed(core.seed)
            .build(&data)?;
        let before = means(&model, &test_data)?;
        let ramp = Training {
            what: &format!("{prefix}RAMP"),
            train: &core.train,
            threads: core.threads,
            folder,
        };
        let point = |model: &Model, iteration: usize| {
            Ok(Some(SpearmanPoint {
                iteration,
                spearman: spearmans(&means(model, &test_data)?, &test),
            }))
        };
        let (training, history) = ramp.run(self, &point, clock, |t| t.fit(&mut model, &data))?;
        let task = BbviTask {
            prefix,
            parents: self.tree.parents()?,
            latents: train.latents.len(),
            train: &train.observations,
            test: &test.observations,
            threads: core.threads,
            folder,
        };
        let of_bbvi = |means: &[Vec<f64>], iteration: usize| SpearmanPoint {
            iteration,
            spearman: spearmans(means, &train),
        };
        let bbvi = self.bbvi.run(task, &of_bbvi, clock)?;

        let after = means(&model, &test_data)?;
        let of_each = |measure: fn(&[Vec<f64>], &TreeSample) -> Vec<f64>| PerMethod {
            ramp: measure(&after, &test),
            gaussian: measure(&gaussian, &test),
            bbvi: measure(&bbvi.means, &test),
        };
        let results = NonlinearTreeResults {
            spearman: of_each(spearmans),
            pearson_reciprocal: of_each(reciprocal_pearsons),
            depth_of_latent: self.tree.depth_of_latent()?,
            history,
            bbvi_history: bbvi.curve,
            bbvi_seconds: clock.spent_on("BBVI"),
            training,
            info: RunInfo::new(self, clock),
        };
        let truth = test.latents.iter().map(|row| reciprocals(row)).collect();
        let scatter = Scatter {
            truth,
            before,
            after,
        };
        Ok((results, scatter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Recipe, Scale, StopAfter};
    use ramp::train::TrainSpec;

    fn small() -> NonlinearTreeRun {
        let mut run = NonlinearTreeRun::new(Scale::Quick, Recipe::Ours, 3);
        (run.n, run.test, run.hidden) = (300, 200, vec![8]);
        run.core.train = TrainSpec {
            iterations: 20,
            batch: Some(100),
            ..run.core.train
        };
        run.bbvi.n = 100;
        run.bbvi.learning.iterations = 15;
        run.bbvi.inference.iterations = 10;
        run
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = small().run(&folder.path().join("whole"), &mut ()).unwrap();
        let out = folder.path().join("pieces");
        for steps in [6, 14 + 5, 10 + 4] {
            let stopped = small().run(&out, &mut StopAfter(steps));
            assert!(matches!(stopped, Err(LabError::Interrupted { .. })));
            assert!(!out.join("results.json").exists());
        }
        let pieces = small().run(&out, &mut ()).unwrap();
        assert!(pieces.files.iter().all(|f| f.is_file()));
        let (whole, pieces) = (whole.results, pieces.results);
        assert_eq!(whole.spearman, pieces.spearman);
        assert_eq!(whole.pearson_reciprocal, pieces.pearson_reciprocal);
        assert_eq!(whole.history, pieces.history);
        assert_eq!(whole.bbvi_history, pieces.bbvi_history);
    }

    #[test]
    fn results_hold_the_numbers_they_promise() {
        let folder = tempfile::tempdir().unwrap();
        let results = small().run(folder.path(), &mut ()).unwrap().results;
        let text = std::fs::read(folder.path().join("results.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let stored: PerMethod = serde_json::from_value(json["spearman"].clone()).unwrap();
        assert_eq!(stored, results.spearman);
        let stored: PerMethod = serde_json::from_value(json["pearson_reciprocal"].clone()).unwrap();
        assert_eq!(stored, results.pearson_reciprocal);
        // The supervised approximation needs no training: computed here once more from the same data.
        let mut train = small().tree.sample(500, 3).unwrap();
        let test = train.split_off(300);
        let gaussian = SupervisedGaussian::fit(&train).unwrap();
        let gaussian = gaussian.means(&test.observations).unwrap();
        let truth: Vec<Vec<f64>> = test.latents.iter().map(|row| reciprocals(row)).collect();
        for k in 0..7 {
            let rank = crate::metrics::spearman(&gaussian[k], &test.latents[k]).abs();
            assert_eq!(results.spearman.gaussian[k], rank);
            let line = crate::metrics::pearson(&gaussian[k], &truth[k]).abs();
            assert_eq!(results.pearson_reciprocal.gaussian[k], line);
        }
        for method in [&results.spearman.ramp, &results.spearman.bbvi] {
            assert_eq!(method.len(), 7);
            assert!(method.iter().all(|r| (0.0..=1.0).contains(r)), "{method:?}");
            assert!(method.iter().any(|r| *r > 0.0));
        }
        assert_eq!(json["free_energy_history"].as_array().unwrap().len(), 20);
        let last = json["history"].as_array().unwrap().last().unwrap();
        assert_eq!(last["iteration"], 20);
        assert_eq!(last["spearman"], json["spearman"]["ramp"]);
    }
}
