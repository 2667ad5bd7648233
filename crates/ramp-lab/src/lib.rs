//! The experiments of the RAMP paper and beyond: generators, baselines, metrics and figures.

pub mod error;
pub mod metrics;
