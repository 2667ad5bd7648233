//! The model file: what a user says about data, tree, latents, observations, networks and training.

use super::sections;
use super::toml_errors::{Section, one_line, plain, shown};
use super::{ModelFileError, retired};
use crate::encode::ScaleKind;
use crate::time::Interval;
use crate::{Error, Result};
use ramp::family::{Belief, Inputs};
use ramp::graph::{FactorTree, Tying};
use ramp::model::Initialisation;
use ramp::network::{MlpSpec, NetworkSpec};
use ramp::train::{Decay, TrainSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The newest form of model files.
const VERSION: i64 = 1;
/// Trees of a million leaves are described in less.
const LONGEST: u64 = 32 << 20;

/// A model file, read and checked as far as it can be without the data.
///
/// ```
/// use ramp_io::ModelFile;
///
/// let file = ModelFile::parse(r#"
///     version = 1
///     [tree]
///     newick = "((q1,q2,q3)anxiety,(q4,q5)anger)distress;"
///     [latents.anger]
///     family = "categorical"
///     levels = 3
/// "#)?;
/// assert_eq!(file.latents.family_of("anger").to_string(), "categorical(3)");
/// let error = ModelFile::parse("[tree]\nnewik = \"(a,b)c;\"").unwrap_err();
/// assert_eq!(error.to_string(), "[tree] has no setting `newik`: did you mean `newick`?");
/// # Ok::<(), ramp_io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// Where the data is and how much of it is held out.
    pub data: DataSettings,
    /// Who hangs together.
    pub tree: TreeSettings,
    /// What the latents are.
    pub latents: LatentSettings,
    /// What the observations are, where they are not what their columns look like.
    pub observations: BTreeMap<String, ObservationSettings>,
    /// The networks.
    pub networks: NetworkSettings,
    /// The settings of training that the file gives.
    pub train: Table,
}

/// Where the data is.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSettings {
    /// The file, relative to the model file.
    pub file: Option<PathBuf>,
    /// The fraction of samples that training never touches: they judge.
    pub holdout: f64,
    /// The fraction of samples that are not learned from but choose the weights.
    pub validation: f64,
    /// Into how many parts those of a small sample are divided, each of which judges a fit to the others; chosen by their number without it.
    pub folds: Option<usize>,
    /// The seed by which samples are dealt out; that of training without it.
    pub split_seed: Option<u64>,
}

impl Default for DataSettings {
    fn default() -> Self {
        DataSettings {
            file: None,
            holdout: 0.1,
            validation: 0.1,
            folds: None,
            split_seed: None,
        }
    }
}

/// Who hangs together.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeSettings {
    /// A tree in Newick's notation.
    Newick(String),
    /// Pairs of variables.
    Edges(Vec<(String, String)>),
    /// Groups of variables.
    Factors(Vec<Vec<String>>),
    /// One latent per time step.
    Chain(Chain),
}

/// A sequence: one latent per time step, each with its observations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chain {
    /// The column that says which sequence a row belongs to. Not for arrays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// The column that orders the rows of a sequence; the file's order without it. Not for arrays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The time between steps: rows further apart leave missing steps between. Without it, rows follow one another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Interval>,
    /// Longer sequences are cut into windows of so many steps to learn from; by default where there are few, of a length that suits them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Periods after which numbers come back to what they are like, such as a year: what is usual at a time of the year is learned first, and the chain
    /// explains what differs from it. By default a year and a day of dates that show two and more of them; an empty list switches it off.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "one_or_many"
    )]
    pub season: Option<Vec<Interval>>,
    /// What is observed at each step: columns, or arrays of samples × time × ….
    pub observe: Vec<String>,
}

/// One interval, or a list of them.
fn one_or_many<'de, D>(deserializer: D) -> Result<Option<Vec<Interval>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Vec<Interval>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a number, a text such as \"1y\", or a list of these")
        }
        fn visit_f64<E: serde::de::Error>(self, count: f64) -> Result<Vec<Interval>, E> {
            Ok(vec![count.into()])
        }
        fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Vec<Interval>, E> {
            self.visit_f64(count as f64)
        }
        fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Vec<Interval>, E> {
            self.visit_f64(count as f64)
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<Interval>, E> {
            Ok(vec![text.parse().map_err(E::custom)?])
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut list: A,
        ) -> Result<Vec<Interval>, A::Error> {
            let mut intervals = vec![];
            while let Some(interval) = list.next_element()? {
                intervals.push(interval);
            }
            Ok(intervals)
        }
    }
    deserializer.deserialize_any(Visitor).map(Some)
}

/// What the latents are.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentSettings {
    /// The family of all that are not named.
    pub family: Belief,
    /// The families of those that are.
    pub each: BTreeMap<String, Belief>,
}

impl LatentSettings {
    /// The family of a latent.
    pub fn family_of(&self, latent: &str) -> &Belief {
        self.each.get(latent).unwrap_or(&self.family)
    }
}

/// What an observation is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObservationSettings {
    /// Its kind; what its column looks like without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ObservationKind>,
    /// The columns of a vector, or the column if it is not named as the observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// How numbers are scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleKind>,
    /// The levels of a category, in order; all that occur without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<String>>,
    /// Whether what it says of its latent's mean must rise, or fall, all along; as in the networks section without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monotone: Option<bool>,
    /// Its network, in place of the general one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSpec>,
}

/// Kinds of observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObservationKind {
    /// A number.
    Number,
    /// One of a few levels, in text or numbers.
    Categorical,
    /// One of a few levels that have an order, such as the answers of a questionnaire.
    Ordinal,
    /// Several numbers that come together.
    Vector,
    /// Pixels: an array of bytes.
    Image,
}

/// The networks.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSettings {
    /// From beliefs to messages; on chains one hidden layer of 128 units unless said otherwise.
    pub message: Option<NetworkSpec>,
    /// From observations to messages; unless said otherwise as for beliefs, and convolutions for images on other trees than chains.
    pub observation: Option<NetworkSpec>,
    /// What networks see of a belief.
    pub inputs: Inputs,
    /// Which messages share a network; by role on chains and none on other trees unless said otherwise.
    pub tying: Option<Tying>,
    /// How networks begin; by dynamics on chains and as a linear factor model on other trees, where that can be, unless said otherwise.
    pub init: Option<Initialisation>,
    /// Whether observations are monotone unless they say otherwise: ordered levels are and numbers are not without it.
    pub monotone: Option<bool>,
}

impl ModelFile {
    /// Reads a model file; a relative data file is looked for beside it.
    pub fn read(path: &Path) -> Result<Self> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() && found.len() > LONGEST => {
                return Err(ModelFileError::TooLong {
                    path: path.into(),
                    megabytes: found.len() >> 20,
                    most: LONGEST >> 20,
                }
                .into());
            }
            Ok(found) if !found.is_file() && !found.is_dir() => {
                return Err(ModelFileError::NotAFile { path: path.into() }.into());
            }
            _ => {}
        }
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::InvalidData => ModelFileError::NotText { path: path.into() }.into(),
            std::io::ErrorKind::IsADirectory => {
                ModelFileError::IsFolder { path: path.into() }.into()
            }
            std::io::ErrorKind::NotFound => ModelFileError::NotFound { path: path.into() }.into(),
            _ => Error::File {
                action: "read",
                path: path.to_path_buf(),
                source,
            },
        })?;
        let mut file = Self::parse(&text).map_err(|e| ModelFileError::InFile {
            path: path.into(),
            source: Box::new(e),
        })?;
        if let (Some(data), Some(folder)) = (&mut file.data.file, path.parent()) {
            *data = folder.join(&*data);
        }
        Ok(file)
    }

    /// Reads the text of a model file.
    pub fn parse(text: &str) -> Result<Self> {
        let table: Table = text.parse().map_err(|e: toml::de::Error| {
            let before = e.span().and_then(|s| text.get(..s.start));
            let line = 1 + before.map_or(0, |t| t.matches('\n').count());
            ModelFileError::NotToml {
                line,
                message: one_line(e.message()),
            }
        })?;
        Self::from_table(&table)
    }

    /// Reads a model file that is a table already, such as one of another language's.
    pub fn from_table(table: &Table) -> Result<Self> {
        let top = Section { name: "", table };
        let version = top.get::<i64>("version")?.unwrap_or(VERSION);
        if version > VERSION {
            return Err(ModelFileError::NewerVersion {
                version,
                newest: VERSION,
            }
            .into());
        }
        if version < 1 {
            return Err(ModelFileError::NoSuchVersion { version }.into());
        }
        retired::check(table)?;
        top.only(&[
            "version",
            "data",
            "tree",
            "latents",
            "observations",
            "networks",
            "train",
        ])?;
        let empty = Table::new();
        let section = |name: &'static str| -> Result<Section<'_>> {
            Ok(Section {
                name,
                table: top.section(name)?.unwrap_or(&empty),
            })
        };
        let file = ModelFile {
            data: sections::data(&section("data")?)?,
            tree: sections::tree(&section("tree")?)?,
            latents: sections::latents(&section("latents")?)?,
            observations: sections::observations(&section("observations")?)?,
            networks: sections::networks(&section("networks")?)?,
            train: section("train")?.table.clone(),
        };
        // Every mistake that needs no data is found before any is read.
        file.train_spec(1000)?;
        Ok(file)
    }

    /// The tree; a chain needs the number of its steps.
    pub fn build_tree(&self, steps: usize) -> Result<FactorTree> {
        Ok(match &self.tree {
            TreeSettings::Newick(text) => FactorTree::from_newick(text)?,
            TreeSettings::Edges(edges) => FactorTree::from_edges(edges)?,
            TreeSettings::Factors(factors) => FactorTree::from_factors(factors, None)?,
            TreeSettings::Chain(chain) => FactorTree::sequence(steps, &chain.observe)?,
        })
    }

    /// The chain, if the tree is one in time.
    pub fn chain(&self) -> Option<&Chain> {
        match &self.tree {
            TreeSettings::Chain(chain) => Some(chain),
            _ => None,
        }
    }

    /// The network from beliefs to messages.
    pub fn message_network(&self) -> NetworkSpec {
        let usual = || match self.chain() {
            Some(_) => NetworkSpec::Mlp(MlpSpec {
                hidden: vec![CHAIN_UNITS],
                ..MlpSpec::default()
            }),
            None => NetworkSpec::default(),
        };
        self.networks.message.clone().unwrap_or_else(usual)
    }

    /// The network from observations that are not images to messages.
    pub fn observation_network(&self) -> NetworkSpec {
        let usual = || match self.chain() {
            Some(_) => self.message_network(),
            None => NetworkSpec::default(),
        };
        self.networks.observation.clone().unwrap_or_else(usual)
    }

    /// Whether an observation's message must be monotone, if the file says so.
    pub fn monotone(&self, observation: &str) -> Option<bool> {
        let settings = self.observations.get(observation);
        // A network of the user's choice is taken as it is.
        if self.networks.observation.is_some() || settings.is_some_and(|s| s.network.is_some()) {
            return Some(false);
        }
        settings.and_then(|s| s.monotone).or(self.networks.monotone)
    }

    /// The settings of training for so many training samples without images: what the file gives, and good defaults for the rest.
    pub fn train_spec(&self, samples: usize) -> Result<TrainSpec> {
        self.train_spec_for(samples, false)
    }

    /// The same for samples that may have images, whose networks take other defaults.
    pub fn train_spec_for(&self, samples: usize, images: bool) -> Result<TrainSpec> {
        let section = Section {
            name: "train",
            table: &self.train,
        };
        for key in ["holdout", "validation", "split_seed"] {
            if self.train.contains_key(key) {
                return Err(ModelFileError::WrongSection {
                    key,
                    right: "data",
                    wrong: "train",
                }
                .into());
            }
        }
        let defaults = match self.chain() {
            Some(_) => chain_defaults(section.get("iterations")?, samples),
            None if images => image_defaults(section.get("iterations")?, samples),
            None if self.init() == Initialisation::Factors => {
                factor_defaults(section.get("iterations")?, samples)
            }
            None => tree_defaults(section.get("iterations")?, samples),
        };
        // Nobody waits for what nobody measures.
        let waits = self.data.validation > 0.0;
        let defaults = TrainSpec {
            holdout: self.data.holdout,
            validation: self.data.validation,
            split_seed: self.data.split_seed,
            evaluate_every: 20,
            patience: defaults.patience.filter(|_| waits),
            ..defaults
        };
        let mut table = Table::try_from(&defaults).map_err(ModelFileError::Write)?;
        section.only(&sections::TRAIN)?;
        for (key, value) in &self.train {
            table.insert(key.clone(), value.clone());
            // One at a time, so that the sentence names the setting.
            let one: Result<TrainSpec, _> = table.clone().try_into();
            one.map_err(|e: toml::de::Error| ModelFileError::WrongValue {
                section: "train".into(),
                key: key.clone(),
                value: shown(value),
                why: plain(e.message()),
            })?;
        }
        let spec: TrainSpec =
            table
                .try_into()
                .map_err(|e: toml::de::Error| ModelFileError::Section {
                    section: "train",
                    why: plain(e.message()),
                })?;
        spec.check()
            .map_err(|e| ModelFileError::in_section("train", e))?;
        Ok(spec)
    }

    /// The file with all settings of training spelled out, as it is kept with a run.
    pub fn resolved(&self, train: &TrainSpec) -> Result<String> {
        let value = |x: Result<Value, toml::ser::Error>| x.map_err(ModelFileError::Write);
        let mut data = Table::new();
        if let Some(file) = &self.data.file {
            // The run may lie anywhere.
            let file = file.canonicalize().unwrap_or_else(|_| file.clone());
            data.insert("file".into(), file.display().to_string().into());
        }
        data.insert("holdout".into(), self.data.holdout.into());
        data.insert("validation".into(), self.data.validation.into());
        if let Some(folds) = self.data.folds {
            data.insert("folds".into(), (folds as i64).into());
        }
        if let Some(seed) = self.data.split_seed {
            data.insert("split_seed".into(), (seed as i64).into());
        }

        let (key, tree) = match &self.tree {
            TreeSettings::Newick(text) => ("newick", Value::from(text.clone())),
            TreeSettings::Edges(edges) => ("edges", value(Value::try_from(edges))?),
            TreeSettings::Factors(factors) => ("factors", value(Value::try_from(factors))?),
            TreeSettings::Chain(chain) => ("chain", value(Value::try_from(chain))?),
        };
        let tree = Table::from_iter([(key.to_string(), tree)]);

        let family =
            |belief: &Belief| Table::from_iter([("family".to_string(), belief.to_string().into())]);
        let mut latents = family(&self.latents.family);
        for (name, belief) in &self.latents.each {
            latents.insert(name.clone(), family(belief).into());
        }
        let mut networks = Table::from_iter([
            (
                "message".to_string(),
                value(Value::try_from(self.message_network()))?,
            ),
            (
                "inputs".to_string(),
                value(Value::try_from(self.networks.inputs))?,
            ),
        ]);
        if let Some(network) = &self.networks.observation {
            networks.insert("observation".into(), value(Value::try_from(network))?);
        }
        networks.insert("init".into(), value(Value::try_from(self.init()))?);
        if let Some(monotone) = self.networks.monotone {
            networks.insert("monotone".into(), monotone.into());
        }
        if let Some(tying) = &self.networks.tying {
            networks.insert("tying".into(), value(Value::try_from(tying))?);
        }
        let mut training = value(Value::try_from(train))?;
        if let Value::Table(training) = &mut training {
            training.remove("holdout");
            training.remove("validation");
            training.remove("holdout_last");
            training.remove("split_seed");
        }
        let mut all = Table::from_iter([
            ("version".to_string(), VERSION.into()),
            ("data".to_string(), data.into()),
            ("tree".to_string(), tree.into()),
            ("latents".to_string(), latents.into()),
            ("networks".to_string(), networks.into()),
            ("train".to_string(), training),
        ]);
        if !self.observations.is_empty() {
            all.insert(
                "observations".into(),
                value(Value::try_from(&self.observations))?,
            );
        }
        Ok(toml::to_string(&all).map_err(ModelFileError::Write)?)
    }
}

impl Default for ModelFile {
    fn default() -> Self {
        ModelFile {
            data: DataSettings::default(),
            tree: TreeSettings::Factors(vec![]),
            latents: LatentSettings {
                family: ramp::family::Gaussian { dim: 1 }.into(),
                each: BTreeMap::new(),
            },
            observations: BTreeMap::new(),
            networks: NetworkSettings {
                message: None,
                observation: None,
                inputs: Inputs::default(),
                tying: None,
                init: None,
                monotone: None,
            },
            train: Table::new(),
        }
    }
}

/// Hidden units of a chain's networks unless the file says otherwise.
const CHAIN_UNITS: usize = 128;

/// Evaluations without improvement after which the training of a tree stops.
const PATIENCE: usize = 15;

/// Iterations of trees with images.
const IMAGE_ITERATIONS: usize = 500;

/// How trees are trained unless the file says otherwise.
fn tree_defaults(iterations: Option<usize>, samples: usize) -> TrainSpec {
    const BATCH: usize = 1000;
    // A quarter of the batch tells the mixture as well and costs a quarter: on a questionnaire of 25 items the score on unseen rows
    // is the same, the time a third.
    const MIXTURE: usize = 250;
    let iterations = iterations.unwrap_or(1000);
    TrainSpec {
        iterations,
        batch: (BATCH < samples).then_some(BATCH),
        mixture: (MIXTURE < samples).then_some(MIXTURE),
        patience: Some(PATIENCE),
        // A long warm-up lets the lower levels find something to pass on before the upper ones settle.
        warmup: iterations / 2,
        learning_rate: 3e-2,
        decay: Decay::Cosine { to: 0.0 },
        ..TrainSpec::default()
    }
}

/// How trees that begin as linear factor models are trained unless the file says otherwise. At the rate of other trees training first destroys what the start knows, and where it ends depends on the seed: on bfi, college and made-up tables of curved items a third of that rate explains 0.02 to 0.07 nats a row more, alike for every seed.
fn factor_defaults(iterations: Option<usize>, samples: usize) -> TrainSpec {
    TrainSpec {
        learning_rate: 1e-2,
        ..tree_defaults(iterations, samples)
    }
}

/// How trees with images are trained unless the file says otherwise. Chosen on quarters of MNIST's digits and of letters in eleven type faces, both of 8×8 pixels: at the rate of other trees
/// convolutions may die in the first steps, and views share most exactly how lines run across their borders, which noise makes less worth learning by heart.
fn image_defaults(iterations: Option<usize>, samples: usize) -> TrainSpec {
    let iterations = iterations.unwrap_or(IMAGE_ITERATIONS);
    TrainSpec {
        learning_rate: 3e-3,
        noise: 0.7,
        ..tree_defaults(Some(iterations), samples)
    }
}

/// How chains are trained unless the file says otherwise: as in `ramp reproduce dynamics`.
fn chain_defaults(iterations: Option<usize>, samples: usize) -> TrainSpec {
    const BATCH: usize = 100;
    TrainSpec {
        batch: (BATCH < samples).then_some(BATCH),
        ..TrainSpec::for_chain(iterations.unwrap_or(1000))
    }
}
