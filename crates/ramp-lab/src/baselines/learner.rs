//! A model of sequences as a problem for the training loop: minibatches, gradients in parallel, random starts to choose among.

use super::draws;
use super::sequences::Sequences;
use crate::error::LabError;
use crate::metrics::mean;
use ramp::train::{
    Control, Decay, Event, Group, Identity, Problem, Record, TrainError, TrainSpec, Trainer,
    read_records,
};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Parts of a batch whose gradients are summed on their own: fixed, so that threads do not change the result.
const PARTS: usize = 8;

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

/// The sequences of one step, and where its random numbers come from.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Their numbers in the data.
    pub sequences: Vec<usize>,
    seed: u64,
    iteration: usize,
}

/// The gradients of parts of a batch: room that is reused from step to step.
pub type Parts = Vec<(f64, Vec<f32>)>;

impl Batch {
    pub(super) fn new(sequences: Vec<usize>, seed: u64, iteration: usize) -> Self {
        Batch {
            sequences,
            seed,
            iteration,
        }
    }

    /// The random numbers of the sequence at a place of the batch.
    pub(super) fn draws(&self, place: usize) -> ChaCha8Rng {
        // Stream 0 chose the batch.
        draws(self.seed, self.iteration, 1 + place as u64)
    }

    /// Adds up what every sequence, by its place in the batch, adds to the objective and to the gradient, which is written
    /// over: in parallel, and in the same order on any number of threads.
    pub(super) fn sum(
        &self,
        parts: &mut Parts,
        gradient: &mut [f32],
        each: impl Fn(usize, &mut [f32]) -> f64 + Sync,
    ) -> f64 {
        let (all, numbers) = (self.sequences.len(), gradient.len());
        let size = all.div_ceil(PARTS).max(1);
        parts.resize_with(all.div_ceil(size), Default::default);
        parts
            .par_iter_mut()
            .enumerate()
            .for_each(|(part, (value, gradient))| {
                gradient.clear();
                gradient.resize(numbers, 0.0);
                let places = part * size..all.min((part + 1) * size);
                *value = places.map(|place| each(place, gradient)).sum();
            });
        let mut value = 0.0;
        for (number, (more, part)) in parts.iter().enumerate() {
            value += more;
            let pieces = gradient
                .par_chunks_mut(1 << 14)
                .zip(part.par_chunks(1 << 14));
            pieces.for_each(|(to, from)| match number {
                0 => to.copy_from_slice(from),
                _ => to.iter_mut().zip(from).for_each(|(to, from)| *to += from),
            });
        }
        value
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

/// A model of sequences that turns each observation into a point of the plane.
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

    /// A point for each observation of a sequence, two numbers each.
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
        model
            .learning()
            .train()
            .check()
            .map_err(ramp::Error::from)?;
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
            if read_records(&place(start))?.len() < trial {
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
            let records = read_records(&place(start))?;
            let values: Vec<f64> = records[..trial].iter().map(|r| r.free_energy).collect();
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

    /// The point of every observation, sequence by sequence and step by step, two numbers each.
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
        self.batch.iteration = iteration + 1;
        let size = model.learning().batch.min(self.data.count());
        let mut rng = draws(self.batch.seed, self.batch.iteration, 0);
        self.batch.sequences.clear();
        self.batch
            .sequences
            .extend(sample(&mut rng, self.data.count(), size));
        self.batch.sequences.sort_unstable();
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
                step: self.batch.iteration,
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::baselines::{Svae, SvaeSpec};
    use crate::experiments::pendulum::data::{Pendulum, Videos};
    use rand_distr::Distribution;
    use rand_distr::StandardNormal;

    /// Checks a gradient in `f32` by central differences, array by array: along directions half random, half uphill within the
    /// array alone, so that each derivative is well above rounding; then number by number wherever it is large in its array.
    pub fn check_gradient<M: SequenceModel>(
        model: &M,
        start: &[f32],
        data: &dyn Sequences,
        batch: &Batch,
    ) {
        let mut parts = vec![];
        let mut at = |parameters: &[f32]| {
            let mut gradient = vec![f32::NAN; parameters.len()];
            let value = model.gradient(parameters, data, batch, &mut parts, &mut gradient);
            (value, gradient)
        };
        let (_, gradient) = at(start);
        let mut slope = |from: usize, direction: &[f64], step: f64| {
            let [high, low] = [step, -step].map(|by| {
                let mut moved = start.to_vec();
                for (x, d) in moved[from..].iter_mut().zip(direction) {
                    *x = (f64::from(*x) + by * d) as f32;
                }
                at(&moved).0
            });
            (high - low) / (2.0 * step)
        };
        let rng = &mut ChaCha8Rng::seed_from_u64(9);
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let overall = norm(&gradient.iter().map(|&g| f64::from(g)).collect::<Vec<_>>());
        let mut end = 0;
        for Array { name, span, .. } in model.arrays() {
            assert_eq!(span.start, end, "{name} follows the array before it");
            end = span.end;
            let uphill: Vec<f64> = gradient[span.clone()]
                .iter()
                .map(|&g| f64::from(g))
                .collect();
            let own = norm(&uphill);
            assert!(
                own > 1e-4 * overall,
                "{name} has no gradient: {own} of {overall}"
            );
            for _ in 0..3 {
                let random: Vec<f64> = uphill.iter().map(|_| StandardNormal.sample(rng)).collect();
                let length = norm(&random);
                let direction: Vec<f64> = random
                    .iter()
                    .zip(&uphill)
                    .map(|(r, u)| r / length + 0.5 * u / own)
                    .collect();
                let expected: f64 = direction.iter().zip(&uphill).map(|(d, u)| d * u).sum();
                let found = slope(span.start, &direction, 4e-3);
                assert!(
                    (found - expected).abs() < 1e-2 * expected.abs() + 2e-3 * own + 2e-5 * overall,
                    "{name}: {expected} by backward, {found} by differences"
                );
            }
            let largest = uphill.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            // The largest few of every array: a swapped index cannot hide behind larger arrays.
            let mut order: Vec<usize> = (0..uphill.len()).collect();
            order.sort_by(|&a, &b| uphill[b].abs().total_cmp(&uphill[a].abs()));
            for &i in order.iter().take(24) {
                let found = slope(span.start + i, &[1.0], 5e-3);
                assert!(
                    (found - uphill[i]).abs() < 1e-2 * largest + 2e-5 * overall,
                    "number {i} of {name}: {} by backward, {found} by differences",
                    uphill[i]
                );
            }
        }
        assert_eq!(end, start.len(), "every number belongs to an array");
    }

    fn videos() -> Videos {
        let sizes = Pendulum {
            size: 10,
            sequences: 12,
            steps: 9,
        };
        sizes.videos(3, 0).unwrap()
    }

    /// A small SVAE at its start.
    fn small(videos: &Videos) -> Learner<Svae> {
        let mut spec = SvaeSpec::default();
        (spec.learning.iterations, spec.learning.batch) = (8, 11);
        (spec.learning.starts, spec.learning.trial) = (3, 5);
        Learner::new(spec, videos).unwrap()
    }

    fn trainer(of: &Learner<Svae>) -> Trainer<'static, Learner<Svae>> {
        Trainer::new(of.train_spec()).unwrap()
    }

    #[test]
    fn threads_and_interruptions_change_nothing() {
        let videos = videos();
        let mut whole = small(&videos);
        let fit = trainer(&whole)
            .threads(1)
            .train(&mut whole.on(&videos).unwrap())
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut stopped = small(&videos);
        let outcome = trainer(&stopped)
            .threads(3)
            .checkpoints(folder.path(), 100)
            .observer(|event: &Event<'_, Learner<Svae>>| match event {
                Event::Step { record, .. } if record.iteration == 5 => Control::Stop,
                _ => Control::Continue,
            })
            .train(&mut stopped.on(&videos).unwrap());
        assert!(matches!(
            outcome,
            Err(LabError::Ramp(ramp::Error::Train(
                TrainError::Interrupted { iteration: 5, .. }
            )))
        ));
        let mut resumed = small(&videos);
        let again = trainer(&resumed)
            .threads(2)
            .checkpoints(folder.path(), 100)
            .train(&mut resumed.on(&videos).unwrap())
            .unwrap();
        assert_eq!(fit.records, again.records);
        assert_eq!(whole.parameters, resumed.parameters);
        assert_eq!(
            whole.embed(&videos).unwrap(),
            resumed.embed(&videos).unwrap()
        );

        // Fewer sequences, and another model of the same ones.
        let refused = |videos: &Videos, mut other: Learner<Svae>| {
            let outcome = trainer(&other)
                .checkpoints(folder.path(), 100)
                .train(&mut other.on(videos).unwrap());
            outcome.unwrap_err().to_string()
        };
        let fewer = videos.first(11);
        let message = refused(&fewer, small(&fewer));
        assert!(
            message.contains("made with 12 samples but the data now has 11"),
            "{message}"
        );
        let mut spec = small(&videos).model().spec().clone();
        spec.learning.seed = 1;
        let message = refused(&videos, Learner::new(spec, &videos).unwrap());
        assert!(message.contains("belongs to another model"), "{message}");
    }

    #[test]
    fn of_several_starts_the_best_is_kept() {
        let videos = videos();
        let folder = tempfile::tempdir().unwrap();
        let mut chosen = small(&videos);
        let mut heard = vec![vec![]; 3];
        // Stopped on the way, it goes on where it was.
        let mut most = 7;
        let stopped = chosen.choose_start(&videos, folder.path(), None, &mut |start, record| {
            heard[start].push(record.free_energy);
            most -= 1;
            match most {
                0 => Control::Stop,
                _ => Control::Continue,
            }
        });
        assert!(stopped.is_err());
        let place = chosen
            .choose_start(&videos, folder.path(), None, &mut |start, record| {
                heard[start].push(record.free_energy);
                Control::Continue
            })
            .unwrap();
        assert_eq!(heard.iter().map(Vec::len).collect::<Vec<_>>(), [5; 3]);
        let last: Vec<f64> = heard.iter().map(|values| values[4]).collect();
        let best = (0..3).max_by(|&a, &b| last[a].total_cmp(&last[b])).unwrap();
        assert_eq!(place, folder.path().join(format!("start-{best}")));
        // Training goes on from the trial, and ends as if it had begun there.
        let again = trainer(&chosen)
            .checkpoints(&place, 100)
            .train(&mut chosen.on(&videos).unwrap())
            .unwrap();
        let mut whole = small(&videos);
        whole.initialise(&videos, best);
        let fit = trainer(&whole)
            .train(&mut whole.on(&videos).unwrap())
            .unwrap();
        assert_eq!(fit.records, again.records);
        assert_eq!(whole.parameters, chosen.parameters);
    }

    #[test]
    fn a_bound_rises_and_a_wild_rate_is_told() {
        let videos = videos();
        let mut spec = SvaeSpec::default();
        spec.learning.iterations = 60;
        let mut svae = Learner::<Svae>::new(spec.clone(), &videos).unwrap();
        let fit = trainer(&svae)
            .train(&mut svae.on(&videos).unwrap())
            .unwrap();
        assert!(fit.records[59].free_energy > fit.records[0].free_energy);

        spec.learning.learning_rate = -1.0;
        assert!(Learner::<Svae>::new(spec.clone(), &videos).is_err());
        spec.learning.learning_rate = 1e9;
        let mut wild = Learner::<Svae>::new(spec, &videos).unwrap();
        let told = trainer(&wild).train(&mut wild.on(&videos).unwrap());
        let told = told.unwrap_err().to_string();
        assert!(told.contains("SVAE lost its way") && told.contains("smaller learning rate"));
    }
}
