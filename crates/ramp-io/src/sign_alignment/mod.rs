//! Sign alignment: a latent's sign means nothing to a model and much to its readers. Before training, networks of observations
//! that run against the others of their latent are mirrored; after it, latents that run against most of what they explain.

mod latents;
mod observations;

pub(crate) use observations::{looked_at, reversed_observations};
