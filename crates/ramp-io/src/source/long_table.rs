//! Sequences in a long table: a column tells them apart, another orders them in time.

use super::time_order::TimeOrder;
use super::{Content, Samples, Sequence, SourceError};
use crate::Result;
use crate::arrow::RecordBatch;
use crate::model_file::Chain;
use crate::table::column;
use std::collections::{HashMap, HashSet};

/// Sequences up to this many steps may have any number of rows.
const FREE_STEPS: f64 = 10_000.0;
/// Longer ones have a row in so many steps at least: a single absurd time would else make every sequence as long.
const STEPS_PER_ROW: f64 = 100.0;

/// The sequence of every row.
pub(super) fn sequence_ids(
    table: &RecordBatch,
    first_row: usize,
    chain: &Chain,
) -> Result<Vec<String>> {
    let name = chain.sequence.as_deref().unwrap_or_default();
    let ids = column(table, name)?.texts().into_iter().enumerate();
    ids.map(|(row, id)| {
        id.ok_or_else(|| {
            SourceError::NoSequence {
                column: name.into(),
                row: first_row + row + 1,
            }
            .into()
        })
    })
    .collect()
}

/// Groups the rows of a long table into sequences, in order of first appearance, and orders each in time.
pub(super) fn sequences_of_rows(
    table: RecordBatch,
    first_row: usize,
    chain: &Chain,
    seen: &mut HashSet<String>,
) -> Result<Samples> {
    let ids = sequence_ids(&table, first_row, chain)?;
    let mut place: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<Vec<u32>> = vec![];
    for (row, id) in ids.iter().enumerate() {
        let next = groups.len();
        let group = *place.entry(id).or_insert(next);
        if group == next {
            groups.push(vec![]);
        }
        groups[group].push(row as u32);
    }
    for &id in place.keys() {
        if !seen.insert(id.to_string()) {
            return Err(SourceError::NotTogether {
                sequence: id.into(),
                column: chain.sequence.clone().unwrap_or_default(),
            }
            .into());
        }
    }
    let times = chain
        .time
        .as_deref()
        .map(|name| TimeOrder::of(column(&table, name)?, first_row, chain.step.is_some()))
        .transpose()?;
    let sequences = groups
        .into_iter()
        .map(|mut items| {
            let id = &ids[items[0] as usize];
            let Some(times) = &times else {
                let length = items.len() as u32;
                return Ok(Sequence {
                    items,
                    steps: (0..length).collect(),
                    length,
                });
            };
            times.sort(&mut items);
            let time = chain.time.as_deref().unwrap_or_default();
            if let Some(w) = items.windows(2).find(|w| times.same(w[0], w[1])) {
                return Err(SourceError::SameTime {
                    sequence: id.clone(),
                    time: time.into(),
                    first: first_row + w[0] as usize + 1,
                    second: first_row + w[1] as usize + 1,
                }
                .into());
            }
            let steps: Vec<u32> = match (chain.step, times) {
                (Some(step), TimeOrder::Numbers(t)) => {
                    let first = t[items[0] as usize];
                    let longest = FREE_STEPS.max(STEPS_PER_ROW * items.len() as f64);
                    let mut steps = vec![];
                    for &i in &items {
                        let at = ((t[i as usize] - first) / step).round();
                        if at > longest && at <= 1e6 {
                            return Err(SourceError::MostlyGaps {
                                sequence: id.clone(),
                                rows: items.len(),
                                steps: at,
                                time: time.into(),
                                row: first_row + i as usize + 1,
                            }
                            .into());
                        }
                        if at > 1e6 {
                            return Err(SourceError::TooLong {
                                sequence: id.clone(),
                                steps: at,
                                step,
                            }
                            .into());
                        }
                        if steps.last() == Some(&(at as u32)) {
                            return Err(SourceError::SameStep {
                                sequence: id.clone(),
                                step,
                                time: time.into(),
                                at: t[i as usize],
                            }
                            .into());
                        }
                        steps.push(at as u32);
                    }
                    steps
                }
                _ => (0..items.len() as u32).collect(),
            };
            let length = steps.last().map_or(0, |s| s + 1);
            Ok(Sequence {
                items,
                steps,
                length,
            })
        })
        .collect::<Result<_>>()?;
    Ok(Samples {
        content: Content::Table(table),
        sequences: Some(sequences),
        first_row,
    })
}
