//! Parquet tables.
//!
//! On the official crate without its Arrow part, which would triple the time to build: columns are read page by page.

mod footer;
mod pages;
mod values;
mod write;

pub(super) use write::ParquetWriter;

use super::TableReader;
use super::column::{self, Cells, Column, ColumnType, Table};
use crate::{Error, Result};
use pages::CheckedPages;
use parquet::basic::{Compression, Repetition};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use ramp::names::shortened;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use values::Reading;

pub(super) struct ParquetReader {
    path: PathBuf,
    bytes: u64,
    file: SerializedFileReader<File>,
    names: Vec<String>,
    types: Vec<ColumnType>,
    /// For each yielded column its leaf in the schema and how its values become cells.
    columns: Vec<(usize, Reading)>,
    /// The row group to open next.
    group: usize,
    open: Vec<Option<ColumnReader>>,
    left_in_group: usize,
    rows: u64,
    row: usize,
}

impl ParquetReader {
    pub(super) fn open(path: &Path, wanted: Option<&[String]>) -> Result<Self> {
        let cannot_read = |source| Error::File {
            action: "read",
            path: path.to_path_buf(),
            source,
        };
        let mut source = File::open(path).map_err(cannot_read)?;
        let bytes = source.metadata().map_err(cannot_read)?.len();
        footer::check(&mut source, bytes).map_err(|why| unusable(path, &why))?;
        let file = guarded(path, || SerializedFileReader::new(source))?;
        let shown = path.display().to_string();

        let metadata = file.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        let mut leaves = vec![usize::MAX; fields.len()];
        for leaf in (0..schema.num_columns()).rev() {
            if let Some(first) = leaves.get_mut(schema.get_column_root_idx(leaf)) {
                *first = leaf;
            }
        }
        let (mut columns, mut found) = (Vec::new(), Vec::new());
        for (field, &leaf) in fields.iter().zip(&leaves) {
            let plain = field.is_primitive()
                && field.get_basic_info().has_repetition()
                && field.get_basic_info().repetition() != Repetition::REPEATED
                && leaf < schema.num_columns();
            let reading = if plain {
                Reading::of(field)
            } else {
                Reading::Unread("list or struct".into())
            };
            columns.push((field.name().to_owned(), reading.column_type()));
            found.push((leaf, reading));
        }
        if columns.is_empty() {
            return Err(unusable(path, "it has no columns"));
        }
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        column::check_names(&shown, &names)?;
        let picked = column::pick(&shown, &columns, wanted)?;
        let mut rows = 0_u64;
        for group in metadata.row_groups() {
            let count = u64::try_from(group.num_rows()).ok();
            let total = count.and_then(|count| rows.checked_add(count));
            rows = total
                .filter(|&n| n < usize::MAX as u64)
                .ok_or_else(|| unusable(path, "its number of rows is damaged"))?;
        }
        Ok(Self {
            path: path.to_path_buf(),
            bytes,
            names: picked.iter().map(|&at| columns[at].0.clone()).collect(),
            types: picked.iter().map(|&at| columns[at].1.clone()).collect(),
            columns: picked.iter().map(|&at| found[at].clone()).collect(),
            file,
            group: 0,
            open: Vec::new(),
            left_in_group: 0,
            rows,
            row: 0,
        })
    }

    /// Opens the next row group that has rows; false after the last.
    fn open_group(&mut self) -> Result<bool> {
        while self.left_in_group == 0 {
            let metadata = self.file.metadata();
            if self.group >= metadata.num_row_groups() {
                return Ok(false);
            }
            let group = metadata.row_group(self.group);
            self.left_in_group = usize::try_from(group.num_rows()).unwrap_or(0);
            self.open.clear();
            for ((leaf, reading), name) in self.columns.iter().zip(&self.names) {
                if matches!(reading, Reading::Unread(_)) {
                    self.open.push(None);
                    continue;
                }
                if *leaf >= group.num_columns() {
                    return Err(unusable(
                        &self.path,
                        &format!("column `{}` is cut off", shortened(name)),
                    ));
                }
                check_chunk(&self.path, self.bytes, name, group.column(*leaf))?;
                let (file, number) = (&self.file, self.group);
                let reader = guarded(&self.path, || {
                    let descriptor = group.schema_descr().column(*leaf);
                    let pages = CheckedPages {
                        pages: file.get_row_group(number)?.get_column_page_reader(*leaf)?,
                        physical_type: descriptor.physical_type(),
                        optional: descriptor.max_def_level() > 0,
                    };
                    Ok(get_column_reader(descriptor, Box::new(pages)))
                })?;
                self.open.push(Some(reader));
            }
            self.group += 1;
        }
        Ok(true)
    }
}

impl TableReader for ParquetReader {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn types(&self) -> &[ColumnType] {
        &self.types
    }

    fn next(&mut self, rows: usize) -> Result<Option<Table>> {
        if rows == 0 || !self.open_group()? {
            return Ok(None);
        }
        let mut count = rows.min(self.left_in_group);
        let mut columns = Vec::with_capacity(self.columns.len());
        for (at, (_, reading)) in self.columns.iter().enumerate() {
            let cells = match (&mut self.open[at], reading) {
                (Some(reader), reading) => {
                    let path = &self.path;
                    let raw = guarded(path, || values::read(reader, count))?;
                    reading.cells(raw).map_err(|(row, why)| {
                        let row = self.row + row + 1;
                        unusable(
                            path,
                            &format!("column `{}` in data row {row} {why}", self.names[at]),
                        )
                    })?
                }
                (None, Reading::Unread(kind)) => Cells::Unread {
                    kind: kind.clone(),
                    rows: count,
                },
                (None, _) => Cells::Texts(Vec::new()),
            };
            if at == 0 && !cells.is_empty() && cells.len() < count {
                // Pages may end before as many rows as asked for; the other columns follow the first.
                count = cells.len();
            }
            if cells.len() != count {
                return Err(unusable(
                    &self.path,
                    &format!(
                        "column `{}` has fewer values than the file says",
                        shortened(&self.names[at])
                    ),
                ));
            }
            columns.push(Column::new(self.names[at].clone(), cells));
        }
        let first_row = self.row;
        self.row += count;
        self.left_in_group -= count;
        Ok(Some(Table::of_checked(columns, first_row)))
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn progress(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.row as f64 / self.rows as f64)
    }
}

/// Checks that a column's bytes stand within the file and are packed in a way that can be unpacked.
fn check_chunk(
    path: &Path,
    bytes: u64,
    name: &str,
    chunk: &parquet::file::metadata::ColumnChunkMetaData,
) -> Result<()> {
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or(chunk.data_page_offset());
    let end = u64::try_from(start)
        .ok()
        .zip(u64::try_from(chunk.compressed_size()).ok());
    if end.is_none_or(|(start, size)| start.checked_add(size).is_none_or(|end| end > bytes)) {
        return Err(unusable(
            path,
            &format!("column `{}` is cut off", shortened(name)),
        ));
    }
    let codec = match chunk.compression() {
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::LZ4
        | Compression::LZ4_RAW => return Ok(()),
        Compression::ZSTD(_) => "Zstandard",
        Compression::BROTLI(_) => "Brotli",
        Compression::LZO => "LZO",
    };
    Err(unusable(
        path,
        &format!(
            "column `{}` is compressed with {codec}; write the file with Snappy, gzip or LZ4",
            shortened(name)
        ),
    ))
}

/// Runs a piece of the parser, its errors as sentences about the file.
///
/// A parser of this size has places where damaged files meet an assertion or an index out of bounds. Sizes are checked before
/// ([`footer`], [`pages`]); for what is left, a panic of the parser is a damaged file too. Nothing of its state is used after.
fn guarded<T>(path: &Path, run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let why = error.to_string();
            Err(unusable(
                path,
                &format!("it is damaged ({})", shortened(&why)),
            ))
        }
        Err(_) => Err(unusable(path, "it is damaged")),
    }
}

fn unusable(path: &Path, why: &str) -> Error {
    Error::Invalid(format!("`{}` cannot be read: {why}", path.display()))
}
