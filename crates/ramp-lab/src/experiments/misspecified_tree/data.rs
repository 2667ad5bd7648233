//! Trees that are wrong: random interchanges away from the true one.

use crate::error::LabError;
use ramp::graph::{FactorTree, Interchange};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A perturbed tree and how it came about.
pub(super) struct Plan {
    pub moves: usize,
    pub number: usize,
    pub tree: FactorTree,
    /// The trees on the way, the true one first, each with the step that leads on.
    pub way: Vec<(FactorTree, Interchange)>,
}

impl Plan {
    /// Random steps from a tree: at each, an edge between latents, then one of the interchanges across it, all as likely.
    ///
    /// A step may undo the one before; the Robinson–Foulds distance tells.
    pub fn new(
        truth: &FactorTree,
        moves: usize,
        number: usize,
        seed: u64,
    ) -> Result<Self, LabError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream((1 << 32) + ((moves as u64) << 16) + number as u64);
        let mut tree = truth.clone();
        let mut way = vec![];
        for _ in 0..moves {
            let steps = tree.interchanges();
            let edges: Vec<&[Interchange]> = steps.chunk_by(|a, b| a.across == b.across).collect();
            if edges.is_empty() {
                return Err(LabError::Invalid(
                    "a tree of one latent has no neighbours to step to".into(),
                ));
            }
            let across = edges[random.random_range(0..edges.len())];
            let step = across[random.random_range(0..across.len())];
            let next = tree.interchanged(step)?;
            way.push((tree, step));
            tree = next;
        }
        Ok(Plan {
            moves,
            number,
            tree,
            way,
        })
    }

    /// A name good for a folder.
    pub fn name(&self) -> String {
        format!("k{}-{}", self.moves, self.number)
    }
}
