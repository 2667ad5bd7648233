//! How each latent divides the observations, and which latents are hard to tell from others (Assumption 1).

use super::{FactorId, FactorTree, MessageId, VariableId};

/// Two latents of which one separates all the observations that the other does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeakPair {
    /// The latent that is only weakly identified.
    pub weak: VariableId,
    /// The latent whose partition is as fine.
    pub refined_by: VariableId,
}

impl WeakPair {
    /// The finding in words.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let tree = FactorTree::from_newick("((x1,x2)z2,(x3,x4)z3)z1;")?;
    /// assert_eq!(
    ///     tree.assumption_one()[0].sentence(&tree),
    ///     "z2 separates everything that z1 separates: z1 is only weakly identified"
    /// );
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn sentence(&self, tree: &FactorTree) -> String {
        let (weak, finer) = (tree.name(self.weak), tree.name(self.refined_by));
        format!(
            "{finer} separates everything that {weak} separates: {weak} is only weakly identified"
        )
    }
}

impl FactorTree {
    /// The observations as a variable divides them: those behind each of its factors, in the order of
    /// [`factors_of`](Self::factors_of), each group in ascending order. The variable itself is in none.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let tree = FactorTree::chain(3)?;
    /// let groups: Vec<Vec<&str>> = tree
    ///     .partition(tree.find("z2")?)
    ///     .iter()
    ///     .map(|group| group.iter().map(|&observation| tree.name(observation)).collect())
    ///     .collect();
    /// assert_eq!(groups, [["x.2"], ["x.1"], ["x.3"]]);
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn partition(&self, variable: VariableId) -> Vec<Vec<VariableId>> {
        self.factors_of(variable)
            .iter()
            .map(|&factor| self.behind(factor, variable))
            .collect()
    }

    /// The observations that a message carries, in ascending order.
    pub fn downstream(&self, message: MessageId) -> Vec<VariableId> {
        self.behind(self.message_factor(message), self.message_target(message))
    }

    /// The observations that `variable` sees through `factor`.
    fn behind(&self, factor: FactorId, variable: VariableId) -> Vec<VariableId> {
        let mut found = Vec::new();
        let mut open = vec![(factor, variable)];
        while let Some((factor, from)) = open.pop() {
            for &member in self
                .variables_of(factor)
                .iter()
                .filter(|&&member| member != from)
            {
                if !self.is_latent(member) {
                    found.push(member);
                }
                let onward = self
                    .factors_of(member)
                    .iter()
                    .filter(|&&next| next != factor);
                open.extend(onward.map(|&next| (next, member)));
            }
        }
        found.sort_unstable();
        found
    }

    /// The ordered pairs of latents that break Assumption 1: no two observations are together at the finer latent
    /// and apart at the weak one. This is advice: such a tree is valid, and often trains well.
    ///
    /// A line of `n` latents without branches has `n²` such pairs; take from [`weak_pairs`](Self::weak_pairs) what you need
    /// if that may happen.
    pub fn assumption_one(&self) -> Vec<WeakPair> {
        self.weak_pairs().collect()
    }

    /// The pairs of [`assumption_one`](Self::assumption_one) one by one, ordered by the weak latent, in time
    /// linear in the tree and the pairs.
    ///
    /// All that a weak latent sees away from the finer one is together there, so the weak latent has only two factors;
    /// and what the finer one sees towards the weak one must be no more than that, so nothing branches off between
    /// them. As observations stand behind every branch, the way from one to the other is a line of latents
    /// with two factors each, joined by factors of two variables.
    pub fn weak_pairs(&self) -> impl Iterator<Item = WeakPair> + Clone {
        let weak = self
            .latents()
            .iter()
            .copied()
            .filter(|&latent| self.factors_of(latent).len() == 2);
        weak.flat_map(move |weak| {
            self.factors_of(weak).iter().flat_map(move |&factor| {
                let first = self.across(factor, weak).map(|finer| (factor, finer));
                let line = std::iter::successors(first, move |&(factor, finer)| {
                    let next = match *self.factors_of(finer) {
                        [a, b] => {
                            if a == factor {
                                b
                            } else {
                                a
                            }
                        }
                        _ => return None,
                    };
                    self.across(next, finer).map(|finer| (next, finer))
                });
                line.map(move |(_, finer)| WeakPair {
                    weak,
                    refined_by: finer,
                })
            })
        })
    }

    /// The latent at the other end of a factor of two variables.
    fn across(&self, factor: FactorId, variable: VariableId) -> Option<VariableId> {
        match *self.variables_of(factor) {
            [a, b] => {
                Some(if a == variable { b } else { a }).filter(|&other| self.is_latent(other))
            }
            _ => None,
        }
    }
}
