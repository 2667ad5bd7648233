//! The experiments of the RAMP paper and beyond: generators, baselines, metrics and figures.
//!
//! Every experiment is a folder of [`experiments`] over the one [`harness`]; what it is compared with is in [`baselines`], what it
//! draws with in [`figure`].

pub mod baselines;
pub mod error;
pub mod experiments;
pub mod figure;
pub mod gaussian;
pub mod harness;
pub mod kernel_ridge;
pub mod least_squares;
pub mod metrics;
pub mod scaling;
pub mod timing;
