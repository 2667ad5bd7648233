//! The state of training in one file, written whole or not at all.

use super::TrainSpec;
use super::optimizer::Memory;
use super::trainer::Record;
use crate::model::{Model, ModelSpec};
use crate::storage::{read_tensors, write_tensors};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything the loop needs to go on as if it had never stopped.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub parameters: Vec<f32>,
    pub memory: Memory,
    pub best: Option<Best>,
    pub progress: Progress,
}

/// The best weights so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    pub parameters: Vec<f32>,
    pub held_out: f64,
    pub iteration: usize,
}

/// The small numbers of the state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    pub iteration: usize,
    pub since_best: usize,
    /// What the data looks like; older files do not say.
    #[serde(default)]
    pub data: Option<u64>,
    pub records: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    model: ModelSpec,
    train: TrainSpec,
    rows: usize,
    progress: Progress,
    best: Option<(f64, usize)>,
}

const VERSION: u32 = 1;

/// The checkpoint of a folder, whether or not it is there.
pub fn checkpoint_file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.safetensors")
}

pub(super) fn save(
    folder: &Path,
    state: &State,
    model: &Model,
    train: &TrainSpec,
    rows: usize,
) -> Result<PathBuf> {
    let header = Header {
        version: VERSION,
        model: model.spec().clone(),
        train: train.clone(),
        rows,
        progress: state.progress.clone(),
        best: state.best.as_ref().map(|b| (b.held_out, b.iteration)),
    };
    let text = serde_json::to_string(&header)
        .map_err(|e| Error::Invalid(format!("the checkpoint's header: {e}")))?;
    let mut tensors: Vec<(&str, &[f32])> = vec![
        ("parameters", &state.parameters),
        ("memory.first", &state.memory.first),
        ("memory.second", &state.memory.second),
    ];
    if let Some(best) = &state.best {
        tensors.push(("best", &best.parameters));
    }
    let path = checkpoint_file(folder);
    let tensors = tensors
        .into_iter()
        .map(|(name, data)| (name.to_string(), vec![data.len()], data))
        .collect();
    write_tensors(&path, tensors, &text)?;
    Ok(path)
}

/// The state left in a folder, if there is one, after checking that it belongs to this model, data and settings.
pub(super) fn load(
    folder: &Path,
    model: &Model,
    train: &TrainSpec,
    rows: usize,
    data: Option<u64>,
) -> Result<Option<State>> {
    let path = checkpoint_file(folder);
    let Some((text, mut tensors)) = read_tensors(&path)? else {
        return Ok(None);
    };
    let wrong = |what: String| Error::Invalid(format!("checkpoint `{}` {what}", path.display()));
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let unreadable = |e| wrong(format!("has a header that cannot be read: {e}"));
    let Version { version } = serde_json::from_str(&text).map_err(unreadable)?;
    if version > VERSION {
        return Err(wrong(format!(
            "was written by a newer version of this software (form {version}); go on with that"
        )));
    }
    let header: Header = serde_json::from_str(&text).map_err(unreadable)?;
    if header.rows != rows {
        return Err(wrong(format!(
            "was made with {} samples but the data now has {rows}",
            header.rows
        )));
    }
    // More iterations may be asked for; a warm-up or a decay that depends on their number then differs, as anyone would
    // expect.
    let warmup = |spec: &TrainSpec| match header.train.iterations == train.iterations {
        true => spec.warmup,
        false => 0,
    };
    let comparable = |spec: &TrainSpec| TrainSpec {
        iterations: 0,
        warmup: warmup(spec),
        ..spec.clone()
    };
    if comparable(&header.train) != comparable(train) {
        return Err(wrong(
            "was made with other training settings; restore them or train into a new folder".into(),
        ));
    }
    if header.progress.data.is_some_and(|d| Some(d) != data) {
        return Err(wrong(
            "was made with other data, or with data read in another way; restore that or train into a new folder"
                .into(),
        ));
    }
    if header.model != *model.spec() {
        return Err(wrong(
            "belongs to another model; train into a new folder or restore the model's settings"
                .into(),
        ));
    }
    let count = model.parameters().len();
    let mut take = |name: &str| match tensors.remove(name) {
        Some(data) if data.len() == count => Ok(data),
        Some(data) => Err(wrong(format!(
            "has {} numbers in `{name}` where the model has {count}",
            data.len()
        ))),
        None => Err(wrong(format!("lacks `{name}`"))),
    };
    Ok(Some(State {
        parameters: take("parameters")?,
        memory: Memory {
            first: take("memory.first")?,
            second: take("memory.second")?,
        },
        best: match header.best {
            None => None,
            Some((held_out, iteration)) => Some(Best {
                parameters: take("best")?,
                held_out,
                iteration,
            }),
        },
        progress: header.progress,
    }))
}
