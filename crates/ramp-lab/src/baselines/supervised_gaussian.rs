//! The paper's "Gaussian approximation": conditioning in the joint Gaussian that has the data's means and covariances.

use faer::Mat;

use crate::error::LabError;
use crate::experiments::linear_tree::data::TreeSample;
use crate::gaussian::GaussianPosterior;
use crate::metrics::mean;

/// A posterior over latents from second-order statistics of latents and observations together.
///
/// It is a supervised baseline: nobody but a simulator knows the latents. Its means are the best linear estimates of them.
///
/// ```
/// use ramp_lab::{baselines::SupervisedGaussian, experiments::nonlinear_tree::data::NonlinearTree};
///
/// let mut train = NonlinearTree::default().sample(3000, 1)?;
/// let test = train.split_off(2000);
/// let gaussian = SupervisedGaussian::fit(&train)?;
/// let means = gaussian.means(&test.observations)?;
/// assert_eq!((means.len(), means[0].len()), (7, 1000));
/// # Ok::<(), ramp_lab::error::LabError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SupervisedGaussian {
    posterior: GaussianPosterior,
    centres: Vec<f64>,
}

impl SupervisedGaussian {
    /// Takes means and covariances from samples.
    pub fn fit(sample: &TreeSample) -> Result<Self, LabError> {
        let rows: Vec<&Vec<f32>> = sample.latents.iter().chain(&sample.observations).collect();
        let n = sample.rows();
        if n < rows.len() {
            return Err(LabError::Invalid(format!(
                "{n} samples are too few for the covariance of {} variables",
                rows.len()
            )));
        }
        let centred: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| {
                let centre = mean(row);
                row.iter().map(|&v| f64::from(v) - centre).collect()
            })
            .collect();
        let covariance = Mat::from_fn(rows.len(), rows.len(), |i, j| {
            let products = centred[i].iter().zip(&centred[j]).map(|(a, b)| a * b);
            products.sum::<f64>() / n as f64
        });
        let latents: Vec<usize> = (0..sample.latents.len()).collect();
        let observed: Vec<usize> = (latents.len()..rows.len()).collect();
        Ok(Self {
            posterior: GaussianPosterior::condition(&covariance, &latents, &observed, &[])?,
            centres: sample.observations.iter().map(|row| mean(row)).collect(),
        })
    }

    /// The posterior means of the latents, scaled to unit variance: a row per latent from a row per observation.
    pub fn means(&self, observations: &[Vec<f32>]) -> Result<Vec<Vec<f64>>, LabError> {
        let centred: Vec<Vec<f32>> = observations
            .iter()
            .zip(&self.centres)
            .map(|(row, &centre)| {
                row.iter()
                    .map(|&x| (f64::from(x) - centre) as f32)
                    .collect()
            })
            .collect();
        self.posterior.means(&centred)
    }

    /// The marginal posterior variance of every latent.
    pub fn variances(&self) -> &[f64] {
        self.posterior.variances()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::linear_tree::data::LinearTree;
    use crate::experiments::nonlinear_tree::data::NonlinearTree;
    use crate::metrics::pearson;

    #[test]
    fn on_a_linear_tree_it_is_exact_inference_up_to_sampling() {
        let tree = LinearTree::default();
        let gaussian = SupervisedGaussian::fit(&tree.sample(50_000, 2, 0).unwrap()).unwrap();
        let exact = tree.gaussian().unwrap().posterior(&[]).unwrap();
        let test = tree.sample(1000, 2, 1).unwrap();
        let means = gaussian.means(&test.observations).unwrap();
        let exact_means = exact.means(&test.observations).unwrap();
        for k in 0..7 {
            assert!((gaussian.variances()[k] / exact.variances()[k] - 1.0).abs() < 0.02);
            assert!(pearson(&means[k], &exact_means[k]) > 0.999);
        }
    }

    #[test]
    fn no_other_linear_estimate_is_better_on_its_own_data() {
        // The normal equations: residuals are uncorrelated with every observation, whatever the distribution.
        let sample = NonlinearTree::default().sample(4000, 3).unwrap();
        let gaussian = SupervisedGaussian::fit(&sample).unwrap();
        let means = gaussian.means(&sample.observations).unwrap();
        for (estimates, truth) in means.iter().zip(&sample.latents) {
            let centre = mean(truth);
            let sd = (truth
                .iter()
                .map(|&z| (f64::from(z) - centre).powi(2))
                .sum::<f64>()
                / truth.len() as f64)
                .sqrt();
            let residuals: Vec<f64> = truth
                .iter()
                .zip(estimates)
                .map(|(&z, m)| (f64::from(z) - centre) / sd - m)
                .collect();
            for x in &sample.observations {
                assert!(pearson(&residuals, x).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn too_few_samples_are_refused() {
        let sample = LinearTree::default().sample(10, 0, 0).unwrap();
        assert!(SupervisedGaussian::fit(&sample).is_err());
    }
}
