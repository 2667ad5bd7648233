//! What can be wrong with a tree, as sentences that name the nodes and the fix.

use crate::names::{joined, list};

/// Why something is not a tree that messages can pass on.
///
/// ```
/// use ramp::graph::FactorTree;
///
/// let error = FactorTree::from_edges(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "x")]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the variables `a` – `b` – `c` – `a` form a cycle: take one of these links out to make it a tree"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// There is nothing to build a tree from.
    #[error(
        "the tree has no factors: a smallest tree is one latent with two observations, for example the edges z–x1 and z–x2"
    )]
    Empty,
    /// A name is missing.
    #[error("variable {number} has an empty name: give every variable a name of its own")]
    EmptyName {
        /// Which variable, counted from 1 in order of appearance.
        number: usize,
    },
    /// Two variables share a name.
    #[error("`{name}` is the name of two variables: rename one of them")]
    DuplicateName {
        /// The shared name.
        name: String,
    },
    /// A name that no variable has.
    #[error("there is no variable `{name}`: {hint}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The nearest name, or what there is.
        hint: String,
    },
    /// A name that no message has.
    #[error("there is no message `{name}`: {hint}")]
    UnknownMessage {
        /// The name asked for.
        name: String,
        /// The nearest name, or what there is.
        hint: String,
    },
    /// An interchange that belongs to another tree.
    #[error(
        "factors {first} and {second} do not hang on two latents that factor {across} joins: take an interchange of this tree"
    )]
    NoInterchange {
        /// The factor across which branches should be swapped, counted from 1.
        across: usize,
        /// The factor of one branch.
        first: usize,
        /// The factor of the other branch.
        second: usize,
    },
    /// A change that does not fit this tree.
    #[error("the tree cannot be changed so that {change}: take a change of this tree")]
    NoChange {
        /// The change in words.
        change: String,
    },
    /// A factor of more than two variables where only pairs can be changed.
    #[error("({}) are joined by one factor: changes are tried on trees whose factors join two variables each", list(.members))]
    WideFactor {
        /// Its variables.
        members: Vec<String>,
    },
    /// Two trees that are compared have different observations.
    #[error(
        "the observation `{name}` is in one of the two trees only: trees are compared over the same observations"
    )]
    OtherObservations {
        /// The observation.
        name: String,
    },
    /// A factor that joins nothing.
    #[error("factor {number} ({}) joins fewer than two variables: add another variable or remove the factor", list(.members))]
    SmallFactor {
        /// Which factor, counted from 1.
        number: usize,
        /// Its variables.
        members: Vec<String>,
    },
    /// A factor that holds a variable twice.
    #[error("factor {number} ({}) holds `{name}` twice: name each of its variables once", list(.members))]
    RepeatedMember {
        /// Which factor, counted from 1.
        number: usize,
        /// Its variables.
        members: Vec<String>,
        /// The variable that appears twice.
        name: String,
    },
    /// An observed variable that is not a leaf.
    #[error(
        "the observed variable `{name}` is in {count} factors, among them ({}) and ({}): \
         an observation belongs to one factor, so put a latent between them or make `{name}` latent",
        list(.first), list(.second)
    )]
    SharedObservation {
        /// The observed variable.
        name: String,
        /// In how many factors it is.
        count: usize,
        /// The variables of the first of these factors.
        first: Vec<String>,
        /// The variables of the second.
        second: Vec<String>,
    },
    /// A variable that is in no factor.
    #[error("`{name}` is in no factor: join it to another variable or remove it")]
    Isolated {
        /// The variable.
        name: String,
    },
    /// There is no latent variable.
    #[error(
        "the tree has only observed variables ({}): add a latent that joins them",
        list(.observed)
    )]
    NoLatent {
        /// The observed variables.
        observed: Vec<String>,
    },
    /// A factor that joins observations directly.
    #[error("factor {number} ({}) joins only observations: put a latent between them", list(.members))]
    OnlyObservations {
        /// Which factor, counted from 1.
        number: usize,
        /// Its variables.
        members: Vec<String>,
    },
    /// Two factors that share two variables.
    #[error(
        "`{first}` and `{second}` are joined by two factors: keep one of them, or join all their variables in one factor"
    )]
    Parallel {
        /// One of the shared variables.
        first: String,
        /// The other.
        second: String,
    },
    /// A way from a variable back to itself.
    #[error(
        "the variables {} form a cycle: take one of these links out to make it a tree",
        ring(.nodes)
    )]
    Cycle {
        /// The variables along the cycle, each once.
        nodes: Vec<String>,
    },
    /// Variables that no path joins.
    #[error(
        "the tree falls apart into {} pieces, around {}: join them, or fit each one as a model of its own",
        .parts.len(), list(.parts)
    )]
    Disconnected {
        /// A variable of each piece.
        parts: Vec<String>,
    },
    /// A latent at the end of a branch.
    #[error(
        "latent `{latent}` leads to no observation: it hangs on `{neighbour}` alone; \
         remove it, attach an observation to it, or make it observed"
    )]
    Unobserved {
        /// The latent.
        latent: String,
        /// The only variable that it is joined to.
        neighbour: String,
    },
    /// A latent that a single factor reaches: it cannot carry dependence between anything.
    #[error(
        "latent `{latent}` hangs loose: it is only in the factor ({}), so it explains nothing between two sides; \
         remove it, attach an observation to it, or make it observed",
        list(.members)
    )]
    Loose {
        /// The latent.
        latent: String,
        /// The variables of its only factor.
        members: Vec<String>,
    },
    /// A size too small for a ready-made shape.
    #[error("{shape} is too small: {least}")]
    TooSmall {
        /// What was asked for.
        shape: String,
        /// The least that works.
        least: &'static str,
    },
    /// A size beyond what a ready-made shape may take.
    #[error(
        "{shape} has more than {} variables: choose a smaller size",
        super::MAX_VARIABLES
    )]
    TooLarge {
        /// What was asked for.
        shape: String,
    },
    /// A typing mistake in a Newick text.
    #[error("Newick text, {}column {column}: expected {expected}, found {found}", line_prefix(*.line))]
    Newick {
        /// The line, counted from 1.
        line: usize,
        /// The column in that line, counted from 1 in characters.
        column: usize,
        /// What could stand here.
        expected: String,
        /// What stands here.
        found: String,
    },
    /// A tree that Newick cannot write down.
    #[error("the factor ({}) joins {} variables: Newick can only write trees whose factors join two", list(.members), .members.len())]
    NotPairwise {
        /// The variables of the factor.
        members: Vec<String>,
    },
}

fn ring(names: &[String]) -> String {
    let way = joined(names, " – ");
    match names.first() {
        Some(first) => format!("{way} – `{first}`"),
        None => way,
    }
}

fn line_prefix(line: usize) -> String {
    if line > 1 {
        format!("line {line}, ")
    } else {
        String::new()
    }
}
