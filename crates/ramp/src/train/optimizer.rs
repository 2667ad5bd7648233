//! From a gradient to new parameters.

use crate::network::Parameter;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The rule by which parameters follow the gradient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Optimizer {
    /// Adam with its usual constants; `decay` above zero makes it AdamW.
    Adam {
        /// Decoupled decay of weights, per unit of learning rate; biases do not decay.
        #[serde(default)]
        decay: f64,
        /// Whether the decay is tied to the schedule and falls with the learning rate. Where the data do not decide between
        /// solutions, early decay chooses the smallest weights; tied, it leaves no bias in what the data do decide.
        #[serde(default)]
        scheduled_decay: bool,
    },
    /// Gradient ascent with momentum.
    Sgd {
        /// How much of the last step goes on.
        #[serde(default)]
        momentum: f64,
    },
}

impl Default for Optimizer {
    fn default() -> Self {
        Optimizer::Adam {
            decay: 0.0,
            scheduled_decay: false,
        }
    }
}

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
/// From this many inputs on, a unit's weights learn at a lower rate.
const MANY_INPUTS: f64 = 512.0;

/// The optimiser's memory: two numbers per parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Memory {
    pub first: Vec<f32>,
    pub second: Vec<f32>,
}

impl Memory {
    pub fn new(parameters: usize) -> Self {
        Memory {
            first: vec![0.0; parameters],
            second: vec![0.0; parameters],
        }
    }
}

/// Parameters that are treated alike.
pub(super) struct Group {
    /// Where they lie.
    pub span: Range<usize>,
    /// Whether decay applies.
    pub decays: bool,
    /// The part of Adam's rate that is theirs.
    pub part: f64,
}

impl Group {
    /// Biases and scales do not decay: they have no size that should be pulled to zero (a precision, for one, lives in the
    /// last layer's bias). Adam moves every weight by about the rate, however many there are: where a unit sums over very
    /// many inputs, as over the pixels of a picture, all of them together would move it too far, unless rates are `even`.
    pub fn new(parameter: &Parameter, start: usize, even: bool) -> Self {
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

impl Optimizer {
    /// Moves the parameters **up** the gradient; `step` counts from one, and `rate` is the learning rate now and its share of
    /// the highest.
    pub(super) fn step(
        &self,
        step: usize,
        (rate, share): (f64, f64),
        gradient: &[f32],
        groups: &[Group],
        parameters: &mut [f32],
        memory: &mut Memory,
    ) {
        for group in groups {
            let span = group.span.clone();
            let moments = memory.first[span.clone()]
                .iter_mut()
                .zip(&mut memory.second[span.clone()]);
            let each = parameters[span.clone()].iter_mut().zip(&gradient[span]);
            let each = each.zip(moments);
            match *self {
                Optimizer::Adam {
                    decay,
                    scheduled_decay,
                } => {
                    let rate = rate * group.part;
                    let power = i32::try_from(step).unwrap_or(i32::MAX);
                    let rate_now = (rate / (1.0 - BETA1.powi(power))) as f32;
                    let root = (1.0 / (1.0 - BETA2.powi(power))).sqrt() as f32;
                    let (b1, b2) = (BETA1 as f32, BETA2 as f32);
                    let schedule = if scheduled_decay { share } else { 1.0 };
                    let lost = if group.decays {
                        rate * decay * schedule
                    } else {
                        0.0
                    };
                    let kept = (1.0 - lost) as f32;
                    for ((p, &g), (m, v)) in each {
                        *m = b1 * *m + (1.0 - b1) * g;
                        *v = b2 * *v + (1.0 - b2) * g * g;
                        *p = *p * kept + rate_now * *m / (v.sqrt() * root + EPSILON as f32);
                    }
                }
                Optimizer::Sgd { momentum } => {
                    for ((p, &g), (m, _)) in each {
                        *m = momentum as f32 * *m + g;
                        *p += rate as f32 * *m;
                    }
                }
            }
        }
    }
}
