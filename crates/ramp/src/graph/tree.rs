//! The factor tree itself: its storage and what can be asked of it.

use super::check::Links;
use super::unchecked::Unchecked;
use super::{FactorId, FactorTreeBuilder, TimeAxis, VariableId};

/// Whether a variable is inferred or seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Inferred: it has a belief and receives messages.
    Latent,
    /// Seen in the data: it only sends.
    Observed,
}

/// Variables joined by factors without cycles: which latents and observations depend on each other directly.
///
/// An instance is valid by construction: connected and acyclic, with uniquely named variables, every observed
/// variable in exactly one factor and every latent in at least two, so that observations stand behind each of them.
/// A pairwise tree is the case where every factor joins two variables.
///
/// Methods that take an id expect one of this tree and panic on an id of a larger tree.
///
/// ```
/// use ramp::graph::{FactorTree, Kind};
///
/// let tree = FactorTree::chain(3)?;
/// let z2 = tree.find("z2")?;
/// assert_eq!(tree.kind(z2), Kind::Latent);
/// let senders: Vec<String> = tree.messages_into(z2).map(|message| tree.message_name(message)).collect();
/// assert_eq!(senders, ["x.2>z2", "z1>z2", "z3>z2"]);
/// # Ok::<(), ramp::graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorTree {
    names: Vec<String>,
    kinds: Vec<Kind>,
    /// Compressed rows: the members of factor `f` are `members[factor_starts[f]..factor_starts[f + 1]]`.
    factor_starts: Vec<usize>,
    members: Vec<VariableId>,
    /// The same the other way round, each row in ascending order.
    variable_starts: Vec<usize>,
    adjacent: Vec<FactorId>,
    latents: Vec<VariableId>,
    observations: Vec<VariableId>,
    /// Variables sorted by name.
    by_name: Vec<VariableId>,
    /// The messages into variable `v` are `message_starts[v]..message_starts[v + 1]`: none for an observation.
    message_starts: Vec<usize>,
    message_factors: Vec<FactorId>,
    message_targets: Vec<VariableId>,
    /// Of a chain in time.
    pub(super) time: Option<TimeAxis>,
}

impl FactorTree {
    /// Stores a draft that has passed every check.
    pub(super) fn assemble(draft: Unchecked, links: Links) -> Self {
        let count = draft.names.len();
        let all = || (0..count).map(VariableId::new);
        let of_kind = |kind| {
            all()
                .filter(|variable| draft.kinds[variable.index()] == kind)
                .collect::<Vec<_>>()
        };
        let latents = of_kind(Kind::Latent);
        let observations = of_kind(Kind::Observed);
        let mut by_name: Vec<VariableId> = all().collect();
        by_name.sort_unstable_by(|a, b| draft.names[a.index()].cmp(&draft.names[b.index()]));

        let adjacent: Vec<FactorId> = links.factors.into_iter().map(FactorId::new).collect();
        let mut message_starts = Vec::with_capacity(count + 1);
        let mut message_factors = Vec::new();
        let mut message_targets = Vec::new();
        for variable in all() {
            message_starts.push(message_factors.len());
            if draft.kinds[variable.index()] == Kind::Latent {
                let row =
                    &adjacent[links.starts[variable.index()]..links.starts[variable.index() + 1]];
                message_factors.extend_from_slice(row);
                message_targets.extend(row.iter().map(|_| variable));
            }
        }
        message_starts.push(message_factors.len());

        FactorTree {
            names: draft.names,
            kinds: draft.kinds,
            factor_starts: draft.starts,
            members: draft.members.into_iter().map(VariableId::new).collect(),
            variable_starts: links.starts,
            adjacent,
            latents,
            observations,
            by_name,
            message_starts,
            message_factors,
            message_targets,
            time: draft.time,
        }
    }

    /// A tree written down variable by variable and factor by factor.
    pub fn builder() -> FactorTreeBuilder {
        FactorTreeBuilder::default()
    }

    /// All variables, in order.
    pub fn variables(
        &self,
    ) -> impl ExactSizeIterator<Item = VariableId> + DoubleEndedIterator + Clone + use<> {
        (0..self.names.len()).map(VariableId::new)
    }

    /// All factors, in order.
    pub fn factors(
        &self,
    ) -> impl ExactSizeIterator<Item = FactorId> + DoubleEndedIterator + Clone + use<> {
        (0..self.factor_starts.len() - 1).map(FactorId::new)
    }

    /// The latent variables, in order; there is at least one.
    pub fn latents(&self) -> &[VariableId] {
        &self.latents
    }

    /// The observed variables, in order; there are at least two.
    pub fn observations(&self) -> &[VariableId] {
        &self.observations
    }

    /// How many variables there are.
    pub fn variable_count(&self) -> usize {
        self.names.len()
    }

    /// How many factors there are.
    pub fn factor_count(&self) -> usize {
        self.factor_starts.len() - 1
    }

    /// The latent from which drawings, depths and the directions "inward" and "outward" are reckoned: the first one.
    pub fn root(&self) -> VariableId {
        self.latents[0]
    }

    /// The name of a variable.
    pub fn name(&self, variable: VariableId) -> &str {
        &self.names[variable.index()]
    }

    /// Whether a variable is latent or observed.
    pub fn kind(&self, variable: VariableId) -> Kind {
        self.kinds[variable.index()]
    }

    /// Whether a variable is latent.
    pub fn is_latent(&self, variable: VariableId) -> bool {
        self.kind(variable) == Kind::Latent
    }

    /// The factors that a variable is in, in ascending order.
    pub fn factors_of(&self, variable: VariableId) -> &[FactorId] {
        &self.adjacent
            [self.variable_starts[variable.index()]..self.variable_starts[variable.index() + 1]]
    }

    /// The variables of a factor, in the order in which they were given.
    pub fn variables_of(&self, factor: FactorId) -> &[VariableId] {
        &self.members[self.factor_starts[factor.index()]..self.factor_starts[factor.index() + 1]]
    }

    /// The latent that an observation hangs on, where it is the only one and no other observation stands between them: their
    /// factor joins these two.
    pub fn latent_of(&self, observation: VariableId) -> Option<VariableId> {
        let members = self.variables_of(*self.factors_of(observation).first()?);
        let latent = members.iter().find(|&&v| self.is_latent(v)).copied();
        latent.filter(|_| members.len() == 2)
    }

    /// Whether every factor joins exactly two variables.
    pub fn is_pairwise(&self) -> bool {
        self.factors()
            .all(|factor| self.variables_of(factor).len() == 2)
    }

    pub(super) fn sorted_by_name(&self) -> &[VariableId] {
        &self.by_name
    }

    pub(super) fn message_starts(&self) -> &[usize] {
        &self.message_starts
    }

    pub(super) fn message_factors(&self) -> &[FactorId] {
        &self.message_factors
    }

    pub(super) fn message_targets(&self) -> &[VariableId] {
        &self.message_targets
    }

    pub(super) fn names_of(&self, factor: FactorId) -> Vec<String> {
        self.variables_of(factor)
            .iter()
            .map(|&variable| self.name(variable).to_owned())
            .collect()
    }
}
