//! From a gradient to new parameters.

use super::{Group, TrainError};
use serde::{Deserialize, Serialize};

/// The rule by which parameters follow the gradient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Optimizer {
    /// Adam with its usual constants; `decay` above zero makes it AdamW.
    Adam {
        /// Decoupled decay of weights, per unit of learning rate; biases do not decay.
        #[serde(default)]
        decay: f64,
        /// Whether decay is tied to the schedule: it falls as the learning rate does. Where the data do not decide between solutions, early decay
        /// chooses the smallest weights; falling, it leaves no bias in what the data do decide.
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

impl Optimizer {
    /// Checks every number.
    pub(super) fn check(&self) -> Result<(), TrainError> {
        match *self {
            Optimizer::Adam { decay, .. } if !(decay.is_finite() && decay >= 0.0) => {
                Err(TrainError::WeightDecay { value: decay })
            }
            Optimizer::Sgd { momentum } if !(0.0..1.0).contains(&momentum) => {
                Err(TrainError::Momentum { value: momentum })
            }
            _ => Ok(()),
        }
    }

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
                    let tied = if scheduled_decay { share } else { 1.0 };
                    let lost = if group.decays {
                        rate * decay * tied
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
