//! Writing Parquet tables: row groups of a good size, compressed with Snappy, which every reader knows.

use super::super::{TableWriter, check_columns, with_nulls};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use ramp::storage::PendingFile;
use std::io;
use std::path::{Path, PathBuf};

/// Rows wait until they have so many cells: smaller groups make larger files, larger ones need more memory.
const CELLS: usize = 1 << 21;

pub(in super::super) struct ParquetWriter {
    path: PathBuf,
    schema: SchemaRef,
    writer: ArrowWriter<PendingFile>,
}

impl ParquetWriter {
    pub(in super::super) fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
        let rows = CELLS.div_ceil(schema.fields().len().max(1)).max(1 << 10);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(rows))
            .build();
        let file = PendingFile::create(path)?;
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))
            .map_err(|e| cannot_write(path, e))?;
        Ok(Self {
            path: path.to_path_buf(),
            schema,
            writer,
        })
    }
}

impl TableWriter for ParquetWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        check_columns(&self.path, &self.schema, rows)?;
        let rows = with_nulls(&self.schema, rows)?;
        let written = self.writer.write(&rows);
        written.map_err(|e| cannot_write(&self.path, e))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let file = self.writer.into_inner();
        let file = file.map_err(|e| cannot_write(&self.path, e))?;
        Ok(file.commit()?)
    }
}

fn cannot_write(path: &Path, error: ParquetError) -> Error {
    Error::File {
        action: "write",
        path: path.to_path_buf(),
        source: io::Error::other(error),
    }
}
