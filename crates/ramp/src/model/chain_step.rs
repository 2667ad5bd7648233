//! One step of a chain by itself, for filtering online: the messages of its observations, and the one to the next step.

use super::elementwise::{Constrain, Incoming, NetworkInputs};
use super::plan::Source;
use super::{Model, NetworkSlot};
use crate::Result;
use crate::family::Belief;
use crate::kernel::real::Element;
use crate::network::{Block, ROW_UNIT};

/// The networks of one step of a chain that is tied over time.
///
/// Messages are for one sample, in whole planes of which the first number counts.
pub(crate) struct ChainStep {
    /// The same model on a chain of two steps: the first one is the present.
    model: Model,
    /// The networks of a step's observations, in the order of the series.
    observed: Vec<Recognition>,
    /// The network of the message to the next step.
    forward: usize,
}

/// A network that sees an observation.
struct Recognition {
    network: usize,
    features: usize,
    /// Whether it takes its input row by row.
    wide: bool,
}

impl ChainStep {
    /// A step of a model's chain; `None` where no message goes from a step to the next.
    pub fn new(model: &Model) -> Result<Option<Self>> {
        let model = model.unrolled(2)?;
        let mut observed: Vec<(usize, Recognition)> = vec![];
        let mut forward = None;
        for stage in &model.plan.stages {
            for &message in &stage.messages {
                let to = model.plan.target[message as usize];
                match (to, &model.plan.sources[message as usize][..]) {
                    (
                        0,
                        &[
                            Source::Observation {
                                index, features, ..
                            },
                        ],
                    ) => {
                        let recognition = Recognition {
                            network: stage.network,
                            features,
                            wide: stage.wide,
                        };
                        observed.push((index, recognition));
                    }
                    (1, [Source::Belief { .. }]) => forward = Some(stage.network),
                    _ => {}
                }
            }
        }
        observed.sort_by_key(|(index, _)| *index);
        let observed = observed.into_iter().map(|(_, r)| r).collect();
        Ok(forward.map(|forward| ChainStep {
            model,
            observed,
            forward,
        }))
    }

    /// How many series are observed.
    pub fn series(&self) -> usize {
        self.observed.len()
    }

    /// Numbers of a series' observation.
    pub fn features(&self, series: usize) -> usize {
        self.observed[series].features
    }

    /// The latent's family.
    pub fn family(&self) -> &Belief {
        &self.model.nodes[0].belief
    }

    /// No message.
    pub fn no_messages(&self) -> Vec<f32> {
        vec![0.0; self.family().dim() * ROW_UNIT]
    }

    /// The natural parameters of the belief that messages add up to.
    pub fn belief(&self, sum: &[f32]) -> Vec<f64> {
        let prior = &self.model.nodes[0].prior;
        let planes = sum.chunks_exact(ROW_UNIT);
        prior
            .iter()
            .zip(planes)
            .map(|(prior, plane)| prior + f64::from(plane[0]))
            .collect()
    }

    /// The message to the next step.
    pub fn advance(&self, sum: &[f32]) -> Vec<f32> {
        let node = &self.model.nodes[0];
        let inputs = self.model.inputs;
        let count = node.belief.input_dim(inputs);
        let mut input = vec![0.0; count * ROW_UNIT];
        f32::dispatch(NetworkInputs {
            node,
            inputs,
            incoming: Incoming::Sum {
                which: &[0],
                starts: &[0],
                messages: sum,
            },
            stride: ROW_UNIT,
            features: &mut input,
            features_stride: ROW_UNIT,
        });
        let slot = &self.model.networks[self.forward];
        self.send(slot, Block::feature_major(&input, count, ROW_UNIT))
    }

    /// The message from one observation.
    pub fn observe(&self, series: usize, values: &[f32]) -> Vec<f32> {
        let Recognition { network, wide, .. } = self.observed[series];
        let slot = &self.model.networks[network];
        let inputs = slot.network.inputs();
        let mut input = vec![0.0; inputs * ROW_UNIT];
        let step = if wide { 1 } else { ROW_UNIT };
        for (i, &x) in values.iter().enumerate() {
            input[i * step] = x;
        }
        // Whatever the network asks for beyond the numbers is whether they are there.
        for i in values.len()..inputs {
            input[i * step] = 1.0;
        }
        match wide {
            true => self.send(slot, Block::row_major(&input, inputs, ROW_UNIT)),
            false => self.send(slot, Block::feature_major(&input, inputs, ROW_UNIT)),
        }
    }

    /// A network's message for the block's first row, in whole planes.
    fn send(&self, slot: &NetworkSlot, input: Block<'_>) -> Vec<f32> {
        let network = &slot.network;
        let mut raw = vec![0.0; network.outputs() * ROW_UNIT];
        let mut tape = vec![0.0; network.tape_len(ROW_UNIT)];
        let mut scratch = vec![0.0; network.scratch_len(ROW_UNIT)];
        let parameters = &self.model.parameters[slot.span.clone()];
        network.forward(parameters, input, &mut raw, &mut tape, &mut scratch);
        let mut message = vec![0.0; raw.len()];
        f32::dispatch(Constrain {
            belief: &self.model.nodes[0].belief,
            raw: &raw,
            raw_stride: ROW_UNIT,
            message: &mut message,
            stride: ROW_UNIT,
        });
        message
    }
}
