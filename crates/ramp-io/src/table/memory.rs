//! Tables that are in memory already, such as those of pandas or polars, read like a file: some rows at a time and without a copy.

use super::{TableError, TableReader, ipc, table_of, unread_kind};
use crate::Result;
use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};
use std::sync::Arc;

/// A table as files are read: dictionaries as what they stand for, and types without a reading as columns of nulls. What has a
/// reading is not copied.
pub fn readable(table: &RecordBatch) -> Result<RecordBatch> {
    // A table that was made readable before stays as it is.
    let readable = |field: &FieldRef| match unread_kind(field) {
        Some(_) => field.clone(),
        None => ipc::readable(field),
    };
    let fields: Vec<FieldRef> = table.schema_ref().fields().iter().map(readable).collect();
    let cells = fields.iter().zip(table.columns()).map(|(field, cells)| {
        Ok(match field.data_type() {
            same if same == cells.data_type() => cells.clone(),
            DataType::Null => new_null_array(&DataType::Null, cells.len()),
            other => arrow_cast::cast(cells, other).map_err(TableError::from)?,
        })
    });
    let cells = cells.collect::<Result<Vec<_>>>()?;
    table_of(fields, cells)
}

/// Batches of rows that come from somewhere else, as a reader.
///
/// ```
/// use ramp_io::arrow::{ArrayRef, Int64Array};
/// use ramp_io::table::{BatchReader, TableReader, column, table};
/// let ages: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![34, 7, 61]));
/// let people = table([("age", ages)])?;
/// let mut reader = BatchReader::new(people.schema(), [Ok(people)]);
/// assert_eq!(reader.next(2)?.unwrap().num_rows(), 2);
/// assert_eq!(reader.next(2)?.unwrap().num_rows(), 1);
/// assert!(reader.next(2)?.is_none());
/// # Ok::<(), ramp_io::Error>(())
/// ```
pub struct BatchReader<I> {
    schema: SchemaRef,
    batches: I,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> BatchReader<I> {
    /// Reads these batches, all of which have these columns.
    pub fn new(schema: SchemaRef, batches: impl IntoIterator<IntoIter = I>) -> Self {
        let fields: Vec<FieldRef> = schema.fields().iter().map(ipc::readable).collect();
        BatchReader {
            schema: Arc::new(Schema::new(fields)),
            batches: batches.into_iter(),
            rest: None,
        }
    }
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>> + Send> TableReader for BatchReader<I> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let batch = loop {
            match self.rest.take().map(Ok).or_else(|| self.batches.next()) {
                None => return Ok(None),
                Some(batch) => {
                    let batch = batch.map_err(TableError::from)?;
                    if batch.num_rows() > 0 {
                        break batch;
                    }
                }
            }
        };
        let rows = rows.clamp(1, batch.num_rows());
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        readable(&batch.slice(0, rows)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{select_columns, table};
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, ListArray};

    #[test]
    fn types_without_a_reading_are_named_however_often_a_table_is_made_readable() {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None]);
        let made = table([("tags", Arc::new(lists) as ArrayRef)]).unwrap();
        let once = readable(&made).unwrap();
        let twice = readable(&once).unwrap();
        for read in [once, twice] {
            let error = select_columns(&read, &["tags".into()]).unwrap_err();
            assert!(
                error.to_string().contains("`tags` is of type list"),
                "{error}"
            );
        }
    }
}
