//! What can be wrong with observations, as sentences that name the observation and the fix.

/// Why data cannot be used as it is.
///
/// ```
/// use ramp::data::{DataError, Dataset};
///
/// let error = Dataset::new().observe("x", 1, vec![0.5, f32::INFINITY]).unwrap_err();
/// assert!(matches!(error, DataError::Infinite { row: 1, .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A number that is infinite.
    #[error("observation `{name}` is infinite in row {row}{}; replace it or mark it missing with NaN", at(*.step))]
    Infinite {
        /// The observation.
        name: String,
        /// The sample.
        row: usize,
        /// The step, if it is a sequence.
        step: Option<usize>,
    },
    /// A mask that does not fit its values.
    #[error("observation `{name}` has {bytes} bytes but a mask for {mask} samples of {features}")]
    MaskLength {
        /// The observation.
        name: String,
        /// How many bytes there are.
        bytes: usize,
        /// How many entries the mask has.
        mask: usize,
        /// Bytes per entry.
        features: usize,
    },
    /// Numbers that do not make whole samples.
    #[error(
        "observation `{name}` has {numbers} numbers, which is not a whole number of samples of {width}"
    )]
    PartOfSample {
        /// The observation.
        name: String,
        /// How many numbers there are.
        numbers: usize,
        /// Numbers per sample, all steps included.
        width: usize,
    },
    /// Observations of different numbers of samples.
    #[error("observation `{name}` has {rows} samples but `{other}` has {expected}")]
    OtherRows {
        /// The observation.
        name: String,
        /// Its samples.
        rows: usize,
        /// One that was there before.
        other: String,
        /// Its samples.
        expected: usize,
    },
    /// Sequences of different numbers of steps.
    #[error(
        "sequence `{name}` has {steps} steps but `{other}` has {expected}; pad the shorter one with NaN"
    )]
    OtherSteps {
        /// The sequence.
        name: String,
        /// Its steps.
        steps: usize,
        /// One that was there before.
        other: String,
        /// Its steps.
        expected: usize,
    },
    /// Two observations of one name.
    #[error("observation `{name}` is given twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// An observation that is asked for and not there.
    #[error("observation `{name}` named in the tree is not in the data, which has {}", some(.have))]
    Unknown {
        /// The name asked for.
        name: String,
        /// What there is.
        have: Vec<String>,
    },
    /// Lengths for another number of sequences.
    #[error("there are {lengths} lengths for {rows} sequences")]
    LengthCount {
        /// How many lengths were given.
        lengths: usize,
        /// How many samples there are.
        rows: usize,
    },
    /// A length beyond the last step that there is data for.
    #[error(
        "sequence {sequence} has {length} steps but there is data for {steps}; shorten its length or pad it with NaN"
    )]
    LengthBeyondData {
        /// Which sequence, from 0.
        sequence: usize,
        /// The length given.
        length: u32,
        /// Steps of the data.
        steps: usize,
    },
    /// A sequence where the model sees a single observation.
    #[error(
        "`{name}` is a sequence in the data, but the tree has no time axis; make the tree with FactorTree::sequence"
    )]
    UnexpectedSequence {
        /// The observation.
        name: String,
    },
    /// A single observation where the model sees a sequence.
    #[error(
        "`{name}` is a series of the chain, but in the data it has no time axis; give it with Dataset::observe_sequence"
    )]
    ExpectedSequence {
        /// The series.
        name: String,
    },
    /// Ranks that hold parts of data sets that do not go together.
    #[error("rank {rank} has other data than rank 0; give all ranks the same file")]
    OtherShape {
        /// The rank.
        rank: usize,
    },
    /// Another rank that holds a part of the samples is gone.
    #[error(transparent)]
    Collective(#[from] crate::collective::CollectiveError),
    /// There is nothing to work on.
    #[error("the data set has no samples")]
    Empty,
}

fn at(step: Option<usize>) -> String {
    step.map_or(String::new(), |step| format!(" at step {}", step + 1))
}

/// The first few names.
fn some(have: &[String]) -> String {
    const LISTED: usize = 8;
    let mut names: Vec<&str> = have.iter().take(LISTED).map(String::as_str).collect();
    match have.len() {
        0 => return "none".into(),
        n if n > LISTED => names.push("…"),
        _ => {}
    }
    names.join(", ")
}
