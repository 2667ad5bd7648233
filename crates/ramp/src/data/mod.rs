//! Data in and out: tables and arrays in files, and the data sets that models learn from.
//!
//! - [`Dataset`]: for every observed variable a block of numbers, and which of them are missing.
//! - [`mod@array`]: NumPy arrays of any number of axes, such as sequences and images.
//! - [`table`]: CSV, TSV, Parquet, Arrow IPC and NumPy files as streams of rows, read and written in constant memory.

pub mod array;
mod dataset;
pub mod table;

pub use dataset::{Dataset, Observation};
