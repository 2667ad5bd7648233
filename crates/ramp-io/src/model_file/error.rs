//! What can be wrong with a model file.

use crate::time::Interval;
use std::path::PathBuf;

/// A model file that cannot be used, in a sentence that names the place and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// There is no such file.
    #[error("there is no model file `{}`", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// It is a folder.
    #[error("`{}` is a folder; name the model file in it", path.display())]
    IsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// It is a pipe or a device.
    #[error("`{}` is a pipe or a device, not a model file; write it into a file first", path.display())]
    NotAFile {
        /// The pipe.
        path: PathBuf,
    },
    /// It is longer than any model file.
    #[error("`{}` has {megabytes} MB, and a model file has at most {most} MB; is it the data?", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// How long it is.
        megabytes: u64,
        /// How long one may be.
        most: u64,
    },
    /// It is no text.
    #[error("`{}` is not text in UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// Something is wrong inside of it.
    #[error("`{}`: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What.
        source: Box<crate::Error>,
    },
    /// It is no TOML.
    #[error("line {line} is not TOML: {message}")]
    NotToml {
        /// Where the parser gave up, from 1.
        line: usize,
        /// What it said.
        message: String,
    },
    /// It has a version that does not exist yet.
    #[error(
        "the model file has version {version}; this software reads up to {newest}, a newer one may read it"
    )]
    NewerVersion {
        /// The file's version.
        version: i64,
        /// The newest that can be read.
        newest: i64,
    },
    /// It has a version that never existed.
    #[error("there is no version {version} of model files; write `version = 1`")]
    NoSuchVersion {
        /// What the file says.
        version: i64,
    },
    /// A key that no version has had.
    #[error("{} has no setting `{key}`: {}", title(section), ramp::names::hint(key, known.iter().map(|k| &k[..])))]
    UnknownSetting {
        /// The section, empty for the top of the file.
        section: String,
        /// The key.
        key: String,
        /// The keys that there are.
        known: Vec<String>,
    },
    /// A key that had another name in an earlier version.
    #[error(
        "{} has no setting `{key}` any more: it is called `{now}`",
        title(section)
    )]
    RetiredSetting {
        /// The section.
        section: String,
        /// The key's name until now.
        key: String,
        /// Its name from now on.
        now: &'static str,
    },
    /// A key in `[latents]` that is neither a setting nor a latent's table.
    #[error(
        "[latents] has no setting `{key}` (for a latent of that name write [latents.{key}]): {}",
        ramp::names::hint(key, known.iter().copied())
    )]
    UnknownLatentSetting {
        /// The key.
        key: String,
        /// The keys that there are.
        known: &'static [&'static str],
    },
    /// A value that its setting cannot have.
    #[error("`{key}` in {} cannot be {value}: {why}", title(section))]
    WrongValue {
        /// The section, empty for the top of the file.
        section: String,
        /// The setting.
        key: String,
        /// The value, as the file has it.
        value: String,
        /// What it must be.
        why: String,
    },
    /// A value where a table of settings must be.
    #[error(
        "`{key}` in {} must be a table of settings, not {value}",
        title(section)
    )]
    NotATable {
        /// The section, empty for the top of the file.
        section: String,
        /// The setting.
        key: String,
        /// The value, as the file has it.
        value: String,
    },
    /// A number outside of its range.
    #[error("`{key}` in [{section}] must be {range}, not {value}")]
    OutOfRange {
        /// The section.
        section: &'static str,
        /// The setting.
        key: &'static str,
        /// What it may be.
        range: &'static str,
        /// What it is.
        value: f64,
    },
    /// A setting in the wrong section.
    #[error("`{key}` belongs into [{right}], not into [{wrong}]")]
    WrongSection {
        /// The setting.
        key: &'static str,
        /// Where it belongs.
        right: &'static str,
        /// Where it stands.
        wrong: &'static str,
    },
    /// No tree, or more than one.
    #[error(
        "[tree] must say who hangs together in one way, by `newick`, `edges`, `factors` or `chain`; it has {}",
        match ways { 0 => "none".to_string(), n => format!("{n} of them") }
    )]
    NotOneTree {
        /// How many ways it has.
        ways: usize,
    },
    /// An edge that is no pair.
    #[error(
        "edge {number} in [tree] joins {variables} variables; an edge is a pair such as [\"a\", \"b\"], and `factors` joins more"
    )]
    NotAPair {
        /// Which edge, from 1.
        number: usize,
        /// How many it joins.
        variables: usize,
    },
    /// A chain without observations.
    #[error("the chain in [tree] observes nothing; list columns in `observe`")]
    ChainObservesNothing,
    /// A chain whose step is no step.
    #[error("the chain's `step` must be a positive number, not {step}")]
    ChainStep {
        /// What it is.
        step: f64,
    },
    /// Windows that are too short to learn anything from.
    #[error("the chain's `window` must have 4 steps or more, not {window}; 30 to 60 are a start")]
    ChainWindow {
        /// What it is.
        window: u32,
    },
    /// A season that steps cannot follow.
    #[error(
        "the chain's `season` {season} needs a `step` of the same kind, a text for dates or a number, and of half its length at most"
    )]
    ChainSeason {
        /// What it is.
        season: Interval,
    },
    /// A step without a clock.
    #[error("the chain's `step` needs a `time` column to measure")]
    ChainStepWithoutTime,
    /// A size that the family does not have.
    #[error(
        "[{section}]: `{family}` has no `{key}`{}",
        match other { Some(other) => format!("; it has `{other}`"), None => "; write the sizes of a product in parentheses".into() }
    )]
    NoSuchSize {
        /// The section.
        section: String,
        /// The family.
        family: String,
        /// The size that it does not have.
        key: String,
        /// The size that it has.
        other: Option<&'static str>,
    },
    /// Something else than tables in `[observations]`.
    #[error(
        "[observations] has tables of settings only; for an observation `{key}` write [observations.{key}]"
    )]
    ObservationNotATable {
        /// The key.
        key: String,
    },
    /// Settings of an observation that do not go together.
    #[error("[observations.{observation}]: {conflict}")]
    Observation {
        /// The observation.
        observation: String,
        /// What does not go together.
        conflict: ObservationConflict,
    },
    /// A network that cannot be.
    #[error("`{key}` in [{section}]: {why}")]
    Network {
        /// The section.
        section: String,
        /// The setting.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// Something is wrong with a section as a whole.
    #[error("[{section}]: {source}")]
    InSection {
        /// The section.
        section: String,
        /// What.
        source: Box<crate::Error>,
    },
    /// A section that cannot be read.
    #[error("[{section}]: {why}")]
    Section {
        /// The section.
        section: &'static str,
        /// What its reader said.
        why: String,
    },
    /// The resolved file cannot be put into TOML.
    #[error("the model file cannot be written: {0}")]
    Write(#[from] toml::ser::Error),
}

/// Settings of an observation that do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObservationConflict {
    /// A vector without columns.
    #[error("a vector needs its columns: `columns = [\"c1\", \"c2\"]`")]
    VectorWithoutColumns,
    /// A scale for levels.
    #[error("a category has no scale")]
    CategoryWithScale,
    /// Levels for numbers.
    #[error("only a category has levels")]
    LevelsWithoutCategory,
    /// Several columns for one number.
    #[error("one column makes it; write `kind = \"vector\"` for several")]
    SeveralColumns,
}

impl ModelFileError {
    /// An error with the section that it is about.
    pub(super) fn in_section(section: &str, source: impl Into<crate::Error>) -> Self {
        ModelFileError::InSection {
            section: section.into(),
            source: Box::new(source.into()),
        }
    }
}

/// A section in a sentence.
fn title(section: &str) -> String {
    match section {
        "" => "the model file".into(),
        name => format!("[{name}]"),
    }
}
