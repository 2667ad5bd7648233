//! Named arrays of numbers with a line of text beside them, under one checksum over all of it.

use super::{Result, StorageError, failed, write_atomically};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The key of the text.
const TEXT: &str = "ramp";
/// The array of the checksum, which is of all others and the text.
const SUM: &str = "sha256";
/// The longest text, as JSON in JSON; readers of the format refuse headers of 100 MB, and names and shapes of arrays need room too.
const MOST_TEXT: usize = 64 << 20;

/// Numbers of an array.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// 32 bits each.
    Single(&'a [f32]),
    /// 64 bits each.
    Double(&'a [f64]),
}

impl<'a> From<&'a [f32]> for Numbers<'a> {
    fn from(numbers: &'a [f32]) -> Self {
        Numbers::Single(numbers)
    }
}

impl<'a> From<&'a [f64]> for Numbers<'a> {
    fn from(numbers: &'a [f64]) -> Self {
        Numbers::Double(numbers)
    }
}

/// Writes named arrays with a line of text beside them.
pub fn write_tensors(
    path: &Path,
    tensors: Vec<(String, Vec<usize>, Numbers<'_>)>,
    text: &str,
) -> Result<()> {
    if text.len() > MOST_TEXT {
        return Err(StorageError::TooLong {
            path: path.to_path_buf(),
            bytes: text.len(),
            most: MOST_TEXT,
        });
    }
    let bytes: Vec<(String, Vec<usize>, Dtype, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, shape, data)| match data {
            Numbers::Single(x) => {
                let bytes = x.iter().flat_map(|x| x.to_le_bytes()).collect();
                (name, shape, Dtype::F32, bytes)
            }
            Numbers::Double(x) => {
                let bytes = x.iter().flat_map(|x| x.to_le_bytes()).collect();
                (name, shape, Dtype::F64, bytes)
            }
        })
        .collect();
    let unfit = |e: safetensors::SafeTensorError| StorageError::Arrays {
        path: path.to_path_buf(),
        reason: e.to_string(),
    };
    let mut views = bytes
        .iter()
        .map(|(name, shape, kind, data)| {
            Ok((name.as_str(), TensorView::new(*kind, shape.clone(), data)?))
        })
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(unfit)?;
    let of_all = sum(text, views.iter().map(|(name, view)| (*name, view)));
    views.push((
        SUM,
        TensorView::new(Dtype::U8, vec![of_all.len()], &of_all).map_err(unfit)?,
    ));
    // One key only: those of several would come in any order, and the same arrays would not make the same file.
    let beside = HashMap::from([(TEXT.to_string(), text.to_string())]);
    let contents = safetensors::serialize(views, Some(beside)).map_err(unfit)?;
    write_atomically(path, &contents)
}

/// The checksum of a text and arrays, whatever their order.
fn sum<'a, 'd: 'a>(
    text: &str,
    arrays: impl Iterator<Item = (&'a str, &'a TensorView<'d>)>,
) -> Vec<u8> {
    let mut arrays: Vec<_> = arrays.filter(|(name, _)| *name != SUM).collect();
    arrays.sort_by_key(|(name, _)| *name);
    let mut sum = Sha256::new();
    // Every piece after its length: no two contents run together to the same bytes.
    let mut add = |bytes: &[u8]| {
        sum.update((bytes.len() as u64).to_le_bytes());
        sum.update(bytes);
    };
    add(text.as_bytes());
    for (name, view) in arrays {
        add(name.as_bytes());
        add(format!("{:?}{:?}", view.dtype(), view.shape()).as_bytes());
        add(view.data());
    }
    sum.finalize().to_vec()
}

/// What [`write_tensors`] wrote, before its checksum is compared: the text may say that another version of the software wrote it.
#[derive(Debug)]
#[must_use = "only `arrays` compares the checksum"]
pub struct Stored {
    /// The text. Nothing but its version should be believed before [`arrays`](Self::arrays) has given them.
    pub text: String,
    path: PathBuf,
    /// The checksum that the file names, and the one that it has.
    sums: (Option<Vec<u8>>, Vec<u8>),
    arrays: Arrays,
}

/// Arrays by name.
#[derive(Debug, Default)]
pub struct Arrays {
    /// Those of 32-bit numbers.
    pub single: HashMap<String, Vec<f32>>,
    /// Those of 64-bit numbers.
    pub double: HashMap<String, Vec<f64>>,
}

impl Stored {
    /// The arrays, if everything is as it was written.
    pub fn arrays(self) -> Result<Arrays> {
        match self.sums {
            (None, _) => Err(StorageError::NoChecksum { path: self.path }),
            (Some(named), found) if named != found => {
                Err(StorageError::Checksum { path: self.path })
            }
            _ => Ok(self.arrays),
        }
    }
}

/// What [`write_tensors`] wrote; `None` where there is no such file.
pub fn read_tensors(path: &Path) -> Result<Option<Stored>> {
    let damaged = |reason: String| StorageError::Damaged {
        path: path.to_path_buf(),
        reason,
    };
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(damaged("it is no file".into())),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let contents = fs::read(path).map_err(failed("read", path))?;
    let (_, header) = SafeTensors::read_metadata(&contents).map_err(|e| damaged(e.to_string()))?;
    let tensors = SafeTensors::deserialize(&contents).map_err(|e| damaged(e.to_string()))?;
    let views = tensors.tensors();
    let text = header.metadata().as_ref().and_then(|m| m.get(TEXT));
    let text = text.cloned().unwrap_or_default();
    let found = sum(&text, views.iter().map(|(name, view)| (&name[..], view)));
    let (mut arrays, mut named) = (Arrays::default(), None);
    for (name, view) in views {
        let data = view.data();
        match view.dtype() {
            Dtype::U8 if name == SUM => named = Some(data.to_vec()),
            Dtype::F32 => {
                let numbers = data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                arrays.single.insert(name, numbers.collect());
            }
            Dtype::F64 => {
                let numbers = data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b));
                arrays.double.insert(name, numbers.collect());
            }
            _ => {
                return Err(damaged(format!(
                    "`{name}` is not an array of 32-bit or 64-bit numbers"
                )));
            }
        }
    }
    Ok(Some(Stored {
        text,
        path: path.to_path_buf(),
        sums: (named, found),
        arrays,
    }))
}
