//! How to train: every setting beside its default, checked before anything starts.

use super::{Decay, Optimizer, Schedule, Split, TrainError};
use serde::{Deserialize, Serialize};

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
    /// The standard deviation of noise that every step adds to images (observations of bytes), anew each time, in units of their pixels' own. What
    /// neighbouring views share in fine detail is then no longer worth learning by heart, and networks overfit less.
    pub noise: f64,
    /// The fraction of samples that training never touches: they judge what was learned.
    pub holdout: f64,
    /// Whether the last samples are held out, and those before them choose the weights, in place of any: of windows of a series, whose
    /// neighbours overlap, those of the last time come last.
    pub holdout_last: bool,
    /// The fraction of samples that are not learned from but choose the weights: the best on them are kept.
    pub validation: f64,
    /// Iterations between evaluations on validation samples.
    pub evaluate_every: usize,
    /// Evaluations without improvement after which training stops; never by default. Needs validation samples.
    pub patience: Option<usize>,
    /// The seed of batches, mixtures and, without another for these, of the samples held out.
    pub seed: u64,
    /// The seed by which samples are held out, in place of `seed`: of several starts on the same samples.
    pub split_seed: Option<u64>,
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
            noise: 0.0,
            holdout: 0.0,
            validation: 0.0,
            holdout_last: false,
            evaluate_every: 10,
            patience: None,
            seed: 0,
            split_seed: None,
        }
    }
}

impl TrainSpec {
    /// The recipe for chains in time, whatever the system: the rate falls in the end to let what is seen of velocities sharpen, and
    /// steps are masked in spans that grow, so that networks learn to see ahead and never meet gaps unprepared.
    ///
    /// ```
    /// # use ramp::train::TrainSpec;
    /// let spec = TrainSpec { batch: Some(100), ..TrainSpec::for_chain(1000) };
    /// assert!(spec.check().is_ok() && spec.mask > 0.0);
    /// ```
    pub fn for_chain(iterations: usize) -> Self {
        TrainSpec {
            iterations,
            warmup: iterations / 10,
            learning_rate: 1e-3,
            decay: Decay::Cosine { to: 0.0 },
            clip: Some(10.0),
            mask: 0.4,
            mask_span: Some(5.0),
            mask_warmup: iterations * 2 / 3,
            ..TrainSpec::default()
        }
    }

    /// Checks everything that does not depend on the data.
    pub fn check(&self) -> Result<(), TrainError> {
        self.schedule().check()?;
        if let Some(value) = self.clip
            && !(value.is_finite() && value > 0.0)
        {
            return Err(TrainError::NotPositive {
                name: "clip",
                value,
            });
        }
        for (name, value) in [
            ("batch", self.batch),
            ("mixture", self.mixture),
            ("population", self.population),
            ("evaluate_every", Some(self.evaluate_every)),
        ] {
            if value == Some(0) {
                return Err(TrainError::Zero { name });
            }
        }
        for (name, value) in [("holdout", self.holdout), ("validation", self.validation)] {
            if !(0.0..0.95).contains(&value) {
                return Err(TrainError::Fraction { name, value });
            }
        }
        if self.holdout + self.validation >= 0.95 {
            return Err(TrainError::FewLeft {
                holdout: self.holdout,
                validation: self.validation,
            });
        }
        if !(0.0..0.95).contains(&self.mask) {
            return Err(TrainError::Mask { value: self.mask });
        }
        if !(self.noise.is_finite() && self.noise >= 0.0) {
            return Err(TrainError::Noise { value: self.noise });
        }
        if let Some(span) = self.mask_span
            && !(span.is_finite() && span >= 1.0 && self.mask <= (1.0 - self.mask) * span)
        {
            return Err(TrainError::MaskSpan {
                least: (self.mask / (1.0 - self.mask)).max(1.0),
                mask: self.mask,
                value: span,
            });
        }
        if self.patience.is_some() && self.validation == 0.0 {
            return Err(TrainError::PatienceWithoutValidation);
        }
        self.optimizer.check()
    }

    /// The learning rate of every step.
    pub fn schedule(&self) -> Schedule {
        Schedule {
            iterations: self.iterations,
            learning_rate: self.learning_rate,
            warmup: self.warmup,
            decay: self.decay.clone(),
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

    /// Which of so many samples are learned from, which choose the weights and which are held out.
    pub fn split(&self, rows: usize) -> Result<Split, TrainError> {
        super::batches::split(self, rows)
    }

    /// What samples are dealt out by.
    pub fn dealt_by(&self) -> u64 {
        self.split_seed.unwrap_or(self.seed)
    }

    /// The chance of masking in a step, counted from zero, and the mean length of a span if they are not masked one by one.
    pub(super) fn masking(&self, iteration: usize) -> (f64, Option<f64>) {
        let rise = match iteration < self.mask_warmup {
            true => (iteration + 1) as f64 / self.mask_warmup as f64,
            false => 1.0,
        };
        let span = self.mask_span.map(|span| 1.0 + (span - 1.0) * rise);
        (self.mask * rise, span)
    }
}
