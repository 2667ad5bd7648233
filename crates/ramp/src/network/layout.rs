//! How a network's arrays lie: which of its parameters meet the inputs, and which make the outputs.

use std::ops::Range;

/// A matrix of weights within a network's flat slice of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightMatrix {
    start: usize,
    inputs: usize,
    outputs: usize,
    input_stride: usize,
    output_stride: usize,
}

impl WeightMatrix {
    /// Weights that lie output by output: the usual way.
    pub fn by_output(start: usize, outputs: usize, inputs: usize) -> Self {
        WeightMatrix {
            start,
            inputs,
            outputs,
            input_stride: 1,
            output_stride: inputs,
        }
    }

    /// Weights that lie input by input, as wide layers keep them.
    pub fn by_input(start: usize, outputs: usize, inputs: usize) -> Self {
        WeightMatrix {
            start,
            inputs,
            outputs,
            input_stride: outputs,
            output_stride: 1,
        }
    }

    /// The same matrix where the network's parameters begin at `offset` of a longer slice.
    #[must_use]
    pub fn shifted(mut self, offset: usize) -> Self {
        self.start += offset;
        self
    }

    /// Inputs of the layer.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Outputs of the layer.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Where the weight of an input for an output lies.
    ///
    /// # Panics
    /// Where the layer has no such input or output.
    pub fn at(&self, output: usize, input: usize) -> usize {
        assert!(input < self.inputs && output < self.outputs);
        self.start + output * self.output_stride + input * self.input_stride
    }

    /// The places of all weights of one input.
    pub fn of_input(&self, input: usize) -> impl Iterator<Item = usize> {
        let matrix = *self;
        (0..self.outputs).map(move |output| matrix.at(output, input))
    }

    /// The places of all weights of one output.
    pub fn of_output(&self, output: usize) -> impl Iterator<Item = usize> {
        let matrix = *self;
        (0..self.inputs).map(move |input| matrix.at(output, input))
    }

    /// The places of all weights.
    pub fn span(&self) -> Range<usize> {
        self.start..self.start + self.inputs * self.outputs
    }
}

/// Where a network keeps the weights of its first and of its last layer; places count in its flat slice of parameters.
///
/// The promise behind it: negating [`input_weights`](Self::input_weights) does what negating all inputs does; negating the
/// weights of one input in [`first`](Self::first) does what negating that input does; and output `o` is linear in
/// [`last`](Self::last)'s weights of `o`, plus `bias[o]`.
///
/// ```
/// use ramp::network::{Mlp, Network};
/// let layout = Mlp::new(300, &[8], 2)?.layout().expect("perceptrons say how they lie");
/// // Wide layers lie input by input.
/// let first = layout.first.expect("a dense layer");
/// assert_eq!(first.at(1, 0), first.at(0, 0) + 1);
/// assert_eq!(layout.last.of_output(1).count(), 8);
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// All weights that inputs are multiplied with.
    pub input_weights: Range<usize>,
    /// The same as a matrix, where every input has weights of its own: in a dense layer, not in a convolution.
    pub first: Option<WeightMatrix>,
    /// The weights of the last layer, which is linear.
    pub last: WeightMatrix,
    /// Its biases, one for every output.
    pub bias: Range<usize>,
}

impl Layout {
    /// A layout of these parts.
    pub fn new(
        input_weights: Range<usize>,
        first: Option<WeightMatrix>,
        last: WeightMatrix,
        bias: Range<usize>,
    ) -> Self {
        Layout {
            input_weights,
            first,
            last,
            bias,
        }
    }

    /// The same where the network's parameters begin at `offset` of a longer slice.
    #[must_use]
    pub fn shifted(self, offset: usize) -> Self {
        let shift = |span: Range<usize>| span.start + offset..span.end + offset;
        Layout {
            input_weights: shift(self.input_weights),
            first: self.first.map(|first| first.shifted(offset)),
            last: self.last.shifted(offset),
            bias: shift(self.bias),
        }
    }
}
