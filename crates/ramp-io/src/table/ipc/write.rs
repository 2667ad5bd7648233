//! Writing Arrow IPC files and streams.

use super::super::{TableWriter, check_columns, with_nulls};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use ramp::storage::PendingFile;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Larger tables are cut into batches of so many rows.
const ROWS: usize = 1 << 16;

pub(in super::super) struct IpcWriter {
    path: PathBuf,
    schema: SchemaRef,
    writer: FileWriter<BufWriter<PendingFile>>,
}

impl IpcWriter {
    pub(in super::super) fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
        let file = BufWriter::with_capacity(1 << 16, PendingFile::create(path)?);
        let writer = FileWriter::try_new(file, &schema).map_err(|e| cannot_write(path, e))?;
        Ok(Self {
            path: path.to_path_buf(),
            schema,
            writer,
        })
    }
}

impl TableWriter for IpcWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        check_columns(&self.path, &self.schema, rows)?;
        let rows = with_nulls(&self.schema, rows)?;
        for first in (0..rows.num_rows()).step_by(ROWS) {
            let some = rows.slice(first, ROWS.min(rows.num_rows() - first));
            let written = self.writer.write(&some);
            written.map_err(|e| cannot_write(&self.path, e))?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { path, writer, .. } = *self;
        let buffered = writer.into_inner().map_err(|e| cannot_write(&path, e))?;
        let file = buffered.into_inner();
        let file = file.map_err(|e| cannot_write(&path, ArrowError::from(e.into_error())))?;
        Ok(file.commit()?)
    }
}

/// A stream into a pipe: every batch is on its way once it is written.
pub(in super::super) struct IpcStreamWriter<W: Write> {
    name: PathBuf,
    schema: SchemaRef,
    writer: StreamWriter<BufWriter<W>>,
}

impl<W: Write> IpcStreamWriter<W> {
    pub(in super::super) fn create(name: &Path, to: W, schema: SchemaRef) -> Result<Self> {
        let buffered = BufWriter::with_capacity(1 << 16, to);
        let writer = StreamWriter::try_new(buffered, &schema).map_err(|e| cannot_write(name, e))?;
        Ok(Self {
            name: name.to_path_buf(),
            schema,
            writer,
        })
    }
}

impl<W: Write + Send> TableWriter for IpcStreamWriter<W> {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        check_columns(&self.name, &self.schema, rows)?;
        let rows = with_nulls(&self.schema, rows)?;
        let written = self.writer.write(&rows).and_then(|()| self.writer.flush());
        written.map_err(|e| cannot_write(&self.name, e))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let ended = self.writer.finish().and_then(|()| self.writer.flush());
        ended.map_err(|e| cannot_write(&self.name, e))
    }
}

fn cannot_write(path: &Path, error: ArrowError) -> Error {
    Error::File {
        action: "write",
        path: path.to_path_buf(),
        source: match error {
            ArrowError::IoError(_, source) => source,
            other => io::Error::other(other),
        },
    }
}
