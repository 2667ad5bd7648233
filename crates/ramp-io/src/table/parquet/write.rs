//! Writing Parquet tables: row groups of a good size, compressed with Snappy, which every reader knows.

use super::super::column::{Cells, Column, ColumnType, Table};
use super::super::{TableWriter, check_columns};
use crate::{Error, Result};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use ramp::storage::PendingFile;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows wait until they have so many cells: smaller groups make larger files, larger ones need more memory.
const CELLS: usize = 1 << 21;

pub(in super::super) struct ParquetWriter {
    path: PathBuf,
    shown: String,
    columns: Vec<(String, ColumnType)>,
    file: SerializedFileWriter<PendingFile>,
    waiting: Vec<Cells>,
}

impl ParquetWriter {
    pub(in super::super) fn create(path: &Path, columns: &[(String, ColumnType)]) -> Result<Self> {
        let fields = columns.iter().map(|(name, kind)| {
            let (physical, logical) = match kind {
                ColumnType::Number => (Physical::DOUBLE, None),
                ColumnType::Integer => (Physical::INT64, None),
                _ => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical);
            field.build().map(Arc::new)
        });
        let schema = fields.collect::<Result<Vec<_>, _>>().and_then(|fields| {
            Type::group_type_builder("table")
                .with_fields(fields)
                .build()
        });
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let file = PendingFile::create(path)?;
        let file = schema
            .and_then(|schema| {
                SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
            })
            .map_err(|e| cannot_write(path, e))?;
        Ok(Self {
            path: path.to_path_buf(),
            shown: path.display().to_string(),
            columns: columns.to_vec(),
            file,
            waiting: Vec::new(),
        })
    }

    fn write_group(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.iter().all(Cells::is_empty) {
            return Ok(());
        }
        let write = |file: &mut SerializedFileWriter<PendingFile>| -> Result<(), ParquetError> {
            let mut group = file.next_row_group()?;
            for cells in waiting {
                let Some(mut column) = group.next_column()? else {
                    break;
                };
                match cells {
                    Cells::Numbers(cells) => {
                        let levels: Vec<i16> =
                            cells.iter().map(|x| i16::from(!x.is_nan())).collect();
                        let there: Vec<f64> = cells.into_iter().filter(|x| !x.is_nan()).collect();
                        column
                            .typed::<DoubleType>()
                            .write_batch(&there, Some(&levels), None)?;
                    }
                    Cells::Integers(cells) => {
                        let levels: Vec<i16> =
                            cells.iter().map(|x| i16::from(x.is_some())).collect();
                        let there: Vec<i64> = cells.into_iter().flatten().collect();
                        column
                            .typed::<Int64Type>()
                            .write_batch(&there, Some(&levels), None)?;
                    }
                    Cells::Texts(cells) => {
                        let levels: Vec<i16> =
                            cells.iter().map(|x| i16::from(x.is_some())).collect();
                        let there = cells.into_iter().flatten();
                        let there: Vec<ByteArray> =
                            there.map(|text| text.into_bytes().into()).collect();
                        column
                            .typed::<ByteArrayType>()
                            .write_batch(&there, Some(&levels), None)?;
                    }
                    Cells::Unread { .. } => {}
                }
                column.close()?;
            }
            group.close()?;
            Ok(())
        };
        write(&mut self.file).map_err(|e| cannot_write(&self.path, e))
    }
}

impl TableWriter for ParquetWriter {
    fn write(&mut self, table: &Table) -> Result<()> {
        check_columns(&self.shown, &self.columns, table)?;
        if self.waiting.is_empty() {
            self.waiting = table
                .columns()
                .iter()
                .map(|column| column.cells.clone())
                .collect();
        } else {
            for (waiting, Column { cells, .. }) in self.waiting.iter_mut().zip(table.columns()) {
                match (waiting, cells) {
                    (Cells::Numbers(all), Cells::Numbers(more)) => all.extend(more),
                    (Cells::Integers(all), Cells::Integers(more)) => all.extend(more),
                    (Cells::Texts(all), Cells::Texts(more)) => all.extend(more.iter().cloned()),
                    _ => {}
                }
            }
        }
        let rows = self.waiting.first().map_or(0, Cells::len);
        if rows.saturating_mul(self.columns.len()) >= CELLS {
            self.write_group()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.write_group()?;
        let file = self
            .file
            .into_inner()
            .map_err(|e| cannot_write(&self.path, e))?;
        Ok(file.commit()?)
    }
}

fn cannot_write(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    Error::File {
        action: "write",
        path: path.to_path_buf(),
        source,
    }
}
