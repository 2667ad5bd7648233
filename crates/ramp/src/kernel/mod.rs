//! Numerics without opinions: lanes and their mathematics, dense layers, convolution, the pairwise term.

pub(crate) mod conv;
pub(crate) mod dense;
pub(crate) mod lanes;
pub(crate) mod pairwise;
pub mod real;
pub(crate) mod special;
mod tile;

pub use lanes::{Isa, isa};
pub(crate) use tile::Finish;
