//! Pretraining of a chain's messages: what each is to say of a latent by itself, where a state was estimated.
//!
//! By the rules of probability the past alone says `p(z | past) = E[p(z | all) | past]`. So a message that is added to the prior alone is drawn to the
//! estimated belief, `KL(estimate ‖ prior + message)`, whose gradient is `E_estimate[T] − E_{prior + message}[T]` for any exponential family. What
//! the past, the present and the future each know of the state, and how sure of it each is, follows from the data.

use super::Model;
use super::batch::Batch;
use super::evaluate::Workspace;
use crate::collective::Single;
use crate::{Error, Result};

/// The mean parameters of a belief about every latent of some samples, where there is one.
pub(crate) struct PretrainingTargets {
    samples: usize,
    /// For every latent, one plane of samples per parameter; not a number where there is none.
    means: Vec<Vec<f64>>,
}

impl PretrainingTargets {
    /// None yet for any of so many latents with so many parameters.
    pub fn none(latents: usize, parameters: usize, samples: usize) -> Self {
        PretrainingTargets {
            samples,
            means: vec![vec![f64::NAN; parameters * samples]; latents],
        }
    }

    /// Sets that of one latent of one sample.
    pub fn set(&mut self, latent: usize, sample: usize, mean: &[f64]) {
        for (d, &mean) in mean.iter().enumerate() {
            self.means[latent][d * self.samples + sample] = mean;
        }
    }

    fn mean(&self, latent: usize, sample: usize, parameter: usize) -> f64 {
        self.means[latent][parameter * self.samples + sample]
    }
}

impl Model {
    /// How much better messages tell the targets of a batch than the prior does, in nats: summed over a latent's messages and
    /// averaged over latents and samples; and the gradient of this with respect to all parameters.
    pub(crate) fn pretrain(
        &self,
        batch: &Batch<'_>,
        targets: &PretrainingTargets,
        gradient: &mut [f32],
        space: &mut Workspace,
    ) -> Result<f64> {
        let keep = self.send_among(&Single, batch, true, space)?;
        let rows = batch.samples.len();
        let share = 1.0 / (self.nodes.len() * rows) as f64;
        let (messages, at_messages) = (&space.messages, &mut space.gradient);
        at_messages.for_each_mut(|_, planes| planes.fill(0.0));
        let stride = messages.stride();
        let mut value = 0.0;
        for (k, node) in self.nodes.iter().enumerate() {
            let dim = node.prior.len();
            let (mut eta, mut mean) = (vec![0.0; dim], vec![0.0; dim]);
            let before: f64 = node.belief.log_normalizer(&node.prior);
            for m in node.messages.clone() {
                let present = batch.presence.rows(m);
                for i in 0..present.map_or(rows, <[u32]>::len) {
                    let row = present.map_or(i, |rows| rows[i] as usize);
                    let sample = batch.samples[row] as usize;
                    if targets.mean(k, sample, 0).is_nan() {
                        continue;
                    }
                    for d in 0..dim {
                        eta[d] = node.prior[d] + f64::from(messages.plane(m, d)[row]);
                    }
                    value -= share * (node.belief.mean(&eta, &mut mean) - before);
                    let to = at_messages.message_mut(m);
                    for d in 0..dim {
                        let target = targets.mean(k, sample, d);
                        value += share * target * (eta[d] - node.prior[d]);
                        to[d * stride + row] = (share * (target - mean[d])) as f32;
                    }
                }
            }
        }
        if !value.is_finite() {
            return Err(Error::NotFinite {
                what: "what messages tell of estimated states".into(),
            });
        }
        self.back_among(&Single, batch, keep, gradient, space)?;
        Ok(value)
    }
}
