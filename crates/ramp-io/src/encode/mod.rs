//! From cells and arrays to observations: scales, levels, and the encoder that holds them.

mod arrays;
mod climate;
mod columns;
mod encoder;
mod error;
mod levels;
mod ordinal;
mod scale;
mod season;

pub use encoder::{Encoded, Encoder, Encoding};
pub use error::EncodeError;
pub use levels::Levels;
pub(crate) use ordinal::numbers_of;
pub use scale::{Scale, ScaleKind};
pub(crate) use season::found_in;
pub use season::{Climate, Season};
