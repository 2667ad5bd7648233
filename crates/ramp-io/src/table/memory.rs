//! Tables that are in memory already, such as those of pandas or polars, read like a file: some rows at a time and without a copy.

use super::{TableError, TableReader};
use crate::Result;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

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
        BatchReader {
            schema,
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
        Ok(Some(batch.slice(0, rows)))
    }
}
