//! What can be wrong with the shape of a network.

use crate::kernel::activation::UnknownActivation;

/// Why a network cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// Nothing to map from.
    #[error("a network needs at least one input feature")]
    NoInputs,
    /// Nothing to map to.
    #[error("a network needs at least one output")]
    NoOutputs,
    /// A hidden layer of width zero.
    #[error("hidden layer {layer} of the network has no units; give it a width of 1 or more")]
    EmptyLayer {
        /// Which, counted from one.
        layer: usize,
    },
    /// More weights than any training could hold.
    #[error("a network with the widths {widths:?} has {weights} weights; the most are 268 million")]
    TooManyWeights {
        /// Inputs, hidden layers, outputs.
        widths: Vec<usize>,
        /// What they multiply to.
        weights: u128,
    },
    /// A side or the channels of an image are zero.
    #[error("an image of {} has no pixels", image(shape))]
    EmptyImage {
        /// Channels, height, width.
        shape: [usize; 3],
    },
    /// A convolutional network without convolutions.
    #[error("a convolutional network needs at least one convolution; without any, use an mlp")]
    NoConvolutions,
    /// A convolution that does not fit its input.
    #[error("convolution {number} {why}")]
    Convolution {
        /// Which, counted from one.
        number: usize,
        /// What does not fit.
        why: ConvolutionError,
    },
    /// Images of another size than the data's.
    #[error(
        "the conv network is for images of {}, but its input has {inputs} features; set `image` to the shape of the data",
        image(shape)
    )]
    ImageShape {
        /// Channels, height, width.
        shape: [usize; 3],
        /// Features of the input.
        inputs: usize,
    },
    /// A monotone network for something else than a Gaussian.
    #[error(
        "a monotone network speaks to Gaussian latents with full covariance, but its messages have {outputs} numbers; \
         use another network or family"
    )]
    NotGaussian {
        /// Numbers of a message.
        outputs: usize,
    },
    /// A name that no activation has.
    #[error(transparent)]
    Activation(#[from] UnknownActivation),
}

/// What does not fit of a convolution: the half of a sentence after its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvolutionError {
    /// It writes nothing.
    #[error("has no output channels; give it 1 or more")]
    NoChannels,
    /// Its windows never move.
    #[error("has stride 0; the stride must be 1 or more")]
    NoStride,
    /// Its windows have no pixels.
    #[error("has an empty kernel; the kernel must be 1 or more")]
    EmptyKernel,
    /// Its windows are larger than what they move over.
    #[error(
        "has a kernel of {kernel}×{kernel}, larger than its input of {} with padding {padding}; \
         use a smaller kernel, more padding, or less stride before it",
        image(input)
    )]
    KernelTooLarge {
        /// Side of the window.
        kernel: usize,
        /// Zeros around the image.
        padding: usize,
        /// Channels, height, width of its input.
        input: [usize; 3],
    },
    /// Its weights or buffers would not fit any memory.
    #[error("is too large for memory; use fewer channels, a smaller kernel or less padding")]
    TooLarge,
}

fn image([channels, height, width]: &[usize; 3]) -> String {
    format!("{channels}×{height}×{width} (channels × height × width)")
}
