//! A latent and the messages that make its belief.

use crate::family::Belief;
use std::ops::Range;

/// A latent with its family, its prior and the messages whose sum makes its belief.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its family.
    pub belief: Belief,
    /// Natural parameters of its prior.
    pub prior: Vec<f64>,
    /// The messages it receives.
    pub messages: Range<usize>,
}
