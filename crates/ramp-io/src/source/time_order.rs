//! What orders the rows of a sequence, and the clock that they are on.

use super::SourceError;
use crate::Result;
use crate::arrow::{ArrayRef, AsArray, DataType, types::Int64Type};
use crate::table::Column;
use crate::time::{Interval, parse_moment, spell_moment};

/// What orders rows: numbers where all are, else texts (dates in ISO form, say).
pub(super) enum TimeOrder {
    /// Numbers, or moments of dates.
    Numbers(Vec<f64>),
    /// Texts.
    Texts(Vec<String>),
}

impl TimeOrder {
    /// The order that a column gives; with a step, moments that it can measure.
    pub fn of(column: Column<'_>, first_row: usize, step: Option<Interval>) -> Result<Self> {
        if let Some(row) = column.missing().iter().position(|&missing| missing) {
            return Err(SourceError::NoTime {
                column: column.name().to_owned(),
                row: first_row + row + 1,
            }
            .into());
        }
        if step.is_some_and(|step| step.is_calendar()) {
            return Ok(TimeOrder::Numbers(moments(column, first_row)?));
        }
        if let (None, Some(moments)) = (step, counted(column.cells)) {
            return Ok(TimeOrder::Numbers(moments));
        }
        match (column.numbers(first_row), step) {
            (Ok(numbers), _) => Ok(TimeOrder::Numbers(numbers)),
            (Err(_), Some(_)) if moments(column, first_row).is_ok() => {
                Err(SourceError::DatesWithNumber {
                    column: column.name().to_owned(),
                }
                .into())
            }
            (Err(e), Some(_)) => Err(e),
            (Err(_), None) => Ok(TimeOrder::Texts(
                column.texts().into_iter().flatten().collect(),
            )),
        }
    }

    pub fn sort(&self, items: &mut [u32]) {
        match self {
            TimeOrder::Numbers(t) => {
                items.sort_by(|&a, &b| t[a as usize].total_cmp(&t[b as usize]))
            }
            TimeOrder::Texts(t) => items.sort_by(|&a, &b| t[a as usize].cmp(&t[b as usize])),
        }
    }

    pub fn same(&self, a: u32, b: u32) -> bool {
        match self {
            TimeOrder::Numbers(t) => t[a as usize] == t[b as usize],
            TimeOrder::Texts(t) => t[a as usize] == t[b as usize],
        }
    }
}

/// A moment as its column spells it.
pub(crate) fn spelled(moment: f64, step: Interval) -> String {
    match step.is_calendar() {
        true => spell_moment(moment),
        false => moment.to_string(),
    }
}

/// Dates as moments.
fn moments(column: Column<'_>, first_row: usize) -> Result<Vec<f64>, SourceError> {
    let texts = column.texts().into_iter().enumerate();
    texts
        .map(|(row, text)| {
            let text = text.unwrap_or_default();
            parse_moment(&text).ok_or_else(|| SourceError::NotADate {
                column: column.name().to_owned(),
                text,
                row: first_row + row + 1,
            })
        })
        .collect()
}

/// Dates and moments as the numbers that they are counted by: their texts need not sort as they do.
fn counted(cells: &ArrayRef) -> Option<Vec<f64>> {
    if !cells.data_type().is_temporal() {
        return None;
    }
    let counts = arrow_cast::cast(cells, &DataType::Int64).ok()?;
    let counts = counts.as_primitive_opt::<Int64Type>()?;
    Some(counts.values().iter().map(|&count| count as f64).collect())
}
