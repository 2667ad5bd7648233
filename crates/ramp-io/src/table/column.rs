//! Columns of a `RecordBatch` as numbers and texts: what counts as missing, and how values are spelled.

use super::TableError;
use crate::Result;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, ArrowTimestampType, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// The key of a field's metadata that says which type of its file has no reading as number or text; its cells are nulls.
const UNREAD: &str = "ramp.unread";

/// What a column's cells are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// Floating-point numbers.
    Number,
    /// Whole numbers.
    Integer,
    /// Texts, and everything that is spelled as one: truth values, dates, times, decimals.
    Text,
    /// A type of the file without a reading, such as lists: every cell is null.
    Unread,
}

/// A column of a `RecordBatch`, borrowed: its field and its cells.
///
/// ```
/// use ramp_io::arrow::{ArrayRef, StringArray};
/// use ramp_io::table::{column, table};
/// let ages: ArrayRef = std::sync::Arc::new(StringArray::from(vec![" 34", "NA"]));
/// let people = table([("age", ages)])?;
/// let age = column(&people, "age")?;
/// assert_eq!(age.numbers(0)?[0], 34.0);
/// assert_eq!(age.missing(), [false, true]);
/// # Ok::<(), ramp_io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Name and type.
    pub field: &'a FieldRef,
    /// The cells.
    pub cells: &'a ArrayRef,
}

impl<'a> Column<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        self.field.name()
    }

    /// What its cells are good for.
    pub fn kind(&self) -> ColumnKind {
        column_kind(self.field)
    }

    /// The cells as numbers, `NaN` where one is missing.
    ///
    /// Texts are parsed; the error for one that is no number says where it stands, with rows counted from 1 after the header:
    /// `first_row` is the place of the first cell in its file, counted from 0.
    pub fn numbers(&self, first_row: usize) -> Result<Vec<f64>> {
        if let Some(kind) = unread_kind(self.field) {
            return Err(unread(self.name(), kind).into());
        }
        let cells = self.cells.as_ref();
        Ok(match cells.data_type() {
            DataType::Float64 => floats::<Float64Type>(cells, |x| x),
            DataType::Float32 => floats::<Float32Type>(cells, f64::from),
            DataType::Float16 => floats::<Float16Type>(cells, f64::from),
            DataType::Int64 => floats::<Int64Type>(cells, |x| x as f64),
            DataType::UInt64 => floats::<UInt64Type>(cells, |x| x as f64),
            DataType::Int32 => floats::<Int32Type>(cells, f64::from),
            DataType::UInt32 => floats::<UInt32Type>(cells, f64::from),
            DataType::Int16 => floats::<Int16Type>(cells, f64::from),
            DataType::UInt16 => floats::<UInt16Type>(cells, f64::from),
            DataType::Int8 => floats::<Int8Type>(cells, f64::from),
            DataType::UInt8 => floats::<UInt8Type>(cells, f64::from),
            DataType::Null => vec![f64::NAN; cells.len()],
            _ => match strings(cells) {
                Some(texts) => self.parsed(texts, first_row)?,
                None => {
                    let spelled = self.texts();
                    self.parsed(spelled.iter().map(Option::as_deref), first_row)?
                }
            },
        })
    }

    fn parsed<'t>(
        &self,
        texts: impl Iterator<Item = Option<&'t str>>,
        first_row: usize,
    ) -> Result<Vec<f64>, TableError> {
        let number = |(row, text): (usize, Option<&str>)| {
            let Some(text) = text else {
                return Ok(f64::NAN);
            };
            // Most cells are numbers, and none of the words for a missing one is.
            match parse_number(text) {
                Some(x) => Ok(x),
                None if is_missing_text(text) => Ok(f64::NAN),
                None => Err(TableError::NotANumber {
                    column: self.name().to_owned(),
                    text: text.to_owned(),
                    row: first_row + row + 1,
                }),
            }
        };
        texts.enumerate().map(number).collect()
    }

    /// The cells as texts, `None` where one is missing or has no reading.
    ///
    /// Moments with a time zone are spelled in UTC.
    pub fn texts(&self) -> Vec<Option<String>> {
        let cells = self.cells.as_ref();
        if let Some(texts) = strings(cells) {
            let there = |text: &&str| !is_missing_text(text);
            return texts.map(|t| t.filter(there).map(str::to_owned)).collect();
        }
        match cells.data_type() {
            DataType::Null => vec![None; cells.len()],
            kind if kind.is_floating() => {
                let numbers = self.numbers(0).unwrap_or_default();
                let spelled = |x: f64| (!x.is_nan()).then(|| spell_number(x));
                numbers.into_iter().map(spelled).collect()
            }
            _ => formatted(cells),
        }
    }

    /// Which cells are missing: nulls, not-a-numbers, and texts that say so.
    pub fn missing(&self) -> Vec<bool> {
        let cells = self.cells.as_ref();
        if let Some(texts) = strings(cells) {
            return texts.map(|t| t.is_none_or(is_missing_text)).collect();
        }
        match cells.data_type() {
            DataType::Null => vec![true; cells.len()],
            kind if kind.is_floating() => {
                let numbers = self.numbers(0).unwrap_or_default();
                numbers.into_iter().map(f64::is_nan).collect()
            }
            _ => (0..cells.len()).map(|row| cells.is_null(row)).collect(),
        }
    }
}

/// What cells of a field's type are good for.
pub fn column_kind(field: &Field) -> ColumnKind {
    match field.data_type() {
        _ if unread_kind(field).is_some() => ColumnKind::Unread,
        kind if kind.is_floating() => ColumnKind::Number,
        // Beyond what 64 bits with a sign hold, so as text.
        DataType::UInt64 => ColumnKind::Text,
        kind if kind.is_integer() => ColumnKind::Integer,
        _ => ColumnKind::Text,
    }
}

/// The file's type of a column that has no reading as number or text.
pub fn unread_kind(field: &Field) -> Option<&str> {
    field.metadata().get(UNREAD).map(String::as_str)
}

/// The field of a column without a reading.
pub(super) fn unread_field(name: &str, kind: &str) -> Field {
    let metadata = [(UNREAD.to_owned(), kind.to_owned())];
    Field::new(name, DataType::Null, true).with_metadata(metadata.into())
}

pub(super) fn unread(name: &str, kind: &str) -> TableError {
    TableError::Unread {
        column: name.to_owned(),
        kind: kind.to_owned(),
    }
}

/// A table of these columns; the error names the columns whose names or lengths do not fit together.
pub fn table<N: Into<String>>(
    columns: impl IntoIterator<Item = (N, ArrayRef)>,
) -> Result<RecordBatch> {
    let field =
        |(name, cells): (N, ArrayRef)| (Field::new(name, cells.data_type().clone(), true), cells);
    let (fields, cells): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().map(field).unzip();
    table_of(fields, cells)
}

/// A table of fields and cells, such as columns of another table and new ones.
pub fn table_of(
    fields: impl IntoIterator<Item = impl Into<FieldRef>>,
    cells: Vec<ArrayRef>,
) -> Result<RecordBatch> {
    let fields: Vec<FieldRef> = fields.into_iter().map(Into::into).collect();
    let mut names = HashSet::new();
    for (field, column) in fields.iter().zip(&cells) {
        if !names.insert(field.name().as_str()) {
            let name = field.name().clone();
            return Err(TableError::SameName { name }.into());
        }
        if column.len() != cells[0].len() {
            return Err(TableError::UnequalLengths {
                column: field.name().clone(),
                rows: column.len(),
                first: fields[0].name().clone(),
                first_rows: cells[0].len(),
            }
            .into());
        }
    }
    Ok(batch(Arc::new(Schema::new(fields)), cells, None)?)
}

/// For readers, which may have no column but still rows.
pub(super) fn batch(
    schema: SchemaRef,
    cells: Vec<ArrayRef>,
    rows: Option<usize>,
) -> Result<RecordBatch, TableError> {
    let options = RecordBatchOptions::new().with_row_count(rows.or(Some(
        cells.first().map_or(0, |column: &ArrayRef| column.len()),
    )));
    Ok(RecordBatch::try_new_with_options(schema, cells, &options)?)
}

/// All columns of a table, in its order.
pub fn columns(table: &RecordBatch) -> impl ExactSizeIterator<Item = Column<'_>> {
    let fields = table.schema_ref().fields().iter();
    fields
        .zip(table.columns())
        .map(|(field, cells)| Column { field, cells })
}

/// A column by its name; the error says what there is and suggests the nearest name.
pub fn column<'a>(table: &'a RecordBatch, name: &str) -> Result<Column<'a>> {
    let found = columns(table).find(|column| column.name() == name);
    found.ok_or_else(|| {
        TableError::NotInTable {
            name: name.to_owned(),
            columns: columns(table).map(|c| c.name().to_owned()).collect(),
        }
        .into()
    })
}

/// Some rows of a table, in this order.
///
/// ```
/// use ramp_io::arrow::{ArrayRef, Int64Array};
/// use ramp_io::table::{column, select_rows, table};
/// let ages: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![Some(34), None, Some(7)]));
/// let two = select_rows(&table([("age", ages)])?, &[2, 0])?;
/// assert_eq!(column(&two, "age")?.numbers(0)?, [7.0, 34.0]);
/// # Ok::<(), ramp_io::Error>(())
/// ```
pub fn select_rows(table: &RecordBatch, rows: &[u32]) -> Result<RecordBatch> {
    let rows = UInt32Array::from(rows.to_vec());
    Ok(arrow_select::take::take_record_batch(table, &rows).map_err(TableError::from)?)
}

/// These columns of a table, in this order; the error for a name that is not there suggests the nearest.
///
/// ```
/// use ramp_io::arrow::{ArrayRef, Int64Array};
/// use ramp_io::table::{select_columns, table};
/// let cells = || -> ArrayRef { std::sync::Arc::new(Int64Array::from(vec![1, 2])) };
/// let people = table([("age", cells()), ("height", cells())])?;
/// assert_eq!(select_columns(&people, &["height".into()])?.num_columns(), 1);
/// assert!(select_columns(&people, &["hight".into()]).is_err());
/// # Ok::<(), ramp_io::Error>(())
/// ```
pub fn select_columns(table: &RecordBatch, names: &[String]) -> Result<RecordBatch> {
    let of = |name: &String| {
        let column = column(table, name)?;
        match unread_kind(column.field) {
            Some(kind) => Err(unread(name, kind).into()),
            None => Ok((column.field.clone(), column.cells.clone())),
        }
    };
    let all = names.iter().map(of).collect::<Result<Vec<_>>>()?;
    let (fields, cells): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    table_of(fields, cells)
}

/// The rows of several tables with the same columns, one behind the other.
pub fn concat_rows(tables: &[RecordBatch]) -> Result<RecordBatch> {
    let schema = match tables {
        [] => Arc::new(Schema::empty()),
        [one] => return Ok(one.clone()),
        [first, ..] => first.schema(),
    };
    let all = arrow_select::concat::concat_batches(&schema, tables);
    Ok(all.map_err(TableError::from)?)
}

/// Whether a text stands for a missing value: nothing, NA, NaN or null, in any case and between blanks.
///
/// ```
/// use ramp_io::table::is_missing_text;
/// assert!(["", "  ", "NA", " nan ", "NULL", "-nan"].into_iter().all(is_missing_text));
/// assert!(!["0", "n", "nano", "none"].into_iter().any(is_missing_text));
/// ```
pub fn is_missing_text(text: &str) -> bool {
    let text = text.trim();
    match text.len() {
        0 => true,
        2 => text.eq_ignore_ascii_case("na"),
        3 => text.eq_ignore_ascii_case("nan"),
        // C libraries print a sign.
        4 => text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("-nan"),
        _ => false,
    }
}

/// The number that a text spells, blanks around it aside.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|x: &f64| !x.is_nan())
}

/// Whether a text spells a number with a decimal comma, or with commas between thousands.
///
/// ```
/// use ramp_io::table::is_comma_number;
/// assert!(["1,5", "-0,25", "1,234,567"].into_iter().all(is_comma_number));
/// assert!(!["1.5", "1,2,3", "a,b", "1.234,5"].into_iter().any(is_comma_number));
/// ```
pub fn is_comma_number(text: &str) -> bool {
    comma_number(text).is_some()
}

/// A number with a comma in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommaNumber {
    /// With a point where its only comma was.
    pub spelled: Option<String>,
    /// Whether the comma cannot stand between thousands.
    pub decimal: bool,
}

/// The number that a text with one decimal comma, or with commas between thousands, spells.
pub(super) fn comma_number(text: &str) -> Option<CommaNumber> {
    let text = text.trim();
    if !text.contains(',') || text.contains('.') {
        return None;
    }
    let groups: Vec<&str> = text.trim_start_matches(['-', '+']).split(',').collect();
    let digits = |group: &&str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    let thousands = groups[1..].iter().all(digits) && (1..=3).contains(&groups[0].len());
    if groups.len() > 2 && !thousands {
        return None;
    }
    let spelled = text.replacen(
        ',',
        if groups.len() == 2 { "." } else { "" },
        groups.len() - 1,
    );
    parse_number(&spelled)?;
    Some(CommaNumber {
        spelled: (groups.len() == 2).then_some(spelled),
        // Nobody writes 0,123 for a hundred and twenty-three.
        decimal: !thousands || groups.len() == 2 && groups[0] == "0",
    })
}

/// The shortest spelling that reads back as the same number.
pub(super) fn spell_number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || (1e-5..1e16).contains(&size) || x.is_infinite() {
        format!("{x}")
    } else {
        format!("{x:e}")
    }
}

/// The texts of a column of any type of text, as they stand in the file.
pub(super) fn strings(cells: &dyn Array) -> Option<Box<dyn Iterator<Item = Option<&str>> + '_>> {
    match cells.data_type() {
        DataType::Utf8 => Some(Box::new(cells.as_string::<i32>().iter())),
        DataType::LargeUtf8 => Some(Box::new(cells.as_string::<i64>().iter())),
        DataType::Utf8View => Some(Box::new(cells.as_string_view().iter())),
        _ => None,
    }
}

fn floats<T: ArrowPrimitiveType>(cells: &dyn Array, number: impl Fn(T::Native) -> f64) -> Vec<f64> {
    let cells = cells.as_primitive::<T>();
    if cells.null_count() == 0 {
        return cells.values().iter().map(|&x| number(x)).collect();
    }
    let cell = |x: Option<T::Native>| x.map_or(f64::NAN, &number);
    cells.iter().map(cell).collect()
}

/// Cells as Arrow spells them.
fn formatted(cells: &dyn Array) -> Vec<Option<String>> {
    if let DataType::Timestamp(unit, Some(_)) = cells.data_type() {
        fn in_utc<T: ArrowTimestampType>(cells: &dyn Array) -> ArrayRef {
            Arc::new(cells.as_primitive::<T>().clone().with_timezone("+00:00"))
        }
        let utc = match unit {
            TimeUnit::Second => in_utc::<TimestampSecondType>(cells),
            TimeUnit::Millisecond => in_utc::<TimestampMillisecondType>(cells),
            TimeUnit::Microsecond => in_utc::<TimestampMicrosecondType>(cells),
            TimeUnit::Nanosecond => in_utc::<TimestampNanosecondType>(cells),
        };
        return spelled(&utc);
    }
    spelled(cells)
}

fn spelled(cells: &dyn Array) -> Vec<Option<String>> {
    let options = FormatOptions::new()
        .with_display_error(false)
        // Days counted in milliseconds are days all the same.
        .with_datetime_format(Some("%F"));
    let Ok(formatter) = ArrayFormatter::try_new(cells, &options) else {
        return vec![None; cells.len()];
    };
    let spell = |row: usize| {
        let there = cells.is_valid(row);
        // A moment beyond the calendar has no spelling, and counts as missing.
        there.then(|| formatter.value(row).try_to_string().ok())?
    };
    (0..cells.len()).map(spell).collect()
}

/// Checks the names of a file's columns: each has one, no two the same.
pub(super) fn check_names(path: &Path, schema: &Schema) -> Result<(), TableError> {
    let mut seen = HashSet::new();
    let mut twice: Vec<String> = Vec::new();
    for (place, field) in schema.fields().iter().enumerate() {
        if field.name().trim().is_empty() {
            return Err(TableError::Unnamed {
                path: path.to_path_buf(),
                place: place + 1,
            });
        }
        if !seen.insert(field.name().as_str()) {
            twice.push(field.name().clone());
        }
    }
    twice.dedup();
    if !twice.is_empty() {
        return Err(TableError::Repeated {
            path: path.to_path_buf(),
            names: twice,
        });
    }
    Ok(())
}

/// The places of the wanted columns among those that a file has; all of them where nothing is wished.
pub(super) fn pick(
    path: &Path,
    schema: &Schema,
    wanted: Option<&[String]>,
) -> Result<Vec<usize>, TableError> {
    let fields = schema.fields();
    let Some(wanted) = wanted else {
        return Ok((0..fields.len()).collect());
    };
    let in_file = || path.to_path_buf();
    if wanted.is_empty() {
        return Err(TableError::NoneAsked { path: in_file() });
    }
    let mut seen = HashSet::new();
    if let Some(name) = wanted.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(TableError::AskedTwice {
            path: in_file(),
            name: name.clone(),
        });
    }
    let places: std::collections::HashMap<&str, usize> = fields
        .iter()
        .enumerate()
        .map(|(place, field)| (field.name().as_str(), place))
        .collect();
    wanted
        .iter()
        .map(|name| match places.get(name.as_str()) {
            Some(&place) => match unread_kind(&fields[place]) {
                Some(kind) => Err(unread(name, kind)),
                None => Ok(place),
            },
            None => Err(TableError::NotInFile {
                path: in_file(),
                name: name.clone(),
                columns: fields.iter().map(|field| field.name().clone()).collect(),
            }),
        })
        .collect()
}
