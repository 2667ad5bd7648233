//! A model of sequences as a problem for the training loop: minibatches, gradients in parallel, random starts to choose among.

mod batch;
#[cfg(test)]
pub(super) mod tests;

pub use batch::{Batch, Parts};

use super::sequences::Sequences;
use crate::error::LabError;
use crate::metrics::mean;
use ramp::train::{
    Control, Decay, Event, Group, Identity, Problem, Record, TrainError, TrainSpec, Trainer,
    read_records,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How a model is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearningSpec {
    /// Steps to take.
    pub iterations: usize,
    /// Sequences per step; all of them if there are fewer.
    pub batch: usize,
    /// The step size of Adam at its highest.
    pub learning_rate: f64,
    /// How it changes.
    pub decay: Decay,
    /// Random starts among which [`Learner::choose_start`] chooses.
    pub starts: usize,
    /// Steps after which it does.
    pub trial: usize,
    /// The seed of weights, batches and draws.
    pub seed: u64,
}

impl LearningSpec {
    /// What the training loop has to know.
    pub fn train(&self) -> TrainSpec {
        TrainSpec {
            iterations: self.iterations,
            batch: Some(self.batch),
            learning_rate: self.learning_rate,
            decay: self.decay.clone(),
            ..TrainSpec::default()
        }
    }
}

/// An array among a model's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// What it is.
    pub name: String,
    /// Where it lies.
    pub span: Range<usize>,
    /// The part of the learning rate that it gets.
    pub part: f64,
}

/// A model of sequences that turns each observation into a point.
///
/// All it learns lies in one flat slice, so that optimiser and checkpoints need not know what it is.
pub trait SequenceModel: Clone + Send + Sync {
    /// How people call it.
    const NAME: &'static str;
    /// Its settings.
    type Spec: Clone + Serialize;

    /// The model of data like these.
    fn new(spec: Self::Spec, data: &dyn Sequences) -> Result<Self, LabError>;

    /// Its settings.
    fn spec(&self) -> &Self::Spec;

    /// How it is learned.
    fn learning(&self) -> &LearningSpec;

    /// What lies where among its numbers, one array after the other.
    fn arrays(&self) -> Vec<Array>;

    /// Random weights, which may look at the data.
    fn initialise(&self, data: &dyn Sequences, rng: &mut ChaCha8Rng) -> Vec<f32>;

    /// The objective, which is to become large; its gradient is written over `gradient`.
    fn gradient(
        &self,
        parameters: &[f32],
        data: &dyn Sequences,
        batch: &Batch,
        parts: &mut Parts,
        gradient: &mut [f32],
    ) -> f64;

    /// The numbers of a point.
    fn dim(&self) -> usize;

    /// A point for each observation of a sequence, [`Self::dim`] numbers each.
    fn points(&self, parameters: &[f32], data: &dyn Sequences, sequence: usize) -> Vec<f64>;
}

/// A model and its weights. The same seed gives the same numbers on any number of threads.
///
/// ```
/// use ramp::train::Trainer;
/// use ramp_lab::baselines::{Cpc, CpcSpec, Learner, LearningSpec};
/// use ramp_lab::experiments::pendulum::data::Pendulum;
///
/// let videos = Pendulum { size: 8, sequences: 12, steps: 15 }.videos(1, 0)?;
/// let mut spec = CpcSpec::default();
/// spec.learning = LearningSpec { iterations: 3, ..spec.learning };
/// let mut cpc = Learner::<Cpc>::new(spec, &videos)?;
/// let fit = Trainer::new(cpc.train_spec())?.train(&mut cpc.on(&videos)?)?;
/// assert_eq!(fit.records.len(), 3);
/// assert_eq!(cpc.embed(&videos)?.len(), 12 * 15 * 2);
/// # Ok::<(), ramp_lab::error::LabError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Learner<M> {
    pub(super) model: M,
    pub(super) parameters: Vec<f32>,
    /// Width of an observation.
    width: usize,
}

impl<M: SequenceModel> Learner<M> {
    /// A model at its first random start.
    pub fn new(spec: M::Spec, data: &dyn Sequences) -> Result<Self, LabError> {
        if data.count() == 0 || data.steps() == 0 {
            return Err(LabError::Invalid(format!(
                "{} needs at least one sequence with at least one step",
                M::NAME
            )));
        }
        let model = M::new(spec, data)?;
        model.learning().train().check()?;
        let mut learner = Learner {
            model,
            parameters: vec![],
            width: data.width(),
        };
        learner.initialise(data, 0);
        Ok(learner)
    }

    /// Goes to a random start.
    fn initialise(&mut self, data: &dyn Sequences, start: usize) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.model.learning().seed);
        rng.set_stream(start as u64);
        self.parameters = self.model.initialise(data, &mut rng);
    }

    /// Takes the first [`LearningSpec::trial`] steps from each of [`LearningSpec::starts`] random starts, goes to the one that
    /// got furthest and tells the folder in which training goes on: where the plane is folded early it stays folded, and
    /// the objective knows. `watch` hears of the start and of each step. Each start has a folder of checkpoints, so that an
    /// interrupted choice goes on where it was.
    pub fn choose_start(
        &mut self,
        data: &dyn Sequences,
        folder: &Path,
        threads: Option<usize>,
        watch: &mut dyn FnMut(usize, &Record) -> Control,
    ) -> Result<PathBuf, LabError> {
        let learning = self.model.learning().clone();
        let trial = learning.trial.min(learning.iterations);
        let place = |start: usize| folder.join(format!("start-{start}"));
        let mut best: Option<(f64, usize)> = None;
        for start in 0..learning.starts {
            if read_records(&place(start))?.steps() < trial {
                self.initialise(data, start);
                let mut stopped = false;
                let mut trainer = Trainer::new(learning.train())?
                    .checkpoints(place(start), trial)
                    .observer(|event: &Event<'_, Learner<M>>| match event {
                        Event::Step { record, .. } => {
                            stopped = watch(start, record) == Control::Stop;
                            match stopped || record.iteration >= trial {
                                true => Control::Stop,
                                false => Control::Continue,
                            }
                        }
                        _ => Control::Continue,
                    });
                if let Some(threads) = threads {
                    trainer = trainer.threads(threads);
                }
                let tried = trainer.train(&mut self.on(data)?);
                drop(trainer);
                match tried {
                    Err(LabError::Ramp(ramp::Error::Train(TrainError::Interrupted { .. })))
                        if !stopped => {}
                    tried => drop(tried?),
                }
            }
            let records = read_records(&place(start))?.into_vec();
            let tried = records.iter().filter(|r| r.iteration <= trial);
            let values: Vec<f64> = tried.map(|r| r.free_energy).collect();
            // Batches differ: an average over some of the last.
            let reached = mean(&values[values.len() - values.len().div_ceil(5)..]);
            if best.is_none_or(|(most, _)| reached > most) {
                best = Some((reached, start));
            }
        }
        let (_, chosen) = best.unwrap_or_default();
        self.initialise(data, chosen);
        Ok(place(chosen))
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The settings of its training loop.
    pub fn train_spec(&self) -> TrainSpec {
        self.model.learning().train()
    }

    /// The problem of learning from these sequences.
    pub fn on<'a>(&'a mut self, data: &'a dyn Sequences) -> Result<Learning<'a, M>, LabError> {
        self.check_width(data)?;
        let seed = self.model.learning().seed;
        Ok(Learning {
            learner: self,
            data,
            batch: Batch::new(vec![], seed, 0),
            parts: vec![],
        })
    }

    /// The point of every observation, sequence by sequence and step by step.
    pub fn embed(&self, data: &dyn Sequences) -> Result<Vec<f64>, LabError> {
        self.for_each(data, |sequence| {
            self.model.points(&self.parameters, data, sequence)
        })
    }

    pub(super) fn for_each(
        &self,
        data: &dyn Sequences,
        points: impl Fn(usize) -> Vec<f64> + Sync + Send,
    ) -> Result<Vec<f64>, LabError> {
        self.check_width(data)?;
        let each: Vec<Vec<f64>> = (0..data.count()).into_par_iter().map(points).collect();
        Ok(each.concat())
    }

    pub(super) fn check_width(&self, data: &dyn Sequences) -> Result<(), LabError> {
        if data.width() == self.width {
            return Ok(());
        }
        Err(LabError::Invalid(format!(
            "{} was made for observations of {} numbers, these have {}",
            M::NAME,
            self.width,
            data.width()
        )))
    }
}

/// A learner and the sequences it learns from.
pub struct Learning<'a, M> {
    learner: &'a mut Learner<M>,
    data: &'a dyn Sequences,
    batch: Batch,
    parts: Parts,
}

impl<M: SequenceModel> Problem for Learning<'_, M> {
    type Model = Learner<M>;
    type Error = LabError;

    fn model(&self) -> &Learner<M> {
        self.learner
    }

    fn parameters(&self) -> &[f32] {
        &self.learner.parameters
    }

    fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.learner.parameters
    }

    fn groups(&self) -> Vec<Group> {
        let arrays = self.learner.model.arrays().into_iter();
        arrays
            .map(|array| Group {
                span: array.span,
                decays: false,
                part: array.part,
            })
            .collect()
    }

    fn step(&mut self, iteration: usize, gradient: &mut [f32]) -> Result<f64, LabError> {
        let Learner {
            model, parameters, ..
        } = &*self.learner;
        let (size, all) = (model.learning().batch, self.data.count());
        self.batch.draw(iteration + 1, size, all);
        let value = model.gradient(
            parameters,
            self.data,
            &self.batch,
            &mut self.parts,
            gradient,
        );
        match value.is_finite() {
            true => Ok(value),
            false => Err(LabError::Diverged {
                method: M::NAME,
                step: iteration + 1,
            }),
        }
    }

    fn identity(&self) -> Result<Identity, LabError> {
        let settings = serde_json::to_value((
            M::NAME,
            self.learner.model.spec(),
            self.data.steps(),
            self.data.width(),
        ));
        Ok(Identity {
            model: settings.map_err(|e| LabError::Json {
                what: M::NAME.into(),
                source: e,
            })?,
            samples: self.data.count(),
            // Made from a seed, which is among the settings.
            data: 0,
        })
    }
}
