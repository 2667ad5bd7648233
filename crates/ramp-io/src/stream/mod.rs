//! What a trained model says of a file, as columns of a table.

mod posterior_columns;

pub use posterior_columns::{PosteriorColumn, posterior_columns, posterior_values};
