//! The sections of a model file, each read and checked by itself.

use super::file::{
    Chain, DataSettings, LatentSettings, ModelFile, NetworkSettings, ObservationKind,
    ObservationSettings, TreeSettings,
};
use super::keys::{Section, plain};
use crate::{Error, Result};
use ramp::family::Belief;
use ramp::network::NetworkSpec;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::{Table, Value};

pub(super) fn data(section: &Section<'_>) -> Result<DataSettings> {
    section.only(&["file", "holdout"])?;
    let settings = DataSettings {
        file: section.get::<PathBuf>("file")?,
        holdout: section.get("holdout")?.unwrap_or(0.2),
    };
    if !(0.0..0.95).contains(&settings.holdout) {
        return Err(Error::Invalid(format!(
            "`holdout` in [data] must be a fraction from 0 up to 0.95, not {}",
            settings.holdout
        )));
    }
    Ok(settings)
}

pub(super) fn tree(section: &Section<'_>) -> Result<TreeSettings> {
    const WAYS: [&str; 4] = ["newick", "edges", "factors", "chain"];
    section.only(&WAYS)?;
    if section.table.len() != 1 {
        return Err(Error::Invalid(format!(
            "[tree] must say who hangs together in one way, by `newick`, `edges`, `factors` or `chain`; it has {}",
            match section.table.len() {
                0 => "none".to_string(),
                n => format!("{n} of them"),
            }
        )));
    }
    let settings = if let Some(text) = section.get("newick")? {
        TreeSettings::Newick(text)
    } else if let Some(edges) = section.get::<Vec<Vec<String>>>("edges")? {
        let pair = |(i, edge): (usize, Vec<String>)| match <[String; 2]>::try_from(edge) {
            Ok([a, b]) => Ok((a, b)),
            Err(edge) => Err(Error::Invalid(format!(
                "edge {} in [tree] joins {} variables; an edge is a pair such as [\"a\", \"b\"], and `factors` joins more",
                i + 1,
                edge.len()
            ))),
        };
        TreeSettings::Edges(
            edges
                .into_iter()
                .enumerate()
                .map(pair)
                .collect::<Result<_>>()?,
        )
    } else if let Some(factors) = section.get("factors")? {
        TreeSettings::Factors(factors)
    } else {
        let chain: Chain = section.get("chain")?.unwrap_or_default();
        if chain.observe.is_empty() {
            return Err(Error::Invalid(
                "the chain in [tree] observes nothing; list columns in `observe`".into(),
            ));
        }
        if let Some(step) = chain.step.filter(|s| !(s.is_finite() && *s > 0.0)) {
            return Err(Error::Invalid(format!(
                "the chain's `step` must be a positive number, not {step}"
            )));
        }
        if chain.step.is_some() && chain.time.is_none() {
            return Err(Error::Invalid(
                "the chain's `step` needs a `time` column to measure".into(),
            ));
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
        .map_err(|e| Error::Invalid(format!("[tree]: {e}")))?;
    Ok(settings)
}

const FAMILY_KEYS: [&str; 3] = ["family", "dim", "levels"];

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
            return Err(Error::Invalid(format!(
                "[latents] has no setting `{name}` (for a latent of that name write [{title}]): {}",
                ramp::names::hint(name, FAMILY_KEYS.into_iter())
            )));
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
        .map_err(|e| Error::Invalid(format!("[{}]: {e}", section.name)))?;
    for key in ["dim", "levels"] {
        let Some(size) = section.get::<usize>(key)? else {
            continue;
        };
        let setting = belief.size_setting();
        if setting != Some(key) {
            return Err(Error::Invalid(format!(
                "[{}]: `{name}` has no `{key}`{}",
                section.name,
                match setting {
                    Some(other) => format!("; it has `{other}`"),
                    None => "; write the sizes of a product in parentheses".into(),
                }
            )));
        }
        let base = name.split('(').next().unwrap_or_default().trim();
        belief = format!("{base}({size})")
            .parse()
            .map_err(|e| Error::Invalid(format!("[{}]: {e}", section.name)))?;
    }
    Ok(belief)
}

pub(super) fn observations(section: &Section<'_>) -> Result<BTreeMap<String, ObservationSettings>> {
    let mut each = BTreeMap::new();
    for (name, value) in section.table {
        let title = format!("observations.{name}");
        let Value::Table(table) = value else {
            return Err(Error::Invalid(format!(
                "[observations] has tables of settings only; for an observation `{name}` write [{title}]"
            )));
        };
        let own = Section {
            name: &title,
            table,
        };
        own.only(&["kind", "columns", "scale", "levels", "network"])?;
        let settings = ObservationSettings {
            kind: own.get("kind")?,
            columns: own.get("columns")?,
            scale: own.get("scale")?,
            levels: own.get("levels")?,
            network: network(&own, "network")?,
        };
        let wrong = |why: &str| Err(Error::Invalid(format!("[{title}]: {why}")));
        match settings.kind {
            Some(ObservationKind::Vector)
                if settings.columns.as_ref().is_none_or(Vec::is_empty) =>
            {
                return wrong("a vector needs its columns: `columns = [\"c1\", \"c2\"]`");
            }
            Some(ObservationKind::Categorical) if settings.scale.is_some() => {
                return wrong("a category has no scale");
            }
            Some(ObservationKind::Number | ObservationKind::Vector | ObservationKind::Image)
                if settings.levels.is_some() =>
            {
                return wrong("only a category has levels");
            }
            Some(ObservationKind::Number | ObservationKind::Categorical) | None
                if settings.columns.as_ref().is_some_and(|c| c.len() != 1) =>
            {
                return wrong("one column makes it; write `kind = \"vector\"` for several");
            }
            _ => {}
        }
        each.insert(name.clone(), settings);
    }
    Ok(each)
}

pub(super) fn networks(section: &Section<'_>) -> Result<NetworkSettings> {
    section.only(&["message", "observation", "inputs", "tying"])?;
    Ok(NetworkSettings {
        message: network(section, "message")?.unwrap_or_default(),
        observation: network(section, "observation")?,
        inputs: section.get("inputs")?.unwrap_or_default(),
        tying: section.get("tying")?,
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
            Error::Invalid(format!(
                "`{key}` in [{}]: {}",
                section.name,
                plain(e.message())
            ))
        })
}
