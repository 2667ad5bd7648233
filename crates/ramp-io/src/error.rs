//! Everything that can go wrong with files, as a sentence that names the thing and the fix.

use ramp::train::TrainError;
use std::path::{Path, PathBuf};

/// What went wrong, in a sentence for the person who can mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {action} `{path}`: {source}")]
    File {
        /// `read`, `write`, `create` …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something is wrong in a file.
    #[error("`{}`: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What.
        source: Box<Error>,
    },
    /// Something is wrong with a file of samples.
    #[error(transparent)]
    Source(#[from] crate::source::SourceError),
    /// Columns or arrays cannot become observations.
    #[error(transparent)]
    Encode(#[from] crate::encode::EncodeError),
    /// A model and its data do not go together, or a run folder is not whole.
    #[error(transparent)]
    Run(#[from] crate::run::RunError),
    /// A run cannot answer, or its answers cannot be written.
    #[error(transparent)]
    Stream(#[from] crate::stream::StreamError),
    /// Something is wrong with a model file.
    #[error(transparent)]
    ModelFile(#[from] crate::model_file::ModelFileError),
    /// A tree cannot be grown.
    #[error(transparent)]
    Grow(#[from] crate::grow::GrowError),
    /// Something is wrong with a table.
    #[error(transparent)]
    Table(#[from] crate::table::TableError),
    /// Something is wrong with arrays.
    #[error(transparent)]
    Array(#[from] crate::array::ArrayError),
    /// The engine said no.
    #[error(transparent)]
    Engine(#[from] ramp::Error),
}

impl Error {
    /// The error with the file that it is about, where its sentence does not name it yet.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        if self.names_file() {
            return self;
        }
        Error::InFile {
            path: path.into(),
            source: Box::new(self),
        }
    }

    fn names_file(&self) -> bool {
        match self {
            Error::File { .. } | Error::InFile { .. } => true,
            Error::Source(error) => error.names_file(),
            Error::Table(error) => error.names_file(),
            Error::Array(error) => error.names_file(),
            // What happens between ranks is not about the file.
            Error::Engine(error) => matches!(
                error,
                ramp::Error::Storage(_)
                    | ramp::Error::Collective(_)
                    | ramp::Error::Train(TrainError::RankFailed | TrainError::RanksDiffer { .. })
            ),
            Error::ModelFile(_)
            | Error::Encode(_)
            | Error::Run(_)
            | Error::Stream(_)
            | Error::Grow(_) => false,
        }
    }
}

/// A file in a sentence, or what stands for it.
pub(crate) fn file_or(path: Option<&Path>, other: &str) -> String {
    path.map_or(other.into(), |path| format!("`{}`", path.display()))
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
    ramp::data::DataError,
    ramp::infer::InferError,
    ramp::family::FamilyError,
    ramp::graph::GraphError,
    ramp::model::ModelError,
    ramp::network::NetworkError,
    ramp::storage::StorageError,
    ramp::train::TrainError
);

/// The result of a fallible call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;
