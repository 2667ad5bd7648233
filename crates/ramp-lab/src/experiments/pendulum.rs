//! The pendulum: a chain of latents learned from films (paper, "Nonlinear Dynamical Systems").

use super::clock::Clock;
use super::fitting::{Fitting, Point};
use super::opening::{Opening, begin_on_a_circle};
use super::pendulum_figures::{
    Drawn, films_figure, learning_figure, phase_figure, prediction_figure, rivals_figure,
    strip_figure,
};
use super::pendulum_prediction::{Prediction, predict};
use super::pendulum_reading::{Explained, embed, explained};
use super::rival_course::{Read, RivalSettings, RivalTask};
use super::run::{Outcome, Piece, Recipe, Scale, Watch, peak_rss_mb, write_json};
use super::tracker::begin_tracking;
use crate::error::LabError;
use crate::pendulum::{Films, Pendulum};
use ramp::data::Dataset;
use ramp::family::Inputs;
use ramp::graph::{FactorTree, Tying};
use ramp::model::Model;
use ramp::network::{MlpSpec, NetworkSpec};
use ramp::train::{Decay, TrainSpec};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The random stream of training films, and that of test films.
pub(super) const TRAIN: u64 = 0;
pub(super) const TEST: u64 = 1;
/// Frames on which the regression is fitted in the end, and on the way.
const REGRESSED: usize = 4000;
const REGRESSED_ON_THE_WAY: usize = 1500;
/// Films that learning curves look at.
const WATCHED: usize = 100;

/// What every latent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// A plane: a two-dimensional Gaussian with full covariance, the paper's.
    Gaussian,
    /// A square: two Betas with a uniform prior.
    Beta,
    /// A cylinder: von Mises times Gaussian, the true shape of the phase space.
    Circle,
}

impl Shape {
    fn family(self) -> &'static str {
        match self {
            Shape::Gaussian => "gaussian(2)",
            Shape::Beta => "beta(2)",
            Shape::Circle => "von_mises * gaussian(1)",
        }
    }

    /// The first messages of frames, from two components that go around a circle.
    fn opening(self) -> Opening {
        let (weights, constants) = match self {
            // A broad belief around the place.
            Shape::Gaussian => (
                vec![[1.0, 0.0], [0.0, 1.0], [0.0; 2], [0.0; 2], [0.0; 2]],
                vec![0.0, 0.0, 1.0, 0.0, 1.0],
            ),
            // Counts for and against each coordinate.
            Shape::Beta => (
                vec![[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]],
                vec![0.0; 4],
            ),
            // A direction, and nothing about the height.
            Shape::Circle => (
                vec![[1.0, 0.0], [0.0, 1.0], [0.0; 2], [0.0; 2]],
                vec![0.0, 0.0, 0.0, 0.3],
            ),
        };
        Opening { weights, constants }
    }
}

/// What the networks say before they have learned anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beginning {
    /// Whatever random weights say.
    Random,
    /// A frame tells a place on a circle, the principal components of its coarse version; neighbours say nothing definite.
    Circle,
    /// Messages are those of a tracker of what goes around such a circle. For Gaussian latents.
    Tracker,
}

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
    /// What every latent is.
    pub shape: Shape,
    /// Hidden units of every network.
    pub hidden: usize,
    /// What networks see of beliefs.
    pub inputs: Inputs,
    /// The training settings.
    pub train: TrainSpec,
    /// What the networks say at first; what suits recipe and latents by default.
    pub beginning: Option<Beginning>,
    /// Frames at the end of test films to be predicted from those before, of which two at least are left.
    pub ahead: usize,
    /// The settings of the rivals; none to leave them out.
    pub rivals: Option<RivalSettings>,
    /// The seed of data, weights and batches.
    pub seed: u64,
    /// Threads; all of the machine's by default.
    pub threads: Option<usize>,
}

impl PendulumRun {
    /// The settings of a scale and a recipe.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let (size, sequences, test, batch) = match scale {
            Scale::Paper => (128, 2000, 400, 200),
            Scale::Quick => (24, 1000, 200, 100),
        };
        let iterations = match (scale, recipe) {
            (Scale::Paper, Recipe::Paper) => 3000,
            (Scale::Paper, Recipe::Ours) => 1000,
            (Scale::Quick, _) => 800,
        };
        let paper = TrainSpec {
            iterations,
            batch: Some(batch),
            learning_rate: 5e-4,
            seed,
            ..TrainSpec::default()
        };
        let (inputs, train) = match recipe {
            // The mixture is that of the batch, and nothing else, as in the paper's listing.
            Recipe::Paper => {
                let train = TrainSpec {
                    population: Some(batch),
                    even_rates: true,
                    ..paper
                };
                (Inputs::Natural, train)
            }
            // The rate falls in the end to let velocities sharpen. Frames are hidden, more and more of them, so that networks
            // learn to see ahead.
            Recipe::Ours => {
                let train = TrainSpec {
                    learning_rate: 1e-3,
                    warmup: iterations / 10,
                    decay: Decay::Cosine { to: 0.0 },
                    clip: Some(10.0),
                    mask: 0.4,
                    mask_span: Some(5.0),
                    mask_warmup: iterations * 2 / 3,
                    ..paper
                };
                (Inputs::Moments, train)
            }
        };
        PendulumRun {
            scale,
            recipe,
            films: Pendulum {
                size,
                sequences,
                steps: 100,
            },
            test,
            shape: Shape::Gaussian,
            hidden: 128,
            inputs,
            train,
            beginning: None,
            ahead: 20,
            rivals: Some(RivalSettings::new(scale, recipe, seed)),
            seed,
            threads: None,
        }
    }

    /// The same with other latents.
    pub fn with_shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        if shape != Shape::Gaussian {
            // One frame tilts no belief that cannot hold a correlation, so velocity does not cross gaps.
            (self.train.mask, self.train.mask_span) = (0.0, None);
        }
        self
    }

    /// The model at random weights.
    pub(super) fn model(&self, data: &Dataset) -> Result<Model, LabError> {
        let network = NetworkSpec::Mlp(MlpSpec {
            hidden: vec![self.hidden],
            ..MlpSpec::default()
        });
        let tree = FactorTree::chain(self.films.steps).map_err(ramp::Error::from)?;
        Ok(Model::builder(tree)
            .families(self.shape.family())?
            .tying(Tying::Role)
            .inputs(self.inputs)
            .message_network(network.clone())
            .observation_network(network)
            .init(self.recipe.init())
            .seed(self.seed)
            .build(data)?)
    }

    /// Turns random weights into what the networks say at first, from these films.
    pub(super) fn begin(&self, model: &mut Model, films: &Films) -> Result<(), LabError> {
        match self.beginning() {
            Beginning::Random => Ok(()),
            Beginning::Circle => begin_on_a_circle(model, films, &self.shape.opening()),
            Beginning::Tracker => begin_tracking(model, films),
        }
    }

    /// Finds mistakes before anything is learned, rivals included.
    fn check(&self) -> Result<(), LabError> {
        let (steps, ahead) = (self.films.steps, self.ahead);
        if ahead == 0 || ahead + 2 > steps {
            return Err(LabError::Invalid(format!(
                "films of {steps} frames cannot have {ahead} of them predicted: at least one, and two must be left to see"
            )));
        }
        self.check_learning()
    }

    pub(super) fn check_learning(&self) -> Result<(), LabError> {
        self.train.check()?;
        self.train.split(self.films.sequences)?;
        let tracks = self.shape == Shape::Gaussian && self.inputs == Inputs::Moments;
        if self.beginning() == Beginning::Tracker && !tracks {
            return Err(LabError::Invalid(
                "only Gaussian latents that networks see by their moments can begin as trackers"
                    .into(),
            ));
        }
        Ok(())
    }

    fn beginning(&self) -> Beginning {
        self.beginning.unwrap_or(match (self.recipe, self.shape) {
            (Recipe::Paper, _) => Beginning::Random,
            (Recipe::Ours, Shape::Gaussian) if self.inputs == Inputs::Moments => Beginning::Tracker,
            (Recipe::Ours, _) => Beginning::Circle,
        })
    }
}

/// A point of the learning curve, on the first test films and regressed from the first training films.
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

/// How well the state can be read off, method by method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedBy {
    /// RAMP.
    pub ramp: Explained,
    /// The structured variational autoencoder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svae: Option<Explained>,
    /// Contrastive predictive coding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpc: Option<Explained>,
}

/// Everything a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendulumResults {
    /// R² of cos θ, sin θ and ω by kernel ridge regression from posterior means.
    pub r2: ExplainedBy,
    /// The learning curve.
    pub history: Vec<PendulumPoint>,
    /// The free energy of every iteration's batch, a mean over steps and films, in nats.
    pub free_energy_history: Vec<f64>,
    /// How far predicted angles of the last frames are off.
    pub prediction: Prediction,
    /// Steps taken.
    pub iterations: usize,
    /// The median time of a training step, in milliseconds; absent when the session took none.
    pub ms_per_iteration: Option<f64>,
    /// Wall time of the rivals over all sessions, in seconds.
    pub rival_seconds: f64,
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: PendulumRun,
    /// The version of this software.
    pub version: String,
}

impl PendulumRun {
    /// Trains, measures and writes `results.json` and figures into a folder; goes on from what is there.
    pub fn run(
        &self,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Outcome<PendulumResults>, LabError> {
        self.check()?;
        let folder = out.join("checkpoint");
        let mut clock = Clock::new(watch, &folder, self);
        let train = self.films.films(self.seed, TRAIN)?;
        let sizes = Pendulum {
            sequences: self.test,
            ..self.films
        };
        let test = sizes.films(self.seed, TEST)?;
        let (truth, theta) = (train.targets(), train.theta.clone());
        let contact = films_figure(&train)?;
        let watched = Watched::new(&train, &test)?;
        let test_truth = test.targets();
        let rivals = match &self.rivals {
            None => vec![],
            Some(settings) => {
                let task = RivalTask {
                    train: &train,
                    test: &test,
                    folder: &folder,
                    threads: self.threads,
                };
                match task.run(settings, &mut clock)? {
                    Piece::Done(read) => read.into(),
                    Piece::Interrupted(at) => return Ok(Outcome::Interrupted(at)),
                }
            }
        };
        let read_off =
            |read: &Read| explained((&read.train, &truth), (&read.test, &test_truth), REGRESSED);
        let mut model = {
            let one = train.first(1).into_dataset()?;
            self.model(&one)?
        };
        let fitting = Fitting {
            what: "RAMP",
            train: &self.train,
            threads: self.threads,
            folder: &folder,
        };
        if !fitting.goes_on() {
            self.begin(&mut model, &train)?;
        }
        // The films themselves move on: there is room for one copy.
        let data = train.into_dataset()?;
        let measure = |model: &Model, iteration: usize| watched.measure(model, iteration);
        // Neither rivals nor what is asked of the model in the end change how it learns.
        let learning = PendulumRun {
            rivals: None,
            ahead: 0,
            ..self.clone()
        };
        let fitted = match fitting.run(&mut model, &data, &learning, &measure, &mut clock)? {
            Piece::Done(fitted) => fitted,
            Piece::Interrupted(at) => return Ok(Outcome::Interrupted(at)),
        };
        drop(watched);
        let test_data = test.clone().into_dataset()?;
        let (known, fresh) = (embed(&model, &data)?, embed(&model, &test_data)?);
        drop(test_data);
        let (prediction, foreseen) = predict(&model, (&data, &theta), &test, self.ahead)?;
        let results = PendulumResults {
            r2: ExplainedBy {
                ramp: explained((&known, &truth), (&fresh, &test_truth), REGRESSED)?,
                svae: rivals.first().map(&read_off).transpose()?,
                cpc: rivals.get(1).map(&read_off).transpose()?,
            },
            history: fitted.curve,
            free_energy_history: fitted.records.iter().map(|r| r.free_energy).collect(),
            prediction,
            iterations: fitted.iteration,
            ms_per_iteration: fitted.ms_per_iteration,
            rival_seconds: clock.spent_on("SVAE") + clock.spent_on("CPC"),
            seconds: clock.seconds(),
            peak_rss_mb: peak_rss_mb(),
            settings: self.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let drawn = Drawn {
            films: &test,
            plane: &fresh.plane,
            shape: self.shape,
        };
        let json = out.join("results.json");
        let mut files: Vec<PathBuf> = vec![json.clone()];
        let mut figures = vec![
            (contact, "films"),
            (phase_figure(&drawn)?, "phase"),
            (learning_figure(&results), "learning"),
            (prediction_figure(&results.prediction), "prediction"),
            (strip_figure(&test, &foreseen)?, "strip"),
        ];
        if let [svae, cpc] = &rivals[..] {
            let named = [("SVAE", &svae.test.plane), ("CPC", &cpc.test.plane)];
            figures.push((rivals_figure(&test, &named)?, "rivals"));
        }
        for (figure, name) in figures {
            let written = figure.write(out, name)?;
            files.extend([written.svg, written.png]);
        }
        // Last: whoever sees results finds the figures too.
        write_json(&json, &results)?;
        Ok(Outcome::Done {
            results: Box::new(results),
            files,
        })
    }
}

/// The films that learning curves look at.
struct Watched {
    train: (Dataset, [Vec<f64>; 3]),
    test: (Dataset, [Vec<f64>; 3]),
}

impl Watched {
    fn new(train: &Films, test: &Films) -> Result<Self, LabError> {
        let few = |films: &Films| {
            let films = films.first(WATCHED);
            let truth = films.targets();
            Ok::<_, LabError>((films.into_dataset()?, truth))
        };
        Ok(Watched {
            train: few(train)?,
            test: few(test)?,
        })
    }

    fn measure(&self, model: &Model, iteration: usize) -> Result<PendulumPoint, LabError> {
        let (known, fresh) = (embed(model, &self.train.0)?, embed(model, &self.test.0)?);
        let r2 = explained(
            (&known, &self.train.1),
            (&fresh, &self.test.1),
            REGRESSED_ON_THE_WAY,
        )?;
        Ok(PendulumPoint { iteration, r2 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::{StopAfter, done};
    use super::*;

    fn small(shape: Shape) -> PendulumRun {
        let mut run = PendulumRun::new(Scale::Quick, Recipe::Ours, 2).with_shape(shape);
        run.films = Pendulum {
            size: 12,
            sequences: 40,
            steps: 8,
        };
        (run.test, run.hidden, run.ahead) = (20, 8, 3);
        let rivals = run.rivals.as_mut().unwrap();
        (rivals.svae.encoder, rivals.svae.decoder) = (vec![4], vec![4]);
        (rivals.cpc.encoder, rivals.cpc.context) = (vec![4], vec![4]);
        for learning in [&mut rivals.svae.learning, &mut rivals.cpc.learning] {
            (learning.iterations, learning.batch, learning.trial) = (6, 10, 2);
        }
        run.train = TrainSpec {
            iterations: 12,
            warmup: 2,
            mask_warmup: 8,
            batch: Some(20),
            ..run.train
        };
        run
    }

    #[test]
    fn every_shape_gives_results_and_figures() {
        for shape in [Shape::Gaussian, Shape::Beta, Shape::Circle] {
            let folder = tempfile::tempdir().unwrap();
            let results = done(small(shape).run(folder.path(), &mut ()).unwrap());
            assert_eq!(results.prediction.ramp.len(), 3);
            let [cos, sin, speed] = results.r2.ramp.test;
            assert!(
                cos > 0.4 && sin > 0.4 && speed.is_finite(),
                "{shape:?}: {cos} {sin}"
            );
            let text = std::fs::read(folder.path().join("results.json")).unwrap();
            let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
            for part in ["ramp", "svae", "cpc"]
                .map(|m| ["train", "test"].map(|p| (m, p)))
                .concat()
            {
                let values = json.pointer(&format!("/r2/{}/{}", part.0, part.1)).unwrap();
                assert_eq!(values.as_array().unwrap().len(), 3);
            }
            let history = json.pointer("/free_energy_history").unwrap();
            assert_eq!(history.as_array().unwrap().len(), 12);
        }
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let run = small(Shape::Gaussian);
        let whole = done(run.run(&folder.path().join("whole"), &mut ()).unwrap());
        let out = folder.path().join("pieces");
        // In the middle of SVAE, of choosing a start, of CPC and of RAMP.
        for steps in [3, 5, 6, 9] {
            let stopped = run.run(&out, &mut StopAfter(steps)).unwrap();
            assert!(matches!(stopped, Outcome::Interrupted(_)), "{steps}");
        }
        let pieces = done(run.run(&out, &mut ()).unwrap());
        assert_eq!(whole.r2, pieces.r2);
        assert_eq!(whole.prediction, pieces.prediction);
        assert_eq!(whole.free_energy_history, pieces.free_energy_history);
        assert_eq!(pieces.history.first().map(|p| p.iteration), Some(0));

        // A model that began otherwise is another model.
        let circle = PendulumRun {
            beginning: Some(Beginning::Circle),
            ..run.clone()
        };
        let refused = circle.run(&out, &mut ()).unwrap_err().to_string();
        assert!(refused.contains("a run with other settings"), "{refused}");
        // Threads and rivals change nothing of it.
        let alone = PendulumRun {
            rivals: None,
            threads: Some(1),
            ..run
        };
        let again = done(alone.run(&out, &mut ()).unwrap());
        assert_eq!(again.r2.ramp, whole.r2.ramp);
        assert_eq!(again.history.len(), whole.history.len());
    }

    #[test]
    fn predictions_know_where_the_pendulum_was() {
        let mut run = small(Shape::Gaussian);
        run.films = Pendulum {
            size: 12,
            sequences: 400,
            steps: 12,
        };
        (run.test, run.hidden, run.rivals) = (50, 32, None);
        run.train.batch = Some(100);
        run.train = run.train.lasting(120);
        let folder = tempfile::tempdir().unwrap();
        let results = done(run.run(folder.path(), &mut ()).unwrap());
        // Who knows nothing is off by a quarter turn or so; a frame of the wrong film or step tells no more.
        let ahead = results.prediction.ramp;
        assert!(ahead[0] < 0.4 && ahead[2] < 0.8, "{ahead:?}");
    }
}
