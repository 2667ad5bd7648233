//! The Gaussian with full covariance.

use super::{Description, Family, ParameterError, Size, Weight};
use crate::kernel::real::Real;
use crate::kernel::scratch::Scratch;
use std::mem::MaybeUninit;

/// A Gaussian of any dimension with full covariance.
///
/// Natural parameters: `h = P·mean` (`dim` numbers), then the lower triangle of the precision `P`, row by row. With the
/// statistics `(z, −½ zᵢ², −zᵢ zⱼ)` an off-diagonal entry stands for both halves. Messages have `P = C Cᵀ`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaussian {
    /// The dimension of the latent.
    pub dim: usize,
}

/// Where entry `(i, j)`, `j ≤ i`, of a packed lower triangle lies.
#[inline(always)]
fn at(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

/// The dimension from the number of natural parameters. A constant length gives a constant dimension, so that kernels
/// compiled for one length unroll.
#[inline(always)]
fn dim_of(len: usize) -> usize {
    match len {
        2 => 1,
        5 => 2,
        9 => 3,
        14 => 4,
        20 => 5,
        27 => 6,
        35 => 7,
        44 => 8,
        n => (((8 * n + 9) as f64).sqrt() as usize - 3) / 2,
    }
}

/// Natural parameters of the largest belief that is worked on in place on the stack: eight dimensions.
const ON_STACK: usize = 44;

/// A copy of some numbers to work on: on the stack for the dimensions that occur in hot loops, and never filled with zeros first,
/// which would take as long as the solution of a triangular system. A macro, because a closure would not be compiled for the
/// lanes' instruction set.
macro_rules! copied {
    ($name:ident, $from:expr) => {
        let from: &[R] = $from;
        let mut stack = [const { MaybeUninit::<R>::uninit() }; ON_STACK];
        let mut heap;
        let $name: &mut [R] = if from.len() <= ON_STACK {
            for (to, &x) in stack.iter_mut().zip(from) {
                to.write(x);
            }
            // SAFETY: so many numbers have just been written.
            unsafe { std::slice::from_raw_parts_mut(stack.as_mut_ptr().cast(), from.len()) }
        } else {
            heap = Scratch::zeros(from.len());
            heap.copy_from_slice(from);
            &mut heap
        };
    };
}

/// The Cholesky factor of a packed precision in its place, with the reciprocals of its diagonal in place of the diagonal.
#[inline(always)]
fn cholesky<R: Real>(d: usize, l: &mut [R]) {
    for i in 0..d {
        for j in 0..i {
            let mut sum = l[at(i, j)];
            for k in 0..j {
                sum = l[at(i, k)].neg_mul_add(l[at(j, k)], sum);
            }
            l[at(i, j)] = sum * l[at(j, j)];
        }
        let mut sum = l[at(i, i)];
        for k in 0..i {
            sum = l[at(i, k)].neg_mul_add(l[at(i, k)], sum);
        }
        // Rounding can push a later pivot of a nearly singular precision below zero.
        let pivot = if i == 0 {
            sum
        } else {
            sum.max(R::splat(1e-30))
        };
        l[at(i, i)] = pivot.rsqrt();
    }
}

/// Solves `L y = h` in place.
#[inline(always)]
fn forward_solve<R: Real>(d: usize, l: &[R], y: &mut [R]) {
    for i in 0..d {
        let mut sum = y[i];
        for k in 0..i {
            sum = l[at(i, k)].neg_mul_add(y[k], sum);
        }
        y[i] = sum * l[at(i, i)];
    }
}

/// Solves `Lᵀ x = y` in place.
#[inline(always)]
fn backward_solve<R: Real>(d: usize, l: &[R], x: &mut [R]) {
    for i in (0..d).rev() {
        let mut sum = x[i];
        for k in i + 1..d {
            sum = l[at(k, i)].neg_mul_add(x[k], sum);
        }
        x[i] = sum * l[at(i, i)];
    }
}

/// `½ |y|² + ln Π rᵢ` as a weight. The product of reciprocal diagonals goes into the scale while it cannot underflow.
#[inline(always)]
fn weight_of<R: Real>(d: usize, l: &[R], y: &[R]) -> Weight<R> {
    let mut norm = R::zero();
    for &v in &y[..d] {
        norm = v.mul_add(v, norm);
    }
    let mut weight = Weight {
        exponent: norm * R::splat(0.5),
        scale: R::one(),
    };
    for i in 0..d {
        if i > 0 && i % 4 == 0 {
            weight = Weight::from_log(weight.ln());
        }
        weight.scale = weight.scale * l[at(i, i)];
    }
    weight
}

impl Family for Gaussian {
    const FIXED_DIMS: &'static [usize] = &[2, 5];
    const HOT: bool = true;
    const CHAINED: bool = true;

    fn size(&self) -> Size {
        Size {
            setting: "dim",
            value: self.dim,
            least: 1,
        }
    }

    fn dim(&self) -> usize {
        self.dim * (self.dim + 3) / 2
    }

    fn moments_dim(&self) -> usize {
        self.dim()
    }

    fn prior(&self) -> Vec<f64> {
        let mut eta = vec![0.0; self.dim()];
        for i in 0..self.dim {
            eta[self.dim + at(i, i)] = 1.0;
        }
        eta
    }

    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        let d = self.dim;
        let mut l = eta[d..].to_vec();
        cholesky(d, &mut l);
        let solid = (0..d).all(|i| l[at(i, i)].is_finite() && l[at(i, i)] < 1e14);
        if solid && eta.iter().all(|x| x.is_finite()) {
            Ok(())
        } else {
            Err(ParameterError::NotPositiveDefinite)
        }
    }

    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        let d = dim_of(eta.len());
        copied!(belief, eta);
        let (y, l) = belief.split_at_mut(d);
        cholesky(d, l);
        forward_solve(d, l, y);
        weight_of(d, l, y)
    }

    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        let d = dim_of(eta.len());
        copied!(l, &eta[d..]);
        cholesky(d, l);
        let (x, covariance) = mean.split_at_mut(d);
        x.copy_from_slice(&eta[..d]);
        forward_solve(d, l, x);
        let weight = weight_of(d, l, x);
        backward_solve(d, l, x);
        // L⁻¹ in place of L, then P⁻¹ = L⁻ᵀ L⁻¹.
        for i in 0..d {
            for j in 0..i {
                let mut sum = R::zero();
                for k in j..i {
                    sum = l[at(i, k)].neg_mul_add(l[at(k, j)], sum);
                }
                l[at(i, j)] = sum * l[at(i, i)];
            }
        }
        for i in 0..d {
            for j in 0..=i {
                let mut sum = x[i] * x[j];
                for k in i..d {
                    sum = l[at(k, i)].mul_add(l[at(k, j)], sum);
                }
                covariance[at(i, j)] = sum * R::splat(if i == j { -0.5 } else { -1.0 });
            }
        }
        weight
    }

    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        let d = dim_of(raw.len());
        message[..d].copy_from_slice(&raw[..d]);
        let c = &raw[d..];
        for i in 0..d {
            for j in 0..=i {
                let mut sum = R::zero();
                for k in 0..=j {
                    sum = c[at(i, k)].mul_add(c[at(j, k)], sum);
                }
                message[d + at(i, j)] = sum;
            }
        }
    }

    #[inline(always)]
    fn constrain_backward<R: Real>(&self, raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        let d = dim_of(raw.len());
        grad_raw[..d].copy_from_slice(&grad_message[..d]);
        let (c, g) = (&raw[d..], &grad_message[d..]);
        for i in 0..d {
            for k in 0..=i {
                // C_ik enters P_ij for j < i as C_jk, P_ii twice, and P_ji for j > i as C_jk.
                let mut sum = c[at(i, k)] * g[at(i, i)] * R::splat(2.0);
                for j in k..i {
                    sum = c[at(j, k)].mul_add(g[at(i, j)], sum);
                }
                for j in i + 1..d {
                    sum = c[at(j, k)].mul_add(g[at(j, i)], sum);
                }
                grad_raw[d + at(i, k)] = sum;
            }
        }
    }

    /// Mean, then row by row the correlations and the log of the precision's diagonal.
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        let d = dim_of(eta.len());
        let p = &eta[d..];
        copied!(l, p);
        cholesky(d, l);
        moments[..d].copy_from_slice(&eta[..d]);
        forward_solve(d, l, moments);
        backward_solve(d, l, moments);
        for i in 0..d {
            for j in 0..i {
                moments[d + at(i, j)] = p[at(i, j)] * (p[at(i, i)] * p[at(j, j)]).rsqrt();
            }
            moments[d + at(i, i)] = p[at(i, i)].ln();
        }
    }

    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        let d = dim_of(eta.len());
        let p = &eta[d..];
        copied!(belief, eta);
        let (x, l) = belief.split_at_mut(d);
        cholesky(d, l);
        forward_solve(d, l, x);
        backward_solve(d, l, x);
        // With u = P⁻¹ g: d(mean)·g = u·dh − uᵀ dP mean.
        let (u, grad_p) = grad_eta.split_at_mut(d);
        u.copy_from_slice(&grad_moments[..d]);
        forward_solve(d, l, u);
        backward_solve(d, l, u);
        for i in 0..d {
            for j in 0..i {
                grad_p[at(i, j)] = -(u[i] * x[j] + u[j] * x[i]);
            }
            grad_p[at(i, i)] = grad_moments[d + at(i, i)] / p[at(i, i)] - u[i] * x[i];
        }
        let grad_p = &mut grad_eta[d..];
        for i in 0..d {
            for j in 0..i {
                let scale = (p[at(i, i)] * p[at(j, j)]).rsqrt();
                let g = grad_moments[d + at(i, j)] * scale;
                let half = R::splat(0.5) * g * p[at(i, j)];
                grad_p[at(i, j)] = grad_p[at(i, j)] + g;
                grad_p[at(i, i)] = grad_p[at(i, i)] - half / p[at(i, i)];
                grad_p[at(j, j)] = grad_p[at(j, j)] - half / p[at(j, j)];
            }
        }
    }

    fn describe(&self, eta: &[f64]) -> Description {
        let d = self.dim;
        let mut mu = vec![0.0; eta.len()];
        self.weight_and_mean(eta, &mut mu);
        let mean = mu[..d].to_vec();
        let sd = (0..d)
            .map(|i| {
                (-2.0 * mu[d + at(i, i)] - mean[i] * mean[i])
                    .max(0.0)
                    .sqrt()
            })
            .collect();
        let mut l = eta[d..].to_vec();
        cholesky(d, &mut l);
        let half_log_det: f64 = (0..d).map(|i| l[at(i, i)].ln()).sum();
        let entropy = 0.5 * d as f64 * (1.0 + (2.0 * std::f64::consts::PI).ln()) + half_log_det;
        Description::new(mean, sd, entropy)
    }
}
