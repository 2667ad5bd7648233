//! Writing text tables.

use super::super::column::{Column, spell_number, strings};
use super::super::{TableWriter, check_columns, columns};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use csv::{Writer, WriterBuilder};
use ramp::storage::PendingFile;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

pub(in super::super) struct CsvWriter {
    writer: Writer<BufWriter<PendingFile>>,
    path: PathBuf,
    schema: SchemaRef,
}

impl CsvWriter {
    pub(in super::super) fn create(
        path: &Path,
        separator: Option<u8>,
        schema: SchemaRef,
    ) -> Result<Self> {
        let file = BufWriter::with_capacity(1 << 16, PendingFile::create(path)?);
        let mut writer = WriterBuilder::new()
            .delimiter(separator.unwrap_or(b','))
            .from_writer(file);
        writer
            .write_record(schema.fields().iter().map(|field| field.name()))
            .map_err(|e| cannot_write(path, e))?;
        Ok(Self {
            writer,
            path: path.to_path_buf(),
            schema,
        })
    }
}

/// The cells of one column on their way, as they are spelled.
enum Spelled<'a> {
    Numbers(std::vec::IntoIter<f64>),
    AsTheyStand(Box<dyn Iterator<Item = Option<&'a str>> + 'a>),
    Texts(std::vec::IntoIter<Option<String>>),
}

impl<'a> Spelled<'a> {
    fn of(column: Column<'a>) -> Result<Self> {
        Ok(match strings(column.cells) {
            Some(texts) => Spelled::AsTheyStand(texts),
            None if column.cells.data_type().is_floating() => {
                Spelled::Numbers(column.numbers(0)?.into_iter())
            }
            None => Spelled::Texts(column.texts().into_iter()),
        })
    }
}

impl TableWriter for CsvWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        check_columns(&self.path, &self.schema, rows)?;
        let mut spelled = columns(rows).map(Spelled::of).collect::<Result<Vec<_>>>()?;
        let failed = |e| cannot_write(&self.path, e);
        for _ in 0..rows.num_rows() {
            for column in &mut spelled {
                match column {
                    Spelled::Numbers(cells) => match cells.next() {
                        Some(x) if !x.is_nan() => self.writer.write_field(spell_number(x)),
                        _ => self.writer.write_field(""),
                    },
                    Spelled::AsTheyStand(cells) => self
                        .writer
                        .write_field(cells.next().flatten().unwrap_or_default()),
                    Spelled::Texts(cells) => self
                        .writer
                        .write_field(cells.next().flatten().unwrap_or_default()),
                }
                .map_err(failed)?;
            }
            self.writer.write_record(None::<&[u8]>).map_err(failed)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let failed = |source: io::Error| Error::File {
            action: "write",
            path: self.path.clone(),
            source,
        };
        let buffered = self
            .writer
            .into_inner()
            .map_err(|e| failed(e.into_error()))?;
        let file = buffered.into_inner().map_err(|e| failed(e.into_error()))?;
        Ok(file.commit()?)
    }
}

fn cannot_write(path: &Path, error: csv::Error) -> Error {
    let source = match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    };
    Error::File {
        action: "write",
        path: path.to_path_buf(),
        source,
    }
}
