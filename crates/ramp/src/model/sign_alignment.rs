//! Sign alignment: a latent's sign means nothing, and people read a scale more easily when high is high.

use super::plan::Source;
use super::{Model, ModelError};
use crate::family::{AnyFamily, DiagonalGaussian, Gaussian};
use crate::network::{Layout, Network};
use std::ops::Range;

/// What of a network must change its sign.
#[derive(Clone, Debug, Default, PartialEq)]
struct Flip {
    /// Its first output: a message's precision-weighted mean.
    output: bool,
    /// These inputs.
    inputs: Vec<usize>,
}

impl Model {
    /// Flips the sign of a one-dimensional Gaussian latent: all its posterior means change sign, and nothing else changes. The
    /// prior must be symmetric, and the networks with the latent among their inputs or outputs must serve no message
    /// whose sign stays. On an error the model is as it was.
    pub fn flip_sign(&mut self, latent: usize) -> Result<(), ModelError> {
        self.flip(&|k| k == latent)
    }

    /// Flips the signs of all latents of a chain at once, with the networks that they share: see [`Model::flip_sign`].
    pub fn flip_chain_sign(&mut self) -> Result<(), ModelError> {
        if !self.tree.is_chain() {
            return Err(ModelError::NotAChain);
        }
        self.flip(&|_| true)
    }

    /// Flips the sign of all inputs of an observation's own network, before training: an observation that runs against the
    /// others of its latent then begins in agreement with them.
    pub fn flip_input_sign(&mut self, network: &str) -> Result<(), ModelError> {
        self.negate(network, |network| network.negating_inputs())
    }

    /// Flips the sign of the first output of a network: its messages to a one-dimensional Gaussian latent then say the opposite. For messages that come to
    /// a latent which runs the other way.
    pub fn flip_output_sign(&mut self, network: &str) -> Result<(), ModelError> {
        self.negate(network, |network| network.negating_output(0))
    }

    fn negate(
        &mut self,
        network: &str,
        places: impl Fn(&dyn Network) -> Option<Vec<usize>>,
    ) -> Result<(), ModelError> {
        let slot = &self.networks[self.network_index(network)?];
        let places = places(&*slot.network).ok_or_else(|| ModelError::NoLayout {
            network: slot.key.clone(),
        })?;
        for place in places {
            let parameter = &mut self.parameters[slot.span.start + place];
            *parameter = -*parameter;
        }
        Ok(())
    }

    /// How the arrays of a network lie in [`Model::parameters`].
    pub fn layout(&self, network: &str) -> Result<Layout, ModelError> {
        self.layout_at(self.network_index(network)?)
    }

    /// Where the parameters of a network lie in [`Model::parameters`].
    pub fn span(&self, network: &str) -> Result<Range<usize>, ModelError> {
        Ok(self.networks[self.network_index(network)?].span.clone())
    }

    fn network_index(&self, key: &str) -> Result<usize, ModelError> {
        let index = self.networks.iter().position(|n| n.key == key);
        index.ok_or_else(|| ModelError::UnknownNetwork {
            key: key.to_string(),
            keys: self.networks.iter().map(|n| n.key.clone()).collect(),
        })
    }

    fn layout_at(&self, network: usize) -> Result<Layout, ModelError> {
        let slot = &self.networks[network];
        let layout = slot.network.layout();
        let layout = layout.ok_or_else(|| ModelError::NoLayout {
            network: slot.key.clone(),
        })?;
        Ok(layout.shifted(slot.span.start))
    }

    fn flip(&mut self, flipped: &dyn Fn(usize) -> bool) -> Result<(), ModelError> {
        for i in self.flips(flipped)? {
            self.parameters[i] = -self.parameters[i];
        }
        Ok(())
    }

    /// The parameters to negate so that the chosen latents change their signs.
    fn flips(&self, flipped: &dyn Fn(usize) -> bool) -> Result<Vec<usize>, ModelError> {
        if let Some(k) = (0..self.nodes.len()).find(|&k| flipped(k) && !self.is_symmetric(k)) {
            return Err(ModelError::NotSymmetric {
                latent: self.tree.name(self.tree.latents()[k]).to_string(),
            });
        }
        let mut needs: Vec<Option<Flip>> = vec![None; self.networks.len()];
        let assignment = self.spec.tying.assign(&self.tree);
        for (message, &network) in assignment.of_message.iter().enumerate() {
            let need = self.flip_of(message, flipped);
            match &needs[network] {
                None => needs[network] = Some(need),
                Some(other) if *other == need => {}
                Some(_) => {
                    return Err(ModelError::SharedSign {
                        network: self.networks[network].key.clone(),
                    });
                }
            }
        }
        let mut flips = vec![];
        for (network, need) in needs.into_iter().enumerate() {
            let need = need.unwrap_or_default();
            if need == Flip::default() {
                continue;
            }
            if need.output {
                let slot = &self.networks[network];
                let places = slot.network.negating_output(0);
                let places = places.ok_or_else(|| ModelError::NoLayout {
                    network: slot.key.clone(),
                })?;
                flips.extend(places.into_iter().map(|place| slot.span.start + place));
            }
            if need.inputs.is_empty() {
                continue;
            }
            let layout = self.layout_at(network)?;
            for input in need.inputs {
                let first = layout.first.ok_or_else(|| ModelError::NoInputWeights {
                    network: self.networks[network].key.clone(),
                })?;
                flips.extend(first.of_input(input));
            }
        }
        Ok(flips)
    }

    /// What a message's network must change when the chosen latents change their signs.
    fn flip_of(&self, message: usize, flipped: &dyn Fn(usize) -> bool) -> Flip {
        let mut inputs = vec![];
        let mut feature = 0;
        for source in &self.plan.sources[message] {
            match source {
                Source::Observation { features, flag, .. } => {
                    feature += features + usize::from(*flag)
                }
                Source::Belief { latent, .. } => {
                    // A belief's first input is its mean, or its precision-weighted mean.
                    if flipped(*latent) {
                        inputs.push(feature);
                    }
                    feature += self.nodes[*latent].belief.input_dim(self.inputs);
                }
            }
        }
        Flip {
            output: flipped(self.plan.target[message]),
            inputs,
        }
    }

    /// Whether a latent is a one-dimensional Gaussian around zero.
    fn is_symmetric(&self, latent: usize) -> bool {
        let node = &self.nodes[latent];
        let one = matches!(
            node.belief.parts(),
            [AnyFamily::Gaussian(Gaussian { dim: 1 })]
                | [AnyFamily::Diagonal(DiagonalGaussian { dim: 1 })]
        );
        one && node.prior[0] == 0.0
    }
}

#[cfg(test)]
mod tests;
