//! The Dirichlet: a belief about proportions.

use super::{
    Description, Family, ParameterError, Size, Weight, check_positive, constrain_positive,
    constrain_positive_backward,
};
use crate::kernel::real::Real;
use crate::kernel::special::{HALF_LN_TWO_PI, digamma, log_gamma};

/// A Dirichlet over `levels` proportions; the natural parameters are its concentrations, the prior is uniform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirichlet {
    /// How many proportions sum to one.
    pub levels: usize,
}

/// `Σ lnΓ(αᵢ) − lnΓ(Σ αᵢ)`, arranged so that the large parts of Stirling's formula cancel before they round:
/// they combine into `Σ (zᵢ − ½) ln(zᵢ/Z)`, which is of the size of the result.
#[inline(always)]
pub(super) fn log_beta<R: Real>(alpha: &[R]) -> R {
    let half = R::splat(0.5);
    let mut total = R::zero();
    for &a in alpha {
        total = total + a;
    }
    let whole = log_gamma(total);
    let inverse = R::one() / whole.shifted;
    let mut result =
        R::splat(HALF_LN_TWO_PI * (alpha.len() as f64 - 1.0)) - whole.tail + whole.shift;
    // Σ(zᵢ − ½) − (Z − ½), from the shifts alone: the concentrations themselves cancel exactly.
    let mut excess = R::splat(-0.5 * (alpha.len() as f64 - 1.0)) - whole.shift;
    for &a in alpha {
        let part = log_gamma(a);
        result = (part.shifted - half).mul_add((part.shifted * inverse).ln(), result) + part.tail
            - part.shift;
        excess = excess + part.shift;
    }
    excess.mul_add(whole.shifted.ln(), result)
}

impl Family for Dirichlet {
    const FIXED_DIMS: &'static [usize] = &[3];

    fn size(&self) -> Size {
        Size {
            setting: "levels",
            value: self.levels,
            least: 2,
        }
    }

    fn dim(&self) -> usize {
        self.levels
    }

    fn moments_dim(&self) -> usize {
        self.levels + 1
    }

    fn freedom(&self) -> usize {
        self.levels - 1
    }

    fn prior(&self) -> Vec<f64> {
        vec![1.0; self.levels]
    }

    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        check_positive(eta)
    }

    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        Weight::from_log(log_beta(eta))
    }

    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        let mut total = R::zero();
        for &a in eta {
            total = total + a;
        }
        let whole = digamma(total);
        for (m, &a) in mean.iter_mut().zip(eta) {
            *m = digamma(a) - whole;
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

    /// Log-proportions, then the log of the total concentration.
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        let mut total = R::zero();
        for &a in eta {
            total = total + a;
        }
        let log_total = total.ln();
        for (m, &a) in moments.iter_mut().zip(eta) {
            *m = a.ln() - log_total;
        }
        moments[eta.len()] = log_total;
    }

    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        let mut total = R::zero();
        let mut grad_log_total = grad_moments[eta.len()];
        for (&a, &g) in eta.iter().zip(grad_moments) {
            total = total + a;
            grad_log_total = grad_log_total - g;
        }
        let shared = grad_log_total / total;
        for i in 0..eta.len() {
            grad_eta[i] = grad_moments[i] / eta[i] + shared;
        }
    }

    fn describe(&self, eta: &[f64]) -> Description {
        let total: f64 = eta.iter().sum();
        let mean: Vec<f64> = eta.iter().map(|a| a / total).collect();
        let sd = mean
            .iter()
            .map(|m| (m * (1.0 - m) / (total + 1.0)).sqrt())
            .collect();
        let entropy = log_beta(eta) + (total - eta.len() as f64) * digamma(total)
            - eta.iter().map(|&a| (a - 1.0) * digamma(a)).sum::<f64>();
        Description::new(mean, sd, entropy)
    }
}
