//! Settings in a table: every key must be known, every value of its type, and the sentence names both.

use crate::names::hint;
use crate::{Error, Result};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// A section of the model file, with its name for sentences.
pub(super) struct Section<'a> {
    pub name: &'a str,
    pub table: &'a Table,
}

impl<'a> Section<'a> {
    /// Checks that there are no other keys than these.
    pub fn only(&self, keys: &[&str]) -> Result<()> {
        match self.table.keys().find(|key| !keys.contains(&&key[..])) {
            None => Ok(()),
            Some(key) => Err(Error::Invalid(format!(
                "{} has no setting `{key}`: {}",
                self.title(),
                hint(key, keys.iter().copied())
            ))),
        }
    }

    /// A setting, if it is there.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.table
            .get(key)
            .map(|value| {
                value.clone().try_into().map_err(|e: toml::de::Error| {
                    Error::Invalid(format!(
                        "`{key}` in {} cannot be {}: {}",
                        self.title(),
                        shown(value),
                        e.message()
                    ))
                })
            })
            .transpose()
    }

    /// A section within this one.
    pub fn section(&self, key: &str) -> Result<Option<&'a Table>> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(Error::Invalid(format!(
                "`{key}` in {} must be a table of settings, not {}",
                self.title(),
                shown(other)
            ))),
        }
    }

    fn title(&self) -> String {
        match self.name {
            "" => "the model file".into(),
            name => format!("[{name}]"),
        }
    }
}

/// A value in a sentence, cut where it is long.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}
