//! The experiments: each trains, measures, writes `results.json` and its figures into one folder.

pub mod calibration;
pub mod dynamics;
pub mod grow;
pub mod linear_tree;
pub mod misspecified_tree;
pub mod nonlinear_sweep;
pub mod nonlinear_tree;
pub mod pendulum;
pub mod pendulum_sweep;
pub mod pose;
mod state_probe;
mod tables;
