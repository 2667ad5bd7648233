//! Variables and factors as they are being written down, before anyone has checked them.

use super::{FactorTree, GraphError, Kind, TimeAxis, check};
use std::collections::HashMap;

/// Unchecked variables and factors; every constructor fills one in and calls [`Unchecked::finish`].
#[derive(Debug, Default)]
pub(super) struct Unchecked {
    pub(super) names: Vec<String>,
    pub(super) kinds: Vec<Kind>,
    /// Where each factor's members start in `members`; the last entry is the end.
    pub(super) starts: Vec<usize>,
    pub(super) members: Vec<usize>,
    /// Of a chain in time.
    pub(super) time: Option<TimeAxis>,
}

impl Unchecked {
    pub(super) fn new() -> Self {
        Unchecked {
            starts: vec![0],
            ..Unchecked::default()
        }
    }

    /// The draft of factors given by names, with variables in order of first appearance, all latent for now.
    pub(super) fn from_names<'a, F>(
        factors: impl Iterator<Item = F>,
    ) -> (Self, HashMap<&'a str, usize>)
    where
        F: IntoIterator<Item = &'a str>,
    {
        let mut draft = Unchecked::new();
        let mut known = HashMap::new();
        for factor in factors {
            for name in factor {
                let variable = *known
                    .entry(name)
                    .or_insert_with(|| draft.variable(name, Kind::Latent));
                draft.members.push(variable);
            }
            draft.starts.push(draft.members.len());
        }
        (draft, known)
    }

    pub(super) fn variable(&mut self, name: impl Into<String>, kind: Kind) -> usize {
        self.names.push(name.into());
        self.kinds.push(kind);
        self.names.len() - 1
    }

    pub(super) fn factor(&mut self, members: &[usize]) {
        self.members.extend_from_slice(members);
        self.starts.push(self.members.len());
    }

    pub(super) fn factor_count(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn factor_members(&self, factor: usize) -> &[usize] {
        &self.members[self.starts[factor]..self.starts[factor + 1]]
    }

    pub(super) fn factor_names(&self, factor: usize) -> Vec<String> {
        self.factor_members(factor)
            .iter()
            .map(|&variable| self.names[variable].clone())
            .collect()
    }

    /// Calls every variable that is in a single factor observed.
    pub(super) fn observe_leaves(&mut self) {
        let mut degree = vec![0_usize; self.names.len()];
        for &variable in &self.members {
            degree[variable] += 1;
        }
        for (kind, degree) in self.kinds.iter_mut().zip(degree) {
            *kind = if degree == 1 {
                Kind::Observed
            } else {
                Kind::Latent
            };
        }
    }

    /// Checks everything; from here on it is a tree.
    pub(super) fn finish(self) -> Result<FactorTree, GraphError> {
        let links = check::Links::new(&self);
        check::check(&self, &links)?;
        Ok(FactorTree::assemble(self, links))
    }
}
