//! What can be wrong with a model's settings, with data for it, with a stored one, or with changing its signs.

use crate::family::FamilyError;
use crate::names;
use std::path::PathBuf;

/// Why a model cannot be built, used, changed or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A family or a prior for something observed.
    #[error("`{name}` is an observation, not a latent")]
    NotALatent {
        /// What was named.
        name: String,
    },
    /// A message from an observation, or from several variables at once, where one from a latent is needed.
    #[error("the message `{message}` does not come from one latent")]
    NotFromALatent {
        /// The message.
        message: String,
    },
    /// A start for chains on another tree.
    #[error("the `dynamics` initialisation is for chains in time; this tree is none")]
    NoDynamics,
    /// Natural parameters that make no belief.
    #[error("the prior of `{latent}`: {source}")]
    Prior {
        /// The latent.
        latent: String,
        /// What is wrong with them.
        source: FamilyError,
    },
    /// Sizes and families that do not fit the tree.
    #[error(
        "the stored model has sizes for {features} observations and families for {families} latents; its tree has {observations} and {latents}"
    )]
    Sizes {
        /// Observations with a size.
        features: usize,
        /// Latents with a family.
        families: usize,
        /// Observations of the tree.
        observations: usize,
        /// Latents of the tree.
        latents: usize,
    },
    /// More weights than there is room for.
    #[error(
        "the {networks} networks of the model have more weights together than the {most} that there is room for; make them smaller, or let messages share them"
    )]
    TooManyParameters {
        /// Networks.
        networks: usize,
        /// The most weights that they may have.
        most: usize,
    },
    /// Larger beliefs than there is room for.
    #[error(
        "the {latents} latents of the model have {numbers} natural parameters together, and {most} are the most; make them smaller or fewer"
    )]
    TooManyNumbers {
        /// Latents.
        latents: usize,
        /// Their natural parameters.
        numbers: usize,
        /// The most that they may have.
        most: usize,
    },
    /// There is no such network.
    #[error(
        "there is no network `{key}`; the keys are {}",
        names::joined(keys, ", ")
    )]
    UnknownNetwork {
        /// What was asked for.
        key: String,
        /// What there is.
        keys: Vec<String>,
    },
    /// A network of one's own of another shape than its place.
    #[error("network `{key}` maps {from} numbers to {to} where {inputs} and {outputs} are needed")]
    NetworkShape {
        /// The network.
        key: String,
        /// Its inputs.
        from: usize,
        /// Its outputs.
        to: usize,
        /// The inputs of its place.
        inputs: usize,
        /// The outputs of its place.
        outputs: usize,
    },
    /// Messages of several shapes that share a network.
    #[error(
        "messages {first} and {second} share the network `{network}` but one maps {} numbers to {} and the other {} to {}; \
         give their latents the same family, or tie fewer messages",
        first_shape.0, first_shape.1, second_shape.0, second_shape.1
    )]
    SharedShape {
        /// One of them.
        first: String,
        /// Another.
        second: String,
        /// The network.
        network: String,
        /// Inputs and outputs of the first.
        first_shape: (usize, usize),
        /// Inputs and outputs of the second.
        second_shape: (usize, usize),
    },
    /// An observation of another width than the model's.
    #[error(
        "observation `{observation}` has {found} numbers per sample in the data but {expected} in the model"
    )]
    Features {
        /// The observation.
        observation: String,
        /// Its width in the data.
        found: usize,
        /// Its width in the model.
        expected: usize,
    },
    /// Sequences of unequal lengths for a tree without a time axis.
    #[error("the data has sequences of unequal lengths, but the tree is not a chain")]
    LengthsWithoutChain,
    /// A sequence longer than the chain.
    #[error(
        "sequence {sequence} has {length} steps but the chain has {steps}; unroll the model to more steps"
    )]
    TooLong {
        /// Which.
        sequence: usize,
        /// Its steps.
        length: usize,
        /// The chain's.
        steps: usize,
    },
    /// A stored model of a later form.
    #[error(
        "the model was stored in form {found} by a newer version of this software; this one reads form {known}: read it with that"
    )]
    Newer {
        /// Its form.
        found: u32,
        /// The form that is known here.
        known: u32,
    },
    /// A stored model of an earlier form.
    #[error(
        "the model was stored in form {found} by an older version of this software; this one reads form {known}: fit it again"
    )]
    Older {
        /// Its form.
        found: u32,
        /// The form that is known here.
        known: u32,
    },
    /// Steps of a chain with different families.
    #[error(
        "the steps of a chain must have the same family; make a tree of separate variables where they differ"
    )]
    StepFamilies,
    /// A chain that is not tied over time.
    #[error(
        "the chain cannot be unrolled: its tree must be a chain in time and its networks be tied by role"
    )]
    NotUnrollable,
    /// Steps of a chain with different priors.
    #[error("the chain cannot be unrolled: its steps must have the same prior")]
    StepPriors,
    /// A chain whose networks depend on its length.
    #[error("the chain cannot be unrolled: a longer chain has other networks")]
    OtherNetworks,
    /// A network that says nothing of its arrays, where they are needed.
    #[error(
        "network `{network}` does not say how its arrays lie; implement `Network::layout` for it"
    )]
    NoLayout {
        /// The network.
        network: String,
    },
    /// The latent's sign has a meaning.
    #[error(
        "latent `{latent}` has no sign to flip: it is not a one-dimensional Gaussian around zero"
    )]
    NotSymmetric {
        /// The latent.
        latent: String,
    },
    /// Only all latents of a chain are flipped together.
    #[error("the tree is no chain; flip the signs of its latents one by one")]
    NotAChain,
    /// The network serves messages whose signs differ afterwards.
    #[error(
        "network `{network}` serves other messages too, whose signs do not change; tie fewer messages"
    )]
    SharedSign {
        /// The network.
        network: String,
    },
    /// A network that has a latent among its inputs but no weights for each input.
    #[error(
        "network `{network}` has no weights of its own for each input, so that one input's sign cannot be flipped"
    )]
    NoInputWeights {
        /// The network.
        network: String,
    },
    /// There is no file to load.
    #[error("there is no stored model `{}`", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// A file without a model's settings.
    #[error("`{}` holds no model: {reason}", path.display())]
    NoModel {
        /// The file.
        path: PathBuf,
        /// What is wrong with its header.
        reason: String,
    },
    /// A stored array is missing, of another length, or not finite.
    #[error("`{}` {problem} the array `{array}`", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// `lacks`, `has other numbers than the model in` …
        problem: ArrayProblem,
        /// The array.
        array: String,
    },
    /// A network of one's own that was not given again.
    #[error(
        "the stored model has a network `{key}` of its own that is not stored with it; give it to the registry with `network`"
    )]
    MissingNetwork {
        /// Its key.
        key: String,
    },
    /// A family of one's own that was not given again.
    #[error(
        "the stored model has a family `{name}` of its own that is not stored with it; give it to the registry with `family`"
    )]
    MissingFamily {
        /// Its name.
        name: String,
    },
    /// A family of one's own that is another than the stored one.
    #[error("the registry made the family {found} where the stored model has {stored}")]
    OtherFamily {
        /// What the registry made.
        found: String,
        /// What was stored.
        stored: String,
    },
    /// A header that cannot be written.
    #[error("the model's settings cannot be written: {reason}")]
    Settings {
        /// Why.
        reason: String,
    },
}

/// What is wrong with a stored array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayProblem {
    /// It is not there.
    #[error("lacks")]
    Missing,
    /// It has another length.
    #[error("has another length than the model in")]
    Length,
    /// It holds a number that is not finite.
    #[error("has a number that is not finite in")]
    NotFinite,
    /// The model has no such array.
    #[error("holds, for no network of the model,")]
    Unknown,
}
