//! Reverse-mode differentiation of formulas over matrices of at most 2×2, in `f64`.
//!
//! A formula is written once, on a [`Tape`] that keeps every value; [`Tape::backward`] then walks back over it. A sequence of
//! a hundred steps is a few thousand entries, which is nothing beside the networks around it.

use std::ops::{Add, Index, IndexMut, Mul, Sub};

/// A matrix of at most 2×2; a column of two is a point, one number is 1×1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Small {
    rows: usize,
    cols: usize,
    at: [[f64; 2]; 2],
}

impl Small {
    pub fn from_fn(rows: usize, cols: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let inside = |i: usize, j: usize| {
            if i < rows && j < cols { at(i, j) } else { 0.0 }
        };
        Small {
            rows,
            cols,
            at: [0, 1].map(|i| [0, 1].map(|j| inside(i, j))),
        }
    }

    pub fn number(x: f64) -> Self {
        Self::from_fn(1, 1, |_, _| x)
    }

    pub fn point(x: [f64; 2]) -> Self {
        Self::from_fn(2, 1, |i, _| x[i])
    }

    pub fn square(at: [[f64; 2]; 2]) -> Self {
        Self::from_fn(2, 2, |i, j| at[i][j])
    }

    fn zero_like(self) -> Self {
        self.map(|_| 0.0)
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self::from_fn(self.rows, self.cols, |i, j| f(self[(i, j)]))
    }

    pub fn transpose(self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// The sum of products of like places.
    pub fn dot(self, other: Self) -> f64 {
        let sum = |i: usize| self.at[i][0] * other.at[i][0] + self.at[i][1] * other.at[i][1];
        sum(0) + sum(1)
    }

    /// The determinant of a 2×2 matrix.
    pub fn determinant(self) -> f64 {
        self[(0, 0)] * self[(1, 1)] - self[(0, 1)] * self[(1, 0)]
    }

    /// The inverse of a 2×2 matrix.
    pub fn inverse(self) -> Self {
        let d = self.determinant();
        Self::square([
            [self[(1, 1)] / d, -self[(0, 1)] / d],
            [-self[(1, 0)] / d, self[(0, 0)] / d],
        ])
    }

    /// The lower triangular `L` with `L Lᵀ = self`, from the lower triangle of a positive definite 2×2 matrix.
    pub fn cholesky(self) -> Self {
        let first = self[(0, 0)].sqrt();
        let below = self[(1, 0)] / first;
        let last = (self[(1, 1)] - below * below).sqrt();
        Self::square([[first, 0.0], [below, last]])
    }

    /// The lower triangle of any 2×2 matrix with its diagonal made positive: `ln(1 + eˣ)` and a little, which keeps the matrix
    /// it is the factor of away from singular.
    pub fn positive(self) -> Self {
        let soft = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p() + LEAST;
        Self::square([
            [soft(self[(0, 0)]), 0.0],
            [self[(1, 0)], soft(self[(1, 1)])],
        ])
    }
}

/// The least diagonal of a positive factor.
const LEAST: f64 = 1e-3;

impl Index<(usize, usize)> for Small {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.at[i][j]
    }
}

impl IndexMut<(usize, usize)> for Small {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.at[i][j]
    }
}

impl Add for Small {
    type Output = Small;
    fn add(self, other: Small) -> Small {
        debug_assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        Self::from_fn(self.rows, self.cols, |i, j| self[(i, j)] + other[(i, j)])
    }
}

impl Sub for Small {
    type Output = Small;
    fn sub(self, other: Small) -> Small {
        Self::from_fn(self.rows, self.cols, |i, j| self[(i, j)] - other[(i, j)])
    }
}

impl Mul for Small {
    type Output = Small;
    fn mul(self, other: Small) -> Small {
        debug_assert_eq!(self.cols, other.rows);
        // Places outside are zero, so that two terms are right for every size.
        Self::from_fn(self.rows, other.cols, |i, j| {
            self[(i, 0)] * other[(0, j)] + self[(i, 1)] * other[(1, j)]
        })
    }
}

/// A value on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Var(usize);

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
enum Op {
    Leaf,
    Add(Var, Var),
    Sub(Var, Var),
    Mul(Var, Var),
    Scale(Var, f64),
    Transpose(Var),
    Inverse(Var),
    Cholesky(Var),
    LogDet(Var),
    Dot(Var, Var),
    Positive(Var),
}

/// The values of a formula in the order in which they were computed.
#[derive(Debug, Default)]
pub(super) struct Tape {
    entries: Vec<(Op, Small)>,
}

impl Tape {
    fn push(&mut self, op: Op, value: Small) -> Var {
        self.entries.push((op, value));
        Var(self.entries.len() - 1)
    }

    pub fn value(&self, of: Var) -> Small {
        self.entries[of.0].1
    }

    /// A value that comes from outside.
    pub fn leaf(&mut self, value: Small) -> Var {
        self.push(Op::Leaf, value)
    }

    pub fn add(&mut self, a: Var, b: Var) -> Var {
        self.push(Op::Add(a, b), self.value(a) + self.value(b))
    }

    pub fn sub(&mut self, a: Var, b: Var) -> Var {
        self.push(Op::Sub(a, b), self.value(a) - self.value(b))
    }

    pub fn mul(&mut self, a: Var, b: Var) -> Var {
        self.push(Op::Mul(a, b), self.value(a) * self.value(b))
    }

    pub fn scale(&mut self, a: Var, by: f64) -> Var {
        self.push(Op::Scale(a, by), self.value(a).map(|x| by * x))
    }

    pub fn transpose(&mut self, a: Var) -> Var {
        self.push(Op::Transpose(a), self.value(a).transpose())
    }

    pub fn inverse(&mut self, a: Var) -> Var {
        self.push(Op::Inverse(a), self.value(a).inverse())
    }

    /// The Cholesky factor of a symmetric matrix.
    pub fn cholesky(&mut self, a: Var) -> Var {
        self.push(Op::Cholesky(a), self.value(a).cholesky())
    }

    /// The logarithm of a positive determinant.
    pub fn log_det(&mut self, a: Var) -> Var {
        let value = Small::number(self.value(a).determinant().ln());
        self.push(Op::LogDet(a), value)
    }

    /// The sum of products of like places.
    pub fn dot(&mut self, a: Var, b: Var) -> Var {
        let value = Small::number(self.value(a).dot(self.value(b)));
        self.push(Op::Dot(a, b), value)
    }

    /// See [`Small::positive`].
    pub fn positive(&mut self, a: Var) -> Var {
        self.push(Op::Positive(a), self.value(a).positive())
    }

    /// `a Mᵀ` of a factor with itself: the symmetric matrix it is the factor of.
    pub fn squared(&mut self, factor: Var) -> Var {
        let transposed = self.transpose(factor);
        self.mul(factor, transposed)
    }

    /// The gradient, with respect to every value, of the sum of `seeds`: values and the gradients at them.
    pub fn backward(&self, seeds: &[(Var, Small)]) -> Gradient {
        let zeros = self.entries.iter().map(|(_, value)| value.zero_like());
        let mut at: Vec<Small> = zeros.collect();
        for &(var, seed) in seeds {
            at[var.0] = at[var.0] + seed;
        }
        for (index, &(op, value)) in self.entries.iter().enumerate().rev() {
            let here = at[index];
            let mut give = |to: Var, more: Small| at[to.0] = at[to.0] + more;
            match op {
                Op::Leaf => {}
                Op::Add(a, b) => {
                    give(a, here);
                    give(b, here);
                }
                Op::Sub(a, b) => {
                    give(a, here);
                    give(b, here.map(|x| -x));
                }
                Op::Mul(a, b) => {
                    give(a, here * self.value(b).transpose());
                    give(b, self.value(a).transpose() * here);
                }
                Op::Scale(a, by) => give(a, here.map(|x| by * x)),
                Op::Transpose(a) => give(a, here.transpose()),
                Op::Inverse(a) => {
                    let inverse = value.transpose();
                    give(a, (inverse * here * inverse).map(|x| -x));
                }
                Op::Cholesky(a) => {
                    // L⁻ᵀ Φ(Lᵀ G) L⁻¹, made symmetric; Φ is the lower triangle with half of the diagonal.
                    let inner = value.transpose() * here;
                    let half = Small::square([
                        [0.5 * inner[(0, 0)], 0.0],
                        [inner[(1, 0)], 0.5 * inner[(1, 1)]],
                    ]);
                    let inverse = value.inverse();
                    let full = inverse.transpose() * half * inverse;
                    give(a, (full + full.transpose()).map(|x| 0.5 * x));
                }
                Op::LogDet(a) => {
                    let inverse = self.value(a).inverse().transpose();
                    give(a, inverse.map(|x| here[(0, 0)] * x));
                }
                Op::Dot(a, b) => {
                    give(a, self.value(b).map(|x| here[(0, 0)] * x));
                    give(b, self.value(a).map(|x| here[(0, 0)] * x));
                }
                Op::Positive(a) => {
                    let slope = |i: usize| 1.0 / (1.0 + (-self.value(a)[(i, i)]).exp());
                    let mut more = here;
                    more[(0, 1)] = 0.0;
                    more[(0, 0)] *= slope(0);
                    more[(1, 1)] *= slope(1);
                    give(a, more);
                }
            }
        }
        Gradient(at)
    }
}

/// The gradient with respect to every value of a tape.
pub(super) struct Gradient(Vec<Small>);

impl Gradient {
    pub fn at(&self, var: Var) -> Small {
        self.0[var.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the gradient of a number that depends on two matrices by central differences.
    fn check(what: &str, formula: impl Fn(&mut Tape, Var, Var) -> Var) {
        let start = [
            Small::square([[1.3, -0.4], [0.7, 0.9]]),
            Small::square([[0.2, 1.1], [-0.8, 0.5]]),
        ];
        let run = |inputs: [Small; 2]| {
            let mut tape = Tape::default();
            let leaves = inputs.map(|x| tape.leaf(x));
            let out = formula(&mut tape, leaves[0], leaves[1]);
            (tape, leaves, out)
        };
        let (tape, leaves, out) = run(start);
        let gradient = tape.backward(&[(out, Small::number(1.0))]);
        for which in 0..2 {
            for place in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let [high, low] = [1e-5, -1e-5].map(|by| {
                    let mut moved = start;
                    moved[which][place] += by;
                    let (tape, _, out) = run(moved);
                    tape.value(out)[(0, 0)]
                });
                let (expected, found) = ((high - low) / 2e-5, gradient.at(leaves[which])[place]);
                assert!(
                    (found - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                    "{what}, input {which} at {place:?}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn every_operation_is_differentiated_as_differences_say() {
        check("sum of products", |t, a, b| t.dot(a, b));
        check("add, scale", |t, a, b| {
            let twice = t.scale(a, 2.0);
            let sum = t.add(twice, b);
            t.dot(sum, sum)
        });
        check("sub, transpose", |t, a, b| {
            let turned = t.transpose(b);
            let rest = t.sub(a, turned);
            t.dot(rest, a)
        });
        check("mul, inverse", |t, a, b| {
            let inverse = t.inverse(a);
            let product = t.mul(inverse, b);
            t.dot(product, a)
        });
        check("cholesky, log determinant", |t, a, b| {
            let square = t.squared(a);
            let other = t.squared(b);
            let sum = t.add(square, other);
            let factor = t.cholesky(sum);
            let volume = t.log_det(sum);
            let read = t.dot(factor, b);
            t.mul(read, volume)
        });
        check("positive", |t, a, b| {
            let factor = t.positive(a);
            let product = t.mul(factor, b);
            t.dot(product, product)
        });
    }

    #[test]
    fn points_and_numbers_are_matrices_too() {
        let mut tape = Tape::default();
        let (m, x) = (
            tape.leaf(Small::square([[2.0, 1.0], [0.0, 3.0]])),
            tape.leaf(Small::point([4.0, 5.0])),
        );
        let y = tape.mul(m, x);
        assert_eq!(tape.value(y), Small::point([13.0, 15.0]));
        let length = tape.dot(y, y);
        let gradient = tape.backward(&[(length, Small::number(0.5))]);
        assert_eq!(gradient.at(x), Small::point([26.0, 58.0]));
        assert_eq!(gradient.at(m), Small::square([[52.0, 65.0], [60.0, 75.0]]));
    }

    #[test]
    fn a_positive_factor_stays_positive() {
        for x in [-800.0, -3.0, 0.0, 3.0, 800.0] {
            let factor = Small::square([[x, 9.0], [1.0, x]]).positive();
            assert!(factor.determinant() > 0.0 && factor.determinant().is_finite());
            assert_eq!(factor[(0, 1)], 0.0);
        }
    }
}
