//! Changes of a tree that keep its observations: what to try when one doubts it.

use super::unchecked::Unchecked;
use super::{FactorTree, GraphError, Interchange, VariableId};
use std::collections::BTreeSet;

/// A change of a tree whose factors join two variables each.
///
/// ```
/// use ramp::graph::{Change, FactorTree};
///
/// let tree = FactorTree::from_newick("((q1,q2,q3)calm,(q4,q5,q6)kind)mood;")?;
/// let change = Change::Move { observation: tree.find("q3")?, to: tree.find("kind")? };
/// assert_eq!(change.sentence(&tree), "q3 belongs to kind rather than calm");
/// assert_eq!(tree.changed(&change)?.to_newick()?, "((q1,q2)calm,(q3,q4,q5,q6)kind)mood;");
/// # Ok::<(), ramp::graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Two latents that share a factor swap a branch each.
    Interchange(Interchange),
    /// An observation hangs on another latent. One that it leaves with two branches is no more: its branches join.
    Move {
        /// The observation.
        observation: VariableId,
        /// The latent that it goes to.
        to: VariableId,
    },
    /// Some branches of a latent hang together on a latent of their own, which hangs on it.
    Split {
        /// The latent.
        latent: VariableId,
        /// The neighbours that go to the new one.
        branches: Vec<VariableId>,
        /// What the new one is called.
        name: String,
    },
    /// Two latents that share a factor become one.
    Merge {
        /// The one that stays and has all branches.
        kept: VariableId,
        /// The one that goes.
        gone: VariableId,
    },
}

impl Change {
    /// The change in words, before it is made.
    pub fn sentence(&self, tree: &FactorTree) -> String {
        let name = |variable: &VariableId| tree.name(*variable);
        match self {
            Change::Interchange(step) => step.sentence(tree),
            Change::Move { observation, to } => match tree.latent_of(*observation) {
                Some(from) => format!(
                    "{} belongs to {} rather than {}",
                    name(observation),
                    name(to),
                    name(&from)
                ),
                None => format!("{} belongs to {}", name(observation), name(to)),
            },
            Change::Split {
                latent, branches, ..
            } => {
                let names: Vec<&str> = branches.iter().map(name).collect();
                format!(
                    "{} hang together beyond {}: a latent of their own below it",
                    names.join(", "),
                    name(latent)
                )
            }
            Change::Merge { kept, gone } => {
                format!("{} and {} are one", name(kept), name(gone))
            }
        }
    }

    /// The latents whose branches it changes, in the tree before it; those between them too.
    pub fn region(&self, tree: &FactorTree) -> Vec<VariableId> {
        match self {
            Change::Interchange(step) => {
                let members = tree.variables_of(step.across).iter().copied();
                members.filter(|&v| tree.is_latent(v)).collect()
            }
            Change::Move { observation, to } => match tree.latent_of(*observation) {
                Some(from) => tree.path(from, *to),
                None => vec![*to],
            },
            Change::Split { latent, .. } => vec![*latent],
            Change::Merge { kept, gone } => vec![*kept, *gone],
        }
    }
}

impl FactorTree {
    /// The latents from one to another, both included; the way of a tree is the only one.
    pub fn path(&self, from: VariableId, to: VariableId) -> Vec<VariableId> {
        let rooted = super::Rooted::at(self, to);
        let mut path = vec![from];
        let mut at = from;
        while at != to {
            let Some(factor) = rooted.entrance[at.index()] else {
                break;
            };
            at = rooted.head[factor.index()];
            path.push(at);
        }
        path
    }

    /// The variables that share a factor with one.
    pub fn neighbours(&self, variable: VariableId) -> impl Iterator<Item = VariableId> + '_ {
        let factors = self.factors_of(variable).iter();
        factors
            .flat_map(|&factor| self.variables_of(factor).iter().copied())
            .filter(move |&member| member != variable)
    }

    /// Every interchange, every move of an observation over at most `reach` latents and every merge of two latents that leads to a tree
    /// with other divisions of the observations, each such tree once. Splits are not among them: there are too many, and the data
    /// say which to try.
    pub fn changes(&self, reach: usize) -> Result<Vec<Change>, GraphError> {
        self.check_pairwise()?;
        let mut all = vec![];
        for latent in self.latents().iter().copied() {
            let others = self.neighbours(latent).filter(|&v| self.is_latent(v));
            for gone in others.filter(|&other| other > latent) {
                all.push(Change::Merge { kept: latent, gone });
            }
        }
        for &observation in self.observations() {
            let from = self.latent_of(observation);
            for &to in self.latents().iter().filter(|&&to| Some(to) != from) {
                if from.is_some_and(|from| self.path(from, to).len() <= reach) {
                    all.push(Change::Move { observation, to });
                }
            }
        }
        all.extend(self.interchanges().into_iter().map(Change::Interchange));
        // The same tree may be reached in several ways: with other names of latents, or by a move and by an interchange.
        let mut seen = BTreeSet::from([self.splits()]);
        let mut kept = vec![];
        for change in all {
            if let Ok(tree) = self.changed(&change)
                && seen.insert(tree.splits())
            {
                kept.push(change);
            }
        }
        Ok(kept)
    }

    /// The divisions of the observations in two that edges make, each as the sorted names of its side without the first name.
    pub fn splits(&self) -> BTreeSet<Vec<String>> {
        let mut names: Vec<&str> = self.observations().iter().map(|&o| self.name(o)).collect();
        names.sort_unstable();
        let mut splits = BTreeSet::new();
        for group in self.latents().iter().flat_map(|&l| self.partition(l)) {
            let mut side: Vec<&str> = group.iter().map(|&o| self.name(o)).collect();
            side.sort_unstable();
            if side.binary_search(&names[0]).is_ok() {
                let other = names.iter().filter(|n| side.binary_search(n).is_err());
                side = other.copied().collect();
            }
            if side.len() > 1 && side.len() + 1 < names.len() {
                splits.insert(side.into_iter().map(str::to_owned).collect());
            }
        }
        splits
    }

    fn check_pairwise(&self) -> Result<(), GraphError> {
        let wide = (self.factors()).find(|&factor| self.variables_of(factor).len() != 2);
        match wide {
            None => Ok(()),
            Some(factor) => Err(GraphError::WideFactor {
                members: self.names_of(factor),
            }),
        }
    }

    /// The tree after a change. Variables that stay keep their names and their order.
    pub fn changed(&self, change: &Change) -> Result<FactorTree, GraphError> {
        self.check_pairwise()?;
        let foreign = || GraphError::NoChange {
            change: change.sentence(self),
        };
        // Edges of variables by number; a new variable has the next one.
        let mut edges: Vec<[usize; 2]> = self
            .factors()
            .map(|f| [0, 1].map(|i| self.variables_of(f)[i].index()))
            .collect();
        let mut gone = None;
        let mut added = None;
        match change {
            Change::Interchange(step) => return self.interchanged(*step),
            Change::Move { observation, to } => {
                let from = self.latent_of(*observation).ok_or_else(foreign)?;
                if from == *to || !self.is_latent(*to) {
                    return Err(foreign());
                }
                let own = self.factors_of(*observation)[0].index();
                edges[own] = [to.index(), observation.index()];
                let touches = |e: &[usize; 2]| e.contains(&from.index());
                let left: Vec<usize> = (0..edges.len()).filter(|&e| touches(&edges[e])).collect();
                if let [one, other] = left[..] {
                    // Between its two branches it would be an idle relay.
                    let end = |e: usize| {
                        let [a, b] = edges[e];
                        if a == from.index() { b } else { a }
                    };
                    let (mut a, mut b) = (end(one), end(other));
                    if !self.is_latent(VariableId::new(a)) {
                        std::mem::swap(&mut a, &mut b);
                    }
                    edges[one] = [a, b];
                    edges.remove(other);
                    gone = Some(from.index());
                }
            }
            Change::Split {
                latent,
                branches,
                name,
            } => {
                let new = self.variable_count();
                let degree = self.factors_of(*latent).len();
                if branches.len() < 2 || branches.len() + 2 > degree {
                    return Err(foreign());
                }
                for branch in branches {
                    let edge = edges
                        .iter_mut()
                        .find(|e| e.contains(&latent.index()) && e.contains(&branch.index()));
                    let edge = edge.ok_or_else(foreign)?;
                    let place = usize::from(edge[1] == latent.index());
                    edge[place] = new;
                }
                edges.push([latent.index(), new]);
                added = Some(name.clone());
            }
            Change::Merge { kept, gone: other } => {
                let joins =
                    |e: &[usize; 2]| e.contains(&kept.index()) && e.contains(&other.index());
                let between = edges.iter().position(joins).ok_or_else(foreign)?;
                edges.remove(between);
                for end in edges.iter_mut().flatten() {
                    if *end == other.index() {
                        *end = kept.index();
                    }
                }
                gone = Some(other.index());
            }
        }
        let mut draft = Unchecked::new();
        let mut number = vec![usize::MAX; self.variable_count() + 1];
        for variable in self.variables().filter(|v| Some(v.index()) != gone) {
            number[variable.index()] = draft.variable(self.name(variable), self.kind(variable));
        }
        if let Some(name) = added {
            number[self.variable_count()] = draft.variable(name, super::Kind::Latent);
        }
        for edge in edges {
            draft.factor(&edge.map(|end| number[end]));
        }
        draft.finish()
    }
}
