//! What can be wrong with columns and arrays that are to become observations.

/// Columns or arrays that cannot become observations, in a sentence that names the thing and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The model file speaks of an observation that the tree does not have.
    #[error(
        "[observations.{name}] is about an observation that the tree does not have: {}",
        ramp::names::hint(name, known.iter().map(|k| &k[..]))
    )]
    NotInTree {
        /// The observation.
        name: String,
        /// Those that the tree has.
        known: Vec<String>,
    },
    /// Something is wrong with one observation.
    #[error("observation `{name}`: {source}")]
    InObservation {
        /// The observation.
        name: String,
        /// What.
        source: Box<crate::Error>,
    },
    /// Several arrays for one observation.
    #[error(
        "observation `{name}`: one array makes it, whose further axes are the vector; take `{second}` out of its `columns`"
    )]
    SeveralArrays {
        /// The observation.
        name: String,
        /// The second array.
        second: String,
    },
    /// There is no such array.
    #[error("there is no array `{name}`: {}", ramp::names::hint(name, known.iter().map(|k| &k[..])))]
    NoArray {
        /// The array.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// There is no such column, as the data are arrays.
    #[error("there is no column `{name}`")]
    NoColumn {
        /// The column.
        name: String,
    },
    /// Sequences that take too much memory.
    #[error(
        "{sequences} sequences of up to {steps} steps do not fit into memory; if most steps are empty, make the chain's `step` \
         larger, or leave the longest sequences out"
    )]
    TooLarge {
        /// How many sequences.
        sequences: usize,
        /// The steps of the longest.
        steps: usize,
    },
    /// An infinite number in a column.
    #[error("column `{column}` is infinite in data row {row}; replace it or leave it empty")]
    InfiniteCell {
        /// The column.
        column: String,
        /// The row, from 1.
        row: usize,
    },
    /// An infinite number in an array.
    #[error("array `{array}` has infinite numbers; replace them or make them NaN")]
    InfiniteElement {
        /// The array.
        array: String,
    },
    /// A number far beyond those that its scale was learned from.
    #[error(
        "column `{column}` is {value:e} in data row {row}, too large for its scale; replace it, leave it empty, or let `scale` be \"rank\""
    )]
    BeyondScale {
        /// The column.
        column: String,
        /// The row, from 1.
        row: usize,
        /// The number.
        value: f64,
    },
    /// An image from a table.
    #[error(
        "images come from arrays (.npy, .npz), not from tables; for several columns write `kind = \"vector\"`"
    )]
    ImageFromTable,
    /// Categories from an array.
    #[error("categories come from tables, not from arrays")]
    CategoryFromArray,
    /// None of the levels that the user gave occurs.
    #[error(
        "column `{column}` holds none of its `levels`, but `{cell}` and the like; write them as they stand in the file"
    )]
    NoneOfItsLevels {
        /// The column.
        column: String,
        /// The first cell.
        cell: String,
    },
    /// A column of numbers with something else in it.
    #[error(
        "{source}; or, if it is a category after all, write `kind = \"categorical\"` for it in [observations]"
    )]
    AlmostNumbers {
        /// Why it is no column of numbers.
        source: Box<crate::Error>,
    },
    /// Seasons of data that has no dates.
    #[error("a `season` needs the time of every row: a table with a `time` column")]
    SeasonWithoutTime,
    /// Nothing to learn from.
    #[error("{what} has no value in any training row; take it out of the tree")]
    AllMissing {
        /// The column or feature.
        what: String,
    },
    /// The same everywhere.
    #[error("{what} is {value} wherever it is known and can tell nothing; take it out of the tree")]
    Constant {
        /// The column or feature.
        what: String,
        /// Its value.
        value: String,
    },
    /// An array that is the same everywhere.
    #[error(
        "array `{array}` is the same in all training samples and can tell nothing; take it out of the tree"
    )]
    ConstantArray {
        /// The array.
        array: String,
    },
    /// Too many levels.
    #[error(
        "column `{column}` holds text with {levels} different values, too many for a category{}; group them or take it out of the tree",
        if *asked_for { "" } else { " that nobody has asked for" }
    )]
    TooManyLevels {
        /// The column.
        column: String,
        /// How many.
        levels: usize,
        /// Whether the user said that it is a category.
        asked_for: bool,
    },
    /// An array that has not the axes of images.
    #[error(
        "array `{array}` has {shape:?} numbers per sample; an image has height × width or channels × height × width"
    )]
    NotAnImage {
        /// The array.
        array: String,
        /// Its axes per sample.
        shape: Vec<usize>,
    },
    /// An image that is not of bytes.
    #[error("array `{array}` is no array of bytes (uint8), {}", if *trained { "as the model's images were" } else { "which images are" })]
    ImageNotOfBytes {
        /// The array.
        array: String,
        /// Whether a trained model asks for it.
        trained: bool,
    },
    /// A table for a model of images.
    #[error("the model was trained on images from arrays; give it a .npy or .npz file")]
    TrainedOnImages,
    /// Arrays for a model of categories.
    #[error("the model was trained on categories from a table; give it a table")]
    TrainedOnCategories,
    /// An array of another width than in training.
    #[error(
        "array `{array}` has {width} numbers per sample where the model was trained with {trained}"
    )]
    WrongWidth {
        /// The array.
        array: String,
        /// Its numbers per sample.
        width: usize,
        /// Those in training.
        trained: usize,
    },
}
