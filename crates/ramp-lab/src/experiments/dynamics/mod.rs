//! Dynamics: one recipe on several systems, none of which it knows; it is the one that `ramp fit` has for chains.

pub mod data;
mod figures;
mod linear;
mod probe;

pub use probe::ProbeR2;

use crate::baselines::Likelihood;
use crate::error::LabError;
use crate::experiments::state_probe::Points;
use crate::harness::{
    BaselineSettings, BaselineTask, Clock, Core, Embedded, Experiment, Figures, RunInfo, Training,
    TrainingRun, keep, kept, start,
};
use data::{Recorded, System};
use figures::{Portrait, portraits_figure};
use linear::{Scores, kalman_smoothers, whiten, window_components};
use probe::probe;
use ramp::data::Dataset;
use ramp::graph::{FactorTree, TimeAxis, Tying};
use ramp::model::{Initialisation, Model};
use ramp::network::{MlpSpec, NetworkSpec};
use ramp::train::TriedStart;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The random stream of training sequences, and that of test sequences.
const TRAIN: u64 = 0;
const TEST: u64 = 1;
/// Sequences whose posteriors are held at a time.
const AT_ONCE: usize = 100;
/// How many times as many window components as the state has numbers are read beside as many as it has.
const WIDER: usize = 4;
/// How many times as many numbers wide latents have.
const RAMP_WIDER: usize = 2;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DynamicsRun {
    /// What all experiments share.
    #[serde(flatten)]
    pub core: Core,
    /// The systems, one after the other.
    pub systems: Vec<System>,
    /// Pixels on a side of a frame, where there are pictures.
    pub size: usize,
    /// Training sequences of each.
    pub sequences: usize,
    /// Observations in a sequence.
    pub steps: usize,
    /// Test sequences of each.
    pub test: usize,
    /// Hidden units of every network.
    pub hidden: usize,
    /// The settings of SVAE and CPC but for what a system asks of them; none to leave them out.
    pub baselines: Option<BaselineSettings>,
}

impl DynamicsRun {
    fn model(&self, dim: usize, data: &Dataset) -> Result<Model, LabError> {
        let network = NetworkSpec::Mlp(MlpSpec {
            hidden: vec![self.hidden],
            ..MlpSpec::default()
        });
        Ok(Model::builder(FactorTree::chain(self.steps)?)
            .families(&format!("gaussian({dim})"))?
            .tying(Tying::Role)
            .inputs(self.core.inputs)
            .message_network(network.clone())
            .observation_network(network)
            .init(Initialisation::Dynamics)
            .seed(self.core.seed)
            .build(data)?)
    }
}

/// States that were estimated before learning, and what they tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// How many rings, each a place on a circle with its velocity, and how many places, the other numbers being their rates of change.
    pub start: String,
    /// The share of what observations show 3 to 8 steps earlier and later that they tell.
    pub told: f64,
}

impl From<&TriedStart> for Tried {
    fn from(tried: &TriedStart) -> Self {
        Tried {
            start: described(tried),
            told: tried.told,
        }
    }
}

fn described(tried: &TriedStart) -> String {
    let counted = |n: usize, what: &str| match n {
        0 => None,
        1 => Some(format!("1 {what}")),
        n => Some(format!("{n} {what}s")),
    };
    let parts = [counted(tried.rings, "ring"), counted(tried.places, "place")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// R² of what has more numbers than the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WideR2 {
    /// How many.
    pub dim: usize,
    /// What the probes read off them.
    #[serde(flatten)]
    pub r2: ProbeR2,
}

/// What was found of one system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SystemResults {
    /// Which.
    pub system: System,
    /// How many numbers its state and its latents have.
    pub dimension: usize,
    /// The measured variables.
    pub variables: Vec<String>,
    /// Which of them a single observation shows.
    pub shown: Vec<bool>,
    /// R² of RAMP's posterior means.
    pub ramp: ProbeR2,
    /// R² of RAMP with latents of more numbers, beside baselines that have more too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_wide: Option<WideR2>,
    /// R² of the structured variational autoencoder, of the same dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svae: Option<ProbeR2>,
    /// R² of contrastive predictive coding, of the same dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpc: Option<ProbeR2>,
    /// R² of a Kalman smoother fitted by expectation maximisation, of the same dimension.
    pub kalman: ProbeR2,
    /// R² of as many principal components of windows as the state has numbers.
    pub windows: ProbeR2,
    /// The same with the dimension that held-out sequences ask for.
    pub kalman_wide: WideR2,
    /// The same with more components.
    pub windows_wide: WideR2,
    /// How much of what is observed 3 to 8 steps earlier and later RAMP's beliefs tell, the observations around them themselves, and the present
    /// one alone, on test sequences: beliefs that tell no more than the present one are folded.
    pub foretold: Option<(f64, f64, f64)>,
    /// The starts, the chosen one first.
    pub starts: Vec<Tried>,
    /// How RAMP was trained.
    #[serde(flatten)]
    pub training: TrainingRun,
    /// What the figure shows: some test points, and a variable that no single observation shows (or the last one).
    portrait: Portrait,
}

/// Everything a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DynamicsResults {
    /// System by system.
    pub systems: Vec<SystemResults>,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<DynamicsRun>,
}

impl Experiment for DynamicsRun {
    type Results = DynamicsResults;

    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(DynamicsResults, Figures), LabError> {
        if self.systems.is_empty() {
            return Err(LabError::Invalid(
                "there must be at least one system".into(),
            ));
        }
        self.core.train.check()?;
        self.core.train.split(self.sequences)?;
        let mut systems = vec![];
        for &system in &self.systems {
            let own = folder.join(system.name());
            let file = own.join("found.json");
            // What a system gives does not depend on the others of the run.
            let alone = DynamicsRun {
                systems: vec![system],
                ..self.clone()
            };
            let found = match kept(&file, &alone) {
                Some(found) => found,
                None => {
                    let found = alone.one(system, &own, clock)?;
                    keep(&file, &alone, &found)?;
                    found
                }
            };
            systems.push(found);
        }
        let portraits: Vec<(&str, &Portrait)> = systems
            .iter()
            .map(|s: &SystemResults| (s.system.name(), &s.portrait))
            .collect();
        let figures = vec![("portraits", portraits_figure(&portraits)?)];
        let results = DynamicsResults {
            systems,
            info: RunInfo::new(self, clock),
        };
        Ok((results, figures))
    }
}

impl DynamicsRun {
    fn one(
        &self,
        system: System,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<SystemResults, LabError> {
        let record = |count, stream| {
            Recorded::new(
                system,
                self.size,
                count,
                self.steps,
                (self.core.seed, stream),
            )
        };
        let (train, test) = (record(self.sequences, TRAIN)?, record(self.test, TEST)?);
        let (data, test_data) = (train.dataset()?, test.dataset()?);
        let truths =
            |points: &[Points; 2]| probe((&points[0], &train.truth), (&points[1], &test.truth));
        let [known, others] = Scores::of(&train, &test)?;
        let dim = system.dimension();
        let windows = window_components([&known, &others], dim)?;
        let more_windows = window_components([&known, &others], WIDER * dim)?;
        let [smoothed, widely_smoothed] = kalman_smoothers([&known, &others], dim)?;
        let baselines = match &self.baselines {
            None => None,
            Some(settings) => {
                let task = BaselineTask {
                    train: &train,
                    test: &test,
                    folder,
                    threads: self.core.threads,
                };
                Some(task.run(&for_system(settings, system), clock)?)
            }
        };
        let embedded = |found: Embedded| {
            let mut points = [found.train, found.test].map(|values| Points {
                features: found.dim,
                values,
            });
            whiten(&mut points)?;
            truths(&points)
        };
        let [svae, cpc] = match baselines {
            None => [None, None],
            Some([svae, cpc]) => [Some(embedded(svae)?), Some(embedded(cpc)?)],
        };
        let (model, starts, training) = self.fitted(system.name(), dim, &data, folder, clock)?;
        // Wide baselines are compared with latents that have more numbers too.
        let ramp_wide = match &self.baselines {
            None => None,
            Some(_) => {
                let (what, dim) = (format!("{}, wide", system.name()), RAMP_WIDER * dim);
                let own = folder.join("wide");
                let (model, ..) = self.fitted(&what, dim, &data, &own, clock)?;
                let r2 = truths(&[embed(&model, &data)?, embed(&model, &test_data)?])?;
                Some(WideR2 { dim, r2 })
            }
        };
        let points = [embed(&model, &data)?, embed(&model, &test_data)?];
        let all: Vec<u32> = (0..self.test as u32).collect();
        let variables = system.variables();
        let hidden = variables.iter().position(|(_, shown)| !shown);
        let colour = hidden.unwrap_or(variables.len() - 1);
        Ok(SystemResults {
            system,
            dimension: dim,
            variables: variables.iter().map(|(name, _)| name.to_string()).collect(),
            shown: variables.iter().map(|(_, shown)| *shown).collect(),
            ramp: truths(&points)?,
            ramp_wide,
            svae,
            cpc,
            kalman: truths(&smoothed.points)?,
            windows: truths(&windows)?,
            kalman_wide: WideR2 {
                dim: widely_smoothed.dim,
                r2: truths(&widely_smoothed.points)?,
            },
            windows_wide: WideR2 {
                dim: more_windows[0].features,
                r2: truths(&more_windows)?,
            },
            foretold: model
                .foresight(&test_data, &all)?
                .map(|f| (f.beliefs, f.observations, f.present)),
            starts,
            training,
            portrait: Portrait::of(&points[1], &test.truth[colour], variables[colour].0),
        })
    }
}

impl DynamicsRun {
    /// A trained model with latents of so many numbers, the starts that were tried for it and how it was trained.
    fn fitted(
        &self,
        what: &str,
        dim: usize,
        data: &Dataset,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(Model, Vec<Tried>, TrainingRun), LabError> {
        let mut model = self.model(dim, data)?;
        let training = Training {
            what,
            train: &self.core.train,
            threads: self.core.threads,
            folder,
        };
        // A session that goes on does not choose again; what was tried is kept beside the state.
        let tried_file = folder.join("starts.json");
        let starts = match kept(&tried_file, self).filter(|_| training.goes_on()) {
            Some(starts) => starts,
            None => {
                let (train, threads) = (&self.core.train, self.core.threads);
                let tried = start(&mut model, data, train, threads, clock)?;
                let starts: Vec<Tried> = tried.iter().map(Tried::from).collect();
                keep(&tried_file, self, &starts)?;
                starts
            }
        };
        let (training, _) = training.run(self, &|_, _| Ok(None::<()>), clock, |t| {
            t.fit(&mut model, data)
        })?;
        Ok((model, starts, training))
    }
}

/// The settings of baselines with latents as a system's, for what is shown of it.
fn for_system(settings: &BaselineSettings, system: System) -> BaselineSettings {
    let mut settings = settings.clone();
    (settings.svae.dim, settings.cpc.dim) = (system.dimension(), system.dimension());
    settings.svae.likelihood = match system.is_video() {
        true => Likelihood::Bernoulli,
        false => Likelihood::Gaussian,
    };
    settings
}

/// Posterior means of all steps.
fn embed(model: &Model, data: &Dataset) -> Result<Points, LabError> {
    let mut points = Points {
        features: 0,
        values: vec![],
    };
    model.for_each_posterior(data, AT_ONCE, |part| {
        let means = part.latent(TimeAxis::LATENT)?.mean_array();
        points.features = means.shape()[2];
        points.values.extend_from_slice(means.values());
        Ok(())
    })?;
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Scale, StopAfter};
    use ramp::train::TrainSpec;

    fn small() -> DynamicsRun {
        let mut run = DynamicsRun::new(Scale::Quick, vec![System::DoubleWell, System::Lorenz], 3);
        (run.size, run.sequences, run.steps, run.test, run.hidden) = (12, 60, 12, 20, 16);
        let baselines = run.baselines.as_mut().unwrap();
        (baselines.svae.encoder, baselines.svae.decoder) = (vec![4], vec![4]);
        (baselines.cpc.encoder, baselines.cpc.context) = (vec![4], vec![4]);
        for learning in [&mut baselines.svae.learning, &mut baselines.cpc.learning] {
            (learning.iterations, learning.batch, learning.trial) = (6, 10, 2);
        }
        run.core.train = TrainSpec {
            iterations: 20,
            warmup: 2,
            mask_warmup: 10,
            batch: Some(30),
            ..run.core.train
        };
        run
    }

    #[test]
    fn every_system_gives_numbers_and_a_portrait() {
        let folder = tempfile::tempdir().unwrap();
        let done = small().run(folder.path(), &mut ()).unwrap();
        assert!(done.files.iter().all(|f| f.is_file()));
        let [well, lorenz] = &done.results.systems[..] else {
            panic!("two systems");
        };
        assert_eq!(well.variables, ["x", "v"]);
        assert_eq!(lorenz.ramp.usual.len(), 3);
        // Places are found at once; what is seen of them is what the start is made of.
        assert!(well.ramp.usual[0] > 0.8, "{:?}", well.ramp);
        assert!(well.kalman.tuned[0] > 0.8, "{:?}", well.kalman);
        assert!(
            lorenz.windows.tuned.iter().all(|r| *r > 0.3),
            "{:?}",
            lorenz.windows
        );
        // As many window components as the state has numbers say the place only; more of them say how fast it goes too.
        assert!(well.windows.tuned[1] < 0.5, "{:?}", well.windows);
        assert!(
            well.windows_wide.r2.tuned[1] > 0.7,
            "{:?}",
            well.windows_wide
        );
        let found = [&well.svae, &lorenz.svae, &well.cpc, &lorenz.cpc]
            .map(|r| r.as_ref().unwrap().usual.len());
        assert_eq!(found, [2, 3, 2, 3]);
        // Of a dot on a line there is one coordinate alone.
        assert_eq!(well.starts[0].start, "1 place");
        assert!(well.starts.is_sorted_by(|a, b| a.told >= b.told));
    }

    #[test]
    fn a_stopped_run_goes_on_to_the_same_numbers() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let whole = small().run(folders[0].path(), &mut ()).unwrap().results;
        // In the middle of a baseline, of pretraining and of training.
        for steps in [3, 12, 30, 48] {
            let stopped = small().run(folders[1].path(), &mut StopAfter(steps));
            assert!(
                matches!(stopped, Err(LabError::Interrupted { .. })),
                "{steps}"
            );
        }
        let rest = small().run(folders[1].path(), &mut ()).unwrap().results;
        for (a, b) in whole.systems.iter().zip(&rest.systems) {
            assert_eq!(a.ramp, b.ramp);
            assert_eq!((&a.svae, &a.cpc), (&b.svae, &b.cpc));
            assert_eq!(a.starts, b.starts);
        }
        // A system that is done stays done whatever others are asked for.
        let mut one = small();
        one.systems = vec![System::Lorenz];
        let again = one
            .run(folders[1].path(), &mut StopAfter(1))
            .unwrap()
            .results;
        assert_eq!(again.systems[0].ramp, rest.systems[1].ramp);
    }
}
