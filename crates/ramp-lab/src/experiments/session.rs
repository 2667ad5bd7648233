//! A rival in the course of learning, whatever it is: steps, a stop button, a checkpoint.

use super::run::{Interrupted, Step, Watch};
use crate::error::LabError;
use ramp::train::Control;
use std::path::Path;

/// Someone who learns step by step and can be put on the disk.
pub(super) trait Learns: Send {
    /// Steps taken.
    fn iteration(&self) -> usize;
    /// Takes a step and tells the objective.
    fn step(&mut self) -> Result<f64, LabError>;
    /// Writes the state to a file, whole or not at all.
    fn save(&self, file: &Path) -> Result<(), LabError>;
}

/// Steps with a checkpoint.
pub(super) struct Session<'a> {
    pub what: &'a str,
    pub iterations: usize,
    pub file: &'a Path,
}

impl Session<'_> {
    /// Takes the steps that are left; `note` hears of each and whether a checkpoint follows.
    pub fn run<L: Learns>(
        &self,
        learner: &mut L,
        pool: &rayon::ThreadPool,
        mut note: impl FnMut(&L, bool) -> Result<(), LabError>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Interrupted>, LabError> {
        watch.start(self.what, learner.iteration(), self.iterations);
        let every = (self.iterations / 20).max(10);
        while learner.iteration() < self.iterations {
            let free_energy = pool.install(|| learner.step())?;
            let at = learner.iteration();
            let control = watch.step(Step {
                iteration: at,
                free_energy,
                held_out: None,
            });
            let stop = control == Control::Stop && at < self.iterations;
            let save = stop || at.is_multiple_of(every) || at == self.iterations;
            note(learner, save)?;
            if save {
                learner.save(self.file)?;
            }
            if stop {
                return Ok(Some(Interrupted {
                    what: self.what.into(),
                    iteration: at,
                    iterations: self.iterations,
                }));
            }
        }
        Ok(None)
    }
}
