//! Tables in files as streams of Arrow `RecordBatch`es: one reader and one writer per format, chosen by the file's extension.
//!
//! | extension | format |
//! |---|---|
//! | `.csv`, `.txt` | text with commas, or with tabs or semicolons where the header has these and no comma |
//! | `.tsv`, `.tab` | text with tabs |
//! | `.parquet` | Apache Parquet |
//! | `.arrow`, `.feather`, `.ipc` | Arrow IPC, files and streams |
//! | `.npy`, `.npz` | NumPy arrays of one or two axes |
//!
//! A reader yields some rows at a time, so a file may be larger than memory:
//!
//! ```
//! use ramp_io::table::{column, create_table, open_columns, open_table};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("people.csv");
//! std::fs::write(&path, "name,age,height\nAnn,34,1.70\nBo,NA,1.82\n").unwrap();
//!
//! let mut reader = open_columns(&path, &["height".into(), "age".into()])?;
//! let mut first_row = 0;
//! while let Some(rows) = reader.next(1000)? {
//!     assert_eq!(column(&rows, "height")?.numbers(first_row)?, [1.70, 1.82]);
//!     assert!(column(&rows, "age")?.missing()[1]);
//!     first_row += rows.num_rows();
//! }
//!
//! // The same rows in another format.
//! let mut reader = open_table(&path)?;
//! let mut writer = create_table(&path.with_extension("parquet"), &reader.schema())?;
//! while let Some(rows) = reader.next(1000)? {
//!     writer.write(&rows)?;
//! }
//! writer.finish()?;
//! # Ok::<(), ramp_io::Error>(())
//! ```

mod column;
mod csv;
mod editor;
mod error;
mod guard;
mod identifier;
mod ipc;
mod memory;
mod npy;
mod parquet;
mod part;
#[cfg(test)]
mod part_tests;
mod summary;
mod usable;

pub use column::{
    Column, ColumnKind, column, column_kind, columns, concat_rows, is_comma_number,
    is_missing_text, select_columns, select_rows, table, table_of, unread_kind,
};
pub use editor::ColumnEditor;
pub use error::{Damage, TableError};
pub use guard::is_guarded;
pub use identifier::Identifier;
pub use memory::{BatchReader, readable};
pub(crate) use part::{Place, find_part, open_part};
pub use summary::{ColumnSummary, Distinct, Kind, NumberSummary, summarize};
pub use usable::Use;

use crate::Result;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// A table in a file, read some rows at a time.
pub trait TableReader: Send {
    /// The columns that it yields.
    fn schema(&self) -> SchemaRef;

    /// The next rows, at most as many as asked for; `None` after the last.
    fn next(&mut self, rows: usize) -> Result<Option<RecordBatch>>;

    /// How many rows the file says that it has, if it does.
    fn rows_hint(&self) -> Option<u64> {
        None
    }

    /// How much of the file has been read, from 0 to 1, if that can be known.
    fn progress(&self) -> Option<f64> {
        None
    }
}

/// A table on its way into a file.
///
/// The file takes its place in [`finish`](Self::finish); a writer that is dropped before leaves nothing behind, and what stood
/// in that place stays.
pub trait TableWriter: Send {
    /// Appends rows; their columns are those that the file was created with.
    fn write(&mut self, rows: &RecordBatch) -> Result<()>;

    /// Makes sure that the file is on the disk and puts it in its place.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Opens all columns of a table.
pub fn open_table(path: &Path) -> Result<Box<dyn TableReader>> {
    open(path, None)
}

/// Opens only the wanted columns, in this order; the error for a name that is not there suggests the nearest.
pub fn open_columns(path: &Path, wanted: &[String]) -> Result<Box<dyn TableReader>> {
    open(path, Some(wanted))
}

/// Reads an Arrow IPC stream (or file) from a pipe, such as standard input; errors call it by this name. One batch is held at a time.
///
/// ```
/// use ramp_io::arrow::{ArrayRef, Int64Array};
/// use ramp_io::table::{column, read_stream, table, write_stream};
/// let ages: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![34, 7]));
/// let people = table([("age", ages)])?;
///
/// let mut sent = tempfile::tempfile().unwrap();
/// let mut writer = write_stream("a pipe".as_ref(), sent.try_clone().unwrap(), people.schema_ref())?;
/// writer.write(&people)?;
/// writer.finish()?;
///
/// std::io::Seek::rewind(&mut sent).unwrap();
/// let mut reader = read_stream("a pipe".as_ref(), sent)?;
/// assert_eq!(column(&reader.next(10)?.unwrap(), "age")?.numbers(0)?, [34.0, 7.0]);
/// # Ok::<(), ramp_io::Error>(())
/// ```
pub fn read_stream(name: &Path, pipe: impl Read + Send + 'static) -> Result<Box<dyn TableReader>> {
    Ok(Box::new(ipc::IpcReader::of_pipe(name, Box::new(pipe))?))
}

/// Starts an Arrow IPC stream of these columns in a pipe, such as standard output. What is written is on its way at once, so it cannot be
/// taken back.
pub fn write_stream(
    name: &Path,
    pipe: impl Write + Send + 'static,
    schema: &Schema,
) -> Result<Box<dyn TableWriter>> {
    let schema = checked_schema(name, schema)?;
    Ok(Box::new(ipc::IpcStreamWriter::create(name, pipe, schema)?))
}

fn open(path: &Path, wanted: Option<&[String]>) -> Result<Box<dyn TableReader>> {
    check_there(path)?;
    Ok(match Format::of(path)? {
        Format::Separated(separator) => Box::new(csv::CsvReader::open(path, separator, wanted)?),
        Format::Parquet => Box::new(parquet::ParquetReader::open(path, wanted)?),
        Format::Arrow => Box::new(ipc::IpcReader::open(path, wanted)?),
        Format::NumPy { .. } => Box::new(npy::NpyReader::open(path, wanted)?),
    })
}

/// Checks that there is a file to read.
pub(crate) fn check_there(path: &Path) -> Result<(), TableError> {
    let path = path.to_path_buf();
    match std::fs::metadata(&path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(found) if found.is_dir() => Err(TableError::DataIsFolder { path }),
        // Data is read more than once, and by its length.
        Ok(_) => Err(TableError::NotAFile { path }),
        Err(_) => Err(TableError::NoFile { path }),
    }
}

/// Checks that a file's name ends like a kind of table that can be read and written.
pub fn check_format(path: &Path) -> Result<()> {
    Ok(Format::of(path).map(drop)?)
}

/// Starts a table of these columns in a file; missing folders are made.
pub fn create_table(path: &Path, schema: &Schema) -> Result<Box<dyn TableWriter>> {
    let format = Format::of(path)?;
    if path.is_dir() {
        let path = path.to_path_buf();
        return Err(TableError::OutputIsFolder { path }.into());
    }
    let schema = checked_schema(path, schema)?;
    Ok(match format {
        Format::Separated(separator) => Box::new(csv::CsvWriter::create(path, separator, schema)?),
        Format::Parquet => Box::new(parquet::ParquetWriter::create(path, schema)?),
        Format::Arrow => Box::new(ipc::IpcWriter::create(path, schema)?),
        Format::NumPy { archive } => Box::new(npy::NpyWriter::create(path, archive, schema)?),
    })
}

/// The columns as they are written, if all of them can be.
fn checked_schema(path: &Path, schema: &Schema) -> Result<SchemaRef> {
    if schema.fields().is_empty() {
        let path = path.to_path_buf();
        return Err(TableError::NothingToWrite { path }.into());
    }
    column::check_names(path, schema)?;
    for field in schema.fields() {
        if let Some(kind) = unread_kind(field) {
            return Err(column::unread(field.name(), kind).into());
        }
    }
    // Any cell may be missing, whatever file the columns come from.
    let nullable = |field: &Arc<Field>| Field::new(field.name(), field.data_type().clone(), true);
    let fields: Vec<Field> = schema.fields().iter().map(nullable).collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// A good number of rows to read at once: small enough for memory, large enough that no time is lost between.
pub fn rows_at_once(columns: usize) -> usize {
    (1_usize << 18).div_ceil(columns.max(1)).clamp(16, 1 << 14)
}

enum Format {
    /// Text with this separator, or with one to be found in the header.
    Separated(Option<u8>),
    Parquet,
    Arrow,
    /// One array or an archive of several.
    NumPy {
        archive: bool,
    },
}

impl Format {
    fn of(path: &Path) -> Result<Self, TableError> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        match extension.to_ascii_lowercase().as_str() {
            "csv" | "txt" => Ok(Format::Separated(None)),
            "tsv" | "tab" => Ok(Format::Separated(Some(b'\t'))),
            "parquet" => Ok(Format::Parquet),
            "arrow" | "feather" | "ipc" => Ok(Format::Arrow),
            "npy" => Ok(Format::NumPy { archive: false }),
            "npz" => Ok(Format::NumPy { archive: true }),
            _ => Err(TableError::UnknownFormat {
                path: path.to_path_buf(),
            }),
        }
    }
}

/// Checks that rows have the columns that the file was created with, which writers rely on.
fn check_columns(path: &Path, schema: &Schema, rows: &RecordBatch) -> Result<(), TableError> {
    let given = rows.schema_ref().fields();
    if given.len() != schema.fields().len() {
        return Err(TableError::OtherCount {
            path: path.to_path_buf(),
            expected: schema.fields().len(),
            found: given.len(),
        });
    }
    for (field, found) in schema.fields().iter().zip(given) {
        if field.name() != found.name() || field.data_type() != found.data_type() {
            return Err(TableError::OtherColumn {
                path: path.to_path_buf(),
                name: field.name().clone(),
                kind: field.data_type().to_string().into(),
                found: found.name().clone(),
                found_kind: found.data_type().to_string().into(),
            });
        }
    }
    Ok(())
}

/// Rows as formats with nulls keep them: what is missing is null, however it was spelled before.
fn with_nulls(schema: &SchemaRef, rows: &RecordBatch) -> Result<RecordBatch, TableError> {
    let nulled = |column: Column<'_>| -> ArrayRef {
        let missing = match column.cells.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => column.missing(),
            DataType::Float64 if has_nan(column.cells.as_primitive::<Float64Type>().values()) => {
                column.missing()
            }
            DataType::Float32 if has_nan(column.cells.as_primitive::<Float32Type>().values()) => {
                column.missing()
            }
            _ => return column.cells.clone(),
        };
        if missing.iter().filter(|&&m| m).count() == column.cells.null_count() {
            return column.cells.clone();
        }
        let there: Vec<bool> = missing.into_iter().map(|m| !m).collect();
        let data = column.cells.to_data().into_builder();
        let nulls = arrow_buffer::NullBuffer::from(there);
        match data.nulls(Some(nulls)).build() {
            Ok(data) => arrow_array::make_array(data),
            // Only a mask of another length is refused.
            Err(_) => column.cells.clone(),
        }
    };
    column::batch(
        schema.clone(),
        columns(rows).map(nulled).collect(),
        Some(rows.num_rows()),
    )
}

fn has_nan<T: Copy + PartialEq>(values: &[T]) -> bool {
    #[allow(clippy::eq_op)]
    values.iter().any(|&x| x != x)
}
