//! The linear Gaussian tree: RAMP against exact inference and the mean-field posterior (paper, "Gaussian Tree").

use super::bbvi_course::{BbviSettings, BbviTask};
use super::clock::Clock;
use super::fitting::{Fitting, Point};
use super::linear_tree_figures::{
    LinearTreeCurves, bbvi_figure, correlation_figure, variance_figure,
};
use super::run::{Outcome, Piece, Recipe, Scale, Watch, paper_training, peak_rss_mb, write_json};
use crate::baselines::Bbvi;
use crate::error::LabError;
use crate::metrics::{mean, pearson};
use crate::tree_data::{LinearTree, TreeSample};
use ramp::data::Dataset;
use ramp::family::Inputs;
use ramp::graph::FactorTree;
use ramp::model::Model;
use ramp::train::{Decay, Optimizer, TrainSpec};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Fresh samples on which everything is measured.
const TEST_SAMPLES: usize = 10_000;
/// The random stream of training data, and that of test data.
const TRAIN: u64 = 0;
const TEST: u64 = 1;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinearTreeRun {
    /// How large.
    pub scale: Scale,
    /// How trained.
    pub recipe: Recipe,
    /// Training samples.
    pub n: usize,
    /// What networks see of beliefs.
    pub inputs: Inputs,
    /// The training settings.
    pub train: TrainSpec,
    /// The settings of BBVI.
    pub bbvi: BbviSettings,
    /// The seed of data, weights and batches.
    pub seed: u64,
    /// Threads; all of the machine's by default.
    pub threads: Option<usize>,
}

impl LinearTreeRun {
    /// The settings of a scale and a recipe.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let paper = paper_training(scale, seed);
        let (inputs, train) = match recipe {
            Recipe::Paper => (Inputs::Natural, paper),
            // A long warm-up and a soft start keep the root alive until the levels below have something to tell it; a high
            // rate and its slow fall take it to the optimum. With two children, the data do not say how much of the root is in
            // either: decay of weights that fades chooses the middle. At so high a rate a rare large gradient can throw a latent
            // into a lower optimum for good: clipping holds those back.
            Recipe::Ours => {
                let (iterations, warmup, learning_rate) = match scale {
                    Scale::Paper => (2500, 1250, 4e-2),
                    Scale::Quick => (750, 375, 3e-2),
                };
                let train = TrainSpec {
                    iterations,
                    warmup,
                    learning_rate,
                    batch: Some(1000),
                    decay: Decay::Cosine { to: 0.0 },
                    optimizer: Optimizer::Adam {
                        decay: 0.3,
                        scheduled_decay: true,
                    },
                    clip: Some(2.0),
                    ..paper
                };
                (Inputs::Moments, train)
            }
        };
        LinearTreeRun {
            scale,
            recipe,
            n: 10_000,
            inputs,
            train,
            bbvi: BbviSettings::new(scale, 2500, seed),
            seed,
            threads: None,
        }
    }
}

/// One number per latent for every method, root first, level order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Correlations {
    /// RAMP.
    pub ramp: Vec<f64>,
    /// Exact inference with the true parameters.
    pub exact: Vec<f64>,
    /// Black-box variational inference with a learned generative tree.
    pub bbvi: Vec<f64>,
}

/// Average posterior variances per latent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Variances {
    /// RAMP, averaged over the test samples.
    pub ramp: Vec<f64>,
    /// Exact inference.
    pub exact: Vec<f64>,
    /// The best factorised posterior.
    pub mean_field: Vec<f64>,
}

/// A point of the learning curves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Steps taken.
    pub iteration: usize,
    /// Absolute correlation of posterior means with true latents.
    pub corr: Vec<f64>,
    /// Average posterior variance.
    pub variance: Vec<f64>,
}

/// A point of BBVI's learning curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BbviPoint {
    /// Steps taken.
    pub iteration: usize,
    /// Absolute correlation of posterior means with true latents, on the samples it learns from.
    pub corr: Vec<f64>,
}

impl Point for BbviPoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

/// Everything a run measured.
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
    /// The free energy of every iteration's batch, in nats.
    pub free_energy_history: Vec<f64>,
    /// The population that free energies refer to.
    pub population: usize,
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
    /// Steps taken.
    pub iterations: usize,
    /// The median time of a training step, in milliseconds; absent when the session took none.
    pub ms_per_iteration: Option<f64>,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: LinearTreeRun,
    /// The version of this software.
    pub version: String,
}

impl Point for CurvePoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

impl LinearTreeRun {
    /// Trains, measures and writes `results.json` and figures into a folder; goes on from a checkpoint that is there.
    pub fn run(
        &self,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Outcome<LinearTreeResults>, LabError> {
        let folder = out.join("checkpoint");
        let mut clock = Clock::new(watch, &folder, self);
        let generator = LinearTree::default();
        let train = generator.sample(self.n, self.seed, TRAIN)?;
        let data = train.dataset()?;
        let test = generator.sample(TEST_SAMPLES, self.seed, TEST)?;
        let test_data = test.dataset()?;
        let posterior = generator.gaussian()?.posterior(&[])?;
        let exact_means = posterior.means(&test.observations)?;

        let tree =
            FactorTree::balanced(generator.depth, generator.arity).map_err(ramp::Error::from)?;
        let mut model = Model::builder(tree)
            .inputs(self.inputs)
            .init(self.recipe.init())
            .seed(self.seed)
            .build(&data)?;
        let fitting = Fitting {
            what: "RAMP",
            train: &self.train,
            threads: self.threads,
            folder: &folder,
        };
        let measure = |model: &Model, at: usize| measure(model, &test, &test_data, at);
        let fitted = match fitting.run(&mut model, &data, self, &measure, &mut clock)? {
            Piece::Done(fitted) => fitted,
            Piece::Interrupted(at) => return Ok(Outcome::Interrupted(at)),
        };
        let of_bbvi = |bbvi: &Bbvi, iteration: usize| BbviPoint {
            iteration,
            corr: latent_correlations(&(0..7).map(|k| bbvi.means(k)).collect::<Vec<_>>(), &train),
        };
        let task = BbviTask {
            prefix: "",
            parents: generator.parents()?,
            train: &train,
            test: &test,
            threads: self.threads,
            folder: &folder,
        };
        let bbvi = match self.bbvi.run(task, &of_bbvi, &mut clock)? {
            Piece::Done(bbvi) => bbvi,
            Piece::Interrupted(at) => return Ok(Outcome::Interrupted(at)),
        };

        let last = measure(&model, fitted.iteration)?;
        let results = LinearTreeResults {
            corr: Correlations {
                ramp: last.corr,
                exact: latent_correlations(&exact_means, &test),
                bbvi: latent_correlations(&bbvi.means, &test),
            },
            variance: Variances {
                ramp: last.variance,
                exact: posterior.variances().to_vec(),
                mean_field: posterior.mean_field_variances().to_vec(),
            },
            corr_history: fitted.curve,
            bbvi_history: bbvi.curve,
            bbvi_seconds: clock.spent_on("BBVI"),
            free_energy_history: fitted.records.iter().map(|r| r.free_energy).collect(),
            population: self.train.population.unwrap_or(self.n),
            seconds: clock.seconds(),
            iterations: fitted.iteration,
            ms_per_iteration: fitted.ms_per_iteration,
            peak_rss_mb: peak_rss_mb(),
            settings: self.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let files = results.write(out, &generator)?;
        Ok(Outcome::Done {
            results: Box::new(results),
            files,
        })
    }
}

impl LinearTreeResults {
    fn write(&self, out: &Path, generator: &LinearTree) -> Result<Vec<PathBuf>, LabError> {
        let curves = LinearTreeCurves {
            iterations: self.corr_history.iter().map(|p| p.iteration).collect(),
            bbvi_iterations: self.bbvi_history.iter().map(|p| p.iteration).collect(),
            bbvi_correlation: self.bbvi_history.iter().map(|p| p.corr.clone()).collect(),
            final_correlation: self.corr.ramp.clone(),
            final_bbvi_correlation: self.corr.bbvi.clone(),
            correlation: self.corr_history.iter().map(|p| p.corr.clone()).collect(),
            variance: self
                .corr_history
                .iter()
                .map(|p| p.variance.clone())
                .collect(),
            exact_correlation: self.corr.exact.clone(),
            exact_variance: self.variance.exact.clone(),
            mean_field_variance: self.variance.mean_field.clone(),
            final_variance: self.variance.ramp.clone(),
            depth_of_latent: generator.depth_of_latent()?,
        };
        let correlation = correlation_figure(&curves)?.write(out, "correlation")?;
        let variance = variance_figure(&curves)?.write(out, "variance")?;
        let bbvi = bbvi_figure(&curves)?.write(out, "bbvi")?;
        let json = out.join("results.json");
        write_json(&json, self)?;
        Ok(vec![
            json,
            correlation.svg,
            correlation.png,
            variance.svg,
            variance.png,
            bbvi.svg,
            bbvi.png,
        ])
    }
}

/// The absolute correlation of every latent's means with its true values, of as many samples as there are means.
fn latent_correlations(means: &[Vec<f64>], sample: &TreeSample) -> Vec<f64> {
    let pairs = means.iter().zip(&sample.latents);
    pairs
        .map(|(means, truth)| pearson(means, &truth[..means.len()]).abs())
        .collect()
}

/// Correlations and average variances of a model's posteriors on test samples.
fn measure(
    model: &Model,
    test: &TreeSample,
    data: &Dataset,
    iteration: usize,
) -> Result<CurvePoint, LabError> {
    let posterior = model.posterior(data)?;
    let mut point = CurvePoint {
        iteration,
        corr: vec![],
        variance: vec![],
    };
    for (latent, truth) in posterior.latents().iter().zip(&test.latents) {
        let (means, variances): (Vec<f64>, Vec<f64>) = (0..posterior.rows())
            .map(|row| latent.describe(row))
            .map(|said| (said.mean[0], said.sd[0] * said.sd[0]))
            .unzip();
        point.corr.push(pearson(&means, truth).abs());
        point.variance.push(mean(&variances));
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::{StopAfter, done};
    use super::*;

    fn small() -> LinearTreeRun {
        let mut run = LinearTreeRun::new(Scale::Quick, Recipe::Ours, 3);
        run.n = 300;
        run.train = TrainSpec {
            iterations: 30,
            batch: Some(100),
            ..run.train
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
        let whole = done(small().run(&folder.path().join("whole"), &mut ()).unwrap());
        let pieces = folder.path().join("pieces");
        // Twice while RAMP learns, once while BBVI does, once while it infers.
        for (what, at, steps) in [
            ("RAMP", 7, 7),
            ("RAMP", 15, 8),
            ("BBVI", 13, 15 + 13),
            ("BBVI, fresh samples", 4, 7 + 4),
        ] {
            match small().run(&pieces, &mut StopAfter(steps)).unwrap() {
                Outcome::Interrupted(stopped) => {
                    assert_eq!((&stopped.what[..], stopped.iteration), (what, at));
                }
                Outcome::Done { .. } => panic!("{what} was not stopped"),
            }
            assert!(!pieces.join("results.json").exists());
        }
        let pieces = done(small().run(&pieces, &mut ()).unwrap());
        assert_eq!(whole.corr.ramp, pieces.corr.ramp);
        assert_eq!(whole.variance.ramp, pieces.variance.ramp);
        assert_eq!(whole.free_energy_history, pieces.free_energy_history);
        assert_eq!(whole.corr_history.len(), pieces.corr_history.len());
        assert_eq!(whole.corr.bbvi, pieces.corr.bbvi);
        assert_eq!(whole.bbvi_history.len(), pieces.bbvi_history.len());
    }

    #[test]
    fn results_hold_what_they_promise() {
        let folder = tempfile::tempdir().unwrap();
        done(small().run(folder.path(), &mut ()).unwrap());
        let text = std::fs::read(folder.path().join("results.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        for path in [
            "/corr/ramp",
            "/corr/exact",
            "/corr/bbvi",
            "/variance/ramp",
            "/variance/exact",
            "/variance/mean_field",
        ] {
            assert_eq!(
                json.pointer(path).unwrap().as_array().unwrap().len(),
                7,
                "{path}"
            );
        }
        for path in [
            "/corr_history",
            "/seconds",
            "/iterations",
            "/ms_per_iteration",
            "/peak_rss_mb",
        ] {
            assert!(json.pointer(path).is_some(), "{path}");
        }
    }
}
