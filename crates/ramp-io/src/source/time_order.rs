//! What orders the rows of a sequence.

use super::SourceError;
use crate::Result;
use crate::table::Column;

/// What orders rows: numbers where all are, else texts (dates in ISO form, say).
pub(super) enum TimeOrder {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Texts.
    Texts(Vec<String>),
}

impl TimeOrder {
    pub fn of(column: &Column, first_row: usize, must_be_numbers: bool) -> Result<Self> {
        if let Some(row) = (0..column.cells.len()).find(|&r| column.is_missing(r)) {
            return Err(SourceError::NoTime {
                column: column.name.clone(),
                row: first_row + row + 1,
            }
            .into());
        }
        match column.numbers() {
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
