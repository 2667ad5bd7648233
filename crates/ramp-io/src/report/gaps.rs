//! What is missing in the data of a fit, for its page: how much of every column, and which columns together.

use super::page::MissingPattern;
use crate::Project;
use crate::source::Samples;
use crate::table::{self, Column, columns as columns_of};
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
    parts.iter().sum::<f64>() / parts.len().max(1) as f64
}
