//! How many steps two observations are apart, as sequences take them there: Mahalanobis distances by local covariances of changes (Singer and Coifman, 2008).
//!
//! Near a row the covariance of changes from step to step is `J C Jᵀ`, where the system's own, `C`, is shown by a smooth map with the derivative `J`. Along the
//! manifold its inverse measures by that of `C` to first order, however the system is shown; directions in which nothing moves are bounded by [`STILL`].

use super::linalg::cholesky;
use super::slow::{dot, squared};
use rayon::prelude::*;

/// Changes near a landmark that tell how far a step goes there, and among how many they are sought.
const NEAR: usize = 60;
const SOUGHT: usize = 8000;
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
    let every = moving.len().div_ceil(SOUGHT);
    let moving: Vec<(&[f64], &[f64])> = moving.into_iter().step_by(every).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// As many places as count as near, so that all have the covariance of all changes.
    fn plane() -> (Vec<[f64; 2]>, Vec<[f64; 2]>) {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut points = |x: f64, y: f64| -> Vec<[f64; 2]> {
            let mut one = || [rng.random_range(-x..x), rng.random_range(-y..y)];
            (0..NEAR).map(|_| one()).collect()
        };
        (points(5.0, 2.0), points(0.3, 0.1))
    }

    fn shown(points: &[[f64; 2]], by: &[[f64; 2]]) -> Vec<Vec<f64>> {
        let at = |p: &[f64; 2]| by.iter().map(|[a, b]| a * p[0] + b * p[1]).collect();
        points.iter().map(at).collect()
    }

    #[test]
    fn distances_in_steps_are_those_of_the_system_however_it_is_shown() {
        let (places, changes) = plane();
        let sum = |f: &dyn Fn(&[f64; 2]) -> f64| changes.iter().map(f).sum::<f64>() / NEAR as f64;
        let (xx, xy, yy) = (
            sum(&|c| c[0] * c[0]),
            sum(&|c| c[0] * c[1]),
            sum(&|c| c[1] * c[1]),
        );
        let exact = |i: usize, j: usize| {
            let [x, y] = [0, 1].map(|k| places[i][k] - places[j][k]);
            ((yy * x * x - 2.0 * xy * x * y + xx * y * y) / (xx * yy - xy * xy)).sqrt()
        };
        // As it is, and with one direction nearly hidden in more numbers than there are.
        for by in [
            &[[1.0, 0.0], [0.0, 1.0]][..],
            &[[2.0, 1.5], [1.5, 2.0], [0.5, -0.5], [0.0, 1.0]],
        ] {
            let rows = shown(&places, by);
            let moves: Vec<Option<Vec<f64>>> = shown(&changes, by).into_iter().map(Some).collect();
            let found = step_distances(&rows, &rows, &moves).unwrap();
            for i in 0..NEAR {
                for j in 0..NEAR {
                    let off = (found[i * NEAR + j] - exact(i, j)).abs();
                    assert!(off < 0.05 * (1.0 + exact(i, j)), "{i} {j} {off}");
                }
            }
        }
    }

    #[test]
    fn what_rests_has_no_distances_in_steps() {
        let (places, changes) = plane();
        let unit = [[1.0, 0.0], [0.0, 1.0]];
        let rows = shown(&places, &unit);
        let mut moves: Vec<Option<Vec<f64>>> =
            shown(&changes, &unit).into_iter().map(Some).collect();
        moves[7] = None;
        assert!(step_distances(&rows, &rows, &moves).is_none());
        let rest = vec![Some(vec![0.0, 0.0]); NEAR];
        assert!(step_distances(&rows, &rows, &rest).is_none());
    }
}
