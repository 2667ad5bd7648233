//! A rival's state on the disk: arrays, how far it got, and the settings it belongs to.

use crate::error::LabError;
use ramp::storage::{read_tensors, write_tensors};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::Path;

/// What stands beside the arrays.
#[derive(Serialize, Deserialize)]
struct Header<S> {
    settings: S,
    iteration: usize,
}

/// Writes the state of a method to a file, whole or not at all.
pub(super) fn save<S: Serialize>(
    what: &str,
    path: &Path,
    settings: S,
    iteration: usize,
    arrays: &[(&str, &[f32])],
) -> Result<(), LabError> {
    let header = Header {
        settings,
        iteration,
    };
    let text = serde_json::to_string(&header)
        .map_err(|e| LabError::Invalid(format!("the state of {what}: {e}")))?;
    let arrays = arrays
        .iter()
        .map(|&(name, array)| (name.to_owned(), vec![array.len()], array));
    Ok(write_tensors(path, arrays.collect(), &text)?)
}

/// How many steps were taken, and the arrays.
pub(super) type Loaded = (usize, Vec<Vec<f32>>);

/// How far a method got and its arrays, in the order in which they are named; `None` where there is no such file. Refuses the
/// state of other settings or data.
pub(super) fn load<S: DeserializeOwned + PartialEq>(
    what: &str,
    path: &Path,
    settings: &S,
    arrays: &[(&str, &[f32])],
) -> Result<Option<Loaded>, LabError> {
    let Some((text, mut stored)) = read_tensors(path)? else {
        return Ok(None);
    };
    let wrong = |why: &str| {
        LabError::Invalid(format!(
            "the state of {what} in {} {why}; restore the settings or use a new folder",
            path.display()
        ))
    };
    let header: Header<S> =
        serde_json::from_str(&text).map_err(|e| wrong(&format!("cannot be read: {e}")))?;
    if header.settings != *settings {
        return Err(wrong("was made with other settings or data"));
    }
    let found = arrays.iter().map(|(name, now)| {
        let array = stored.remove(*name).filter(|a| a.len() == now.len());
        array.ok_or_else(|| wrong(&format!("lacks `{name}`")))
    });
    Ok(Some((header.iteration, found.collect::<Result<_, _>>()?)))
}
