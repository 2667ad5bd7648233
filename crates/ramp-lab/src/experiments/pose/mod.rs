//! Poses: a tree in space, learned from what is seen around each joint of stick figures (paper, "Pose Estimation").

pub mod data;
mod figures;
mod init;
mod occlusion;
mod probe;
mod shared;

pub use occlusion::Occluded;
pub use probe::ProbeR2;

use crate::error::LabError;
use crate::harness::{
    Clock, Core, Experiment, Figures, Point, RunInfo, Training, TrainingRun, Watch,
};
use crate::metrics::mean;
use data::{Augmentation, Body, NAMES, PATCH, Poses, tree};
use figures::{
    angles_figure, learning_figure, occlusion_figure, patches_figure, reconstructions_figure,
    scaling_figure, table_figure,
};
use init::init_linear;
use occlusion::occlusion;
use probe::{LimbProbe, Means, Seen, probes};
use ramp::data::Dataset;
use ramp::model::Model;
use ramp::network::{Activation, ConvLayer, ConvSpec, MlpSpec, NetworkSpec};
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
pub enum PoseInit {
    /// Whatever random weights say.
    Random,
    /// A joint's latent is what its patch has in common with those of its neighbours: factors of the tree's edges.
    Shared,
    /// Informed: a joint's latent is the directions of its limbs, told apart from the tips inwards by linear maps.
    Limbs,
}

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoseRun {
    /// What all experiments share.
    #[serde(flatten)]
    pub core: Core,
    /// A file of joints; poses are made up without one.
    pub joints: Option<PathBuf>,
    /// Training images.
    pub n: usize,
    /// Held-out images.
    pub test: usize,
    /// What else is learned from.
    #[serde(rename = "variations")]
    pub augmentation: Augmentation,
    /// Training images, at most, that a probe is fitted to.
    #[serde(rename = "regressed")]
    pub probed: usize,
    /// Dimensions of every latent.
    pub dim: usize,
    /// Hidden units of message networks.
    pub hidden: usize,
    /// What the networks say at first.
    #[serde(rename = "beginning")]
    pub init: PoseInit,
}

impl PoseRun {
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
            None => Body::default().poses(wanted, self.core.seed),
        };
        if all.poses.len() < wanted {
            return Err(LabError::Invalid(format!(
                "there are {} poses, not {} to learn from and {} to hold out; ask for fewer with --n",
                all.poses.len(),
                self.n,
                self.test
            )));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.core.seed);
        all.poses.shuffle(&mut rng);
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
        let tree = tree()?;
        Ok(Model::builder(tree)
            .families(&format!("gaussian({})", self.dim))?
            .inputs(self.core.inputs)
            .message_network(messages)
            .observation_network(Self::recognition())
            .init(self.core.recipe.init())
            .seed(self.core.seed)
            .build(data)?)
    }
}

/// A point of the learning curve: means over all limbs, on a few images.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PosePoint {
    /// Steps taken.
    pub iteration: usize,
    /// R² of kernel ridge regression.
    pub r2: ProbeR2,
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
    pub kernel: ProbeR2,
    /// Linear regression.
    pub linear: ProbeR2,
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
    /// Directions of limbs whose joint is occluded.
    pub occlusion: Vec<Occluded>,
    /// The learning curve.
    pub history: Vec<PosePoint>,
    /// How RAMP was trained.
    #[serde(flatten)]
    pub training: TrainingRun,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<PoseRun>,
}

fn by_limb(rows: &[LimbProbe], of: fn(&LimbProbe) -> ProbeR2) -> ByLimb {
    let mut all = ByLimb::new();
    for row in rows {
        let ProbeR2 { train, test } = of(row);
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
fn overall(rows: &[LimbProbe], of: fn(&LimbProbe) -> ProbeR2) -> ProbeR2 {
    let part =
        |part: fn(&ProbeR2) -> f64| mean(&rows.iter().map(|r| part(&of(r))).collect::<Vec<_>>());
    ProbeR2 {
        train: part(|t| t.train),
        test: part(|t| t.test),
    }
}

impl Experiment for PoseRun {
    type Results = PoseResults;

    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(PoseResults, Figures), LabError> {
        let core = &self.core;
        let (train, test) = self.poses()?;
        clock.say(&train.found);
        let data = self.augmentation.dataset(&train, core.seed)?;
        let mut model = self.model(&data)?;
        let ramp = Training {
            what: "RAMP",
            train: &core.train,
            threads: core.threads,
            folder,
        };
        if self.init != PoseInit::Random && !ramp.goes_on() {
            let network = Self::recognition();
            init_linear(&mut model, self.init, &network, core.inputs, &train)?;
        }
        fn seen<'a>(poses: &'a Poses, means: &'a Means) -> Seen<'a> {
            Seen { poses, means }
        }
        let few = (train.part(0..WATCHED), test.part(0..WATCHED));
        let few_data = (few.0.dataset()?, few.1.dataset()?);
        let point = |model: &Model, iteration: usize| {
            let known = Means::of(model, &few_data.0)?;
            let fresh = Means::of(model, &few_data.1)?;
            let found = probes(&seen(&few.0, &known), &seen(&few.1, &fresh), WATCHED)?;
            let rows: Vec<LimbProbe> = found.iter().map(|p| p.limb).collect();
            Ok(Some(PosePoint {
                iteration,
                r2: overall(&rows, |r| r.kernel),
            }))
        };
        let (training, history) = ramp.run(self, &point, clock, |t| t.fit(&mut model, &data))?;
        drop(data);
        let known = Means::of(&model, &train.dataset()?)?;
        let fresh = Means::of(&model, &test.dataset()?)?;
        let (train_seen, test_seen) = (seen(&train, &known), seen(&test, &fresh));
        let found = probes(&train_seen, &test_seen, self.probed)?;
        let rows: Vec<LimbProbe> = found.iter().map(|p| p.limb).collect();
        let some = train.part(0..self.probed);
        let results = PoseResults {
            found: train.found.clone(),
            r2: by_limb(&rows, |r| r.kernel),
            linear_r2: by_limb(&rows, |r| r.linear),
            mean: PoseMeans {
                kernel: overall(&rows, |r| r.kernel),
                linear: overall(&rows, |r| r.linear),
                paper: mean(&rows.iter().map(|r| r.paper).collect::<Vec<_>>()),
            },
            occlusion: occlusion(&model, &some, &test, self.probed)?,
            history,
            training,
            info: RunInfo::new(self, clock),
        };
        let figures = vec![
            ("patches", patches_figure(&test)?),
            (
                "reconstructions",
                reconstructions_figure(&found, &train, &test_seen),
            ),
            ("angles", angles_figure(&found, &test_seen)?),
            ("scaling", scaling_figure(&test_seen)?),
            ("table", table_figure(&rows)),
            ("occlusion", occlusion_figure(&results.occlusion)),
            ("learning", learning_figure(&results)),
        ];
        Ok((results, figures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Recipe, Scale, StopAfter};

    /// A small run on the poses of a small file, of which a fifth has a joint out of sight.
    fn small() -> PoseRun {
        let mut run = PoseRun::new(Scale::Quick, Recipe::Ours, 3);
        (run.n, run.test, run.probed, run.dim, run.hidden) = (40, 20, 40, 2, 4);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/joints.mat");
        run.joints = Some(file.into());
        run.core.train.iterations = 6;
        run.core.train.batch = Some(20);
        run
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let run = small();
        let whole = run.run(&folder.path().join("whole"), &mut ()).unwrap();
        let out = folder.path().join("pieces");
        let stopped = run.run(&out, &mut StopAfter(4));
        assert!(matches!(stopped, Err(LabError::Interrupted { .. })));
        let pieces = run.run(&out, &mut ()).unwrap();
        assert!(pieces.files.iter().all(|f| f.is_file()));
        let (whole, pieces) = (whole.results, pieces.results);
        assert_eq!(whole.r2, pieces.r2);
        assert_eq!(whole.occlusion, pieces.occlusion);
        assert_eq!(
            whole.training.free_energy_history,
            pieces.training.free_energy_history
        );
        assert_eq!(whole.r2["left_ankle"]["left_knee"].paper, 0.83);
        assert_eq!(whole.r2.values().map(BTreeMap::len).sum::<usize>(), 26);
        assert_eq!(whole.occlusion.len(), 26);
        // Means are those of the rows; a line with an intercept never does worse than the mean on what it was fitted to.
        let rows = |of: &ByLimb| -> Vec<LimbR2> {
            let rows = of.values().flat_map(BTreeMap::values);
            rows.copied().collect()
        };
        let all = mean(&rows(&whole.r2).iter().map(|r| r.test).collect::<Vec<_>>());
        assert!((whole.mean.kernel.test - all).abs() < 1e-9);
        let linear = rows(&whole.linear_r2);
        assert!(linear.iter().all(|r| (-1e-9..=1.0).contains(&r.train)));
        assert!(whole.mean.linear.train > 0.05, "{:?}", whole.mean.linear);
        assert!((whole.mean.paper - 0.623).abs() < 1e-3);
        let json = std::fs::read(out.join("results.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["mean"]["kernel"]["train"], whole.mean.kernel.train);
        assert!(whole.found.contains("60 poses") && whole.found.contains("14 × 3 × N"));
    }

    #[test]
    fn more_poses_than_there_are_get_a_sentence() {
        let mut run = small();
        run.n = 50;
        let says = run.poses().unwrap_err().to_string();
        assert!(says.contains("there are 60 poses"), "{says}");
        run.n = 40;
        let (train, test) = run.poses().unwrap();
        assert_eq!((train.poses.len(), test.poses.len()), (40, 20));
        assert!(train.poses.iter().all(|p| !test.poses.contains(p)));
        // In random order: not the first of the file.
        let all = Poses::read(run.joints.as_ref().unwrap()).unwrap();
        assert_ne!(train.poses, all.part(0..40).poses);
    }
}
