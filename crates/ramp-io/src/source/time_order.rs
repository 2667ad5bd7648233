//! What orders the rows of a sequence.

use super::SourceError;
use crate::Result;
use crate::arrow::{ArrayRef, AsArray, DataType, types::Int64Type};
use crate::table::Column;

/// What orders rows: numbers where all are, else texts (dates in ISO form, say).
pub(super) enum TimeOrder {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Texts.
    Texts(Vec<String>),
}

impl TimeOrder {
    pub fn of(column: Column<'_>, first_row: usize, must_be_numbers: bool) -> Result<Self> {
        if let Some(row) = column.missing().iter().position(|&missing| missing) {
            return Err(SourceError::NoTime {
                column: column.name().to_owned(),
                row: first_row + row + 1,
            }
            .into());
        }
        if let (false, Some(moments)) = (must_be_numbers, counted(column.cells)) {
            return Ok(TimeOrder::Numbers(moments));
        }
        match column.numbers(first_row) {
            Ok(numbers) => Ok(TimeOrder::Numbers(numbers)),
            Err(e) if must_be_numbers => Err(e),
            Err(_) => Ok(TimeOrder::Texts(
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

/// Dates and moments as the numbers that they are counted by: their texts need not sort as they do.
fn counted(cells: &ArrayRef) -> Option<Vec<f64>> {
    if !cells.data_type().is_temporal() {
        return None;
    }
    let counts = arrow_cast::cast(cells, &DataType::Int64).ok()?;
    let counts = counts.as_primitive_opt::<Int64Type>()?;
    Some(counts.values().iter().map(|&count| count as f64).collect())
}
