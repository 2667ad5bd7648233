//! Sequences in a long table: a column tells them apart, another orders them in time.

use super::time_order::{TimeOrder, spelled};
use super::{Content, Samples, Sequence, SourceError};
use crate::Result;
use crate::arrow::RecordBatch;
use crate::model_file::Chain;
use crate::table::column;
use crate::time::Interval;
use std::collections::{HashMap, HashSet};

/// The sequence of every row; all are of one where no column tells them apart.
pub(super) fn sequence_ids(
    table: &RecordBatch,
    first_row: usize,
    chain: &Chain,
) -> Result<Vec<String>> {
    let Some(name) = chain.sequence.as_deref() else {
        return Ok(vec![String::new(); table.num_rows()]);
    };
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
        .map(|name| TimeOrder::of(column(&table, name)?, first_row, chain.step))
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
                    ..Sequence::default()
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
                    check_reach(&items, t, step, id, first_row)?;
                    let first = t[items[0] as usize];
                    let mut steps = vec![];
                    for &i in &items {
                        let at = step.steps(first, t[i as usize]).round() as u32;
                        if steps.last() == Some(&at) {
                            return Err(SourceError::SameStep {
                                sequence: id.clone(),
                                step,
                                time: time.into(),
                                at: spelled(t[i as usize], step),
                            }
                            .into());
                        }
                        steps.push(at);
                    }
                    steps
                }
                _ => (0..items.len() as u32).collect(),
            };
            let length = steps.last().map_or(0, |s| s + 1);
            let start = match (chain.step, times) {
                (Some(_), TimeOrder::Numbers(t)) => Some(t[items[0] as usize]),
                _ => None,
            };
            Ok(Sequence {
                items,
                steps,
                length,
                start,
                offset: 0,
            })
        })
        .collect::<Result<_>>()?;
    Ok(Samples {
        content: Content::Table(table),
        sequences: Some(sequences),
        first_row,
    })
}

/// Steps that a sequence may have beyond those that its rows account for: so many, and so many for each row.
const SPARE: (f64, f64) = (1000.0, 20.0);
/// The most steps of a sequence.
const LONGEST: f64 = 1e6;

/// A time stamp that is out of range would make a sequence of millions of empty steps; the widest gap shows where it stands.
fn check_reach(
    items: &[u32],
    times: &[f64],
    step: Interval,
    sequence: &str,
    first_row: usize,
) -> Result<(), SourceError> {
    let at = |i: usize| times[items[i] as usize];
    let steps = step.steps(at(0), at(items.len() - 1)) + 1.0;
    // Also where an infinite time makes it no number.
    let (some, each) = SPARE;
    if steps <= (some + each * items.len() as f64).min(LONGEST) {
        return Ok(());
    }
    let gap = |i: usize| step.steps(at(i - 1), at(i));
    let widest = (1..items.len()).max_by(|&a, &b| gap(a).total_cmp(&gap(b)));
    // One gap is the mistake, or a step that is too small for all.
    let Some(widest) = widest.filter(|&i| gap(i) > some || gap(i).is_nan()) else {
        return Err(SourceError::TooLong {
            sequence: sequence.into(),
            steps,
            step,
        });
    };
    Err(SourceError::WideGap {
        sequence: sequence.into(),
        steps: gap(widest),
        step,
        rows: [widest - 1, widest].map(|i| first_row + items[i] as usize + 1),
        times: Box::new([widest - 1, widest].map(|i| spelled(at(i), step))),
    })
}
