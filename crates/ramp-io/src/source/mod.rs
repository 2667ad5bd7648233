//! Samples as they stand in a file: rows of a table, sequences in a long table, or the first axis of arrays; some at a time.

mod arrays;
mod error;
mod long_table;
mod reader;
mod samples;
mod time_order;
mod windows;

pub use error::SourceError;
pub use reader::SampleReader;
pub use samples::{Content, Samples, Sequence};
pub(crate) use time_order::spelled;
pub use windows::Windows;
