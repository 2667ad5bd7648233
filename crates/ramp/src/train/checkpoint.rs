//! The state of training in one file, written whole or not at all. It holds no history: see [`records`](super::records).

use super::error::{CheckpointFault, TrainError};
use super::optimizer::Memory;
use super::problem::Identity;
use super::spec::TrainSpec;
use crate::Result;
use crate::storage::{Numbers, Stored, read_tensors, write_tensors};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything the loop needs to go on as if it had never stopped, but for the parameters, which the problem has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub memory: Memory,
    pub best: Option<Best>,
    pub iteration: usize,
    /// Evaluations since the best one.
    pub since_best: usize,
}

/// The best weights so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    pub parameters: Vec<f32>,
    pub held_out: f64,
    pub iteration: usize,
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    identity: Identity,
    train: TrainSpec,
    iteration: usize,
    since_best: usize,
    best: Option<(f64, usize)>,
    /// The checksum of the records before it.
    records: String,
    /// The iteration at which training ran into numbers that are not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diverged: Option<usize>,
}

const VERSION: u32 = 3;
const PARAMETERS: &str = "parameters";
const FIRST: &str = "memory.first";
const SECOND: &str = "memory.second";
const BEST: &str = "best";

/// The checkpoint of a folder, whether or not it is there.
pub fn checkpoint_file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.safetensors")
}

/// A state to go on from.
pub(super) struct Loaded {
    pub parameters: Vec<f32>,
    pub state: State,
    /// The checksum of the records before it.
    pub records: String,
}

pub(super) fn save(
    path: &Path,
    parameters: &[f32],
    state: &State,
    identity: &Identity,
    train: &TrainSpec,
    records: String,
) -> Result<()> {
    let header = Header {
        version: VERSION,
        identity: identity.clone(),
        train: train.clone(),
        iteration: state.iteration,
        since_best: state.since_best,
        best: state.best.as_ref().map(|b| (b.held_out, b.iteration)),
        records,
        diverged: None,
    };
    let mut tensors = vec![
        (PARAMETERS, parameters),
        (FIRST, &state.memory.first[..]),
        (SECOND, &state.memory.second[..]),
    ];
    if let Some(best) = &state.best {
        tensors.push((BEST, &best.parameters));
    }
    write(path, &header, &tensors)
}

fn write(path: &Path, header: &Header, arrays: &[(&str, &[f32])]) -> Result<()> {
    let text = serde_json::to_string(header).map_err(|e| TrainError::Checkpoint {
        path: path.into(),
        fault: CheckpointFault::Header(e),
    })?;
    let arrays = arrays
        .iter()
        .map(|&(name, data)| (name.to_string(), vec![data.len()], Numbers::from(data)))
        .collect();
    Ok(write_tensors(path, arrays, &text)?)
}

/// Notes in the last checkpoint, if there is one, that training from it ran into numbers that are not finite: it would again.
pub(super) fn mark_diverged(path: &Path, iteration: usize) -> Result<()> {
    let Some(stored) = read_tensors(path)? else {
        return Ok(());
    };
    let mut header = parse(&stored, path)?;
    header.diverged = Some(iteration);
    let arrays = stored.arrays()?.single;
    let arrays: Vec<(&str, &[f32])> = arrays.iter().map(|(n, x)| (&n[..], &x[..])).collect();
    write(path, &header, &arrays)
}

/// The state left in a file, if there is one, after checking that it belongs to this problem and these settings.
pub(super) fn load(
    path: &Path,
    identity: &Identity,
    train: &TrainSpec,
    count: usize,
) -> Result<Option<Loaded>> {
    let Some(stored) = read_tensors(path)? else {
        return Ok(None);
    };
    let fault = |fault: CheckpointFault| TrainError::Checkpoint {
        path: path.into(),
        fault,
    };
    let header = parse(&stored, path)?;
    let mut tensors = stored.arrays()?.single;
    check(&header, identity, train).map_err(fault)?;
    if let Some(iteration) = header.diverged {
        return Err(fault(CheckpointFault::Diverged {
            iteration,
            learning_rate: header.train.learning_rate,
        })
        .into());
    }
    let mut take = |name: &'static str| match tensors.remove(name) {
        Some(data) if data.len() == count => Ok(data),
        Some(data) => Err(fault(CheckpointFault::Length {
            array: name,
            found: data.len(),
            wanted: count,
        })),
        None => Err(fault(CheckpointFault::Lacks(name))),
    };
    let state = State {
        memory: Memory {
            first: take(FIRST)?,
            second: take(SECOND)?,
        },
        best: match header.best {
            None => None,
            Some((held_out, iteration)) => Some(Best {
                parameters: take(BEST)?,
                held_out,
                iteration,
            }),
        },
        iteration: header.iteration,
        since_best: header.since_best,
    };
    Ok(Some(Loaded {
        parameters: take(PARAMETERS)?,
        state,
        records: header.records,
    }))
}

fn parse(stored: &Stored, path: &Path) -> Result<Header, TrainError> {
    header(&stored.text).map_err(|fault| TrainError::Checkpoint {
        path: path.into(),
        fault,
    })
}

fn header(text: &str) -> Result<Header, CheckpointFault> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = serde_json::from_str(text).map_err(CheckpointFault::Header)?;
    match version {
        VERSION => serde_json::from_str(text).map_err(CheckpointFault::Header),
        newer if newer > VERSION => Err(CheckpointFault::Newer(newer)),
        older => Err(CheckpointFault::Older(older)),
    }
}

fn check(header: &Header, identity: &Identity, train: &TrainSpec) -> Result<(), CheckpointFault> {
    let stored = &header.identity;
    if stored.samples != identity.samples {
        return Err(CheckpointFault::Samples {
            then: stored.samples,
            now: identity.samples,
        });
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
        return Err(CheckpointFault::Settings);
    }
    if stored.data != identity.data {
        return Err(CheckpointFault::Data);
    }
    if stored.model != identity.model {
        return Err(CheckpointFault::Model);
    }
    Ok(())
}
