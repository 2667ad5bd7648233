//! What the loop trains: parameters in one flat slice, a value to become large, and its gradient.

use crate::network::Parameter;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Something that a [`Trainer`](super::Trainer) can train.
///
/// A step must follow from the parameters and the iteration alone (batches and random draws from a seed and the iteration), so
/// that an interrupted run ends bit for bit like one that was not.
pub trait Problem: Send {
    /// What observers see of it.
    type Model: ?Sized;
    /// How it says that something went wrong.
    type Error: From<crate::Error> + Send;

    /// What observers see of it, as it stands.
    fn model(&self) -> &Self::Model;

    /// All numbers that are learned.
    fn parameters(&self) -> &[f32];

    /// The same, to be moved.
    fn parameters_mut(&mut self) -> &mut [f32];

    /// Parameters that are treated alike, which together are all of them; by default one group at the full rate, without decay.
    fn groups(&self) -> Vec<Group> {
        vec![Group {
            span: 0..self.parameters().len(),
            decays: false,
            part: 1.0,
        }]
    }

    /// The value at a step, counted from zero, and the gradient there, written over what `gradient` held. Runs on the trainer's
    /// threads.
    fn step(&mut self, iteration: usize, gradient: &mut [f32]) -> Result<f64, Self::Error>;

    /// The value on samples that are never learned from, if there are any.
    fn held_out(&mut self) -> Result<Option<f64>, Self::Error> {
        Ok(None)
    }

    /// What is not finite, if that is what an error of [`step`](Self::step) or [`held_out`](Self::held_out) says: training has then
    /// diverged.
    fn not_finite(error: &Self::Error) -> Option<&str> {
        let _ = error;
        None
    }

    /// Whether a value is so far below that of the first step that a training which stays there has diverged, though every number is finite.
    fn is_lost(&self, first: f64, value: f64) -> bool {
        let _ = (first, value);
        false
    }

    /// What a checkpoint must belong to; asked for only where checkpoints are kept.
    fn identity(&self) -> Result<Identity, Self::Error>;
}

/// What a problem is, so that a checkpoint of another one is refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The model and its settings.
    pub model: serde_json::Value,
    /// Samples.
    pub samples: usize,
    /// A fingerprint of the data.
    pub data: u64,
}

/// Parameters that are treated alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Where they lie.
    pub span: Range<usize>,
    /// Whether weight decay applies.
    pub decays: bool,
    /// The part of Adam's rate that is theirs.
    pub part: f64,
}

/// From this many inputs on, a unit's weights learn at a lower rate.
const MANY_INPUTS: f64 = 512.0;

impl Group {
    /// The group of an array of a network that lies from `start` on.
    ///
    /// Biases and scales do not decay: they have no size that should be pulled to zero (a precision, for one, lives in the
    /// last layer's bias). Adam moves every weight by about the rate, however many there are: where a unit sums over very
    /// many inputs, as over the pixels of a picture, all of them together would move it too far, unless rates are `even`.
    pub fn of(parameter: &Parameter, start: usize, even: bool) -> Self {
        Group {
            span: start..start + parameter.len(),
            decays: parameter.shape.len() > 1,
            part: match even {
                true => 1.0,
                false => (MANY_INPUTS / parameter.inputs as f64).min(1.0),
            },
        }
    }
}
