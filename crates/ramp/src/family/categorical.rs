//! The categorical: a belief about which of a few classes.

use super::{Description, Family, ParameterError, Size, Weight};
use crate::kernel::real::Real;

/// One of `levels` classes; the natural parameters are logits (a shift of all of them changes nothing), the prior is uniform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Categorical {
    /// How many classes.
    pub levels: usize,
}

#[inline(always)]
fn largest<R: Real>(eta: &[R]) -> R {
    let mut top = eta[0];
    for &x in &eta[1..] {
        top = top.max(x);
    }
    top
}

impl Family for Categorical {
    const FIXED_DIMS: &'static [usize] = &[2, 3];

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
        self.levels
    }

    fn freedom(&self) -> usize {
        1
    }

    fn prior(&self) -> Vec<f64> {
        vec![0.0; self.levels]
    }

    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        match eta.iter().all(|x| x.is_finite()) {
            true => Ok(()),
            false => Err(ParameterError::NotFinite),
        }
    }

    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        let top = largest(eta);
        let mut scale = R::zero();
        for &x in eta {
            scale = scale + (x - top).exp_weight();
        }
        Weight {
            exponent: top,
            scale,
        }
    }

    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        let top = largest(eta);
        let mut scale = R::zero();
        for (m, &x) in mean.iter_mut().zip(eta) {
            *m = (x - top).exp_weight();
            scale = scale + *m;
        }
        let inverse = R::one() / scale;
        for m in mean.iter_mut() {
            *m = *m * inverse;
        }
        Weight {
            exponent: top,
            scale,
        }
    }

    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        message.copy_from_slice(raw);
    }

    #[inline(always)]
    fn constrain_backward<R: Real>(&self, _raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        grad_raw.copy_from_slice(grad_message);
    }

    /// The probabilities.
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        self.weight_and_mean(eta, moments);
    }

    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        self.weight_and_mean(eta, grad_eta);
        let mut average = R::zero();
        for (&p, &g) in grad_eta.iter().zip(grad_moments) {
            average = p.mul_add(g, average);
        }
        for (p, &g) in grad_eta.iter_mut().zip(grad_moments) {
            *p = *p * (g - average);
        }
    }

    fn describe(&self, eta: &[f64]) -> Description {
        let mut p = vec![0.0; eta.len()];
        self.weight_and_mean(eta, &mut p);
        let sd = p.iter().map(|p| (p * (1.0 - p)).sqrt()).collect();
        let entropy = -p
            .iter()
            .map(|&p| if p > 0.0 { p * p.ln() } else { 0.0 })
            .sum::<f64>();
        Description::new(p, sd, entropy)
    }
}
