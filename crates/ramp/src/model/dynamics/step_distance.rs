//! How many steps two observations are apart, as sequences take them there.
//!
//! The covariance of changes from step to step near a row is `J C Jᵀ` where the system's own, `C`, is shown by a smooth map with the derivative `J`. So distances by its inverse are those by the inverse of
//! `C`, whatever the map is (nonlinear independent components by local covariances, Singer and Coifman).

use super::geodesic::squared;
use super::linalg::cholesky;
use super::slow::dot;
use rayon::prelude::*;

/// Changes near a landmark that tell how far a step goes there.
const NEAR: usize = 60;
/// What counts as a step in every direction, as a share of the usual squared length of one: where next to nothing moves, or in directions in which nothing does, distances are bounded.
const STILL: f64 = 3e-3;

/// Distances between landmarks in steps that sequences take around both: with the covariance of what changes near a landmark, its inverse measures; of two
/// landmarks the mean of squares. `None` where too little moves.
pub fn step_distances(
    landmarks: &[Vec<f64>],
    rows: &[Vec<f64>],
    changes: &[Option<Vec<f64>>],
) -> Option<Vec<f64>> {
    let (n, width) = (landmarks.len(), landmarks[0].len());
    let moving: Vec<(&[f64], &[f64])> = rows
        .iter()
        .zip(changes)
        .filter_map(|(row, change)| Some((&row[..], change.as_deref()?)))
        .collect();
    if moving.len() < NEAR {
        return None;
    }
    let covariances: Vec<Vec<f64>> = landmarks
        .par_iter()
        .map(|landmark| {
            let mut near: Vec<(f64, &[f64])> = moving
                .iter()
                .map(|(row, change)| (squared(landmark, row), *change))
                .collect();
            near.select_nth_unstable_by(NEAR - 1, |a, b| a.0.total_cmp(&b.0));
            let mut sum = vec![0.0; width * width];
            for (_, change) in &near[..NEAR] {
                for (row, a) in sum.chunks_exact_mut(width).zip(*change) {
                    row.iter_mut()
                        .zip(*change)
                        .for_each(|(to, b)| *to += a * b / NEAR as f64);
                }
            }
            sum
        })
        .collect();
    let length = |c: &Vec<f64>| (0..width).map(|i| c[i * width + i]).sum::<f64>();
    let mut lengths: Vec<f64> = covariances.iter().map(length).collect();
    let (_, usual, _) = lengths.select_nth_unstable_by(n / 2, f64::total_cmp);
    let still = STILL * *usual;
    if !(still > 0.0 && still.is_finite()) {
        return None;
    }
    let from: Vec<Vec<f64>> = landmarks
        .par_iter()
        .zip(covariances)
        .map(|(own, mut covariance)| {
            (0..width).for_each(|i| covariance[i * width + i] += still);
            let factor = cholesky(width, &covariance)?;
            let mut off = vec![0.0; width];
            let lengths = landmarks.iter().map(|other| {
                // |L⁻¹ (other − own)|².
                for i in 0..width {
                    let told = dot(&factor[i * width..][..i], &off[..i]);
                    off[i] = (other[i] - own[i] - told) / factor[i * width + i];
                }
                dot(&off, &off)
            });
            Some(lengths.collect())
        })
        .collect::<Option<_>>()?;
    let mean = |k: usize| (0.5 * (from[k / n][k % n] + from[k % n][k / n])).sqrt();
    Some((0..n * n).into_par_iter().map(mean).collect())
}
