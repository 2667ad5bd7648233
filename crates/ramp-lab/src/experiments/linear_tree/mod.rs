//! The linear Gaussian tree: RAMP against exact inference and the mean-field posterior (paper, "Gaussian Tree").

pub mod data;
pub mod figures;
mod probe;

use crate::error::LabError;
use crate::harness::{
    BbviSettings, BbviTask, Clock, Core, Experiment, Figures, Point, RunInfo, Training, TrainingRun,
};
use data::LinearTree;
use figures::{bbvi_figure, correlation_figure, variance_figure};
use probe::{correlations, probe};
use ramp::graph::FactorTree;
use ramp::model::Model;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Fresh samples on which everything is measured.
pub(super) const TEST_SAMPLES: usize = 10_000;
/// The random stream of training data, and that of test data.
pub(super) const TRAIN: u64 = 0;
pub(super) const TEST: u64 = 1;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinearTreeRun {
    /// What all experiments share.
    #[serde(flatten)]
    pub core: Core,
    /// Training samples.
    pub n: usize,
    /// The settings of BBVI.
    pub bbvi: BbviSettings,
}

/// One number per latent for every method, root first, level order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correlations {
    /// RAMP.
    pub ramp: Vec<f64>,
    /// Exact inference with the true parameters.
    pub exact: Vec<f64>,
    /// Black-box variational inference with a learned generative tree.
    pub bbvi: Vec<f64>,
}

/// Average posterior variances per latent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variances {
    /// RAMP, averaged over the test samples.
    pub ramp: Vec<f64>,
    /// Exact inference.
    pub exact: Vec<f64>,
    /// The best factorised posterior.
    pub mean_field: Vec<f64>,
}

/// A point of the learning curves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Steps taken.
    pub iteration: usize,
    /// Absolute correlation of posterior means with true latents.
    pub corr: Vec<f64>,
    /// Average posterior variance.
    pub variance: Vec<f64>,
}

/// A point of BBVI's learning curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BbviPoint {
    /// Steps taken.
    pub iteration: usize,
    /// Absolute correlation of posterior means with true latents, on the samples it learns from.
    pub corr: Vec<f64>,
}

impl Point for CurvePoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

impl Point for BbviPoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

/// Everything a run measured. Latents count in level order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinearTreeResults {
    /// Absolute correlations of posterior means with true latents, on fresh samples.
    pub corr: Correlations,
    /// Average posterior variances, on fresh samples.
    pub variance: Variances,
    /// The learning curves.
    pub corr_history: Vec<CurvePoint>,
    /// The learning curve of BBVI.
    pub bbvi_history: Vec<BbviPoint>,
    /// Wall time of BBVI over all sessions, in seconds.
    pub bbvi_seconds: f64,
    /// The population that free energies refer to.
    pub population: usize,
    /// How RAMP was trained.
    #[serde(flatten)]
    pub training: TrainingRun,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<LinearTreeRun>,
}

impl Experiment for LinearTreeRun {
    type Results = LinearTreeResults;

    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(LinearTreeResults, Figures), LabError> {
        let core = &self.core;
        let generator = LinearTree::default();
        let train = generator.sample(self.n, core.seed, TRAIN)?;
        let data = train.dataset()?;
        let test = generator.sample(TEST_SAMPLES, core.seed, TEST)?;
        let test_data = test.dataset()?;
        let posterior = generator.gaussian()?.posterior(&[])?;
        let exact_means = posterior.means(&test.observations)?;

        let tree = FactorTree::balanced(generator.depth, generator.arity)?;
        let mut model = Model::builder(tree)
            .inputs(core.inputs)
            .init(core.recipe.init())
            .seed(core.seed)
            .build(&data)?;
        let ramp = Training {
            what: "RAMP",
            train: &core.train,
            threads: core.threads,
            folder,
        };
        let point = |model: &Model, at: usize| probe(model, &test, &test_data, at).map(Some);
        let (training, corr_history) =
            ramp.run(self, &point, clock, |t| t.fit(&mut model, &data))?;
        let task = BbviTask {
            prefix: "",
            parents: generator.parents()?,
            latents: train.latents.len(),
            train: &train.observations,
            test: &test.observations,
            threads: core.threads,
            folder,
        };
        let of_bbvi = |means: &[Vec<f64>], iteration: usize| BbviPoint {
            iteration,
            corr: correlations(means, &train),
        };
        let bbvi = self.bbvi.run(task, &of_bbvi, clock)?;

        let last = probe(&model, &test, &test_data, training.iterations)?;
        let results = LinearTreeResults {
            corr: Correlations {
                ramp: last.corr,
                exact: correlations(&exact_means, &test),
                bbvi: correlations(&bbvi.means, &test),
            },
            variance: Variances {
                ramp: last.variance,
                exact: posterior.variances().to_vec(),
                mean_field: posterior.mean_field_variances().to_vec(),
            },
            corr_history,
            bbvi_history: bbvi.curve,
            bbvi_seconds: clock.spent_on("BBVI"),
            population: core.train.population.unwrap_or(self.n),
            training,
            info: RunInfo::new(self, clock),
        };
        let depths = generator.depth_of_latent()?;
        let figures = vec![
            ("correlation", correlation_figure(&results, &depths)),
            ("variance", variance_figure(&results, &depths)),
            ("bbvi", bbvi_figure(&results, &depths)),
        ];
        Ok((results, figures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Recipe, Scale, StopAfter};
    use ramp::train::TrainSpec;

    fn small() -> LinearTreeRun {
        let mut run = LinearTreeRun::new(Scale::Quick, Recipe::Ours, 3);
        run.n = 300;
        run.core.train = TrainSpec {
            iterations: 30,
            batch: Some(100),
            ..run.core.train
        };
        run.bbvi.n = 100;
        run.bbvi.learning.iterations = 20;
        run.bbvi.inference.iterations = 10;
        run.bbvi.inference.samples = 4;
        run
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = small().run(&folder.path().join("whole"), &mut ()).unwrap();
        let pieces = folder.path().join("pieces");
        // Twice while RAMP learns, once while BBVI does, once while it infers.
        for (what, at, steps) in [
            ("RAMP", 7, 7),
            ("RAMP", 15, 8),
            ("BBVI", 13, 15 + 13),
            ("BBVI, fresh samples", 4, 7 + 4),
        ] {
            match small().run(&pieces, &mut StopAfter(steps)) {
                Err(LabError::Interrupted {
                    what: stopped,
                    iteration,
                    ..
                }) => assert_eq!((&stopped[..], iteration), (what, at)),
                other => panic!("{what} was not stopped: {other:?}"),
            }
            assert!(!pieces.join("results.json").exists());
        }
        let pieces = small().run(&pieces, &mut ()).unwrap();
        assert!(pieces.files.iter().all(|f| f.is_file()));
        let (whole, pieces) = (whole.results, pieces.results);
        assert_eq!(whole.corr, pieces.corr);
        assert_eq!(whole.variance, pieces.variance);
        assert_eq!(
            whole.training.free_energy_history,
            pieces.training.free_energy_history
        );
        assert_eq!(whole.corr_history, pieces.corr_history);
        assert_eq!(whole.bbvi_history, pieces.bbvi_history);
    }

    #[test]
    fn results_hold_the_numbers_they_promise() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = small();
        // Enough to learn something, so that its numbers can be told from those of others.
        run.n = 2000;
        run.core.train = run.core.train.lasting(150);
        run.core.train.batch = Some(500);
        let results = run.run(folder.path(), &mut ()).unwrap().results;
        let text = std::fs::read(folder.path().join("results.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let numbers = |path: &str| -> Vec<f64> {
            let list = json.pointer(path).unwrap().as_array().unwrap();
            list.iter().map(|v| v.as_f64().unwrap()).collect()
        };
        assert_eq!(numbers("/corr/ramp"), results.corr.ramp);
        assert_eq!(numbers("/corr/bbvi"), results.corr.bbvi);
        assert_eq!(numbers("/variance/ramp"), results.variance.ramp);
        // What exact inference does is known in closed form; correlations are those of 10,000 samples.
        let posterior = LinearTree::default().gaussian().unwrap();
        let posterior = posterior.posterior(&[]).unwrap();
        assert_eq!(numbers("/variance/exact"), posterior.variances());
        assert_eq!(
            numbers("/variance/mean_field"),
            posterior.mean_field_variances()
        );
        for (found, expected) in numbers("/corr/exact").iter().zip(posterior.correlations()) {
            assert!((found - expected).abs() < 0.02, "{found} {expected}");
        }
        // Nobody does better than exact inference, and what is near the data is found soon.
        for k in 0..7 {
            assert!(
                results.corr.ramp[k] < results.corr.exact[k] + 0.01,
                "z{}",
                k + 1
            );
            assert!(
                k < 3 || results.corr.ramp[k] > 0.6,
                "{:?}",
                results.corr.ramp
            );
        }
        assert_eq!(numbers("/free_energy_history").len(), 150);
        assert_eq!(json["iterations"], 150);
        assert_eq!(json["population"], 2000);
        assert_eq!(json["settings"]["train"]["batch"], 500);
        assert_eq!(json["settings"]["scale"], "quick");
        let last = json["corr_history"].as_array().unwrap().last().unwrap();
        assert_eq!(last["iteration"], 150);
        assert_eq!(last["corr"], json["corr"]["ramp"]);
        for positive in ["seconds", "bbvi_seconds", "ms_per_iteration"] {
            assert!(json[positive].as_f64().unwrap() > 0.0, "{positive}");
        }
        assert!(json["seconds"].as_f64() > json["bbvi_seconds"].as_f64());
    }
}
