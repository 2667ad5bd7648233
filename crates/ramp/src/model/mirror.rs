//! Turning a latent around: its sign means nothing, and people read a scale more easily when high is high.

use super::plan::Source;
use super::{Model, NetworkSlot};
use crate::family::AnyFamily;
use std::ops::Range;

impl Model {
    /// Turns a one-dimensional Gaussian latent around: all its posterior means change sign, and nothing else changes. Returns
    /// whether that could be done: the prior must be symmetric, and the networks that hear the latent or speak to it must
    /// be perceptrons or convolutions that serve no other message.
    pub fn mirror(&mut self, latent: usize) -> bool {
        let Some(flips) = self.flips(latent) else {
            return false;
        };
        for i in flips {
            self.parameters[i] = -self.parameters[i];
        }
        true
    }

    /// Turns all latents of a chain around at once, with the networks that they share. Returns whether that could be done:
    /// see [`Model::mirror`].
    pub fn mirror_chain(&mut self) -> bool {
        if !self.tree.is_chain() || !(0..self.nodes.len()).all(|k| self.is_symmetric(k)) {
            return false;
        }
        let assignment = self.spec.tying.assign(&self.tree);
        let mut flips = vec![];
        for (network, slot) in self.networks.iter().enumerate() {
            let Some(m) = assignment.of_message.iter().position(|&n| n == network) else {
                continue;
            };
            let heard = self.plan.sources[m]
                .iter()
                .any(|s| matches!(s, Source::Belief { .. }));
            let input = if heard { input(slot, 0) } else { Some(vec![]) };
            match (first_output(slot), input) {
                (Some(output), Some(input)) if !slot.own => {
                    flips.extend(output.into_iter().chain(input))
                }
                _ => return false,
            }
        }
        for i in flips {
            self.parameters[i] = -self.parameters[i];
        }
        true
    }

    /// Whether a latent is a one-dimensional Gaussian around zero.
    fn is_symmetric(&self, latent: usize) -> bool {
        let node = &self.nodes[latent];
        let one = matches!(
            node.belief.parts(),
            [AnyFamily::Gaussian(crate::family::Gaussian { dim: 1 })]
                | [AnyFamily::Diagonal(crate::family::DiagonalGaussian {
                    dim: 1
                })]
        );
        one && node.prior[0] == 0.0
    }

    /// Turns what an observation's own network hears around, before training: an observation that runs against the others of
    /// its latent then begins in agreement with them. Returns whether that could be done.
    pub fn mirror_input(&mut self, key: &str) -> bool {
        let Some(slot) = self.networks.iter().find(|n| n.key == key && !n.own) else {
            return false;
        };
        let Some((shape, weights)) = arrays(slot).into_iter().next() else {
            return false;
        };
        if shape.len() != 2 || shape[1] != slot.network.inputs() {
            return false;
        }
        self.parameters[weights].iter_mut().for_each(|w| *w = -*w);
        true
    }

    /// The parameters to negate.
    fn flips(&self, latent: usize) -> Option<Vec<usize>> {
        if !self.is_symmetric(latent) {
            return None;
        }
        let assignment = self.spec.tying.assign(&self.tree);
        let mut flips = vec![];
        for (m, sources) in self.plan.sources.iter().enumerate() {
            let network = assignment.of_message[m];
            let slot = &self.networks[network];
            let alone = || {
                let shared = assignment
                    .of_message
                    .iter()
                    .filter(|&&n| n == network)
                    .count()
                    > 1;
                (!shared && !slot.own).then_some(())
            };
            if self.plan.target[m] == latent {
                alone()?;
                flips.extend(first_output(slot)?);
            }
            let mut feature = 0;
            for source in sources {
                match source {
                    Source::Observation { features, flag, .. } => {
                        feature += features + usize::from(*flag)
                    }
                    Source::Belief { latent: heard, .. } => {
                        if *heard == latent {
                            alone()?;
                            flips.extend(input(slot, feature)?);
                        }
                        feature += self.nodes[*heard].belief.input_dim(self.inputs);
                    }
                }
            }
        }
        Some(flips)
    }
}

/// Where the arrays of a network lie, with their shapes.
fn arrays(slot: &NetworkSlot) -> Vec<(Vec<usize>, Range<usize>)> {
    let mut start = slot.span.start;
    slot.network
        .parameters()
        .into_iter()
        .map(|p| {
            let span = start..start + p.len();
            start = span.end;
            (p.shape, span)
        })
        .collect()
}

/// The weights and the bias of a network's first output: the message's precision-weighted mean.
fn first_output(slot: &NetworkSlot) -> Option<Vec<usize>> {
    let arrays = arrays(slot);
    let [.., (weight_shape, weight), (bias_shape, bias)] = &arrays[..] else {
        return None;
    };
    let outputs = slot.network.outputs();
    if weight_shape.len() != 2 || weight_shape[0] != outputs || *bias_shape != [outputs] {
        return None;
    }
    let row = weight.start..weight.start + weight_shape[1];
    Some(row.chain([bias.start]).collect())
}

/// The weights of one input of a perceptron.
fn input(slot: &NetworkSlot, feature: usize) -> Option<Vec<usize>> {
    let arrays = arrays(slot);
    let (shape, weight) = arrays.first()?;
    let inputs = slot.network.inputs();
    match shape[..] {
        [outputs, width] if width == inputs => Some(
            (0..outputs)
                .map(|o| weight.start + o * inputs + feature)
                .collect(),
        ),
        _ => None,
    }
}
