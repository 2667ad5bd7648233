//! Data sets in memory: for every observed variable a block of numbers, which of them are missing, and how long sequences are.

mod dataset;
mod dealt;
#[cfg(test)]
mod dealt_tests;
mod error;
mod observation;

pub use dataset::Dataset;
pub use dealt::{Dealt, Gather};
pub use error::DataError;
pub use observation::{Observation, Step};
