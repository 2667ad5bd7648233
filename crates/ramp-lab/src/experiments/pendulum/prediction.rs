//! Frames to come: what training videos showed after moments at which beliefs about them were like the last belief about this one.
//!
//! Beliefs are filtered: they know the past only. A belief of the present that is a state tells the future as well as anything can, and
//! training videos that passed through the same state show how it goes on; how far they go apart is how sure a prediction is.

use super::data::{Videos, wrapped};
use super::probe::filtered;
use crate::error::LabError;
use crate::experiments::state_probe::Points;
use ramp::data::Dataset;
use ramp::model::Model;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Predicted angles, in radians, one number for each step ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Mean absolute errors by what training videos did from such a state.
    pub ramp: Vec<f64>,
    /// The share of videos whose angle lies in the interval that is stated to hold it with [`STATED`] chance.
    pub covered: Vec<f64>,
    /// The mean width of these intervals.
    pub width: Vec<f64>,
    /// Mean absolute errors if the pendulum stayed where it was seen last.
    pub stay: Vec<f64>,
    /// The same if it went on as between the last two frames seen.
    pub go_on: Vec<f64>,
}

/// The chance that an interval is stated with.
pub const STATED: f64 = 0.8;
/// Moments of training videos that tell how it goes on. Between the fourth and the thirty-sixth of 39 lies the next one of the kind in
/// four of five cases.
const MOMENTS: usize = 39;
const TAIL: usize = 4;
/// The beliefs that make a moment, by steps before it.
const LAGS: [usize; 2] = [0, 4];
/// Videos whose predictions are drawn.
const SHOWN: usize = 3;

/// What was predicted for one video: candidate angles, all of the same chance, step by step.
pub(super) struct Predicted {
    pub angles: Vec<Vec<f64>>,
}

/// Moments of videos by the beliefs about them.
struct Moments<'a> {
    steps: usize,
    beliefs: &'a Points,
    /// What each coordinate is multiplied with.
    scale: &'a [f64],
}

impl Moments<'_> {
    fn at(&self, video: usize, step: usize) -> Vec<f64> {
        let width = self.beliefs.features;
        let belief = |&lag: &usize| {
            let place = video * self.steps + step.saturating_sub(lag);
            let values = &self.beliefs.values[place * width..][..width];
            values.iter().zip(self.scale).map(|(x, s)| x * s)
        };
        LAGS.iter().flat_map(belief).collect()
    }
}

/// Predicts the last `ahead` frames of test videos from those before, two at least, and gives the predictions for the first
/// videos. Angles serve to judge, the model sees pictures.
pub(super) fn predict(
    model: &Model,
    (train, train_theta): (&Dataset, &[f64]),
    (test, videos): (&Dataset, &Videos),
    ahead: usize,
) -> Result<(Prediction, Vec<Predicted>), LabError> {
    let steps = videos.sizes.steps;
    let seen = steps - ahead;
    let (known, fresh) = (filtered(model, train)?, filtered(model, test)?);
    let scale = reciprocal_spread(&known);
    let moments = |beliefs| Moments {
        steps,
        beliefs,
        scale: &scale,
    };
    let (known, fresh) = (moments(&known), moments(&fresh));
    // Where a moment has both its past and as many steps ahead.
    let first = LAGS.iter().copied().max().unwrap_or(0).min(seen - 1);
    let places: Vec<(usize, usize)> = (0..train_theta.len() / steps)
        .flat_map(|video| (first..seen).map(move |step| (video, step)))
        .collect();
    let past: Vec<Vec<f64>> = places.iter().map(|&(v, t)| known.at(v, t)).collect();
    let each: Vec<Vec<Forecast>> = (0..videos.sizes.sequences)
        .into_par_iter()
        .map(|video| {
            let chosen = nearest(&past, &fresh.at(video, seen - 1));
            let forecast = |k: usize| {
                let shown = chosen.iter().map(|&i| {
                    let (video, step) = places[i];
                    train_theta[video * steps + step + k + 1]
                });
                Forecast::of(shown.collect())
            };
            (0..ahead).map(forecast).collect()
        })
        .collect();
    let mean = |of: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        let over = |k: usize| (0..each.len()).map(|video| of(video, k)).sum::<f64>();
        (0..ahead).map(|k| over(k) / each.len() as f64).collect()
    };
    let theta = |video: usize, step: usize| videos.theta[video * steps + step];
    let off = |angle: f64, video: usize, k: usize| wrapped(angle - theta(video, seen + k)).abs();
    let last = |video: usize| theta(video, seen - 1);
    let speed = |video: usize| wrapped(last(video) - theta(video, seen - 2));
    let prediction = Prediction {
        ramp: mean(&|v, k| off(each[v][k].centre, v, k)),
        covered: mean(&|v, k| f64::from(u8::from(each[v][k].covers(theta(v, seen + k))))),
        width: mean(&|v, k| each[v][k].high - each[v][k].low),
        stay: mean(&|v, k| off(last(v), v, k)),
        go_on: mean(&|v, k| off(last(v) + speed(v) * (k + 1) as f64, v, k)),
    };
    let shown = each.into_iter().take(SHOWN).map(|steps| Predicted {
        angles: steps.into_iter().map(|f| f.angles).collect(),
    });
    Ok((prediction, shown.collect()))
}

/// One step of one video.
struct Forecast {
    angles: Vec<f64>,
    /// The mean direction.
    centre: f64,
    /// How far the interval reaches below and above it.
    low: f64,
    high: f64,
}

impl Forecast {
    fn of(angles: Vec<f64>) -> Self {
        let (x, y) = angles
            .iter()
            .fold((0.0, 0.0), |(x, y), a| (x + a.cos(), y + a.sin()));
        let centre = f64::atan2(y, x);
        let mut off: Vec<f64> = angles.iter().map(|a| wrapped(a - centre)).collect();
        off.sort_by(f64::total_cmp);
        let tail = TAIL.min(off.len().div_ceil(2));
        Forecast {
            centre,
            low: off[tail - 1],
            high: off[off.len() - tail],
            angles,
        }
    }

    fn covers(&self, angle: f64) -> bool {
        (self.low..=self.high).contains(&wrapped(angle - self.centre))
    }
}

/// The moments next to one.
fn nearest(past: &[Vec<f64>], now: &[f64]) -> Vec<usize> {
    let mut by_distance: Vec<(f64, usize)> = past
        .iter()
        .enumerate()
        .map(|(i, then)| {
            let square = then.iter().zip(now).map(|(a, b)| (a - b) * (a - b));
            (square.sum(), i)
        })
        .collect();
    let kept = MOMENTS.min(by_distance.len());
    if kept < by_distance.len() {
        by_distance.select_nth_unstable_by(kept, |a, b| a.0.total_cmp(&b.0));
    }
    by_distance[..kept].iter().map(|&(_, i)| i).collect()
}

/// One over the standard deviation of every coordinate.
fn reciprocal_spread(points: &Points) -> Vec<f64> {
    let width = points.features;
    let count = (points.values.len() / width) as f64;
    (0..width)
        .map(|k| {
            let own = || points.values.iter().skip(k).step_by(width);
            let mean = own().sum::<f64>() / count;
            let square = own().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            1.0 / square.sqrt().max(1e-9)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_as_often_as_is_stated() {
        // Angles around the far side of the circle, where they wrap.
        let angle = |i: usize| wrapped(std::f64::consts::PI + ((i as f64 * 0.618).fract() - 0.5));
        let mut held = 0;
        for case in 0..500 {
            let forecast = Forecast::of((0..MOMENTS).map(|i| angle(case * 40 + i)).collect());
            held += usize::from(forecast.covers(angle(case * 40 + MOMENTS)));
            assert!(forecast.high - forecast.low < 1.0, "wrapped the wrong way");
        }
        assert!((380..=420).contains(&held), "{held} of 500");
    }

    #[test]
    fn the_nearest_are_found() {
        let past: Vec<Vec<f64>> = (0..100).map(|i| vec![f64::from(i)]).collect();
        let mut found = nearest(&past, &[70.2]);
        found.sort_unstable();
        assert_eq!(found, (51..=89).collect::<Vec<_>>());
    }
}
