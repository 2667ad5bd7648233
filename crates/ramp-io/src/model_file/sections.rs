//! The sections of a model file, each read and checked by itself.

use super::file::{
    Chain, DataSettings, LatentSettings, ModelFile, NetworkSettings, ObservationKind,
    ObservationSettings, TreeSettings,
};
use super::toml_errors::{Section, plain};
use super::{ModelFileError, ObservationConflict};
use crate::Result;
use ramp::family::Belief;
use ramp::network::NetworkSpec;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::{Table, Value};

/// The settings of every section, for those who offer them under another roof.
///
/// ```
/// let sections = ramp_io::model_file::known_settings();
/// assert!(sections.iter().any(|(name, keys)| *name == "train" && keys.contains(&"iterations")));
/// ```
pub fn known_settings() -> [(&'static str, &'static [&'static str]); 6] {
    [
        ("data", &DATA),
        ("tree", &WAYS),
        ("latents", &FAMILY_KEYS),
        ("observations", &OBSERVATION),
        ("networks", &NETWORKS),
        ("train", &TRAIN),
    ]
}

const DATA: [&str; 5] = ["file", "folds", "holdout", "split_seed", "validation"];
const WAYS: [&str; 4] = ["newick", "edges", "factors", "chain"];
const OBSERVATION: [&str; 6] = ["kind", "columns", "scale", "levels", "monotone", "network"];
const NETWORKS: [&str; 6] = [
    "message",
    "observation",
    "inputs",
    "tying",
    "init",
    "monotone",
];
/// In the order of the alphabet, for messages.
pub(super) const TRAIN: [&str; 17] = [
    "batch",
    "clip",
    "decay",
    "evaluate_every",
    "even_rates",
    "iterations",
    "learning_rate",
    "mask",
    "mask_span",
    "mask_warmup",
    "mixture",
    "noise",
    "optimizer",
    "patience",
    "population",
    "seed",
    "warmup",
];

pub(super) fn data(section: &Section<'_>) -> Result<DataSettings> {
    section.only(&DATA)?;
    let usual = DataSettings::default();
    let settings = DataSettings {
        file: section.get::<PathBuf>("file")?,
        holdout: section.get("holdout")?.unwrap_or(usual.holdout),
        validation: section.get("validation")?.unwrap_or(usual.validation),
        folds: section.get("folds")?,
        split_seed: section.get("split_seed")?,
    };
    if let Some(folds @ (1 | 51..)) = settings.folds {
        return Err(ModelFileError::OutOfRange {
            section: "data",
            key: "folds",
            range: "0 for none, or 2 to 50",
            value: folds as f64,
        }
        .into());
    }
    for (key, value) in [
        ("holdout", settings.holdout),
        ("validation", settings.validation),
    ] {
        if !(0.0..0.95).contains(&value) {
            return Err(ModelFileError::OutOfRange {
                section: "data",
                key,
                range: "a fraction from 0 up to 0.95",
                value,
            }
            .into());
        }
    }
    Ok(settings)
}

pub(super) fn tree(section: &Section<'_>) -> Result<TreeSettings> {
    section.only(&WAYS)?;
    if section.table.len() != 1 {
        return Err(ModelFileError::NotOneTree {
            ways: section.table.len(),
        }
        .into());
    }
    let settings = if let Some(text) = section.get("newick")? {
        TreeSettings::Newick(text)
    } else if let Some(edges) = section.get::<Vec<Vec<String>>>("edges")? {
        let pair = |(i, edge): (usize, Vec<String>)| match <[String; 2]>::try_from(edge) {
            Ok([a, b]) => Ok((a, b)),
            Err(edge) => Err(ModelFileError::NotAPair {
                number: i + 1,
                variables: edge.len(),
            }),
        };
        TreeSettings::Edges(
            edges
                .into_iter()
                .enumerate()
                .map(pair)
                .collect::<Result<_, _>>()?,
        )
    } else if let Some(factors) = section.get("factors")? {
        TreeSettings::Factors(factors)
    } else {
        let chain: Chain = section.get("chain")?.unwrap_or_default();
        if chain.observe.is_empty() {
            return Err(ModelFileError::ChainObservesNothing.into());
        }
        if let Some(step) = chain.step.filter(|s| !s.is_sound()) {
            return Err(ModelFileError::ChainStep {
                step: step.length(),
            }
            .into());
        }
        if let Some(window) = chain.window.filter(|w| *w < 4) {
            return Err(ModelFileError::ChainWindow { window }.into());
        }
        for &season in chain.season.iter().flatten() {
            let step = chain.step.filter(|step| {
                step.is_calendar() == season.is_calendar() && season.length() >= 2.0 * step.length()
            });
            if step.is_none() || !season.is_sound() {
                return Err(ModelFileError::ChainSeason { season }.into());
            }
        }
        if chain.step.is_some() && chain.time.is_none() {
            return Err(ModelFileError::ChainStepWithoutTime.into());
        }
        TreeSettings::Chain(chain)
    };
    // A small chain stands for any: what is wrong with the tree is wrong before data is read.
    let trial = ModelFile {
        tree: settings.clone(),
        ..ModelFile::default()
    };
    trial
        .build_tree(2)
        .map_err(|e| ModelFileError::in_section("tree", e))?;
    Ok(settings)
}

static FAMILY_KEYS: [&str; 3] = ["family", "dim", "levels"];

pub(super) fn latents(section: &Section<'_>) -> Result<LatentSettings> {
    let general: Table = section
        .table
        .iter()
        .filter(|(key, _)| FAMILY_KEYS.contains(&&key[..]))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let family = family(&Section {
        name: section.name,
        table: &general,
    })?;
    let mut each = BTreeMap::new();
    for (name, value) in section
        .table
        .iter()
        .filter(|(key, _)| !FAMILY_KEYS.contains(&&key[..]))
    {
        let title = format!("latents.{name}");
        let Value::Table(table) = value else {
            return Err(ModelFileError::UnknownLatentSetting {
                key: name.clone(),
                known: &FAMILY_KEYS,
            }
            .into());
        };
        let own = Section {
            name: &title,
            table,
        };
        own.only(&FAMILY_KEYS)?;
        each.insert(name.clone(), self::family(&own)?);
    }
    Ok(LatentSettings { family, each })
}

/// A family with its size in parentheses or beside it.
fn family(section: &Section<'_>) -> Result<Belief> {
    let name: String = section.get("family")?.unwrap_or_else(|| "gaussian".into());
    let mut belief: Belief = name
        .parse()
        .map_err(|e| ModelFileError::in_section(section.name, e))?;
    for key in ["dim", "levels"] {
        let Some(size) = section.get::<usize>(key)? else {
            continue;
        };
        let setting = belief.size_setting();
        if setting != Some(key) {
            return Err(ModelFileError::NoSuchSize {
                section: section.name.into(),
                family: name,
                key: key.into(),
                other: setting,
            }
            .into());
        }
        let base = name.split('(').next().unwrap_or_default().trim();
        belief = format!("{base}({size})")
            .parse()
            .map_err(|e| ModelFileError::in_section(section.name, e))?;
    }
    Ok(belief)
}

pub(super) fn observations(section: &Section<'_>) -> Result<BTreeMap<String, ObservationSettings>> {
    let mut each = BTreeMap::new();
    for (name, value) in section.table {
        let title = format!("observations.{name}");
        let Value::Table(table) = value else {
            return Err(ModelFileError::ObservationNotATable { key: name.clone() }.into());
        };
        let own = Section {
            name: &title,
            table,
        };
        own.only(&OBSERVATION)?;
        let settings = ObservationSettings {
            kind: own.get("kind")?,
            columns: own.get("columns")?,
            scale: own.get("scale")?,
            levels: own.get("levels")?,
            monotone: own.get("monotone")?,
            network: network(&own, "network")?,
        };
        let wrong = |conflict: ObservationConflict| {
            Err(ModelFileError::Observation {
                observation: name.clone(),
                conflict,
            }
            .into())
        };
        match settings.kind {
            Some(ObservationKind::Vector)
                if settings.columns.as_ref().is_none_or(Vec::is_empty) =>
            {
                return wrong(ObservationConflict::VectorWithoutColumns);
            }
            Some(ObservationKind::Categorical | ObservationKind::Ordinal)
                if settings.scale.is_some() =>
            {
                return wrong(ObservationConflict::CategoryWithScale);
            }
            Some(ObservationKind::Number | ObservationKind::Vector | ObservationKind::Image)
                if settings.levels.is_some() =>
            {
                return wrong(ObservationConflict::LevelsWithoutCategory);
            }
            Some(
                ObservationKind::Vector | ObservationKind::Image | ObservationKind::Categorical,
            ) if settings.monotone == Some(true) => {
                return wrong(ObservationConflict::MonotoneWithoutOrder);
            }
            _ if settings.monotone == Some(true) && settings.network.is_some() => {
                return wrong(ObservationConflict::MonotoneWithNetwork);
            }
            Some(
                ObservationKind::Number | ObservationKind::Categorical | ObservationKind::Ordinal,
            )
            | None
                if settings.columns.as_ref().is_some_and(|c| c.len() != 1) =>
            {
                return wrong(ObservationConflict::SeveralColumns);
            }
            _ => {}
        }
        each.insert(name.clone(), settings);
    }
    Ok(each)
}

pub(super) fn networks(section: &Section<'_>) -> Result<NetworkSettings> {
    section.only(&NETWORKS)?;
    Ok(NetworkSettings {
        message: network(section, "message")?,
        observation: network(section, "observation")?,
        inputs: section.get("inputs")?.unwrap_or_default(),
        tying: section.get("tying")?,
        init: section.get("init")?,
        monotone: section.get("monotone")?,
    })
}

/// A network; a perceptron unless it says otherwise.
fn network(section: &Section<'_>, key: &str) -> Result<Option<NetworkSpec>> {
    let Some(table) = section.section(key)? else {
        return Ok(None);
    };
    let mut table = table.clone();
    table
        .entry("kind".to_string())
        .or_insert_with(|| "mlp".into());
    Value::Table(table)
        .try_into()
        .map(Some)
        .map_err(|e: toml::de::Error| {
            ModelFileError::Network {
                section: section.name.into(),
                key: key.into(),
                why: plain(e.message()),
            }
            .into()
        })
}
