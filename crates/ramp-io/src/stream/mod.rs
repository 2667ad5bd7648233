//! What a trained model says of data, some samples at a time: posteriors, scores, filled gaps and steps to come as Arrow tables.
//!
//! The command and the Python package both stand on this: [`Run::infer`](crate::Run::infer), [`Run::score`](crate::Run::score), [`Run::impute`](crate::Run::impute) and
//! [`Run::forecast`](crate::Run::forecast) take samples from
//! anywhere (a [`SampleReader`](crate::source::SampleReader) over a file or over tables in memory) and give an iterator of
//! `RecordBatch`es in constant memory, which [`Answers::write`] puts into a file.
//!
//! ```no_run
//! use ramp_io::Run;
//! use ramp_io::stream::OutputOptions;
//! use std::path::Path;
//!
//! let run = Run::open(Path::new("out/questionnaire"))?;
//! let options = OutputOptions::default().keep(["person"]);
//! let reader = run.read(Path::new("answers.csv"), options.needs_all_columns())?;
//! for batch in run.infer(reader, options) {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok::<(), ramp_io::Error>(())
//! ```

mod answers;
mod candidates;
mod error;
mod fill;
mod forecast;
mod impute;
mod infer;
mod layout;
mod over_time;
mod posterior_columns;
#[cfg(test)]
mod tests;

pub use answers::{Answers, FilledCells, Progress, SampleSource, Written, check_output};
pub use error::StreamError;
pub use forecast::Horizon;
pub use impute::Draws;
pub use infer::TOTAL;
pub use layout::{OutputOptions, SPLIT};
pub use over_time::{ColumnBand, LatentBand, OverTime};
pub use posterior_columns::{PosteriorColumn, posterior_columns, posterior_values};
