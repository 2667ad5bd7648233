//! Parquet tables, decoded by the official crate; every size in a file is doubted before memory is taken for it.

mod footer;
mod group;
mod headers;
mod pages;
mod thrift;
mod write;

pub(super) use write::ParquetWriter;

use super::column;
use super::guard::{guarded, unusable};
use super::{Damage, TableError, TableReader, rows_at_once};
use crate::{Error, Result};
use arrow_array::{Array, ArrayRef, NullArray, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use group::{Part, readable};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use rayon::prelude::*;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct ParquetReader {
    path: PathBuf,
    metadata: Arc<ParquetMetaData>,
    /// The columns that it yields.
    schema: SchemaRef,
    /// Columns are decoded in so many parts side by side.
    parts: Vec<Part>,
    /// For each yielded column its place among those of all parts, or none where it has no reading.
    places: Vec<Option<usize>>,
    /// Decoded rows that nobody has asked for yet.
    waiting: Option<RecordBatch>,
    /// The row group to open next.
    group: usize,
    left_in_group: usize,
    rows: u64,
    /// The row to be decoded next, and those that are asked for.
    row: usize,
    wanted: Range<usize>,
}

impl ParquetReader {
    pub(super) fn open(path: &Path, wanted: Option<&[String]>) -> Result<Self> {
        let cannot_read = |source| Error::File {
            action: "read",
            path: path.to_path_buf(),
            source,
        };
        let mut file = File::open(path).map_err(cannot_read)?;
        let bytes = file.metadata().map_err(cannot_read)?.len();
        footer::check(&mut file, bytes).map_err(|why| unusable(path, why))?;
        let metadata = guarded(path, || {
            ParquetMetaDataReader::new().parse_and_finish(&file)
        })?;
        let metadata = Arc::new(metadata);
        let described = metadata.file_metadata().schema_descr();
        let found = guarded(path, || {
            parquet_to_arrow_schema(described, metadata.file_metadata().key_value_metadata())
        })?;
        if found.fields().is_empty() {
            return Err(unusable(path, Damage::NoColumns).into());
        }
        let fields: Vec<FieldRef> = found
            .fields()
            .iter()
            .enumerate()
            .map(|(root, field)| readable(described, root, field))
            .collect();
        let all = Schema::new(fields);
        column::check_names(path, &all)?;
        let picked = column::pick(path, &all, wanted)?;
        let schema = all.project(&picked).map_err(TableError::from)?;

        let mut rows = 0_u64;
        for group in metadata.row_groups() {
            let count = u64::try_from(group.num_rows()).ok();
            let total = count.and_then(|count| rows.checked_add(count));
            rows = total
                .filter(|&n| n < usize::MAX as u64)
                .ok_or_else(|| unusable(path, Damage::Rows))?;
        }
        // What has no reading is not even decoded.
        let decoded: Vec<usize> = picked
            .iter()
            .copied()
            .filter(|&at| column::unread_kind(all.field(at)).is_none())
            .collect();
        let types = found.fields().iter().map(group::decoded).collect();
        let (parts, order) = Part::divide(path, &metadata, &all, &types, &decoded)?;
        let place = |at: &usize| order.iter().position(|of| of == at);
        let places: Vec<Option<usize>> = match order.len() < 64 {
            true => picked.iter().map(place).collect(),
            false => {
                let by_root: std::collections::HashMap<usize, usize> =
                    order.iter().enumerate().map(|(i, &at)| (at, i)).collect();
                picked.iter().map(|at| by_root.get(at).copied()).collect()
            }
        };
        Ok(Self {
            path: path.to_path_buf(),
            metadata,
            schema: Arc::new(schema),
            parts,
            places,
            waiting: None,
            group: 0,
            left_in_group: 0,
            rows,
            row: 0,
            wanted: 0..usize::MAX,
        })
    }

    /// Reads only these rows: row groups that have none of them are passed over.
    pub(super) fn only(&mut self, rows: Range<usize>) {
        self.wanted = rows;
    }

    /// Opens the next row group that has rows; false after the last.
    fn open_group(&mut self) -> Result<bool> {
        if self.row >= self.wanted.end {
            return Ok(false);
        }
        while self.left_in_group == 0 {
            let Some(group) = self.metadata.row_groups().get(self.group) else {
                return Ok(false);
            };
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            if self.row + rows <= self.wanted.start {
                self.row += rows;
                self.group += 1;
                continue;
            }
            self.left_in_group = rows;
            let at_once = rows_at_once(self.schema.fields().len());
            for part in &mut self.parts {
                part.open(&self.path, &self.metadata, self.group, at_once)?;
            }
            self.group += 1;
        }
        Ok(true)
    }

    /// Decodes the next rows of the open row group.
    fn decode(&mut self) -> Result<RecordBatch> {
        let most = rows_at_once(self.schema.fields().len()).min(self.left_in_group);
        let (path, row) = (&self.path, self.row);
        let decoded = match &mut self.parts[..] {
            [one] => vec![one.next(path, most, row)],
            parts => parts
                .par_iter_mut()
                .map(|part| part.next(path, most, row))
                .collect(),
        };
        let mut cells: Vec<ArrayRef> = Vec::new();
        for part in decoded {
            cells.extend(part?);
        }
        // All parts must agree, or a column has lost values.
        let rows = cells.first().map_or(most, |column| column.len());
        let column = |(place, field): (&Option<usize>, &FieldRef)| match place {
            Some(place) if cells[*place].len() == rows && rows > 0 => Ok(cells[*place].clone()),
            None => Ok(Arc::new(NullArray::new(rows)) as ArrayRef),
            Some(_) => Err(unusable(
                &self.path,
                Damage::FewerValues {
                    column: field.name().clone(),
                },
            )),
        };
        let fields = self.schema.fields().iter();
        let cells = self.places.iter().zip(fields).map(column);
        let cells = cells.collect::<Result<Vec<_>, TableError>>()?;
        self.left_in_group = self.left_in_group.saturating_sub(rows);
        self.row += rows;
        Ok(column::batch(self.schema.clone(), cells, Some(rows))?)
    }
}

impl TableReader for ParquetReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let all = loop {
            match self.waiting.take() {
                Some(waiting) => break waiting,
                None if rows == 0 || !self.open_group()? => return Ok(None),
                None => {
                    let first = self.row;
                    let all = self.decode()?;
                    let within = |row: usize| row.clamp(first, self.row) - first;
                    let (from, to) = (within(self.wanted.start), within(self.wanted.end));
                    if from < to {
                        break all.slice(from, to - from);
                    }
                }
            }
        };
        let count = rows.min(all.num_rows());
        if count < all.num_rows() {
            self.waiting = Some(all.slice(count, all.num_rows() - count));
        }
        Ok(Some(all.slice(0, count)))
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn progress(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.row as f64 / self.rows as f64)
    }
}

/// A field of a type that stands for itself.
fn plain_field(name: &str, kind: DataType) -> FieldRef {
    Arc::new(Field::new(name, kind, true))
}
