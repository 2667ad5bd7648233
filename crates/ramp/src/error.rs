//! Everything that can go wrong, as a sentence that names the thing and the fix.

use crate::storage::StorageError;

/// What went wrong, in a sentence for the person who can mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting or a piece of input that cannot be used as it is.
    #[error("{0}")]
    Invalid(String),

    /// Training or inference ran into a number that is not finite.
    #[error(
        "{what} is not finite; lower the learning rate, clip the gradient, or look for extreme values in the data"
    )]
    NotFinite {
        /// What went astray, with the node's name.
        what: String,
    },

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

    /// A file that could not be read or written.
    #[error(transparent)]
    Storage(#[from] crate::storage::StorageError),
}

impl Error {
    /// Whether the caller's input caused this (exit code 2), not the software or the machine (exit code 1).
    pub fn is_user_mistake(&self) -> bool {
        matches!(
            self,
            Error::Invalid(_)
                | Error::Graph(_)
                | Error::Family(_)
                | Error::Network(_)
                | Error::Model(_)
                | Error::NotFinite { .. }
                | Error::Storage(StorageError::Folder { .. } | StorageError::Damaged { .. })
        )
    }
}

/// The result of a fallible call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;
