//! After training: latents are high where most of the numbers that they explain are high.

use crate::Result;
use crate::encode::Encoding;
use crate::run::Project;
use ramp::data::Step;
use ramp::graph::TimeAxis;

/// Samples that decide.
const LOOKED_AT: usize = 2000;

impl Project {
    /// Mirrors one-dimensional Gaussian latents where needed so that their posterior means rise with most numbers observed below and around
    /// them. A latent's sign means nothing to the model; it does to readers.
    pub fn align_signs(&mut self) -> Result<()> {
        let few: Vec<u32> = self.training.iter().copied().take(LOOKED_AT).collect();
        let data = self.observed(&few)?;
        let posterior = self.model.posterior(&data)?;
        let numbers: Vec<&str> = self
            .encoder
            .observations
            .iter()
            .filter(|o| o.encoding.is_ordered())
            .map(|o| &o.name[..])
            .collect();
        if self.encoder.chain {
            let means = posterior.latent(TimeAxis::LATENT)?.mean_array();
            let (steps, width) = (means.shape()[1], means.shape()[2]);
            let mut total = 0.0;
            for step in 0..steps {
                let means: Vec<f64> = (0..posterior.rows())
                    .map(|row| means.row(row)[step * width])
                    .collect();
                for name in &numbers {
                    total += agreement(&means, data.observation(name)?.step(step));
                }
            }
            if total < 0.0 {
                // Networks that serve other messages too, or latents whose sign has a meaning, keep it.
                let _kept = self.model.flip_chain_sign();
            }
            return Ok(());
        }
        for (k, latent) in posterior.latents().iter().enumerate() {
            let means = latent.means(0);
            let mut total = 0.0;
            for name in &numbers {
                total += agreement(&means, data.observation(name)?.step(0));
            }
            if total < 0.0 {
                let _kept = self.model.flip_sign(k);
            }
        }
        Ok(())
    }
}

/// The covariance of posterior means with an observed number, over the samples that have it; zero where too few do.
fn agreement(means: &[f64], observation: Step<'_>) -> f64 {
    let (mut product, mut mean_sum, mut value_sum, mut count) = (0.0, 0.0, 0.0, 0.0);
    for (row, &mean) in means.iter().enumerate() {
        if observation.is_present(row) {
            let value = Encoding::place(&observation.numbers(row));
            product += mean * value;
            mean_sum += mean;
            value_sum += value;
            count += 1.0;
        }
    }
    match count {
        0.0 => 0.0,
        count => (product - mean_sum * value_sum / count) / count,
    }
}
