//! Numerics without opinions: lanes and their mathematics, dense layers, convolution, activations, blocks of inputs.
//!
//! Nothing here knows anything else of this crate.

pub(crate) mod activation;
pub(crate) mod block;
pub(crate) mod conv;
pub(crate) mod dense;
pub(crate) mod four;
mod gram;
pub(crate) mod lanes;
pub(crate) mod normal;
pub mod real;
pub(crate) mod scratch;
pub(crate) mod special;
mod tile;

pub use gram::summed_products;
pub use lanes::{Isa, isa};
pub(crate) use tile::Finish;
