//! What ranks do together that hold parts of the same samples.

use crate::array::{Array, ArrayValues};
use crate::arrow::{Array as _, ArrayRef, AsArray, DataType, RecordBatch};
use crate::source::{Content, Samples};
use crate::table::{Place, TableError, concat_rows, select_columns};
use crate::{Error, Result};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use ramp::collective::{Collective, ends_of, gather_bytes, span};
use ramp::train::TrainError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// How the samples of a file are dealt to ranks.
#[derive(Clone)]
pub(crate) struct Parts {
    pub ranks: Arc<dyn Collective>,
    /// Where each rank's samples end.
    pub ends: Vec<usize>,
    /// Where this rank's lie in the file.
    pub place: Place,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Parts {{ ends: {:?}, place: {:?} }}",
            self.ends, self.place
        )
    }
}

impl Parts {
    /// The first of this rank's samples.
    pub fn first(&self) -> usize {
        span(&self.ends, self.ranks.rank()).start
    }

    /// How many samples there are in all.
    pub fn rows(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn owner(&self, sample: u32) -> usize {
        self.ends.partition_point(|&end| end <= sample as usize)
    }

    /// Those of some samples that are this rank's, by their places among its own.
    pub fn own(&self, samples: &[u32]) -> Vec<u32> {
        let here = span(&self.ends, self.ranks.rank());
        let own = samples.iter().filter(|&&n| here.contains(&(n as usize)));
        own.map(|&n| n - here.start as u32).collect()
    }

    /// Some samples, in this order, of all ranks, to all of them.
    pub fn gather(&self, own: &Samples, samples: &[u32]) -> Result<Samples> {
        let selected = together(&*self.ranks, own.select(&self.own(samples)))?;
        // They come grouped by ranks.
        let mut counts = vec![0; self.ends.len()];
        for &n in samples {
            counts[self.owner(n)] += 1;
        }
        let ends = ends_of(counts);
        let mut next: Vec<usize> = (0..ends.len()).map(|r| span(&ends, r).start).collect();
        let order: Vec<u32> = samples
            .iter()
            .map(|&n| {
                let at = &mut next[self.owner(n)];
                *at += 1;
                *at as u32 - 1
            })
            .collect();
        let all = match &selected.content {
            Content::Table(table) => {
                let sent = together(&*self.ranks, to_bytes(table))?;
                let parts = gather_bytes(&*self.ranks, &sent, None).map_err(engine)?;
                let parts = parts.iter().map(|part| from_bytes(part));
                Content::Table(concat_rows(&parts.collect::<Result<Vec<_>>>()?)?)
            }
            Content::Arrays(arrays) => {
                let each = arrays
                    .iter()
                    .map(|array| self.gather_array(array, samples.len()));
                Content::Arrays(each.collect::<Result<_>>()?)
            }
        };
        Samples {
            content: all,
            // Only arrays are dealt as sequences, and their sequences follow from them.
            sequences: own.sequences.as_ref().map(|_| vec![]),
            first_row: 0,
        }
        .select(&order)
    }

    /// The rows of an array that all ranks together have so many of, one behind the other.
    fn gather_array(&self, own: &Array, rows: usize) -> Result<Array> {
        let sent: &[u8] = match &own.values {
            ArrayValues::Numbers(x) => x.inner().as_slice(),
            ArrayValues::Bytes(x) => x.inner().as_slice(),
        };
        let parts = gather_bytes(&*self.ranks, sent, None).map_err(engine)?;
        let mut shape = own.shape.clone();
        shape[0] = rows;
        let values = match &own.values {
            ArrayValues::Numbers(_) => {
                let words = parts.iter().flat_map(|part| part.chunks_exact(4));
                let numbers = words.map(|w| f32::from_ne_bytes([w[0], w[1], w[2], w[3]]));
                ArrayValues::Numbers(numbers.collect())
            }
            ArrayValues::Bytes(_) => ArrayValues::Bytes(parts.concat().into()),
        };
        Ok(Array {
            name: own.name.clone(),
            shape,
            values,
        })
    }

    /// Some columns of all rows, to one rank; the others get nothing.
    pub fn gather_columns(
        &self,
        table: &RecordBatch,
        names: &[String],
        to: usize,
    ) -> Result<Option<RecordBatch>> {
        let own = select_columns(table, names).and_then(|own| to_bytes(&own));
        let own = together(&*self.ranks, own)?;
        let parts = gather_bytes(&*self.ranks, &own, Some(to)).map_err(engine)?;
        if self.ranks.rank() != to {
            return Ok(None);
        }
        let parts = parts.iter().map(|part| from_bytes(part));
        concat_rows(&parts.collect::<Result<Vec<_>>>()?).map(Some)
    }

    /// Things that each want the data of all ranks in one place, done by all ranks in turn, and what came of them to all. `gather` is called by all ranks together and
    /// tells what the rank has that it is for, `work` by that one alone.
    pub fn in_turn<D, T: Serialize + DeserializeOwned>(
        &self,
        things: usize,
        mut gather: impl FnMut(usize, usize) -> Result<Option<D>>,
        mut work: impl FnMut(usize, D) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (own, count) = (self.ranks.rank(), self.ranks.ranks());
        let mut done = vec![];
        for start in (0..things).step_by(count) {
            let end = (start + count).min(things);
            let mut mine = None;
            for thing in start..end {
                if let Some(data) = gather(thing, thing - start)? {
                    mine = Some(data);
                }
            }
            let outcome = match mine {
                None => Ok(vec![]),
                Some(data) => work(start + own, data)
                    .and_then(|done| serde_json::to_vec(&done).map_err(description)),
            };
            let said = together(&*self.ranks, outcome)?;
            let said = gather_bytes(&*self.ranks, &said, None).map_err(engine)?;
            for said in &said[..end - start] {
                done.push(serde_json::from_slice(said).map_err(description)?);
            }
        }
        Ok(done)
    }
}

/// What each rank did on its own: all go on, or none does; one that failed says why, the others that one did.
pub(crate) fn together<T>(ranks: &dyn Collective, outcome: Result<T>) -> Result<T> {
    if ranks.ranks() == 1 {
        return outcome;
    }
    let failed = ranks.maximum(u64::from(outcome.is_err())).map_err(engine)?;
    match outcome {
        Ok(_) if failed > 0 => Err(engine(TrainError::RankFailed)),
        outcome => outcome,
    }
}

pub(crate) fn engine(error: impl Into<ramp::Error>) -> Error {
    Error::Engine(error.into())
}

pub(crate) fn description(error: serde_json::Error) -> Error {
    engine(TrainError::Description(error))
}

/// A table as it travels.
fn to_bytes(table: &RecordBatch) -> Result<Vec<u8>> {
    // Views of texts would take along all texts of the file.
    let alone = |cells: &ArrayRef| -> ArrayRef {
        match cells.data_type() {
            DataType::Utf8View => Arc::new(cells.as_string_view().gc()),
            _ => cells.clone(),
        }
    };
    let cells = table.columns().iter().map(alone);
    let write = || {
        let table = RecordBatch::try_new_with_options(
            table.schema(),
            cells.collect(),
            &arrow_array::RecordBatchOptions::new().with_row_count(Some(table.num_rows())),
        )?;
        let mut writer = StreamWriter::try_new(vec![], table.schema_ref())?;
        writer.write(&table)?;
        writer.into_inner()
    };
    Ok(write().map_err(TableError::from)?)
}

fn from_bytes(bytes: &[u8]) -> Result<RecordBatch> {
    let read = || {
        let reader = StreamReader::try_new(bytes, None)?;
        let schema = reader.schema();
        let all = reader.collect::<std::result::Result<Vec<_>, _>>()?;
        match <[RecordBatch; 1]>::try_from(all) {
            Ok([one]) => Ok(one),
            Err(all) => arrow_select::concat::concat_batches(&schema, &all),
        }
    };
    Ok(read().map_err(TableError::from)?)
}
