//! Tables on their way out: Arrow for everyone who speaks it, NumPy column by column for all others.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use ramp_io::arrow::DataType;
use ramp_io::table::{Column, ColumnKind, column_kind};

/// A table that any library of Arrow reads without a copy.
#[pyclass(module = "ramp_ml._lib", frozen)]
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

impl Table {
    pub fn new(batches: Vec<RecordBatch>, empty: SchemaRef) -> Self {
        let schema = batches.first().map_or(empty, |batch| batch.schema());
        Table { schema, batches }
    }

    fn columns(&self, at: usize) -> impl Iterator<Item = Column<'_>> {
        self.batches.iter().map(move |batch| Column {
            field: &batch.schema_ref().fields()[at],
            cells: batch.column(at),
        })
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish, which the interface lets us leave unanswered.
        let _ = requested_schema;
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// A column: an array of numbers, NaN where one is missing, or a list of texts and None.
    fn column<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(field) = self.schema.fields().get(at) else {
            return Err(pyo3::exceptions::PyIndexError::new_err("no such column"));
        };
        let missing = self
            .batches
            .iter()
            .any(|batch| batch.column(at).null_count() > 0);
        if field.data_type() == &DataType::Int64 && !missing {
            use ramp_io::arrow::{AsArray, types::Int64Type};
            let mut numbers: Vec<i64> = Vec::with_capacity(self.__len__());
            for column in self.columns(at) {
                numbers.extend(column.cells.as_primitive::<Int64Type>().values());
            }
            return Ok(numbers.into_pyarray(py).into_any());
        }
        match column_kind(field) {
            ColumnKind::Number | ColumnKind::Integer => {
                let mut numbers: Vec<f64> = Vec::with_capacity(self.__len__());
                for column in self.columns(at) {
                    let more = column.numbers(0);
                    numbers.extend(more.map_err(|e| crate::errors::exception(py, &e))?);
                }
                Ok(numbers.into_pyarray(py).into_any())
            }
            _ => {
                let texts = self.columns(at).flat_map(|column| column.texts());
                Ok(PyList::new(py, texts.collect::<Vec<_>>())?.into_any())
            }
        }
    }
}

/// Numbers of some axes as an array of NumPy's.
pub fn to_numpy<'py>(
    py: Python<'py>,
    values: Vec<f64>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let flat = values.into_pyarray(py);
    Ok(flat.reshape(shape.to_vec())?.into_any())
}
