//! One line per step in a file that only grows: checkpoints need no history and stay as small as the model.
//!
//! Lines are on the disk before the checkpoint that follows them. If the process ends in between, the file has lines beyond the
//! checkpoint; whoever goes on cuts them off. The checkpoint has a checksum of the lines before it.

use super::TrainError;
use super::error::CheckpointFault;
use crate::storage::{StorageError, hexadecimal};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What one step was like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Steps taken, this one included.
    pub iteration: usize,
    /// The value before the step: for a model, the mean nodewise free energy of the batch, in nats.
    pub free_energy: f64,
    /// That of the held-out samples after the step, when it was measured.
    pub held_out: Option<f64>,
    /// The norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// The learning rate.
    pub rate: f64,
}

/// Records that are held in memory, at most.
const MOST_HELD: usize = 1 << 16;

/// The records of a training in bounded memory: all of them, or of a long one every second, fourth, eighth …, and the last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Records {
    held: Vec<Record>,
    last: Option<Record>,
    /// The value of the first step.
    first: Option<f64>,
    /// One in so many steps is held, as a power of two.
    power: u32,
}

impl Records {
    /// None yet, with room for so many steps.
    pub(super) fn with_room(steps: usize) -> Self {
        Records {
            held: Vec::with_capacity(steps.min(MOST_HELD)),
            ..Records::default()
        }
    }

    /// Adds the next step's.
    pub fn push(&mut self, record: Record) {
        self.first.get_or_insert(record.free_energy);
        if self.held.len() == MOST_HELD {
            self.power += 1;
            let every = 1 << self.power;
            self.held.retain(|r| r.iteration % every == 0);
        }
        if record.iteration.is_multiple_of(1 << self.power) {
            self.held.push(record.clone());
        }
        self.last = Some(record);
    }

    /// How many steps there were, those included that are not held any more.
    pub fn steps(&self) -> usize {
        self.last.as_ref().map_or(0, |r| r.iteration)
    }

    /// The value of the first step.
    pub(super) fn first(&self) -> Option<f64> {
        self.first
    }

    /// Those that are held, the last step's among them.
    pub fn into_vec(mut self) -> Vec<Record> {
        if self.held.last() != self.last.as_ref() {
            self.held.extend(self.last);
        }
        self.held
    }
}

/// The records of a folder of checkpoints, whether or not they are there: JSON, a line per step.
pub fn records_file(folder: &Path) -> PathBuf {
    folder.join("records.jsonl")
}

/// The records in a folder of checkpoints, up to the first that is not whole; none where there is no file.
pub fn read_records(folder: &Path) -> Result<Records> {
    let path = records_file(folder);
    match File::open(&path) {
        Ok(file) => Ok(whole_records(file, usize::MAX)
            .map_err(|source| failed("read", &path, source))?
            .records),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Records::default()),
        Err(source) => Err(failed("read", &path, source)),
    }
}

fn failed(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Storage(StorageError::File {
        action,
        path: path.to_path_buf(),
        source,
    })
}

/// Records from the first on, one for each iteration.
struct Whole {
    records: Records,
    /// Where they end in the file.
    end: u64,
    /// The checksum of their lines.
    sum: Sha256,
}

/// The longest line of a record; a longer one is none.
const LONGEST_LINE: u64 = 4096;

/// The records up to the last that is asked for.
fn whole_records(file: File, last: usize) -> std::io::Result<Whole> {
    let mut whole = Whole {
        records: Records::default(),
        end: 0,
        sum: Sha256::new(),
    };
    let mut lines = BufReader::new(file);
    let mut line = vec![];
    loop {
        line.clear();
        let read = (&mut lines)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)?;
        let next = whole.records.steps() + 1;
        let record = serde_json::from_slice(&line)
            .ok()
            .filter(|r: &Record| r.iteration == next && r.iteration <= last);
        match record {
            Some(record) if line.ends_with(b"\n") => whole.records.push(record),
            _ => return Ok(whole),
        }
        whole.sum.update(&line);
        whole.end += read as u64;
    }
}

/// The file of records, open at its end.
pub(super) struct RecordFile {
    path: PathBuf,
    file: BufWriter<File>,
    /// The line that is written, reused.
    line: Vec<u8>,
    /// The checksum of all lines.
    sum: Sha256,
}

impl RecordFile {
    /// Opens the file of a folder, cuts off what is beyond an iteration and gives back what is left, which must be what the
    /// checkpoint of this iteration has the checksum of.
    pub fn open(folder: &Path, iteration: usize, known: Option<&str>) -> Result<(Self, Records)> {
        std::fs::create_dir_all(folder).map_err(|e| failed("create", folder, e))?;
        let path = records_file(folder);
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = opened.map_err(|e| failed("write", &path, e))?;
        let read = file
            .try_clone()
            .and_then(|file| whole_records(file, iteration));
        let Whole { records, end, sum } = read.map_err(|e| failed("read", &path, e))?;
        let fault = if records.steps() < iteration {
            Some(CheckpointFault::Records {
                iteration,
                records: records.steps(),
            })
        } else {
            let found = hexadecimal(&sum.clone().finalize());
            known
                .filter(|known| *known != found)
                .map(|_| CheckpointFault::RecordsChanged)
        };
        if let Some(fault) = fault {
            return Err(TrainError::Checkpoint {
                path: super::checkpoint_file(folder),
                fault,
            }
            .into());
        }
        let cut = file.set_len(end);
        cut.and_then(|()| (&file).seek(SeekFrom::Start(end)))
            .map_err(|e| failed("write", &path, e))?;
        let records_file = RecordFile {
            path,
            file: BufWriter::new(file),
            line: vec![],
            sum,
        };
        Ok((records_file, records))
    }

    /// The checksum of all records so far.
    pub fn checksum(&self) -> String {
        hexadecimal(&self.sum.clone().finalize())
    }

    /// Adds a record.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)
            .map_err(|e| failed("write", &self.path, e.into()))?;
        self.line.push(b'\n');
        self.sum.update(&self.line);
        let written = self.file.write_all(&self.line);
        written.map_err(|e| failed("write", &self.path, e))
    }

    /// Makes sure that all records are on the disk.
    pub fn sync(&mut self) -> Result<()> {
        let flushed = self.file.flush();
        let synced = flushed.and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(|e| failed("write", &self.path, e))
    }
}
