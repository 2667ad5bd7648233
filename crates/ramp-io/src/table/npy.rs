//! NumPy files as tables: an array of one axis is a column, one of two axes is numbered columns.

use super::column::{self, Cells, Column, ColumnType, Table};
use super::{TableReader, TableWriter, check_columns};
use crate::array::ArrayReader;
use crate::array::npy::{Element, Header};
use crate::array::zip::ZipWriter;
use crate::{Error, Result};
use ramp::names::shortened;
use ramp::storage::PendingFile;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub(super) struct NpyReader {
    arrays: Vec<ArrayReader>,
    /// For each yielded column its array and its place in a row of it.
    places: Vec<(usize, usize)>,
    names: Vec<String>,
    types: Vec<ColumnType>,
    rows: usize,
    row: usize,
}

impl NpyReader {
    pub(super) fn open(path: &Path, wanted: Option<&[String]>) -> Result<Self> {
        let arrays = ArrayReader::open_all(path)?;
        let shown = path.display().to_string();
        let (mut columns, mut places) = (Vec::new(), Vec::new());
        let mut length: Option<(&str, usize)> = None;
        for (place, array) in arrays.iter().enumerate() {
            let kind = match array.element().is_integer() {
                true => ColumnType::Integer,
                false => ColumnType::Number,
            };
            let width = match array.shape() {
                [_] => {
                    columns.push((array.name().to_owned(), kind));
                    places.push((place, 0));
                    1
                }
                [_, width] if *width <= MOST_COLUMNS => {
                    for i in 0..*width {
                        columns.push((format!("{}{}", array.name(), i + 1), kind.clone()));
                        places.push((place, i));
                    }
                    *width
                }
                shape => {
                    let unread = format!("array of shape {}", shortened(&format!("{shape:?}")));
                    columns.push((array.name().to_owned(), ColumnType::Unread(unread)));
                    places.push((place, 0));
                    continue;
                }
            };
            match length {
                Some((first, rows)) if width > 0 && rows != array.rows() => {
                    return Err(Error::Invalid(format!(
                        "`{shown}` is no table: its array `{}` has {} rows, but `{}` has {rows}",
                        shortened(array.name()),
                        array.rows(),
                        shortened(first)
                    )));
                }
                _ => length = Some((array.name(), array.rows())),
            }
        }
        if columns.is_empty() {
            return Err(Error::Invalid(format!("`{shown}` has no column")));
        }
        let rows = length.map_or(0, |(_, rows)| rows);
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        column::check_names(&shown, &names)?;
        let picked = column::pick(&shown, &columns, wanted)?;
        Ok(Self {
            places: picked.iter().map(|&at| places[at]).collect(),
            names: picked.iter().map(|&at| columns[at].0.clone()).collect(),
            types: picked.iter().map(|&at| columns[at].1.clone()).collect(),
            arrays,
            rows,
            row: 0,
        })
    }
}

/// A wider array is rather a picture than a table, and its columns would need more room than the file.
const MOST_COLUMNS: usize = 1 << 20;

impl TableReader for NpyReader {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn types(&self) -> &[ColumnType] {
        &self.types
    }

    fn next(&mut self, rows: usize) -> Result<Option<Table>> {
        let count = rows.min(self.rows - self.row);
        if count == 0 {
            return Ok(None);
        }
        let mut cells: Vec<Cells> = self
            .types
            .iter()
            .map(|kind| match kind {
                ColumnType::Integer => Cells::Integers(vec![None; count]),
                ColumnType::Unread(kind) => Cells::Unread {
                    kind: kind.clone(),
                    rows: count,
                },
                _ => Cells::Numbers(vec![f64::NAN; count]),
            })
            .collect();
        for (place, array) in self.arrays.iter_mut().enumerate() {
            let width = array.shape().get(1).copied().unwrap_or(1);
            // Where each place of the array's rows goes, if anywhere.
            let mut goes = vec![None; if array.shape().len() > 2 { 0 } else { width }];
            for (to, &(from, at)) in self.places.iter().enumerate() {
                if from == place && at < goes.len() {
                    goes[at] = Some(to);
                }
            }
            if goes.iter().all(Option::is_none) {
                continue;
            }
            let element = array.element();
            array.each(self.row..self.row + count, |at, raw| {
                if let Some(to) = goes[at % width] {
                    match &mut cells[to] {
                        Cells::Numbers(cells) => cells[at / width] = element.number(raw),
                        Cells::Integers(cells) => cells[at / width] = element.integer(raw),
                        _ => {}
                    }
                }
            })?;
        }
        let named = self.names.iter().zip(cells);
        let columns = named
            .map(|(name, cells)| Column::new(name.clone(), cells))
            .collect();
        let first_row = self.row;
        self.row += count;
        Ok(Some(Table::of_checked(columns, first_row)))
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn progress(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.row as f64 / self.rows as f64)
    }
}

/// Numbers wait in a file beside until all are there: arrays begin with their length, and in an archive one follows the other.
pub(super) struct NpyWriter {
    path: PathBuf,
    shown: String,
    archive: bool,
    columns: Vec<(String, ColumnType)>,
    waiting: BufWriter<PendingFile>,
    /// How many rows each piece of the waiting file has; in a piece stands column after column.
    pieces: Vec<usize>,
    /// Whether a column of whole numbers has one that is missing, so that it must be written as floating-point numbers.
    holes: Vec<bool>,
}

impl NpyWriter {
    pub(super) fn create(
        path: &Path,
        archive: bool,
        columns: &[(String, ColumnType)],
    ) -> Result<Self> {
        if let Some((name, _)) = columns.iter().find(|(_, kind)| *kind == ColumnType::Text) {
            return Err(Error::Invalid(format!(
                "column `{name}` is text, but `{}` can only hold numbers: write .csv, .parquet or .arrow, or leave it out",
                path.display()
            )));
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(".rows");
        Ok(Self {
            path: path.to_path_buf(),
            shown: path.display().to_string(),
            archive,
            columns: columns.to_vec(),
            waiting: BufWriter::with_capacity(1 << 16, PendingFile::create(Path::new(&beside))?),
            pieces: Vec::new(),
            holes: vec![false; columns.len()],
        })
    }
}

impl TableWriter for NpyWriter {
    fn write(&mut self, table: &Table) -> Result<()> {
        check_columns(&self.shown, &self.columns, table)?;
        if table.rows() == 0 {
            return Ok(());
        }
        for (column, hole) in table.columns().iter().zip(&mut self.holes) {
            let written = match &column.cells {
                Cells::Numbers(cells) => cells
                    .iter()
                    .try_for_each(|x| self.waiting.write_all(&x.to_le_bytes())),
                Cells::Integers(cells) => cells.iter().try_for_each(|cell| {
                    *hole |= cell.is_none();
                    self.waiting
                        .write_all(&cell.unwrap_or(i64::MIN).to_le_bytes())
                }),
                _ => Ok(()),
            };
            written.map_err(|source| Error::File {
                action: "write",
                path: self.path.clone(),
                source,
            })?;
        }
        self.pieces.push(table.rows());
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let path = self.path.clone();
        let failed = |source| Error::File {
            action: "write",
            path: path.clone(),
            source,
        };
        let Self {
            archive,
            columns,
            waiting,
            pieces,
            holes,
            ..
        } = *self;
        let mut waiting = waiting.into_inner().map_err(|e| failed(e.into_error()))?;
        waiting.rewind().map_err(failed)?;
        let mut waiting = BufReader::new(waiting);
        let rows: usize = pieces.iter().sum();
        let mut starts = vec![0_u64];
        for piece in &pieces {
            starts.push(starts.last().unwrap_or(&0) + (piece * columns.len() * 8) as u64);
        }
        let file = PendingFile::create(&path)?;
        let file = if archive {
            let mut zip = ZipWriter::new(file);
            for (place, (name, kind)) in columns.iter().enumerate() {
                let whole = *kind == ColumnType::Integer && !holes[place];
                let element = if whole { Element::I64 } else { Element::F64 };
                let as_number = *kind == ColumnType::Integer && holes[place];
                zip.add(&format!("{name}.npy"), false, |to| {
                    to.write_all(&Header::write(element, &[rows]))?;
                    let mut bytes = Vec::new();
                    for (&start, &piece) in starts.iter().zip(&pieces) {
                        bytes.resize(piece * 8, 0);
                        waiting.seek(SeekFrom::Start(start + (place * piece * 8) as u64))?;
                        waiting.read_exact(&mut bytes)?;
                        if as_number {
                            bytes.chunks_exact_mut(8).for_each(integer_to_number);
                        }
                        to.write_all(&bytes)?;
                    }
                    Ok(())
                })
                .map_err(failed)?;
            }
            zip.finish().map_err(failed)?
        } else {
            let mut to = BufWriter::with_capacity(1 << 16, file);
            write_matrix(&mut to, &mut waiting, &columns, &pieces, rows).map_err(failed)?;
            to.into_inner().map_err(|e| failed(e.into_error()))?
        };
        Ok(file.commit()?)
    }
}

/// All columns side by side as one array of floating-point numbers.
fn write_matrix(
    to: &mut impl Write,
    waiting: &mut impl Read,
    columns: &[(String, ColumnType)],
    pieces: &[usize],
    rows: usize,
) -> io::Result<()> {
    let shape = if columns.len() == 1 {
        vec![rows]
    } else {
        vec![rows, columns.len()]
    };
    to.write_all(&Header::write(Element::F64, &shape))?;
    let mut bytes = Vec::new();
    for &piece in pieces {
        bytes.resize(piece * columns.len() * 8, 0);
        waiting.read_exact(&mut bytes)?;
        for (column, (_, kind)) in bytes.chunks_exact_mut(piece * 8).zip(columns) {
            if *kind == ColumnType::Integer {
                column.chunks_exact_mut(8).for_each(integer_to_number);
            }
        }
        for row in 0..piece {
            for column in bytes.chunks_exact(piece * 8) {
                to.write_all(&column[row * 8..row * 8 + 8])?;
            }
        }
    }
    Ok(())
}

/// In place; the least integer stands for a missing one, as it does for pandas.
fn integer_to_number(bytes: &mut [u8]) {
    let mut raw = [0; 8];
    raw.copy_from_slice(bytes);
    let number = match i64::from_le_bytes(raw) {
        i64::MIN => f64::NAN,
        integer => integer as f64,
    };
    bytes.copy_from_slice(&number.to_le_bytes());
}
