//! One line per step in a file that only grows: checkpoints need no history and stay as small as the model.
//!
//! Lines are on the disk before the checkpoint that follows them. If the process ends in between, the file has lines beyond the
//! checkpoint; whoever goes on cuts them off.

use super::TrainError;
use super::error::CheckpointFault;
use crate::storage::StorageError;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Seek, SeekFrom, Write};
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

/// The records of a folder of checkpoints, whether or not they are there: JSON, a line per step.
pub fn records_file(folder: &Path) -> PathBuf {
    folder.join("records.jsonl")
}

/// The records in a folder of checkpoints, up to the first that is not whole; none where there is no file.
pub fn read_records(folder: &Path) -> Result<Vec<Record>> {
    let path = records_file(folder);
    match File::open(&path) {
        Ok(file) => Ok(whole_records(file, usize::MAX)
            .map_err(|source| failed("read", &path, source))?
            .0),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(vec![]),
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

/// The records from the first on, one for each iteration up to the last that is asked for, and where they end in the file.
fn whole_records(file: File, last: usize) -> std::io::Result<(Vec<Record>, u64)> {
    let (mut records, mut end) = (vec![], 0);
    let mut lines = BufReader::new(file);
    let mut line = vec![];
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line)?;
        let record = serde_json::from_slice(&line)
            .ok()
            .filter(|r: &Record| r.iteration == records.len() + 1 && r.iteration <= last);
        match record {
            Some(record) if line.ends_with(b"\n") => records.push(record),
            _ => return Ok((records, end)),
        }
        end += read as u64;
    }
}

/// The file of records, open at its end.
pub(super) struct RecordFile {
    path: PathBuf,
    file: BufWriter<File>,
    /// The line that is written, reused.
    line: Vec<u8>,
}

impl RecordFile {
    /// Opens the file of a folder, cuts off what is beyond an iteration and gives back what is left.
    pub fn open(folder: &Path, iteration: usize) -> Result<(Self, Vec<Record>)> {
        std::fs::create_dir_all(folder).map_err(|e| failed("create", folder, e))?;
        let path = records_file(folder);
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = opened.map_err(|e| failed("write", &path, e))?;
        let cut = || -> std::io::Result<_> {
            let (records, end) = whole_records(file.try_clone()?, iteration)?;
            file.set_len(end)?;
            (&file).seek(SeekFrom::Start(end))?;
            Ok(records)
        };
        let records = cut().map_err(|e| failed("write", &path, e))?;
        if records.len() < iteration {
            return Err(TrainError::Checkpoint {
                path: super::checkpoint_file(folder),
                fault: CheckpointFault::Records {
                    iteration,
                    records: records.len(),
                },
            }
            .into());
        }
        let records_file = RecordFile {
            path,
            file: BufWriter::new(file),
            line: vec![],
        };
        Ok((records_file, records))
    }

    /// Adds a record.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)
            .map_err(|e| failed("write", &self.path, e.into()))?;
        self.line.push(b'\n');
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
