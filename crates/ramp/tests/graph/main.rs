//! What the graph module promises, seen from outside.

mod errors;
mod large;
mod neighbours;
mod properties;
mod reading;
