//! The generative tree: who is whose parent, and the networks from parents to children.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::error::LabError;

/// A tree of conditionals `v = f_v(pa(v)) + ξ` with unit noise and a standard normal root.
///
/// Nodes are numbered parents first, latents before observations.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerativeTree {
    parents: Vec<Option<usize>>,
    latents: usize,
    hidden: usize,
    weights: Vec<f32>,
}

/// The network of one conditional, `Σ out · max(0, slope · z + offset) + bias`.
#[derive(Clone, Copy)]
pub(super) struct Network<'a> {
    pub slope: &'a [f32],
    pub offset: &'a [f32],
    pub out: &'a [f32],
    pub bias: f32,
}

impl GenerativeTree {
    /// A tree whose networks have `hidden` rectified units and small random weights: uniform within one over the root of a
    /// layer's inputs.
    pub fn random(
        parents: Vec<Option<usize>>,
        latents: usize,
        hidden: usize,
        seed: u64,
    ) -> Result<Self, LabError> {
        let mut tree = Self::empty(parents, latents, hidden)?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let reach = (hidden.max(1) as f32).sqrt().recip();
        for network in tree.weights.chunks_exact_mut(3 * hidden + 1) {
            let (inner, outer) = network.split_at_mut(2 * hidden);
            inner.fill_with(|| random.random_range(-1.0..1.0));
            outer.fill_with(|| random.random_range(-reach..reach));
        }
        Ok(tree)
    }

    /// The linear tree `v = weight · pa(v) + ξ`: two rectified units make a line.
    pub fn linear(
        parents: Vec<Option<usize>>,
        latents: usize,
        weight: f32,
    ) -> Result<Self, LabError> {
        let mut tree = Self::empty(parents, latents, 2)?;
        for network in tree.weights.chunks_exact_mut(7) {
            network.copy_from_slice(&[1.0, -1.0, 0.0, 0.0, weight, -weight, 0.0]);
        }
        Ok(tree)
    }

    fn empty(parents: Vec<Option<usize>>, latents: usize, hidden: usize) -> Result<Self, LabError> {
        let refuse = |why: String| Err(LabError::Invalid(why));
        if latents == 0 || latents >= parents.len() {
            return refuse(format!(
                "a generative tree of {} nodes cannot have {latents} latents; it needs latents and observations",
                parents.len()
            ));
        }
        for (node, parent) in parents.iter().enumerate() {
            match parent {
                None if node == 0 => {}
                Some(parent) if *parent < node && *parent < latents => {}
                _ => {
                    return refuse(format!(
                        "node {node} of a generative tree needs a latent parent before it; only node 0 has none"
                    ));
                }
            }
        }
        Ok(GenerativeTree {
            weights: vec![0.0; (parents.len() - 1) * (3 * hidden + 1)],
            parents,
            latents,
            hidden,
        })
    }

    /// How many latents.
    pub fn latents(&self) -> usize {
        self.latents
    }

    /// How many observations.
    pub fn observed(&self) -> usize {
        self.parents.len() - self.latents
    }

    /// The mean of a node given its parent's value; of the root, zero.
    pub fn mean(&self, node: usize, parent: f64) -> f64 {
        if node == 0 {
            return 0.0;
        }
        let network = self.network(node);
        let unit = |j: usize| {
            let inner = f64::from(network.slope[j]) * parent + f64::from(network.offset[j]);
            f64::from(network.out[j]) * inner.max(0.0)
        };
        (0..self.hidden).map(unit).sum::<f64>() + f64::from(network.bias)
    }

    /// Every node but the root with its parent.
    pub(super) fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let pairs = self.parents.iter().enumerate();
        pairs.filter_map(|(node, parent)| parent.map(|parent| (node, parent)))
    }

    pub(super) fn hidden(&self) -> usize {
        self.hidden
    }

    /// All networks one after the other, from node 1 on: slopes, offsets, outer weights, bias.
    pub(super) fn weights(&self) -> &[f32] {
        &self.weights
    }

    pub(super) fn weights_mut(&mut self) -> &mut [f32] {
        &mut self.weights
    }

    pub(super) fn network(&self, node: usize) -> Network<'_> {
        let (h, size) = (self.hidden, 3 * self.hidden + 1);
        let own = &self.weights[(node - 1) * size..node * size];
        Network {
            slope: &own[..h],
            offset: &own[h..2 * h],
            out: &own[2 * h..3 * h],
            bias: own[3 * h],
        }
    }
}
