//! From cells and arrays to observations: scales, levels, and the encoder that holds them.

mod arrays;
mod columns;
mod encoder;
mod error;
mod levels;
mod scale;

pub use encoder::{Encoded, Encoder, Encoding};
pub use error::EncodeError;
pub use levels::Levels;
pub use scale::{Scale, ScaleKind};
