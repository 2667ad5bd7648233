//! The convolutional network: convolutions, then a perceptron on the flattened features.

use super::{
    Activation, Block, ConvolutionError, Initialization, Layout, Mlp, Network, NetworkError,
    Parameter,
};
use crate::kernel::Finish;
use crate::kernel::conv::{Convolution, GROUP, Place};
use group::{Space, gather, spaces};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

mod group;

/// One convolution with square windows, followed by the network's activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvLayer {
    /// Output channels.
    pub channels: usize,
    /// Side of the window: 3 unless said otherwise.
    #[serde(default = "three")]
    pub kernel: usize,
    /// Pixels from one window to the next: 1 unless said otherwise.
    #[serde(default = "one")]
    pub stride: usize,
    /// Zeros around the image: 1 unless said otherwise, which keeps the size of an image under 3×3 windows.
    #[serde(default = "one")]
    pub padding: usize,
}

fn one() -> usize {
    1
}

fn three() -> usize {
    3
}

/// Convolutions with an activation each, then a perceptron on the flattened features.
///
/// Input rows are images, channel × height × width; they may come row by row or feature-major. Images are convolved in
/// groups of 16. The tape keeps only the flattened features and the perceptron's part: the backward pass computes the
/// activations before them again, group by group, which costs a fifth of the time and saves 200 kB per 32×32 image in a usual stack.
///
/// ```
/// use ramp::network::{Activation, Conv, ConvLayer, Network};
/// let layers = [
///     ConvLayer { channels: 8, kernel: 3, stride: 1, padding: 1 },
///     ConvLayer { channels: 16, kernel: 3, stride: 2, padding: 1 },
/// ];
/// let network = Conv::new([1, 28, 28], &layers, &[64], 10)?.with_activation(Activation::Silu);
/// assert_eq!(network.inputs(), 28 * 28);
/// assert_eq!(network.parameters()[2].shape, [16, 8, 3, 3]);
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Conv {
    activation: Activation,
    initialization: Option<Initialization>,
    convolutions: Vec<Convolution>,
    windows: Vec<usize>,
    head: Mlp,
}

impl Conv {
    /// A network on images of shape `[channels, height, width]` with relu.
    ///
    /// `dense` are the widths of the hidden layers after flattening; there may be none.
    pub fn new(
        image: [usize; 3],
        layers: &[ConvLayer],
        dense: &[usize],
        outputs: usize,
    ) -> Result<Self, NetworkError> {
        if image.contains(&0) {
            return Err(NetworkError::EmptyImage { shape: image });
        }
        if layers.is_empty() {
            return Err(NetworkError::NoConvolutions);
        }
        let mut convolutions: Vec<Convolution> = Vec::new();
        let mut input = image;
        for (index, layer) in layers.iter().enumerate() {
            check_layer(layer, input).map_err(|why| NetworkError::Convolution {
                number: index + 1,
                why,
            })?;
            let convolution = Convolution::new(
                input,
                layer.channels,
                layer.kernel,
                layer.stride,
                layer.padding,
            );
            input = convolution.output();
            convolutions.push(convolution);
        }
        let head = Mlp::new(input.iter().product(), dense, outputs)?;
        let network = Conv {
            activation: Activation::Relu,
            initialization: None,
            convolutions,
            windows: layers.iter().map(|layer| layer.kernel).collect(),
            head,
        };
        Ok(network.with_activation(Activation::Relu))
    }

    /// The same with another activation.
    #[must_use]
    pub fn with_activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self.head = self.head.with_activation(activation);
        self
    }

    /// The same with another random start than [`Initialization::for_activation`].
    #[must_use]
    pub fn with_initialization(mut self, initialization: Initialization) -> Self {
        self.initialization = Some(initialization);
        self.head = self.head.with_initialization(initialization);
        self
    }

    fn last(&self) -> &Convolution {
        &self.convolutions[self.convolutions.len() - 1]
    }

    /// Numbers of the convolutions in the flat slice; the head's follow.
    fn convolutions_len(&self) -> usize {
        let lens = self.convolutions.iter();
        lens.map(|c| c.weights_len() + c.output()[0]).sum()
    }

    /// Length of the flattened features of `rows`.
    fn flat_len(&self, rows: usize) -> usize {
        self.head.inputs() * rows
    }

    /// Where the flattened features of a group lie within those of a block.
    fn flat_place(&self, group: usize, rows: usize) -> Place {
        Place {
            start: group * GROUP,
            ..Place::plain(self.last().output(), rows)
        }
    }

    fn check(&self, parameters: &[f32], input: &Block<'_>, tape: &[f32], scratch: &[f32]) {
        assert_eq!(input.features(), self.inputs(), "features of the input");
        assert!(input.rows().is_multiple_of(GROUP), "rows");
        let head: usize = self.head.parameters().iter().map(Parameter::len).sum();
        assert_eq!(
            parameters.len(),
            self.convolutions_len() + head,
            "parameters"
        );
        assert!(tape.len() >= self.tape_len(input.rows()), "tape");
        assert!(scratch.len() >= self.scratch_len(input.rows()), "scratch");
    }
}

/// Weights or buffers of more numbers than this are a slip of the pen, and sums of their lengths might overflow.
const MOST_NUMBERS: u128 = 1 << 40;

/// The most numbers that a layer's weights or one group's buffers hold.
fn needs(layer: &ConvLayer, input: [usize; 3]) -> u128 {
    let wide = |n: usize| n as u128;
    let side = |n: usize| wide(n).saturating_add(wide(layer.padding).saturating_mul(2));
    let product = |factors: [u128; 4]| factors.iter().fold(1_u128, |n, &f| n.saturating_mul(f));
    let most = wide(input[0]).max(wide(layer.channels));
    let (kernel, group) = (wide(layer.kernel), wide(GROUP));
    product([most, side(input[1]), side(input[2]), group]).max(product([
        wide(input[0]),
        wide(layer.channels),
        kernel,
        kernel,
    ]))
}

fn check_layer(layer: &ConvLayer, input: [usize; 3]) -> Result<(), ConvolutionError> {
    let ConvLayer {
        channels,
        kernel,
        stride,
        padding,
    } = *layer;
    let side = input[1]
        .min(input[2])
        .saturating_add(padding.saturating_mul(2));
    if channels == 0 {
        Err(ConvolutionError::NoChannels)
    } else if stride == 0 {
        Err(ConvolutionError::NoStride)
    } else if kernel == 0 {
        Err(ConvolutionError::EmptyKernel)
    } else if kernel > side {
        Err(ConvolutionError::KernelTooLarge {
            kernel,
            padding,
            input,
        })
    } else if needs(layer, input) > MOST_NUMBERS {
        Err(ConvolutionError::TooLarge)
    } else {
        Ok(())
    }
}

impl Network for Conv {
    fn inputs(&self) -> usize {
        self.convolutions[0].input().iter().product()
    }

    fn outputs(&self) -> usize {
        self.head.outputs()
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut all = Vec::new();
        for (i, (c, &window)) in self.convolutions.iter().zip(&self.windows).enumerate() {
            let shape = [c.output()[0], c.input()[0], window, window];
            all.push(Parameter::new(format!("conv.{i}.weight"), &shape));
            all.push(Parameter::new(format!("conv.{i}.bias"), &shape[..1]));
        }
        all.extend(
            self.head
                .parameters()
                .into_iter()
                .map(|parameter| Parameter {
                    name: format!("dense.{}", parameter.name),
                    ..parameter
                }),
        );
        all
    }

    fn initialize(&self, rng: &mut ChaCha8Rng, parameters: &mut [f32]) {
        let default = Initialization::for_activation(self.activation);
        let initialization = self.initialization.unwrap_or(default);
        let (own, head) = parameters.split_at_mut(self.convolutions_len());
        let mut rest = own;
        for (c, window) in self.convolutions.iter().zip(&self.windows) {
            let (weights, after) = rest.split_at_mut(c.weights_len());
            let fan_out = c.output()[0] * window * window;
            initialization.fill(rng, c.fan_in(), fan_out, weights);
            let (bias, after) = after.split_at_mut(c.output()[0]);
            bias.fill(0.0);
            rest = after;
        }
        self.head.initialize(rng, head);
    }

    fn layout(&self) -> Option<Layout> {
        let head = self.head.layout()?.shifted(self.convolutions_len());
        Some(Layout::new(
            0..self.convolutions[0].weights_len(),
            None,
            head.last,
            head.bias,
        ))
    }

    fn tape_len(&self, rows: usize) -> usize {
        self.flat_len(rows) + self.head.tape_len(rows)
    }

    fn scratch_len(&self, rows: usize) -> usize {
        self.flat_len(rows) + self.head.scratch_len(rows).max(self.group_len())
    }

    fn forward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        output: &mut [f32],
        tape: &mut [f32],
        scratch: &mut [f32],
    ) {
        self.check(parameters, &input, tape, scratch);
        let rows = input.rows();
        let (flat, head_tape) = tape.split_at_mut(self.flat_len(rows));
        spaces!(spaces, self);
        self.cut(parameters, &mut scratch[..self.group_len()], spaces);
        let image = self.convolutions[0].input();
        for group in 0..rows / GROUP {
            let place = self.convolutions[0].input_place();
            gather(input, group, image, spaces[0].input, place);
            for (index, convolution) in self.convolutions.iter().enumerate() {
                let (before, next) = spaces.split_at_mut(index + 1);
                let target = match self.convolutions.get(index + 1) {
                    Some(following) => (&mut *next[0].input, following.input_place()),
                    None => (&mut *flat, self.flat_place(group, rows)),
                };
                let finish = Finish::Activate(self.activation, None);
                let own = &before[index];
                convolution.forward(own.forward, own.bias, own.input, target, finish);
            }
        }
        let features = Block::feature_major(flat, self.head.inputs(), rows);
        let parameters = &parameters[self.convolutions_len()..];
        self.head
            .forward(parameters, features, output, head_tape, scratch);
    }

    fn backward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        tape: &[f32],
        grad_output: &[f32],
        mut grad_input: Option<&mut [f32]>,
        grad_parameters: &mut [f32],
        scratch: &mut [f32],
    ) {
        self.check(parameters, &input, tape, scratch);
        let rows = input.rows();
        let (flat, head_tape) = tape.split_at(self.flat_len(rows));
        let (grad_flat, scratch) = scratch.split_at_mut(self.flat_len(rows));
        let features = Block::feature_major(flat, self.head.inputs(), rows);
        let own = self.convolutions_len();
        let (to_convolutions, to_head) = grad_parameters.split_at_mut(own);
        let (convolutions, head) = parameters.split_at(own);
        self.head.backward(
            head,
            features,
            head_tape,
            grad_output,
            Some(&mut *grad_flat),
            to_head,
            scratch,
        );

        spaces!(spaces, self);
        self.cut(convolutions, &mut scratch[..self.group_len()], spaces);
        for group in 0..rows / GROUP {
            self.recompute(input, group, spaces);
            let flat_place = self.flat_place(group, rows);
            self.flat_gradient(flat, grad_flat, flat_place, spaces);
            let mut end = own;
            for (index, convolution) in self.convolutions.iter().enumerate().rev() {
                let begin = end - convolution.weights_len() - convolution.output()[0];
                let (to_weights, to_bias) =
                    to_convolutions[begin..end].split_at_mut(convolution.weights_len());
                end = begin;
                let (before, here) = spaces.split_at_mut(index);
                let Space {
                    input,
                    slope,
                    grad,
                    backward,
                    ..
                } = &mut here[0];
                convolution.backward_weights(input, grad, to_weights, to_bias);
                if let Some(previous) = before.last_mut() {
                    let kept: &[f32] = if slope.is_empty() { input } else { slope };
                    let target = (
                        &mut *previous.grad,
                        self.convolutions[index - 1].grad_place(),
                    );
                    convolution.backward_input(
                        backward,
                        grad,
                        target,
                        Some((self.activation, kept)),
                    );
                } else if let Some(grad_input) = grad_input.as_deref_mut() {
                    let place = Place {
                        start: group * GROUP,
                        ..Place::plain(convolution.input(), rows)
                    };
                    convolution.backward_input(backward, grad, (grad_input, place), None);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
