//! The part of a table that one of several ranks reads: rows of Parquet and Arrow files, bytes of texts.

use super::csv::CsvReader;
use super::csv::cut::{State, Walk};
use super::ipc::IpcReader;
use super::parquet::ParquetReader;
use super::{Format, TableReader, check_there, npy};
use crate::Result;
use crate::ranks::together;
use ramp::collective::{Collective, gather_numbers, part};
use std::ops::Range;
use std::path::Path;

/// Where one rank's part of a table lies in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// These rows, counted from 0.
    Rows(Range<u64>),
    /// These bytes, with whole rows in them.
    Bytes(Range<u64>),
}

/// Finds the part of a table that is this rank's: all ranks call it together, and their parts one behind the other are the table.
pub(crate) fn find_part(path: &Path, ranks: &dyn Collective) -> Result<Place> {
    let (own, count) = (ranks.rank(), ranks.ranks());
    let rows = |rows: u64| {
        let own = part(rows as usize, own, count);
        Place::Rows(own.start as u64..own.end as u64)
    };
    let counted = |outcome: Result<u64>| together(ranks, outcome).map(rows);
    match together(ranks, Format::of(path).map_err(Into::into))? {
        Format::Separated(separator) => {
            let opened = CsvReader::open(path, separator, None);
            find_bytes(&together(ranks, opened)?, ranks).map(Place::Bytes)
        }
        Format::Parquet => {
            counted(ParquetReader::open(path, None).map(|reader| reader.rows_hint().unwrap_or(0)))
        }
        Format::Arrow => counted(IpcReader::count(path)),
        Format::NumPy { .. } => {
            counted(npy::NpyReader::open(path, None).map(|reader| reader.rows_hint().unwrap_or(0)))
        }
    }
}

/// The bytes of a text's rows that are this rank's. A rank looks at its own bytes alone, and at where the last row among them ends.
fn find_bytes(reader: &CsvReader, ranks: &dyn Collective) -> Result<Range<u64>> {
    let body = reader.body();
    let length = body.end - body.start;
    let (own, count) = (ranks.rank(), ranks.ranks());
    // Rows begin behind the first end of one after these places.
    let places: Vec<u64> = (0..=count)
        .map(|rank| body.start + (u128::from(length) * rank as u128 / count as u128) as u64)
        .collect();
    let walk = together(ranks, reader.walk(places[own]..places[own + 1]))?;
    let walks = gather_numbers(ranks, &[walk.to_number()]).map_err(ramp::Error::from)?;
    let before = walks[..own].iter().map(|&walk| Walk::from_number(walk));
    let state = before.fold(State::Start, |state, walk| walk.after(state));
    let first = match own {
        0 => Ok(body.start),
        _ => reader.next_row(places[own], state),
    };
    let first = together(ranks, first)?;
    let firsts = gather_numbers(ranks, &[first]).map_err(ramp::Error::from)?;
    let end = firsts.get(own + 1).copied().unwrap_or(body.end);
    Ok(first..end.max(first))
}

/// Opens one part of a table: all columns, or only those wanted.
pub(crate) fn open_part(
    path: &Path,
    place: &Place,
    wanted: Option<&[String]>,
) -> Result<Box<dyn TableReader>> {
    check_there(path)?;
    let rows = || match place {
        Place::Rows(rows) => rows.clone(),
        Place::Bytes(_) => 0..u64::MAX,
    };
    Ok(match Format::of(path)? {
        Format::Separated(separator) => {
            let mut reader = CsvReader::open(path, separator, wanted)?;
            if let Place::Bytes(bytes) = place {
                reader.only(bytes.clone())?;
            }
            Box::new(reader)
        }
        Format::Parquet => {
            let mut reader = ParquetReader::open(path, wanted)?;
            reader.only(rows().start as usize..rows().end as usize);
            Box::new(reader)
        }
        Format::Arrow => {
            let mut reader = IpcReader::open(path, wanted)?;
            reader.only(rows());
            Box::new(reader)
        }
        Format::NumPy { .. } => {
            let mut reader = npy::NpyReader::open(path, wanted)?;
            reader.only(rows().start as usize..rows().end as usize);
            Box::new(reader)
        }
    })
}
