//! A sweep: models trained side by side, a thread for each, with one display; one that was stopped goes on where it was.

use super::{Settings, Step, Watch, keep, kept};
use crate::error::LabError;
use ramp::data::Dataset;
use ramp::model::Model;
use ramp::train::{
    Control, Event, Fit, TrainError, TrainSpec, Trainer, checkpoint_file, read_records,
};
use serde::{Serialize, de::DeserializeOwned};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Models to be trained with the same settings of training, and where their states are kept.
pub(crate) struct Sweep<'a, S> {
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
type Work<'w, T> = dyn Fn(usize, &Progress<'_>) -> Result<T, LabError> + Sync + 'w;

/// The one display of many models.
pub(crate) struct Progress<'a> {
    watch: Mutex<(&'a mut dyn Watch, usize)>,
    stop: AtomicBool,
}

impl Progress<'_> {
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

impl<S: Settings + Sync> Sweep<'_, S> {
    /// Does the work of every model that an earlier session did not finish, and keeps what comes of it.
    pub fn run<T: Serialize + DeserializeOwned + Send>(
        &self,
        watch: &mut dyn Watch,
        work: &Work<'_, T>,
    ) -> Result<Vec<T>, LabError> {
        let mut finished: Vec<Option<T>> = (0..self.names.len())
            .map(|i| kept(&self.finished_file(i), self.settings))
            .collect();
        let open: Vec<usize> = (0..finished.len())
            .filter(|&i| finished[i].is_none())
            .collect();
        let iterations = self.names.len() * self.iterations;
        let mut begun = 0;
        for &index in &open {
            begun += read_records(&self.state(index))?.steps();
        }
        let done_before = (self.names.len() - open.len()) * self.iterations + begun;
        watch.start(&self.what, done_before, iterations);
        let progress = Progress {
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
                    let outcome = self.one(index, &progress, work);
                    let failed = outcome.is_err();
                    if failed {
                        progress.stop.store(true, Ordering::Relaxed);
                    }
                    trained.push((index, outcome));
                    if failed || progress.stop.load(Ordering::Relaxed) {
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
            match outcome {
                Err(LabError::Ramp(ramp::Error::Train(TrainError::Interrupted { .. }))) => {}
                outcome => finished[index] = Some(outcome?),
            }
        }
        let steps = progress.watch.into_inner().map_or(done_before, |w| w.1);
        let all: Option<Vec<T>> = finished.into_iter().collect();
        all.ok_or_else(|| LabError::Interrupted {
            what: self.what.clone(),
            iteration: steps,
            iterations,
        })
    }

    fn one<T: Serialize>(
        &self,
        index: usize,
        progress: &Progress<'_>,
        work: &Work<'_, T>,
    ) -> Result<T, LabError> {
        let done = work(index, progress)?;
        keep(&self.finished_file(index), self.settings, &done)?;
        Ok(done)
    }

    /// Whether an earlier session left a state of a model, so that what it begins with does not matter.
    pub fn goes_on(&self, index: usize) -> bool {
        checkpoint_file(&self.state(index)).exists()
    }

    /// Trains one of the models to its end on this thread.
    pub fn train(
        &self,
        index: usize,
        model: &mut Model,
        data: &Dataset,
        train: &TrainSpec,
        progress: &Progress<'_>,
    ) -> Result<Fit, LabError> {
        let mut trainer = Trainer::new(train.clone())?
            .threads(1)
            .checkpoints(self.state(index), (train.iterations / 10).max(10))
            .observer(|event: &Event<'_>| match event {
                Event::Step { record, .. } => progress.step(record.free_energy),
                _ => Control::Continue,
            });
        Ok(trainer.fit(model, data)?)
    }

    fn state(&self, index: usize) -> PathBuf {
        self.folder.join(&self.names[index])
    }

    fn finished_file(&self, index: usize) -> PathBuf {
        self.state(index).join("finished.json")
    }
}
