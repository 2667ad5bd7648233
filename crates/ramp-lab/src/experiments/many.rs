//! Many models trained side by side, a thread for each, with one display; a run that was stopped goes on where it was.

use super::run::{Interrupted, Settings, Step, Watch, keep, kept};
use crate::error::LabError;
use ramp::data::Dataset;
use ramp::model::Model;
use ramp::train::{Control, Event, Fit, Stop, TrainSpec, Trainer, checkpoint_file};
use serde::{Serialize, de::DeserializeOwned};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Models to be trained with the same settings of training, and where their states are kept.
pub(super) struct Many<'a, S> {
    /// What they are, for the display.
    pub what: String,
    /// The folder of all states.
    pub folder: &'a Path,
    /// A name for each model, good for a folder.
    pub names: Vec<String>,
    /// Settings that earlier states must have had.
    pub settings: &'a S,
    /// How many steps each model takes.
    pub iterations: usize,
    /// Models at the same time; one per processor by default.
    pub threads: Option<usize>,
}

/// The work of one model, by its number.
type Work<'w, T> = dyn Fn(usize, &Board<'_>) -> Result<Option<T>, LabError> + Sync + 'w;

/// The one display of many models.
pub(super) struct Board<'a> {
    watch: Mutex<(&'a mut dyn Watch, usize)>,
    stop: AtomicBool,
}

impl Board<'_> {
    fn step(&self, free_energy: f64) -> Control {
        // A watcher that panicked elsewhere must not take this model with it.
        let mut watch = self.watch.lock().unwrap_or_else(|e| e.into_inner());
        watch.1 += 1;
        let step = Step {
            iteration: watch.1,
            free_energy,
            held_out: None,
        };
        if watch.0.step(step) == Control::Stop {
            self.stop.store(true, Ordering::Relaxed);
        }
        if self.stop.load(Ordering::Relaxed) {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

impl<S: Settings + Sync> Many<'_, S> {
    /// Does the work of every model that an earlier session did not finish, and keeps what comes of it. The work may give
    /// nothing, when someone stopped it. In the end there is something from every model, or an interruption.
    pub fn run<T: Serialize + DeserializeOwned + Send>(
        &self,
        watch: &mut dyn Watch,
        work: &Work<'_, T>,
    ) -> Result<Result<Vec<T>, Interrupted>, LabError> {
        let mut finished: Vec<Option<T>> = (0..self.names.len())
            .map(|i| kept(&self.finished_file(i), self.settings))
            .collect();
        let open: Vec<usize> = (0..finished.len())
            .filter(|&i| finished[i].is_none())
            .collect();
        let iterations = self.names.len() * self.iterations;
        let begun: usize = open.iter().map(|&i| self.steps_of(i)).sum();
        let done_before = (self.names.len() - open.len()) * self.iterations + begun;
        watch.start(&self.what, done_before, iterations);
        let board = Board {
            watch: Mutex::new((watch, done_before)),
            stop: AtomicBool::new(false),
        };
        let next = AtomicUsize::new(0);
        let threads = self.threads.unwrap_or_else(rayon::current_num_threads);
        // Plain threads, a model on each: they share nothing but the data, so no core waits for another.
        let trained = std::thread::scope(|scope| {
            let work = || {
                let mut trained = vec![];
                while let Some(&index) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = self.one(index, &board, work);
                    let failed = outcome.is_err();
                    if failed {
                        board.stop.store(true, Ordering::Relaxed);
                    }
                    trained.push((index, outcome));
                    if failed || board.stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
                trained
            };
            let workers: Vec<_> = (0..threads.clamp(1, open.len().max(1)))
                .map(|_| scope.spawn(work))
                .collect();
            workers
                .into_iter()
                .map(|worker| {
                    worker
                        .join()
                        .map_err(|_| LabError::Invalid("a model's thread ended early".into()))
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        for (index, outcome) in trained.into_iter().flatten() {
            finished[index] = outcome?;
        }
        let steps = board.watch.into_inner().map_or(done_before, |w| w.1);
        let all: Option<Vec<T>> = finished.into_iter().collect();
        Ok(all.ok_or_else(|| Interrupted {
            what: self.what.clone(),
            iteration: steps,
            iterations,
        }))
    }

    fn one<T: Serialize>(
        &self,
        index: usize,
        board: &Board<'_>,
        work: &Work<'_, T>,
    ) -> Result<Option<T>, LabError> {
        let done = work(index, board)?;
        if let Some(done) = &done {
            keep(&self.finished_file(index), self.settings, done)?;
        }
        Ok(done)
    }

    /// Whether an earlier session left a state of a model, so that what it begins with does not matter.
    pub fn goes_on(&self, index: usize) -> bool {
        checkpoint_file(&self.state(index)).exists()
    }

    /// Trains one of the models to its end on this thread; `None` if someone stopped it.
    pub fn train(
        &self,
        index: usize,
        model: &mut Model,
        data: &Dataset,
        train: &TrainSpec,
        board: &Board<'_>,
    ) -> Result<Option<Fit>, LabError> {
        let mut steps = 0;
        let mut trouble = None;
        let fit = {
            let observer = |event: &Event<'_>| match event {
                Event::Start { iteration, .. } => {
                    steps = *iteration;
                    Control::Continue
                }
                Event::Step { record, .. } => {
                    steps = record.iteration;
                    board.step(record.free_energy)
                }
                Event::Checkpoint { .. } => {
                    let kept = keep(&self.steps_file(index), self.settings, &steps);
                    trouble = trouble.take().or(kept.err());
                    Control::Continue
                }
                _ => Control::Continue,
            };
            Trainer::new(train.clone())?
                .threads(1)
                .checkpoints(self.state(index), (train.iterations / 10).max(10))
                .observer(observer)
                .fit(model, data)?
        };
        if let Some(error) = trouble {
            return Err(error);
        }
        let stopped = fit.stop == Stop::Interrupted && fit.records.len() < train.iterations;
        Ok((!stopped).then_some(fit))
    }

    fn state(&self, index: usize) -> PathBuf {
        self.folder.join(&self.names[index])
    }

    fn finished_file(&self, index: usize) -> PathBuf {
        self.state(index).join("finished.json")
    }

    fn steps_file(&self, index: usize) -> PathBuf {
        self.state(index).join("steps.json")
    }

    /// The steps that an unfinished model has behind it.
    fn steps_of(&self, index: usize) -> usize {
        kept(&self.steps_file(index), self.settings).unwrap_or(0)
    }
}
