//! How near posterior means come to latents: by rank, and against clipped reciprocals.

use super::data::reciprocal;
use crate::error::LabError;
use crate::experiments::linear_tree::data::TreeSample;
use crate::metrics::{pearson, spearman};
use ramp::data::Dataset;
use ramp::model::Model;

/// Posterior means, a row per latent.
pub(super) fn means(model: &Model, data: &Dataset) -> Result<Vec<Vec<f64>>, LabError> {
    let posterior = model.posterior(data)?;
    Ok(posterior.latents().iter().map(|l| l.means(0)).collect())
}

/// Of as many samples as there are means: BBVI may learn from fewer.
pub(super) fn spearmans(means: &[Vec<f64>], sample: &TreeSample) -> Vec<f64> {
    let pairs = means.iter().zip(&sample.latents);
    pairs
        .map(|(means, truth)| spearman(means, &truth[..means.len()]).abs())
        .collect()
}

pub(super) fn reciprocal_pearsons(means: &[Vec<f64>], sample: &TreeSample) -> Vec<f64> {
    let pairs = means.iter().zip(&sample.latents);
    pairs
        .map(|(means, truth)| pearson(means, &reciprocals(&truth[..means.len()])).abs())
        .collect()
}

pub(super) fn reciprocals(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&z| reciprocal(f64::from(z))).collect()
}
