//! Ridge regression whose penalty is chosen by cross-validation, with what it says of rows that each fit did not see.

use crate::model::linalg::{cholesky, solve};

/// Folds of the cross-validation.
const FOLDS: usize = 5;
/// Penalties per row that are tried.
const PENALTIES: [f64; 13] = [
    1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0,
];
/// Where everything is shrunk, no more than this: beyond, nothing is said at all.
const TRIED: usize = 10;

/// A linear regression with a constant.
///
/// ```
/// use ramp::infer::Ridge;
///
/// let x: Vec<f64> = (0..50).map(|i| f64::from(i % 7) - 3.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| 2.0 * x + 1.0).collect();
/// let line = Ridge::fit(&x, 1, &y).unwrap();
/// assert!((line.predict(&[1.0]) - 3.0).abs() < 1e-2);
/// // What was said of each row by a fit without it.
/// assert!(line.crossed.iter().zip(&y).all(|(guess, y)| (guess - y).abs() < 1e-2));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ridge {
    /// The weight of each feature.
    pub weights: Vec<f64>,
    /// What is added.
    pub constant: f64,
    /// For every row, the prediction of a fit to other rows alone.
    pub crossed: Vec<f64>,
    /// Their mean squared error.
    pub error: f64,
}

/// Sums of products of some rows: of features with one another and with the target, constant last.
#[derive(Clone)]
struct Moments {
    normal: Vec<f64>,
    right: Vec<f64>,
    rows: f64,
}

impl Moments {
    fn new(n: usize) -> Self {
        Moments {
            normal: vec![0.0; n * n],
            right: vec![0.0; n],
            rows: 0.0,
        }
    }

    fn add(&mut self, x: &[f64], y: f64) {
        let n = x.len();
        for (i, xi) in x.iter().enumerate() {
            for (to, xj) in self.normal[i * n..][..=i].iter_mut().zip(x) {
                *to += xi * xj;
            }
            self.right[i] += xi * y;
        }
        self.rows += 1.0;
    }

    /// `self + sign · other`.
    fn with(mut self, other: &Moments, sign: f64) -> Self {
        let sum = |to: &mut [f64], from: &[f64]| {
            to.iter_mut().zip(from).for_each(|(a, b)| *a += sign * b);
        };
        sum(&mut self.normal, &other.normal);
        sum(&mut self.right, &other.right);
        self.rows += sign * other.rows;
        self
    }

    /// Weights and, last, the constant, which is not shrunk; nor is the free one.
    fn solve(&self, penalty: f64, free: Option<usize>) -> Option<Vec<f64>> {
        let n = self.right.len();
        let mut normal = self.normal.clone();
        (0..n - 1)
            .filter(|i| free != Some(*i))
            .for_each(|i| normal[i * n + i] += penalty * self.rows);
        let factor = cholesky(n, &normal)?;
        let mut weights = self.right.clone();
        solve(n, &factor, &mut weights);
        weights.iter().all(|w| w.is_finite()).then_some(weights)
    }
}

impl Ridge {
    /// Fits rows of features, one after the other and best of about unit size, to a target for each. Every fifth row makes a fold. `None` where there
    /// are fewer than ten rows, or numbers that are not finite.
    pub fn fit(points: &[f64], features: usize, targets: &[f64]) -> Option<Self> {
        let fold = |row| row % FOLDS;
        Self::fit_folds(
            points,
            features,
            targets,
            (None, &PENALTIES[..TRIED]),
            &fold,
        )
    }

    /// The same for rows in order of time, whose neighbours tell of one another: each fifth of them in turn makes a fold. What is shrunk to nothing is what the others
    /// add to one of the features, so that the regression on that one alone is among what is tried.
    ///
    /// ```
    /// use ramp::infer::Ridge;
    ///
    /// // Tomorrow is half of today; the other feature says nothing of it.
    /// let today: Vec<f64> = (0..50).map(|i| f64::from(i % 7) - 3.0).collect();
    /// let points: Vec<f64> = today.iter().enumerate().flat_map(|(i, x)| [*x, (i % 2) as f64]).collect();
    /// let tomorrow: Vec<f64> = today.iter().map(|x| 0.5 * x).collect();
    /// let line = Ridge::continuing(&points, 2, &tomorrow, 0).unwrap();
    /// assert!((line.weights[0] - 0.5).abs() < 1e-9 && line.weights[1].abs() < 1e-9);
    /// ```
    pub fn continuing(
        points: &[f64],
        features: usize,
        targets: &[f64],
        free: usize,
    ) -> Option<Self> {
        let rows = targets.len();
        let fold = |row| row * FOLDS / rows;
        Self::fit_folds(points, features, targets, (Some(free), &PENALTIES), &fold)
    }

    fn fit_folds(
        points: &[f64],
        features: usize,
        targets: &[f64],
        (free, penalties): (Option<usize>, &[f64]),
        fold: &dyn Fn(usize) -> usize,
    ) -> Option<Self> {
        let (rows, n) = (targets.len(), features + 1);
        let finite = points.iter().chain(targets).all(|x| x.is_finite());
        if rows < 2 * FOLDS || points.len() != rows * features || !finite {
            return None;
        }
        let mut x = vec![1.0; n];
        let mut folds = vec![Moments::new(n); FOLDS];
        for (row, &y) in targets.iter().enumerate() {
            x[..features].copy_from_slice(&points[row * features..][..features]);
            folds[fold(row)].add(&x, y);
        }
        let all = folds
            .iter()
            .fold(Moments::new(n), |sum, f| sum.with(f, 1.0));
        let others: Vec<Moments> = folds.iter().map(|f| all.clone().with(f, -1.0)).collect();
        let mut best: Option<(f64, f64, Vec<f64>)> = None;
        for &penalty in penalties {
            let fits: Option<Vec<Vec<f64>>> =
                others.iter().map(|o| o.solve(penalty, free)).collect();
            let Some(fits) = fits else { continue };
            let crossed: Vec<f64> = (0..rows)
                .map(|row| linear(&fits[fold(row)], &points[row * features..][..features]))
                .collect();
            let square = |(guess, y): (&f64, &f64)| (guess - y).powi(2);
            let error = crossed.iter().zip(targets).map(square).sum::<f64>() / rows as f64;
            if best.as_ref().is_none_or(|(least, ..)| error < *least) {
                best = Some((error, penalty, crossed));
            }
        }
        let (error, penalty, crossed) = best?;
        let mut weights = all.solve(penalty, free)?;
        let constant = weights.pop()?;
        Some(Ridge {
            weights,
            constant,
            crossed,
            error,
        })
    }

    /// What is foretold of a row of features.
    pub fn predict(&self, x: &[f64]) -> f64 {
        self.constant + self.weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()
    }
}

/// Weights with the constant last, at a row of features.
fn linear(weights: &[f64], x: &[f64]) -> f64 {
    let constant = weights[x.len()];
    constant + weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random enough.
    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // Twelve would be a bell; four will do.
            (0..4)
                .map(|k| ((state >> (16 + 8 * k)) & 255) as f64 / 255.0 - 0.5)
                .sum::<f64>()
                * 1.73
        }
    }

    #[test]
    fn what_is_said_of_a_row_comes_from_the_others() {
        let mut noise = noise(3);
        let (rows, features) = (60, 3);
        let points: Vec<f64> = (0..rows * features).map(|_| noise()).collect();
        let targets: Vec<f64> = (0..rows).map(|r| points[r * features] + noise()).collect();
        let whole = Ridge::fit(&points, features, &targets).unwrap();
        // Whatever stands in a row, what is said of it by the other folds at the same penalty stays.
        let mut other = targets.clone();
        other[7] += 0.001;
        let changed = Ridge::fit(&points, features, &other).unwrap();
        assert!((whole.crossed[7] - changed.crossed[7]).abs() < 1e-12);
        assert!((whole.crossed[8] - changed.crossed[8]).abs() > 0.0);
    }

    #[test]
    fn features_without_meaning_are_shrunk_away() {
        let mut noise = noise(5);
        let (rows, features) = (120, 60);
        let points: Vec<f64> = (0..rows * features).map(|_| noise()).collect();
        let targets: Vec<f64> = (0..rows).map(|_| noise()).collect();
        let nothing = Ridge::fit(&points, features, &targets).unwrap();
        let variance = targets.iter().map(|y| y * y).sum::<f64>() / rows as f64;
        // Least squares would have twice the variance as its error on other rows.
        assert!(
            nothing.error < 1.25 * variance,
            "{} {variance}",
            nothing.error
        );
        assert!(Ridge::fit(&points, features, &targets[..5]).is_none());
    }

    #[test]
    fn a_series_that_goes_on_by_its_last_value_alone_is_foretold_as_by_that() {
        let mut noise = noise(11);
        let (rows, features) = (300, 40);
        let points: Vec<f64> = (0..rows * features).map(|_| noise()).collect();
        let targets: Vec<f64> = (0..rows)
            .map(|r| 0.7 * points[r * features + 3] + noise())
            .collect();
        let line = Ridge::continuing(&points, features, &targets, 3).unwrap();
        // Least squares on the one feature and a constant, by the naive formula.
        let x: Vec<f64> = (0..rows).map(|r| points[r * features + 3]).collect();
        let mean = |v: &[f64]| v.iter().sum::<f64>() / rows as f64;
        let (mx, my) = (mean(&x), mean(&targets));
        let xy: f64 = x
            .iter()
            .zip(&targets)
            .map(|(x, y)| (x - mx) * (y - my))
            .sum();
        let xx: f64 = x.iter().map(|x| (x - mx).powi(2)).sum();
        assert!(
            (line.weights[3] - xy / xx).abs() < 0.02,
            "{:?}",
            line.weights[3]
        );
        let others = line.weights.iter().enumerate().filter(|(i, _)| *i != 3);
        assert!(others.map(|(_, w)| w * w).sum::<f64>() < 0.01);
        // What is said of a row comes from other fifths.
        let mut other = targets.clone();
        other[7] += 0.001;
        let changed = Ridge::continuing(&points, features, &other, 3).unwrap();
        assert!((0..60).all(|r| (line.crossed[r] - changed.crossed[r]).abs() < 1e-12));
        assert!((line.crossed[60] - changed.crossed[60]).abs() > 0.0);
    }
}
