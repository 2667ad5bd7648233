//! What a session leaves for the next one, beside the settings that it belongs to.

use super::results::write_json;
use crate::error::LabError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::Path;

/// What an earlier session left under the same settings.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    settings: serde_json::Value,
    value: T,
}

/// Writes a value beside the settings it belongs to.
pub(crate) fn keep<T: Serialize>(
    path: &Path,
    settings: &impl Serialize,
    value: &T,
) -> Result<(), LabError> {
    let settings = settings_value(settings)?;
    write_json(path, &Kept { settings, value })
}

/// The value that was kept under the same settings; `None` where there is none or it cannot be read.
pub(crate) fn kept<T: DeserializeOwned, S: Settings>(path: &Path, settings: &S) -> Option<T> {
    let bytes = std::fs::read(path).ok()?;
    let kept: Kept<T> = serde_json::from_slice(&bytes).ok()?;
    same(kept.settings, settings).then_some(kept.value)
}

/// Whether there is a value that was kept under other settings.
pub(super) fn belongs_to_others<S: Settings>(path: &Path, settings: &S) -> bool {
    let stored = std::fs::read(path).ok();
    let stored = stored.and_then(|b| serde_json::from_slice::<Kept<serde_json::Value>>(&b).ok());
    stored.is_some_and(|kept| !same(kept.settings, settings))
}

/// Whether settings from a file are these. A setting that the file does not know yet has its default there.
fn same<S: Settings>(stored: serde_json::Value, settings: &S) -> bool {
    let stored: Option<S> = serde_json::from_value(stored).ok();
    let stored = stored.and_then(|stored| settings_value(&stored).ok());
    stored.is_some() && stored == settings_value(settings).ok()
}

/// Settings that can be put on the disk and read again.
pub trait Settings: Serialize + DeserializeOwned {}

impl<S: Serialize + DeserializeOwned> Settings for S {}

/// Settings as they come back from a file: compared in this form, numbers that JSON cannot tell apart are the same. Threads are
/// left out, as they do not change results.
fn settings_value(settings: &impl Serialize) -> Result<serde_json::Value, LabError> {
    let text = serde_json::to_string(settings);
    text.and_then(|text| serde_json::from_str(&text))
        .map(without_threads)
        .map_err(|source| LabError::Json {
            what: "settings".into(),
            source,
        })
}

fn without_threads(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, _)| name != "threads")
            .map(|(name, value)| (name, without_threads(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back_under_the_same_settings_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kept.json");
        assert_eq!(kept::<Vec<f64>, _>(&file, &1), None);
        keep(&file, &1, &vec![0.1, 0.2]).unwrap();
        assert_eq!(kept(&file, &1), Some(vec![0.1, 0.2]));
        assert_eq!(kept::<Vec<f64>, _>(&file, &2), None);
        assert!(belongs_to_others(&file, &2) && !belongs_to_others(&file, &1));
        let settings =
            |threads: usize| serde_json::json!({ "seed": 1, "cell": { "threads": threads } });
        keep(&file, &settings(1), &vec![0.3]).unwrap();
        assert_eq!(kept(&file, &settings(2)), Some(vec![0.3]));
        std::fs::write(&file, "{ half").unwrap();
        assert!(!belongs_to_others(&file, &2));
        assert_eq!(kept::<Vec<f64>, _>(&file, &1), None);
    }
}
