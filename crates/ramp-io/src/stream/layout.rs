//! Rows and columns of the output: what identifies a row, and the numbers of latents beside it.

use super::StreamError;
use super::answers::Part;
use crate::Result;
use crate::run::{RowUse, Run};
use crate::table::column;
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow_schema::{Field, FieldRef};
use ramp::graph::TimeAxis;
use std::sync::Arc;

/// Which columns of the data stay in the output, and how sequences in arrays are set out.
///
/// ```
/// use ramp_io::stream::OutputOptions;
/// let options = OutputOptions::default().keep(["person", "age"]).long(true);
/// assert!(options.needs_all_columns());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputOptions {
    /// Columns of the data to keep in front.
    pub keep: Vec<String>,
    /// For sequences in arrays: one row for every time step, in place of one for every sequence.
    pub long: bool,
    /// What every row was to the fit, which a column then says; of the data that the run was fitted to.
    pub uses: Option<Vec<RowUse>>,
}

/// The column that says which rows were learned from.
pub const SPLIT: &str = "split";

impl OutputOptions {
    /// Keeps these columns of the data in front.
    pub fn keep(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.keep = columns.into_iter().map(Into::into).collect();
        self
    }

    /// For sequences in arrays: whether every time step has a row.
    pub fn long(mut self, long: bool) -> Self {
        self.long = long;
        self
    }

    /// Says in a column what every row was to the fit, where that is known (see [`Run::row_uses`]).
    pub fn uses(mut self, uses: Option<Vec<RowUse>>) -> Self {
        self.uses = uses;
        self
    }

    /// Whether the source must give more columns than the model needs.
    pub fn needs_all_columns(&self) -> bool {
        !self.keep.is_empty()
    }
}

/// A column of the output.
pub(super) type OutputColumn = (FieldRef, ArrayRef);

pub(super) fn new_column(name: impl Into<String>, cells: ArrayRef) -> OutputColumn {
    let field = Field::new(name, cells.data_type().clone(), true);
    (Arc::new(field), cells)
}

pub(super) fn number_column(name: impl Into<String>, numbers: Vec<f64>) -> OutputColumn {
    new_column(name, Arc::new(Float64Array::from(numbers)))
}

pub(super) fn integer_column(
    name: impl Into<String>,
    numbers: impl Iterator<Item = i64>,
) -> OutputColumn {
    new_column(name, Arc::new(Int64Array::from_iter_values(numbers)))
}

/// What rows were to the fit, where that is known. A column of the data that is kept has the name first.
pub(super) fn split(part: &Part<'_>, options: &OutputOptions) -> Option<OutputColumn> {
    let uses = options.uses.as_ref()?;
    let own = uses.get(part.first..part.first + part.samples.len())?;
    let name = match options.keep.iter().any(|kept| kept == SPLIT) {
        true => "ramp.split",
        false => SPLIT,
    };
    let words = own.iter().map(|u| u.word());
    Some(new_column(
        name,
        Arc::new(StringArray::from_iter_values(words)),
    ))
}

/// The columns that identify rows in the output: those asked for, and a sequence's own.
pub(super) fn kept(
    run: &Run,
    part: &Part<'_>,
    options: &OutputOptions,
) -> Result<Vec<OutputColumn>> {
    if let Some(table) = part.samples.table() {
        let mut names: Vec<&String> = vec![];
        if let Some(chain) = &run.chain {
            names.extend(chain.sequence.iter().chain(&chain.time));
        }
        for name in &options.keep {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        return names
            .into_iter()
            .map(|name| {
                let column = column(table, name)?;
                Ok((column.field.clone(), column.cells.clone()))
            })
            .collect();
    }
    if let Some(name) = options.keep.first() {
        return Err(StreamError::KeepFromArrays { name: name.clone() }.into());
    }
    let samples = part.first as i64..(part.first + part.samples.len()) as i64;
    let steps = part.samples.room() as i64;
    Ok(if options.long && run.chain.is_some() {
        let of = samples.clone().flat_map(|n| (0..steps).map(move |_| n));
        let step = samples.clone().flat_map(|_| 1..=steps);
        vec![integer_column("sample", of), integer_column("step", step)]
    } else {
        vec![integer_column("sample", samples)]
    })
}

/// Columns of numbers for every latent, set out as rows of the output. `of(latent)` gives the numbers of one latent, column by
/// column: for every sample, of a chain for every step of every sample. Names end in `suffixes`.
pub(super) fn latent_numbers(
    part: &Part<'_>,
    long: bool,
    suffixes: &dyn Fn(usize) -> Vec<String>,
    of: &mut dyn FnMut(usize) -> Vec<Vec<f64>>,
) -> Vec<OutputColumn> {
    let tree = part.model.tree();
    let named = |name: &str, suffix: &str| match suffix {
        "" => name.to_string(),
        suffix => format!("{name}.{suffix}"),
    };
    let (Some(sequences), Some(time)) = (&part.samples.sequences, tree.time_axis()) else {
        return tree
            .latents()
            .iter()
            .enumerate()
            .flat_map(|(k, &v)| {
                suffixes(k)
                    .into_iter()
                    .zip(of(k))
                    .map(|(suffix, values)| number_column(named(tree.name(v), &suffix), values))
                    .collect::<Vec<_>>()
            })
            .collect();
    };
    let columns = of(0);
    let steps = time.steps();
    // An array may have room for steps that no sequence reaches.
    let value = |n: usize, t: usize, c: usize| match (t as u32) < sequences[n].length {
        true => columns[c][n * steps + t],
        false => f64::NAN,
    };
    if let Some(table) = part.samples.table() {
        // One row for every row that came in, in its place.
        return suffixes(0)
            .iter()
            .enumerate()
            .map(|(c, suffix)| {
                let mut values = vec![f64::NAN; table.num_rows()];
                for (n, sequence) in sequences.iter().enumerate() {
                    for (&item, &t) in sequence.items.iter().zip(&sequence.steps) {
                        values[item as usize] = value(n, t as usize, c);
                    }
                }
                number_column(named(TimeAxis::LATENT, suffix), values)
            })
            .collect();
    }
    // The same for every part of a file, however long its own sequences are.
    let length = part.samples.room();
    if long {
        return suffixes(0)
            .iter()
            .enumerate()
            .map(|(c, suffix)| {
                let values = (0..sequences.len())
                    .flat_map(|n| (0..length).map(move |t| (n, t)))
                    .map(|(n, t)| value(n, t, c))
                    .collect();
                number_column(named(TimeAxis::LATENT, suffix), values)
            })
            .collect();
    }
    (0..length)
        .flat_map(|t| {
            suffixes(0)
                .into_iter()
                .enumerate()
                .map(move |(c, suffix)| (t, c, suffix))
        })
        .map(|(t, c, suffix)| {
            let values = (0..sequences.len()).map(|n| value(n, t, c)).collect();
            number_column(
                named(&format!("{}{}", TimeAxis::LATENT, t + 1), &suffix),
                values,
            )
        })
        .collect()
}
