//! How long a training will take: some of its own steps, timed.

use super::Project;
use crate::Result;
use ramp::model::{Initialisation, Model};
use ramp::train::{Control, Event, TrainError, TrainSpec, Trainer};

/// Steps that are timed at most, and seconds after which no more are begun.
const STEPS: usize = 25;
const SECONDS: f64 = 2.0;
/// Steps between looks at validation samples meanwhile: both kinds must be met.
const EVERY: usize = 3;

/// How long a training takes on this machine, from some of its own steps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Seconds of a step.
    pub step: f64,
    /// Seconds of a look at validation samples.
    pub evaluation: f64,
    /// Steps that were timed.
    pub timed: usize,
    /// Steps of pretraining, before the first iteration.
    trial: usize,
    every: usize,
    iterations: usize,
    stops_early: bool,
}

impl Estimate {
    /// Seconds for so many iterations, with pretraining before them.
    pub fn seconds(&self, iterations: usize) -> f64 {
        let steps = (iterations + self.trial) as f64;
        steps * self.step + (iterations / self.every) as f64 * self.evaluation
    }

    /// It in words.
    pub fn sentence(&self) -> String {
        let (least, most) = match self.stops_early {
            true => (
                "at most ",
                ", less where it stops because validation samples gain nothing",
            ),
            false => ("", ""),
        };
        let named = match self.timed {
            1 => "one step".to_string(),
            n => format!("{n} steps"),
        };
        format!(
            "training takes {least}about {} on this machine for {} iterations ({named} timed){most}",
            span(self.seconds(self.iterations)),
            self.iterations
        )
    }
}

/// A span of time in the unit that suits it.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

/// The one in the middle; the larger of two.
fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied()
}

impl Project {
    /// Takes some steps of the training on a copy of the model and times them, by a clock that counts seconds.
    ///
    /// What comes before (the initialisation of a tree as a factor model) and after (measuring what was learned, the report) is left out: it
    /// takes seconds where training takes minutes. Ranks that hold the samples together call this together.
    pub fn estimate(&self, clock: impl Fn() -> f64) -> Result<Estimate> {
        let spec = TrainSpec {
            evaluate_every: EVERY,
            patience: None,
            ..self.train.clone()
        };
        let (mut plain, mut with_look) = (vec![], vec![]);
        let (begun, mut last) = (clock(), clock());
        let watch = |event: &Event<'_, Model>| {
            let Event::Step { record, .. } = event else {
                return Control::Continue;
            };
            let now = clock();
            // The first step asks for memory that the others find.
            let first = plain.is_empty() && with_look.is_empty() && record.iteration == 1;
            if !first || spec.iterations == 1 {
                match record.held_out {
                    Some(_) => with_look.push(now - last),
                    None => plain.push(now - last),
                }
            }
            last = now;
            let looked = !with_look.is_empty() || spec.validation == 0.0;
            match (looked && now - begun > SECONDS && !plain.is_empty())
                || record.iteration >= STEPS
            {
                true => Control::Stop,
                false => Control::Continue,
            }
        };
        let mut model = self.model.clone();
        let outcome = Trainer::new(spec.clone())?
            .ranks(&**self.data.ranks())
            .observer(watch)
            .fit(&mut model, &self.data);
        match outcome {
            Ok(_) | Err(ramp::Error::Train(TrainError::Interrupted { .. })) => {}
            Err(error) => return Err(error.into()),
        }
        let timed = plain.len() + with_look.len();
        let both = median(with_look);
        let step = median(plain).or(both).unwrap_or(0.0);
        let trial = match self.file.init() {
            Initialisation::Dynamics => ramp::train::trial_steps(&self.model, &self.train),
            _ => 0,
        };
        Ok(Estimate {
            step,
            evaluation: both.map_or(0.0, |both| (both - step).max(0.0)),
            timed,
            trial,
            every: self.train.evaluate_every.max(1),
            iterations: self.train.iterations,
            stops_early: self.train.patience.is_some(),
        })
    }
}
