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

    /// The parameters to negate.
    fn flips(&self, latent: usize) -> Option<Vec<usize>> {
        let node = &self.nodes[latent];
        let one = matches!(
            node.belief.parts(),
            [AnyFamily::Gaussian(crate::family::Gaussian { dim: 1 })]
                | [AnyFamily::Diagonal(crate::family::DiagonalGaussian {
                    dim: 1
                })]
        );
        if !one || node.prior[0] != 0.0 {
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
                        feature += self.nodes[*heard].belief.view_dim(self.view);
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
