//! Small dense matrices in `f64`, as formulas of baselines are written in.

use std::ops::{Add, Index, IndexMut, Mul, Sub};

/// A matrix; a column is a point, 1×1 is a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    rows: usize,
    cols: usize,
    /// Row by row.
    at: Vec<f64>,
}

impl Matrix {
    pub fn from_fn(rows: usize, cols: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let at = (0..rows)
            .flat_map(|i| (0..cols).map(move |j| (i, j)))
            .map(|(i, j)| at(i, j))
            .collect();
        Matrix { rows, cols, at }
    }

    pub fn number(x: f64) -> Self {
        Self::from_fn(1, 1, |_, _| x)
    }

    pub fn point(x: &[f64]) -> Self {
        Self::from_fn(x.len(), 1, |i, _| x[i])
    }

    /// A square matrix from its rows, one after the other.
    pub fn square(n: usize, rows: &[f64]) -> Self {
        Self::from_fn(n, n, |i, j| rows[i * n + j])
    }

    /// All numbers, row by row.
    pub fn values(&self) -> &[f64] {
        &self.at
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Matrix {
            at: self.at.iter().map(|&x| f(x)).collect(),
            ..*self
        }
    }

    pub fn transpose(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// The sum of products of like places.
    pub fn dot(&self, other: &Self) -> f64 {
        self.at.iter().zip(&other.at).map(|(a, b)| a * b).sum()
    }

    /// The inverse and the determinant of a square matrix, by elimination with the largest pivots first.
    fn eliminated(&self) -> (Self, f64) {
        let n = self.rows;
        let (mut left, mut right) = (
            self.clone(),
            Self::from_fn(n, n, |i, j| f64::from(u8::from(i == j))),
        );
        let mut determinant = 1.0;
        for k in 0..n {
            let largest = (k..n).max_by(|&a, &b| left[(a, k)].abs().total_cmp(&left[(b, k)].abs()));
            let pivot = largest.unwrap_or(k);
            if pivot != k {
                determinant = -determinant;
                for j in 0..n {
                    left.at.swap(k * n + j, pivot * n + j);
                    right.at.swap(k * n + j, pivot * n + j);
                }
            }
            let size = left[(k, k)];
            determinant *= size;
            for j in 0..n {
                left[(k, j)] /= size;
                right[(k, j)] /= size;
            }
            for i in (0..n).filter(|&i| i != k) {
                let times = left[(i, k)];
                for j in 0..n {
                    let (from_left, from_right) = (left[(k, j)], right[(k, j)]);
                    left[(i, j)] -= times * from_left;
                    right[(i, j)] -= times * from_right;
                }
            }
        }
        (right, determinant)
    }

    /// The determinant of a square matrix.
    pub fn determinant(&self) -> f64 {
        self.eliminated().1
    }

    /// The inverse of a square matrix.
    pub fn inverse(&self) -> Self {
        self.eliminated().0
    }

    /// The lower triangular `L` with `L Lᵀ = self`, from the lower triangle of a positive definite matrix.
    pub fn cholesky(&self) -> Self {
        let n = self.rows;
        let mut l = Self::from_fn(n, n, |_, _| 0.0);
        for i in 0..n {
            for j in 0..=i {
                let rest = self[(i, j)] - (0..j).map(|k| l[(i, k)] * l[(j, k)]).sum::<f64>();
                l[(i, j)] = if i == j {
                    rest.sqrt()
                } else {
                    rest / l[(j, j)]
                };
            }
        }
        l
    }

    /// The lower triangle of a square matrix with its diagonal made positive: `ln(1 + eˣ)` and a little, which keeps the matrix
    /// it is the factor of away from singular.
    pub fn positive(&self) -> Self {
        let soft = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p() + LEAST;
        Self::from_fn(self.rows, self.cols, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => soft(self[(i, j)]),
            std::cmp::Ordering::Greater => self[(i, j)],
        })
    }
}

/// The least diagonal of a positive factor.
const LEAST: f64 = 1e-3;

impl Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.at[i * self.cols + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.at[i * self.cols + j]
    }
}

impl Add for &Matrix {
    type Output = Matrix;
    fn add(self, other: &Matrix) -> Matrix {
        debug_assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        let pairs = self.at.iter().zip(&other.at);
        Matrix {
            at: pairs.map(|(a, b)| a + b).collect(),
            ..*self
        }
    }
}

impl Sub for &Matrix {
    type Output = Matrix;
    fn sub(self, other: &Matrix) -> Matrix {
        debug_assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        let pairs = self.at.iter().zip(&other.at);
        Matrix {
            at: pairs.map(|(a, b)| a - b).collect(),
            ..*self
        }
    }
}

impl Mul for &Matrix {
    type Output = Matrix;
    fn mul(self, other: &Matrix) -> Matrix {
        debug_assert_eq!(self.cols, other.rows);
        Matrix::from_fn(self.rows, other.cols, |i, j| {
            (0..self.cols).map(|k| self[(i, k)] * other[(k, j)]).sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_undoes_and_a_determinant_is_that_of_the_factor() {
        for n in 1..6 {
            // Zeros on the diagonal, so that rows must be exchanged.
            let a = Matrix::from_fn(n, n, |i, j| match i == j {
                true if n > 1 => 0.0,
                _ => ((3 * i + 7 * j + 1) as f64).sin(),
            });
            let product = &a * &a.inverse();
            for i in 0..n {
                for j in 0..n {
                    let expected = f64::from(u8::from(i == j));
                    assert!((product[(i, j)] - expected).abs() < 1e-9, "{n}");
                }
            }
            let square =
                &(&a * &a.transpose()) + &Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
            let factor = square.cholesky();
            assert!(
                (&(&factor * &factor.transpose()) - &square)
                    .at
                    .iter()
                    .all(|x| x.abs() < 1e-9)
            );
            let diagonal: f64 = (0..n).map(|i| factor[(i, i)]).product();
            assert!((square.determinant() - diagonal * diagonal).abs() < 1e-9 * diagonal.powi(2));
        }
    }

    #[test]
    fn a_positive_factor_stays_positive() {
        for x in [-800.0, -3.0, 0.0, 3.0, 800.0] {
            let factor = Matrix::square(2, &[x, 9.0, 1.0, x]).positive();
            assert!(factor.determinant() > 0.0 && factor.determinant().is_finite());
            assert_eq!(factor[(0, 1)], 0.0);
        }
    }
}
