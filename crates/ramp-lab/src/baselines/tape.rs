//! Reverse-mode differentiation of formulas over small matrices, in `f64`.
//!
//! A formula is written once, on a [`Tape`] that keeps every value; [`Tape::backward`] then walks back over it. A sequence of
//! a hundred steps is a few thousand entries, which is nothing beside the networks around it.

use super::matrix::Matrix;
use std::cmp::Ordering;

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
    entries: Vec<(Op, Matrix)>,
}

impl Tape {
    fn push(&mut self, op: Op, value: Matrix) -> Var {
        self.entries.push((op, value));
        Var(self.entries.len() - 1)
    }

    pub fn value(&self, of: Var) -> &Matrix {
        &self.entries[of.0].1
    }

    /// A value that comes from outside.
    pub fn leaf(&mut self, value: Matrix) -> Var {
        self.push(Op::Leaf, value)
    }

    pub fn add(&mut self, a: Var, b: Var) -> Var {
        let value = self.value(a) + self.value(b);
        self.push(Op::Add(a, b), value)
    }

    pub fn sub(&mut self, a: Var, b: Var) -> Var {
        let value = self.value(a) - self.value(b);
        self.push(Op::Sub(a, b), value)
    }

    pub fn mul(&mut self, a: Var, b: Var) -> Var {
        let value = self.value(a) * self.value(b);
        self.push(Op::Mul(a, b), value)
    }

    pub fn scale(&mut self, a: Var, by: f64) -> Var {
        let value = self.value(a).map(|x| by * x);
        self.push(Op::Scale(a, by), value)
    }

    pub fn transpose(&mut self, a: Var) -> Var {
        let value = self.value(a).transpose();
        self.push(Op::Transpose(a), value)
    }

    pub fn inverse(&mut self, a: Var) -> Var {
        let value = self.value(a).inverse();
        self.push(Op::Inverse(a), value)
    }

    /// The Cholesky factor of a symmetric matrix.
    pub fn cholesky(&mut self, a: Var) -> Var {
        let value = self.value(a).cholesky();
        self.push(Op::Cholesky(a), value)
    }

    /// The logarithm of a positive determinant.
    pub fn log_det(&mut self, a: Var) -> Var {
        let value = Matrix::number(self.value(a).determinant().ln());
        self.push(Op::LogDet(a), value)
    }

    /// The sum of products of like places.
    pub fn dot(&mut self, a: Var, b: Var) -> Var {
        let value = Matrix::number(self.value(a).dot(self.value(b)));
        self.push(Op::Dot(a, b), value)
    }

    /// See [`Matrix::positive`].
    pub fn positive(&mut self, a: Var) -> Var {
        let value = self.value(a).positive();
        self.push(Op::Positive(a), value)
    }

    /// `a Mᵀ` of a factor with itself: the symmetric matrix it is the factor of.
    pub fn squared(&mut self, factor: Var) -> Var {
        let transposed = self.transpose(factor);
        self.mul(factor, transposed)
    }

    /// The gradient, with respect to every value, of the sum of `seeds`: values and the gradients at them.
    pub fn backward(&self, seeds: &[(Var, Matrix)]) -> Gradient {
        let zeros = self.entries.iter().map(|(_, value)| value.map(|_| 0.0));
        let mut at: Vec<Matrix> = zeros.collect();
        for (var, seed) in seeds {
            at[var.0] = &at[var.0] + seed;
        }
        for (index, (op, value)) in self.entries.iter().enumerate().rev() {
            let here = at[index].clone();
            let mut give = |to: Var, more: &Matrix| at[to.0] = &at[to.0] + more;
            match *op {
                Op::Leaf => {}
                Op::Add(a, b) => {
                    give(a, &here);
                    give(b, &here);
                }
                Op::Sub(a, b) => {
                    give(a, &here);
                    give(b, &here.map(|x| -x));
                }
                Op::Mul(a, b) => {
                    give(a, &(&here * &self.value(b).transpose()));
                    give(b, &(&self.value(a).transpose() * &here));
                }
                Op::Scale(a, by) => give(a, &here.map(|x| by * x)),
                Op::Transpose(a) => give(a, &here.transpose()),
                Op::Inverse(a) => {
                    let inverse = value.transpose();
                    give(a, &(&(&inverse * &here) * &inverse).map(|x| -x));
                }
                Op::Cholesky(a) => {
                    // L⁻ᵀ Φ(Lᵀ G) L⁻¹, made symmetric; Φ is the lower triangle with half of the diagonal.
                    let inner = &value.transpose() * &here;
                    let n = inner.rows();
                    let half = Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
                        Ordering::Less => 0.0,
                        Ordering::Equal => 0.5 * inner[(i, j)],
                        Ordering::Greater => inner[(i, j)],
                    });
                    let inverse = value.inverse();
                    let full = &(&inverse.transpose() * &half) * &inverse;
                    give(a, &(&full + &full.transpose()).map(|x| 0.5 * x));
                }
                Op::LogDet(a) => {
                    let inverse = self.value(a).inverse().transpose();
                    give(a, &inverse.map(|x| here[(0, 0)] * x));
                }
                Op::Dot(a, b) => {
                    give(a, &self.value(b).map(|x| here[(0, 0)] * x));
                    give(b, &self.value(a).map(|x| here[(0, 0)] * x));
                }
                Op::Positive(a) => {
                    let raw = self.value(a);
                    let slope = |i: usize| 1.0 / (1.0 + (-raw[(i, i)]).exp());
                    let n = raw.rows();
                    let more = Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
                        Ordering::Less => 0.0,
                        Ordering::Equal => here[(i, j)] * slope(i),
                        Ordering::Greater => here[(i, j)],
                    });
                    give(a, &more);
                }
            }
        }
        Gradient(at)
    }
}

/// The gradient with respect to every value of a tape.
pub(super) struct Gradient(Vec<Matrix>);

impl Gradient {
    pub fn at(&self, var: Var) -> &Matrix {
        &self.0[var.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the gradient of a number that depends on two matrices by central differences.
    fn check(what: &str, formula: impl Fn(&mut Tape, Var, Var) -> Var) {
        for n in 1..=4 {
            let wave = |by: f64| Matrix::from_fn(n, n, |i, j| (by * (1 + 4 * i + j) as f64).sin());
            let diagonal = Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
            check_at(
                &format!("{what}, {n}"),
                [&wave(1.3) + &diagonal, wave(0.7)],
                &formula,
            );
        }
    }

    fn check_at(what: &str, start: [Matrix; 2], formula: &impl Fn(&mut Tape, Var, Var) -> Var) {
        let n = start[0].rows();
        let run = |inputs: &[Matrix; 2]| {
            let mut tape = Tape::default();
            let leaves = [0, 1].map(|k| tape.leaf(inputs[k].clone()));
            let out = formula(&mut tape, leaves[0], leaves[1]);
            (tape, leaves, out)
        };
        let (tape, leaves, out) = run(&start);
        let gradient = tape.backward(&[(out, Matrix::number(1.0))]);
        for which in 0..2 {
            for place in (0..n * n).map(|k| (k / n, k % n)) {
                let [high, low] = [1e-5, -1e-5].map(|by| {
                    let mut moved = start.clone();
                    moved[which][place] += by;
                    let (tape, _, out) = run(&moved);
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
            tape.leaf(Matrix::square(2, &[2.0, 1.0, 0.0, 3.0])),
            tape.leaf(Matrix::point(&[4.0, 5.0])),
        );
        let y = tape.mul(m, x);
        assert_eq!(tape.value(y).values(), [13.0, 15.0]);
        let length = tape.dot(y, y);
        let gradient = tape.backward(&[(length, Matrix::number(0.5))]);
        assert_eq!(gradient.at(x).values(), [26.0, 58.0]);
        assert_eq!(gradient.at(m).values(), [52.0, 65.0, 60.0, 75.0]);
    }
}
