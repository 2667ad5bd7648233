//! The von Mises: a belief about an angle.

use super::{Description, Family, ParameterError, Size, Weight};
use crate::kernel::real::Real;

/// A product of `dim` independent angles, natural parameters `κ cos, κ sin` each; the prior is uniform on the circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VonMises {
    /// How many angles.
    pub dim: usize,
}

/// The concentration, kept away from zero where its gradient has no direction.
#[inline(always)]
fn concentration<R: Real>(pair: &[R]) -> R {
    pair[0]
        .mul_add(pair[0], pair[1].mul_add(pair[1], R::splat(1e-12)))
        .sqrt()
}

impl Family for VonMises {
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
        3 * self.dim
    }

    fn prior(&self) -> Vec<f64> {
        vec![0.0; 2 * self.dim]
    }

    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        match eta.iter().all(|x| x.is_finite()) {
            true => Ok(()),
            false => Err(ParameterError::NotFinite),
        }
    }

    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        let mut weight = Weight::from_log(R::zero());
        for (i, pair) in eta.chunks_exact(2).enumerate() {
            if i > 0 && i % 4 == 0 {
                weight = Weight::from_log(weight.ln());
            }
            let (exponent, scale, _) = concentration(pair).bessel_i0();
            weight = Weight {
                exponent: weight.exponent + exponent,
                scale: weight.scale * scale,
            };
        }
        weight
    }

    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        let mut weight = Weight::from_log(R::zero());
        for (i, (pair, m)) in eta
            .chunks_exact(2)
            .zip(mean.chunks_exact_mut(2))
            .enumerate()
        {
            if i > 0 && i % 4 == 0 {
                weight = Weight::from_log(weight.ln());
            }
            let (exponent, scale, ratio) = concentration(pair).bessel_i0();
            weight = Weight {
                exponent: weight.exponent + exponent,
                scale: weight.scale * scale,
            };
            m[0] = pair[0] * ratio;
            m[1] = pair[1] * ratio;
        }
        weight
    }

    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        message.copy_from_slice(raw);
    }

    #[inline(always)]
    fn constrain_backward<R: Real>(&self, _raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        grad_raw.copy_from_slice(grad_message);
    }

    /// The mean resultant (cosine and sine, shorter when unsure) and `ln(1 + κ)`.
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        for (m, pair) in moments.chunks_exact_mut(3).zip(eta.chunks_exact(2)) {
            let kappa = concentration(pair);
            let (_, _, ratio) = kappa.bessel_i0();
            m[0] = pair[0] * ratio;
            m[1] = pair[1] * ratio;
            m[2] = (R::one() + kappa).ln();
        }
    }

    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        for ((g, pair), out) in grad_moments
            .chunks_exact(3)
            .zip(eta.chunks_exact(2))
            .zip(grad_eta.chunks_exact_mut(2))
        {
            let kappa = concentration(pair);
            let (_, _, ratio) = kappa.bessel_i0();
            // With A = I1/I0 = κ·ratio: A' = 1 − A/κ − A², so d ratio/dκ = (1 − 2·ratio − A²)/κ.
            let resultant = kappa * ratio;
            // The bracket is −κ²/8 near zero, where its difference of nearly equal numbers only rounds.
            let bracket = R::one() - ratio - ratio - resultant * resultant;
            let small = kappa * kappa * R::splat(-0.125);
            let slope = kappa.select_lt(R::splat(0.03), small, bracket) / (kappa * kappa);
            let along =
                (g[0] * pair[0] + g[1] * pair[1]) * slope + g[2] / (kappa * (R::one() + kappa));
            out[0] = g[0].mul_add(ratio, along * pair[0]);
            out[1] = g[1].mul_add(ratio, along * pair[1]);
        }
    }

    fn describe(&self, eta: &[f64]) -> Description {
        let parts: Vec<_> = eta
            .chunks_exact(2)
            .map(|pair| {
                let kappa = concentration(pair);
                let (exponent, scale, ratio) = kappa.bessel_i0();
                let resultant = kappa * ratio;
                let sd = (-2.0 * resultant.min(1.0).ln()).max(0.0).sqrt();
                let entropy =
                    (2.0 * std::f64::consts::PI).ln() + exponent + scale.ln() - kappa * resultant;
                (pair[1].atan2(pair[0]), sd, entropy)
            })
            .collect();
        Description::new(
            parts.iter().map(|p| p.0).collect(),
            parts.iter().map(|p| p.1).collect(),
            parts.iter().map(|p| p.2).sum(),
        )
    }
}
