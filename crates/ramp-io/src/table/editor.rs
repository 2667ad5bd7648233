//! Single cells of a column to change, in the column's own type.

use super::TableError;
use super::column::{Column, ColumnKind, strings};
use crate::Result;
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow_schema::DataType;
use std::sync::Arc;

/// A column whose cells can be replaced; the result has the type that the column had.
///
/// ```
/// use ramp_io::arrow::{ArrayRef, Int32Array};
/// use ramp_io::table::{ColumnEditor, column, table};
/// let ages: ArrayRef = std::sync::Arc::new(Int32Array::from(vec![Some(34), None]));
/// let people = table([("age", ages)])?;
/// let mut editor = ColumnEditor::new(&column(&people, "age")?);
/// editor.set_number(1, 35.8, |x| x.to_string());
/// assert_eq!(column(&table([("age", editor.finish()?)])?, "age")?.numbers(0)?, [34.0, 36.0]);
/// # Ok::<(), ramp_io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ColumnEditor {
    kind: DataType,
    cells: Cells,
}

#[derive(Clone, Debug)]
enum Cells {
    Numbers(Vec<f64>),
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
}

impl ColumnEditor {
    /// Starts from the cells of a column.
    pub fn new(column: &Column<'_>) -> Self {
        let whole = |text: Option<String>| text.and_then(|text| text.parse().ok());
        let cells = match column.kind() {
            ColumnKind::Number => Cells::Numbers(column.numbers(0).unwrap_or_default()),
            ColumnKind::Integer => Cells::Integers(column.texts().into_iter().map(whole).collect()),
            // As they stand, so that what is missing stays spelled as it is.
            _ => Cells::Texts(match strings(column.cells) {
                Some(texts) => texts.map(|text| text.map(str::to_owned)).collect(),
                None => column.texts(),
            }),
        };
        Self {
            kind: column.cells.data_type().clone(),
            cells,
        }
    }

    /// Puts a number into a cell, rounded where the column is of whole numbers; `spell` says how it is written as text.
    pub fn set_number(&mut self, row: usize, value: f64, spell: impl FnOnce(f64) -> String) {
        match &mut self.cells {
            Cells::Numbers(cells) => cells[row] = value,
            Cells::Integers(cells) => cells[row] = Some(value.round() as i64),
            Cells::Texts(cells) => cells[row] = Some(spell(value)),
        }
    }

    /// Puts a text into a cell; where the column is of numbers, the number that it spells.
    pub fn set_text(&mut self, row: usize, text: Option<&str>) {
        // One format spells a level `1`, another `1.0`.
        let number = || text.and_then(|text| text.trim().parse::<f64>().ok());
        match &mut self.cells {
            Cells::Numbers(cells) => cells[row] = number().unwrap_or(f64::NAN),
            Cells::Integers(cells) => cells[row] = number().map(|x| x.round() as i64),
            Cells::Texts(cells) => cells[row] = text.map(str::to_owned),
        }
    }

    /// The cells in the column's own type.
    pub fn finish(self) -> Result<ArrayRef> {
        let cells: ArrayRef = match self.cells {
            Cells::Numbers(cells) => {
                let there = |x: f64| (!x.is_nan()).then_some(x);
                Arc::new(cells.into_iter().map(there).collect::<Float64Array>())
            }
            Cells::Integers(cells) => Arc::new(Int64Array::from(cells)),
            Cells::Texts(cells) => Arc::new(StringArray::from(cells)),
        };
        if *cells.data_type() == self.kind || self.kind == DataType::Null {
            return Ok(cells);
        }
        Ok(arrow_cast::cast(&cells, &self.kind).map_err(TableError::from)?)
    }
}
