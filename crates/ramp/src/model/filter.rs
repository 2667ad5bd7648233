//! Filtering online: what is known about the present of a sequence, one step after the other.

use super::elementwise::{Constrain, NetworkInputs};
use super::plan::Source;
use super::{Model, NetworkSlot};
use crate::family::{Belief, Description};
use crate::kernel::real::Element;
use crate::network::{Block, ROW_UNIT};
use crate::{Error, Result};

/// The belief about the present of one sequence, given all that has been seen of it so far.
///
/// It holds a copy of the model's networks and one forward message: time and memory per step do not grow. Its beliefs are
/// those of [`Model::filtered`], which sees whole sequences.
///
/// ```
/// use ramp::{data::Dataset, graph::{FactorTree, Tying}, infer::Filter, model::Model};
///
/// let data = Dataset::new().observe_sequence("x", 3, 1, vec![0.5; 12])?;
/// let model = Model::builder(FactorTree::chain(3)?).tying(Tying::Role).build(&data)?;
/// let mut filter = Filter::new(&model)?;
/// for observation in [Some(0.5), None, Some(-1.0), Some(2.0)] {
///     let belief = filter.step(&[observation.as_ref().map(std::slice::from_ref)])?;
///     println!("{} ± {}", belief.describe().mean[0], belief.describe().sd[0]);
/// }
/// # Ok::<(), ramp::Error>(())
/// ```
pub struct Filter {
    /// The same model on a chain of two steps: the first one is the present.
    model: Model,
    /// The networks of a step's observations, in the order of the tree's.
    observed: Vec<Recognition>,
    /// The network of the message to the next step.
    forward: usize,
    /// What the past says, plane by plane; zeros while nothing has been seen.
    carried: Vec<f32>,
    /// Whether anything has been seen.
    begun: bool,
}

/// A network that sees an observation.
struct Recognition {
    network: usize,
    features: usize,
    /// Whether it takes its input row by row.
    wide: bool,
}

/// A belief about one latent of one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct PointBelief {
    belief: Belief,
    eta: Vec<f64>,
}

impl PointBelief {
    /// Its natural parameters.
    pub fn natural(&self) -> &[f64] {
        &self.eta
    }

    /// The belief in words.
    pub fn describe(&self) -> Description {
        self.belief.describe(&self.eta)
    }
}

impl Filter {
    /// A filter that has seen nothing. The model is a chain with networks tied over time.
    pub fn new(model: &Model) -> Result<Self> {
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
        let Some(forward) = forward else {
            return Err(Error::Invalid(
                "filtering needs a chain: latents joined one after the other".into(),
            ));
        };
        observed.sort_by_key(|(index, _)| *index);
        let observed = observed.into_iter().map(|(_, r)| r).collect();
        let carried = vec![0.0; model.nodes[0].belief.dim() * ROW_UNIT];
        Ok(Filter {
            model,
            observed,
            forward,
            carried,
            begun: false,
        })
    }

    /// Forgets everything: the next step is the first of another sequence.
    pub fn reset(&mut self) {
        self.carried.fill(0.0);
        self.begun = false;
    }

    /// The belief about the present, given its observations, in the order of the tree's, and the past. `None` is missing.
    pub fn step(&mut self, observations: &[Option<&[f32]>]) -> Result<PointBelief> {
        if observations.len() != self.observed.len() {
            return Err(Error::Invalid(format!(
                "a step has {} observations, not {}",
                self.observed.len(),
                observations.len()
            )));
        }
        let node = &self.model.nodes[0];
        let mut sum = self.carried.clone();
        let mut begun = self.begun;
        for (recognition, observation) in self.observed.iter().zip(observations) {
            let Some(values) = observation else { continue };
            for (sum, &new) in sum.iter_mut().zip(&self.observe(recognition, values)?) {
                *sum += new;
            }
            begun = true;
        }
        let eta: Vec<f64> = node
            .prior
            .iter()
            .zip(sum.chunks_exact(ROW_UNIT))
            .map(|(prior, plane)| prior + f64::from(plane[0]))
            .collect();
        if !eta.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: "the filtered belief".into(),
            });
        }
        if begun {
            let slot = &self.model.networks[self.forward];
            let view = self.model.inputs;
            let seen = node.belief.input_dim(view);
            let mut input = vec![0.0; seen * ROW_UNIT];
            f32::dispatch(NetworkInputs {
                node,
                inputs: view,
                plus: &[&sum],
                minus: None,
                stride: ROW_UNIT,
                features: &mut input,
                features_stride: ROW_UNIT,
            });
            self.carried = self.send(slot, Block::feature_major(&input, seen, ROW_UNIT));
            self.begun = true;
        }
        Ok(PointBelief {
            belief: node.belief.clone(),
            eta,
        })
    }

    /// The message from one observation.
    fn observe(&self, recognition: &Recognition, values: &[f32]) -> Result<Vec<f32>> {
        let Recognition {
            network,
            features: expected,
            wide,
        } = *recognition;
        let slot = &self.model.networks[network];
        let inputs = slot.network.inputs();
        if values.len() != expected || !values.iter().all(|x| x.is_finite()) {
            return Err(Error::Invalid(format!(
                "an observation has {} numbers where the model has {expected}, or not all are finite; a missing one is None",
                values.len()
            )));
        }
        let mut input = vec![0.0; inputs * ROW_UNIT];
        let step = if wide { 1 } else { ROW_UNIT };
        for (i, &x) in values.iter().enumerate() {
            input[i * step] = x;
        }
        // Whatever the network asks for beyond the numbers is whether they are there.
        for i in values.len()..inputs {
            input[i * step] = 1.0;
        }
        Ok(match wide {
            true => self.send(slot, Block::row_major(&input, inputs, ROW_UNIT)),
            false => self.send(slot, Block::feature_major(&input, inputs, ROW_UNIT)),
        })
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
