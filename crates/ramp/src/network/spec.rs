//! A network as written in a model file.

use super::{Activation, Conv, ConvLayer, Initialization, Mlp, Monotone, Network, NetworkError};
use serde::{Deserialize, Serialize};

/// What kind of network to build, as written in a model file; the numbers of inputs and outputs follow from its place in
/// the model.
///
/// ```
/// use ramp::network::NetworkSpec;
/// let spec: NetworkSpec = serde_json::from_str(r#"{ "kind": "mlp", "hidden": [64], "activation": "gelu" }"#)?;
/// let network = spec.build(5, 2)?;
/// assert_eq!((network.inputs(), network.outputs()), (5, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum NetworkSpec {
    /// Dense layers.
    Mlp(MlpSpec),
    /// Convolutions, then dense layers.
    Conv(ConvSpec),
    /// A mean that only rises, or only falls, with a number or with ordered levels.
    Monotone(MonotoneSpec),
}

/// A monotone network, for observations of Gaussian latents: see [`Monotone`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MonotoneSpec {
    /// Hidden units, where the observation is a number; levels need none.
    pub hidden: usize,
}

impl Default for MonotoneSpec {
    fn default() -> Self {
        MonotoneSpec { hidden: 16 }
    }
}

/// A perceptron: two hidden layers of 32 with tanh unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MlpSpec {
    /// Widths of the hidden layers; none makes the network linear.
    pub hidden: Vec<usize>,
    /// The function between layers.
    pub activation: Activation,
    /// Whether sums are normalised before the activation.
    pub layer_norm: bool,
    /// The random start; the usual one of the activation unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
}

impl Default for MlpSpec {
    fn default() -> Self {
        MlpSpec {
            hidden: vec![32, 32],
            activation: Activation::Tanh,
            layer_norm: false,
            initialization: None,
        }
    }
}

/// Convolutions on images, with relu unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvSpec {
    /// Channels, height and width of the images.
    pub image: [usize; 3],
    /// The convolutions.
    pub layers: Vec<ConvLayer>,
    /// Widths of the hidden dense layers after flattening; none unless said otherwise.
    #[serde(default)]
    pub dense: Vec<usize>,
    /// The function after every convolution and hidden layer.
    #[serde(default = "relu")]
    pub activation: Activation,
    /// The random start; the usual one of the activation unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
}

fn relu() -> Activation {
    Activation::Relu
}

impl Default for NetworkSpec {
    fn default() -> Self {
        NetworkSpec::Mlp(MlpSpec::default())
    }
}

impl NetworkSpec {
    /// The network with so many input and output features, or what does not fit.
    pub fn build(&self, inputs: usize, outputs: usize) -> Result<Box<dyn Network>, NetworkError> {
        match self {
            NetworkSpec::Mlp(spec) => {
                let mut mlp = Mlp::new(inputs, &spec.hidden, outputs)?
                    .with_activation(spec.activation)
                    .with_layer_norm(spec.layer_norm);
                if let Some(initialization) = spec.initialization {
                    mlp = mlp.with_initialization(initialization);
                }
                Ok(Box::new(mlp))
            }
            NetworkSpec::Conv(spec) => {
                let [channels, height, width] = spec.image;
                let pixels = channels
                    .checked_mul(height)
                    .and_then(|n| n.checked_mul(width));
                if pixels != Some(inputs) {
                    return Err(NetworkError::ImageShape {
                        shape: spec.image,
                        inputs,
                    });
                }
                let mut conv = Conv::new(spec.image, &spec.layers, &spec.dense, outputs)?
                    .with_activation(spec.activation);
                if let Some(initialization) = spec.initialization {
                    conv = conv.with_initialization(initialization);
                }
                Ok(Box::new(conv))
            }
            NetworkSpec::Monotone(spec) => {
                // `dim` numbers of `h`, then a lower triangle.
                let dim = (1..=outputs).find(|d| d + d * (d + 1) / 2 >= outputs);
                let dim = dim.filter(|d| d + d * (d + 1) / 2 == outputs);
                let dim = dim.ok_or(NetworkError::NotGaussian { outputs })?;
                Ok(Box::new(match inputs {
                    1 => Monotone::number(spec.hidden, dim)?,
                    levels => Monotone::levels(levels, dim)?,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_alone_takes_the_defaults() {
        let spec: NetworkSpec = serde_json::from_str(r#"{"kind": "mlp"}"#).unwrap();
        assert_eq!(spec, NetworkSpec::default());
        let shapes: Vec<_> = spec
            .build(3, 2)
            .unwrap()
            .parameters()
            .into_iter()
            .map(|p| p.shape)
            .collect();
        assert_eq!(shapes[0], [32, 3]);
        assert_eq!(shapes[4], [2, 32]);
    }

    #[test]
    fn specs_round_trip() {
        let text = r#"{"kind": "conv", "image": [1, 8, 8], "layers": [{"channels": 4}, {"channels": 2, "stride": 2}]}"#;
        let spec: NetworkSpec = serde_json::from_str(text).unwrap();
        let again = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(spec, again);
        assert_eq!(spec.build(64, 3).unwrap().outputs(), 3);
        let mlp: NetworkSpec = serde_json::from_str(
            r#"{"kind": "mlp", "initialization": "fan_in", "layer_norm": true}"#,
        )
        .unwrap();
        assert!(mlp.build(1, 1).is_ok());
    }

    #[test]
    fn unknown_fields_and_kinds_are_named() {
        for (text, part) in [
            (r#"{"kind": "mlp", "hiden": [3]}"#, "hiden"),
            (r#"{"kind": "rnn"}"#, "rnn"),
            (r#"{"kind": "mlp", "activation": "selu"}"#, "selu"),
            (
                r#"{"kind": "conv", "image": [1, 4, 4], "layers": [{"channels": 1, "size": 3}]}"#,
                "size",
            ),
        ] {
            let message = serde_json::from_str::<NetworkSpec>(text)
                .unwrap_err()
                .to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn images_of_another_size_are_explained() {
        let text = r#"{"kind": "conv", "image": [1, 8, 8], "layers": [{"channels": 4}]}"#;
        let spec: NetworkSpec = serde_json::from_str(text).unwrap();
        let message = spec.build(63, 3).err().unwrap().to_string();
        assert!(
            message.contains("1×8×8") && message.contains("63"),
            "{message}"
        );
    }
}
