//! Samples as they stand in a file: rows of a table, sequences in a long table, or the first axis of arrays; some at a time.

mod error;
mod time_order;

use crate::Result;
use crate::array::{Array, ArrayReader, ArrayValues};
use crate::arrow::{RecordBatch, SchemaRef};
use crate::model_file::Chain;
use crate::table::{
    TableReader, check_there, column, concat_rows, open_columns, open_table, rows_at_once,
    select_rows,
};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use time_order::TimeOrder;

pub use error::SourceError;

/// Long tables up to this size are read whole, so that the rows of a sequence may stand anywhere. In memory, a table of short
/// cells takes about eight times its text.
const WHOLE: u64 = 64 << 20;

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
}

impl Samples {
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

/// The sequences of arrays of samples × time × …: steps at the end at which every number is missing are cut off.
fn sequences_of(arrays: &[Array]) -> Vec<Sequence> {
    let (samples, steps) = (arrays[0].shape[0], arrays[0].shape[1]);
    (0..samples)
        .map(|n| {
            let seen = |t: &usize| {
                arrays.iter().any(|array| match &array.values {
                    ArrayValues::Bytes(_) => true,
                    ArrayValues::Numbers(x) => {
                        let width: usize = array.shape[2..].iter().product();
                        x[(n * steps + t) * width..][..width]
                            .iter()
                            .any(|x| !x.is_nan())
                    }
                })
            };
            let length = (0..steps).rev().find(seen).map_or(0, |t| t as u32 + 1);
            Sequence {
                items: (0..length).map(|t| (n * steps) as u32 + t).collect(),
                steps: (0..length).collect(),
                length,
            }
        })
        .collect()
}

/// Reads samples from a file, some at a time.
pub struct SampleReader {
    path: PathBuf,
    form: Form,
    /// Rows of a table that are read.
    row: usize,
}

enum Form {
    Rows(Box<dyn TableReader>),
    Long {
        reader: Box<dyn TableReader>,
        chain: Chain,
        whole: bool,
        /// Rows that belong to a sequence whose end has not been seen.
        held: Option<RecordBatch>,
        seen: HashSet<String>,
        done: bool,
    },
    Arrays {
        readers: Vec<ArrayReader>,
        chain: bool,
        at: usize,
    },
}

impl SampleReader {
    /// Opens a file: all columns of a table, or only those wanted. From arrays, those named in `wanted` or all.
    pub fn open(path: &Path, chain: Option<&Chain>, wanted: Option<&[String]>) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        check_there(path)?;
        let form = if extension == "npy" || extension == "npz" {
            arrays(path, chain.is_some(), wanted)?
        } else {
            let reader = match wanted {
                None => open_table(path),
                Some(wanted) => open_columns(path, wanted),
            }
            .map_err(|e| e.in_file(path))?;
            match chain {
                None => Form::Rows(reader),
                Some(chain) => {
                    if chain.sequence.is_none() {
                        return Err(SourceError::NoSequenceColumn.into());
                    }
                    let size = std::fs::metadata(path).map_or(0, |m| m.len());
                    Form::Long {
                        reader,
                        chain: chain.clone(),
                        whole: size <= WHOLE,
                        held: None,
                        seen: HashSet::new(),
                        done: false,
                    }
                }
            }
        };
        Ok(SampleReader {
            path: path.to_path_buf(),
            form,
            row: 0,
        })
    }

    /// The table's columns with their types, where the file is a table.
    pub fn schema(&self) -> Option<SchemaRef> {
        match &self.form {
            Form::Rows(reader) | Form::Long { reader, .. } => Some(reader.schema()),
            Form::Arrays { .. } => None,
        }
    }

    /// How much of the file has been read, from 0 to 1, if that can be known.
    pub fn progress(&self) -> Option<f64> {
        match &self.form {
            Form::Rows(reader) | Form::Long { reader, .. } => reader.progress(),
            Form::Arrays { readers, at, .. } => {
                Some(*at as f64 / readers.first().map_or(1, ArrayReader::rows).max(1) as f64)
            }
        }
    }

    /// A good number of samples to ask for at once: less of those that are wider.
    pub fn samples_at_once(&self) -> usize {
        match &self.form {
            Form::Rows(reader) | Form::Long { reader, .. } => {
                rows_at_once(reader.schema().fields().len())
            }
            Form::Arrays { readers, .. } => {
                let width = |r: &ArrayReader| r.shape()[1..].iter().product::<usize>();
                rows_at_once(readers.iter().map(width).sum::<usize>() / 8)
            }
        }
    }

    /// About so many samples; `None` after the last.
    pub fn next(&mut self, samples: usize) -> Result<Option<Samples>> {
        self.next_in(samples).map_err(|e| e.in_file(&self.path))
    }

    fn next_in(&mut self, samples: usize) -> Result<Option<Samples>> {
        match &mut self.form {
            Form::Rows(reader) => Ok(reader.next(samples)?.map(|table| {
                let first_row = self.row;
                self.row += table.num_rows();
                Samples {
                    content: Content::Table(table),
                    sequences: None,
                    first_row,
                }
            })),
            Form::Arrays { readers, chain, at } => {
                let rows = readers.first().map_or(0, ArrayReader::rows);
                if *at >= rows {
                    return Ok(None);
                }
                let span = *at..(*at + samples).min(rows);
                *at = span.end;
                let arrays = readers
                    .iter_mut()
                    .map(|reader| reader.read(span.clone()))
                    .collect::<Result<Vec<_>>>()?;
                let sequences = chain.then(|| sequences_of(&arrays));
                Ok(Some(Samples {
                    content: Content::Arrays(arrays),
                    sequences,
                    first_row: 0,
                }))
            }
            Form::Long {
                reader,
                chain,
                whole,
                held,
                seen,
                done,
            } => {
                if *done {
                    return Ok(None);
                }
                let at_once = rows_at_once(reader.schema().fields().len());
                loop {
                    match reader.next(at_once)? {
                        None => {
                            *done = true;
                            let Some(table) = held.take() else {
                                return Ok(None);
                            };
                            return long(table, self.row, chain, seen).map(Some);
                        }
                        Some(more) => {
                            *held = Some(match held.take() {
                                None => more,
                                Some(table) => concat_rows(&[table, more])?,
                            });
                        }
                    }
                    if *whole {
                        continue;
                    }
                    // Everything before the last sequence is complete.
                    let Some(table) = held.take() else { continue };
                    let ids = sequence_ids(&table, self.row, chain)?;
                    let last = ids.len()
                        - ids
                            .iter()
                            .rev()
                            .take_while(|&id| *id == ids[ids.len() - 1])
                            .count();
                    let count = 1 + ids[..last].windows(2).filter(|w| w[0] != w[1]).count();
                    if last == 0 || count < samples && table.num_rows() < 64 * at_once {
                        *held = Some(table);
                        continue;
                    }
                    let first_row = self.row;
                    *held = Some(table.slice(last, table.num_rows() - last));
                    self.row += last;
                    return long(table.slice(0, last), first_row, chain, seen).map(Some);
                }
            }
        }
    }

    /// Reads a long table as if it were too large to be read whole.
    #[cfg(test)]
    pub(super) fn read_in_pieces(&mut self) {
        if let Form::Long { whole, .. } = &mut self.form {
            *whole = false;
        }
    }

    /// All that is left.
    pub fn rest(&mut self) -> Result<Samples> {
        // All will be in memory anyway, so rows may stand anywhere.
        if let Form::Long { whole, .. } = &mut self.form {
            *whole = true;
        }
        let mut parts = vec![];
        while let Some(part) = self.next(1 << 14)? {
            parts.push(part);
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        let Some(first) = parts.first() else {
            return Err(SourceError::Empty {
                path: self.path.clone(),
            }
            .into());
        };
        if first.table().is_some() {
            let mut offset = 0;
            let mut sequences = first.sequences.is_some().then(Vec::new);
            let mut tables = vec![];
            for part in parts {
                if let (Some(all), Some(own)) = (&mut sequences, part.sequences) {
                    all.extend(own.into_iter().map(|mut s| {
                        s.items.iter_mut().for_each(|i| *i += offset);
                        s
                    }));
                }
                if let Content::Table(table) = part.content {
                    offset += table.num_rows() as u32;
                    tables.push(table);
                }
            }
            return Ok(Samples {
                content: Content::Table(concat_rows(&tables)?),
                sequences,
                first_row: 0,
            });
        }
        let chain = first.sequences.is_some();
        let mut parts = parts.into_iter().filter_map(|p| match p.content {
            Content::Arrays(arrays) => Some(arrays),
            Content::Table(_) => None,
        });
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            for (a, b) in all.iter_mut().zip(part) {
                a.shape[0] += b.shape[0];
                match (&mut a.values, b.values) {
                    (ArrayValues::Numbers(a), ArrayValues::Numbers(b)) => a.extend(b),
                    (ArrayValues::Bytes(a), ArrayValues::Bytes(b)) => a.extend(b),
                    _ => unreachable!("one array has one type throughout"),
                }
            }
        }
        let sequences = chain.then(|| sequences_of(&all));
        Ok(Samples {
            content: Content::Arrays(all),
            sequences,
            first_row: 0,
        })
    }
}

fn arrays(path: &Path, chain: bool, wanted: Option<&[String]>) -> Result<Form> {
    let mut all = ArrayReader::open_all(path)?;
    let mut readers = vec![];
    match wanted {
        None => readers = all,
        Some(wanted) => {
            for name in wanted {
                match all.iter().position(|a| a.name() == name) {
                    Some(i) => readers.push(all.swap_remove(i)),
                    None => {
                        let names: Vec<String> = all.iter().map(|a| a.name().to_string()).collect();
                        return Err(SourceError::NoArray {
                            name: name.clone(),
                            path: path.into(),
                            known: names,
                        }
                        .into());
                    }
                }
            }
        }
    }
    let axes = if chain { 2 } else { 1 };
    for reader in &readers {
        let (shape, first) = (reader.shape(), readers[0].shape());
        if shape.len() < axes || shape[1..].contains(&0) {
            return Err(SourceError::Axes {
                array: reader.name().into(),
                path: path.into(),
                shape: shape.to_vec(),
                chain,
            }
            .into());
        }
        if shape[..axes] != first[..axes] {
            return Err(SourceError::ShapesDiffer {
                arrays: [readers[0].name().into(), reader.name().into()],
                path: path.into(),
                shapes: [first.to_vec(), shape.to_vec()],
            }
            .into());
        }
    }
    Ok(Form::Arrays {
        readers,
        chain,
        at: 0,
    })
}

fn sequence_ids(table: &RecordBatch, first_row: usize, chain: &Chain) -> Result<Vec<String>> {
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
fn long(
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
                    let mut steps = vec![];
                    for &i in &items {
                        let at = ((t[i as usize] - first) / step).round();
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
