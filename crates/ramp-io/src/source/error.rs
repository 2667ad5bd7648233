//! What can be wrong with a file of samples: sequences that cannot be put together, arrays that do not match.

use crate::error::file_or;
use crate::time::Interval;
use std::path::PathBuf;

/// Samples that cannot be read, in a sentence that names the thing and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file has no samples.
    #[error("{} has no rows", file_or(path.as_deref(), "the data"))]
    Empty {
        /// The file, if it is one.
        path: Option<PathBuf>,
    },
    /// Arrays where columns are needed.
    #[error(
        "this needs a table with a column for every observation; these are arrays of several axes"
    )]
    NotATable,
    /// A row that belongs to no sequence.
    #[error(
        "column `{column}` does not say which sequence data row {row} belongs to; fill it or take the row out"
    )]
    NoSequence {
        /// The column of sequences.
        column: String,
        /// The row, from 1.
        row: usize,
    },
    /// A row without a time.
    #[error(
        "column `{column}` does not say the time of data row {row}; give it or take the row out"
    )]
    NoTime {
        /// The column of times.
        column: String,
        /// The row, from 1.
        row: usize,
    },
    /// A sequence in several places of a file that is too large to be read whole.
    #[error("the rows of sequence `{sequence}` do not stand together; sort the file by `{column}`")]
    NotTogether {
        /// The sequence.
        sequence: String,
        /// The column of sequences.
        column: String,
    },
    /// Two rows at the same time.
    #[error(
        "{} has two rows with the same `{time}` (data rows {first} and {second}); keep one of them{}",
        called(sequence),
        if sequence.is_empty() {
            ", or name the column that tells sequences apart: `sequence` in chain"
        } else {
            ""
        }
    )]
    SameTime {
        /// The sequence.
        sequence: String,
        /// The column of times.
        time: String,
        /// The first row, from 1.
        first: usize,
        /// The second row.
        second: usize,
    },
    /// A sequence of very many steps.
    #[error(
        "{} is {steps} steps of {step} long; make the chain's `step` larger",
        called(sequence)
    )]
    TooLong {
        /// The sequence.
        sequence: String,
        /// Its steps.
        steps: f64,
        /// The time between them.
        step: Interval,
    },
    /// Two rows of a sequence that lie so far apart that one of their times must be wrong.
    #[error(
        "{} has {steps:.0} steps of {step} between data rows {} and {} (`{}` and `{}`); is one of these times wrong? If not, make the chain's `step` larger",
        called(sequence), rows[0], rows[1], times[0], times[1]
    )]
    WideGap {
        /// The sequence.
        sequence: String,
        /// The steps between the two rows.
        steps: f64,
        /// The time between steps.
        step: Interval,
        /// The two rows, from 1.
        rows: [usize; 2],
        /// Their times.
        times: Box<[String; 2]>,
    },
    /// A time that is no date.
    #[error(
        "column `{column}` holds `{text}` in data row {row}, which is no date from 1678 to 2261; write dates as 2024-02-29 or 2024-02-29T13:05, or a number for the chain's `step`"
    )]
    NotADate {
        /// The column of times.
        column: String,
        /// What it holds.
        text: String,
        /// The row, from 1.
        row: usize,
    },
    /// A number for the step between dates.
    #[error(
        "column `{column}` holds dates; write the chain's `step` as \"1d\", \"1h\" or \"15min\""
    )]
    DatesWithNumber {
        /// The column of times.
        column: String,
    },
    /// Two rows in one step.
    #[error(
        "{} has two rows within one step of {step} at `{time}` {at}; make `step` smaller",
        called(sequence)
    )]
    SameStep {
        /// The sequence.
        sequence: String,
        /// The time between steps.
        step: Interval,
        /// The column of times.
        time: String,
        /// The time of the second row.
        at: String,
    },
    /// There is no such array.
    #[error(
        "there is no array `{name}` in {}: {}",
        file_or(path.as_deref(), "the data"),
        ramp::names::hint(name, known.iter().map(|k| &k[..]))
    )]
    NoArray {
        /// The array.
        name: String,
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// The arrays that it holds.
        known: Vec<String>,
    },
    /// An array with too few axes.
    #[error(
        "array `{array}` in {} has the shape {shape:?}; {} are needed",
        file_or(path.as_deref(), "the data"),
        if *chain { "samples × time × …" } else { "samples × …" }
    )]
    Axes {
        /// The array.
        array: String,
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// Its shape.
        shape: Vec<usize>,
        /// Whether its second axis must be time.
        chain: bool,
    },
    /// Arrays of different numbers of samples or steps.
    #[error(
        "arrays `{}` and `{}` in {} have the shapes {:?} and {:?}, which do not go together",
        arrays[0], arrays[1], file_or(path.as_deref(), "the data"), shapes[0], shapes[1]
    )]
    ShapesDiffer {
        /// The two arrays.
        arrays: Box<[String; 2]>,
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// Their shapes.
        shapes: Box<[Vec<usize>; 2]>,
    },
}

impl SourceError {
    /// Whether the sentence names the file.
    pub(crate) fn names_file(&self) -> bool {
        matches!(
            self,
            SourceError::Empty { .. }
                | SourceError::NoArray { .. }
                | SourceError::Axes { .. }
                | SourceError::ShapesDiffer { .. }
        )
    }
}

/// A sequence in a sentence; without a name, all rows are one series.
fn called(sequence: &str) -> String {
    match sequence {
        "" => "the series".into(),
        name => format!("sequence `{name}`"),
    }
}
