//! Kernel ridge regression with a Gaussian kernel and scikit-learn's default settings: how much of a known quantity can be
//! read off a latent.

use crate::error::LabError;
use crate::metrics::r_squared;
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use rayon::prelude::*;

/// The penalty of scikit-learn's `KernelRidge`.
const PENALTY: f64 = 1.0;
/// What cross-validation chooses from: how much narrower the kernel is, and the penalty; and in how many parts it cuts the points.
const NARROWER: [f64; 4] = [0.7, 1.5, 3.0, 6.0];
const PENALTIES: [f64; 3] = [1.0, 0.1, 0.01];
const FOLDS: usize = 3;
/// Points that cross-validation looks at, at most.
const TRIED: usize = 900;

/// `y ≈ Σ a_i exp(−γ |x − x_i|²)` with `a = (K + I)⁻¹ y` and `γ` one over the number of features; no intercept.
#[derive(Clone, Debug)]
pub struct KernelRidge {
    features: usize,
    points: Vec<f64>,
    /// What coordinates are multiplied with: a narrower kernel.
    narrower: f64,
    /// A row per point, a column per target.
    weights: Mat<f64>,
}

impl KernelRidge {
    /// Fits to points (feature after feature, point after point) and one or more targets for each.
    pub fn fit(points: Vec<f64>, features: usize, targets: &[Vec<f64>]) -> Result<Self, LabError> {
        Self::with(points, features, targets, 1.0, PENALTY)
    }

    /// The same with the width of the kernel and the penalty that cross-validation finds best, on average over the targets.
    pub fn tuned(
        points: Vec<f64>,
        features: usize,
        targets: &[Vec<f64>],
    ) -> Result<Self, LabError> {
        let count = points.len() / features.max(1);
        let every = count.div_ceil(TRIED).max(1);
        let part = |keep: &dyn Fn(usize) -> bool| {
            let chosen: Vec<usize> = (0..count)
                .step_by(every)
                .filter(|&i| keep(i / every))
                .collect();
            let own: Vec<f64> = chosen
                .iter()
                .flat_map(|&i| points[i * features..][..features].to_vec())
                .collect();
            let values: Vec<Vec<f64>> = targets
                .iter()
                .map(|t| chosen.iter().map(|&i| t[i]).collect())
                .collect();
            (own, values)
        };
        let mut best = (f64::MIN, 1.0, PENALTY);
        for narrower in NARROWER {
            for penalty in PENALTIES {
                let mut score = 0.0;
                for fold in 0..FOLDS {
                    let (known, values) = part(&|i| i % FOLDS != fold);
                    let (others, truth) = part(&|i| i % FOLDS == fold);
                    let ridge = Self::with(known, features, &values, narrower, penalty)?;
                    let predicted = ridge.predict(&others);
                    let r2 = truth.iter().zip(&predicted).map(|(t, p)| r_squared(t, p));
                    score += r2.sum::<f64>();
                }
                if score > best.0 {
                    best = (score, narrower, penalty);
                }
            }
        }
        Self::with(points, features, targets, best.1, best.2)
    }

    fn with(
        mut points: Vec<f64>,
        features: usize,
        targets: &[Vec<f64>],
        narrower: f64,
        penalty: f64,
    ) -> Result<Self, LabError> {
        points.iter_mut().for_each(|x| *x *= narrower);
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
            gram[i * count + j] + if i == j { penalty } else { 0.0 }
        });
        drop(gram);
        let factor = penalised
            .llt(Side::Lower)
            .map_err(|_| LabError::Singular { what: "a kernel" })?;
        let targets = Mat::from_fn(count, targets.len(), |i, k| targets[k][i]);
        Ok(KernelRidge {
            features,
            points,
            narrower,
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
                let x: Vec<f64> = x.iter().map(|x| x * self.narrower).collect();
                for (i, known) in self.points.chunks_exact(self.features).enumerate() {
                    let near = kernel(&x, known);
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
    fn tuning_finds_what_the_usual_width_misses() {
        let points: Vec<f64> = (0..600).map(|i| f64::from(i % 200) / 100.0 - 1.0).collect();
        let quick: Vec<f64> = points.iter().map(|x| (14.0 * x).sin()).collect();
        let fit = |tuned: bool| {
            let (points, targets) = (points.clone(), [quick.clone()]);
            let ridge = match tuned {
                true => KernelRidge::tuned(points, 1, &targets),
                false => KernelRidge::fit(points, 1, &targets),
            };
            let new: Vec<f64> = (0..100).map(|i| f64::from(i) / 50.0 - 0.995).collect();
            let truth: Vec<f64> = new.iter().map(|x| (14.0 * x).sin()).collect();
            r_squared(&truth, &ridge.unwrap().predict(&new)[0])
        };
        assert!(fit(true) > 0.98, "{}", fit(true));
        assert!(fit(false) < 0.5, "{}", fit(false));
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
