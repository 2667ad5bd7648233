//! Writing a tree down variable by variable and factor by factor.

use super::unchecked::Unchecked;
use super::{FactorTree, GraphError, Kind, find};
use std::collections::HashMap;

/// A tree in the making; see [`FactorTree::builder`]. Mistakes are reported by [`build`](Self::build).
///
/// ```
/// use ramp::graph::FactorTree;
///
/// let tree = FactorTree::builder()
///     .latent("mood")
///     .latent("sleep")
///     .observed("diary")
///     .observed("pulse")
///     .observed("steps")
///     .factor(["mood", "diary"])
///     .factor(["mood", "sleep", "steps"])
///     .factor(["sleep", "pulse"])
///     .build()?;
/// assert_eq!(tree.latents().len(), 2);
/// # Ok::<(), ramp::graph::GraphError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FactorTreeBuilder {
    variables: Vec<(String, Kind)>,
    factors: Vec<Vec<String>>,
}

impl FactorTreeBuilder {
    /// Adds a latent variable.
    pub fn latent(mut self, name: impl Into<String>) -> Self {
        self.variables.push((name.into(), Kind::Latent));
        self
    }

    /// Adds an observed variable.
    pub fn observed(mut self, name: impl Into<String>) -> Self {
        self.variables.push((name.into(), Kind::Observed));
        self
    }

    /// Joins variables by a factor; they may be declared before or after it.
    pub fn factor<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.factors
            .push(names.into_iter().map(Into::into).collect());
        self
    }

    /// Checks what was written down.
    pub fn build(self) -> Result<FactorTree, GraphError> {
        let names = self.variables.iter().map(|(name, _)| name.as_str());
        let known: HashMap<&str, usize> = names.clone().zip(0..).collect();
        let mut draft = Unchecked::new();
        for factor in &self.factors {
            for name in factor {
                let variable = known
                    .get(name.as_str())
                    .ok_or_else(|| find::unknown(name, names.clone()))?;
                draft.members.push(*variable);
            }
            draft.starts.push(draft.members.len());
        }
        for (name, kind) in self.variables {
            draft.variable(name, kind);
        }
        draft.finish()
    }
}
