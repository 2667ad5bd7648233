//! A tree seen from its root: the order in which a sweep visits it, and which way is inward.

use super::{FactorId, FactorTree, VariableId};

/// Every variable after the one it hangs on. Sweeps run along `order`, outward, or against it, inward.
#[derive(Debug)]
pub struct Rooted {
    /// The variables, level by level from the root.
    pub order: Vec<VariableId>,
    /// The factor through which a variable hangs on the tree; none for the root.
    pub entrance: Vec<Option<FactorId>>,
    /// The variable of each factor that is nearest to the root.
    pub head: Vec<VariableId>,
    /// How many factors lie between a variable and the root.
    pub depth: Vec<usize>,
}

impl Rooted {
    /// Seen from the tree's own root, its first latent.
    pub fn new(tree: &FactorTree) -> Self {
        Self::at(tree, tree.root())
    }

    /// Seen from any variable.
    pub fn at(tree: &FactorTree, root: VariableId) -> Self {
        let mut rooted = Rooted {
            order: Vec::with_capacity(tree.variable_count()),
            entrance: vec![None; tree.variable_count()],
            head: vec![root; tree.factor_count()],
            depth: vec![0; tree.variable_count()],
        };
        rooted.order.push(root);
        let mut next = 0;
        while let Some(&variable) = rooted.order.get(next) {
            next += 1;
            for &factor in tree.factors_of(variable) {
                if rooted.entrance[variable.index()] == Some(factor) {
                    continue;
                }
                rooted.head[factor.index()] = variable;
                for &child in tree
                    .variables_of(factor)
                    .iter()
                    .filter(|&&child| child != variable)
                {
                    rooted.entrance[child.index()] = Some(factor);
                    rooted.depth[child.index()] = rooted.depth[variable.index()] + 1;
                    rooted.order.push(child);
                }
            }
        }
        rooted
    }

    /// The factors of a variable that lead away from the root.
    pub fn outward<'a>(
        &self,
        tree: &'a FactorTree,
        variable: VariableId,
    ) -> impl DoubleEndedIterator<Item = FactorId> + use<'a> {
        let entrance = self.entrance[variable.index()];
        tree.factors_of(variable)
            .iter()
            .copied()
            .filter(move |&factor| Some(factor) != entrance)
    }
}
