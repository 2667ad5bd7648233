//! Trees from lists of edges or factors, and the ready-made shapes: chain, star, balanced tree.

use super::unchecked::Unchecked;
use super::{FactorTree, GraphError, Kind, TimeAxis, find};

/// The most variables that a ready-made shape may have: a slip in its size must not fill the memory.
pub const MAX_VARIABLES: usize = 1 << 22;

impl FactorTree {
    /// The pairwise tree of these edges: nodes with one edge are observations, all others latents, in order of
    /// first appearance.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let tree = FactorTree::from_edges(&[("z", "x1"), ("z", "x2"), ("z", "x3")])?;
    /// assert_eq!(tree.latents().len(), 1);
    /// assert_eq!(tree, FactorTree::star(3)?);
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn from_edges<A: AsRef<str>, B: AsRef<str>>(edges: &[(A, B)]) -> Result<Self, GraphError> {
        let (mut draft, _) =
            Unchecked::from_names(edges.iter().map(|(a, b)| [a.as_ref(), b.as_ref()]));
        draft.observe_leaves();
        draft.finish()
    }

    /// The tree of these factors of two or more variables, in order of first appearance. Without a list of
    /// observed variables, those in a single factor are observed.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let factors = [vec!["a", "b", "x1"], vec!["a", "x2"], vec!["b", "x3"]];
    /// let tree = FactorTree::from_factors(&factors, None)?;
    /// let into_a: Vec<String> =
    ///     tree.messages_into(tree.find("a")?).map(|message| tree.message_name(message)).collect();
    /// assert_eq!(into_a, ["(b,x1)>a", "x2>a"]);
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn from_factors<S: AsRef<str>>(
        factors: &[Vec<S>],
        observed: Option<&[S]>,
    ) -> Result<Self, GraphError> {
        let (mut draft, known) = Unchecked::from_names(
            factors
                .iter()
                .map(|factor| factor.iter().map(|name| name.as_ref())),
        );
        match observed {
            None => draft.observe_leaves(),
            Some(observed) => {
                for name in observed {
                    let name = name.as_ref();
                    let variable = known.get(name).ok_or_else(|| {
                        find::unknown(name, draft.names.iter().map(String::as_str))
                    })?;
                    draft.kinds[*variable] = Kind::Observed;
                }
            }
        }
        draft.finish()
    }

    /// A hidden chain of `steps` steps with one observed series `x`: latents `z1`, `z2`, … one after the other, each with an
    /// observation of its own. See [`FactorTree::sequence`].
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let tree = FactorTree::chain(100)?;
    /// assert_eq!((tree.latents().len(), tree.observations().len(), tree.factor_count()), (100, 100, 199));
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn chain(steps: usize) -> Result<Self, GraphError> {
        Self::sequence(steps, &["x"])
    }

    /// A hidden chain of `steps` steps with several series observed at each. It has a [time axis](FactorTree::time_axis):
    /// its variables are addressed by series and step, and its data are sequences.
    /// [`Tying::Role`](super::Tying::Role) gives each series its network.
    ///
    /// ```
    /// use ramp::graph::{FactorTree, Tying};
    ///
    /// let tree = FactorTree::sequence(30, &["heart", "sleep"])?;
    /// assert_eq!(
    ///     Tying::Role.assign(&tree).keys,
    ///     ["observation.heart", "observation.sleep", "backward", "forward"]
    /// );
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn sequence<S: AsRef<str>>(steps: usize, series: &[S]) -> Result<Self, GraphError> {
        let shape = || format!("a chain of length {steps}");
        if steps < 2 {
            return Err(GraphError::TooSmall {
                shape: shape(),
                least: "two steps are the least",
            });
        }
        let each = series.len();
        if steps.saturating_mul(each + 1) > MAX_VARIABLES {
            return Err(GraphError::TooLarge { shape: shape() });
        }
        let series: Vec<String> = series.iter().map(|name| name.as_ref().to_owned()).collect();
        for (position, name) in series.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(GraphError::EmptyName {
                    number: position + 1,
                });
            }
            if series[..position].contains(name) {
                return Err(GraphError::DuplicateName { name: name.clone() });
            }
        }
        let mut draft = Unchecked::new();
        for step in 1..=steps {
            draft.variable(format!("{}{step}", TimeAxis::LATENT), Kind::Latent);
        }
        for step in 1..=steps {
            for name in &series {
                // For people: no two are alike, since the step stands after the last point.
                draft.variable(format!("{name}.{step}"), Kind::Observed);
            }
        }
        for leaf in 0..steps * each {
            draft.factor(&[leaf / each, steps + leaf]);
        }
        for step in 1..steps {
            draft.factor(&[step - 1, step]);
        }
        draft.time = Some(TimeAxis::new(series, steps));
        draft.finish()
    }

    /// Whether the latents are joined one to the next, in order, by factors of two variables.
    pub fn is_chain(&self) -> bool {
        let mut rank = vec![0; self.variable_count()];
        for (position, latent) in self.latents().iter().enumerate() {
            rank[latent.index()] = position;
        }
        // Each factor with several latents joins just two, consecutive ones; the tree's being connected does the rest.
        self.factors().all(|factor| {
            let members = self.variables_of(factor);
            match *members {
                [a, b] if self.is_latent(a) && self.is_latent(b) => {
                    rank[a.index()].abs_diff(rank[b.index()]) == 1
                }
                _ => members.iter().filter(|&&m| self.is_latent(m)).count() < 2,
            }
        })
    }

    /// One latent `z` with `count` observations `x1`, `x2`, …
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// assert_eq!(FactorTree::star(3)?.to_newick()?, "(x1,x2,x3)z;");
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn star(count: usize) -> Result<Self, GraphError> {
        let shape = || format!("a star with {count} observations");
        if count < 2 {
            return Err(GraphError::TooSmall {
                shape: shape(),
                least: "two observations are the least",
            });
        }
        if count >= MAX_VARIABLES {
            return Err(GraphError::TooLarge { shape: shape() });
        }
        let mut draft = Unchecked::new();
        let latent = draft.variable("z", Kind::Latent);
        for number in 1..=count {
            let observation = draft.variable(format!("x{number}"), Kind::Observed);
            draft.factor(&[latent, observation]);
        }
        draft.finish()
    }

    /// The complete tree of `depth` levels, root and leaves included, with `arity` children everywhere: latents
    /// `z1`, `z2`, … level by level from the root, observations `x1`, `x2`, … from left to right.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// // The tree of the paper's first experiments.
    /// let tree = FactorTree::balanced(4, 2)?;
    /// assert_eq!((tree.latents().len(), tree.observations().len()), (7, 8));
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn balanced(depth: usize, arity: usize) -> Result<Self, GraphError> {
        let shape = || format!("a balanced tree of depth {depth} and arity {arity}");
        if depth < 2 || arity < 2 {
            return Err(GraphError::TooSmall {
                shape: shape(),
                least: "depth 2 and arity 2 are the least",
            });
        }
        let mut latents = 0_usize;
        let mut level = 1_usize;
        for _ in 1..depth {
            latents += level;
            level = level.saturating_mul(arity);
            if level > MAX_VARIABLES - latents {
                return Err(GraphError::TooLarge { shape: shape() });
            }
        }
        let mut draft = Unchecked::new();
        for number in 1..=latents {
            draft.variable(format!("z{number}"), Kind::Latent);
        }
        for number in 1..=level {
            draft.variable(format!("x{number}"), Kind::Observed);
        }
        // In level order the children of node p are the `arity` nodes from p·arity + 1 on.
        for child in 1..latents + level {
            draft.factor(&[(child - 1) / arity, child]);
        }
        draft.finish()
    }
}
