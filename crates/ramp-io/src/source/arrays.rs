//! Samples along the first axis of arrays, and sequences along the second.

use super::{Sequence, SourceError};
use crate::Result;
use crate::array::{Array, ArrayReader, ArrayValues};
use std::ops::Range;
use std::path::Path;

/// The sequences of arrays of samples × time × …: steps at the end at which every number is missing are cut off.
pub(super) fn sequences_of(arrays: &[Array]) -> Vec<Sequence> {
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
                ..Sequence::default()
            }
        })
        .collect()
}

/// An array in a file, or in memory.
pub(super) enum ArraySource {
    File(Box<ArrayReader>),
    Memory(Array),
}

impl ArraySource {
    pub fn name(&self) -> &str {
        match self {
            ArraySource::File(reader) => reader.name(),
            ArraySource::Memory(array) => &array.name,
        }
    }

    pub fn shape(&self) -> &[usize] {
        match self {
            ArraySource::File(reader) => reader.shape(),
            ArraySource::Memory(array) => &array.shape,
        }
    }

    pub fn rows(&self) -> usize {
        self.shape().first().copied().unwrap_or(1)
    }

    pub fn read(&mut self, rows: Range<usize>) -> Result<Array> {
        match self {
            ArraySource::File(reader) => reader.read(rows),
            ArraySource::Memory(array) => Ok(array.slice(rows)),
        }
    }
}

/// One array behind the other along the first axis.
pub(super) fn concat_arrays(parts: Vec<Array>) -> Option<Array> {
    let mut whole = parts.first()?.clone();
    if parts.len() == 1 {
        return Some(whole);
    }
    whole.shape[0] = parts.iter().map(|part| part.shape[0]).sum();
    whole.values = match &whole.values {
        ArrayValues::Numbers(_) => {
            let numbers = parts.iter().flat_map(|part| match &part.values {
                ArrayValues::Numbers(x) => &x[..],
                ArrayValues::Bytes(_) => &[],
            });
            ArrayValues::Numbers(numbers.copied().collect())
        }
        ArrayValues::Bytes(_) => {
            let bytes = parts.iter().flat_map(|part| match &part.values {
                ArrayValues::Bytes(x) => &x[..],
                ArrayValues::Numbers(_) => &[],
            });
            ArrayValues::Bytes(bytes.copied().collect())
        }
    };
    Some(whole)
}

/// Opens the arrays of a file: those wanted, or all. Their first axes must agree.
pub(super) fn open_arrays(
    path: &Path,
    chain: bool,
    wanted: Option<&[String]>,
) -> Result<Vec<ArraySource>> {
    let all = ArrayReader::open_all(path)?;
    let all = all
        .into_iter()
        .map(|reader| ArraySource::File(Box::new(reader)))
        .collect();
    pick_arrays(all, Some(path), chain, wanted)
}

/// Those wanted of some arrays, or all. Their first axes must agree.
pub(super) fn pick_arrays(
    mut all: Vec<ArraySource>,
    path: Option<&Path>,
    chain: bool,
    wanted: Option<&[String]>,
) -> Result<Vec<ArraySource>> {
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
                            path: path.map(Path::to_path_buf),
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
                path: path.map(Path::to_path_buf),
                shape: shape.to_vec(),
                chain,
            }
            .into());
        }
        if shape[..axes] != first[..axes] {
            return Err(SourceError::ShapesDiffer {
                arrays: Box::new([readers[0].name().into(), reader.name().into()]),
                path: path.map(Path::to_path_buf),
                shapes: Box::new([first.to_vec(), shape.to_vec()]),
            }
            .into());
        }
    }
    Ok(readers)
}
