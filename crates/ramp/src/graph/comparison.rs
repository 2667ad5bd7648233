//! How far one tree is from another over the same observations: per latent and as a whole.

use super::{FactorTree, GraphError, VariableId};
use std::collections::{BTreeSet, HashMap};

/// A latent of one tree and the latent of another that divides the observations most alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The latent of the other tree.
    pub latent: VariableId,
    /// How many observations stand in a wrong branch.
    pub mismatch: usize,
}

impl FactorTree {
    /// How many observations a latent routes into the wrong branch, seen from a latent of another tree: those that are
    /// left outside when each branch of the one is paired with at most one branch of the other, in the pairing that leaves the
    /// fewest.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let truth = FactorTree::from_newick("((x1,x2)z2,(x3,x4)z3)z1;")?;
    /// let other = FactorTree::from_newick("((x1,x3)z2,(x2,x4)z3)z1;")?;
    /// assert_eq!(truth.partition_mismatch(truth.find("z1")?, &truth, truth.find("z1")?)?, 0);
    /// assert_eq!(other.partition_mismatch(other.find("z1")?, &truth, truth.find("z1")?)?, 2);
    /// assert_eq!(other.partition_mismatch(other.find("z2")?, &truth, truth.find("z2")?)?, 1);
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn partition_mismatch(
        &self,
        latent: VariableId,
        other: &FactorTree,
        other_latent: VariableId,
    ) -> Result<usize, GraphError> {
        let numbers = self.shared_observations(other)?;
        Ok(mismatch(
            &self.partition(latent),
            &renumbered(&numbers, other, other_latent),
        ))
    }

    /// For every latent of this tree, in order, the latent of another tree with the smallest
    /// [partition mismatch](Self::partition_mismatch). Several latents may have the same match.
    ///
    /// Ties go to a latent with as many branches, then to the one of the same name, then to the first.
    pub fn matches(&self, other: &FactorTree) -> Result<Vec<Match>, GraphError> {
        let numbers = self.shared_observations(other)?;
        let theirs: Vec<_> = other
            .latents()
            .iter()
            .map(|&latent| (latent, renumbered(&numbers, other, latent)))
            .collect();
        let best = |latent: VariableId| {
            let own = self.partition(latent);
            let rank = |(candidate, groups): &(VariableId, Vec<Vec<VariableId>>)| {
                let wrong = mismatch(&own, groups);
                let order = (
                    wrong,
                    groups.len() != own.len(),
                    other.name(*candidate) != self.name(latent),
                    *candidate,
                );
                (
                    order,
                    Match {
                        latent: *candidate,
                        mismatch: wrong,
                    },
                )
            };
            theirs.iter().map(rank).min_by_key(|(order, _)| *order)
        };
        // A tree has at least one latent.
        let found = self.latents().iter().filter_map(|&latent| best(latent));
        Ok(found.map(|(_, matched)| matched).collect())
    }

    /// The Robinson–Foulds distance: how many divisions of the observations in two are made by an edge of one tree and by none
    /// of the other.
    ///
    /// An edge is a branch of a latent; divisions that cut off a single observation are in every tree and do not count. Nor does
    /// it count on which edge a latent of two branches sits: both of its edges divide alike.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let tree = FactorTree::balanced(4, 2)?;
    /// let steps = tree.interchanges();
    /// let neighbour = tree.interchanged(steps[steps.len() - 1])?;
    /// assert_eq!(tree.robinson_foulds(&neighbour)?, 2);
    /// // Across the edge of a root with two branches, only the root moves.
    /// assert_eq!(tree.robinson_foulds(&tree.interchanged(steps[0])?)?, 0);
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn robinson_foulds(&self, other: &FactorTree) -> Result<usize, GraphError> {
        let numbers = self.shared_observations(other)?;
        let own = self.latents().iter().map(|&latent| self.partition(latent));
        let theirs = other
            .latents()
            .iter()
            .map(|&latent| renumbered(&numbers, other, latent));
        let (own, theirs) = (self.divisions(own), self.divisions(theirs));
        Ok(own.symmetric_difference(&theirs).count())
    }

    /// The divisions in two among partitions, each as its side without the first observation.
    fn divisions(
        &self,
        partitions: impl Iterator<Item = Vec<Vec<VariableId>>>,
    ) -> BTreeSet<Vec<VariableId>> {
        let all = self.observations();
        let side = |group: Vec<VariableId>| match group.binary_search(&all[0]) {
            Err(_) => group,
            Ok(_) => {
                let outside = all.iter().filter(|o| group.binary_search(o).is_err());
                outside.copied().collect()
            }
        };
        partitions
            .flatten()
            .map(side)
            .filter(|side| side.len() > 1 && side.len() + 1 < all.len())
            .collect()
    }

    /// For every observation of another tree the one of the same name in this tree; both must have the same.
    fn shared_observations(
        &self,
        other: &FactorTree,
    ) -> Result<HashMap<VariableId, VariableId>, GraphError> {
        let missing_in = |from: &FactorTree, to: &FactorTree| {
            let observed = |name: &str| to.find(name).is_ok_and(|v| !to.is_latent(v));
            let names = from.observations().iter().map(|&o| from.name(o));
            names
                .filter(|name| !observed(name))
                .map(str::to_owned)
                .next()
        };
        if let Some(name) = missing_in(self, other).or_else(|| missing_in(other, self)) {
            return Err(GraphError::OtherObservations { name });
        }
        other
            .observations()
            .iter()
            .map(|&theirs| Ok((theirs, self.find(other.name(theirs))?)))
            .collect()
    }
}

/// A partition of another tree in the numbers of this one, each group in ascending order.
fn renumbered(
    numbers: &HashMap<VariableId, VariableId>,
    other: &FactorTree,
    latent: VariableId,
) -> Vec<Vec<VariableId>> {
    let mut groups = other.partition(latent);
    for group in &mut groups {
        for observation in group.iter_mut() {
            *observation = numbers[observation];
        }
        group.sort_unstable();
    }
    groups
}

/// The observations outside the best pairing of groups.
fn mismatch(own: &[Vec<VariableId>], theirs: &[Vec<VariableId>]) -> usize {
    let shared = |a: &[VariableId], b: &[VariableId]| {
        a.iter().filter(|o| b.binary_search(o).is_ok()).count()
    };
    let side = own.len().max(theirs.len());
    let gain: Vec<Vec<i64>> = (0..side)
        .map(|i| {
            let overlap = |j: usize| match (own.get(i), theirs.get(j)) {
                (Some(a), Some(b)) => shared(a, b) as i64,
                _ => 0,
            };
            (0..side).map(overlap).collect()
        })
        .collect();
    let all: usize = own.iter().map(Vec::len).sum();
    all - best_pairing(&gain) as usize
}

/// The largest sum of a square matrix with one entry taken from every row and column (the Hungarian method).
fn best_pairing(gain: &[Vec<i64>]) -> i64 {
    let n = gain.len();
    // Row and column 0 stand for "not paired yet"; potentials bound every cost −gain from below.
    let (mut row_potential, mut column_potential) = (vec![0_i64; n + 1], vec![0_i64; n + 1]);
    let mut row_of = vec![0_usize; n + 1];
    for row in 1..=n {
        row_of[0] = row;
        let mut column = 0;
        let mut slack = vec![i64::MAX; n + 1];
        let mut reached_from = vec![0_usize; n + 1];
        let mut done = vec![false; n + 1];
        while row_of[column] != 0 {
            done[column] = true;
            let (at, mut step, mut next) = (row_of[column], i64::MAX, 0);
            for other in 1..=n {
                if done[other] {
                    continue;
                }
                let left = -gain[at - 1][other - 1] - row_potential[at] - column_potential[other];
                if left < slack[other] {
                    slack[other] = left;
                    reached_from[other] = column;
                }
                if slack[other] < step {
                    step = slack[other];
                    next = other;
                }
            }
            for other in 0..=n {
                if done[other] {
                    row_potential[row_of[other]] += step;
                    column_potential[other] -= step;
                } else if other > 0 {
                    slack[other] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            let before = reached_from[column];
            row_of[column] = row_of[before];
            column = before;
        }
    }
    (1..=n)
        .map(|column| gain[row_of[column] - 1][column - 1])
        .sum()
}
