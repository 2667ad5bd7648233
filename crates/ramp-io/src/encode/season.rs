//! What is usual at a time of the year or of the day: it is learned first, and a chain explains what differs from it.

use crate::source::{Samples, Sequence};
use crate::time::Interval;
use serde::{Deserialize, Serialize};

/// Waves of a period for the mean, and for the spread.
const MEAN_WAVES: usize = 3;
const SPREAD_WAVES: usize = 1;
/// The variance at any time is at least this part of the whole.
const LEAST_VARIANCE: f64 = 0.05;

/// The clock of a chain with seasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Season {
    /// The time between steps.
    pub step: Interval,
    /// After these, numbers come back to what they are like.
    pub periods: Vec<Interval>,
}

/// What is usual for one number, as waves: coefficients of `1, cos, sin, cos 2, sin 2 …` of each period in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Climate {
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// The least variance.
    least: f64,
}

impl Season {
    /// The moment of a step of a sequence, if it is known.
    pub fn moment(&self, sequence: &Sequence, step: u32) -> Option<f64> {
        let steps = f64::from(sequence.offset) + f64::from(step);
        sequence.start.map(|start| self.step.after(start, steps))
    }

    /// The moment of every row of a table that is part of a sequence; `NaN` for others.
    pub fn moments(&self, samples: &Samples) -> Vec<f64> {
        let rows = samples.table().map_or(0, |table| table.num_rows());
        let mut moments = vec![f64::NAN; rows];
        for sequence in samples.sequences.iter().flatten() {
            for (&item, &step) in sequence.items.iter().zip(&sequence.steps) {
                if let Some(moment) = self.moment(sequence, step) {
                    moments[item as usize] = moment;
                }
            }
        }
        moments
    }

    fn waves(&self, moment: f64, each: usize) -> Vec<f64> {
        let mut waves = vec![1.0];
        for period in &self.periods {
            let phase = std::f64::consts::TAU * (moment / period.length()).rem_euclid(1.0);
            for k in 1..=each {
                let (sin, cos) = (k as f64 * phase).sin_cos();
                waves.extend([cos, sin]);
            }
        }
        waves
    }

    /// What is usual, learned from numbers at moments; pairs that are not finite are left out.
    pub fn learn(&self, moments: &[f64], numbers: &[f64]) -> Climate {
        let known: Vec<(f64, f64)> = moments
            .iter()
            .zip(numbers)
            .filter(|(t, x)| t.is_finite() && x.is_finite())
            .map(|(&t, &x)| (t, x))
            .collect();
        let mean = self.fit(&known, MEAN_WAVES);
        let squares: Vec<(f64, f64)> = known
            .iter()
            .map(|&(t, x)| (t, (x - dot(&mean, &self.waves(t, MEAN_WAVES))).powi(2)))
            .collect();
        let all = squares.iter().map(|(_, s)| s).sum::<f64>() / squares.len().max(1) as f64;
        Climate {
            mean,
            variance: self.fit(&squares, SPREAD_WAVES),
            least: (LEAST_VARIANCE * all).max(1e-12),
        }
    }

    /// The mean and the standard deviation that are usual at a moment.
    pub fn usual(&self, climate: &Climate, moment: f64) -> (f64, f64) {
        let variance = dot(&climate.variance, &self.waves(moment, SPREAD_WAVES));
        (
            dot(&climate.mean, &self.waves(moment, MEAN_WAVES)),
            variance.max(climate.least).sqrt(),
        )
    }

    /// Least squares, with as much of a ridge as keeps it solvable.
    fn fit(&self, known: &[(f64, f64)], each: usize) -> Vec<f64> {
        let size = 1 + 2 * each * self.periods.len();
        let mut matrix = vec![vec![0.0; size + 1]; size];
        for &(t, x) in known {
            let waves = self.waves(t, each);
            for (row, a) in matrix.iter_mut().zip(&waves) {
                for (to, b) in row.iter_mut().zip(waves.iter().chain([&x])) {
                    *to += a * b;
                }
            }
        }
        for (i, row) in matrix.iter_mut().enumerate() {
            row[i] += 1e-6 * (known.len().max(1)) as f64;
        }
        solve(matrix)
    }

    /// Whether one that was read from a file can be used with these.
    pub fn is_sound(&self, climate: &Climate) -> bool {
        let sizes = |values: &[f64], each: usize| {
            values.len() == 1 + 2 * each * self.periods.len()
                && values.iter().all(|x| x.is_finite())
        };
        self.step.is_sound()
            && self.periods.iter().all(Interval::is_sound)
            && sizes(&climate.mean, MEAN_WAVES)
            && sizes(&climate.variance, SPREAD_WAVES)
            && climate.least.is_finite()
            && climate.least > 0.0
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves a positive definite system whose right side is its last column, by elimination.
fn solve(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let size = matrix.len();
    for i in 0..size {
        let pivot = matrix[i][i];
        matrix[i].iter_mut().for_each(|x| *x /= pivot);
        let row = matrix[i].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = other[i];
            other
                .iter_mut()
                .zip(&row)
                .for_each(|(x, r)| *x -= factor * r);
        }
    }
    matrix.into_iter().map(|row| row[size]).collect()
}

/// The seasons that dates show by themselves: a year of steps of a week at most, a day of steps of a quarter of a day at most, where there are
/// two of them and more to learn from.
pub(crate) fn found_in(step: Option<Interval>, samples: &Samples) -> Vec<Interval> {
    let Some(step) = step.filter(|step| step.is_calendar()) else {
        return vec![];
    };
    let sequences = samples.sequences.iter().flatten();
    let longest = sequences
        .filter(|s| s.start.is_some())
        .map(|s| f64::from(s.length))
        .fold(0.0, f64::max);
    let long = |(text, finest, times): (&str, f64, f64)| {
        let period: Interval = text.parse().ok()?;
        let fits = step.length() * finest <= period.length();
        (fits && longest * step.length() >= times * period.length()).then_some(period)
    };
    [("1y", 52.0, 2.0), ("1d", 4.0, 7.0)]
        .into_iter()
        .filter_map(long)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_and_their_spread_are_found_again() {
        let season = Season {
            step: "1d".parse().unwrap(),
            periods: vec!["1y".parse().unwrap()],
        };
        let year = season.periods[0].length();
        let moments: Vec<f64> = (0..2000).map(|n| n as f64 * 86_400.0).collect();
        let usual = |t: f64| {
            let phase = std::f64::consts::TAU * t / year;
            (
                3.0 + 2.0 * (phase - 1.0).cos() - 0.5 * (2.0 * phase).sin(),
                (1.0 + 0.6 * phase.cos()).sqrt(),
            )
        };
        // Deviations of one size, either way in turn.
        let numbers: Vec<f64> = moments
            .iter()
            .enumerate()
            .map(|(n, &t)| usual(t).0 + usual(t).1 * if n % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let climate = season.learn(&moments, &numbers);
        assert!(season.is_sound(&climate));
        for &t in moments.iter().step_by(37) {
            let ((mean, sd), (a, b)) = (season.usual(&climate, t), usual(t));
            assert!(
                (mean - a).abs() < 0.01 && (sd - b).abs() < 0.02,
                "{mean} {a}, {sd} {b}"
            );
        }
        let text = serde_json::to_string(&(&season, &climate)).unwrap();
        let read: (Season, Climate) = serde_json::from_str(&text).unwrap();
        assert_eq!(read.0, season);
        assert!(season.is_sound(&read.1));
    }
}
