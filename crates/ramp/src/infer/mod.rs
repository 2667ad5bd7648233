//! What a trained model believes: the posterior of every latent for every sample, and its filtered version on chains; scores
//! of samples, what their missing observations may be, what comes after the end of a chain, and whether
//! beliefs are as sure as they should be.

mod calibration;
mod error;
mod filter;
mod forecast;
mod foresight;
mod impute;
mod posterior;
mod ridge;
mod support_set;
mod temperature;
#[cfg(test)]
mod tests;
mod total;

pub use crate::kernel::normal::normal_quantile;
pub use calibration::{Calibration, rank_among, rank_in_normal};
pub use error::InferError;
pub use filter::{Filter, PointBelief};
pub use forecast::{Forecaster, SeriesSupport};
pub use foresight::Foresight;
pub use impute::{Conditionals, Imputer};
pub use posterior::{LatentPosterior, Posterior, PosteriorArray};
pub use ridge::Ridge;
pub use support_set::{Scores, SupportSet};
pub use total::Total;
