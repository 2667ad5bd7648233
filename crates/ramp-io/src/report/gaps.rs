//! What is missing in the data of a fit, for its page: how much of every column, and which columns together.

use super::page::MissingPattern;
use crate::ranks::engine;
use crate::source::Samples;
use crate::table::{self, Column, columns as columns_of};
use crate::{Project, Result};
use ramp::collective::{Collective, gather_bytes, gather_numbers};
use std::collections::HashMap;

/// Columns that the page shows.
const SHOWN_COLUMNS: usize = 100;
/// Sets of columns missing together that it shows.
const PATTERNS: usize = 16;

/// The columns of a table that the page shows: those of the model first, the others after.
pub(super) fn shown_columns<'a>(project: &Project, samples: &'a Samples) -> Vec<Column<'a>> {
    let Some(table) = samples.table() else {
        return vec![];
    };
    let used = project.encoder.columns();
    let mut columns: Vec<_> = columns_of(table).collect();
    columns.sort_by_key(|c| !used.iter().any(|name| name == c.name()));
    columns.truncate(SHOWN_COLUMNS);
    columns
}

/// What is missing in all rows.
#[derive(Default)]
pub(super) struct Gaps {
    /// The fraction of every shown column that is missing, in the page's order.
    pub columns: Vec<f64>,
    /// The most frequent sets of these columns missing together.
    pub patterns: Vec<MissingPattern>,
    /// The fraction of the model's cells that is missing.
    pub cells: f64,
}

impl Gaps {
    /// Looks at all samples with all columns of their file.
    pub fn of(project: &Project, whole: &Samples) -> Self {
        let missing: Vec<Vec<bool>> = shown_columns(project, whole)
            .iter()
            .map(Column::missing)
            .collect();
        Gaps {
            columns: missing.iter().map(|column| fraction(column)).collect(),
            patterns: patterns(&missing),
            cells: cells(project),
        }
    }

    /// The same of samples that ranks hold together, each some of them with all columns of their file; all call it together, and rank 0 gets the patterns.
    pub fn among(project: &Project, own: &Samples, ranks: &dyn Collective) -> Result<Self> {
        let missing: Vec<Vec<bool>> = shown_columns(project, own)
            .iter()
            .map(Column::missing)
            .collect();
        let columns = fractions(&missing, ranks)?;
        // A set of at most a hundred columns is a number.
        let mut counts: HashMap<u128, u64> = HashMap::new();
        for row in 0..missing.first().map_or(0, Vec::len) {
            let bits = missing.iter().enumerate();
            let set = bits.fold(0, |set, (i, column)| set | u128::from(column[row]) << i);
            *counts.entry(set).or_default() += 1;
        }
        let sent: Vec<u8> = counts
            .iter()
            .flat_map(|(set, rows)| set.to_le_bytes().into_iter().chain(rows.to_le_bytes()))
            .collect();
        let mut all: HashMap<Vec<bool>, usize> = HashMap::new();
        for bytes in gather_bytes(ranks, &sent, Some(0)).map_err(engine)? {
            for pair in bytes.chunks_exact(24) {
                let (mut set, mut rows) = ([0; 16], [0; 8]);
                set.copy_from_slice(&pair[..16]);
                rows.copy_from_slice(&pair[16..]);
                let set = u128::from_le_bytes(set);
                let set = (0..missing.len()).map(|i| set >> i & 1 == 1).collect();
                *all.entry(set).or_default() += u64::from_le_bytes(rows) as usize;
            }
        }
        let parts: Vec<f64> = match own.table() {
            Some(_) => {
                let Some(table) = project.samples.table() else {
                    return Ok(Gaps::default());
                };
                let of = |name: &String| Some(table::column(table, name).ok()?.missing());
                let used: Vec<_> = project.encoder.columns().iter().filter_map(of).collect();
                fractions(&used, ranks)?
            }
            None => {
                let observations = project.encoder.observations.iter();
                observations.map(|o| project.missing(&o.name)).collect()
            }
        };
        Ok(Gaps {
            columns,
            patterns: most_frequent(all),
            cells: mean(&parts),
        })
    }
}

/// The fraction of every column that is missing, of the rows of all ranks.
fn fractions(own: &[Vec<bool>], ranks: &dyn Collective) -> Result<Vec<f64>> {
    let count = |column: &Vec<bool>| column.iter().filter(|&&is| is).count() as u64;
    let rows = own.first().map_or(0, Vec::len) as u64;
    let counts: Vec<u64> = own.iter().map(count).chain([rows]).collect();
    let all = gather_numbers(ranks, &counts).map_err(engine)?;
    let sum = |at: usize| all.chunks_exact(counts.len()).map(|c| c[at]).sum::<u64>();
    let rows = sum(own.len()).max(1) as f64;
    Ok((0..own.len()).map(|at| sum(at) as f64 / rows).collect())
}

fn mean(parts: &[f64]) -> f64 {
    parts.iter().sum::<f64>() / parts.len().max(1) as f64
}

/// How many are, of all.
fn fraction(are: &[bool]) -> f64 {
    are.iter().filter(|&&is| is).count() as f64 / are.len().max(1) as f64
}

fn patterns(columns: &[Vec<bool>]) -> Vec<MissingPattern> {
    let rows = columns.first().map_or(0, Vec::len);
    let mut counts: HashMap<Vec<bool>, usize> = HashMap::new();
    for row in 0..rows {
        *counts
            .entry(columns.iter().map(|missing| missing[row]).collect())
            .or_default() += 1;
    }
    most_frequent(counts)
}

fn most_frequent(counts: HashMap<Vec<bool>, usize>) -> Vec<MissingPattern> {
    let mut patterns: Vec<MissingPattern> = counts
        .into_iter()
        .map(|(missing, rows)| MissingPattern { missing, rows })
        .collect();
    patterns.sort_by(|a, b| b.rows.cmp(&a.rows).then(a.missing.cmp(&b.missing)));
    patterns.truncate(PATTERNS);
    patterns
}

/// The fraction of the model's cells that is missing; of arrays, of their observations.
fn cells(project: &Project) -> f64 {
    let parts: Vec<f64> = match project.samples.table() {
        Some(table) => {
            let of = |name: &String| Some(fraction(&table::column(table, name).ok()?.missing()));
            project.encoder.columns().iter().filter_map(of).collect()
        }
        None => {
            let observations = project.encoder.observations.iter();
            observations.map(|o| project.missing(&o.name)).collect()
        }
    };
    mean(&parts)
}
