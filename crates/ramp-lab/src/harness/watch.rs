//! Someone who follows an experiment: a progress display, a stop button.

use ramp::train::{Control, Record};

/// Someone who follows an experiment through all of its training runs.
pub trait Watch: Send {
    /// A piece of work begins at an iteration, of so many.
    fn start(&mut self, what: &str, iteration: usize, iterations: usize);
    /// Something a person should know before the work begins.
    fn say(&mut self, _what: &str) {}
    /// A step was taken; whether to go on.
    fn step(&mut self, step: Step) -> Control;
}

/// What someone who watches learns of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Steps taken, this one included.
    pub iteration: usize,
    /// The free energy before it, in nats.
    pub free_energy: f64,
    /// That of held-out samples after it, when it was measured.
    pub held_out: Option<f64>,
}

impl From<&Record> for Step {
    fn from(record: &Record) -> Self {
        Step {
            iteration: record.iteration,
            free_energy: record.free_energy,
            held_out: record.held_out,
        }
    }
}

/// Nobody watches.
impl Watch for () {
    fn start(&mut self, _: &str, _: usize, _: usize) {}
    fn step(&mut self, _: Step) -> Control {
        Control::Continue
    }
}

/// Stops after a number of steps, whatever they belong to.
#[cfg(test)]
pub(crate) struct StopAfter(pub usize);

#[cfg(test)]
impl Watch for StopAfter {
    fn start(&mut self, _: &str, _: usize, _: usize) {}
    fn step(&mut self, _: Step) -> Control {
        self.0 = self.0.saturating_sub(1);
        match self.0 {
            0 => Control::Stop,
            _ => Control::Continue,
        }
    }
}
