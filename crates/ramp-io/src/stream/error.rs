//! What can be wrong with a question to a run, and with the place where its answers go.

use std::path::PathBuf;

/// A question that a run cannot answer, or answers that cannot be written, in a sentence that names the thing and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// Arrays have no columns to keep.
    #[error("arrays have no column `{name}` to keep")]
    KeepFromArrays {
        /// What was to be kept.
        name: String,
    },
    /// A run that was fitted to arrays cannot fill tables.
    #[error("only tables can be imputed; this run was fitted to arrays")]
    FittedToArrays,
    /// Arrays cannot be filled.
    #[error("only tables can be imputed, not arrays")]
    ImputeArrays,
    /// A forecast of samples that have no time.
    #[error("only sequences have steps to come; the tree of this run is no chain")]
    NoSequences,
    /// Too far, or nowhere.
    #[error("{steps} steps cannot be forecast; ask for 1 to {most}")]
    Steps {
        /// The steps asked for.
        steps: u32,
        /// The most that can be.
        most: u32,
    },
    /// An interval that holds nothing, or everything.
    #[error("an interval holds a part between 0 and 1, such as 0.8, not {value}")]
    Interval {
        /// What was asked for.
        value: f64,
    },
    /// Copies that do not fit into memory.
    #[error(
        "{draws} draws of {rows} rows that must be held together do not fit into memory; take fewer draws, or a part of the sequences at a time"
    )]
    TooManyDraws {
        /// Copies of each row.
        draws: usize,
        /// Rows.
        rows: usize,
    },
    /// The output is the data.
    #[error("`{}` is both the data and the output; give the output another name", path.display())]
    OverData {
        /// The file.
        path: PathBuf,
    },
    /// The output is a file of the run.
    #[error("`{}` belongs to the run; give the output another name", path.display())]
    OverRun {
        /// The file.
        path: PathBuf,
    },
    /// The one who watched the progress wished to stop; nothing was written.
    #[error("stopped; nothing was written to `{}`", path.display())]
    Interrupted {
        /// The file that would have been written.
        path: PathBuf,
    },
}
