//! RAMP uncovers the latent variables behind data whose dependencies form a tree.

mod error;
pub mod family;
pub mod graph;
pub mod kernel;
pub mod network;
pub mod objective;

pub use error::{Error, Result};
