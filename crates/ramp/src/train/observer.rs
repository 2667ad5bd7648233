//! Who watches the training loop: progress bars, logs, curves, stop buttons.

use super::trainer::Record;
use crate::model::Model;
use std::path::Path;

/// What has just happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Training begins, or goes on from a checkpoint at `iteration`.
    Start {
        /// Iterations done so far.
        iteration: usize,
        /// Iterations asked for.
        iterations: usize,
        /// The model as it stands.
        model: &'a Model,
    },
    /// A step is about to be taken. Between this and [`Event::Step`] nothing but the step happens.
    Begin,
    /// A step was taken.
    Step {
        /// What it was like: its free energies are those before the step.
        record: &'a Record,
        /// The model after the step.
        model: &'a Model,
    },
    /// A checkpoint was written.
    Checkpoint {
        /// Where.
        path: &'a Path,
    },
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    #[default]
    Continue,
    /// Save a checkpoint, if any are kept, and stop after this step.
    Stop,
}

/// Someone who watches the loop and may stop it. Closures do.
pub trait Observer {
    /// Hears what has happened.
    fn observe(&mut self, event: &Event<'_>) -> Control;
}

impl<F: FnMut(&Event<'_>) -> Control> Observer for F {
    fn observe(&mut self, event: &Event<'_>) -> Control {
        self(event)
    }
}
