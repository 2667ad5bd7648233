//! Linear baselines: principal components of windows of observations, and a Kalman smoother whose parameters are found by
//! expectation maximisation, begun at those components.
//!
//! A picture is a curved function of the state: the place of a dot bends through many components. So as many components as the state
//! has numbers say the place, several times over, and nothing of the velocity, which comes with the components after them; both
//! baselines are measured with as many numbers as the state has and with more.

mod kalman;
#[cfg(test)]
mod tests;

pub(super) use kalman::kalman_smoothers;

use crate::baselines::Sequences;
use crate::error::LabError;
use crate::experiments::state_probe::Points;
use faer::{Mat, Side};
use rayon::prelude::*;

/// Principal components of single observations that everything starts from, at most.
const COMPONENTS: usize = 24;
/// Observations that they are found from, at most, and rounds of the iteration that finds them.
const FOUND_FROM: usize = 3000;
const ROUNDS: usize = 6;
/// Steps before and after the present one in a window.
const REACH: usize = 4;

/// Observations by their largest principal components, of training sequences and of others in the same directions.
pub(super) struct Scores {
    steps: usize,
    width: usize,
    /// Step by step, sequence by sequence.
    values: Vec<f64>,
}

impl Scores {
    /// Those of training and test sequences, in units of the largest component's standard deviation.
    pub fn of(train: &dyn Sequences, test: &dyn Sequences) -> Result<[Scores; 2], LabError> {
        let (mean, axes) = principal(train)?;
        let project = |of: &dyn Sequences| {
            let rows: Vec<Vec<f64>> = (0..of.count() * of.steps())
                .into_par_iter()
                .map(|i| {
                    let mut row = vec![0.0; of.width()];
                    of.read(i / of.steps(), i % of.steps(), &mut row);
                    axes.iter().map(|axis| along(&row, &mean, axis)).collect()
                })
                .collect();
            Scores {
                steps: of.steps(),
                width: axes.len(),
                values: rows.concat(),
            }
        };
        let mut scores = [project(train), project(test)];
        let largest = (0..scores[0].values.len() / axes.len())
            .map(|i| scores[0].values[i * axes.len()].powi(2))
            .sum::<f64>()
            / (scores[0].values.len() / axes.len()) as f64;
        let scale = 1.0 / largest.sqrt().max(1e-12);
        for part in &mut scores {
            part.values.iter_mut().for_each(|x| *x *= scale);
        }
        Ok(scores)
    }

    fn row(&self, sequence: usize, step: usize) -> &[f64] {
        &self.values[(sequence * self.steps + step) * self.width..][..self.width]
    }

    fn count(&self) -> usize {
        self.values.len() / (self.steps * self.width)
    }

    /// Some of the sequences.
    fn select(&self, chosen: &[usize]) -> Scores {
        let one = self.steps * self.width;
        let values = chosen.iter().flat_map(|&n| &self.values[n * one..][..one]);
        Scores {
            values: values.copied().collect(),
            ..*self
        }
    }

    /// The scores around every step, with the first and the last one repeated beyond the ends.
    fn windows(&self) -> (usize, Vec<f64>) {
        let mut windows = vec![];
        for n in 0..self.count() {
            for t in 0..self.steps {
                for at in t as isize - REACH as isize..=(t + REACH) as isize {
                    let at = at.clamp(0, self.steps as isize - 1) as usize;
                    windows.extend_from_slice(self.row(n, at));
                }
            }
        }
        (self.width * (2 * REACH + 1), windows)
    }
}

/// So many principal components of windows, each of unit variance on training sequences.
pub(super) fn window_components(
    [train, test]: [&Scores; 2],
    dimension: usize,
) -> Result<[Points; 2], LabError> {
    let ((width, known), (_, others)) = (train.windows(), test.windows());
    let count = known.len() / width;
    let mean: Vec<f64> = (0..width)
        .map(|k| known.iter().skip(k).step_by(width).sum::<f64>() / count as f64)
        .collect();
    let centred = Mat::from_fn(count, width, |i, k| known[i * width + k] - mean[k]);
    let covariance = centred.transpose() * &centred;
    let eigen = covariance
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| LabError::Singular { what: "windows" })?;
    // Eigenvalues come in rising order.
    let axes: Vec<Vec<f64>> = (1..=dimension.min(width))
        .map(|k| {
            let column = width - k;
            let spread = (eigen.S().column_vector()[column] / count as f64)
                .max(1e-12)
                .sqrt();
            (0..width)
                .map(|i| eigen.U()[(i, column)] / spread)
                .collect()
        })
        .collect();
    Ok([&known, &others].map(|windows| Points {
        features: axes.len(),
        values: windows
            .par_chunks_exact(width)
            .flat_map_iter(|w| {
                let place = |axis: &Vec<f64>| -> f64 {
                    w.iter()
                        .zip(&mean)
                        .zip(axis)
                        .map(|((x, m), a)| (x - m) * a)
                        .sum()
                };
                axes.iter().map(place).collect::<Vec<_>>()
            })
            .collect(),
    }))
}

/// Turns and scales points to unit variance in every direction on training sequences: a baseline's coordinates are arbitrary, and
/// probes take all of them alike. Directions in which points hardly differ stay small.
pub(super) fn whiten(points: &mut [Points; 2]) -> Result<(), LabError> {
    let d = points[0].features;
    let count = (points[0].values.len() / d) as f64;
    let mut mean = vec![0.0; d];
    let mut covariance = Mat::<f64>::zeros(d, d);
    for p in points[0].values.chunks_exact(d) {
        for i in 0..d {
            mean[i] += p[i] / count;
            (0..d).for_each(|j| covariance[(i, j)] += p[i] * p[j] / count);
        }
    }
    for i in 0..d {
        (0..d).for_each(|j| covariance[(i, j)] -= mean[i] * mean[j]);
    }
    let eigen = covariance
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| LabError::Singular {
            what: "the states of a smoother",
        })?;
    let values = eigen.S().column_vector();
    let least = (1e-6 * values[d - 1]).max(1e-12);
    for part in points.iter_mut() {
        for p in part.values.chunks_exact_mut(d) {
            let off: Vec<f64> = p.iter().zip(&mean).map(|(x, m)| x - m).collect();
            for (k, to) in p.iter_mut().enumerate() {
                let along: f64 = (0..d).map(|i| eigen.U()[(i, k)] * off[i]).sum();
                *to = along / values[k].max(least).sqrt();
            }
        }
    }
    Ok(())
}

fn along(row: &[f32], mean: &[f64], axis: &[f64]) -> f64 {
    let parts = row.iter().zip(mean).zip(axis);
    parts.map(|((&x, m), a)| (f64::from(x) - m) * a).sum()
}

/// The mean observation and the directions along which observations vary most, by orthogonal iteration.
fn principal(of: &dyn Sequences) -> Result<(Vec<f64>, Vec<Vec<f64>>), LabError> {
    let (all, width) = (of.count() * of.steps(), of.width());
    let every = all.div_ceil(FOUND_FROM).max(1);
    let mut rows = vec![];
    for i in (0..all).step_by(every) {
        let mut row = vec![0.0; width];
        of.read(i / of.steps(), i % of.steps(), &mut row);
        rows.push(row);
    }
    let mean: Vec<f64> = (0..width)
        .map(|k| rows.iter().map(|r| f64::from(r[k])).sum::<f64>() / rows.len() as f64)
        .collect();
    let centred = Mat::from_fn(rows.len(), width, |i, k| f64::from(rows[i][k]) - mean[k]);
    let count = COMPONENTS.min(width).min(rows.len());
    // Any start that no component is at right angles to will do.
    let mut basis = Mat::from_fn(width, count, |i, k| {
        ((i * (2 * k + 3) + k) as f64 * 0.7).sin()
    });
    for _ in 0..ROUNDS {
        let orthogonal = basis.qr().compute_thin_Q();
        basis = centred.transpose() * (&centred * orthogonal);
    }
    let orthogonal = basis.qr().compute_thin_Q();
    let scores = &centred * &orthogonal;
    let covariance = scores.transpose() * &scores;
    let eigen = covariance
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| LabError::Singular {
            what: "observations",
        })?;
    let turned = orthogonal * eigen.U();
    let axes = (1..=count)
        .map(|k| (0..width).map(|i| turned[(i, count - k)]).collect())
        .collect();
    Ok((mean, axes))
}
