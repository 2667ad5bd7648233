//! The multilayer perceptron: dense layers with an activation between them.

use super::norm::Norm;
use super::{
    Activation, Block, Initialization, Layout, Network, NetworkError, Parameter, WeightMatrix,
};
use crate::kernel::{Finish, dense};
use rand_chacha::ChaCha8Rng;

/// Dense layers with an activation, and optionally layer normalisation, on every hidden one; the outputs are linear.
///
/// ```
/// use ramp::network::{Activation, Block, Mlp, Network};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
///
/// let network = Mlp::new(2, &[32, 32], 3)?.with_activation(Activation::Gelu);
/// let mut parameters = vec![0.0; network.parameters().iter().map(|p| p.len()).sum()];
/// network.initialize(&mut ChaCha8Rng::seed_from_u64(1), &mut parameters);
///
/// let rows = 16;
/// let input = vec![0.5; 2 * rows];
/// let mut output = vec![0.0; 3 * rows];
/// let mut tape = vec![0.0; network.tape_len(rows)];
/// let mut scratch = vec![0.0; network.scratch_len(rows)];
/// let block = Block::feature_major(&input, 2, rows);
/// network.forward(&parameters, block, &mut output, &mut tape, &mut scratch);
/// assert!(output.iter().all(|y| y.is_finite()));
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mlp {
    activation: Activation,
    layer_norm: bool,
    initialization: Option<Initialization>,
    layers: Vec<Layer>,
}

/// One dense layer and where its numbers begin.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    inputs: usize,
    outputs: usize,
    /// Whether its weights lie input by input, so that inputs of zero cost nothing.
    wide: bool,
    /// Begin of its weight, bias, gain and shift in the flat slice.
    parameters: usize,
    /// Begin of its tape, in units of rows; the same for its end.
    tape: usize,
    tape_end: usize,
}

impl Mlp {
    /// A perceptron with the given widths and tanh; no hidden layer makes it linear.
    pub fn new(inputs: usize, hidden: &[usize], outputs: usize) -> Result<Self, NetworkError> {
        if inputs == 0 {
            return Err(NetworkError::NoInputs);
        }
        if outputs == 0 {
            return Err(NetworkError::NoOutputs);
        }
        if let Some(layer) = hidden.iter().position(|&width| width == 0) {
            return Err(NetworkError::EmptyLayer { layer: layer + 1 });
        }
        let widths = [&[inputs], hidden, &[outputs]].concat();
        let weights = widths
            .windows(2)
            .map(|pair| pair[0] as u128 * pair[1] as u128);
        let weights = weights.fold(0_u128, u128::saturating_add);
        // A gigabyte, which training needs several times over: more is a slip of the pen.
        if weights > 1 << 28 {
            return Err(NetworkError::TooManyWeights { widths, weights });
        }
        let layers = widths.windows(2).enumerate().map(|(index, pair)| Layer {
            inputs: pair[0],
            outputs: pair[1],
            wide: index == 0 && pair[0] >= dense::wide::WIDE,
            parameters: 0,
            tape: 0,
            tape_end: 0,
        });
        let mut mlp = Mlp {
            activation: Activation::default(),
            layer_norm: false,
            initialization: None,
            layers: layers.collect(),
        };
        mlp.lay_out();
        Ok(mlp)
    }

    /// The same with another activation.
    #[must_use]
    pub fn with_activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self.lay_out();
        self
    }

    /// The same with or without layer normalisation (learnable gain and shift) before every activation.
    #[must_use]
    pub fn with_layer_norm(mut self, layer_norm: bool) -> Self {
        self.layer_norm = layer_norm;
        self.lay_out();
        self
    }

    /// The same with another random start than [`Initialization::for_activation`].
    #[must_use]
    pub fn with_initialization(mut self, initialization: Initialization) -> Self {
        self.initialization = Some(initialization);
        self
    }

    /// Recomputes where every layer's numbers begin.
    fn lay_out(&mut self) {
        let (mut parameters, mut tape) = (0, 0);
        let last = self.layers.len() - 1;
        for (index, layer) in self.layers.iter_mut().enumerate() {
            layer.parameters = parameters;
            layer.tape = tape;
            parameters += (layer.inputs + 1) * layer.outputs;
            if index < last {
                tape += layer.outputs;
                if self.activation.keeps_slope() {
                    tape += layer.outputs;
                }
                if self.layer_norm {
                    parameters += 2 * layer.outputs;
                    tape += layer.outputs + 1;
                }
            }
            layer.tape_end = tape;
        }
    }

    /// The largest number of outputs for which a pass needs space: those of hidden layers and of a wide one.
    fn widest(&self) -> usize {
        let last = self.layers.len() - 1;
        let spacious = self.layers.iter().enumerate();
        let spacious = spacious.filter(|(index, layer)| *index < last || layer.wide);
        spacious.map(|(_, layer)| layer.outputs).max().unwrap_or(0)
    }

    /// Whether an input that comes row by row is better copied feature-major than left to `gemm`.
    fn packs_input(&self) -> bool {
        let first = &self.layers[0];
        !first.wide && dense::is_small(first.inputs, first.outputs)
    }

    /// The input feature-major where that pays, in the front of `scratch`, and the rest of `scratch`.
    fn pack<'a>(&self, input: Block<'a>, scratch: &'a mut [f32]) -> (Block<'a>, &'a mut [f32]) {
        if input.row_stride() == 1 || !self.packs_input() {
            return (input, scratch);
        }
        let (packed, rest) = scratch.split_at_mut(input.features() * input.rows());
        for (feature, row) in packed.chunks_exact_mut(input.rows()).enumerate() {
            let from = &input.data()[feature * input.feature_stride()..];
            for (to, &from) in row.iter_mut().zip(from.iter().step_by(input.row_stride())) {
                *to = from;
            }
        }
        (
            Block::feature_major(packed, input.features(), input.rows()),
            rest,
        )
    }

    fn check(&self, parameters: &[f32], input: &Block<'_>, tape: &[f32], scratch: &[f32]) {
        assert_eq!(input.features(), self.inputs(), "features of the input");
        assert_eq!(parameters.len(), self.parameters_len(), "parameters");
        assert!(tape.len() >= self.tape_len(input.rows()), "tape");
        assert!(scratch.len() >= self.scratch_len(input.rows()), "scratch");
    }

    fn parameters_len(&self) -> usize {
        let last = &self.layers[self.layers.len() - 1];
        last.parameters + (last.inputs + 1) * last.outputs
    }

    /// The parts of a hidden layer's tape: values, slopes, normalised sums, scales; absent ones are empty.
    fn tape_lens(&self, layer: &Layer, rows: usize) -> [usize; 4] {
        let block = layer.outputs * rows;
        let slopes = self.activation.keeps_slope();
        [
            block,
            if slopes { block } else { 0 },
            if self.layer_norm { block } else { 0 },
            if self.layer_norm { rows } else { 0 },
        ]
    }
}

impl Layer {
    /// The weights' shape, the contiguous dimension last.
    fn shape(&self) -> [usize; 2] {
        match self.wide {
            true => [self.inputs, self.outputs],
            false => [self.outputs, self.inputs],
        }
    }

    fn forward(
        &self,
        (weights, bias): (&[f32], &[f32]),
        input: Block<'_>,
        output: &mut [f32],
        finish: Finish<'_>,
        scratch: &mut [f32],
    ) {
        match self.wide {
            true => dense::wide::forward(weights, bias, input, output, finish, scratch),
            false => dense::forward(weights, bias, input, output, finish),
        }
    }

    /// Where its weights lie.
    fn matrix(&self) -> WeightMatrix {
        match self.wide {
            true => WeightMatrix::by_input(self.parameters, self.outputs, self.inputs),
            false => WeightMatrix::by_output(self.parameters, self.outputs, self.inputs),
        }
    }

    /// Begins of weight, bias, gain and shift, and the end if there are gain and shift.
    fn begins(&self) -> [usize; 5] {
        let weight = self.parameters;
        let bias = weight + self.inputs * self.outputs;
        let gain = bias + self.outputs;
        let shift = gain + self.outputs;
        [weight, bias, gain, shift, shift + self.outputs]
    }
}

/// Cuts a slice into four.
fn cut(slice: &[f32], [a, b, c, d]: [usize; 4]) -> [&[f32]; 4] {
    let (first, rest) = slice.split_at(a);
    let (second, rest) = rest.split_at(b);
    let (third, rest) = rest.split_at(c);
    [first, second, third, &rest[..d]]
}

/// The same for writing.
fn cut_mut(slice: &mut [f32], [a, b, c, d]: [usize; 4]) -> [&mut [f32]; 4] {
    let (first, rest) = slice.split_at_mut(a);
    let (second, rest) = rest.split_at_mut(b);
    let (third, rest) = rest.split_at_mut(c);
    [first, second, third, &mut rest[..d]]
}

impl Network for Mlp {
    fn inputs(&self) -> usize {
        self.layers[0].inputs
    }

    fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].outputs
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut all = Vec::new();
        let last = self.layers.len() - 1;
        for (i, layer) in self.layers.iter().enumerate() {
            let outputs = [layer.outputs];
            let weight = Parameter::new(format!("{i}.weight"), &layer.shape());
            all.push(weight.with_inputs(layer.inputs));
            all.push(Parameter::new(format!("{i}.bias"), &outputs));
            if self.layer_norm && i < last {
                all.push(Parameter::new(format!("{i}.norm.gain"), &outputs));
                all.push(Parameter::new(format!("{i}.norm.shift"), &outputs));
            }
        }
        all
    }

    fn initialize(&self, rng: &mut ChaCha8Rng, parameters: &mut [f32]) {
        let default = Initialization::for_activation(self.activation);
        let initialization = self.initialization.unwrap_or(default);
        parameters.fill(0.0);
        let last = self.layers.len() - 1;
        for (i, layer) in self.layers.iter().enumerate() {
            let [weight, bias, gain, shift, _] = layer.begins();
            let weights = &mut parameters[weight..bias];
            initialization.fill(rng, layer.inputs, layer.outputs, weights);
            if self.layer_norm && i < last {
                parameters[gain..shift].fill(1.0);
            }
        }
    }

    fn layout(&self) -> Option<Layout> {
        let (first, last) = (self.layers.first()?, self.layers.last()?);
        let [_, bias, end, ..] = last.begins();
        Some(Layout::new(
            first.matrix().span(),
            Some(first.matrix()),
            last.matrix(),
            bias..end,
        ))
    }

    fn tape_len(&self, rows: usize) -> usize {
        self.layers[self.layers.len() - 1].tape_end * rows
    }

    fn scratch_len(&self, rows: usize) -> usize {
        let packed = if self.packs_input() { self.inputs() } else { 0 };
        (packed + 2 * self.widest()) * rows
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
        if rows == 0 {
            return;
        }
        let (mut current, scratch) = self.pack(input, scratch);
        let mut tape = tape;
        let (last, hidden) = self.layers.split_last().expect("there is an output layer");
        for layer in hidden {
            let [weight, bias, gain, shift, end] = layer.begins();
            let affine = (&parameters[weight..bias], &parameters[bias..gain]);
            let (own, rest) = tape.split_at_mut((layer.tape_end - layer.tape) * rows);
            let [value, slope, normalized, scale] = cut_mut(own, self.tape_lens(layer, rows));
            if self.layer_norm {
                layer.forward(affine, current, normalized, Finish::Keep, scratch);
                let norm = Norm {
                    rows,
                    gain: &parameters[gain..shift],
                    activation: self.activation,
                };
                norm.forward(&parameters[shift..end], normalized, scale, value, slope);
            } else {
                let slope = Some(slope).filter(|slope| !slope.is_empty());
                let finish = Finish::Activate(self.activation, slope);
                layer.forward(affine, current, value, finish, scratch);
            }
            current = Block::feature_major(value, layer.outputs, rows);
            tape = rest;
        }
        let [weight, bias, end, ..] = last.begins();
        let affine = (&parameters[weight..bias], &parameters[bias..end]);
        last.forward(affine, current, output, Finish::Keep, scratch);
    }

    fn backward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        tape: &[f32],
        grad_output: &[f32],
        grad_input: Option<&mut [f32]>,
        grad_parameters: &mut [f32],
        scratch: &mut [f32],
    ) {
        self.check(parameters, &input, tape, scratch);
        assert_eq!(grad_parameters.len(), parameters.len(), "parameters");
        let rows = input.rows();
        if rows == 0 {
            return;
        }
        let (input, scratch) = self.pack(input, scratch);
        // The gradient at the current layer's sums, and the place of the one before.
        let (mut here, mut there) = scratch.split_at_mut(self.widest() * rows);
        let mut grad_input = grad_input;
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let [weight, bias, gain, ..] = layer.begins();
            let grad = if index + 1 == self.layers.len() {
                grad_output
            } else {
                &here[..layer.outputs * rows]
            };
            let (to_weights, to_bias) =
                grad_parameters[weight..gain].split_at_mut(layer.inputs * layer.outputs);
            let weights = &parameters[weight..bias];
            let Some(previous) = index.checked_sub(1).map(|i| &self.layers[i]) else {
                let grad_input = grad_input.take();
                if layer.wide {
                    dense::wide::backward_weights(input, grad, to_weights, to_bias, there);
                } else {
                    dense::backward_weights(input, grad, to_weights, to_bias);
                }
                match grad_input {
                    Some(to) if layer.wide => dense::wide::backward_input(weights, grad, rows, to),
                    Some(to) => dense::backward_input(weights, grad, rows, to, Finish::Keep),
                    None => {}
                }
                return;
            };
            let own = &tape[previous.tape * rows..previous.tape_end * rows];
            let [value, slope, normalized, scale] = cut(own, self.tape_lens(previous, rows));
            let kept = if slope.is_empty() { value } else { slope };
            let block = Block::feature_major(value, layer.inputs, rows);
            dense::backward_weights(block, grad, to_weights, to_bias);
            let target = &mut there[..layer.inputs * rows];
            if self.layer_norm {
                dense::backward_input(weights, grad, rows, target, Finish::Keep);
                let [_, _, gain, shift, end] = previous.begins();
                let norm = Norm {
                    rows,
                    gain: &parameters[gain..shift],
                    activation: self.activation,
                };
                let (to_gain, to_shift) = grad_parameters[gain..end].split_at_mut(previous.outputs);
                norm.backward(kept, normalized, scale, target, to_gain, to_shift);
            } else {
                let finish = Finish::Chain(self.activation, kept);
                dense::backward_input(weights, grad, rows, target, finish);
            }
            std::mem::swap(&mut here, &mut there);
        }
    }
}

#[cfg(test)]
mod tests;
