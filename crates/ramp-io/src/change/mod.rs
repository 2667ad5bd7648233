//! What a change of a tree would gain: only the latents around it are fitted again, everything behind them stays as it is.
//!
//! Seen from a root near the change, what lies further out adds the same to the total of both trees. So the gain is the difference of
//! two small models: the latents of the region with their branches, and of each branch that goes on, what its latent believes from
//! beyond.

mod region;
mod splits;

pub use region::{Effort, Surroundings};
pub use splits::split_candidates;
