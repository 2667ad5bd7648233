//! Everything that can go wrong, as a sentence that names the thing and the fix.

/// What went wrong, in a sentence for the person who can mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Training or inference ran into a number that is not finite.
    #[error(
        "{what} is not finite; lower the learning rate, clip the gradient, or look for extreme values in the data"
    )]
    NotFinite {
        /// What went astray, with the node's name.
        what: String,
    },

    /// Observations that cannot be used as they are.
    #[error(transparent)]
    Data(crate::data::DataError),
    /// Beliefs, scores or imputations that cannot be had.
    #[error(transparent)]
    Infer(#[from] crate::infer::InferError),
    /// Variables and factors that do not make a tree.
    #[error(transparent)]
    Graph(#[from] crate::graph::GraphError),

    /// A family, or natural parameters that make no belief of it.
    #[error(transparent)]
    Family(#[from] crate::family::FamilyError),

    /// A network that cannot be built.
    #[error(transparent)]
    Network(#[from] crate::network::NetworkError),

    /// A model that cannot be built, used, changed or loaded.
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),

    /// Settings of training, a checkpoint of another run, or someone who stopped it.
    #[error(transparent)]
    Train(#[from] crate::train::TrainError),

    /// Another rank of the same training is gone.
    #[error(transparent)]
    Collective(#[from] crate::collective::CollectiveError),

    /// A file that could not be read or written.
    #[error(transparent)]
    Storage(#[from] crate::storage::StorageError),
}

impl From<crate::data::DataError> for Error {
    fn from(error: crate::data::DataError) -> Self {
        match error {
            // No fault of the data.
            crate::data::DataError::Collective(error) => Error::Collective(error),
            error => Error::Data(error),
        }
    }
}

/// The result of a fallible call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;
