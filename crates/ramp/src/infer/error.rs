//! What can be wrong with a question to a trained model, as sentences that name the thing and the fix.

/// Why beliefs, scores or imputations cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InferError {
    /// A latent that is asked for and not there.
    #[error("there is no latent `{name}`; there are {}", .have.join(", "))]
    UnknownLatent {
        /// The name asked for.
        name: String,
        /// The first of those that there are.
        have: Vec<String>,
    },
    /// Filtering on a tree that is no chain.
    #[error("filtering needs a chain: latents joined one after the other, in order")]
    NotAChain,
    /// A support set without samples.
    #[error("the support set has no samples")]
    EmptySupportSet,
    /// A support set and data that do not belong together.
    #[error("the support set has {support} samples but its data has {data}")]
    OtherSupportSet {
        /// Samples of the support set.
        support: usize,
        /// Samples of the data.
        data: usize,
    },
    /// An observation that cannot be imputed.
    #[error("observation `{name}` hangs on no latent")]
    NoLatent {
        /// The observation.
        name: String,
    },
    /// A step with too many or too few observations.
    #[error("a step has {expected} observations, not {found}")]
    StepObservations {
        /// How many the model has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// An observation of another size, or with numbers that are not finite.
    #[error(
        "an observation has {found} numbers where the model has {expected}, or not all are finite; a missing one is None"
    )]
    StepNumbers {
        /// How many the model has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
}
