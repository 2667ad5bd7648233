//! Files of RAMP: tables and arrays, model files, encoders and run folders; what the command line does, for programs.
//!
//! - [`table`]: CSV, TSV, Parquet, Arrow IPC and NumPy files as streams of rows, read and written in constant memory.
//! - [`mod@array`]: NumPy arrays of any number of axes, such as sequences and images.
//! - [`project`]: from a model file and a data file to a trained model in a folder, and back.

pub mod array;
pub mod project;
pub mod table;

mod error;
pub use error::{Error, Result};
