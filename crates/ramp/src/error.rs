//! Everything that can go wrong, as a sentence that names the thing and the fix.

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

    /// A file could not be read or written.
    #[error("cannot {action} `{path}`: {source}")]
    File {
        /// `read`, `write`, `create` …
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Variables and factors that do not make a tree.
    #[error(transparent)]
    Graph(#[from] crate::graph::GraphError),

    /// Settings of training, a checkpoint, or someone who stopped it.
    #[error(transparent)]
    Train(#[from] crate::train::TrainError),
}

impl Error {
    /// Whether the caller's input caused this (exit code 2), not the software or the machine (exit code 1).
    pub fn is_user_mistake(&self) -> bool {
        matches!(
            self,
            Error::Invalid(_) | Error::Graph(_) | Error::Train(_) | Error::NotFinite { .. }
        )
    }
}

/// The result of a fallible call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;
