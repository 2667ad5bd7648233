//! Settings in a table: every key must be known, every value of its type, and the sentence names both.

use super::ModelFileError;
use crate::Result;
use ramp::names::hint;
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
            Some(key) => Err(ModelFileError::UnknownSetting {
                section: self.name.into(),
                key: key.clone(),
                known: keys.iter().map(|k| k.to_string()).collect(),
            }
            .into()),
        }
    }

    /// A setting, if it is there.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.table
            .get(key)
            .map(|value| {
                value.clone().try_into().map_err(|e: toml::de::Error| {
                    ModelFileError::WrongValue {
                        section: self.name.into(),
                        key: key.into(),
                        value: shown(value),
                        why: plain(e.message()),
                    }
                    .into()
                })
            })
            .transpose()
    }

    /// A section within this one.
    pub fn section(&self, key: &str) -> Result<Option<&'a Table>> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(ModelFileError::NotATable {
                section: self.name.into(),
                key: key.into(),
                value: shown(other),
            }
            .into()),
        }
    }
}

/// A value in a sentence, cut where it is long.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// A parser's words on one line.
pub(super) fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a reader of values says, in words for people: the nearest name in place of all, and no names of Rust's types.
pub(super) fn plain(message: &str) -> String {
    let message = one_line(message);
    for (start, what) in [
        ("unknown field ", "there is no setting"),
        ("unknown variant ", "there is no"),
    ] {
        let Some(rest) = message.strip_prefix(start) else {
            continue;
        };
        // Names stand between backticks: first the one that was found, then those that may be.
        let mut names = rest.split('`').skip(1).step_by(2);
        let Some(found) = names.next() else { continue };
        return format!("{what} `{found}`: {}", hint(found, names));
    }
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message;
    };
    let found = found
        .replace("invalid type: ", "")
        .replace("invalid value: ", "")
        .replace("floating point", "number")
        .replace("sequence", "list")
        .replace("map", "table of settings");
    let expected = match expected {
        "usize" | "u64" | "u32" => "a whole number from 0",
        "i64" => "a whole number",
        "f64" | "f32" => "a number",
        "a string" | "path string" | "string" => "a text in quotes",
        "a sequence" => "a list in square brackets",
        "a boolean" => "true or false",
        other if other.contains("enum") => "one of the known names, or a table with its `kind`",
        other if other.starts_with("struct") => "a table of settings",
        other => other,
    };
    format!("it is {found}, and must be {expected}")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn readers_speak_plainly() {
        assert_eq!(
            plain("unknown field `hiden`, expected one of `hidden`, `activation`"),
            "there is no setting `hiden`: did you mean `hidden`?"
        );
        assert_eq!(
            plain("unknown variant `x`, expected `natural` or `moments`"),
            "there is no `x`: there are `natural`, `moments`"
        );
        assert_eq!(
            plain("invalid type: string \"x\", expected u64"),
            "it is string \"x\", and must be a whole number from 0"
        );
        assert_eq!(plain("anything else"), "anything else");
    }
}
