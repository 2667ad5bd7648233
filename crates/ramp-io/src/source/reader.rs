//! Reads samples from a file, or from a table that comes from elsewhere, some at a time.

use super::arrays::{ArraySource, concat_arrays, open_arrays, pick_arrays, sequences_of};
use super::long_table::{sequence_ids, sequences_of_rows};
use super::{Content, Samples, SourceError};
use crate::array::Array;
use crate::arrow::{RecordBatch, SchemaRef};
use crate::model_file::Chain;
use crate::ranks::together;
use crate::table::{
    Place, TableReader, check_there, concat_rows, find_part, open_columns, open_part, open_table,
    rows_at_once,
};
use crate::{Error, Result};
use ramp::collective::{Collective, part};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Long tables up to this size are read whole, so that the rows of a sequence may stand anywhere. In memory, a table of short
/// cells takes about eight times its text.
const WHOLE: u64 = 64 << 20;

/// Whether a file holds arrays, by its name.
fn is_numpy(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    extension == "npy" || extension == "npz"
}

/// Reads samples from a file, some at a time.
pub struct SampleReader {
    path: Option<PathBuf>,
    form: Form,
    /// Rows of a table that are read.
    row: usize,
    /// The most samples to ask for at once.
    most: usize,
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
        readers: Vec<ArraySource>,
        chain: bool,
        at: usize,
        /// Where reading ends.
        until: usize,
    },
}

impl Form {
    fn of_table(reader: Box<dyn TableReader>, chain: Option<&Chain>, whole: bool) -> Self {
        match chain {
            None => Form::Rows(reader),
            Some(chain) => Form::Long {
                reader,
                chain: chain.clone(),
                whole,
                held: None,
                seen: HashSet::new(),
                done: false,
            },
        }
    }
}

impl SampleReader {
    /// Opens a file: all columns of a table, or only those wanted. From arrays, those named in `wanted` or all.
    pub fn open(path: &Path, chain: Option<&Chain>, wanted: Option<&[String]>) -> Result<Self> {
        check_there(path)?;
        let form = if is_numpy(path) {
            Form::Arrays {
                readers: open_arrays(path, chain.is_some(), wanted)?,
                chain: chain.is_some(),
                at: 0,
                until: usize::MAX,
            }
        } else {
            let reader = match wanted {
                None => open_table(path),
                Some(wanted) => open_columns(path, wanted),
            }
            .map_err(|e| e.in_file(path))?;
            let size = std::fs::metadata(path).map_or(0, |m| m.len());
            Form::of_table(reader, chain, size <= WHOLE)
        };
        Ok(SampleReader {
            path: Some(path.to_path_buf()),
            ..Self::of(form)
        })
    }

    /// Whether the samples of a file can be dealt to ranks. The rows of a sequence may stand anywhere in a long table, so those are read whole.
    pub(crate) fn has_parts(path: &Path, chain: Option<&Chain>) -> bool {
        chain.is_none() || is_numpy(path)
    }

    /// Finds the part of a file that is this rank's; all ranks call it together.
    pub(crate) fn find_part(
        path: &Path,
        chain: Option<&Chain>,
        ranks: &dyn Collective,
    ) -> Result<Place> {
        together(ranks, check_there(path).map_err(Into::into))?;
        if !is_numpy(path) {
            return find_part(path, ranks).map_err(|e| e.in_file(path));
        }
        let arrays = together(ranks, open_arrays(path, chain.is_some(), None))?;
        let rows = arrays.first().map_or(0, ArraySource::rows);
        let own = part(rows, ranks.rank(), ranks.ranks());
        Ok(Place::Rows(own.start as u64..own.end as u64))
    }

    /// [`open`](Self::open) of one part of a file.
    pub(crate) fn open_part(
        path: &Path,
        chain: Option<&Chain>,
        wanted: Option<&[String]>,
        place: &Place,
    ) -> Result<Self> {
        let form = match place {
            Place::Rows(rows) if is_numpy(path) => Form::Arrays {
                readers: open_arrays(path, chain.is_some(), wanted)?,
                chain: chain.is_some(),
                at: rows.start as usize,
                until: rows.end as usize,
            },
            place => Form::Rows(open_part(path, place, wanted).map_err(|e| e.in_file(path))?),
        };
        Ok(SampleReader {
            path: Some(path.to_path_buf()),
            ..Self::of(form)
        })
    }

    /// All samples of a part; it may have none.
    pub(crate) fn rest_of_part(&mut self) -> Result<Samples> {
        match self.rest() {
            Err(Error::Source(SourceError::Empty { .. })) => {}
            rest => return rest,
        }
        let content = match &mut self.form {
            Form::Rows(reader) | Form::Long { reader, .. } => {
                Content::Table(RecordBatch::new_empty(reader.schema()))
            }
            Form::Arrays { readers, .. } => {
                let none = readers.iter_mut().map(|reader| reader.read(0..0));
                Content::Arrays(none.collect::<Result<_>>()?)
            }
        };
        let sequences = match &self.form {
            Form::Arrays { chain: true, .. } => Some(vec![]),
            _ => None,
        };
        Ok(Samples {
            content,
            sequences,
            first_row: 0,
        })
    }

    /// Samples from a table that comes from elsewhere, such as one in memory: see [`BatchReader`](crate::table::BatchReader).
    /// Rows of a sequence may stand anywhere, so those of a chain are held together in memory.
    pub fn from_table(reader: Box<dyn TableReader>, chain: Option<&Chain>) -> Result<Self> {
        Ok(Self::of(Form::of_table(reader, chain, true)))
    }

    /// Samples from a table that may be longer than memory, such as one that comes through a pipe: the rows of a sequence stand together.
    pub fn from_stream(reader: Box<dyn TableReader>, chain: Option<&Chain>) -> Result<Self> {
        Ok(Self::of(Form::of_table(reader, chain, false)))
    }

    fn of(form: Form) -> Self {
        SampleReader {
            path: None,
            form,
            row: 0,
            most: usize::MAX,
        }
    }

    /// Samples from arrays in memory: those wanted, or all.
    pub fn from_arrays(
        arrays: Vec<Array>,
        chain: Option<&Chain>,
        wanted: Option<&[String]>,
    ) -> Result<Self> {
        let sources = arrays.into_iter().map(ArraySource::Memory).collect();
        Ok(SampleReader {
            path: None,
            form: Form::Arrays {
                readers: pick_arrays(sources, None, chain.is_some(), wanted)?,
                chain: chain.is_some(),
                at: 0,
                until: usize::MAX,
            },
            row: 0,
            most: usize::MAX,
        })
    }

    /// The file that is read, if it is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
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
                Some(*at as f64 / readers.first().map_or(1, ArraySource::rows).max(1) as f64)
            }
        }
    }

    /// A good number of samples to ask for at once: less of those that are wider.
    pub fn samples_at_once(&self) -> usize {
        let good = match &self.form {
            Form::Rows(reader) | Form::Long { reader, .. } => {
                rows_at_once(reader.schema().fields().len())
            }
            Form::Arrays { readers, .. } => {
                let width = |r: &ArraySource| r.shape()[1..].iter().product::<usize>();
                rows_at_once(readers.iter().map(width).sum::<usize>() / 8)
            }
        };
        good.min(self.most)
    }

    /// Bounds the number of samples to ask for at once, where each takes more memory than it has numbers.
    pub fn at_most(&mut self, samples: usize) {
        self.most = samples.max(1);
    }

    /// About so many samples; `None` after the last.
    pub fn next(&mut self, samples: usize) -> Result<Option<Samples>> {
        self.next_in(samples).map_err(|e| match &self.path {
            Some(path) => e.in_file(path),
            None => e,
        })
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
            Form::Arrays {
                readers,
                chain,
                at,
                until,
            } => {
                let rows = readers.first().map_or(0, ArraySource::rows).min(*until);
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
                            return sequences_of_rows(table, self.row, chain, seen).map(Some);
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
                    return sequences_of_rows(table.slice(0, last), first_row, chain, seen)
                        .map(Some);
                }
            }
        }
    }

    /// Reads a long table as if it were too large to be read whole.
    #[cfg(test)]
    pub(crate) fn read_in_pieces(&mut self) {
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
        let mut columns: Vec<Vec<Array>> = vec![];
        for part in parts {
            let Content::Arrays(arrays) = part.content else {
                continue;
            };
            columns.resize_with(arrays.len(), Vec::new);
            for (column, array) in columns.iter_mut().zip(arrays) {
                column.push(array);
            }
        }
        let all: Vec<Array> = columns.into_iter().filter_map(concat_arrays).collect();
        let sequences = chain.then(|| sequences_of(&all));
        Ok(Samples {
            content: Content::Arrays(all),
            sequences,
            first_row: 0,
        })
    }
}
