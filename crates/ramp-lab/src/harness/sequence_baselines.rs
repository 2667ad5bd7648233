//! Baselines of sequences within an experiment: SVAE and CPC, trained on the same sequences, as points for every step.

use crate::baselines::{Cpc, CpcSpec, Learner, SequenceModel, Sequences, Svae, SvaeSpec};
use crate::error::LabError;
use crate::harness::{Step, Training, Watch};
use ramp::train::{Control, TrainError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The settings of all baselines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineSettings {
    /// The structured variational autoencoder.
    pub svae: SvaeSpec,
    /// Contrastive predictive coding.
    pub cpc: CpcSpec,
}

/// The points of training and test sequences, step by step, sequence by sequence.
pub(crate) struct Embedded {
    pub dim: usize,
    pub train: Vec<f64>,
    pub test: Vec<f64>,
}

/// What all baselines learn from, and where their states are kept.
pub(crate) struct BaselineTask<'a> {
    pub train: &'a dyn Sequences,
    pub test: &'a dyn Sequences,
    pub folder: &'a Path,
    pub threads: Option<usize>,
}

impl BaselineTask<'_> {
    /// Trains SVAE and CPC, or goes on doing so.
    pub fn run(
        &self,
        settings: &BaselineSettings,
        watch: &mut dyn Watch,
    ) -> Result<[Embedded; 2], LabError> {
        Ok([
            self.train::<Svae>(settings.svae.clone(), "svae", watch)?,
            self.train::<Cpc>(settings.cpc.clone(), "cpc", watch)?,
        ])
    }

    fn train<M: SequenceModel>(
        &self,
        spec: M::Spec,
        name: &str,
        watch: &mut dyn Watch,
    ) -> Result<Embedded, LabError> {
        let mut learner = Learner::<M>::new(spec, self.train)?;
        let mut folder = self.folder.join(name);
        if learner.model().learning().starts > 1 {
            folder = self.choose_start(&mut learner, &folder, watch)?;
        }
        let training = Training {
            what: M::NAME,
            train: &learner.train_spec(),
            threads: self.threads,
            folder: &folder,
        };
        training.run(&(), &|_, _| Ok(None::<()>), watch, |t| {
            t.train(&mut learner.on(self.train)?)
        })?;
        Ok(Embedded {
            dim: learner.model().dim(),
            train: learner.embed(self.train)?,
            test: learner.embed(self.test)?,
        })
    }

    /// The folder of the best of several starts.
    fn choose_start<M: SequenceModel>(
        &self,
        learner: &mut Learner<M>,
        folder: &Path,
        watch: &mut dyn Watch,
    ) -> Result<std::path::PathBuf, LabError> {
        let learning = learner.model().learning().clone();
        let what = format!("{}, choosing a start", M::NAME);
        let (trial, mut taken) = (learning.trial.min(learning.iterations), 0);
        let mut begun = false;
        let mut step = |start: usize, record: &ramp::train::Record| -> Control {
            taken = start * trial + record.iteration;
            if !std::mem::replace(&mut begun, true) {
                watch.start(&what, taken - 1, trial * learning.starts);
            }
            watch.step(Step {
                iteration: taken,
                ..record.into()
            })
        };
        let chosen = learner.choose_start(self.train, folder, self.threads, &mut step);
        chosen.map_err(|error| match error {
            LabError::Ramp(ramp::Error::Train(TrainError::Interrupted { .. })) => {
                LabError::Interrupted {
                    what,
                    iteration: taken,
                    iterations: trial * learning.starts,
                }
            }
            other => other,
        })
    }
}
