//! How near posteriors of a tree come to the truth: correlations of means with latents, average variances.

use super::CurvePoint;
use super::data::TreeSample;
use crate::error::LabError;
use crate::metrics::{mean, pearson};
use ramp::data::Dataset;
use ramp::model::Model;

/// The absolute correlation of every latent's means with its true values, of as many samples as there are means.
pub(super) fn correlations(means: &[Vec<f64>], sample: &TreeSample) -> Vec<f64> {
    let pairs = means.iter().zip(&sample.latents);
    pairs
        .map(|(means, truth)| pearson(means, &truth[..means.len()]).abs())
        .collect()
}

/// Correlations and average variances of a model's posteriors on test samples.
pub(super) fn probe(
    model: &Model,
    test: &TreeSample,
    data: &Dataset,
    iteration: usize,
) -> Result<CurvePoint, LabError> {
    let posterior = model.posterior(data)?;
    let mut point = CurvePoint {
        iteration,
        corr: vec![],
        variance: vec![],
    };
    for (latent, truth) in posterior.latents().iter().zip(&test.latents) {
        let (means, variances): (Vec<f64>, Vec<f64>) = (0..posterior.rows())
            .map(|row| latent.describe(row))
            .map(|belief| (belief.mean[0], belief.sd[0] * belief.sd[0]))
            .unzip();
        point.corr.push(pearson(&means, truth).abs());
        point.variance.push(mean(&variances));
    }
    Ok(point)
}
