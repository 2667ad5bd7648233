//! What a trained model believes: the posterior of every latent for every sample, and its filtered version on chains; scores
//! of samples, and what their missing observations may be.

mod error;
mod filter;
mod foresight;
mod impute;
mod posterior;
mod support_set;
#[cfg(test)]
mod tests;

pub use error::InferError;
pub use filter::{Filter, PointBelief};
pub use foresight::Foresight;
pub use impute::{Conditionals, Imputer};
pub use posterior::{LatentPosterior, Posterior, PosteriorArray};
pub use support_set::{Scores, SupportSet};
