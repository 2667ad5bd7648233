//! Amortisers: the networks that turn observations and beliefs into messages, and the trait for a user's own.
//!
//! # Layout
//! Networks work on blocks of rows (samples, or samples × tied messages). Activations are **feature-major**: feature `i`
//! of row `r` lies at `i * rows + r`, so that a register holds one feature of many rows and small layers vectorise
//! without packing. The number of rows is always a multiple of [`ROW_UNIT`]; rows added as padding carry zeros, and
//! their output gradients are zero.

#[cfg(test)]
pub(crate) mod check;
mod conv;
mod error;
mod initialization;
mod layout;
mod mlp;
mod monotone;
mod norm;
mod spec;

pub use crate::kernel::activation::{Activation, UnknownActivation};
pub use crate::kernel::block::{Block, BlockError, ROW_UNIT};
pub use conv::{Conv, ConvLayer};
pub use error::{ConvolutionError, NetworkError};
pub use initialization::Initialization;
pub use layout::{Layout, WeightMatrix};
pub use mlp::Mlp;
pub use monotone::Monotone;
pub use spec::{ConvSpec, MlpSpec, MonotoneSpec, NetworkSpec};

pub use rand_chacha::ChaCha8Rng;

/// A learnable array of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name within the network, e.g. `0.weight`.
    pub name: String,
    /// Its shape; the last dimension is contiguous.
    pub shape: Vec<usize>,
    /// How many inputs each unit sums over; one for biases and the like.
    pub inputs: usize,
}

impl Parameter {
    /// A parameter of the given name and shape: an array of weights has an entry of the first dimension for each unit.
    pub fn new(name: impl Into<String>, shape: &[usize]) -> Self {
        Parameter {
            name: name.into(),
            shape: shape.to_vec(),
            inputs: shape.iter().skip(1).product(),
        }
    }

    /// The same where each unit sums over so many inputs.
    #[must_use]
    pub fn with_inputs(mut self, inputs: usize) -> Self {
        self.inputs = inputs;
        self
    }

    /// How many numbers it holds.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A differentiable function from a block of inputs to a block of raw outputs.
///
/// A network owns no numbers: its parameters live in one flat slice, in the order of [`Network::parameters`], so that the
/// optimiser, checkpoints and threads need not know what a network is.
pub trait Network: Send + Sync {
    /// Features per input row.
    fn inputs(&self) -> usize;

    /// Features per output row.
    fn outputs(&self) -> usize;

    /// The learnable arrays, in the order in which the flat slice holds them.
    fn parameters(&self) -> Vec<Parameter>;

    /// Fills the flat slice with a random start.
    fn initialize(&self, rng: &mut ChaCha8Rng, parameters: &mut [f32]);

    /// How the arrays lie, for what works on single layers: sign alignment, scaled-down initialisation, regression of the
    /// last layer. A network that does not say is trained and used like any other; sign alignment and regression then
    /// return an error that names it, and initialisation leaves it as [`Network::initialize`] made it.
    fn layout(&self) -> Option<Layout> {
        None
    }

    /// The places of the parameters whose negation negates one output and nothing else, for sign alignment.
    fn negating_output(&self, output: usize) -> Option<Vec<usize>> {
        let layout = self.layout()?;
        let mut places: Vec<usize> = layout.last.of_output(output).collect();
        places.push(layout.bias.start + output);
        Some(places)
    }

    /// The places of the parameters whose negation makes of an observation that runs one way one that runs the other way: in a
    /// network with a [`Layout`], what negating all inputs does.
    fn negating_inputs(&self) -> Option<Vec<usize>> {
        Some(self.layout()?.input_weights.collect())
    }

    /// How many numbers [`Network::forward`] leaves for [`Network::backward`] on a block of `rows`.
    fn tape_len(&self, rows: usize) -> usize;

    /// How many numbers of working space a call needs on a block of `rows`.
    fn scratch_len(&self, rows: usize) -> usize;

    /// Writes the raw outputs, feature-major, and what the backward pass needs. Old contents of `tape` and `scratch` are
    /// arbitrary.
    fn forward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        output: &mut [f32],
        tape: &mut [f32],
        scratch: &mut [f32],
    );

    /// From the gradient at the outputs, **adds** the gradient of the parameters to `grad_parameters` and writes the
    /// gradient at the inputs, feature-major, where it is asked for.
    #[allow(clippy::too_many_arguments)]
    fn backward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        tape: &[f32],
        grad_output: &[f32],
        grad_input: Option<&mut [f32]>,
        grad_parameters: &mut [f32],
        scratch: &mut [f32],
    );
}
