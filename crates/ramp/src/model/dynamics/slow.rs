//! What a chain's observations show first: their slow components.
//!
//! The largest principal components of pictures need not order frames as they follow each other: frames that share no pixel are
//! all equally far apart. Among the larger components, those that change least from step to step do (slow feature analysis).

use super::linalg::eigen;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Principal components that slow ones are sought among, at most.
const COMPONENTS: usize = 40;
/// Directions beyond these in the sketch that finds them, and its rounds.
const BEYOND: usize = 8;
const ROUNDS: usize = 3;
/// Components with less than this share of the largest variance are noise.
const LEAST: f64 = 1e-5;

/// A linear map from a row of observations to components of unit variance, the slowest first.
#[derive(Clone, Debug)]
pub struct SlowComponents {
    /// The mean row.
    pub mean: Vec<f64>,
    /// For each component, a weight for every number of a row.
    pub weights: Vec<Vec<f64>>,
    /// How each goes with itself one step later.
    pub lagged: Vec<f64>,
    /// The principal directions that they were sought among, scaled so that rows vary by one along each.
    pub directions: Vec<Vec<f64>>,
}

impl SlowComponents {
    /// Up to `count` of them from rows of `width` numbers; `next[i]` is the row one step after row `i`, if there is one.
    pub fn of(rows: &[f32], width: usize, next: &[Option<u32>], count: usize, seed: u64) -> Self {
        let n = rows.len() / width;
        let row = |i: usize| &rows[i * width..][..width];
        let mut mean = vec![0.0; width];
        for i in 0..n {
            mean.iter_mut()
                .zip(row(i))
                .for_each(|(m, &x)| *m += f64::from(x) / n as f64);
        }
        let directions = principal(rows, width, &mean, seed);
        // The rows in these directions, of unit variance.
        let scores: Vec<Vec<f64>> = (0..n)
            .into_par_iter()
            .map(|i| directions.iter().map(|d| along(row(i), &mean, d)).collect())
            .collect();
        let k = directions.len();
        // How components go with themselves one step later, the same both ways in time.
        let mut lagged = vec![0.0; k * k];
        let mut pairs = 0.0;
        for (i, j) in next.iter().enumerate() {
            let Some(j) = j else { continue };
            let (a, b) = (&scores[i], &scores[*j as usize]);
            pairs += 1.0;
            for p in 0..k {
                for q in 0..k {
                    lagged[p * k + q] += 0.5 * (a[p] * b[q] + a[q] * b[p]);
                }
            }
        }
        lagged.iter_mut().for_each(|x| *x /= f64::max(pairs, 1.0));
        let (values, slow) = eigen(k, &lagged);
        let weights = slow
            .iter()
            .take(count)
            .map(|v| {
                let mut weights = vec![0.0; width];
                for (direction, part) in directions.iter().zip(v) {
                    weights
                        .iter_mut()
                        .zip(direction)
                        .for_each(|(w, d)| *w += part * d);
                }
                weights
            })
            .collect();
        let lagged = values.into_iter().take(count).collect();
        SlowComponents {
            mean,
            weights,
            lagged,
            directions,
        }
    }

    /// A row in principal components as they are, so that distances between rows are kept.
    pub fn principal_scores(&self, row: &[f32]) -> Vec<f64> {
        // A direction is as long as the spread along it is short.
        let score = |d: &Vec<f64>| along(row, &self.mean, d) / dot(d, d).sqrt();
        self.directions.iter().map(score).collect()
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The squared distance of two points.
pub fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// A row's place along a direction.
pub fn along(row: &[f32], mean: &[f64], direction: &[f64]) -> f64 {
    let parts = row.iter().zip(mean).zip(direction);
    parts.map(|((&x, m), d)| (f64::from(x) - m) * d).sum()
}

/// Directions along which rows vary most, scaled so that they vary by one, from a random sketch.
pub fn principal(rows: &[f32], width: usize, mean: &[f64], seed: u64) -> Vec<Vec<f64>> {
    let n = rows.len() / width;
    let count = width.min(COMPONENTS + BEYOND);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut basis: Vec<Vec<f64>> = (0..count)
        .map(|_| {
            (0..width)
                .map(|_| StandardNormal.sample(&mut rng))
                .collect()
        })
        .collect();
    let mut scores = vec![];
    for _ in 0..ROUNDS {
        orthonormalise(&mut basis);
        scores = (0..n)
            .into_par_iter()
            .map(|i| {
                let row = &rows[i * width..][..width];
                basis
                    .iter()
                    .map(|b| along(row, mean, b))
                    .collect::<Vec<f64>>()
            })
            .collect::<Vec<_>>();
        basis = (0..count)
            .into_par_iter()
            .map(|k| {
                let mut sum = vec![0.0; width];
                for (i, score) in scores.iter().enumerate() {
                    let (row, s) = (&rows[i * width..][..width], score[k]);
                    for ((to, &x), m) in sum.iter_mut().zip(row).zip(mean) {
                        *to += s * (f64::from(x) - m);
                    }
                }
                sum
            })
            .collect();
    }
    orthonormalise(&mut basis);
    scores = (0..n)
        .into_par_iter()
        .map(|i| {
            let row = &rows[i * width..][..width];
            basis.iter().map(|b| along(row, mean, b)).collect()
        })
        .collect();
    let mut covariance = vec![0.0; count * count];
    for score in &scores {
        for p in 0..count {
            for q in 0..count {
                covariance[p * count + q] += score[p] * score[q] / n as f64;
            }
        }
    }
    let (values, vectors) = eigen(count, &covariance);
    let kept = values
        .iter()
        .take(COMPONENTS)
        .take_while(|v| **v > LEAST * values[0] && **v > 0.0)
        .count();
    (0..kept)
        .map(|k| {
            let mut direction = vec![0.0; width];
            for (b, part) in basis.iter().zip(&vectors[k]) {
                let part = part / values[k].sqrt();
                direction
                    .iter_mut()
                    .zip(b)
                    .for_each(|(d, b)| *d += part * b);
            }
            direction
        })
        .collect()
}

/// Gram and Schmidt, twice.
pub fn orthonormalise(basis: &mut [Vec<f64>]) {
    for k in 0..basis.len() {
        let (before, rest) = basis.split_at_mut(k);
        let own = &mut rest[0];
        for _ in 0..2 {
            for other in before.iter() {
                let along = dot(own, other);
                own.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
            }
        }
        let size = dot(own, own).sqrt();
        let scale = if size > 0.0 { 1.0 / size } else { 0.0 };
        own.iter_mut().for_each(|x| *x *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_component_comes_first_whatever_its_size() {
        // A small slow wave and a large fast one, mixed.
        let rows: Vec<f32> = (0..600)
            .flat_map(|t| {
                let (slow, fast) = ((t as f32 * 0.02).sin(), 5.0 * (t as f32 * 1.3).sin());
                [slow + fast, fast - slow, 0.3 * slow]
            })
            .collect();
        let next: Vec<Option<u32>> = (0..600).map(|t| (t < 599).then_some(t + 1)).collect();
        let found = SlowComponents::of(&rows, 3, &next, 2, 0);
        assert_eq!(found.weights.len(), 2);
        let at = |t: usize| along(&rows[t * 3..][..3], &found.mean, &found.weights[0]);
        let (mut xy, mut xx, mut yy) = (0.0_f64, 0.0, 0.0_f64);
        for t in 0..600 {
            let slow = (t as f64 * 0.02).sin();
            xy += at(t) * slow;
            xx += at(t) * at(t);
            yy += slow * slow;
        }
        assert!((xy / (xx * yy).sqrt()).abs() > 0.99);
        assert!((xx / 600.0 - 1.0).abs() < 1e-6);
    }
}
