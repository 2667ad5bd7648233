//! A model: a tree, a family for every latent, a network for every message.

mod batch;
mod builder;
mod chain_step;
mod dynamics;
mod elementwise;
mod error;
mod evaluate;
mod factors;
mod message_inputs;
mod noise;
mod pass;
mod plan;
mod pretraining;
mod resize_chain;
#[cfg(test)]
mod sequence_tests;
mod share;
mod sign_alignment;
mod spec;
mod stored;
#[cfg(test)]
mod tests;
mod zero;

pub(crate) use batch::{Batch, Bound, Mask};
pub use builder::ModelBuilder;
pub(crate) use chain_step::ChainStep;
pub use dynamics::{DynamicsInit, Transition};
pub(crate) use dynamics::{Geodesic, Shown, StateEstimate, linalg, state_estimates};
pub use error::{ArrayProblem, ModelError};
pub(crate) use evaluate::{Workspace, row_ends};
pub(crate) use noise::Noise;
pub(crate) use pretraining::PretrainingTargets;
pub use spec::{Initialisation, ModelSpec, TreeSpec};
pub use stored::Registry;

use crate::family::{Belief, Inputs};
use crate::graph::FactorTree;
use crate::message::Node;
use crate::network::{Network, Parameter};
use plan::Plan;
use std::ops::Range;
use std::sync::Arc;

/// A network and the parameters it owns.
#[derive(Clone)]
pub(crate) struct NetworkSlot {
    /// What it is called: a message, a depth or a role (see [`Tying`](crate::graph::Tying)).
    pub key: String,
    pub network: Arc<dyn Network>,
    /// Whether it is one of the user's own.
    pub own: bool,
    /// Where its parameters lie in the model's.
    pub span: Range<usize>,
}

/// A tree with a family for every latent and a network for every message, ready to learn and to infer.
///
/// Made by [`Model::builder`]. A clone has parameters of its own and shares the networks, which own no numbers.
#[derive(Clone)]
pub struct Model {
    pub(crate) spec: ModelSpec,
    tree: FactorTree,
    inputs: Inputs,
    /// Numbers per sample of every observation.
    features: Vec<usize>,
    pub(crate) nodes: Vec<Node>,
    plan: Plan,
    pub(crate) networks: Vec<NetworkSlot>,
    parameters: Vec<f32>,
}

impl Model {
    /// Starts a model on a tree.
    pub fn builder(tree: FactorTree) -> ModelBuilder {
        ModelBuilder::new(tree)
    }

    /// The tree.
    pub fn tree(&self) -> &FactorTree {
        &self.tree
    }

    /// What the model was built from; it can be stored and built again.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// The families of the latents, in the order of [`FactorTree::latents`].
    pub fn beliefs(&self) -> impl ExactSizeIterator<Item = &Belief> {
        self.nodes.iter().map(|n| &n.belief)
    }

    /// The natural parameters of a latent's prior.
    pub fn prior(&self, latent: usize) -> &[f64] {
        &self.nodes[latent].prior
    }

    /// How many networks.
    pub fn network_count(&self) -> usize {
        self.networks.len()
    }

    /// All parameters of all networks.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// All parameters of all networks, to be set.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Every parameter array by name (`network/array`), with its shape and where it lies in [`Model::parameters`].
    pub fn named_parameters(&self) -> Vec<(String, Vec<usize>, Range<usize>)> {
        self.each_parameter(|slot, p, start| {
            let name = format!("{}/{}", slot.key, p.name);
            (name, p.shape.clone(), start..start + p.len())
        })
    }

    /// Something of every parameter array, given where it begins in [`Model::parameters`].
    pub(crate) fn each_parameter<T>(
        &self,
        map: impl Fn(&NetworkSlot, &Parameter, usize) -> T,
    ) -> Vec<T> {
        let mut all = vec![];
        for slot in &self.networks {
            let mut start = slot.span.start;
            for p in slot.network.parameters() {
                all.push(map(slot, &p, start));
                start += p.len();
            }
        }
        all
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("latents", &self.nodes.len())
            .field("observations", &self.tree.observations().len())
            .field("networks", &self.networks.len())
            .field("parameters", &self.parameters.len())
            .finish()
    }
}
