//! Data from Python: files, Arrow streams, NumPy columns and arrays, none of them copied on the way in.

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchReader,
    StringArray,
};
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict, PyList, PyString, PyTuple};
use ramp_io::array::{Array, ArrayValues};
use ramp_io::source::{Content, SampleReader};
use ramp_io::table::{BatchReader, TableReader, concat_rows, readable, table_of};
use ramp_io::{Origin, Run};
use std::panic::RefUnwindSafe;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

/// Data on its way in.
pub enum Data {
    /// A file, read as the command reads it.
    File(PathBuf),
    /// Tables of anything that speaks Arrow.
    Stream(Box<dyn RecordBatchReader + Send>),
    /// Columns of NumPy, or of texts.
    Columns(Columns),
    /// Arrays of any number of axes.
    Arrays(Vec<Array>),
}

impl Data {
    /// What Python's side made of a user's data (`_data.py`): a path, an object with `__arrow_c_stream__`, a dict of columns, or a
    /// tuple of names and arrays.
    pub fn of(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        if data.is_instance_of::<PyString>() {
            return Ok(Data::File(data.extract()?));
        }
        if let Ok(columns) = data.cast::<PyDict>() {
            return Columns::of(columns).map(Data::Columns);
        }
        if let Ok(arrays) = data.cast::<PyTuple>() {
            let arrays = arrays.iter().map(|pair| {
                let (name, array): (String, Bound<'_, PyUntypedArray>) = pair.extract()?;
                array_of(name, &array)
            });
            return Ok(Data::Arrays(arrays.collect::<PyResult<_>>()?));
        }
        Ok(Data::Stream(stream_of(data)?))
    }

    /// All of it in memory, for a fit; `None` for a file.
    pub fn content(self) -> ramp_io::Result<Result<Content, PathBuf>> {
        Ok(Ok(match self {
            Data::File(path) => return Ok(Err(path)),
            Data::Arrays(arrays) => Content::Arrays(arrays),
            Data::Columns(mut columns) => {
                let rows = columns.rows;
                Content::Table(columns.batch(0, rows)?)
            }
            Data::Stream(stream) => {
                let mut reader = BatchReader::new(stream.schema(), stream);
                let empty = RecordBatch::new_empty(reader.schema());
                let mut batches = vec![];
                while let Some(batch) = reader.next(usize::MAX)? {
                    batches.push(batch);
                }
                Content::Table(match batches.is_empty() {
                    true => readable(&empty)?,
                    false => concat_rows(&batches)?,
                })
            }
        }))
    }

    /// Where it is, for whoever reads it more than once.
    pub fn origin(self) -> ramp_io::Result<Origin> {
        Ok(match self.content()? {
            Ok(content) => Origin::Memory(content),
            Err(path) => Origin::File(path),
        })
    }

    /// As samples for a run, some at a time.
    pub fn reader(self, run: &Run, all_columns: bool) -> ramp_io::Result<SampleReader> {
        match self {
            Data::File(path) => run.read(&path, all_columns),
            Data::Stream(stream) => {
                run.read_table(Box::new(BatchReader::new(stream.schema(), stream)))
            }
            Data::Columns(columns) => run.read_table(Box::new(columns)),
            Data::Arrays(arrays) => {
                SampleReader::from_arrays(arrays, run.chain.as_ref(), Some(&run.encoder.columns()))
            }
        }
    }
}

const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// The tables of an object that speaks Arrow's PyCapsule interface.
fn stream_of(data: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let capsule = data.call_method0("__arrow_c_stream__")?;
    let capsule = capsule
        .cast_into::<PyCapsule>()
        .map_err(|_| PyTypeError::new_err("__arrow_c_stream__ gave no capsule"))?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds such a stream, which is moved out: its release callback is set to null there.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
    let reader = ArrowArrayStreamReader::try_new(stream).map_err(|e| {
        PyValueError::new_err(format!("the data's Arrow stream cannot be read: {e}"))
    })?;
    Ok(Box::new(reader))
}

/// Keeps a NumPy array alive while Rust reads its memory.
struct Owner {
    _array: Py<PyAny>,
}

// A reference that is only dropped, never looked through.
impl RefUnwindSafe for Owner {}

/// The memory of a NumPy array.
#[derive(Clone)]
struct Memory {
    owner: Arc<Owner>,
    start: NonNull<u8>,
}

// SAFETY: the memory is only read, and lives as long as its owner. Who writes to an array while it is being read gets a mixture of
// old and new numbers, as with every other library that lets go of the interpreter.
unsafe impl Send for Memory {}
unsafe impl Sync for Memory {}

impl Memory {
    fn of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        // SAFETY: the array is alive, so its header is.
        let start = unsafe { (*array.as_array_ptr()).fields.data };
        let start = NonNull::new(start.cast::<u8>())
            .ok_or_else(|| PyValueError::new_err("the array has no memory"))?;
        let owner = Arc::new(Owner {
            _array: array.clone().into_any().unbind(),
        });
        Ok(Memory { owner, start })
    }

    /// Numbers that lie side by side, shared where they are aligned.
    ///
    /// # Safety
    /// So many numbers lie from this place on.
    unsafe fn numbers<T: ArrowNativeType>(&self, offset: isize, count: usize) -> ScalarBuffer<T> {
        unsafe {
            let start = self.start.offset(offset);
            let bytes = count * size_of::<T>();
            if !start.cast::<T>().is_aligned() {
                let copied: Vec<T> = (0..count)
                    .map(|i| start.cast::<T>().add(i).read_unaligned())
                    .collect();
                return copied.into();
            }
            Buffer::from_custom_allocation(start, bytes, self.owner.clone()).into()
        }
    }

    /// Numbers at a distance from each other.
    ///
    /// # Safety
    /// So many numbers lie there.
    unsafe fn gathered<T: ArrowNativeType>(
        &self,
        offset: isize,
        stride: isize,
        count: usize,
    ) -> ScalarBuffer<T> {
        let number = |i: usize| unsafe {
            let place = self.start.offset(offset + i as isize * stride);
            place.cast::<T>().read_unaligned()
        };
        (0..count).map(number).collect::<Vec<T>>().into()
    }
}

/// An array of numbers or bytes whose elements lie in C's order.
fn array_of(name: String, array: &Bound<'_, PyUntypedArray>) -> PyResult<Array> {
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err(format!(
            "array `{name}` is not in C order"
        )));
    }
    let shape = array.shape().to_vec();
    let count: usize = shape.iter().product();
    let kind = (array.dtype().kind(), array.dtype().itemsize());
    let values = match (kind, count) {
        ((b'f', 4), 0) => ArrayValues::Numbers(Vec::new().into()),
        ((b'u', 1), 0) => ArrayValues::Bytes(Vec::new().into()),
        // SAFETY: a contiguous array has that many elements.
        ((b'f', 4), _) => unsafe { ArrayValues::Numbers(Memory::of(array)?.numbers(0, count)) },
        ((b'u', 1), _) => unsafe { ArrayValues::Bytes(Memory::of(array)?.numbers(0, count)) },
        _ => {
            return Err(PyTypeError::new_err(format!(
                "array `{name}` is of {}, where float32 or uint8 is needed",
                array.dtype()
            )));
        }
    };
    Ok(Array {
        name,
        shape,
        values,
    })
}

/// The types of numbers that a column may have.
#[derive(Clone, Copy)]
enum Element {
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

impl Element {
    fn of(kind: u8, size: usize) -> Option<Self> {
        Some(match (kind, size) {
            (b'f', 2) => Element::F16,
            (b'f', 4) => Element::F32,
            (b'f', 8) => Element::F64,
            (b'i', 1) => Element::I8,
            (b'i', 2) => Element::I16,
            (b'i', 4) => Element::I32,
            (b'i', 8) => Element::I64,
            (b'u', 1) => Element::U8,
            (b'u', 2) => Element::U16,
            (b'u', 4) => Element::U32,
            (b'u', 8) => Element::U64,
            (b'b', 1) => Element::Bool,
            _ => return None,
        })
    }

    fn data_type(self) -> DataType {
        match self {
            Element::F16 => DataType::Float16,
            Element::F32 => DataType::Float32,
            Element::F64 => DataType::Float64,
            Element::I8 => DataType::Int8,
            Element::I16 => DataType::Int16,
            Element::I32 => DataType::Int32,
            Element::I64 => DataType::Int64,
            Element::U8 => DataType::UInt8,
            Element::U16 => DataType::UInt16,
            Element::U32 => DataType::UInt32,
            Element::U64 => DataType::UInt64,
            Element::Bool => DataType::Boolean,
        }
    }
}

/// One column.
enum Cells {
    Numbers {
        memory: Memory,
        stride: isize,
        element: Element,
    },
    Texts(ArrayRef),
}

/// Columns of NumPy arrays and lists of texts as a table that is read some rows at a time: a matrix is never copied as a whole.
pub struct Columns {
    schema: SchemaRef,
    cells: Vec<Cells>,
    rows: usize,
    at: usize,
}

impl Columns {
    fn of(columns: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (mut fields, mut cells, mut rows) = (vec![], vec![], None);
        for (name, column) in columns {
            let name: String = name.extract()?;
            let (length, kind, column) = if let Ok(array) = column.cast::<PyUntypedArray>() {
                let (kind, size) = (array.dtype().kind(), array.dtype().itemsize());
                let element = Element::of(kind, size)
                    .filter(|_| array.dtype().is_native_byteorder() != Some(false));
                let (Some(element), &[length]) = (element, array.shape()) else {
                    return Err(PyTypeError::new_err(format!(
                        "column `{name}` is of {} with {} axes, where one axis of numbers is needed",
                        array.dtype(),
                        array.ndim()
                    )));
                };
                let cells = match length {
                    0 => Cells::Texts(arrow_array::new_empty_array(&element.data_type())),
                    _ => Cells::Numbers {
                        memory: Memory::of(array)?,
                        stride: array.strides()[0],
                        element,
                    },
                };
                (length, element.data_type(), cells)
            } else {
                let texts: Vec<Option<String>> = column.cast::<PyList>()?.extract()?;
                let length = texts.len();
                let texts: ArrayRef = Arc::new(StringArray::from(texts));
                (length, DataType::Utf8, Cells::Texts(texts))
            };
            if rows.is_some_and(|rows| rows != length) {
                return Err(PyValueError::new_err(format!(
                    "column `{name}` has {length} rows, others have {}",
                    rows.unwrap_or(0)
                )));
            }
            rows = Some(length);
            fields.push(Field::new(name, kind, true));
            cells.push(column);
        }
        Ok(Columns {
            schema: Arc::new(Schema::new(fields)),
            cells,
            rows: rows.unwrap_or(0),
            at: 0,
        })
    }

    /// Some rows.
    fn batch(&mut self, first: usize, rows: usize) -> ramp_io::Result<RecordBatch> {
        let cells = self.cells.iter().map(|cells| match cells {
            Cells::Texts(texts) => texts.slice(first, rows),
            Cells::Numbers {
                memory,
                stride,
                element,
            } => numbers(memory, *stride, *element, first, rows),
        });
        table_of(self.schema.fields().iter().cloned(), cells.collect())
    }
}

/// Some cells of a column of numbers.
fn numbers(
    memory: &Memory,
    stride: isize,
    element: Element,
    first: usize,
    rows: usize,
) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(
        memory: &Memory,
        stride: isize,
        first: usize,
        rows: usize,
    ) -> ArrayRef {
        let offset = first as isize * stride;
        // SAFETY: callers ask for rows that the array has.
        let values: ScalarBuffer<T::Native> = unsafe {
            match stride == size_of::<T::Native>() as isize {
                true => memory.numbers(offset, rows),
                false => memory.gathered(offset, stride, rows),
            }
        };
        Arc::new(PrimitiveArray::<T>::new(values, None))
    }
    match element {
        Element::F16 => of::<Float16Type>(memory, stride, first, rows),
        Element::F32 => of::<Float32Type>(memory, stride, first, rows),
        Element::F64 => of::<Float64Type>(memory, stride, first, rows),
        Element::I8 => of::<Int8Type>(memory, stride, first, rows),
        Element::I16 => of::<Int16Type>(memory, stride, first, rows),
        Element::I32 => of::<Int32Type>(memory, stride, first, rows),
        Element::I64 => of::<Int64Type>(memory, stride, first, rows),
        Element::U8 => of::<UInt8Type>(memory, stride, first, rows),
        Element::U16 => of::<UInt16Type>(memory, stride, first, rows),
        Element::U32 => of::<UInt32Type>(memory, stride, first, rows),
        Element::U64 => of::<UInt64Type>(memory, stride, first, rows),
        Element::Bool => {
            // SAFETY: as above; NumPy's truth values are bytes.
            let bytes: ScalarBuffer<u8> =
                unsafe { memory.gathered(first as isize * stride, stride, rows) };
            Arc::new(
                bytes
                    .iter()
                    .map(|&b| Some(b != 0))
                    .collect::<BooleanArray>(),
            )
        }
    }
}

impl TableReader for Columns {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self, rows: usize) -> ramp_io::Result<Option<RecordBatch>> {
        let rows = rows.min(self.rows - self.at);
        if rows == 0 {
            return Ok(None);
        }
        let batch = self.batch(self.at, rows)?;
        self.at += rows;
        Ok(Some(batch))
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn progress(&self) -> Option<f64> {
        Some(self.at as f64 / self.rows.max(1) as f64)
    }
}
