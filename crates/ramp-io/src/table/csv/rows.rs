//! From the bytes of whole rows to columns of texts.

use super::super::column::comma_number;
use super::super::{TableError, column};
use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use csv::{ByteRecord, ReaderBuilder};
use std::sync::Arc;

/// Which fields of a row become which columns.
pub(super) struct Layout {
    separator: u8,
    /// How many fields a row has.
    pub(super) fields: usize,
    /// For each field the column that it goes to.
    goes: Vec<Option<usize>>,
    columns: usize,
    /// For each column whether its numbers have decimal commas.
    commas: Vec<bool>,
}

/// What is wrong with a row that begins at some byte.
pub(super) enum Fault {
    NotUtf8 { start: usize },
    FieldCount { start: usize, found: usize },
    Arrow(TableError),
}

impl Fault {
    pub(super) fn moved_by(self, bytes: usize) -> Self {
        match self {
            Fault::NotUtf8 { start } => Fault::NotUtf8 {
                start: start + bytes,
            },
            Fault::FieldCount { start, found } => Fault::FieldCount {
                start: start + bytes,
                found,
            },
            arrow => arrow,
        }
    }
}

impl Layout {
    pub(super) fn new(separator: u8, fields: usize, places: &[usize]) -> Self {
        let mut goes = vec![None; fields];
        for (column, &place) in places.iter().enumerate() {
            goes[place] = Some(column);
        }
        Self {
            separator,
            fields,
            goes,
            columns: places.len(),
            commas: vec![false; places.len()],
        }
    }

    /// Reads numbers with decimal commas in these fields.
    pub(super) fn with_decimal_commas(mut self, fields: &[bool]) -> Self {
        for (goes, &comma) in self.goes.iter().zip(fields) {
            if let Some(column) = goes {
                self.commas[*column] = comma;
            }
        }
        self
    }

    pub(super) fn separator(&self) -> u8 {
        self.separator
    }

    /// Whether commas separate cells.
    pub(super) fn has_commas(&self) -> bool {
        self.separator == b','
    }

    /// Appends a cell to a column: as it is spelled, but for a decimal comma, which nobody else would read.
    fn push(&self, builder: &mut StringBuilder, column: usize, text: &str) {
        let number = match self.commas[column] {
            true => comma_number(text).and_then(|number| number.spelled),
            false => None,
        };
        match (text, number) {
            ("", _) => builder.append_null(),
            (_, Some(number)) => builder.append_value(&number),
            (text, None) => builder.append_value(text),
        }
    }

    pub(super) fn reader<'a>(&self, bytes: &'a [u8]) -> csv::Reader<&'a [u8]> {
        ReaderBuilder::new()
            .delimiter(self.separator)
            .has_headers(false)
            // Rows of another length get our own sentence.
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(bytes)
    }

    fn builders(&self, bytes: usize) -> Vec<StringBuilder> {
        let cells = (bytes / self.fields.max(1)).min(1 << 20);
        let builder = |_| StringBuilder::with_capacity(cells / 8, cells);
        (0..self.columns).map(builder).collect()
    }
}

fn finish(
    builders: Vec<StringBuilder>,
    rows: usize,
    schema: &SchemaRef,
) -> Result<RecordBatch, Fault> {
    let finished = |mut builder: StringBuilder| Arc::new(builder.finish()) as ArrayRef;
    let cells = builders.into_iter().map(finished).collect();
    column::batch(schema.clone(), cells, Some(rows)).map_err(Fault::Arrow)
}

/// Rows without any quote, the last with or without its line's end.
pub(super) fn parse_plain(
    bytes: &[u8],
    layout: &Layout,
    schema: &SchemaRef,
) -> Result<RecordBatch, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = memchr::memrchr2(b'\n', b'\r', &bytes[..e.valid_up_to()]);
        Fault::NotUtf8 {
            start: line.map_or(0, |end| end + 1),
        }
    })?;
    let mut builders = layout.builders(bytes.len());
    let (mut rows, mut at) = (0, 0);
    while at < bytes.len() {
        // Blank lines are no rows.
        if matches!(bytes[at], b'\n' | b'\r') {
            at += 1;
            continue;
        }
        let (start, mut field) = (at, 0);
        loop {
            let length = bytes[at..]
                .iter()
                .position(|&byte| byte == layout.separator || byte == b'\n' || byte == b'\r');
            let end = length.map_or(bytes.len(), |length| at + length);
            if let Some(&Some(column)) = layout.goes.get(field) {
                layout.push(&mut builders[column], column, &text[at..end]);
            }
            field += 1;
            at = (end + 1).min(bytes.len());
            if bytes.get(end) != Some(&layout.separator) {
                break;
            }
        }
        if field != layout.fields {
            return Err(Fault::FieldCount {
                start,
                found: field,
            });
        }
        rows += 1;
    }
    finish(builders, rows, schema)
}

/// Rows with quotes, one after the other, and how many bytes they take; `None` where not even one is whole. Unless the file
/// ends here, the last may go on and is left.
pub(super) fn parse_quoted(
    bytes: &[u8],
    layout: &Layout,
    schema: &SchemaRef,
    ended: bool,
) -> Result<Option<(RecordBatch, usize)>, Fault> {
    let mut reader = layout.reader(bytes);
    let mut builders = layout.builders(bytes.len());
    let (mut record, mut next) = (ByteRecord::new(), ByteRecord::new());
    let (mut rows, mut used) = (0, 0);
    // Bytes in memory are always read, and rows of any length are allowed.
    let mut more = reader.read_byte_record(&mut record).unwrap_or(false);
    while more {
        more = reader.read_byte_record(&mut next).unwrap_or(false);
        let start = record.position().map_or(0, |p| p.byte()) as usize;
        if !more && !ended {
            used = start;
            break;
        }
        let not_text = |field: &[u8]| std::str::from_utf8(field).is_err();
        if record.len() != layout.fields {
            let found = record.len();
            return Err(Fault::FieldCount { start, found });
        }
        if !record.as_slice().is_ascii() && record.iter().any(not_text) {
            return Err(Fault::NotUtf8 { start });
        }
        for (field, goes) in record.iter().zip(&layout.goes) {
            if let Some(column) = goes {
                let text = std::str::from_utf8(field).map_err(|_| Fault::NotUtf8 { start })?;
                layout.push(&mut builders[*column], *column, text);
            }
        }
        rows += 1;
        std::mem::swap(&mut record, &mut next);
    }
    if ended {
        used = bytes.len();
    }
    if rows == 0 && used == 0 {
        return Ok(None);
    }
    finish(builders, rows, schema).map(|batch| Some((batch, used)))
}
