//! Data sets in memory: for every observed variable a block of numbers, and which of them are missing.

mod dataset;

pub use dataset::{Dataset, Observation};
