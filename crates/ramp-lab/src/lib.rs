//! The experiments of the RAMP paper and beyond: generators, baselines, metrics and figures.

pub mod baselines;
pub mod error;
pub mod experiments;
pub mod figure;
pub mod gaussian;
pub mod kernel_ridge;
pub mod least_squares;
pub mod metrics;
pub mod nonlinear_data;
pub mod pendulum;
pub mod pose;
pub mod scaling;
pub mod timing;
pub mod tree_data;
