//! The nonlinearities between layers: their values, their slopes, and what of them a backward pass needs.

use super::real::Real;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The function that a network applies to every hidden feature.
///
/// ```
/// use ramp::network::Activation;
/// assert_eq!("gelu".parse::<Activation>().unwrap(), Activation::Gelu);
/// assert!("gleu".parse::<Activation>().unwrap_err().to_string().contains("tanh, relu, gelu or silu"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Activation {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// `max(x, 0)`.
    Relu,
    /// The Gaussian error linear unit in its tanh approximation.
    Gelu,
    /// `x · sigmoid(x)`.
    Silu,
}

/// A name that no activation has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no activation \"{name}\"; choose tanh, relu, gelu or silu")]
pub struct UnknownActivation {
    /// What was asked for.
    pub name: String,
}

impl FromStr for Activation {
    type Err = UnknownActivation;

    fn from_str(name: &str) -> Result<Self, UnknownActivation> {
        match name {
            "tanh" => Ok(Activation::Tanh),
            "relu" => Ok(Activation::Relu),
            "gelu" => Ok(Activation::Gelu),
            "silu" => Ok(Activation::Silu),
            _ => Err(UnknownActivation {
                name: name.to_string(),
            }),
        }
    }
}

/// `√(2/π)` of the tanh approximation of gelu.
const GELU_SCALE: f64 = 0.797_884_560_802_865_4;
/// Its cubic coefficient.
const GELU_CUBIC: f64 = 0.044_715;

impl Activation {
    /// Whether a backward pass must keep slopes beside the values: the slopes of tanh and relu follow from the values,
    /// those of the others would need the pre-activation and a second exponential.
    pub(crate) fn keeps_slope(self) -> bool {
        matches!(self, Activation::Gelu | Activation::Silu)
    }

    /// The value at `x`.
    #[inline(always)]
    pub(crate) fn value<R: Real>(self, x: R) -> R {
        match self {
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.max(R::zero()),
            Activation::Gelu | Activation::Silu => self.value_and_slope(x).0,
        }
    }

    /// The value and the slope at `x`.
    #[inline(always)]
    pub(crate) fn value_and_slope<R: Real>(self, x: R) -> (R, R) {
        let one = R::one();
        // Beyond this, the sigmoid is zero for all purposes and its exponential would overflow in `f32`.
        let most = R::splat(80.0);
        match self {
            Activation::Tanh | Activation::Relu => {
                let value = self.value(x);
                (value, self.slope_at_value(value))
            }
            // Both are x · sigmoid(inner): with e = exp(-inner), the sigmoid is 1/(1 + e) and its complement e/(1 + e),
            // without the cancellation of 1 - tanh² that gelu's large inner slope would magnify.
            Activation::Gelu => {
                let cubic = R::splat(GELU_CUBIC) * x * x;
                let scale = R::splat(2.0 * GELU_SCALE);
                let e = (-(scale * x * (one + cubic))).min(most).exp();
                let gate = one / (one + e);
                let value = x * gate;
                let inner_slope = scale * cubic.mul_add(R::splat(3.0), one);
                (value, (value * inner_slope).mul_add(e * gate, gate))
            }
            Activation::Silu => {
                let e = (-x).min(most).exp();
                let gate = one / (one + e);
                let value = x * gate;
                (value, value.mul_add(e * gate, gate))
            }
        }
    }

    /// The slope from what was kept: the value of tanh and relu, the slope itself of the others.
    #[inline(always)]
    pub(crate) fn slope_from_kept<R: Real>(self, kept: R) -> R {
        if self.keeps_slope() {
            kept
        } else {
            self.slope_at_value(kept)
        }
    }

    #[inline(always)]
    fn slope_at_value<R: Real>(self, value: R) -> R {
        match self {
            Activation::Relu => R::zero().select_lt(value, R::one(), R::zero()),
            _ => R::one() - value * value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 4] = [
        Activation::Tanh,
        Activation::Relu,
        Activation::Gelu,
        Activation::Silu,
    ];

    #[test]
    fn slopes_are_the_derivatives_of_the_values() {
        for activation in ALL {
            for i in -60..60 {
                let x = 0.1 * f64::from(i) + 0.03;
                let (value, slope) = activation.value_and_slope(x);
                assert_eq!(value, activation.value(x));
                let difference = (activation.value(x + 1e-5) - activation.value(x - 1e-5)) / 2e-5;
                assert!(
                    (slope - difference).abs() < 1e-8,
                    "{activation:?} at {x}: {slope} and {difference}"
                );
                let kept = if activation.keeps_slope() {
                    slope
                } else {
                    value
                };
                assert_eq!(activation.slope_from_kept(kept), slope);
            }
        }
    }

    #[test]
    fn values_are_the_textbook_ones() {
        for x in [-3.0_f64, -0.5, 0.0, 0.7, 2.0] {
            let silu = x / (1.0 + (-x).exp());
            assert!((Activation::Silu.value(x) - silu).abs() < 1e-12);
            // The tanh approximation of gelu is within 5e-4 of x Φ(x); 1.702-sigmoid is within 2e-2.
            let rough = x / (1.0 + (-1.702 * x).exp());
            assert!((Activation::Gelu.value(x) - rough).abs() < 2.1e-2);
            assert_eq!(Activation::Relu.value(x), x.max(0.0));
        }
    }

    #[test]
    fn names_round_trip_and_unknown_ones_are_explained() {
        for activation in ALL {
            let name = serde_json::to_string(&activation).unwrap();
            assert_eq!(
                name.trim_matches('"').parse::<Activation>().unwrap(),
                activation
            );
        }
        let message = "selu".parse::<Activation>().unwrap_err().to_string();
        assert!(
            message.contains("selu") && message.contains("silu"),
            "{message}"
        );
    }
}
