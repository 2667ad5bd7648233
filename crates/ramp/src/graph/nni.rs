//! Nearest neighbour interchange: the smallest step from one tree to another with the same observations.

use super::unchecked::Unchecked;
use super::{FactorId, FactorTree, GraphError, VariableId};

/// A step between neighbouring trees: two latents that share a factor swap one of their other branches each.
///
/// The branches are known by the factors through which they hang. Neither variables nor factors change their ids, names,
/// kinds or degrees, so the same step on the new tree leads back.
///
/// ```
/// use ramp::graph::FactorTree;
///
/// let tree = FactorTree::from_newick("((x1,x2)z2,(x3,x4)z3)z1;")?;
/// let step = tree.interchanges()[0];
/// assert_eq!(step.sentence(&tree), "across z1–z2, the branch of z3 moves from z1 to z2 and the branch of x1 from z2 to z1");
/// let neighbour = tree.interchanged(step)?;
/// assert_eq!(neighbour.to_newick()?, "((x2,(x3,x4)z3)z2,x1)z1;");
/// assert_eq!(neighbour.interchanged(step)?, tree);
/// # Ok::<(), ramp::graph::GraphError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interchange {
    /// The factor that joins the two latents.
    pub across: FactorId,
    /// The factor of one latent's branch.
    pub first: FactorId,
    /// The factor of the other latent's branch.
    pub second: FactorId,
}

impl Interchange {
    /// The step in words, before it is taken.
    pub fn sentence(&self, tree: &FactorTree) -> String {
        let Some((near, far)) = tree.ends(*self) else {
            return "a step of another tree".into();
        };
        let branch = |factor: FactorId, at: VariableId| {
            let members = tree.variables_of(factor).iter();
            let names: Vec<&str> = members
                .filter(|&&member| member != at)
                .map(|&member| tree.name(member))
                .collect();
            names.join(", ")
        };
        let (one, other) = (tree.name(near), tree.name(far));
        format!(
            "across {one}–{other}, the branch of {} moves from {one} to {other} and the branch of {} from {other} to {one}",
            branch(self.first, near),
            branch(self.second, far)
        )
    }
}

impl FactorTree {
    /// Every interchange of this tree, those across one factor together. Trees of one latent have none.
    ///
    /// Where both latents have three branches, each neighbouring tree is reached in two ways that differ in which of the two
    /// latents carries which name.
    pub fn interchanges(&self) -> Vec<Interchange> {
        let mut steps = Vec::new();
        for across in self.factors() {
            let members = self.variables_of(across);
            let latent = |variable: &&VariableId| self.is_latent(**variable);
            for (place, &near) in members.iter().enumerate().filter(|(_, v)| latent(v)) {
                for &far in members[place + 1..].iter().filter(latent) {
                    for first in self.branches(near, across) {
                        for second in self.branches(far, across) {
                            steps.push(Interchange {
                                across,
                                first,
                                second,
                            });
                        }
                    }
                }
            }
        }
        steps
    }

    /// The tree after an interchange; the error says why it is not one of this tree's.
    pub fn interchanged(&self, step: Interchange) -> Result<FactorTree, GraphError> {
        let (near, far) = self.ends(step).ok_or(GraphError::NoInterchange {
            across: step.across.index() + 1,
            first: step.first.index() + 1,
            second: step.second.index() + 1,
        })?;
        let mut draft = Unchecked::new();
        for variable in self.variables() {
            draft.variable(self.name(variable), self.kind(variable));
        }
        for factor in self.factors() {
            let moved = |&member: &VariableId| {
                if factor == step.first && member == near {
                    far.index()
                } else if factor == step.second && member == far {
                    near.index()
                } else {
                    member.index()
                }
            };
            let members: Vec<usize> = self.variables_of(factor).iter().map(moved).collect();
            draft.factor(&members);
        }
        draft.finish()
    }

    /// The factors of a latent other than the one it is looked at from.
    fn branches(
        &self,
        latent: VariableId,
        across: FactorId,
    ) -> impl Iterator<Item = FactorId> + '_ {
        let factors = self.factors_of(latent).iter().copied();
        factors.filter(move |&factor| factor != across)
    }

    /// The latents whose branches an interchange swaps, the one of the first branch first.
    fn ends(&self, step: Interchange) -> Option<(VariableId, VariableId)> {
        let known = |factor: FactorId| factor.index() < self.factor_count();
        if ![step.across, step.first, step.second]
            .into_iter()
            .all(known)
        {
            return None;
        }
        let end = |branch: FactorId| {
            let members = self.variables_of(step.across).iter().copied();
            members
                .filter(|&member| self.is_latent(member) && branch != step.across)
                .find(|&member| self.factors_of(member).contains(&branch))
        };
        let (near, far) = (end(step.first)?, end(step.second)?);
        (near != far).then_some((near, far))
    }
}
