//! How the learning rate goes: up, and then down.

use super::TrainError;
use serde::{Deserialize, Serialize};

/// How the learning rate changes after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Decay {
    /// It does not.
    #[default]
    Constant,
    /// Half a cosine from the full rate down to a fraction of it.
    Cosine {
        /// The fraction left at the end.
        #[serde(default)]
        to: f64,
    },
    /// Multiplied by a factor at regular intervals.
    Step {
        /// Iterations between cuts.
        every: usize,
        /// What is left after each.
        factor: f64,
    },
}

/// The learning rate of every step.
///
/// ```
/// # use ramp::train::{Decay, Schedule};
/// let schedule = Schedule { iterations: 110, learning_rate: 1.0, warmup: 10, decay: Decay::Cosine { to: 0.0 } };
/// assert!((schedule.rate(4) - 0.5).abs() < 1e-12 && schedule.rate(10) == 1.0 && schedule.rate(110) < 1e-12);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Steps in all.
    pub iterations: usize,
    /// The rate at its highest.
    pub learning_rate: f64,
    /// Iterations over which it rises from zero.
    pub warmup: usize,
    /// What it does afterwards.
    pub decay: Decay,
}

impl Schedule {
    /// Checks every number.
    pub fn check(&self) -> Result<(), TrainError> {
        let positive = |name: &'static str, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(TrainError::NotPositive { name, value }),
        };
        positive("learning_rate", self.learning_rate)?;
        match self.decay {
            Decay::Cosine { to } if !(0.0..=1.0).contains(&to) => {
                Err(TrainError::CosineTo { value: to })
            }
            Decay::Step { every: 0, .. } => Err(TrainError::Zero {
                name: "the step decay's `every`",
            }),
            Decay::Step { factor, .. } => positive("the step decay's `factor`", factor),
            _ => Ok(()),
        }
    }

    /// The learning rate of a step, counted from zero.
    pub fn rate(&self, iteration: usize) -> f64 {
        if iteration < self.warmup {
            return self.learning_rate * (iteration + 1) as f64 / self.warmup as f64;
        }
        let (done, all) = (
            (iteration - self.warmup) as f64,
            self.iterations.saturating_sub(self.warmup).max(1) as f64,
        );
        self.learning_rate
            * match self.decay {
                Decay::Constant => 1.0,
                Decay::Cosine { to } => {
                    to + (1.0 - to)
                        * 0.5
                        * (1.0 + (std::f64::consts::PI * (done / all).min(1.0)).cos())
                }
                Decay::Step { every, factor } => factor
                    .powi(i32::try_from((iteration - self.warmup) / every).unwrap_or(i32::MAX)),
            }
    }
}
