//! NumPy files as tables: an array of one axis is a column, one of two axes is numbered columns.

use super::column::{self, unread_field};
use super::{
    ColumnKind, TableError, TableReader, TableWriter, check_columns, column_kind, columns,
};
use crate::array::npy::{Element, Header};
use crate::array::zip::ZipWriter;
use crate::array::{ArrayReader, check_member};
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, NullArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ramp::names::shortened;
use ramp::storage::PendingFile;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct NpyReader {
    arrays: Vec<ArrayReader>,
    /// For each yielded column its array and its place in a row of it.
    places: Vec<(usize, usize)>,
    schema: SchemaRef,
    rows: usize,
    row: usize,
}

impl NpyReader {
    pub(super) fn open(path: &Path, wanted: Option<&[String]>) -> Result<Self> {
        let arrays = ArrayReader::open_all(path)?;
        let (mut columns, mut places) = (Vec::new(), Vec::new());
        let mut length: Option<(&str, usize)> = None;
        for (place, array) in arrays.iter().enumerate() {
            let kind = match array.element().is_integer() {
                true => DataType::Int64,
                false => DataType::Float64,
            };
            let width = match array.shape() {
                [_] => {
                    columns.push(Field::new(array.name(), kind, true));
                    places.push((place, 0));
                    1
                }
                [_, width] if *width <= MOST_COLUMNS => {
                    for i in 0..*width {
                        let name = format!("{}{}", array.name(), i + 1);
                        columns.push(Field::new(name, kind.clone(), true));
                        places.push((place, i));
                    }
                    *width
                }
                shape => {
                    let unread = format!("array of shape {}", shortened(&format!("{shape:?}")));
                    columns.push(unread_field(array.name(), &unread));
                    places.push((place, 0));
                    continue;
                }
            };
            match length {
                Some((first, rows)) if width > 0 && rows != array.rows() => {
                    return Err(TableError::UnequalArrays {
                        path: path.to_path_buf(),
                        array: array.name().to_owned(),
                        rows: array.rows(),
                        first: first.to_owned(),
                        first_rows: rows,
                    }
                    .into());
                }
                _ => length = Some((array.name(), array.rows())),
            }
        }
        if columns.is_empty() {
            let path = path.to_path_buf();
            return Err(TableError::NoColumns { path }.into());
        }
        let rows = length.map_or(0, |(_, rows)| rows);
        let schema = Schema::new(columns);
        column::check_names(path, &schema)?;
        let picked = column::pick(path, &schema, wanted)?;
        Ok(Self {
            places: picked.iter().map(|&at| places[at]).collect(),
            schema: Arc::new(schema.project(&picked).map_err(TableError::from)?),
            arrays,
            rows,
            row: 0,
        })
    }

    /// Reads only these rows.
    pub(super) fn only(&mut self, rows: std::ops::Range<usize>) {
        self.row = rows.start.min(self.rows);
        self.rows = rows.end.clamp(self.row, self.rows);
    }
}

/// A wider array is rather a picture than a table, and its columns would need more room than the file.
const MOST_COLUMNS: usize = 1 << 20;

impl TableReader for NpyReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let count = rows.min(self.rows - self.row);
        if count == 0 {
            return Ok(None);
        }
        let cells = self
            .schema
            .fields()
            .iter()
            .map(|field| match field.data_type() {
                DataType::Int64 => Cells::Integers(vec![0; count]),
                DataType::Float64 => Cells::Numbers(vec![f64::NAN; count]),
                _ => Cells::Unread,
            });
        let mut cells: Vec<Cells> = cells.collect();
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
                        Cells::Integers(cells) => {
                            cells[at / width] = element.integer(raw).unwrap_or_default();
                        }
                        Cells::Unread => {}
                    }
                }
            })?;
        }
        self.row += count;
        let arrays = cells.into_iter().map(|cells| -> ArrayRef {
            match cells {
                Cells::Numbers(cells) => Arc::new(Float64Array::from(cells)),
                Cells::Integers(cells) => Arc::new(Int64Array::from(cells)),
                Cells::Unread => Arc::new(NullArray::new(count)),
            }
        });
        Ok(Some(column::batch(
            self.schema.clone(),
            arrays.collect(),
            Some(count),
        )?))
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn progress(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.row as f64 / self.rows as f64)
    }
}

/// The cells of a column on their way.
enum Cells {
    Numbers(Vec<f64>),
    Integers(Vec<i64>),
    Unread,
}

/// Numbers wait in a file beside until all are there: arrays begin with their length, and in an archive one follows the other.
pub(super) struct NpyWriter {
    path: PathBuf,
    archive: bool,
    schema: SchemaRef,
    waiting: BufWriter<PendingFile>,
    /// How many rows each piece of the waiting file has; in a piece stands column after column.
    pieces: Vec<usize>,
    /// Whether a column of whole numbers has one that is missing, so that it must be written as floating-point numbers.
    holes: Vec<bool>,
}

impl NpyWriter {
    pub(super) fn create(path: &Path, archive: bool, schema: SchemaRef) -> Result<Self> {
        let is_text = |field: &&Arc<Field>| column_kind(field) == ColumnKind::Text;
        if let Some(field) = schema.fields().iter().find(is_text) {
            return Err(TableError::TextInNumPy {
                path: path.to_path_buf(),
                column: field.name().clone(),
            }
            .into());
        }
        if archive {
            for field in schema.fields() {
                check_member(path, field.name())?;
            }
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(".rows");
        Ok(Self {
            path: path.to_path_buf(),
            archive,
            waiting: BufWriter::with_capacity(1 << 16, PendingFile::create(Path::new(&beside))?),
            pieces: Vec::new(),
            holes: vec![false; schema.fields().len()],
            schema,
        })
    }
}

impl TableWriter for NpyWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        check_columns(&self.path, &self.schema, rows)?;
        if rows.num_rows() == 0 {
            return Ok(());
        }
        for (column, hole) in columns(rows).zip(&mut self.holes) {
            let written = if column.kind() == ColumnKind::Integer {
                *hole |= column.cells.null_count() > 0;
                let whole = arrow_cast::cast(column.cells, &DataType::Int64);
                let whole = whole.map_err(TableError::from)?;
                let whole = whole.as_primitive::<Int64Type>();
                whole.iter().try_for_each(|cell| {
                    let cell = cell.unwrap_or(i64::MIN);
                    self.waiting.write_all(&cell.to_le_bytes())
                })
            } else {
                let mut numbers = column.numbers(0)?.into_iter();
                numbers.try_for_each(|x| self.waiting.write_all(&x.to_le_bytes()))
            };
            written.map_err(|source| Error::File {
                action: "write",
                path: self.path.clone(),
                source,
            })?;
        }
        self.pieces.push(rows.num_rows());
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
            schema,
            waiting,
            pieces,
            holes,
            ..
        } = *self;
        let kinds: Vec<ColumnKind> = schema.fields().iter().map(|f| column_kind(f)).collect();
        let mut waiting = waiting.into_inner().map_err(|e| failed(e.into_error()))?;
        waiting.rewind().map_err(failed)?;
        let mut waiting = BufReader::new(waiting);
        let rows: usize = pieces.iter().sum();
        let mut starts = vec![0_u64];
        for piece in &pieces {
            starts.push(starts.last().unwrap_or(&0) + (piece * kinds.len() * 8) as u64);
        }
        let file = PendingFile::create(&path)?;
        let file = if archive {
            let mut zip = ZipWriter::new(file);
            for (place, kind) in kinds.iter().enumerate() {
                let name = schema.field(place).name();
                let whole = *kind == ColumnKind::Integer && !holes[place];
                let element = if whole { Element::I64 } else { Element::F64 };
                let as_number = *kind == ColumnKind::Integer && holes[place];
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
            write_matrix(&mut to, &mut waiting, &kinds, &pieces, rows).map_err(failed)?;
            to.into_inner().map_err(|e| failed(e.into_error()))?
        };
        Ok(file.commit()?)
    }
}

/// All columns side by side as one array of floating-point numbers.
fn write_matrix(
    to: &mut impl Write,
    waiting: &mut impl Read,
    kinds: &[ColumnKind],
    pieces: &[usize],
    rows: usize,
) -> io::Result<()> {
    let shape = if kinds.len() == 1 {
        vec![rows]
    } else {
        vec![rows, kinds.len()]
    };
    to.write_all(&Header::write(Element::F64, &shape))?;
    let mut bytes = Vec::new();
    for &piece in pieces {
        bytes.resize(piece * kinds.len() * 8, 0);
        waiting.read_exact(&mut bytes)?;
        for (column, kind) in bytes.chunks_exact_mut(piece * 8).zip(kinds) {
            if *kind == ColumnKind::Integer {
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
