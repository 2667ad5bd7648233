//! RAMP uncovers the latent variables behind data whose dependencies form a tree.

pub mod data;
mod error;
pub mod family;
pub mod graph;
pub mod infer;
pub mod kernel;
pub mod model;
pub mod network;
pub mod objective;
pub mod storage;
pub mod train;

pub use error::{Error, Result};
