//! What orders the rows of a sequence.

use crate::arrow::{ArrayRef, AsArray, DataType, types::Int64Type};
use crate::table::Column;
use crate::{Error, Result};

/// What orders rows: numbers where all are, else texts (dates in ISO form, say).
pub(super) enum Times {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Texts.
    Texts(Vec<String>),
}

impl Times {
    pub fn of(column: Column<'_>, first_row: usize, must_be_numbers: bool) -> Result<Self> {
        if let Some(row) = column.missing().iter().position(|&missing| missing) {
            return Err(Error::Invalid(format!(
                "column `{}` does not say the time of data row {}; give it or take the row out",
                column.name(),
                first_row + row + 1
            )));
        }
        if let (false, Some(moments)) = (must_be_numbers, counted(column.cells)) {
            return Ok(Times::Numbers(moments));
        }
        match column.numbers(first_row) {
            Ok(numbers) => Ok(Times::Numbers(numbers)),
            Err(e) if must_be_numbers => Err(e),
            Err(_) => Ok(Times::Texts(column.texts().into_iter().flatten().collect())),
        }
    }

    pub fn sort(&self, items: &mut [u32]) {
        match self {
            Times::Numbers(t) => items.sort_by(|&a, &b| t[a as usize].total_cmp(&t[b as usize])),
            Times::Texts(t) => items.sort_by(|&a, &b| t[a as usize].cmp(&t[b as usize])),
        }
    }

    pub fn same(&self, a: u32, b: u32) -> bool {
        match self {
            Times::Numbers(t) => t[a as usize] == t[b as usize],
            Times::Texts(t) => t[a as usize] == t[b as usize],
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
