//! The loop: batches in, steps out, observers told, checkpoints written.

use super::checkpoint::{self, Best, Progress, State};
use super::observer::{Control, Event, Observer};
use super::optimizer::{Group, Memory};
use super::spec::TrainSpec;
use crate::data::Dataset;
use crate::model::{Bound, Mask, Model, Workspace};
use crate::objective::{FreeEnergy, Mixture};
use crate::{Error, Result};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Held-out samples are scored this many at a time: the objective is quadratic in them.
const HELD_OUT: usize = 2000;

/// What one step was like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Steps taken, this one included.
    pub iteration: usize,
    /// Mean nodewise free energy of the batch before the step, in nats.
    pub free_energy: f64,
    /// That of the held-out samples after the step, when it was measured.
    pub held_out: Option<f64>,
    /// The norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// The learning rate.
    pub rate: f64,
}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All iterations are done.
    Finished,
    /// Held-out free energy stopped improving.
    Converged,
    /// An observer asked for it.
    Interrupted,
}

/// The outcome of training.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Why it ended.
    pub stop: Stop,
    /// One record per step, earlier sessions' included.
    pub records: Vec<Record>,
    /// The iteration whose weights the model now has.
    pub iteration: usize,
    /// Their held-out free energy, if samples were held out.
    pub held_out: Option<f64>,
}

/// Trains models: settings, observers and checkpoints around one small loop.
///
/// The same settings and seed give the same weights, bit for bit, whatever the number of threads and however often
/// training was interrupted and resumed.
pub struct Trainer<'a> {
    spec: TrainSpec,
    threads: Option<usize>,
    folder: Option<(PathBuf, usize)>,
    observers: Vec<Box<dyn Observer + 'a>>,
}

impl<'a> Trainer<'a> {
    /// A trainer with checked settings.
    pub fn new(spec: TrainSpec) -> Result<Self> {
        spec.check()?;
        Ok(Trainer {
            spec,
            threads: None,
            folder: None,
            observers: vec![],
        })
    }

    /// Uses this many threads; all of the machine's by default.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Writes a checkpoint into a folder every so many iterations and at the end, and goes on from the one that is
    /// there.
    pub fn checkpoints(mut self, folder: impl Into<PathBuf>, every: usize) -> Self {
        self.folder = Some((folder.into(), every.max(1)));
        self
    }

    /// Adds someone who watches.
    pub fn observer(mut self, observer: impl Observer + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Trains a model. On an error its weights are those of the last good step, and the last checkpoint stays.
    pub fn fit(&mut self, model: &mut Model, data: &Dataset) -> Result<Fit> {
        match self.threads {
            None => self.run(model, data),
            // The common pool has as many already.
            Some(threads) if threads == rayon::current_num_threads() => self.run(model, data),
            Some(threads) => {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    // Without optimisation, one frame of the pairwise kernel takes more than a thread usually has.
                    .stack_size(16 << 20)
                    .build()
                    .map_err(|e| Error::Invalid(format!("cannot start {threads} threads: {e}")))?;
                // Observers need not be Send, so only the heavy calls enter the pool.
                self.run_in(model, data, &|work| pool.install(work))
            }
        }
    }

    fn run(&mut self, model: &mut Model, data: &Dataset) -> Result<Fit> {
        self.run_in(model, data, &|work| work())
    }

    fn run_in(&mut self, model: &mut Model, data: &Dataset, enter: &Enter<'_>) -> Result<Fit> {
        let bound = model.bind(data)?;
        let split = Split::new(&self.spec, bound.rows())?;
        let mut state = self.start(model, &split, data)?;
        let mut stop = Stop::Finished;
        model.parameters_mut().copy_from_slice(&state.parameters);
        let start = Event::Start {
            iteration: state.progress.iteration,
            iterations: self.spec.iterations,
            model,
        };
        if tell(&mut self.observers, &start) == Control::Stop {
            stop = Stop::Interrupted;
        }
        let mut work = Work {
            series: model.tree().time_axis().map_or(1, |t| t.series().len()),
            step: Workspace::default(),
            held_out: Workspace::default(),
            gradient: vec![0.0; model.parameters().len()],
            groups: model.each_parameter(|_, p, start| Group::new(p, start, self.spec.even_rates)),
        };
        let mut saved = state.progress.iteration;
        while stop == Stop::Finished && state.progress.iteration < self.spec.iterations {
            if self
                .spec
                .patience
                .is_some_and(|p| state.progress.since_best >= p)
            {
                stop = Stop::Converged;
                break;
            }
            tell(&mut self.observers, &Event::Begin);
            let mut record = self.step(model, &bound, &split, &mut state, &mut work, enter)?;
            let done = record.iteration;
            if !split.held_out.is_empty()
                && (done % self.spec.evaluate_every == 0 || done == self.spec.iterations)
            {
                let value = self.held_out(model, &bound, &split, &mut work, enter)?;
                record.held_out = Some(value);
                if state.best.as_ref().is_none_or(|b| value > b.held_out) {
                    state.best = Some(Best {
                        parameters: model.parameters().to_vec(),
                        held_out: value,
                        iteration: done,
                    });
                    state.progress.since_best = 0;
                } else {
                    state.progress.since_best += 1;
                }
            }
            let control = tell(
                &mut self.observers,
                &Event::Step {
                    record: &record,
                    model,
                },
            );
            state.progress.records.push(record);
            if control == Control::Stop {
                stop = Stop::Interrupted;
            }
            if let Some((_, every)) = self.folder
                && (done % every == 0 || stop == Stop::Interrupted)
            {
                self.save(model, &mut state, &split)?;
                saved = done;
            }
        }
        if saved < state.progress.iteration {
            self.save(model, &mut state, &split)?;
        }
        let mut fit = Fit {
            stop,
            iteration: state.progress.iteration,
            held_out: state.best.as_ref().map(|b| b.held_out),
            records: state.progress.records,
        };
        // An interrupted run shows its best so far too; its checkpoint holds where to go on.
        if let Some(best) = state.best {
            model.parameters_mut().copy_from_slice(&best.parameters);
            fit.iteration = best.iteration;
        }
        Ok(fit)
    }

    fn start(&self, model: &Model, split: &Split, data: &Dataset) -> Result<State> {
        let data = self.folder.as_ref().map(|_| data.fingerprint());
        if let Some((folder, _)) = &self.folder
            && let Some(state) = checkpoint::load(folder, model, &self.spec, split.rows, data)?
        {
            return Ok(state);
        }
        Ok(State {
            parameters: model.parameters().to_vec(),
            memory: Memory::new(model.parameters().len()),
            best: None,
            progress: Progress {
                data,
                ..Progress::default()
            },
        })
    }

    fn save(&mut self, model: &Model, state: &mut State, split: &Split) -> Result<()> {
        let Some((folder, _)) = &self.folder else {
            return Ok(());
        };
        if model.parameters().iter().any(|p| !p.is_finite()) {
            return Err(Error::NotFinite {
                what: "a weight".into(),
            });
        }
        state.parameters.copy_from_slice(model.parameters());
        let path = checkpoint::save(folder, state, model, &self.spec, split.rows)?;
        tell(&mut self.observers, &Event::Checkpoint { path: &path });
        Ok(())
    }

    fn step(
        &self,
        model: &mut Model,
        bound: &Bound<'_>,
        split: &Split,
        state: &mut State,
        work: &mut Work,
        enter: &Enter<'_>,
    ) -> Result<Record> {
        let iteration = state.progress.iteration;
        let samples = split.batch(&self.spec, iteration);
        let drawn = split.drawn(&self.spec, iteration, samples.len());
        let each = (model.tree().observations().len(), work.series);
        let hidden = hidden(&self.spec, iteration, each, samples.len());
        let population = self.spec.population.unwrap_or(split.train.len());
        let mixture = Mixture {
            drawn: drawn.as_deref(),
            population: Some(population),
            ..Mixture::default()
        };
        let mut value = Ok(FreeEnergy::default());
        enter(&mut || {
            let batch = model.batch(bound, &samples, hidden.as_ref());
            value = model.evaluate(&batch, mixture, Some(&mut work.gradient), &mut work.step);
        });
        let value = value.map_err(|e| at(e, iteration + 1))?;
        let norm = work
            .gradient
            .iter()
            .map(|&g| f64::from(g).powi(2))
            .sum::<f64>()
            .sqrt();
        if let Some(clip) = self.spec.clip
            && norm > clip
        {
            let scale = (clip / norm) as f32;
            work.gradient.iter_mut().for_each(|g| *g *= scale);
        }
        let rate = self.spec.rate(iteration);
        self.spec.optimizer.step(
            iteration + 1,
            (rate, rate / self.spec.learning_rate),
            &work.gradient,
            &work.groups,
            model.parameters_mut(),
            &mut state.memory,
        );
        state.progress.iteration += 1;
        Ok(Record {
            iteration: iteration + 1,
            free_energy: value.mean(),
            held_out: None,
            gradient_norm: norm,
            rate,
        })
    }

    fn held_out(
        &self,
        model: &Model,
        bound: &Bound<'_>,
        split: &Split,
        work: &mut Work,
        enter: &Enter<'_>,
    ) -> Result<f64> {
        let population = self.spec.population.unwrap_or(split.train.len());
        let mut total = 0.0;
        for samples in split.held_out.chunks(
            split
                .held_out
                .len()
                .div_ceil(split.held_out.len().div_ceil(HELD_OUT)),
        ) {
            let mut value = Ok(FreeEnergy::default());
            enter(&mut || {
                let batch = model.batch(bound, samples, None);
                let mixture = Mixture {
                    drawn: None,
                    population: Some(population),
                    ..Mixture::default()
                };
                value = model.evaluate(&batch, mixture, None, &mut work.held_out);
            });
            total += value?.mean() * samples.len() as f64;
        }
        Ok(total / split.held_out.len() as f64)
    }
}

/// Runs a piece of work on the chosen threads.
type Enter<'a> = dyn Fn(&mut (dyn FnMut() + Send)) + 'a;

struct Work {
    /// Along a chain, how many observations a step has: each series is hidden in runs of its own.
    series: usize,
    step: Workspace,
    held_out: Workspace,
    gradient: Vec<f32>,
    groups: Vec<Group>,
}

fn tell<'a>(observers: &mut [Box<dyn Observer + 'a>], event: &Event<'_>) -> Control {
    let mut control = Control::Continue;
    for observer in observers {
        if observer.observe(event) == Control::Stop {
            control = Control::Stop;
        }
    }
    control
}

/// Says when a number went astray.
fn at(error: Error, iteration: usize) -> Error {
    match error {
        Error::NotFinite { what } => Error::NotFinite {
            what: format!("at iteration {iteration}, {what}"),
        },
        other => other,
    }
}

/// Who trains and who is held out, and who is in which batch: functions of the seed and the iteration alone, so that a
/// resumed run needs no other memory.
pub(super) struct Split {
    rows: usize,
    pub train: Vec<u32>,
    pub held_out: Vec<u32>,
}

/// Streams of random numbers that must not meet.
const HOLDOUT_STREAM: u64 = 1 << 62;
const MIXTURE_STREAM: u64 = 1 << 61;
const HIDE_STREAM: u64 = 1 << 60;

fn rng(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

impl Split {
    pub fn new(spec: &TrainSpec, rows: usize) -> Result<Self> {
        let mut train: Vec<u32> = (0..rows as u32).collect();
        let count = (rows as f64 * spec.holdout).round() as usize;
        if rows == 0 || (spec.holdout > 0.0 && (count == 0 || count == rows)) {
            return Err(Error::Invalid(format!(
                "holding out {} of {rows} samples leaves nothing to train on or nothing to test on",
                spec.holdout
            )));
        }
        train.shuffle(&mut rng(spec.seed, HOLDOUT_STREAM));
        let mut held_out = train.split_off(rows - count);
        train.sort_unstable();
        held_out.sort_unstable();
        if let Some(batch) = spec.batch
            && batch > train.len()
        {
            return Err(Error::Invalid(format!(
                "a batch of {batch} is larger than the {} training samples; make it smaller or leave it out for all",
                train.len()
            )));
        }
        Ok(Split {
            rows,
            train,
            held_out,
        })
    }

    /// The samples of a step: batches of a random order, drawn anew each epoch.
    fn batch(&self, spec: &TrainSpec, iteration: usize) -> Vec<u32> {
        let size = spec.batch.unwrap_or(self.train.len());
        if size == self.train.len() {
            return self.train.clone();
        }
        let per_epoch = self.train.len() / size;
        let mut order = self.train.clone();
        order.shuffle(&mut rng(spec.seed, (iteration / per_epoch) as u64));
        let start = iteration % per_epoch * size;
        order[start..start + size].to_vec()
    }

    /// The rows of a step's batch that make up its mixture.
    fn drawn(&self, spec: &TrainSpec, iteration: usize, batch: usize) -> Option<Vec<u32>> {
        let size = spec.mixture.filter(|&m| m < batch)?;
        let mut rng = rng(spec.seed, MIXTURE_STREAM + iteration as u64);
        let mut rows: Vec<u32> = (0..batch as u32).collect();
        let (drawn, _) = rows.partial_shuffle(&mut rng, size);
        let mut drawn = drawn.to_vec();
        drawn.sort_unstable();
        Some(drawn)
    }
}

/// What a step leaves out of so many observations, which belong to so many series in turn, of so many rows.
pub(super) fn hidden(
    spec: &TrainSpec,
    iteration: usize,
    (observations, series): (usize, usize),
    rows: usize,
) -> Option<Mask> {
    if spec.mask == 0.0 {
        return None;
    }
    let mut rng = rng(spec.seed, HIDE_STREAM + iteration as u64);
    let (mask, run) = spec.masking(iteration);
    let mut before = vec![None; series * rows];
    Some(Mask::new(observations, rows, |observation, row| {
        let before = &mut before[observation % series * rows + row];
        let chance = match (run, *before) {
            (None, _) | (_, None) => mask,
            // A run goes on, or another begins as often as keeps the chance in all.
            (Some(run), Some(true)) => 1.0 - 1.0 / run,
            (Some(run), Some(false)) => (mask / ((1.0 - mask) * run)).min(1.0),
        };
        let mask = rng.random_bool(chance);
        *before = Some(mask);
        mask
    }))
}
