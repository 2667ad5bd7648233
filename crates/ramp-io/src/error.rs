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
    /// What is wrong with a table.
    #[error(transparent)]
    Table(#[from] crate::table::TableError),
    /// What is wrong with arrays.
    #[error(transparent)]
    Array(#[from] crate::array::ArrayError),
    /// Something wrong with the contents of a file.
    #[error("`{}`: {source}", path.display())]
    InFile {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        source: Box<Error>,
    },
    /// The engine said no.
    #[error(transparent)]
    Engine(#[from] ramp::Error),
}

impl Error {
    /// The same, with the name of the file that it is about where the sentence has none.
    pub(crate) fn in_file(self, path: &std::path::Path) -> Self {
        match self {
            Error::Table(ref error) if error.names_file() => self,
            Error::Invalid(_) | Error::Table(_) | Error::Engine(ramp::Error::Invalid(_)) => {
                Error::InFile {
                    path: path.to_path_buf(),
                    source: Box::new(self),
                }
            }
            other => other,
        }
    }
}

impl From<ramp::graph::GraphError> for Error {
    fn from(error: ramp::graph::GraphError) -> Self {
        Error::Engine(error.into())
    }
}

/// The result of a fallible call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;
