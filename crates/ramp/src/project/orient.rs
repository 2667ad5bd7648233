//! Latents the right way up: high where most of the numbers that they explain are high.

use super::encoder::Encoding;
use super::prepare::Project;
use crate::Result;

/// Samples that decide.
const LOOKED_AT: usize = 2000;

impl Project {
    /// Turns one-dimensional Gaussian latents so that their posterior means rise with most numbers observed below and around
    /// them. A latent's sign means nothing to the model; it does to readers.
    pub fn orient(&mut self) -> Result<()> {
        if self.encoder.chain {
            return Ok(());
        }
        let few: Vec<u32> = self.training.iter().copied().take(LOOKED_AT).collect();
        let data = self.data.select(&few);
        let posterior = self.model.posterior(&data)?;
        let mut turned = vec![];
        for (k, latent) in posterior.latents().iter().enumerate() {
            let means = latent.means(0);
            let mut agreement = 0.0;
            for o in &self.encoder.observations {
                if !matches!(o.encoding, Encoding::Number { .. }) {
                    continue;
                }
                let observation = data.observation(&o.name)?;
                let (mut product, mut mean_sum, mut value_sum, mut count) = (0.0, 0.0, 0.0, 0.0);
                for (row, &mean) in means.iter().enumerate() {
                    if observation.is_present(row) {
                        let mut value = [0.0];
                        observation.write(row, &mut value, 1);
                        let value = f64::from(value[0]);
                        product += mean * value;
                        mean_sum += mean;
                        value_sum += value;
                        count += 1.0;
                    }
                }
                if count > 0.0 {
                    agreement += (product - mean_sum * value_sum / count) / count;
                }
            }
            if agreement < 0.0 {
                turned.push(k);
            }
        }
        for k in turned {
            self.model.mirror(k);
        }
        Ok(())
    }
}
