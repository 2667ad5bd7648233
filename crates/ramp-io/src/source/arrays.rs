//! Samples along the first axis of arrays, and sequences along the second.

use super::{Sequence, SourceError};
use crate::Result;
use crate::array::{Array, ArrayReader, ArrayValues};
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

/// Opens the arrays of a file: those wanted, or all. Their first axes must agree.
pub(super) fn open_arrays(
    path: &Path,
    chain: bool,
    wanted: Option<&[String]>,
) -> Result<Vec<ArrayReader>> {
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
                arrays: Box::new([readers[0].name().into(), reader.name().into()]),
                path: path.into(),
                shapes: Box::new([first.to_vec(), shape.to_vec()]),
            }
            .into());
        }
    }
    Ok(readers)
}
