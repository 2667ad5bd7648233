//! Tables in files as streams of rows: one reader and one writer per format, chosen by the file's extension.
//!
//! | extension | format |
//! |---|---|
//! | `.csv`, `.txt` | text with commas, or with tabs or semicolons where the header has these and no comma |
//! | `.tsv`, `.tab` | text with tabs |
//! | `.parquet` | Apache Parquet |
//! | `.arrow`, `.feather`, `.ipc` | Arrow IPC |
//! | `.npy`, `.npz` | NumPy arrays of one or two axes |
//!
//! A reader yields some rows at a time, so a file may be larger than memory:
//!
//! ```
//! use ramp_io::table::{Cells, Column, Table, create_table, open_columns, open_table};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("people.csv");
//! std::fs::write(&path, "name,age,height\nAnn,34,1.70\nBo,NA,1.82\n").unwrap();
//!
//! let mut reader = open_columns(&path, &["height".into(), "age".into()])?;
//! while let Some(rows) = reader.next(1000)? {
//!     assert_eq!(rows.columns()[0].numbers()?, [1.70, 1.82]);
//!     assert!(rows.column("age")?.is_missing(1));
//! }
//!
//! // The same rows in another format.
//! let mut reader = open_table(&path)?;
//! let mut writer = create_table(&path.with_extension("tsv"), &reader.columns())?;
//! while let Some(rows) = reader.next(1000)? {
//!     writer.write(&rows)?;
//! }
//! writer.finish()?;
//! # Ok::<(), ramp_io::Error>(())
//! ```

mod arrow;
mod column;
mod csv;
mod iso;
mod npy;
mod parquet;
mod summary;

pub use column::{Cells, Column, ColumnType, Table, is_missing_text};
pub use summary::{ColumnSummary, Distinct, Kind, NumberSummary, summarize};

use crate::{Error, Result};
use std::path::Path;

/// A table in a file, read some rows at a time.
pub trait TableReader: Send {
    /// The names of the columns that it yields.
    fn names(&self) -> &[String];

    /// The types of these columns.
    fn types(&self) -> &[ColumnType];

    /// The next rows, at most as many as asked for; `None` after the last.
    fn next(&mut self, rows: usize) -> Result<Option<Table>>;

    /// How many rows the file says that it has, if it does.
    fn rows_hint(&self) -> Option<u64> {
        None
    }

    /// How much of the file has been read, from 0 to 1, if that can be known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Names and types side by side, as [`create_table`] takes them.
    fn columns(&self) -> Vec<(String, ColumnType)> {
        let types = self.types().iter().cloned();
        self.names().iter().cloned().zip(types).collect()
    }
}

/// A table on its way into a file.
///
/// The file takes its place in [`finish`](Self::finish); a writer that is dropped before leaves nothing behind, and what stood
/// in that place stays.
pub trait TableWriter: Send {
    /// Appends rows; their columns are those that the file was created with.
    fn write(&mut self, table: &Table) -> Result<()>;

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

fn open(path: &Path, wanted: Option<&[String]>) -> Result<Box<dyn TableReader>> {
    check_there(path)?;
    Ok(match Format::of(path)? {
        Format::Separated(separator) => Box::new(csv::CsvReader::open(path, separator, wanted)?),
        Format::Parquet => Box::new(parquet::ParquetReader::open(path, wanted)?),
        Format::Arrow => Box::new(arrow::ArrowReader::open(path, wanted)?),
        Format::NumPy { .. } => Box::new(npy::NpyReader::open(path, wanted)?),
    })
}

/// Checks that there is a file to read.
pub(crate) fn check_there(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.is_dir() {
        let sentence = format!("`{shown}` is a folder; name a data file in it");
        return Err(Error::Invalid(sentence));
    }
    match path.exists() {
        true => Ok(()),
        false => Err(Error::Invalid(format!("there is no data file `{shown}`"))),
    }
}

/// Checks that a file's name ends like a kind of table that can be read and written.
pub fn check_format(path: &Path) -> Result<()> {
    Format::of(path).map(drop)
}

/// Starts a table of these columns in a file; missing folders are made.
pub fn create_table(path: &Path, columns: &[(String, ColumnType)]) -> Result<Box<dyn TableWriter>> {
    let file = path.display().to_string();
    let format = Format::of(path)?;
    if columns.is_empty() {
        return Err(Error::Invalid(format!(
            "there is no column to write to `{file}`"
        )));
    }
    if path.is_dir() {
        return Err(Error::Invalid(format!(
            "`{file}` is a folder; name a file in it"
        )));
    }
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    column::check_names(&file, &names)?;
    for (name, kind) in columns {
        if let ColumnType::Unread(kind) = kind {
            return Err(column::unread(name, kind));
        }
    }
    Ok(match format {
        Format::Separated(separator) => Box::new(csv::CsvWriter::create(path, separator, columns)?),
        Format::Parquet => Box::new(parquet::ParquetWriter::create(path, columns)?),
        Format::Arrow => Box::new(arrow::ArrowWriter::create(path, columns)?),
        Format::NumPy { archive } => Box::new(npy::NpyWriter::create(path, archive, columns)?),
    })
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
    fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        match extension.to_ascii_lowercase().as_str() {
            "csv" | "txt" => Ok(Format::Separated(None)),
            "tsv" | "tab" => Ok(Format::Separated(Some(b'\t'))),
            "parquet" => Ok(Format::Parquet),
            "arrow" | "feather" | "ipc" => Ok(Format::Arrow),
            "npy" => Ok(Format::NumPy { archive: false }),
            "npz" => Ok(Format::NumPy { archive: true }),
            _ => Err(Error::Invalid(format!(
                "`{}` is not a kind of table that can be read or written: the name must end in .csv, .tsv, .txt, .parquet, \
                 .arrow, .feather, .ipc, .npy or .npz",
                path.display()
            ))),
        }
    }
}

/// Checks that rows have the columns that the file was created with, which writers rely on.
fn check_columns(file: &str, columns: &[(String, ColumnType)], table: &Table) -> Result<()> {
    let given = table.columns();
    if given.len() != columns.len() {
        return Err(Error::Invalid(format!(
            "`{file}` was begun with {} columns, but these rows have {}",
            columns.len(),
            given.len()
        )));
    }
    for ((name, kind), column) in columns.iter().zip(given) {
        if *name != column.name || *kind != column.cells.column_type() {
            return Err(Error::Invalid(format!(
                "`{file}` was begun with a column `{name}` of type {kind:?}, but these rows have `{}` of type {:?} there",
                column.name,
                column.cells.column_type()
            )));
        }
    }
    Ok(())
}
