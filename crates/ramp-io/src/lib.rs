//! Files of RAMP: tables and arrays, model files, encoders and run folders; what the command line does, for programs.
//!
//! - [`table`]: CSV, TSV, Parquet, Arrow IPC and NumPy files as streams of Arrow `RecordBatch`es, read and written in constant
//!   memory.
//! - [`mod@array`]: NumPy arrays of any number of axes, such as sequences and images.
//! - [`project`]: from a model file and a data file to a trained model in a folder, and back.

pub mod array;
pub mod project;
pub mod table;

/// The Arrow types that appear in this library's signatures, of the one version that it is built with.
pub mod arrow {
    pub use arrow_array::cast::AsArray;
    pub use arrow_array::{
        Array, ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array,
        LargeStringArray, RecordBatch, StringArray, StringViewArray, types,
    };
    pub use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
}

mod error;
pub use error::{Error, Result};
