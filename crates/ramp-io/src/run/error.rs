//! What can be wrong where a model meets its data, and with the folder that it is kept in.

use std::path::PathBuf;

/// A project that cannot be trained or a run that cannot be used, in a sentence that names the thing and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The model file names no data.
    #[error("no data is given: name a `file` in [data]")]
    NoData,
    /// A start as a factor model that the model cannot have.
    #[error(
        "`init = \"factors\"` in [networks] is for trees of Gaussian latents, each message with a network of its own, of at most 150 coordinates and with at least 20 \
         training rows that have every observation now and then; leave `init` out, or take \"shared\""
    )]
    NoFactors,
    /// Too few samples to learn anything from.
    #[error(
        "{} cannot be learned from; at least two are needed, and a few hundred are a start{}",
        match (samples, chain) { (0, _) => "no samples", (_, true) => "a single sequence", (_, false) => "a single row" },
        if *chain { ": `sequence` in the chain names the column that tells sequences apart, and one series is enough if it has more than 100 steps" } else { "" }
    )]
    TooFewSamples {
        /// How many there are.
        samples: usize,
        /// Whether they are sequences.
        chain: bool,
    },
    /// The data became another while it was read.
    #[error("`{}` was changed while it was read; run the command again when it is complete", path.display())]
    DataChanged {
        /// The file.
        path: PathBuf,
    },
    /// Settings for one step of a chain.
    #[error("[latents.{name}]: all steps of a chain have the same family, which [latents] gives")]
    LatentOfChain {
        /// The section's latent.
        name: String,
    },
    /// Settings for a latent that the tree does not have.
    #[error(
        "[latents.{name}] is about a latent that the tree does not have: {}",
        ramp::names::hint(name, known.iter().map(|k| &k[..]))
    )]
    NotInTree {
        /// The latent.
        name: String,
        /// Those that the tree has.
        known: Vec<String>,
    },
    /// A network of its own for an observation that shares one.
    #[error("observation `{name}` cannot have a network of its own: it shares one with others")]
    SharedNetwork {
        /// The observation.
        name: String,
    },
    /// A latent that has the name of a column.
    #[error(
        "`{name}` is a latent of the tree and a column of {}; call the latent something else, or give the column a place among the leaves",
        crate::error::file_or(path.as_deref(), "the data")
    )]
    LatentIsColumn {
        /// The name of both.
        name: String,
        /// The data, if it is a file.
        path: Option<PathBuf>,
    },
    /// The data of a run is not what it was fitted to.
    #[error("the data is not what `{}` was fitted to; give it that data", folder.display())]
    NotItsData {
        /// The run folder.
        folder: PathBuf,
    },
    /// Runs that observe different things cannot be compared.
    #[error("`{name}` is observed in `{}` but not in `{}`: what trees explain can be compared over the same observations only", with.display(), without.display())]
    OtherColumns {
        /// The observation.
        name: String,
        /// The run that has it.
        with: PathBuf,
        /// The run that lacks it.
        without: PathBuf,
    },
    /// Runs that were fitted to different data cannot be compared.
    #[error("`{}` and `{}` were fitted to different data: {what}; fit both to the same rows", one.display(), other.display())]
    OtherRows {
        /// A run.
        one: PathBuf,
        /// Another run.
        other: PathBuf,
        /// How the data differ.
        what: String,
    },
    /// Too few rows to judge changes of the tree by.
    #[error(
        "{rows} held-out rows are too few to judge changes of the tree by: fit with a larger `holdout` in [data]"
    )]
    TooFewHeldOut {
        /// Held-out rows.
        rows: usize,
    },
    /// A chain has no other tree.
    #[error("the steps of a chain follow one another: there is no change of its tree to try")]
    NoChangesOfChains,
    /// No row is unseen by all runs.
    #[error(
        "{}: fit them with the same `holdout` in [data], above 0, and the same `seed` in [train] or `split_seed` in [data]",
        if *shared == 0 { "no row is unseen by all of these runs".to_owned() } else { format!("only {shared} rows are unseen by all of these runs, too few to judge by") }
    )]
    NoSharedRows {
        /// Rows that all runs held out.
        shared: usize,
    },
    /// A file where a run folder is needed.
    #[error("`{}` is a file, where the folder of a finished fit is needed", path.display())]
    IsFile {
        /// The file.
        path: PathBuf,
    },
    /// A folder without a finished run.
    #[error("`{}` is no finished run", folder.display())]
    NotFinished {
        /// The folder.
        folder: PathBuf,
        /// Whether a fit was begun there and can be finished.
        begun: bool,
    },
    /// A run is in the folder already.
    #[error("`{}` holds a run already", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no training to go on with.
    #[error(
        "there is no run in `{}` to go on with{}",
        folder.display(),
        if *gone { ": its checkpoint is gone" } else { "" }
    )]
    NothingToResume {
        /// The folder.
        folder: PathBuf,
        /// Whether there was one.
        gone: bool,
    },
    /// A file is where the folder should be.
    #[error("`{}` is a file", folder.display())]
    FolderIsFile {
        /// The file.
        folder: PathBuf,
    },
    /// A file that would be written over is the model file or the data.
    #[error("`{}` is read, and the run would write over it", path.display())]
    OverInput {
        /// The file.
        path: PathBuf,
    },
    /// A file that would be written over is no run's.
    #[error(
        "`{}` would be written over, and it is not from a run of this version: no run.json beside it names it",
        path.display()
    )]
    NotFromRun {
        /// The file.
        path: PathBuf,
    },
    /// A file that would be written over was changed since the run wrote it.
    #[error(
        "`{}` would be written over, and it was changed since the run wrote it; move it away if you need it, or remove it",
        path.display()
    )]
    ChangedByHand {
        /// The file.
        path: PathBuf,
    },
    /// Another process writes to the folder.
    #[error(
        "another process{} is writing to `{}`; wait until it has ended",
        process.map_or(String::new(), |id| format!(" ({id})")),
        folder.display()
    )]
    Busy {
        /// The folder.
        folder: PathBuf,
        /// The process, if it says.
        process: Option<u32>,
    },
    /// The list of a run's files cannot be read.
    #[error("`{}` is damaged: {why}", path.display())]
    Manifest {
        /// The list.
        path: PathBuf,
        /// What the reader said.
        why: String,
    },
    /// A file of a run is not what the run wrote.
    #[error(
        "`{}` is not what the run wrote: its checksum differs; restore it from a copy or fit the model again",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file of a run is not there.
    #[error("there is no `{}`, so the run is not whole; restore it from a copy or fit the model again", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The weights carry no header of a run.
    #[error("`{}` has a damaged header: {why}", path.display())]
    Header {
        /// The file of weights.
        path: PathBuf,
        /// What the reader said.
        why: String,
    },
    /// A run of a newer version.
    #[error("`{}` was written by a newer version of this software ({software}); this is {this}", path.display())]
    Newer {
        /// The file of weights.
        path: PathBuf,
        /// The version that wrote it.
        software: String,
        /// This version.
        this: &'static str,
    },
    /// A run of an older version.
    #[error(
        "`{}` was written by an older version of this software ({software}), whose runs this one ({this}) does not read; fit the model again",
        path.display()
    )]
    Older {
        /// The file of weights.
        path: PathBuf,
        /// The version that wrote it.
        software: String,
        /// This version.
        this: &'static str,
    },
    /// An array of weights of another size, or with numbers that are not finite.
    #[error("`{}` has a damaged array `{array}`", path.display())]
    DamagedArray {
        /// The file of weights.
        path: PathBuf,
        /// The array.
        array: String,
    },
    /// An array of weights is missing.
    #[error("`{}` lacks the array `{array}`", path.display())]
    MissingArray {
        /// The file of weights.
        path: PathBuf,
        /// The array.
        array: String,
    },
    /// New data lacks a column that the model was trained on.
    #[error(
        "column `{column}`, which the model needs, is not in {}: {}",
        crate::error::file_or(path.as_deref(), "the table"),
        ramp::names::hint(column, known.iter().map(|k| &k[..]))
    )]
    MissingColumn {
        /// The column.
        column: String,
        /// The data, if it is a file.
        path: Option<PathBuf>,
        /// The columns that it has.
        known: Vec<String>,
    },
    /// The run's header cannot be put into JSON.
    #[error("the run cannot be written: {0}")]
    Write(#[source] serde_json::Error),
}
