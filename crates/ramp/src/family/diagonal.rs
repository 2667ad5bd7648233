//! The Gaussian with independent coordinates.

use super::{Description, Family, Gaussian, ParameterError, Size, Weight};
use crate::kernel::real::Real;

/// A Gaussian with diagonal covariance: `h` (`dim` numbers), then the precisions. Messages have precisions `c²`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiagonalGaussian {
    /// The dimension of the latent.
    pub dim: usize,
}

impl Family for DiagonalGaussian {
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
        [vec![0.0; self.dim], vec![1.0; self.dim]].concat()
    }

    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        super::check_positive(&eta[self.dim..])?;
        match eta[..self.dim].iter().all(|x| x.is_finite()) {
            true => Ok(()),
            false => Err(ParameterError::NotFinite),
        }
    }

    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        let d = eta.len() / 2;
        let mut weight = Weight::from_log(R::zero());
        for i in 0..d {
            if i > 0 && i % 4 == 0 {
                weight = Weight::from_log(weight.ln());
            }
            let r = eta[d + i].rsqrt();
            let t = eta[i] * r;
            weight.exponent = (t * R::splat(0.5)).mul_add(t, weight.exponent);
            weight.scale = weight.scale * r;
        }
        weight
    }

    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        let d = eta.len() / 2;
        let mut weight = Weight::from_log(R::zero());
        for i in 0..d {
            if i > 0 && i % 4 == 0 {
                weight = Weight::from_log(weight.ln());
            }
            let r = eta[d + i].rsqrt();
            let t = eta[i] * r;
            weight.exponent = (t * R::splat(0.5)).mul_add(t, weight.exponent);
            weight.scale = weight.scale * r;
            let x = t * r;
            mean[i] = x;
            mean[d + i] = R::splat(-0.5) * x.mul_add(x, r * r);
        }
        weight
    }

    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        let d = raw.len() / 2;
        for i in 0..d {
            message[i] = raw[i];
            message[d + i] = raw[d + i].square();
        }
    }

    #[inline(always)]
    fn constrain_backward<R: Real>(&self, raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        let d = raw.len() / 2;
        for i in 0..d {
            grad_raw[i] = grad_message[i];
            grad_raw[d + i] = R::splat(2.0) * raw[d + i] * grad_message[d + i];
        }
    }

    /// Means, then log-precisions.
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        let d = eta.len() / 2;
        for i in 0..d {
            moments[i] = eta[i] / eta[d + i];
            moments[d + i] = eta[d + i].ln();
        }
    }

    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        let d = eta.len() / 2;
        for i in 0..d {
            let inverse = R::one() / eta[d + i];
            let g = grad_moments[i] * inverse;
            grad_eta[i] = g;
            grad_eta[d + i] = grad_moments[d + i] * inverse - g * eta[i] * inverse;
        }
    }

    fn describe(&self, eta: &[f64]) -> Description {
        let d = self.dim;
        let one = Gaussian { dim: 1 };
        let parts: Vec<_> = (0..d)
            .map(|i| one.describe(&[eta[i], eta[d + i]]))
            .collect();
        Description::new(
            parts.iter().map(|p| p.mean[0]).collect(),
            parts.iter().map(|p| p.sd[0]).collect(),
            parts.iter().map(|p| p.entropy).sum(),
        )
    }
}
