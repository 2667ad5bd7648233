//! Random starts of weights.

use super::Activation;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// The spread of a layer's first weights, which are normal with mean zero; biases start at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Initialization {
    /// Variance `1 / inputs` (LeCun): keeps the scale of features through layers that are about linear.
    FanIn,
    /// Variance `2 / (inputs + outputs)` (Glorot): a compromise between features and gradients.
    Glorot,
    /// Variance `2 / inputs` (He): makes up for the half of the features that a rectifier drops.
    He,
}

impl Initialization {
    /// The usual choice for an activation: fan-in for tanh, He for the others.
    pub fn for_activation(activation: Activation) -> Self {
        match activation {
            Activation::Tanh => Initialization::FanIn,
            Activation::Relu | Activation::Gelu | Activation::Silu => Initialization::He,
        }
    }

    /// Fills the weights of a layer that sums over `fan_in` inputs and serves `fan_out` outputs.
    pub(crate) fn fill(
        self,
        rng: &mut ChaCha8Rng,
        fan_in: usize,
        fan_out: usize,
        weights: &mut [f32],
    ) {
        let (fan_in, fan_out) = (fan_in as f64, fan_out as f64);
        let variance = match self {
            Initialization::FanIn => 1.0 / fan_in,
            Initialization::Glorot => 2.0 / (fan_in + fan_out),
            Initialization::He => 2.0 / fan_in,
        };
        let deviation = variance.sqrt();
        for weight in weights {
            let normal: f64 = StandardNormal.sample(rng);
            *weight = (deviation * normal) as f32;
        }
    }
}
