//! Learning from sequences by Adam on minibatches, whatever the model: steps, checkpoints, a way to stop.

use super::adam::{Adam, Step};
use super::sequences::Sequences;
use super::{checkpoint, draws};
use crate::error::LabError;
use crate::metrics::mean;
use ramp::train::{Control, Decay, TrainSpec};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::ops::Range;
use std::path::Path;

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
    fn schedule(&self) -> TrainSpec {
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

    /// Adds up what every sequence, by its place in the batch, adds to the objective and to the gradient of so many numbers:
    /// in parallel, and in the same order on any number of threads.
    pub(super) fn sum(
        &self,
        numbers: usize,
        each: impl Fn(usize, &mut [f32]) -> f64 + Sync,
    ) -> (f64, Vec<f32>) {
        let places: Vec<usize> = (0..self.sequences.len()).collect();
        let parts: Vec<(f64, Vec<f32>)> = places
            .par_chunks(places.len().div_ceil(PARTS).max(1))
            .map(|part| {
                let mut gradient = vec![0.0; numbers];
                let value = part.iter().map(|&place| each(place, &mut gradient)).sum();
                (value, gradient)
            })
            .collect();
        let mut parts = parts.into_iter();
        let (mut value, mut gradient) = parts.next().unwrap_or((0.0, vec![0.0; numbers]));
        for (more, part) in parts {
            value += more;
            gradient
                .par_chunks_mut(1 << 14)
                .zip(part.par_chunks(1 << 14))
                .for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(to, from)| *to += from));
        }
        (value, gradient)
    }
}

/// A model of sequences that a [`Learner`] can learn and that turns each observation into a point of the plane.
///
/// All it learns lies in one flat array, so that optimiser and checkpoints need not know what it is.
pub trait SequenceModel: Clone + Sync {
    /// How people call it.
    const NAME: &'static str;
    /// Its settings.
    type Spec: Clone + PartialEq + Serialize + DeserializeOwned;

    /// The model of data like these.
    fn new(spec: Self::Spec, data: &dyn Sequences) -> Result<Self, LabError>;

    /// Its settings.
    fn spec(&self) -> &Self::Spec;

    /// How it is learned.
    fn learning(&self) -> &LearningSpec;

    /// The weights that see the observations, and the part of the learning rate they get.
    fn wide_layer(&self) -> (Range<usize>, f64);

    /// A random start, which may look at the data.
    fn start(&self, data: &dyn Sequences, rng: &mut ChaCha8Rng) -> Vec<f32>;

    /// The objective, which is to become large, and its gradient.
    fn gradient(&self, parameters: &[f32], data: &dyn Sequences, batch: &Batch) -> (f64, Vec<f32>);

    /// A point for each observation of a sequence, two numbers each.
    fn points(&self, parameters: &[f32], data: &dyn Sequences, sequence: usize) -> Vec<f64>;
}

/// A model in the course of learning. The same seed gives the same numbers on any number of threads.
///
/// ```
/// use ramp::train::Control;
/// use ramp_lab::baselines::{Cpc, CpcSpec, Learner, LearningSpec};
/// use ramp_lab::pendulum::Pendulum;
///
/// let films = Pendulum { size: 8, sequences: 12, steps: 15 }.films(1, 0)?;
/// let mut spec = CpcSpec::default();
/// spec.learning = LearningSpec { iterations: 3, ..spec.learning };
/// let mut cpc = Learner::<Cpc>::new(spec, &films)?;
/// let mut history = vec![];
/// cpc.train(&films, &mut |_, objective| {
///     history.push(objective);
///     Ok(Control::Continue)
/// })?;
/// assert_eq!(history.len(), 3);
/// assert_eq!(cpc.embed(&films)?.len(), 12 * 15 * 2);
/// # Ok::<(), ramp_lab::error::LabError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Learner<M> {
    pub(super) model: M,
    pub(super) parameters: Vec<f32>,
    memory: Adam,
    iteration: usize,
    /// Width of an observation.
    width: usize,
    /// Sequences to learn from and steps in each.
    learned: [usize; 2],
}

impl<M: SequenceModel> Learner<M> {
    /// A model at its random start.
    pub fn new(spec: M::Spec, data: &dyn Sequences) -> Result<Self, LabError> {
        if data.count() == 0 || data.steps() == 0 {
            return Err(LabError::Invalid(format!(
                "{} needs at least one sequence with at least one step",
                M::NAME
            )));
        }
        let model = M::new(spec, data)?;
        model.learning().schedule().check()?;
        let learned = [data.count(), data.steps()];
        let mut learner = Learner {
            model,
            parameters: vec![],
            memory: Adam::new(0),
            iteration: 0,
            width: data.width(),
            learned,
        };
        learner.begin(data, 0);
        Ok(learner)
    }

    /// Goes to a random start.
    fn begin(&mut self, data: &dyn Sequences, start: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.model.learning().seed);
        rng.set_stream(start);
        self.parameters = self.model.start(data, &mut rng);
        self.memory = Adam::new(self.parameters.len());
        self.iteration = 0;
    }

    /// Takes the first [`LearningSpec::trial`] steps from each of [`LearningSpec::starts`] random starts and keeps the one that
    /// got furthest: where the plane is folded early it stays folded, and the objective knows. `watch` hears of the number of
    /// the start and of the objective of each step. Does nothing once steps were taken.
    pub fn choose_start(
        &mut self,
        data: &dyn Sequences,
        watch: &mut dyn FnMut(usize, f64) -> Control,
    ) -> Result<Control, LabError> {
        let learning = self.model.learning().clone();
        if self.iteration > 0 || learning.starts < 2 {
            return Ok(Control::Continue);
        }
        let trial = learning.trial.min(learning.iterations);
        let mut best: Option<(f64, Self)> = None;
        for start in 0..learning.starts {
            let mut tried = self.clone();
            tried.begin(data, start as u64);
            let mut values = Vec::with_capacity(trial);
            while tried.iteration < trial {
                values.push(tried.step(data)?);
                if watch(start, values[values.len() - 1]) == Control::Stop {
                    return Ok(Control::Stop);
                }
            }
            // Batches differ: an average over some of the last.
            let reached = mean(&values[values.len() - values.len().div_ceil(5)..]);
            if best.as_ref().is_none_or(|(most, _)| reached > *most) {
                best = Some((reached, tried));
            }
        }
        if let Some((_, chosen)) = best {
            *self = chosen;
        }
        Ok(Control::Continue)
    }

    /// Steps taken.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Takes a step and returns the objective of its batch before it, in nats per observation.
    pub fn step(&mut self, data: &dyn Sequences) -> Result<f64, LabError> {
        self.check_width(data)?;
        let learning = self.model.learning();
        let rate = learning.schedule().rate(self.iteration);
        self.iteration += 1;
        let mut rng = draws(learning.seed, self.iteration, 0);
        let size = learning.batch.min(data.count());
        let mut sequences = sample(&mut rng, data.count(), size).into_vec();
        sequences.sort_unstable();
        let batch = Batch::new(sequences, learning.seed, self.iteration);
        let (value, gradient) = self.model.gradient(&self.parameters, data, &batch);
        if !value.is_finite() {
            return Err(LabError::Invalid(format!(
                "{} lost its way: the objective of step {} is not a number; use a smaller learning rate",
                M::NAME,
                self.iteration
            )));
        }
        let (wide, part) = self.model.wide_layer();
        let (first, second) = self.memory.whole();
        for (range, rate) in [
            (0..wide.start, rate),
            (wide.clone(), part * rate),
            (wide.end..gradient.len(), rate),
        ] {
            Step::new(self.iteration, rate).apply(
                &gradient[range.clone()],
                &mut self.parameters[range.clone()],
                (&mut first[range.clone()], &mut second[range]),
            );
        }
        Ok(value)
    }

    /// Takes the steps that are left; `watch` hears of the objective after each, and may save the state or stop.
    pub fn train(
        &mut self,
        data: &dyn Sequences,
        watch: &mut dyn FnMut(&Self, f64) -> Result<Control, LabError>,
    ) -> Result<Control, LabError> {
        while self.iteration < self.model.learning().iterations {
            let value = self.step(data)?;
            if watch(self, value)? == Control::Stop {
                return Ok(Control::Stop);
            }
        }
        Ok(Control::Continue)
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

    /// Writes the state to a file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), LabError> {
        let settings = (self.model.spec(), self.learned);
        checkpoint::save(M::NAME, path, settings, self.iteration, &self.arrays())
    }

    /// Goes on from a file, if it is there; refuses the state of other settings or data.
    pub fn resume(&mut self, path: &Path) -> Result<(), LabError> {
        let settings = (self.model.spec().clone(), self.learned);
        if let Some((iteration, stored)) =
            checkpoint::load(M::NAME, path, &settings, &self.arrays())?
        {
            let mut stored = stored.into_iter();
            let mut next = || stored.next().unwrap_or_default();
            self.parameters = next();
            self.memory = Adam::from_parts(next(), next());
            self.iteration = iteration;
        }
        Ok(())
    }

    fn arrays(&self) -> [(&'static str, &[f32]); 3] {
        [
            ("parameters", &self.parameters),
            ("parameters.first", self.memory.first()),
            ("parameters.second", self.memory.second()),
        ]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::baselines::{Svae, SvaeSpec};
    use crate::pendulum::Pendulum;
    use rand_distr::Distribution;
    use rand_distr::StandardNormal;

    /// Checks a gradient in `f32` by central differences along directions half random, half uphill, so that each derivative is
    /// well above rounding; then number by number wherever the gradient is large.
    pub fn check_directions(start: &[f32], at: impl Fn(&[f32]) -> (f64, Vec<f32>)) {
        let (_, gradient) = at(start);
        let slope = |direction: &[f64], step: f64| {
            let [high, low] = [step, -step].map(|by| {
                let moved = start.iter().zip(direction);
                let moved: Vec<f32> = moved
                    .map(|(&x, d)| (f64::from(x) + by * d) as f32)
                    .collect();
                at(&moved).0
            });
            (high - low) / (2.0 * step)
        };
        let rng = &mut ChaCha8Rng::seed_from_u64(9);
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let uphill: Vec<f64> = gradient.iter().map(|&g| f64::from(g)).collect();
        for _ in 0..5 {
            let random: Vec<f64> = uphill.iter().map(|_| StandardNormal.sample(rng)).collect();
            let (a, b) = (norm(&random), norm(&uphill));
            let direction: Vec<f64> = random
                .iter()
                .zip(&uphill)
                .map(|(r, u)| r / a + 0.5 * u / b)
                .collect();
            let expected: f64 = direction.iter().zip(&uphill).map(|(d, u)| d * u).sum();
            let found = slope(&direction, 2e-3);
            assert!(
                (found - expected).abs() < 3e-3 * expected.abs(),
                "{expected} by backward, {found} by differences"
            );
        }
        let largest = uphill.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for (i, &expected) in uphill.iter().enumerate().rev() {
            // Every number of the dynamics, which come last, and all that matter elsewhere.
            if expected.abs() < 0.1 * largest && i + 16 < uphill.len() {
                continue;
            }
            let mut one = vec![0.0; uphill.len()];
            one[i] = 1.0;
            let found = slope(&one, 5e-3);
            assert!(
                (found - expected).abs() < 5e-3 * (largest + expected.abs()),
                "number {i}: {expected} by backward, {found} by differences"
            );
        }
    }

    #[test]
    fn threads_and_interruptions_change_nothing() {
        let sizes = Pendulum {
            size: 10,
            sequences: 12,
            steps: 9,
        };
        let films = sizes.films(3, 0).unwrap();
        let spec = || {
            let mut spec = SvaeSpec::default();
            (spec.learning.iterations, spec.learning.batch) = (8, 11);
            spec
        };
        let start = || Learner::<Svae>::new(spec(), &films).unwrap();
        let on = |threads: usize, mut from: Learner<Svae>, until: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let control = pool.install(|| {
                from.train(&films, &mut |now, _| {
                    Ok(match now.iteration() < until {
                        true => Control::Continue,
                        false => Control::Stop,
                    })
                })
            });
            assert_eq!(from.iteration(), until);
            assert_eq!(control.unwrap(), Control::Stop);
            from
        };
        let whole = on(1, start(), 8);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        on(3, start(), 5).save(&file).unwrap();
        let mut resumed = start();
        resumed.resume(&folder.path().join("nothing")).unwrap();
        assert_eq!(resumed.iteration(), 0);
        resumed.resume(&file).unwrap();
        assert_eq!(resumed.iteration(), 5);
        let resumed = on(2, resumed, 8);
        assert_eq!(whole.parameters, resumed.parameters);
        assert_eq!(whole.embed(&films).unwrap(), resumed.embed(&films).unwrap());

        let fewer = Pendulum {
            sequences: 5,
            ..sizes
        };
        let mut other = Learner::<Svae>::new(spec(), &fewer.films(3, 0).unwrap()).unwrap();
        let message = other.resume(&file).unwrap_err().to_string();
        assert!(
            message.contains("SVAE") && message.contains("other settings or data"),
            "{message}"
        );
    }

    #[test]
    fn of_several_starts_the_best_is_kept() {
        let films = Pendulum {
            size: 10,
            sequences: 12,
            steps: 6,
        }
        .films(3, 0)
        .unwrap();
        let mut spec = SvaeSpec::default();
        (spec.learning.iterations, spec.learning.batch) = (9, 12);
        (spec.learning.starts, spec.learning.trial) = (3, 5);
        let first = Learner::<Svae>::new(spec.clone(), &films).unwrap();
        let mut chosen = first.clone();
        let mut heard = vec![vec![]; 3];
        chosen
            .choose_start(&films, &mut |start, value| {
                heard[start].push(value);
                Control::Continue
            })
            .unwrap();
        assert_eq!(chosen.iteration(), 5);
        let last: Vec<f64> = heard.iter().map(|values| values[4]).collect();
        let best = (0..3).max_by(|&a, &b| last[a].total_cmp(&last[b])).unwrap();
        let mut again = first.clone();
        again.begin(&films, best as u64);
        (0..5).for_each(|_| {
            again.step(&films).unwrap();
        });
        assert_eq!(again.parameters, chosen.parameters);
        // What has begun is not begun again, and a stop leaves all as it was.
        chosen
            .choose_start(&films, &mut |_, _| Control::Stop)
            .unwrap();
        assert_eq!(chosen.iteration(), 5);
        let mut stopped = first.clone();
        let control = stopped.choose_start(&films, &mut |_, _| Control::Stop);
        assert_eq!(control.unwrap(), Control::Stop);
        assert_eq!(stopped.parameters, first.parameters);
    }

    #[test]
    fn a_bound_rises_and_a_wild_rate_is_told() {
        let films = Pendulum {
            size: 10,
            sequences: 20,
            steps: 10,
        }
        .films(3, 0)
        .unwrap();
        let mut spec = SvaeSpec::default();
        let mut svae = Learner::<Svae>::new(spec.clone(), &films).unwrap();
        let first = svae.step(&films).unwrap();
        for _ in 0..60 {
            svae.step(&films).unwrap();
        }
        assert!(svae.step(&films).unwrap() > first);

        spec.learning.learning_rate = -1.0;
        assert!(Learner::<Svae>::new(spec.clone(), &films).is_err());
        spec.learning.learning_rate = 1e9;
        let mut wild = Learner::<Svae>::new(spec, &films).unwrap();
        let told = (0..20).find_map(|_| wild.step(&films).err());
        assert!(told.unwrap().to_string().contains("smaller learning rate"));
    }
}
