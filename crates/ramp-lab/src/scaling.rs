//! Multidimensional scaling: points in a plane whose distances are as near as can be to given ones.
//!
//! Metric scaling by SMACOF, which never makes the stress larger, from the start that classical scaling gives.

use crate::error::LabError;
use faer::{Mat, Side};

/// Rounds, at most, and the share of stress below whose loss a round is the last.
const ROUNDS: usize = 200;
const ENOUGH: f64 = 1e-5;

/// Places in the plane of points given by coordinates, feature after feature, point after point.
pub fn scaled(points: &[f64], features: usize) -> Result<Vec<(f64, f64)>, LabError> {
    let count = points.len() / features.max(1);
    let point = |i: usize| &points[i * features..][..features];
    let distance = |a: &[f64], b: &[f64]| {
        let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
        squares.sum::<f64>().sqrt()
    };
    let wanted: Vec<f64> = (0..count * count)
        .map(|at| distance(point(at / count), point(at % count)))
        .collect();
    let mut places = classical(points, features)?;
    let mut before = stress(&wanted, &places);
    for _ in 0..ROUNDS {
        // Each point goes to the mean of where all others want it.
        let mut moved = vec![(0.0, 0.0); count];
        for (i, to) in moved.iter_mut().enumerate() {
            for j in (0..count).filter(|&j| j != i) {
                let (dx, dy) = (places[i].0 - places[j].0, places[i].1 - places[j].1);
                let ratio = wanted[i * count + j] / dx.hypot(dy).max(1e-12);
                to.0 += ratio * dx;
                to.1 += ratio * dy;
            }
            (to.0, to.1) = (to.0 / count as f64, to.1 / count as f64);
        }
        places = moved;
        let after = stress(&wanted, &places);
        if before - after < ENOUGH * before {
            break;
        }
        before = after;
    }
    Ok(places)
}

/// The sum of squared errors of all distances.
fn stress(wanted: &[f64], places: &[(f64, f64)]) -> f64 {
    let count = places.len();
    let error = |(i, j): (usize, usize)| {
        let (a, b) = (places[i], places[j]);
        (wanted[i * count + j] - (a.0 - b.0).hypot(a.1 - b.1)).powi(2)
    };
    let pairs = (0..count).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.map(error).sum()
}

/// Classical scaling: the two largest principal components.
fn classical(points: &[f64], features: usize) -> Result<Vec<(f64, f64)>, LabError> {
    let count = points.len() / features.max(1);
    if features == 0 || count < 3 || count * features != points.len() {
        return Err(LabError::Invalid(format!(
            "{} numbers are not three points or more with {features} features",
            points.len()
        )));
    }
    let mean: Vec<f64> = (0..features)
        .map(|k| points.iter().skip(k).step_by(features).sum::<f64>() / count as f64)
        .collect();
    let centred = Mat::from_fn(count, features, |i, k| points[i * features + k] - mean[k]);
    let covariance = centred.transpose() * &centred;
    let eigen = covariance
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| LabError::Singular {
            what: "points to scale",
        })?;
    // Eigenvalues come in rising order.
    let along = |i: usize, component: usize| match features.checked_sub(component) {
        None => 0.0,
        Some(column) => (0..features)
            .map(|k| centred[(i, k)] * eigen.U()[(k, column)])
            .sum(),
    };
    Ok((0..count).map(|i| (along(i, 1), along(i, 2))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_in_space_is_found_again() {
        // Two directions of unit length, at right angles.
        let (u, v) = ([0.6, 0.0, 0.8], [0.0, 1.0, 0.0]);
        let flat: Vec<(f64, f64)> = (0..30)
            .map(|i| (f64::from(i % 6), 0.7 * f64::from(i / 6)))
            .collect();
        let points: Vec<f64> = flat
            .iter()
            .flat_map(|&(a, b)| (0..3).map(move |k| a * u[k] + b * v[k]))
            .collect();
        let places = scaled(&points, 3).unwrap();
        for i in 0..30 {
            for j in 0..i {
                let apart = |p: &[(f64, f64)]| (p[i].0 - p[j].0).hypot(p[i].1 - p[j].1);
                assert!((apart(&places) - apart(&flat)).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn stress_is_less_than_that_of_classical_scaling() {
        // A sphere does not fit into the plane.
        let points: Vec<f64> = (0..80)
            .flat_map(|i| {
                let (a, b) = (0.7 * f64::from(i), 0.04 * f64::from(i));
                [a.cos() * b.sin(), a.sin() * b.sin(), b.cos()]
            })
            .collect();
        let wanted: Vec<f64> = (0..80 * 80)
            .map(|at| {
                let (a, b) = (&points[at / 80 * 3..], &points[at % 80 * 3..]);
                (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt()
            })
            .collect();
        let of = |places: &[(f64, f64)]| stress(&wanted, places);
        let (first, last) = (
            of(&classical(&points, 3).unwrap()),
            of(&scaled(&points, 3).unwrap()),
        );
        assert!(last < 0.8 * first, "{first} {last}");
    }
}
