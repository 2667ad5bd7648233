//! The Beta: a belief about a number between zero and one.

use super::dirichlet::log_beta;
use super::{
    Description, Dirichlet, Family, ParameterError, Size, Weight, check_positive,
    constrain_positive, constrain_positive_backward,
};
use crate::kernel::real::Real;
use crate::kernel::special::digamma;

/// A product of `dim` independent Betas, natural parameters `α₁, β₁, α₂, β₂, …`; the prior is uniform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beta {
    /// How many numbers between zero and one.
    pub dim: usize,
}

impl Family for Beta {
    const FIXED_DIMS: &'static [usize] = &[2, 4];

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
            sum = sum + log_beta(pair);
        }
        Weight::from_log(sum)
    }

    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        for (m, pair) in mean.chunks_exact_mut(2).zip(eta.chunks_exact(2)) {
            let whole = digamma(pair[0] + pair[1]);
            m[0] = digamma(pair[0]) - whole;
            m[1] = digamma(pair[1]) - whole;
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

    /// The log-odds of the mean and the log of the total concentration.
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        for (m, pair) in moments.chunks_exact_mut(2).zip(eta.chunks_exact(2)) {
            m[0] = pair[0].ln() - pair[1].ln();
            m[1] = (pair[0] + pair[1]).ln();
        }
    }

    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        for i in (0..eta.len()).step_by(2) {
            let (a, b) = (eta[i], eta[i + 1]);
            let shared = grad_moments[i + 1] / (a + b);
            grad_eta[i] = grad_moments[i] / a + shared;
            grad_eta[i + 1] = shared - grad_moments[i] / b;
        }
    }

    fn describe(&self, eta: &[f64]) -> Description {
        let pair = Dirichlet { levels: 2 };
        let parts: Vec<_> = eta.chunks_exact(2).map(|p| pair.describe(p)).collect();
        Description::new(
            parts.iter().map(|p| p.mean[0]).collect(),
            parts.iter().map(|p| p.sd[0]).collect(),
            parts.iter().map(|p| p.entropy).sum(),
        )
    }
}
