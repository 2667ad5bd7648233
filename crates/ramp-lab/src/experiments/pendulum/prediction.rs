//! Frames to come: what training videos showed after moments at which beliefs about them were like the last belief about this one.
//!
//! Beliefs are filtered: they know the past only. A belief of the present that is a state tells the future as well as anything can, and
//! training videos that passed through nearly the same state show how it goes on. How far they go apart says which predictions are surer than others, and
//! predictions of training videos from other training videos say how far off they are in all: intervals are as wide as they had to be there.

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
/// Moments of training videos that tell how it goes on.
const MOMENTS: usize = 39;
/// Training videos that are predicted from the others.
const CALIBRATED: usize = 400;
/// The least spread of angles, in radians.
const LEAST: f64 = 1e-4;
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
    // All steps ahead of a moment, by moments of training videos other than one.
    let forecast = |now: Vec<f64>, but: Option<usize>| -> Vec<Forecast> {
        let allowed = |i: usize| Some(places[i].0) != but;
        let chosen = nearest(&past, &now, &allowed);
        let after = |k: usize| {
            let shown = chosen.iter().map(|&i| {
                let (video, step) = places[i];
                train_theta[video * steps + step + k + 1]
            });
            Forecast::of(shown.collect())
        };
        (0..ahead).map(after).collect()
    };
    let calibrated = (train_theta.len() / steps).min(CALIBRATED);
    let practice: Vec<Vec<Forecast>> = (0..calibrated)
        .into_par_iter()
        .map(|video| forecast(known.at(video, seen - 1), Some(video)))
        .collect();
    let reach = |k: usize| {
        let off = |video: usize| {
            let forecast = &practice[video][k];
            let angle = train_theta[video * steps + seen + k];
            wrapped(forecast.centre - angle).abs() / forecast.spread
        };
        stated_quantile((0..calibrated).map(off).collect())
    };
    let reach: Vec<f64> = (0..ahead).map(reach).collect();
    let each: Vec<Vec<Forecast>> = (0..videos.sizes.sequences)
        .into_par_iter()
        .map(|video| forecast(fresh.at(video, seen - 1), None))
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
        covered: mean(&|v, k| {
            let inside = off(each[v][k].centre, v, k) <= reach[k] * each[v][k].spread;
            f64::from(u8::from(inside))
        }),
        width: mean(&|v, k| 2.0 * reach[k] * each[v][k].spread),
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
    /// The mean distance from it.
    spread: f64,
}

impl Forecast {
    fn of(angles: Vec<f64>) -> Self {
        let sum = |(x, y): (f64, f64), a: &f64| (x + a.cos(), y + a.sin());
        let (x, y) = angles.iter().fold((0.0, 0.0), sum);
        let centre = f64::atan2(y, x);
        let off = angles.iter().map(|a| wrapped(a - centre).abs());
        Forecast {
            centre,
            spread: (off.sum::<f64>() / angles.len().max(1) as f64).max(LEAST),
            angles,
        }
    }
}

/// What the next number of the kind does not exceed with the stated chance.
fn stated_quantile(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let place = (STATED * (numbers.len() + 1) as f64).ceil() as usize;
    numbers[place.clamp(1, numbers.len()) - 1]
}

/// The allowed moments next to one.
fn nearest(past: &[Vec<f64>], now: &[f64], allowed: &dyn Fn(usize) -> bool) -> Vec<usize> {
    let mut by_distance: Vec<(f64, usize)> = past
        .iter()
        .enumerate()
        .filter(|(i, _)| allowed(*i))
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
    use std::f64::consts::PI;

    #[test]
    fn an_interval_holds_as_often_as_is_stated() {
        let number = |i: usize| (i as f64 * 0.618).fract();
        let held = (0..500).filter(|case| {
            let known = (0..39).map(|i| number(case * 40 + i)).collect();
            number(case * 40 + 39) <= stated_quantile(known)
        });
        let held = held.count();
        assert!((380..=420).contains(&held), "{held} of 500");
    }

    #[test]
    fn directions_are_averaged_around_the_circle() {
        let forecast = Forecast::of(vec![PI - 0.1, -PI + 0.1, PI, -PI]);
        assert!(wrapped(forecast.centre - PI).abs() < 1e-9);
        assert!((forecast.spread - 0.05).abs() < 1e-9);
    }

    #[test]
    fn the_nearest_are_found() {
        let past: Vec<Vec<f64>> = (0..100).map(|i| vec![f64::from(i)]).collect();
        let mut found = nearest(&past, &[70.2], &|i| i != 70);
        found.sort_unstable();
        let expected: Vec<usize> = (51..=90).filter(|&i| i != 70).collect();
        assert_eq!(found, expected);
    }
}
