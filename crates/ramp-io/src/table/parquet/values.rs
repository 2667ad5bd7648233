//! Parquet's physical values and what they stand for.

use super::super::column::{Cells, ColumnType, is_missing_text};
use super::super::iso::{self, Unit};
use crate::array::npy::half;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, Int96};
use parquet::errors::ParquetError;
use parquet::schema::types::Type;
use ramp::names::shortened;

/// How a column's values become cells.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reading {
    Bool,
    Integer,
    /// Whole numbers without a sign, in 32 bits.
    Unsigned32,
    /// Beyond what [`Cells::Integers`] hold, so as text.
    Unsigned64,
    Number,
    Half,
    Text,
    Uuid,
    Date,
    Time(Unit),
    Timestamp(Unit, bool),
    Decimal(i32),
    Unread(String),
}

impl Reading {
    pub(super) fn of(field: &Type) -> Self {
        let Type::PrimitiveType {
            physical_type,
            scale,
            type_length,
            ..
        } = field
        else {
            return Reading::Unread("struct".into());
        };
        let info = field.get_basic_info();
        let unit = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => Unit::Millisecond,
            TimeUnit::MICROS => Unit::Microsecond,
            _ => Unit::Nanosecond,
        };
        let whole = matches!(physical_type, Physical::INT32 | Physical::INT64);
        let unread = |kind: &str| Reading::Unread(kind.to_owned());
        match (
            info.logical_type_ref(),
            info.converted_type(),
            physical_type,
        ) {
            (Some(LogicalType::Date), ..) | (None, ConvertedType::DATE, _) if whole => {
                Reading::Date
            }
            (Some(LogicalType::Time(time)), ..) if whole => Reading::Time(unit(&time.unit)),
            (Some(LogicalType::Timestamp(time)), ..) if whole => {
                Reading::Timestamp(unit(&time.unit), time.is_adjusted_to_u_t_c)
            }
            (None, ConvertedType::TIME_MILLIS, _) if whole => Reading::Time(Unit::Millisecond),
            (None, ConvertedType::TIME_MICROS, _) if whole => Reading::Time(Unit::Microsecond),
            (None, ConvertedType::TIMESTAMP_MILLIS, _) if whole => {
                Reading::Timestamp(Unit::Millisecond, true)
            }
            (None, ConvertedType::TIMESTAMP_MICROS, _) if whole => {
                Reading::Timestamp(Unit::Microsecond, true)
            }
            (Some(LogicalType::Decimal(decimal)), ..) => match physical_type {
                Physical::FIXED_LEN_BYTE_ARRAY if *type_length > 16 => {
                    unread("decimal of more than 38 digits")
                }
                _ => Reading::Decimal(decimal.scale),
            },
            (None, ConvertedType::DECIMAL, _) => Reading::Decimal(*scale),
            (Some(LogicalType::Integer(int)), _, Physical::INT32) if !int.is_signed => {
                Reading::Unsigned32
            }
            (Some(LogicalType::Integer(int)), _, Physical::INT64) if !int.is_signed => {
                Reading::Unsigned64
            }
            (
                None,
                ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32,
                Physical::INT32,
            ) => Reading::Unsigned32,
            (None, ConvertedType::UINT_64, Physical::INT64) => Reading::Unsigned64,
            (Some(LogicalType::Float16), _, Physical::FIXED_LEN_BYTE_ARRAY)
                if *type_length == 2 =>
            {
                Reading::Half
            }
            (Some(LogicalType::Uuid), _, Physical::FIXED_LEN_BYTE_ARRAY) if *type_length == 16 => {
                Reading::Uuid
            }
            (_, _, Physical::BOOLEAN) => Reading::Bool,
            (_, _, Physical::INT32 | Physical::INT64) => Reading::Integer,
            // The one use that this type ever had.
            (_, _, Physical::INT96) => Reading::Timestamp(Unit::Nanosecond, false),
            (_, _, Physical::FLOAT | Physical::DOUBLE) => Reading::Number,
            // Old writers do not say that bytes are text; those that are not are found when they are read.
            (
                Some(LogicalType::Bson | LogicalType::Geometry(_) | LogicalType::Geography(_)),
                ..,
            ) => unread("binary"),
            (_, _, Physical::BYTE_ARRAY) => Reading::Text,
            (_, _, Physical::FIXED_LEN_BYTE_ARRAY) => unread("binary of fixed length"),
        }
    }

    pub(super) fn column_type(&self) -> ColumnType {
        match self {
            Reading::Integer | Reading::Unsigned32 => ColumnType::Integer,
            Reading::Number | Reading::Half => ColumnType::Number,
            Reading::Unread(kind) => ColumnType::Unread(kind.clone()),
            _ => ColumnType::Text,
        }
    }

    /// The cells that the values stand for; the error has the row and half a sentence.
    pub(super) fn cells(&self, raw: Raw) -> Result<Cells, (usize, String)> {
        match (self, raw) {
            (Reading::Integer, Raw::Whole(values)) => Ok(Cells::Integers(values)),
            (Reading::Unsigned32, Raw::Whole(values)) => {
                let unsigned = |x: i64| i64::from(x as u32);
                Ok(Cells::Integers(
                    values.into_iter().map(|x| x.map(unsigned)).collect(),
                ))
            }
            (Reading::Number, Raw::Numbers(values)) => Ok(Cells::Numbers(values)),
            (Reading::Half, Raw::Bytes(values)) => {
                let number = |bytes: Option<Vec<u8>>| match bytes.as_deref() {
                    Some(&[low, high]) => half(u16::from_le_bytes([low, high])),
                    _ => f64::NAN,
                };
                Ok(Cells::Numbers(values.into_iter().map(number).collect()))
            }
            (reading, Raw::Whole(values)) => Ok(Cells::Texts(
                values
                    .into_iter()
                    .map(|x| x.map(|x| reading.spell(x)))
                    .collect(),
            )),
            (Reading::Bool, Raw::Truths(values)) => Ok(Cells::Texts(
                values
                    .into_iter()
                    .map(|x| x.map(|x| x.to_string()))
                    .collect(),
            )),
            (reading, Raw::Bytes(values)) => {
                let texts = values
                    .into_iter()
                    .enumerate()
                    .map(|(row, bytes)| match bytes {
                        None => Ok(None),
                        Some(bytes) => reading.spell_bytes(bytes).map_err(|why| (row, why)),
                    });
                texts.collect::<Result<_, _>>().map(Cells::Texts)
            }
            // A reading is chosen by the type of the values, so the two always fit.
            _ => Err((0, "has values of another type than the schema says".into())),
        }
    }

    fn spell(&self, x: i64) -> String {
        match self {
            Reading::Unsigned64 => (x as u64).to_string(),
            Reading::Date => iso::date(x),
            Reading::Time(unit) => iso::time(x, *unit),
            Reading::Timestamp(unit, utc) => iso::timestamp(x, *unit, *utc),
            Reading::Decimal(scale) => iso::decimal(i128::from(x), *scale),
            _ => x.to_string(),
        }
    }

    fn spell_bytes(&self, bytes: Vec<u8>) -> Result<Option<String>, String> {
        match self {
            Reading::Decimal(scale) => {
                if bytes.is_empty() || bytes.len() > 16 {
                    return Err("is a decimal of more than 38 digits".into());
                }
                let sign = if bytes[0] >= 128 { -1 } else { 0 };
                let unscaled = bytes
                    .iter()
                    .fold(sign, |all: i128, &byte| all << 8 | i128::from(byte));
                Ok(Some(iso::decimal(unscaled, *scale)))
            }
            Reading::Uuid => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
                let parts: Option<Vec<&str>> =
                    parts.iter().map(|&(a, b)| digits.get(a..b)).collect();
                parts
                    .map(|parts| Some(parts.join("-")))
                    .ok_or_else(|| "is no UUID".into())
            }
            _ => match String::from_utf8(bytes) {
                Ok(text) => Ok(Some(text).filter(|text| !is_missing_text(text))),
                Err(e) => {
                    let start = String::from_utf8_lossy(e.as_bytes()).into_owned();
                    Err(format!("holds `{}`, which is not text", shortened(&start)))
                }
            },
        }
    }
}

/// Values as they come, missing ones in their places.
pub(super) enum Raw {
    Truths(Vec<Option<bool>>),
    Whole(Vec<Option<i64>>),
    Numbers(Vec<f64>),
    Bytes(Vec<Option<Vec<u8>>>),
}

/// Reads up to so many rows of a column.
pub(super) fn read(reader: &mut ColumnReader, rows: usize) -> Result<Raw, ParquetError> {
    let bytes = |value: &[u8]| Some(value.to_vec());
    Ok(match reader {
        ColumnReader::BoolColumnReader(reader) => {
            Raw::Truths(spread(reader, rows, |&x| Some(x), None)?)
        }
        ColumnReader::Int32ColumnReader(reader) => {
            Raw::Whole(spread(reader, rows, |&x| Some(i64::from(x)), None)?)
        }
        ColumnReader::Int64ColumnReader(reader) => {
            Raw::Whole(spread(reader, rows, |&x| Some(x), None)?)
        }
        ColumnReader::Int96ColumnReader(reader) => {
            Raw::Whole(spread(reader, rows, |x| Some(nanoseconds(x)), None)?)
        }
        ColumnReader::FloatColumnReader(reader) => {
            Raw::Numbers(spread(reader, rows, |&x| f64::from(x), f64::NAN)?)
        }
        ColumnReader::DoubleColumnReader(reader) => {
            Raw::Numbers(spread(reader, rows, |&x| x, f64::NAN)?)
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            Raw::Bytes(spread(reader, rows, |x| bytes(x.data()), None)?)
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            Raw::Bytes(spread(reader, rows, |x| bytes(x.data()), None)?)
        }
    })
}

/// A day of the Julian calendar and nanoseconds in it, counted from 1970.
fn nanoseconds(x: &Int96) -> i64 {
    let parts = x.data();
    let in_day = i64::from(parts[0]) | i64::from(parts[1]) << 32;
    (i64::from(parts[2]) - 2_440_588)
        .wrapping_mul(86_400_000_000_000)
        .wrapping_add(in_day)
}

fn spread<T: DataType, V: Clone>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    convert: impl Fn(&T::T) -> V,
    missing: V,
) -> Result<Vec<V>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (records, _, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    let mut values = values.iter();
    if levels.is_empty() {
        return Ok(values.map(convert).collect());
    }
    let mut cells = Vec::with_capacity(records);
    for level in levels {
        cells.push(match level {
            0 => missing.clone(),
            _ => match values.next() {
                Some(value) => convert(value),
                None => return Err(ParquetError::General("fewer values than levels".into())),
            },
        });
    }
    Ok(cells)
}
