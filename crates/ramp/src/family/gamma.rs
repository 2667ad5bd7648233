//! The Gamma: a belief about a positive number.

use super::{
    Description, Family, ParameterError, Size, Weight, check_positive, constrain_positive,
    constrain_positive_backward,
};
use crate::kernel::real::Real;
use crate::kernel::special::{HALF_LN_TWO_PI, digamma, log_gamma};

/// A product of `dim` independent Gammas, natural parameters shape `k₁`, rate `r₁`, `k₂`, `r₂`, …; the prior is Gamma(1, 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gamma {
    /// How many positive numbers.
    pub dim: usize,
}

/// `lnΓ(k) − k ln r`, with `k ln(k/r)` formed before the rest so that large shapes and rates cancel.
#[inline(always)]
fn log_normalizer<R: Real>(k: R, r: R) -> R {
    let g = log_gamma(k);
    let ratio = (g.shifted / r).ln();
    let rest = (g.shift - R::splat(0.5)).mul_add(g.shifted.ln(), g.tail - g.shifted);
    k.mul_add(ratio, rest) + R::splat(HALF_LN_TWO_PI)
}

impl Family for Gamma {
    const FIXED_DIMS: &'static [usize] = &[2];

    fn size(&self) -> Size {
        Size {
            setting: "dim",
            value: self.dim,
            least: 1,
        }
    }

    fn dim(&self) -> usize {
        2 * self.dim
    }

    fn moments_dim(&self) -> usize {
        2 * self.dim
    }

    fn prior(&self) -> Vec<f64> {
        vec![1.0; 2 * self.dim]
    }

    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        check_positive(eta)
    }

    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        let mut sum = R::zero();
        for pair in eta.chunks_exact(2) {
            sum = sum + log_normalizer(pair[0], pair[1]);
        }
        Weight::from_log(sum)
    }

    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        for (m, pair) in mean.chunks_exact_mut(2).zip(eta.chunks_exact(2)) {
            m[0] = digamma(pair[0]) - pair[1].ln();
            m[1] = -(pair[0] / pair[1]);
        }
        self.weight(eta)
    }

    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        constrain_positive(raw, message);
    }

    #[inline(always)]
    fn constrain_backward<R: Real>(&self, raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        constrain_positive_backward(raw, grad_message, grad_raw);
    }

    /// The log of the mean and the log of the shape.
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        for (m, pair) in moments.chunks_exact_mut(2).zip(eta.chunks_exact(2)) {
            let log_shape = pair[0].ln();
            m[0] = log_shape - pair[1].ln();
            m[1] = log_shape;
        }
    }

    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        for i in (0..eta.len()).step_by(2) {
            grad_eta[i] = (grad_moments[i] + grad_moments[i + 1]) / eta[i];
            grad_eta[i + 1] = -(grad_moments[i] / eta[i + 1]);
        }
    }

    fn describe(&self, eta: &[f64]) -> Description {
        let pairs = || eta.chunks_exact(2);
        Description::new(
            pairs().map(|p| p[0] / p[1]).collect(),
            pairs().map(|p| p[0].sqrt() / p[1]).collect(),
            pairs()
                .map(|p| {
                    let (k, r) = (p[0], p[1]);
                    // lnΓ(k) = Φ + k ln r.
                    k - r.ln() + log_normalizer(k, r) + k * r.ln() + (1.0 - k) * digamma(k)
                })
                .sum(),
        )
    }
}
