//! Linear regression with an intercept.

use crate::error::LabError;
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

/// `y ≈ w·x + b` for one or more targets.
#[derive(Clone, Debug)]
pub struct LeastSquares {
    features: usize,
    /// A row per feature and one for the intercept, a column per target.
    weights: Mat<f64>,
}

impl LeastSquares {
    /// Fits to points (feature after feature, point after point) and one or more targets for each.
    pub fn fit(points: &[f64], features: usize, targets: &[Vec<f64>]) -> Result<Self, LabError> {
        let count = points.len() / features.max(1);
        if count <= features {
            return Err(LabError::Invalid(format!(
                "linear regression on {features} features needs more points than {count}"
            )));
        }
        // A feature that never moves gets no weight.
        Self::penalised(points, features, targets, 1e-9)
    }

    /// The same with so much of a penalty, per point, on the squares of all weights but the intercept.
    pub fn penalised(
        points: &[f64],
        features: usize,
        targets: &[Vec<f64>],
        penalty: f64,
    ) -> Result<Self, LabError> {
        let count = points.len() / features.max(1);
        if targets.is_empty() || targets.iter().any(|t| t.len() != count) {
            return Err(LabError::Invalid(format!(
                "linear regression needs targets for each of its {count} points"
            )));
        }
        let design = Mat::from_fn(count, features + 1, |i, k| match k == features {
            true => 1.0,
            false => points[i * features + k],
        });
        let targets = Mat::from_fn(count, targets.len(), |i, k| targets[k][i]);
        let mut normal = design.transpose() * &design;
        for k in 0..features {
            normal[(k, k)] += penalty * count as f64;
        }
        let factor = normal.llt(Side::Lower).map_err(|_| LabError::Singular {
            what: "the features of a regression",
        })?;
        Ok(LeastSquares {
            features,
            weights: factor.solve(design.transpose() * &targets),
        })
    }

    /// The prediction of every target at new points.
    pub fn predict(&self, points: &[f64]) -> Vec<Vec<f64>> {
        let value = |x: &[f64], target: usize| {
            let slope = x
                .iter()
                .enumerate()
                .map(|(k, x)| x * self.weights[(k, target)]);
            slope.sum::<f64>() + self.intercept(target)
        };
        (0..self.weights.ncols())
            .map(|t| {
                points
                    .chunks_exact(self.features)
                    .map(|x| value(x, t))
                    .collect()
            })
            .collect()
    }

    /// What a target is where all features are zero.
    pub fn intercept(&self, target: usize) -> f64 {
        self.weights[(self.features, target)]
    }

    /// The weights of a target, feature by feature.
    pub fn direction(&self, target: usize) -> Vec<f64> {
        (0..self.features)
            .map(|k| self.weights[(k, target)])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_found() {
        let points: Vec<f64> = (0..40)
            .map(|i| f64::from(i * i % 17) - 0.3 * f64::from(i % 5))
            .collect();
        let plane = |x: &[f64]| 2.0 * x[0] - 0.5 * x[1] + 3.0;
        let target: Vec<f64> = points.chunks_exact(2).map(plane).collect();
        let fit = LeastSquares::fit(&points, 2, std::slice::from_ref(&target)).unwrap();
        for (a, b) in fit.predict(&points)[0].iter().zip(&target) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        assert!((fit.direction(0)[1] + 0.5).abs() < 1e-6);
        assert!(LeastSquares::fit(&points[..4], 2, &[vec![0.0; 2]]).is_err());
    }
}
