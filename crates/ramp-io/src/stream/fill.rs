//! Filling single cells: how a guess or a draw is written into them.

use super::candidates::{Candidates, Values};
use crate::Result;
use crate::table::{ColumnEditor, columns, concat_rows, select_rows, table_of};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::Field;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An index with the chance that its weight says.
pub(super) fn draw(weights: &[f64], rng: &mut ChaCha8Rng) -> usize {
    let mut left: f64 = rng.random();
    for (i, w) in weights.iter().enumerate() {
        left -= w;
        if left < 0.0 {
            return i;
        }
    }
    weights.len() - 1
}

/// What a cell may be.
pub(super) struct Filling<'a> {
    pub candidates: &'a Candidates,
    /// The chance of each.
    pub weights: &'a [f64],
    /// The one that was drawn.
    pub drawn: Option<usize>,
    /// The mean that a readout makes of them, or what it makes of the drawn one.
    pub read: Option<f64>,
}

/// Fills one cell: by a draw, or by the mean of numbers and the likeliest of levels.
pub(super) fn put(
    column: &mut ColumnEditor,
    row: usize,
    with: Filling<'_>,
    item: &dyn Fn(usize) -> usize,
    at_moment: &dyn Fn(usize) -> Option<f64>,
) {
    let Filling {
        candidates,
        weights,
        drawn,
        read,
    } = with;
    let numbers = match &candidates.values {
        Values::Numbers(numbers) => numbers,
        Values::Levels { levels, codes } => {
            let level = match drawn {
                Some(i) => candidates.texts[item(i)].clone(),
                None => {
                    let mut chance = vec![0.0; levels.len()];
                    for (i, w) in weights.iter().enumerate() {
                        if let Some(at) = codes[item(i)] {
                            chance[at] += w;
                        }
                    }
                    let best = (0..levels.len()).max_by(|&a, &b| chance[a].total_cmp(&chance[b]));
                    best.map(|b| levels[b].clone())
                }
            };
            return column.set_text(row, level.as_deref());
        }
    };
    if let Some(read) = read {
        // A draw is a value that training rows have: whole numbers stay whole, and nothing is below the least.
        let drawn = drawn.and_then(|_| candidates.nearest(read));
        let value = drawn.map_or(read, |row| numbers[row]);
        return column.set_number(row, value, |value| match drawn {
            Some(row) => candidates.texts[row].clone().unwrap_or_default(),
            None => significant(value),
        });
    }
    let number = |i: usize| at_moment(item(i)).unwrap_or(numbers[item(i)]);
    let value = match drawn {
        Some(i) => number(i),
        None => weights.iter().enumerate().map(|(i, w)| w * number(i)).sum(),
    };
    column.set_number(row, value, |value| match drawn {
        // As it stood in its own row.
        Some(i) if at_moment(item(i)).is_none() => {
            candidates.texts[item(i)].clone().unwrap_or_default()
        }
        // Six digits: more would pretend to a precision that is not there.
        _ => significant(value),
    });
}

/// A table with other cells in some of its columns.
pub(super) fn replaced(
    table: &RecordBatch,
    mut edited: BTreeMap<usize, ColumnEditor>,
) -> Result<RecordBatch> {
    let cells = table.columns().iter().enumerate().map(|(at, cells)| {
        let edited = edited.remove(&at);
        edited.map_or(Ok(cells.clone()), ColumnEditor::finish)
    });
    let cells = cells.collect::<Result<Vec<_>>>()?;
    table_of(table.schema_ref().fields().iter().cloned(), cells)
}

/// A number with six significant digits and no trailing zeros.
fn significant(value: f64) -> String {
    let digits = 5 - value.abs().log10().floor().clamp(-300.0, 300.0) as i32;
    match value {
        0.0 => "0".into(),
        v if (0..=12).contains(&digits) => {
            let text = format!("{v:.*}", digits as usize);
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').into(),
                false => text,
            }
        }
        v => format!("{v:e}"),
    }
}

/// All copies of a row together, with the number of the draw in front.
pub(super) fn interleave(copies: &[RecordBatch], rows: usize) -> Result<RecordBatch> {
    let mut name = String::from("draw");
    while columns(&copies[0]).any(|c| c.name() == name) {
        name.push('_');
    }
    let draws = copies.len();
    let numbers = (0..rows).flat_map(|_| 1..=draws as i64);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    // The copies stand one behind the other; their rows are taken in turn.
    let order: Vec<u32> = (0..rows)
        .flat_map(|row| (0..draws).map(move |d| (d * rows + row) as u32))
        .collect();
    let all = select_rows(&concat_rows(copies)?, &order)?;
    let mut fields = vec![Arc::new(Field::new(
        name,
        numbers.data_type().clone(),
        false,
    ))];
    fields.extend(all.schema_ref().fields().iter().cloned());
    let mut cells = vec![numbers];
    cells.extend(all.columns().iter().cloned());
    table_of(fields, cells)
}
