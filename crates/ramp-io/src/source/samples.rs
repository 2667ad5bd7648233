//! Some samples of a file, and some of those.

use super::SourceError;
use super::arrays::{ArraySource, pick_arrays, sequences_of};
use super::long_table::sequences_of_rows;
use crate::Result;
use crate::array::{Array, ArrayValues};
use crate::arrow::RecordBatch;
use crate::model_file::Chain;
use crate::table::{select_columns, select_rows};
use std::collections::HashSet;

/// Some samples of a file.
#[derive(Clone, Debug)]
pub struct Samples {
    /// What the file holds of them.
    pub content: Content,
    /// Where each sample's time steps are; `None` where samples are no sequences.
    pub sequences: Option<Vec<Sequence>>,
    /// The place of the first row of a table in its file, counted from 0, for messages.
    pub first_row: usize,
}

/// Samples by their form in the file.
#[derive(Clone, Debug)]
pub enum Content {
    /// Columns.
    Table(RecordBatch),
    /// Arrays whose first axis counts the samples.
    Arrays(Vec<Array>),
}

/// The time steps of one sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequence {
    /// Its items: rows of the table, or places along the first two axes of arrays, in order of time.
    pub items: Vec<u32>,
    /// The step of each, from 0 and ascending.
    pub steps: Vec<u32>,
    /// How many steps, gaps included.
    pub length: u32,
    /// The moment at which the sequence began, where the chain has a `step` that measures time.
    pub start: Option<f64>,
    /// The steps from then to step 0: a window begins later than its sequence.
    pub offset: u32,
}

impl Samples {
    /// Samples that are in memory, of a chain each a sequence: all columns or arrays, or only those wanted.
    pub fn in_memory(
        content: Content,
        chain: Option<&Chain>,
        wanted: Option<&[String]>,
    ) -> Result<Self> {
        let (content, sequences) = match content {
            Content::Table(table) => {
                let table = match wanted {
                    Some(wanted) => select_columns(&table, wanted)?,
                    None => table,
                };
                match chain {
                    Some(chain) => {
                        return sequences_of_rows(table, 0, chain, &mut HashSet::new());
                    }
                    None => (Content::Table(table), None),
                }
            }
            Content::Arrays(arrays) => {
                let sources = arrays.into_iter().map(ArraySource::Memory).collect();
                let sources = pick_arrays(sources, None, chain.is_some(), wanted)?;
                let whole = |mut source: ArraySource| source.read(0..source.rows());
                let arrays = sources.into_iter().map(whole).collect::<Result<Vec<_>>>()?;
                if arrays.first().is_none_or(|array| array.shape[0] == 0) {
                    return Err(SourceError::Empty { path: None }.into());
                }
                let sequences = chain.map(|_| sequences_of(&arrays));
                (Content::Arrays(arrays), sequences)
            }
        };
        Ok(Samples {
            content,
            sequences,
            first_row: 0,
        })
    }

    /// How many samples.
    pub fn len(&self) -> usize {
        match (&self.sequences, &self.content) {
            (Some(sequences), _) => sequences.len(),
            (None, Content::Table(table)) => table.num_rows(),
            (None, Content::Arrays(arrays)) => arrays.first().map_or(0, |a| a.shape[0]),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The table, where there is one.
    pub fn table(&self) -> Option<&RecordBatch> {
        match &self.content {
            Content::Table(table) => Some(table),
            Content::Arrays(_) => None,
        }
    }

    /// The steps of the longest sequence.
    pub fn steps(&self) -> usize {
        let lengths = self.sequences.iter().flatten().map(|s| s.length as usize);
        lengths.max().unwrap_or(0)
    }

    /// The steps that sequences have room for: an array's second axis, or the steps of the longest sequence of a table.
    pub fn room(&self) -> usize {
        match (&self.content, &self.sequences) {
            (Content::Arrays(arrays), Some(_)) => arrays.first().map_or(0, |a| a.shape[1]),
            _ => self.steps(),
        }
    }

    /// Some of the samples, in this order.
    pub fn select(&self, samples: &[u32]) -> Result<Samples> {
        match (&self.content, &self.sequences) {
            (Content::Table(table), None) => Ok(Samples {
                content: Content::Table(select_rows(table, samples)?),
                sequences: None,
                first_row: 0,
            }),
            (Content::Table(table), Some(sequences)) => {
                let mut rows = vec![];
                let mut moved = vec![];
                for &n in samples {
                    let mut sequence = sequences[n as usize].clone();
                    for item in &mut sequence.items {
                        rows.push(*item);
                        *item = rows.len() as u32 - 1;
                    }
                    moved.push(sequence);
                }
                Ok(Samples {
                    content: Content::Table(select_rows(table, &rows)?),
                    sequences: Some(moved),
                    first_row: 0,
                })
            }
            (Content::Arrays(arrays), sequences) => {
                let arrays: Vec<Array> = arrays.iter().map(|a| select_first(a, samples)).collect();
                let sequences = sequences.as_ref().map(|_| sequences_of(&arrays));
                Ok(Samples {
                    content: Content::Arrays(arrays),
                    sequences,
                    first_row: 0,
                })
            }
        }
    }
}

fn select_first(array: &Array, samples: &[u32]) -> Array {
    let width: usize = array.shape[1..].iter().product();
    let span = |n: &u32| *n as usize * width..(*n as usize + 1) * width;
    let mut shape = array.shape.clone();
    shape[0] = samples.len();
    Array {
        name: array.name.clone(),
        shape,
        values: match &array.values {
            ArrayValues::Numbers(x) => {
                ArrayValues::Numbers(samples.iter().flat_map(|n| &x[span(n)]).copied().collect())
            }
            ArrayValues::Bytes(x) => {
                ArrayValues::Bytes(samples.iter().flat_map(|n| &x[span(n)]).copied().collect())
            }
        },
    }
}
