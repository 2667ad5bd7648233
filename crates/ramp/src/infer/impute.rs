//! What a missing observation may be: the support set's observations, reweighted by how well each goes with the rest (MATH,
//! "What the model gives for free"). No decoder is needed.

use super::{InferError, SupportSet};
use crate::Result;
use crate::data::Dataset;
use crate::family::Belief;
use crate::graph::VariableId;
use crate::message::{Messages, Node};
use crate::model::{Model, Workspace};

/// Reweights the support set's observations for samples that lack them.
///
/// ```
/// use ramp::{data::Dataset, graph::FactorTree, infer::{Imputer, SupportSet}, model::Model};
///
/// let data = |values: Vec<f32>| {
///     (1..=3).try_fold(Dataset::new(), |data, i| data.observe(format!("x{i}"), 1, values.clone()))
/// };
/// let training = data(vec![-1.0, 0.0, 1.0, 2.0])?;
/// let model = Model::builder(FactorTree::star(3)?).build(&training)?;
/// let imputer = Imputer::new(&model, &SupportSet::new(&model, &training, 4)?, &training)?;
/// let weights = imputer.conditionals(&model, &data(vec![0.5])?)?.weights(1, 0);
/// assert_eq!(weights.len(), imputer.candidates(1).len());
/// assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone)]
pub struct Imputer {
    leaves: Vec<Leaf>,
    /// What messages are multiplied by.
    temperature: f64,
}

/// How an observation hangs on its latent.
#[derive(Clone)]
pub(super) struct Leaf {
    pub(super) node: Node,
    /// The place of the latent in the tree.
    pub(super) latent: usize,
    message: usize,
    /// For every sample of the support set that has it: the sample, its message, and `Φ(η0 + tm)` at the temperature `t`.
    pub(super) rows: Vec<u32>,
    pub(super) messages: Vec<f64>,
    phi: Vec<f64>,
}

impl Leaf {
    fn phi_at(&self, temperature: f64) -> Vec<f64> {
        let mut eta = self.node.prior.clone();
        self.messages
            .chunks_exact(eta.len())
            .map(|message| {
                for ((e, p), m) in eta.iter_mut().zip(&self.node.prior).zip(message) {
                    *e = p + temperature * m;
                }
                self.node.belief.log_normalizer(&eta[..])
            })
            .collect()
    }
}

/// Samples whose observations can be predicted from the rest.
pub struct Conditionals<'a> {
    imputer: &'a Imputer,
    messages: Messages,
}

impl Imputer {
    /// Prepares to impute from a support set and the samples that it was made from.
    ///
    /// An observation that shares its factor with several latents is imputed at the first of them, by the messages that its
    /// factor sent there in the support set.
    pub fn new(model: &Model, support: &SupportSet, data: &Dataset) -> Result<Self> {
        if support.rows() != data.rows() {
            return Err(InferError::OtherSupportSet {
                support: support.rows(),
                data: data.rows(),
            }
            .into());
        }
        let bound = model.bind(data)?;
        let leaves = model
            .tree()
            .observations()
            .iter()
            .enumerate()
            .map(|(observation, &x)| {
                let (latent, message) = message_of(model, x)?;
                let node = model.nodes[latent].clone();
                let own = bound.observation(observation);
                let rows: Vec<u32> = (0..data.rows())
                    .filter(|&n| own.is_present(n))
                    .filter(|&n| bound.lengths().is_none_or(|l| l[n] as usize > latent))
                    .map(|n| n as u32)
                    .collect();
                let width = node.prior.len();
                let mut messages = Vec::with_capacity(rows.len() * width);
                for &n in &rows {
                    let plane = |d| support.messages.plane(message, d)[n as usize];
                    messages.extend((0..width).map(|d| f64::from(plane(d))));
                }
                let mut leaf = Leaf {
                    node,
                    latent,
                    message,
                    rows,
                    messages,
                    phi: vec![],
                };
                leaf.phi = leaf.phi_at(1.0);
                Ok(leaf)
            })
            .collect::<Result<_>>()?;
        Ok(Imputer {
            leaves,
            temperature: 1.0,
        })
    }

    /// What messages are multiplied by in imputations: 1 unless another was learned or set.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// Sets what messages are multiplied by, a positive number such as
    /// [`fit_temperature`](Imputer::fit_temperature) found.
    pub fn set_temperature(&mut self, temperature: f64) {
        if temperature != self.temperature {
            self.temperature = temperature;
            for leaf in &mut self.leaves {
                leaf.phi = leaf.phi_at(temperature);
            }
        }
    }

    pub(super) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The support set's samples that have an observation, by its place in the tree's
    /// ([`TimeAxis::observation`](crate::graph::TimeAxis::observation) for a series and step): those that weights are for.
    pub fn candidates(&self, observation: usize) -> &[u32] {
        &self.leaves[observation].rows
    }

    /// Makes ready to predict any observation of these samples from the sample's others.
    pub fn conditionals(&self, model: &Model, data: &Dataset) -> Result<Conditionals<'_>> {
        let bound = model.bind(data)?;
        let samples: Vec<u32> = (0..bound.rows() as u32).collect();
        let batch = model.batch(&bound, &samples, None);
        let (messages, _) = model.messages_of(&batch, &mut Workspace::default());
        Ok(Conditionals {
            imputer: self,
            messages,
        })
    }
}

impl Conditionals<'_> {
    /// The same samples for another imputer of the same model and support set, such as one with another temperature.
    pub fn by<'a>(&self, imputer: &'a Imputer) -> Conditionals<'a> {
        Conditionals {
            imputer,
            messages: self.messages.clone(),
        }
    }

    /// The chance of each candidate for one sample's observation given the sample's others, whether it has this one or
    /// not: `∝ exp[Φ(q + m) − Φ(η0 + m)]` with `q` the belief without it, all messages multiplied by the imputer's temperature. They add
    /// up to one; there are none where the support set has no such observation.
    pub fn weights(&self, observation: usize, row: usize) -> Vec<f64> {
        let leaf = &self.imputer.leaves[observation];
        let rest = self.belief_without(observation, row);
        let temperature = self.imputer.temperature;
        if temperature == 1.0 {
            return reweighted(&leaf.node.belief, &rest, &leaf.messages, &leaf.phi);
        }
        let rest = moved(&leaf.node.prior, &rest, temperature);
        let messages: Vec<f64> = leaf.messages.iter().map(|m| temperature * m).collect();
        reweighted(&leaf.node.belief, &rest, &messages, &leaf.phi)
    }

    /// What an observation itself says.
    pub(super) fn own_message(&self, observation: usize, row: usize) -> Vec<f64> {
        let leaf = &self.imputer.leaves[observation];
        (0..leaf.node.prior.len())
            .map(|d| f64::from(self.messages.plane(leaf.message, d)[row]))
            .collect()
    }

    /// The belief about the latent that an observation hangs on, as natural parameters, from everything but this observation.
    pub fn belief_without(&self, observation: usize, row: usize) -> Vec<f64> {
        let leaf = &self.imputer.leaves[observation];
        let mut rest = leaf.node.prior.clone();
        for m in leaf.node.messages.clone().filter(|&m| m != leaf.message) {
            for (d, q) in rest.iter_mut().enumerate() {
                *q += f64::from(self.messages.plane(m, d)[row]);
            }
        }
        rest
    }
}

/// A belief whose messages are multiplied by a number.
pub(super) fn moved(prior: &[f64], belief: &[f64], times: f64) -> Vec<f64> {
    let each = prior.iter().zip(belief);
    each.map(|(p, q)| p + times * (q - p)).collect()
}

/// The chance of each observation whose messages stand one after the other, with their `Φ(η0 + m)`, where the belief without it is `rest`:
/// `∝ exp[Φ(rest + m) − Φ(η0 + m)]`. They add up to one.
pub(super) fn reweighted(belief: &Belief, rest: &[f64], messages: &[f64], phi: &[f64]) -> Vec<f64> {
    let mut eta = rest.to_vec();
    let mut weights: Vec<f64> = messages
        .chunks_exact(rest.len())
        .zip(phi)
        .map(|(message, phi)| {
            for ((e, q), m) in eta.iter_mut().zip(rest).zip(message) {
                *e = q + m;
            }
            belief.log_normalizer(&eta[..]) - phi
        })
        .collect();
    let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    weights.iter_mut().for_each(|w| *w = (*w - most).exp());
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= total);
    weights
}

/// The latent that an observation speaks to first, and the message by which it does.
fn message_of(model: &Model, observation: VariableId) -> Result<(usize, usize)> {
    let tree = model.tree();
    let factor = tree.factors_of(observation)[0];
    tree.variables_of(factor)
        .iter()
        .find_map(|&v| {
            let message = tree.message(factor, v)?;
            let latent = tree.latents().iter().position(|&l| l == v)?;
            Some((latent, message.index()))
        })
        .ok_or_else(|| {
            let name = tree.name(observation).into();
            InferError::NoLatent { name }.into()
        })
}
