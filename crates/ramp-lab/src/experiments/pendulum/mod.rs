//! The pendulum: a chain of latents learned from videos (paper, "Nonlinear Dynamical Systems").

pub mod data;
pub(super) mod figures;
mod prediction;
pub(super) mod probe;

pub use prediction::{Prediction, STATED};
pub use probe::{BothR2, StateR2};

use crate::error::LabError;
use crate::harness::{
    BaselineSettings, BaselineTask, Clock, Core, Experiment, Figures, Point, Recipe, RunInfo,
    Training, TrainingRun, Watch, start,
};
use data::{Pendulum, Videos};
use figures::{
    Drawn, baselines_figure, learning_figure, phase_figure, prediction_figure, strip_figure,
    videos_figure,
};
use prediction::predict;
use probe::{Embedding, embed, probe, probe_both};
use ramp::data::Dataset;
use ramp::graph::{FactorTree, Tying};
use ramp::model::Model;
use ramp::network::{Activation, MlpSpec, NetworkSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The random stream of training videos, and that of test videos.
pub(super) const TRAIN: u64 = 0;
pub(super) const TEST: u64 = 1;
/// Frames that the probe is fitted to in the end, and on the way.
const PROBED: usize = 4000;
const PROBED_ON_THE_WAY: usize = 1500;
/// Videos that learning curves look at.
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
}

/// What the networks say before they have learned anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// Whatever random weights say.
    Random,
    /// What the videos show, by the engine's start for any chain ([`ramp::train::start_chain`]).
    Dynamics,
}

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendulumRun {
    /// What all experiments share.
    #[serde(flatten)]
    pub core: Core,
    /// Training videos.
    #[serde(rename = "films")]
    pub videos: Pendulum,
    /// Test videos.
    pub test: usize,
    /// What every latent is.
    pub shape: Shape,
    /// Hidden units of every network.
    pub hidden: usize,
    /// The function of hidden units; the paper does not say which.
    #[serde(default)]
    pub activation: Activation,
    /// What random weights of last layers are multiplied with; the paper does not say how large they are.
    #[serde(default = "unscaled")]
    pub output_scale: f32,
    /// What the networks say at first; what suits recipe and latents by default.
    #[serde(rename = "beginning")]
    pub init: Option<Init>,
    /// Frames at the end of test videos to be predicted from those before, of which two at least are left.
    pub ahead: usize,
    /// The settings of the baselines; none to leave them out.
    #[serde(rename = "rivals")]
    pub baselines: Option<BaselineSettings>,
}

fn unscaled() -> f32 {
    1.0
}

impl PendulumRun {
    /// The same with other latents.
    pub fn with_shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// The model at random weights.
    pub(super) fn model(&self, data: &Dataset) -> Result<Model, LabError> {
        let network = NetworkSpec::Mlp(MlpSpec {
            hidden: vec![self.hidden],
            activation: self.activation,
            ..MlpSpec::default()
        });
        let tree = FactorTree::chain(self.videos.steps)?;
        let mut model = Model::builder(tree)
            .families(self.shape.family())?
            .tying(Tying::Role)
            .inputs(self.core.inputs)
            .message_network(network.clone())
            .observation_network(network)
            .init(self.core.recipe.init())
            .seed(self.core.seed)
            .build(data)?;
        let arrays = model.named_parameters();
        let networks: BTreeSet<&str> = (arrays
            .iter()
            .filter_map(|(name, ..)| Some(name.split_once('/')?.0)))
        .collect();
        for network in networks {
            let last = model.layout(network)?.last.span();
            for weight in &mut model.parameters_mut()[last] {
                *weight *= self.output_scale;
            }
        }
        Ok(model)
    }

    /// Turns random weights into what the networks say at first, from these videos.
    pub(super) fn initialise(
        &self,
        model: &mut Model,
        data: &Dataset,
        watch: &mut dyn Watch,
    ) -> Result<(), LabError> {
        if self.init() == Init::Dynamics {
            start(model, data, &self.core.train, self.core.threads, watch)?;
        }
        Ok(())
    }

    /// Finds mistakes before anything is learned, baselines included.
    fn check(&self) -> Result<(), LabError> {
        let (steps, ahead) = (self.videos.steps, self.ahead);
        if ahead == 0 || ahead + 2 > steps {
            return Err(LabError::Invalid(format!(
                "videos of {steps} frames cannot have {ahead} of them predicted: at least one, and two must be left to see"
            )));
        }
        self.check_learning()
    }

    pub(super) fn check_learning(&self) -> Result<(), LabError> {
        let train = &self.core.train;
        train.check()?;
        train.split(self.videos.sequences)?;
        Ok(())
    }

    fn init(&self) -> Init {
        self.init.unwrap_or(match self.core.recipe {
            Recipe::Paper => Init::Random,
            Recipe::Ours => Init::Dynamics,
        })
    }

    /// Training and test videos.
    pub(super) fn draw_videos(&self) -> Result<(Videos, Videos), LabError> {
        let sizes = Pendulum {
            sequences: self.test,
            ..self.videos
        };
        let seed = self.core.seed;
        Ok((self.videos.videos(seed, TRAIN)?, sizes.videos(seed, TEST)?))
    }
}

/// A point of the learning curve, on the first test videos and regressed from the first training videos.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendulumPoint {
    /// Steps taken.
    pub iteration: usize,
    /// R² of the probe.
    pub r2: StateR2,
}

impl Point for PendulumPoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

/// R² of the probe, method by method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct R2PerMethod {
    /// RAMP.
    pub ramp: BothR2,
    /// The structured variational autoencoder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svae: Option<BothR2>,
    /// Contrastive predictive coding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpc: Option<BothR2>,
}

/// Everything a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendulumResults {
    /// R² of cos θ, sin θ and ω by kernel ridge regression from posterior means.
    pub r2: R2PerMethod,
    /// The learning curve.
    pub history: Vec<PendulumPoint>,
    /// How far predicted angles of the last frames are off.
    pub prediction: Prediction,
    /// Wall time of the baselines over all sessions, in seconds.
    #[serde(rename = "rival_seconds")]
    pub baseline_seconds: f64,
    /// How RAMP was trained.
    #[serde(flatten)]
    pub training: TrainingRun,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<PendulumRun>,
}

impl Experiment for PendulumRun {
    type Results = PendulumResults;

    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(PendulumResults, Figures), LabError> {
        self.check()?;
        let (train, test) = self.draw_videos()?;
        let (truth, theta) = (train.targets(), train.theta.clone());
        let contact = videos_figure(&train)?;
        let watched = Watched::new(&train, &test)?;
        let test_truth = test.targets();
        let task = BaselineTask {
            train: &train,
            test: &test,
            folder,
            threads: self.core.threads,
        };
        let baselines = match &self.baselines {
            None => None,
            Some(settings) => Some(task.run(settings, clock)?),
        };
        let baselines = baselines.map(|found| found.map(Embedding::pair));
        let probed = |[known, fresh]: &[Embedding; 2]| {
            probe_both((known, &truth), (fresh, &test_truth), PROBED)
        };
        let mut model = self.model(&train.first(1).into_dataset()?)?;
        let ramp = Training {
            what: "RAMP",
            train: &self.core.train,
            threads: self.core.threads,
            folder,
        };
        // The videos themselves move on: there is room for one copy.
        let data = train.into_dataset()?;
        if !ramp.goes_on() {
            self.initialise(&mut model, &data, clock)?;
        }
        // Neither baselines nor what is asked of the model in the end change how it learns.
        let learning = PendulumRun {
            baselines: None,
            ahead: 0,
            ..self.clone()
        };
        let point = |model: &Model, iteration: usize| watched.measure(model, iteration).map(Some);
        let (training, history) =
            ramp.run(&learning, &point, clock, |t| t.fit(&mut model, &data))?;
        drop(watched);
        let test_data = test.clone().into_dataset()?;
        let (known, fresh) = (embed(&model, &data)?, embed(&model, &test_data)?);
        let (prediction, predicted) =
            predict(&model, (&data, &theta), (&test_data, &test), self.ahead)?;
        drop(test_data);
        let found = baselines.as_ref();
        let results = PendulumResults {
            r2: R2PerMethod {
                ramp: probe_both((&known, &truth), (&fresh, &test_truth), PROBED)?,
                svae: found.map(|[svae, _]| probed(svae)).transpose()?,
                cpc: found.map(|[_, cpc]| probed(cpc)).transpose()?,
            },
            history,
            prediction,
            baseline_seconds: clock.spent_on("SVAE") + clock.spent_on("CPC"),
            training,
            info: RunInfo::new(self, clock),
        };
        let drawn = Drawn {
            videos: &test,
            plane: &fresh.plane,
            shape: self.shape,
        };
        let mut figures = vec![
            ("films", contact),
            ("phase", phase_figure(&drawn)?),
            ("learning", learning_figure(&results)),
            ("prediction", prediction_figure(&results.prediction)),
            ("strip", strip_figure(&test, &predicted)?),
        ];
        if let Some([svae, cpc]) = &baselines {
            let named = [("SVAE", &svae[1].plane), ("CPC", &cpc[1].plane)];
            figures.push(("rivals", baselines_figure(&test, &named)?));
        }
        Ok((results, figures))
    }
}

/// The videos that learning curves look at.
struct Watched {
    train: (Dataset, [Vec<f64>; 3]),
    test: (Dataset, [Vec<f64>; 3]),
}

impl Watched {
    fn new(train: &Videos, test: &Videos) -> Result<Self, LabError> {
        let few = |videos: &Videos| {
            let videos = videos.first(WATCHED);
            let truth = videos.targets();
            Ok::<_, LabError>((videos.into_dataset()?, truth))
        };
        Ok(Watched {
            train: few(train)?,
            test: few(test)?,
        })
    }

    fn measure(&self, model: &Model, iteration: usize) -> Result<PendulumPoint, LabError> {
        let (known, fresh) = (embed(model, &self.train.0)?, embed(model, &self.test.0)?);
        let r2 = probe(
            (&known, &self.train.1),
            (&fresh, &self.test.1),
            PROBED_ON_THE_WAY,
        )?;
        Ok(PendulumPoint { iteration, r2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Scale, StopAfter};
    use ramp::train::TrainSpec;

    fn small(shape: Shape) -> PendulumRun {
        let mut run = PendulumRun::new(Scale::Quick, Recipe::Ours, 2).with_shape(shape);
        run.videos = Pendulum {
            size: 12,
            sequences: 40,
            steps: 8,
        };
        (run.test, run.hidden, run.ahead) = (20, 8, 3);
        let baselines = run.baselines.as_mut().unwrap();
        (baselines.svae.encoder, baselines.svae.decoder) = (vec![4], vec![4]);
        (baselines.cpc.encoder, baselines.cpc.context) = (vec![4], vec![4]);
        for learning in [&mut baselines.svae.learning, &mut baselines.cpc.learning] {
            (learning.iterations, learning.batch, learning.trial) = (6, 10, 2);
        }
        run.core.train = TrainSpec {
            iterations: 12,
            warmup: 2,
            mask_warmup: 8,
            batch: Some(20),
            ..run.core.train
        };
        run
    }

    #[test]
    fn every_shape_gives_results_and_figures() {
        for shape in [Shape::Gaussian, Shape::Beta, Shape::Circle] {
            let folder = tempfile::tempdir().unwrap();
            let results = small(shape).run(folder.path(), &mut ()).unwrap();
            assert!(results.files.iter().all(|f| f.is_file()));
            let results = results.results;
            assert_eq!(results.prediction.ramp.len(), 3);
            let [cos, sin, speed] = results.r2.ramp.usual.test;
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
        let whole = run.run(&folder.path().join("whole"), &mut ()).unwrap();
        let whole = whole.results;
        let out = folder.path().join("pieces");
        // In the middle of SVAE, of choosing a start, of CPC and of RAMP.
        for steps in [3, 5, 6, 9] {
            let stopped = run.run(&out, &mut StopAfter(steps));
            assert!(
                matches!(stopped, Err(LabError::Interrupted { .. })),
                "{steps}"
            );
        }
        let pieces = run.run(&out, &mut ()).unwrap().results;
        assert_eq!(whole.r2, pieces.r2);
        assert_eq!(whole.prediction, pieces.prediction);
        assert_eq!(
            whole.training.free_energy_history,
            pieces.training.free_energy_history
        );
        assert_eq!(pieces.history.first().map(|p| p.iteration), Some(0));

        // A model that began otherwise is another model.
        let circle = PendulumRun {
            init: Some(Init::Random),
            ..run.clone()
        };
        let refused = circle.run(&out, &mut ()).unwrap_err().to_string();
        assert!(refused.contains("a run with other settings"), "{refused}");
        // Threads and baselines change nothing of it.
        let mut alone = PendulumRun {
            baselines: None,
            ..run
        };
        alone.core.threads = Some(1);
        let again = alone.run(&out, &mut ()).unwrap().results;
        assert_eq!(again.r2.ramp, whole.r2.ramp);
        assert_eq!(again.history.len(), whole.history.len());
    }

    #[test]
    fn predictions_know_where_the_pendulum_was() {
        let mut run = small(Shape::Gaussian);
        run.videos = Pendulum {
            size: 12,
            sequences: 400,
            steps: 12,
        };
        (run.test, run.hidden, run.baselines) = (50, 32, None);
        run.core.train.batch = Some(100);
        run.core.train = run.core.train.lasting(120);
        let folder = tempfile::tempdir().unwrap();
        let results = run.run(folder.path(), &mut ()).unwrap().results;
        // Who knows nothing is off by a quarter turn or so; a frame of the wrong video or step tells no more.
        let ahead = results.prediction.ramp;
        assert!(ahead[0] < 0.4 && ahead[2] < 0.8, "{ahead:?}");
    }
}
