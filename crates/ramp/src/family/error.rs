//! What can be wrong with a family or with the parameters of a belief.

/// What is wrong with a family as it was written, or with natural parameters that should make a belief of it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// A product of nothing.
    #[error("a latent needs at least one family")]
    Empty,
    /// No family has this name.
    #[error("unknown family `{name}`; known are {}", super::NAMES.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// A name for a family of one's own that could be taken for something else in `name(2) x name(3)`.
    #[error(
        "`{name}` cannot name a family; use letters, digits, `_` and `-`, and more than a lone `x`"
    )]
    Name {
        /// What it should be called.
        name: String,
    },
    /// A name for a family of one's own that a built-in one has.
    #[error("there is a built-in family `{name}`; give yours another name")]
    Taken {
        /// What it should be called.
        name: String,
    },
    /// A family's size is no whole number in parentheses.
    #[error("family `{text}` should be written like `gaussian(2)`, with a whole number")]
    Size {
        /// What was written.
        text: String,
    },
    /// A family too small or too large to make sense.
    #[error("family {family} needs {setting} between {least} and {most}, not {value}")]
    OutOfRange {
        /// The family's name.
        family: String,
        /// What its setting is called.
        setting: &'static str,
        /// The least it can be.
        least: usize,
        /// The most.
        most: usize,
        /// What it is.
        value: usize,
    },
    /// More natural parameters than any message should have.
    #[error(
        "a latent of family {family} has {parameters} natural parameters, and {most} are the most; make it smaller, or take diagonal_gaussian in place of gaussian"
    )]
    TooManyParameters {
        /// The family, or the product.
        family: String,
        /// How many it has.
        parameters: usize,
        /// How many it may have.
        most: usize,
    },
    /// Another number of natural parameters than the family has.
    #[error("{belief} has {expected} natural parameters, not {found}")]
    Count {
        /// The family.
        belief: String,
        /// How many it has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// Natural parameters that make no belief.
    #[error("a belief of family {family} {why}")]
    Parameters {
        /// The family.
        family: String,
        /// What it needs.
        why: ParameterError,
    },
}

/// Why natural parameters make no belief of a family: the half of a sentence after the family's name.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A parameter that must be above zero is not.
    #[error("needs positive parameters, not {value}")]
    NotPositive {
        /// What it is.
        value: f64,
    },
    /// A parameter is infinite or not a number.
    #[error("needs finite parameters")]
    NotFinite,
    /// A precision matrix has no Cholesky factor.
    #[error("needs a positive definite precision")]
    NotPositiveDefinite,
    /// What a family of one's own says.
    #[error("{0}")]
    Own(String),
}
