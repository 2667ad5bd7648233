//! Who watches the training loop: progress bars, logs, curves, stop buttons.

use super::records::Record;
use crate::model::Model;
use std::path::Path;

/// What has just happened to a model, or to whatever else is trained.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a, M: ?Sized = Model> {
    /// Training begins, or goes on from a checkpoint at `iteration`.
    Start {
        /// Iterations done so far.
        iteration: usize,
        /// Iterations asked for.
        iterations: usize,
        /// The model as it stands.
        model: &'a M,
    },
    /// A step is about to be taken. Between this and [`Event::Step`] nothing but the step happens.
    Begin,
    /// A step was taken.
    Step {
        /// What it was like: its free energies are those before the step.
        record: &'a Record,
        /// The model after the step.
        model: &'a M,
    },
    /// A checkpoint was written.
    Checkpoint {
        /// Where.
        path: &'a Path,
    },
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub enum Control {
    /// Go on.
    #[default]
    Continue,
    /// Save a checkpoint, if any are kept, and stop after this step.
    Stop,
}

/// Someone who watches the loop and may stop it. Closures do.
pub trait Observer<M: ?Sized = Model> {
    /// Hears what has happened.
    fn observe(&mut self, event: &Event<'_, M>) -> Control;
}

impl<M: ?Sized, F: FnMut(&Event<'_, M>) -> Control> Observer<M> for F {
    fn observe(&mut self, event: &Event<'_, M>) -> Control {
        self(event)
    }
}
