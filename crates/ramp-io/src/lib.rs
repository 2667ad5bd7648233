//! Files of RAMP: tables and arrays, model files, encoders and run folders; what the command line does, for programs.
//!
//! The way of a fit, and the folder that each station has here:
//!
//! - [`table`]: CSV, TSV, Parquet, Arrow IPC and NumPy files as streams of Arrow `RecordBatch`es, read and written in
//!   constant memory.
//! - [`mod@array`]: NumPy arrays of any number of axes, such as sequences and images.
//! - [`model_file`]: what the user wrote, checked: [`ModelFile`].
//! - [`source`]: samples from tables, long tables of sequences, and arrays, some at a time.
//! - [`time`]: moments and intervals.
//! - [`encode`]: how columns become observations; learned once, used ever after: [`Encoder`].
//! - [`run`]: a model file that has met its data, [`Project`], and a trained model in its folder, [`Run`].
//! - [`findings`]: what was learned about each latent: [`Findings`].
//! - [`total`]: how much a whole tree explains, on one scale for all trees; [`compare`]: which of some runs explains more;
//!   [`mod@diagnose`] and [`mod@change`]: which change of a tree would explain more; [`mod@grow`]: a tree from data.
//! - [`items`]: what each item does to its latent.
//! - [`readout`]: how missing numbers are read off the tree and the rest of a row.
//! - [`report`]: the page that shows a fit.
//! - [`stream`]: what a run says of new data, some samples at a time: posteriors, scores, filled gaps.

mod answering_style;
pub mod array;
mod calibration;
pub mod change;
pub mod compare;
pub mod diagnose;
pub mod encode;
pub mod findings;
pub mod grow;
pub mod items;
pub mod model_file;
mod origin;
mod ranks;
pub mod readout;
pub mod report;
pub mod run;
mod sign_alignment;
pub mod source;
pub mod stream;
pub mod table;
#[cfg(test)]
mod tests;
pub mod time;
pub mod total;

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
pub use encode::Encoder;
pub use error::{Error, Result};
pub use findings::Findings;
pub use model_file::ModelFile;
pub use origin::Origin;
pub use run::{Project, Run};
