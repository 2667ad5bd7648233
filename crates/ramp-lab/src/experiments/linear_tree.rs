//! The linear Gaussian tree: RAMP against exact inference and the mean-field posterior (paper, "Gaussian Tree").

use super::linear_tree_figures::{LinearTreeCurves, correlation_figure, variance_figure};
use super::run::{Scale, Watch, peak_rss_mb};
use crate::error::LabError;
use crate::metrics::{mean, median, pearson};
use crate::tree_data::{LinearTree, TreeSample};
use ramp::data::Dataset;
use ramp::family::View;
use ramp::graph::FactorTree;
use ramp::model::Model;
use ramp::storage::write_atomically;
use ramp::train::{Control, Decay, Event, Optimizer, Stop, TrainSpec, Trainer};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Fresh samples on which everything is measured.
const TEST_SAMPLES: usize = 10_000;
/// Points on the learning curves.
const CURVE_POINTS: usize = 50;
/// The random stream of training data, and that of test data.
const TRAIN: u64 = 0;
const TEST: u64 = 1;

/// How the model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recipe {
    /// What reaches exact inference.
    Ours,
    /// The paper's table: full batch, 500 iterations of Adam at 0.001, networks that see natural parameters.
    Paper,
}

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
    pub view: View,
    /// The training settings.
    pub train: TrainSpec,
    /// The seed of data, weights and batches.
    pub seed: u64,
    /// Threads; all of the machine's by default.
    pub threads: Option<usize>,
}

impl LinearTreeRun {
    /// The settings of a scale and a recipe.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let paper = TrainSpec {
            iterations: 500,
            learning_rate: 1e-3,
            seed,
            ..TrainSpec::default()
        };
        let (view, train) = match recipe {
            Recipe::Paper => (View::Natural, paper),
            // A long warm-up keeps the root alive until the levels below have something to tell it; a high rate and its slow
            // fall take it to the optimum; weight decay holds back overfitting, to which the root is most prone.
            Recipe::Ours => (
                View::Moments,
                TrainSpec {
                    iterations: 2500,
                    batch: Some(1000),
                    learning_rate: 4e-2,
                    warmup: 1250,
                    decay: Decay::Cosine { to: 0.0 },
                    optimizer: Optimizer::Adam { decay: 0.03 },
                    ..paper
                },
            ),
        };
        let train = match (scale, recipe) {
            (Scale::Paper, _) => train,
            (Scale::Quick, Recipe::Ours) => TrainSpec {
                iterations: 750,
                warmup: 375,
                learning_rate: 3e-2,
                ..train
            },
            (Scale::Quick, Recipe::Paper) => TrainSpec {
                batch: Some(1000),
                ..train
            },
        };
        LinearTreeRun {
            scale,
            recipe,
            n: 10_000,
            view,
            train,
            seed,
            threads: None,
        }
    }
}

/// One number per latent for RAMP and for exact inference, root first, level order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Correlations {
    /// RAMP.
    pub ramp: Vec<f64>,
    /// Exact inference with the true parameters.
    pub exact: Vec<f64>,
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

/// Everything a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinearTreeResults {
    /// Absolute correlations of posterior means with true latents, on fresh samples.
    pub corr: Correlations,
    /// Average posterior variances, on fresh samples.
    pub variance: Variances,
    /// The learning curves.
    pub corr_history: Vec<CurvePoint>,
    /// The free energy of every iteration's batch, in nats.
    pub free_energy_history: Vec<f64>,
    /// The population that free energies refer to.
    pub population: usize,
    /// Wall time of this session, in seconds.
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

/// The outcome of a run: results and files, or a state to go on from.
#[derive(Debug)]
pub enum Outcome {
    /// Done; the files are written.
    Done {
        /// What was measured.
        results: Box<LinearTreeResults>,
        /// What was written.
        files: Vec<PathBuf>,
    },
    /// Stopped at this iteration; the same command goes on from there.
    Interrupted(usize),
}

/// What keeps the learning curves across sessions.
#[derive(Serialize, Deserialize)]
struct Curves {
    settings: LinearTreeRun,
    points: Vec<CurvePoint>,
}

impl LinearTreeRun {
    /// Trains, measures and writes `results.json` and figures into a folder; goes on from a checkpoint that is there.
    pub fn run(&self, out: &Path, watch: &mut dyn Watch) -> Result<Outcome, LabError> {
        let start = Instant::now();
        let generator = LinearTree::default();
        let data = dataset(&generator.sample(self.n, self.seed, TRAIN)?)?;
        let test = generator.sample(TEST_SAMPLES, self.seed, TEST)?;
        let test_data = dataset(&test)?;
        let posterior = generator.gaussian()?.posterior(&[])?;
        let exact_means = posterior.means(&test.observations)?;

        let tree =
            FactorTree::balanced(generator.depth, generator.arity).map_err(ramp::Error::from)?;
        let mut model = Model::builder(tree)
            .view(self.view)
            .seed(self.seed)
            .build(&data)?;

        let curve_file = out.join("checkpoint").join("curves.json");
        let mut curves = Curves {
            settings: self.clone(),
            points: self.stored_points(&curve_file),
        };
        let every = (self.train.iterations / CURVE_POINTS).max(1);
        let mut times = vec![];
        let mut begun = Instant::now();
        let mut trouble = None;
        let fit = {
            let observer = |event: &Event<'_>| match event {
                Event::Start {
                    iteration,
                    iterations,
                    model,
                } => {
                    curves.points.retain(|p| p.iteration <= *iteration);
                    if *iteration == 0 {
                        trouble = measure(model, &test, &test_data, 0)
                            .map(|p| curves.points = vec![p])
                            .err();
                    }
                    watch.start(*iteration, *iterations);
                    Control::Continue
                }
                Event::Begin => {
                    begun = Instant::now();
                    Control::Continue
                }
                Event::Step { record, model } => {
                    times.push(begun.elapsed().as_secs_f64() * 1e3);
                    if record.iteration % every == 0 {
                        match measure(model, &test, &test_data, record.iteration) {
                            Ok(point) => curves.points.push(point),
                            Err(error) => trouble = Some(error),
                        }
                    }
                    match trouble {
                        Some(_) => Control::Stop,
                        None => watch.step(record),
                    }
                }
                Event::Checkpoint { .. } => {
                    trouble = write_json(&curve_file, &curves).err();
                    Control::Continue
                }
                _ => Control::Continue,
            };
            let mut trainer = Trainer::new(self.train.clone())?
                .checkpoints(out.join("checkpoint"), every.max(10))
                .observer(observer);
            if let Some(threads) = self.threads {
                trainer = trainer.threads(threads);
            }
            trainer.fit(&mut model, &data)?
        };
        if let Some(error) = trouble {
            return Err(error);
        }
        if fit.stop == Stop::Interrupted {
            return Ok(Outcome::Interrupted(fit.iteration));
        }

        let last = measure(&model, &test, &test_data, fit.iteration)?;
        let exact = exact_means
            .iter()
            .zip(&test.latents)
            .map(|(m, z)| pearson(m, z).abs())
            .collect();
        let results = LinearTreeResults {
            corr: Correlations {
                ramp: last.corr,
                exact,
            },
            variance: Variances {
                ramp: last.variance,
                exact: posterior.variances().to_vec(),
                mean_field: posterior.mean_field_variances().to_vec(),
            },
            corr_history: curves.points,
            free_energy_history: fit.records.iter().map(|r| r.free_energy).collect(),
            population: self.train.population.unwrap_or(self.n),
            seconds: start.elapsed().as_secs_f64(),
            iterations: fit.iteration,
            ms_per_iteration: (!times.is_empty()).then(|| median(&times)),
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

    /// The curve of an earlier session with the same settings; a missing or damaged one only leaves a gap in the picture.
    fn stored_points(&self, file: &Path) -> Vec<CurvePoint> {
        std::fs::read(file)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Curves>(&bytes).ok())
            .filter(|stored| stored.settings == *self)
            .map(|stored| stored.points)
            .unwrap_or_default()
    }
}

impl LinearTreeResults {
    fn write(&self, out: &Path, generator: &LinearTree) -> Result<Vec<PathBuf>, LabError> {
        let curves = LinearTreeCurves {
            iterations: self.corr_history.iter().map(|p| p.iteration).collect(),
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
        let json = out.join("results.json");
        write_json(&json, self)?;
        Ok(vec![
            json,
            correlation.svg,
            correlation.png,
            variance.svg,
            variance.png,
        ])
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let text = serde_json::to_vec_pretty(value).map_err(|e| {
        LabError::Invalid(format!("{} cannot be written as JSON: {e}", path.display()))
    })?;
    Ok(write_atomically(path, &text)?)
}

fn dataset(sample: &TreeSample) -> Result<Dataset, LabError> {
    let mut data = Dataset::new();
    for (i, values) in sample.observations.iter().enumerate() {
        data = data.observe(format!("x{}", i + 1), 1, values.clone())?;
    }
    Ok(data)
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
    use super::*;

    /// Stops after a number of steps.
    struct StopAt(usize);
    impl Watch for StopAt {
        fn start(&mut self, _: usize, _: usize) {}
        fn step(&mut self, record: &ramp::train::Record) -> Control {
            if record.iteration == self.0 {
                Control::Stop
            } else {
                Control::Continue
            }
        }
    }

    fn small() -> LinearTreeRun {
        let mut run = LinearTreeRun::new(Scale::Quick, Recipe::Ours, 3);
        run.n = 300;
        run.train = TrainSpec {
            iterations: 30,
            batch: Some(100),
            ..run.train
        };
        run
    }

    fn done(outcome: Outcome) -> LinearTreeResults {
        match outcome {
            Outcome::Done { results, files } => {
                assert!(files.iter().all(|f| f.is_file()), "{files:?}");
                *results
            }
            Outcome::Interrupted(at) => panic!("stopped at {at}"),
        }
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = done(small().run(&folder.path().join("whole"), &mut ()).unwrap());
        let pieces = folder.path().join("pieces");
        for stop in [7, 15] {
            assert!(
                matches!(small().run(&pieces, &mut StopAt(stop)).unwrap(), Outcome::Interrupted(at) if at == stop)
            );
            assert!(!pieces.join("results.json").exists());
        }
        let pieces = done(small().run(&pieces, &mut ()).unwrap());
        assert_eq!(whole.corr.ramp, pieces.corr.ramp);
        assert_eq!(whole.variance.ramp, pieces.variance.ramp);
        assert_eq!(whole.free_energy_history, pieces.free_energy_history);
        assert_eq!(whole.corr_history.len(), pieces.corr_history.len());
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
