//! The one training loop, and what plugs into it.
//!
//! A [`Trainer`] knows a [`Problem`] by its parameters, their gradient and a value, and nothing else: an [`Optimizer`] and a
//! [`Schedule`] make steps of gradients, checkpoints and records go to files, [`Observer`]s watch and may stop it. A model's
//! free energy on a data set is one problem ([`Trainer::fit`] makes it); any other model trains in the same loop:
//!
//! ```
//! use ramp::train::{Identity, Problem, TrainSpec, Trainer};
//!
//! /// Finds the top of −(x − 3)².
//! struct Hill([f32; 1]);
//!
//! impl Problem for Hill {
//!     type Model = Self;
//!     type Error = ramp::Error;
//!     fn model(&self) -> &Self {
//!         self
//!     }
//!     fn parameters(&self) -> &[f32] {
//!         &self.0
//!     }
//!     fn parameters_mut(&mut self) -> &mut [f32] {
//!         &mut self.0
//!     }
//!     fn step(&mut self, _iteration: usize, gradient: &mut [f32]) -> ramp::Result<f64> {
//!         gradient[0] = -2.0 * (self.0[0] - 3.0);
//!         Ok(-f64::from(self.0[0] - 3.0).powi(2))
//!     }
//!     fn identity(&self) -> ramp::Result<Identity> {
//!         Ok(Identity::default())
//!     }
//! }
//!
//! let mut hill = Hill([0.0]);
//! let settings = TrainSpec { iterations: 400, learning_rate: 0.05, ..TrainSpec::default() };
//! Trainer::new(settings)?.train(&mut hill)?;
//! assert!((hill.0[0] - 3.0).abs() < 0.01);
//! # Ok::<(), ramp::Error>(())
//! ```

mod batches;
mod centre;
mod checkpoint;
mod error;
mod free_energy;
#[cfg(test)]
mod kept_tests;
mod observer;
mod optimizer;
mod pretraining;
mod problem;
#[cfg(test)]
mod rank_tests;
mod ranks;
mod records;
mod schedule;
mod spec;
mod start;
mod stop;
#[cfg(test)]
mod tests;
mod trainer;

pub use batches::Split;
pub use checkpoint::checkpoint_file;
pub use error::{CheckpointFault, TrainError};
pub use observer::{Control, Event, Observer};
pub use optimizer::Optimizer;
pub use problem::{Group, Identity, Problem};
pub use ranks::{same_on_all, same_version};
pub use records::{Record, Records, read_records, records_file};
pub use schedule::{Decay, Schedule};
pub use spec::TrainSpec;
pub use start::{TriedStart, start_chain, trial_steps};
pub use stop::Stop;
pub use trainer::{Fit, Trainer};

pub use crate::collective::Collective;
