//! The pendulum: a chain of two-dimensional latents learned from films (paper, "Nonlinear Dynamical Systems").

use super::fitting::{Fitting, Point};
use super::run::{Outcome, Piece, Recipe, Scale, Watch, peak_rss_mb, write_json};
use crate::error::LabError;
use crate::kernel_ridge::KernelRidge;
use crate::metrics::r_squared;
use crate::pendulum::Pendulum;
use ramp::data::Dataset;
use ramp::family::View;
use ramp::graph::{FactorTree, Tying};
use ramp::model::{Model, Start};
use ramp::network::{MlpSpec, NetworkSpec};
use ramp::train::{Decay, TrainSpec};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// The random stream of training films, and that of test films.
const TRAIN: u64 = 0;
const TEST: u64 = 1;
/// Frames on which the regression is fitted, and at most as many of others on which it is judged.
const REGRESSED: usize = 4000;
const JUDGED: usize = 20_000;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendulumRun {
    /// How large.
    pub scale: Scale,
    /// How trained.
    pub recipe: Recipe,
    /// Training films.
    pub films: Pendulum,
    /// Test films.
    pub test: usize,
    /// The family of every latent, as text.
    pub family: String,
    /// Hidden units of every network.
    pub hidden: Vec<usize>,
    /// What networks see of beliefs.
    pub view: View,
    /// The training settings.
    pub train: TrainSpec,
    /// The seed of data, weights and batches.
    pub seed: u64,
    /// Threads; all of the machine's by default.
    pub threads: Option<usize>,
}

impl PendulumRun {
    /// The settings of a scale and a recipe.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let films = match scale {
            Scale::Paper => Pendulum {
                size: 128,
                sequences: 2000,
                steps: 100,
            },
            Scale::Quick => Pendulum {
                size: 24,
                sequences: 500,
                steps: 50,
            },
        };
        let train = TrainSpec {
            iterations: 3000,
            batch: Some(200),
            learning_rate: 5e-4,
            clip: Some(10.0),
            seed,
            ..TrainSpec::default()
        };
        let (view, train) = match recipe {
            Recipe::Paper => (View::Natural, train),
            Recipe::Ours => (
                View::Moments,
                TrainSpec {
                    decay: Decay::Cosine { to: 0.0 },
                    ..train
                },
            ),
        };
        PendulumRun {
            scale,
            recipe,
            films,
            test: 400,
            family: "gaussian(2)".into(),
            hidden: vec![128],
            view,
            train,
            seed,
            threads: None,
        }
    }
}

/// How well cos θ, sin θ and ω can be read off, on training and test films.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// R² on the frames that the regression was fitted to.
    pub train: [f64; 3],
    /// R² on test films.
    pub test: [f64; 3],
}

/// A point of a learning curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendulumPoint {
    /// Steps taken.
    pub iteration: usize,
    /// What can be read off.
    pub r2: Explained,
}

impl Point for PendulumPoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

/// Coordinates of posterior means, film by film and frame by frame.
pub(super) struct Embedding {
    pub features: usize,
    pub points: Vec<f64>,
}

/// Posterior means as points; an angle gives its cosine and sine.
pub(super) fn embed(model: &Model, data: &Dataset) -> Result<Embedding, LabError> {
    let steps = model.tree().latents().len();
    let features = {
        let belief = model.beliefs().next();
        belief.map_or(0, |b| b.describe(model.prior(0)).mean.len())
    };
    let mut points = vec![0.0; data.rows() * steps * features];
    model.for_each_posterior(data, 200, |part| {
        for (t, latent) in part.latents().iter().enumerate() {
            for r in 0..part.rows() {
                let to = ((part.first() + r) * steps + t) * features;
                points[to..to + features].copy_from_slice(&latent.describe(r).mean);
            }
        }
        Ok(())
    })?;
    Ok(Embedding { features, points })
}

/// Reads cos θ, sin θ and ω off embedded frames by kernel ridge regression from a random choice of training frames.
pub(super) fn explained(
    train: &Embedding,
    train_truth: &[Vec<f64>; 3],
    test: &Embedding,
    test_truth: &[Vec<f64>; 3],
    regressed: usize,
) -> Result<Explained, LabError> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut choose = |of: &Embedding, truth: &[Vec<f64>; 3], most: usize| {
        let count = truth[0].len();
        let chosen = sample(&mut rng, count, most.min(count)).into_vec();
        let points: Vec<f64> = chosen
            .iter()
            .flat_map(|&i| &of.points[i * of.features..][..of.features])
            .copied()
            .collect();
        let values: Vec<Vec<f64>> = truth
            .iter()
            .map(|t| chosen.iter().map(|&i| t[i]).collect())
            .collect();
        (points, values)
    };
    let (points, values) = choose(train, train_truth, regressed);
    let (others, other_values) = choose(test, test_truth, JUDGED);
    let ridge = KernelRidge::fit(points.clone(), train.features, &values)?;
    let r2 = |points: &[f64], values: &[Vec<f64>]| {
        let predicted = ridge.predict(points);
        [0, 1, 2].map(|k| r_squared(&values[k], &predicted[k]))
    };
    Ok(Explained {
        train: r2(&points, &values),
        test: r2(&others, &other_values),
    })
}

/// Everything a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendulumResults {
    /// How well the state can be read off.
    pub r2: Explained,
    /// The learning curve.
    pub history: Vec<PendulumPoint>,
    /// The free energy of every iteration's batch, in nats.
    pub free_energy_history: Vec<f64>,
    /// The median time of a training step, in milliseconds.
    pub ms_per_iteration: Option<f64>,
    /// Wall time of this session, in seconds.
    pub seconds: f64,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: PendulumRun,
    /// The version of this software.
    pub version: String,
}

impl PendulumRun {
    /// Trains, measures and writes.
    pub fn run(
        &self,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Outcome<PendulumResults>, LabError> {
        let start = Instant::now();
        let train = self.films.films(self.seed, TRAIN)?;
        let test = Pendulum {
            sequences: self.test,
            ..self.films
        }
        .films(self.seed, TEST)?;
        let (truth, test_truth) = (train.targets(), test.targets());
        let (data, test_data) = (train.into_dataset()?, test.into_dataset()?);
        let network = NetworkSpec::Mlp(MlpSpec {
            hidden: self.hidden.clone(),
            ..MlpSpec::default()
        });
        let mut model =
            Model::builder(FactorTree::chain(self.films.steps).map_err(ramp::Error::from)?)
                .families(&self.family)?
                .tying(Tying::Role)
                .view(self.view)
                .message_network(network.clone())
                .observation_network(network)
                .start(Start::Apart)
                .seed(self.seed)
                .build(&data)?;
        let some: Vec<u32> = (0..data.rows().min(200) as u32).collect();
        let few = data.select(&some);
        let few_truth = truth
            .clone()
            .map(|t| t[..few.rows() * self.films.steps].to_vec());
        let measure = |model: &Model, iteration: usize| {
            let (a, b) = (embed(model, &few)?, embed(model, &test_data)?);
            let r2 = explained(&a, &few_truth, &b, &test_truth, 1500)?;
            eprintln!("{iteration} {:?}", r2.test);
            Ok(PendulumPoint { iteration, r2 })
        };
        let folder = out.join("checkpoint");
        let fitting = Fitting {
            what: "RAMP",
            train: &self.train,
            threads: self.threads,
            folder: &folder,
        };
        let fitted = match fitting.run(&mut model, &data, self, &measure, watch)? {
            Piece::Done(fitted) => fitted,
            Piece::Interrupted(at) => return Ok(Outcome::Interrupted(at)),
        };
        let (a, b) = (embed(&model, &data)?, embed(&model, &test_data)?);
        let results = PendulumResults {
            r2: explained(&a, &truth, &b, &test_truth, REGRESSED)?,
            history: fitted.curve,
            free_energy_history: fitted.records.iter().map(|r| r.free_energy).collect(),
            ms_per_iteration: fitted.ms_per_iteration,
            seconds: start.elapsed().as_secs_f64(),
            peak_rss_mb: peak_rss_mb(),
            settings: self.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let json = out.join("results.json");
        write_json(&json, &results)?;
        Ok(Outcome::Done {
            results: Box::new(results),
            files: vec![json],
        })
    }
}
