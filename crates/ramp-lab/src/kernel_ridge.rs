//! Kernel ridge regression with a Gaussian kernel and scikit-learn's default settings: how much of a known quantity can be
//! read off a latent.

use crate::error::LabError;
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use rayon::prelude::*;

/// The penalty of scikit-learn's `KernelRidge`.
const PENALTY: f64 = 1.0;

/// `y ≈ Σ a_i exp(−γ |x − x_i|²)` with `a = (K + I)⁻¹ y` and `γ` one over the number of features; no intercept.
#[derive(Clone, Debug)]
pub struct KernelRidge {
    features: usize,
    points: Vec<f64>,
    /// A row per point, a column per target.
    weights: Mat<f64>,
}

impl KernelRidge {
    /// Fits to points (feature after feature, point after point) and one or more targets for each.
    pub fn fit(points: Vec<f64>, features: usize, targets: &[Vec<f64>]) -> Result<Self, LabError> {
        let count = points.len() / features.max(1);
        if features == 0 || count == 0 || count * features != points.len() {
            return Err(LabError::Invalid(format!(
                "{} numbers are not a number of points with {features} features",
                points.len()
            )));
        }
        if targets.is_empty() || targets.iter().any(|t| t.len() != count) {
            return Err(LabError::Invalid(format!(
                "kernel ridge regression needs targets for each of its {count} points"
            )));
        }
        let finite = |values: &[f64]| values.iter().all(|x| x.is_finite());
        if !finite(&points) || !targets.iter().all(|t| finite(t)) {
            return Err(LabError::Invalid(
                "kernel ridge regression was given numbers that are not finite".into(),
            ));
        }
        let gram: Vec<f64> = points
            .par_chunks_exact(features)
            .flat_map_iter(|a| points.chunks_exact(features).map(|b| kernel(a, b)))
            .collect();
        let penalised = Mat::from_fn(count, count, |i, j| {
            gram[i * count + j] + if i == j { PENALTY } else { 0.0 }
        });
        drop(gram);
        let factor = penalised
            .llt(Side::Lower)
            .map_err(|_| LabError::Singular { what: "a kernel" })?;
        let targets = Mat::from_fn(count, targets.len(), |i, k| targets[k][i]);
        Ok(KernelRidge {
            features,
            points,
            weights: factor.solve(&targets),
        })
    }

    /// The prediction of every target at new points.
    pub fn predict(&self, points: &[f64]) -> Vec<Vec<f64>> {
        let targets = self.weights.ncols();
        let rows: Vec<f64> = points
            .par_chunks_exact(self.features)
            .flat_map_iter(|x| {
                let mut sums = vec![0.0; targets];
                for (i, known) in self.points.chunks_exact(self.features).enumerate() {
                    let near = kernel(x, known);
                    for (k, sum) in sums.iter_mut().enumerate() {
                        *sum += near * self.weights[(i, k)];
                    }
                }
                sums
            })
            .collect();
        (0..targets)
            .map(|k| rows.iter().skip(k).step_by(targets).copied().collect())
            .collect()
    }
}

fn kernel(a: &[f64], b: &[f64]) -> f64 {
    let distance: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    (-distance / a.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_scikit_learn_gives() {
        // KernelRidge(kernel="rbf").fit(X, Y).predict(Z) of scikit-learn 1.9 with these numbers.
        let x = vec![0.0, 0.0, 1.0, 0.5, -0.3, 2.0, 0.7, -1.1];
        let targets = [vec![1.0, -2.0, 0.5, 3.0], vec![0.0, 1.0, 2.0, -1.0]];
        let ridge = KernelRidge::fit(x, 2, &targets).unwrap();
        let predicted = ridge.predict(&[0.2, 0.1, 3.0, -3.0]);
        let expected = [
            [0.30109014452732474, 0.018016025527804565],
            [0.17353665828280113, -0.00632817836694882],
        ];
        for (row, known) in predicted.iter().zip(&expected) {
            for (value, known) in row.iter().zip(known) {
                assert!((value - known).abs() < 1e-9, "{predicted:?}");
            }
        }
    }

    #[test]
    fn a_smooth_function_is_read_off_and_noise_is_not() {
        let points: Vec<f64> = (0..400).map(|i| f64::from(i) / 100.0 - 2.0).collect();
        let smooth: Vec<f64> = points.iter().map(|x| (1.5 * x).sin()).collect();
        let odd: Vec<f64> = (0..400).map(|i| f64::from(i % 2) - 0.5).collect();
        let ridge = KernelRidge::fit(points.clone(), 1, &[smooth.clone(), odd.clone()]).unwrap();
        let new: Vec<f64> = points.iter().map(|x| x + 0.005).collect();
        let predicted = ridge.predict(&new);
        assert!(crate::metrics::r_squared(&smooth, &predicted[0]) > 0.99);
        assert!(crate::metrics::r_squared(&odd, &predicted[1]) < 0.1);
    }

    #[test]
    fn mistakes_are_sentences() {
        for (points, features, targets) in [
            (vec![], 2, vec![vec![]]),
            (vec![1.0, 2.0, 3.0], 2, vec![vec![1.0]]),
            (vec![1.0, 2.0], 1, vec![vec![1.0]]),
            (vec![1.0, f64::NAN], 1, vec![vec![1.0, 2.0]]),
        ] {
            assert!(KernelRidge::fit(points, features, &targets).is_err());
        }
    }
}
