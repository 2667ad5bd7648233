//! Poses: a tree in space, learned from what is seen around each joint of stick figures (paper, "Pose Estimation").

use super::clock::Clock;
use super::fitting::{Fitting, Point};
use super::pose_figures::{
    angles_figure, learning_figure, occlusion_figure, patches_figure, reconstructions_figure,
    scaling_figure, table_figure,
};
pub use super::pose_occlusion::Occluded;
use super::pose_occlusion::occluded;
pub use super::pose_reading::Told;
use super::pose_reading::{LimbTold, Means, Seen, readings};
use super::pose_start::begin_with_limbs;
use super::run::{Outcome, Piece, Recipe, Scale, Watch, peak_rss_mb, write_json};
use crate::error::LabError;
use crate::metrics::mean;
use crate::pose::{Body, NAMES, PATCH, Poses, Variations, tree};
use ramp::data::Dataset;
use ramp::family::Inputs;
use ramp::model::Model;
use ramp::network::Activation;
use ramp::network::{ConvLayer, ConvSpec, MlpSpec, NetworkSpec};
use ramp::train::{Decay, TrainSpec};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most poses, learned from and held out.
const MOST_POSES: usize = 200_000;
/// Images that learning curves look at, of training and of held-out ones.
const WATCHED: usize = 300;

/// What the networks say before they have learned anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PoseBeginning {
    /// Whatever random weights say.
    Random,
    /// A joint's latent is the directions of its limbs, told apart from the tips inwards by linear maps.
    Limbs,
}

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoseRun {
    /// How large.
    pub scale: Scale,
    /// How trained.
    pub recipe: Recipe,
    /// A file of joints; poses are made up without one.
    pub joints: Option<PathBuf>,
    /// Training images.
    pub n: usize,
    /// Held-out images.
    pub test: usize,
    /// What else is learned from.
    pub variations: Variations,
    /// Training images, at most, that a regression is fitted to.
    pub regressed: usize,
    /// Dimensions of every latent.
    pub dim: usize,
    /// Hidden units of message networks.
    pub hidden: usize,
    /// What networks see of beliefs.
    pub inputs: Inputs,
    /// The training settings.
    pub train: TrainSpec,
    /// What the networks say at first.
    pub beginning: PoseBeginning,
    /// The seed of data, weights and batches.
    pub seed: u64,
    /// Threads; all of the machine's by default.
    pub threads: Option<usize>,
}

impl PoseRun {
    /// The settings of a scale and a recipe.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let (n, test, regressed, batch) = match scale {
            Scale::Paper => (8000, 2000, 3000, 200),
            Scale::Quick => (1000, 300, 800, 50),
        };
        let iterations = match (scale, recipe) {
            (Scale::Paper, Recipe::Paper) => 3000,
            (Scale::Paper, Recipe::Ours) => 1500,
            (Scale::Quick, _) => 350,
        };
        let paper = TrainSpec {
            iterations,
            batch: Some(batch),
            learning_rate: 1e-4,
            seed,
            ..TrainSpec::default()
        };
        let (inputs, variations, train) = match recipe {
            Recipe::Paper => (Inputs::Natural, Variations::default(), paper),
            Recipe::Ours => (
                Inputs::Moments,
                Variations {
                    of_each: 4,
                    turn: 0.35,
                    zoom: 1.2,
                    cover: 0.1,
                    fade: 0.3,
                },
                TrainSpec {
                    learning_rate: 1e-3,
                    warmup: iterations / 10,
                    decay: Decay::Cosine { to: 0.0 },
                    clip: Some(10.0),
                    ..paper
                },
            ),
        };
        PoseRun {
            scale,
            recipe,
            joints: None,
            n,
            test,
            variations,
            regressed,
            dim: 6,
            hidden: 64,
            inputs,
            train,
            beginning: match recipe {
                Recipe::Paper => PoseBeginning::Random,
                Recipe::Ours => PoseBeginning::Limbs,
            },
            seed,
            threads: None,
        }
    }

    /// Training and held-out poses, in random order.
    fn poses(&self) -> Result<(Poses, Poses), LabError> {
        let wanted = self.n + self.test;
        if wanted > MOST_POSES {
            return Err(LabError::Invalid(format!(
                "{wanted} poses are too many: the pictures of more than {MOST_POSES} do not fit into memory"
            )));
        }
        let mut all = match &self.joints {
            Some(path) => Poses::read(path)?,
            None => Body::default().poses(wanted, self.seed),
        };
        if all.poses.len() < wanted {
            return Err(LabError::Invalid(format!(
                "there are {} poses, not {} to learn from and {} to hold out; ask for fewer with --n",
                all.poses.len(),
                self.n,
                self.test
            )));
        }
        all.poses.shuffle(&mut ChaCha8Rng::seed_from_u64(self.seed));
        Ok((all.part(0..self.n), all.part(self.n..wanted)))
    }

    /// The networks that look at patches.
    pub(super) fn recognition() -> NetworkSpec {
        let layer = |channels, stride| ConvLayer {
            channels,
            kernel: 3,
            stride,
            padding: 1,
        };
        NetworkSpec::Conv(ConvSpec {
            image: [1, PATCH, PATCH],
            layers: vec![layer(32, 1), layer(64, 2), layer(32, 2)],
            dense: vec![],
            activation: Activation::Relu,
            initialization: None,
        })
    }

    /// The model before it has learned anything.
    pub fn model(&self, data: &Dataset) -> Result<Model, LabError> {
        let messages = NetworkSpec::Mlp(MlpSpec {
            hidden: vec![self.hidden],
            ..MlpSpec::default()
        });
        let tree = tree().map_err(ramp::Error::from)?;
        Ok(Model::builder(tree)
            .families(&format!("gaussian({})", self.dim))?
            .inputs(self.inputs)
            .message_network(messages)
            .observation_network(Self::recognition())
            .init(self.recipe.init())
            .seed(self.seed)
            .build(data)?)
    }
}

/// A point of the learning curve: means over all limbs, on a few images.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PosePoint {
    /// Steps taken.
    pub iteration: usize,
    /// R² of kernel ridge regression.
    pub r2: Told,
}

impl Point for PosePoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

/// R² of a limb's direction, and the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimbR2 {
    /// On training images.
    pub train: f64,
    /// On held-out images.
    pub test: f64,
    /// The paper's, on training images.
    pub paper: f64,
}

/// By joint, then by neighbour.
pub type ByLimb = BTreeMap<String, BTreeMap<String, LimbR2>>;

/// Means over all limbs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoseMeans {
    /// Kernel ridge regression.
    pub kernel: Told,
    /// Linear regression.
    pub linear: Told,
    /// The paper's.
    pub paper: f64,
}

/// Everything a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PoseResults {
    /// What the poses are.
    pub found: String,
    /// R² of kernel ridge regression from the posterior mean at a joint to the direction of the limb to a neighbour.
    pub r2: ByLimb,
    /// The same by linear regression.
    pub linear_r2: ByLimb,
    /// Means over all limbs.
    pub mean: PoseMeans,
    /// Directions of limbs whose joint is hidden.
    pub occlusion: Vec<Occluded>,
    /// The learning curve.
    pub history: Vec<PosePoint>,
    /// The free energy of every iteration's batch, a mean over joints and images, in nats.
    pub free_energy_history: Vec<f64>,
    /// Steps taken.
    pub iterations: usize,
    /// The median time of a training step, in milliseconds; absent when the session took none.
    pub ms_per_iteration: Option<f64>,
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: PoseRun,
    /// The version of this software.
    pub version: String,
}

fn by_limb(rows: &[LimbTold], of: fn(&LimbTold) -> Told) -> ByLimb {
    let mut all = ByLimb::new();
    for row in rows {
        let Told { train, test } = of(row);
        let r2 = LimbR2 {
            train,
            test,
            paper: row.paper,
        };
        let joint = all.entry(NAMES[row.joint].into()).or_default();
        joint.insert(NAMES[row.neighbour].into(), r2);
    }
    all
}

/// The mean over all limbs.
fn overall(rows: &[LimbTold], of: fn(&LimbTold) -> Told) -> Told {
    let part =
        |part: fn(&Told) -> f64| mean(&rows.iter().map(|r| part(&of(r))).collect::<Vec<_>>());
    Told {
        train: part(|t| t.train),
        test: part(|t| t.test),
    }
}

impl PoseRun {
    /// Trains, measures and writes `results.json` and figures into a folder; goes on from what is there.
    pub fn run(&self, out: &Path, watch: &mut dyn Watch) -> Result<Outcome<PoseResults>, LabError> {
        let folder = out.join("checkpoint");
        let mut clock = Clock::new(watch, &folder, self);
        let (train, test) = self.poses()?;
        clock.say(&train.found);
        let data = self.variations.dataset(&train, self.seed)?;
        let mut model = self.model(&data)?;
        let fitting = Fitting {
            what: "RAMP",
            train: &self.train,
            threads: self.threads,
            folder: &folder,
        };
        if self.beginning == PoseBeginning::Limbs && !fitting.goes_on() {
            begin_with_limbs(&mut model, &Self::recognition(), self.inputs, &train)?;
        }
        let few = (train.part(0..WATCHED), test.part(0..WATCHED));
        let few_data = (few.0.dataset()?, few.1.dataset()?);
        let measure = |model: &Model, iteration: usize| {
            let means = (
                Means::of(model, &few_data.0)?,
                Means::of(model, &few_data.1)?,
            );
            let seen = |poses, means| Seen { poses, means };
            let read = readings(&seen(&few.0, &means.0), &seen(&few.1, &means.1), WATCHED)?;
            let rows: Vec<LimbTold> = read.iter().map(|r| r.told).collect();
            Ok(PosePoint {
                iteration,
                r2: overall(&rows, |r| r.kernel),
            })
        };
        let fitted = match fitting.run(&mut model, &data, self, &measure, &mut clock)? {
            Piece::Done(fitted) => fitted,
            Piece::Interrupted(at) => return Ok(Outcome::Interrupted(at)),
        };
        drop(data);
        let (known, fresh) = (
            Means::of(&model, &train.dataset()?)?,
            Means::of(&model, &test.dataset()?)?,
        );
        let train_seen = Seen {
            poses: &train,
            means: &known,
        };
        let test_seen = Seen {
            poses: &test,
            means: &fresh,
        };
        let read = readings(&train_seen, &test_seen, self.regressed)?;
        let rows: Vec<LimbTold> = read.iter().map(|r| r.told).collect();
        let some = train.part(0..self.regressed);
        let results = PoseResults {
            found: train.found.clone(),
            r2: by_limb(&rows, |r| r.kernel),
            linear_r2: by_limb(&rows, |r| r.linear),
            mean: PoseMeans {
                kernel: overall(&rows, |r| r.kernel),
                linear: overall(&rows, |r| r.linear),
                paper: mean(&rows.iter().map(|r| r.paper).collect::<Vec<_>>()),
            },
            occlusion: occluded(&model, &some, &test, self.regressed)?,
            history: fitted.curve,
            free_energy_history: fitted.records.iter().map(|r| r.free_energy).collect(),
            iterations: fitted.iteration,
            ms_per_iteration: fitted.ms_per_iteration,
            seconds: clock.seconds(),
            peak_rss_mb: peak_rss_mb(),
            settings: self.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let json = out.join("results.json");
        let mut files: Vec<PathBuf> = vec![json.clone()];
        for (figure, name) in [
            (patches_figure(&test)?, "patches"),
            (
                reconstructions_figure(&read, &train, &test_seen),
                "reconstructions",
            ),
            (angles_figure(&read, &test_seen)?, "angles"),
            (scaling_figure(&test_seen)?, "scaling"),
            (table_figure(&rows), "table"),
            (occlusion_figure(&results.occlusion), "occlusion"),
            (learning_figure(&results), "learning"),
        ] {
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

#[cfg(test)]
mod tests {
    use super::super::run::tests::{StopAfter, done};
    use super::*;

    fn small() -> PoseRun {
        let mut run = PoseRun::new(Scale::Quick, Recipe::Ours, 3);
        (run.n, run.test, run.regressed, run.dim, run.hidden) = (60, 30, 40, 2, 4);
        run.train.iterations = 6;
        run.train.batch = Some(20);
        run
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let run = small();
        let whole = done(run.run(&folder.path().join("whole"), &mut ()).unwrap());
        let out = folder.path().join("pieces");
        let stopped = run.run(&out, &mut StopAfter(4)).unwrap();
        assert!(matches!(stopped, Outcome::Interrupted(_)));
        let pieces = done(run.run(&out, &mut ()).unwrap());
        assert_eq!(whole.r2, pieces.r2);
        assert_eq!(whole.occlusion, pieces.occlusion);
        assert_eq!(whole.free_energy_history, pieces.free_energy_history);
        assert_eq!(whole.r2["left_ankle"]["left_knee"].paper, 0.83);
        assert_eq!(whole.r2.values().map(BTreeMap::len).sum::<usize>(), 26);
        assert_eq!(whole.occlusion.len(), 26);
    }

    #[test]
    fn more_poses_than_there_are_get_a_sentence() {
        let mut run = small();
        let file = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../shared/data/lspet/joints.mat"
        ));
        if !file.exists() {
            println!("skipped: {} is not here", file.display());
            return;
        }
        run.joints = Some(file.into());
        run.n = 9990;
        let says = run.poses().unwrap_err().to_string();
        assert!(says.contains("there are 10000 poses"), "{says}");
        run.n = 100;
        let (train, test) = run.poses().unwrap();
        assert!(train.poses.iter().all(|p| !test.poses.contains(p)));
    }
}
