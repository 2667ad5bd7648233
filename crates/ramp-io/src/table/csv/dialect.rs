//! How a text file is written: what separates its cells, and which columns have decimal commas.

use super::super::column::{comma_number, is_missing_text, parse_number};
use csv::{ByteRecord, ReaderBuilder};

/// Rows that are looked at.
const LOOKED_AT: usize = 1000;

/// The first whole rows of a file, each as its cells.
fn records(start: &[u8], ended: bool, separator: u8) -> Vec<ByteRecord> {
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .from_reader(start);
    let mut records: Vec<ByteRecord> = reader
        .byte_records()
        .map_while(|record| record.ok())
        .take(LOOKED_AT)
        .collect();
    // The last may be cut, unless the file ends with it.
    if !ended && records.len() < LOOKED_AT {
        records.pop();
    }
    records
}

/// What separates cells: a comma, a tab or a semicolon that the header has. Where it has several, the first that cuts all rows
/// into as many cells as the header has names.
pub(super) fn find_separator(start: &[u8], ended: bool) -> u8 {
    let mut quoted = false;
    let mut seen = [false; 256];
    for &byte in start.trim_ascii_start() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if !quoted => seen[usize::from(byte)] = true,
            _ => {}
        }
    }
    let found: Vec<u8> = [b',', b'\t', b';']
        .into_iter()
        .filter(|&separator| seen[usize::from(separator)])
        .collect();
    let even = |&&separator: &&u8| {
        let records = records(start, ended, separator);
        let names = records.first().map_or(0, ByteRecord::len);
        records.iter().all(|record| record.len() == names)
    };
    match &found[..] {
        [] => b',',
        [only] => *only,
        [first, ..] => *found.iter().find(even).unwrap_or(first),
    }
}

/// What the first rows say of a column.
#[derive(Clone, Default)]
struct Cells {
    /// Some cell is no number, whichever way commas are read.
    words: bool,
    /// Some number has a decimal point.
    points: bool,
    /// Some number has a comma.
    commas: bool,
    /// Some comma cannot stand between thousands.
    decimal: bool,
}

/// Which fields of the rows behind a header hold numbers with decimal commas. Between commas, `"1,234"` is a thousand; where
/// semicolons or tabs separate cells, it is not.
pub(super) fn decimal_commas(start: &[u8], ended: bool, separator: u8, fields: usize) -> Vec<bool> {
    let mut columns = vec![Cells::default(); fields];
    for record in records(start, ended, separator) {
        for (column, cell) in columns.iter_mut().zip(record.iter()) {
            let Ok(text) = std::str::from_utf8(cell) else {
                column.words = true;
                continue;
            };
            match (parse_number(text), comma_number(text)) {
                (Some(_), _) => column.points |= text.contains('.'),
                (None, Some(number)) => {
                    column.words |= number.spelled.is_none();
                    column.commas = true;
                    column.decimal |= number.decimal || separator != b',';
                }
                (None, None) => column.words |= !is_missing_text(text),
            }
        }
    }
    let numbers = |column: &Cells| !column.words && !column.points;
    let some = columns.iter().any(|c| numbers(c) && c.commas && c.decimal);
    // A column whose first numbers are whole may have commas later on.
    columns
        .iter()
        .map(|column| some && numbers(column) && (column.decimal || !column.commas))
        .collect()
}
