//! Everything that can go wrong with files, as a sentence that names the thing and the fix.

/// What went wrong, in a sentence for the person who can mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting or a piece of input that cannot be used as it is.
    #[error("{0}")]
    Invalid(String),
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
    /// The engine said no.
    #[error(transparent)]
    Engine(#[from] ramp::Error),
}

/// Errors of the engine's rooms come in by its front door.
macro_rules! engine_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::Engine(error.into())
            }
        }
    )*};
}

engine_errors!(
    ramp::family::FamilyError,
    ramp::graph::GraphError,
    ramp::model::ModelError,
    ramp::network::NetworkError,
    ramp::storage::StorageError
);

/// The result of a fallible call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;
