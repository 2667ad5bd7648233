//! How to train: every setting beside its default, checked before anything starts.

use super::Optimizer;
use crate::{Error, Result};
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

/// The settings of training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSpec {
    /// Steps to take.
    pub iterations: usize,
    /// Samples per step; all of them by default.
    pub batch: Option<usize>,
    /// The step size at its highest.
    pub learning_rate: f64,
    /// The update rule.
    pub optimizer: Optimizer,
    /// Whether Adam has one rate for all weights. By default the weights of units with more than 512 inputs learn at a lower
    /// one: each moves by about the rate, so that all of them together would move a unit too far.
    pub even_rates: bool,
    /// Iterations over which the learning rate rises from zero.
    pub warmup: usize,
    /// What it does afterwards.
    pub decay: Decay,
    /// The largest norm of the gradient; longer ones are scaled down.
    pub clip: Option<f64>,
    /// Samples of the batch in the mixture `F`, redrawn each step; all of them by default.
    pub mixture: Option<usize>,
    /// The population that sets the weight of a sample's own term; the number of training samples by default.
    pub population: Option<usize>,
    /// The chance with which each observation of each sample is left out of a step, as if it were missing. Every sample
    /// then shows many faces: networks overfit less, and learn to do without what may be missing later.
    pub mask: f64,
    /// How many observations in a row are left out together, on average: along a chain, a stretch of time. Networks then learn
    /// to look further ahead. Each for itself by default.
    pub mask_span: Option<f64>,
    /// Iterations over which masking rises from nothing: networks that have never met a gap are not thrown by long ones.
    pub mask_warmup: usize,
    /// The fraction of samples held out from training.
    pub holdout: f64,
    /// Iterations between evaluations on held-out samples.
    pub evaluate_every: usize,
    /// Evaluations without improvement after which training stops; never by default. The best weights are kept
    /// whenever samples are held out.
    pub patience: Option<usize>,
    /// The seed of batches, mixtures and the held-out samples.
    pub seed: u64,
}

impl Default for TrainSpec {
    fn default() -> Self {
        TrainSpec {
            iterations: 500,
            batch: None,
            learning_rate: 1e-3,
            optimizer: Optimizer::default(),
            even_rates: false,
            warmup: 0,
            decay: Decay::default(),
            clip: None,
            mixture: None,
            population: None,
            mask: 0.0,
            mask_span: None,
            mask_warmup: 0,
            holdout: 0.0,
            evaluate_every: 10,
            patience: None,
            seed: 0,
        }
    }
}

impl TrainSpec {
    /// Checks everything that does not depend on the data.
    pub fn check(&self) -> Result<()> {
        let say = |text: String| Err(Error::Invalid(text));
        let positive = |x: f64| x.is_finite() && x > 0.0;
        if !positive(self.learning_rate) {
            return say(format!(
                "learning_rate must be a positive number, not {}",
                self.learning_rate
            ));
        }
        if let Some(clip) = self.clip
            && !positive(clip)
        {
            return say(format!("clip must be a positive number, not {clip}"));
        }
        for (name, value) in [
            ("batch", self.batch),
            ("mixture", self.mixture),
            ("population", self.population),
        ] {
            if value == Some(0) {
                return say(format!("{name} must be at least 1, not 0"));
            }
        }
        if !(0.0..0.95).contains(&self.holdout) {
            return say(format!(
                "holdout must be a fraction from 0 up to 0.95, not {}",
                self.holdout
            ));
        }
        if !(0.0..0.95).contains(&self.mask) {
            return say(format!(
                "mask must be a chance from 0 up to 0.95, not {}",
                self.mask
            ));
        }
        if let Some(run) = self.mask_span
            && !(run.is_finite() && run >= 1.0 && self.mask <= (1.0 - self.mask) * run)
        {
            return say(format!(
                "mask_span must be a number from {:.3} up to have a chance of {} in all, not {run}",
                (self.mask / (1.0 - self.mask)).max(1.0),
                self.mask
            ));
        }
        if self.evaluate_every == 0 {
            return say("evaluate_every must be at least 1, not 0".into());
        }
        if self.patience.is_some() && self.holdout == 0.0 {
            return say(
                "patience needs held-out samples; set holdout to a fraction such as 0.2".into(),
            );
        }
        match self.decay {
            Decay::Cosine { to } if !(0.0..=1.0).contains(&to) => say(format!(
                "the cosine decay's `to` must be between 0 and 1, not {to}"
            )),
            Decay::Step { every: 0, .. } => {
                say("the step decay's `every` must be at least 1, not 0".into())
            }
            Decay::Step { factor, .. } if !positive(factor) => say(format!(
                "the step decay's `factor` must be a positive number, not {factor}"
            )),
            _ => match self.optimizer {
                Optimizer::Adam { decay, .. } if !(decay.is_finite() && decay >= 0.0) => say(
                    format!("the weight decay must not be negative, but is {decay}"),
                ),
                Optimizer::Sgd { momentum } if !(0.0..1.0).contains(&momentum) => {
                    say(format!("momentum must be from 0 up to 1, not {momentum}"))
                }
                _ => Ok(()),
            },
        }
    }

    /// The same with more or fewer iterations, of which warm-ups keep their share.
    ///
    /// ```
    /// # use ramp::train::TrainSpec;
    /// let spec = TrainSpec { iterations: 1000, warmup: 100, ..TrainSpec::default() };
    /// assert_eq!(spec.lasting(50).warmup, 5);
    /// ```
    pub fn lasting(self, iterations: usize) -> Self {
        let part = |of: usize| {
            let part = of as u128 * iterations as u128 / self.iterations.max(1) as u128;
            usize::try_from(part).unwrap_or(usize::MAX)
        };
        TrainSpec {
            iterations,
            warmup: part(self.warmup),
            mask_warmup: part(self.mask_warmup),
            ..self
        }
    }

    /// Which of so many samples are learned from and which are held out, both ascending.
    pub fn split(&self, rows: usize) -> Result<(Vec<u32>, Vec<u32>)> {
        let split = super::trainer::Split::new(self, rows)?;
        Ok((split.train, split.held_out))
    }

    /// The chance of masking in a step, counted from zero, and the mean length of a run if they are not hidden one by one.
    pub(super) fn masking(&self, iteration: usize) -> (f64, Option<f64>) {
        let rise = match iteration < self.mask_warmup {
            true => (iteration + 1) as f64 / self.mask_warmup as f64,
            false => 1.0,
        };
        let run = self.mask_span.map(|run| 1.0 + (run - 1.0) * rise);
        (self.mask * rise, run)
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
