//! NumPy arrays in files: sequences `[samples, time, …]`, images `[samples, height, width]`, in `.npy` and `.npz`.
//!
//! ```
//! use ramp_io::array::{Array, ArrayReader, ArrayValues, read_arrays, write_arrays};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("walks.npz");
//! let steps = ArrayValues::Numbers((0..24).map(|i| i as f32).collect());
//! write_arrays(&path, &[Array { name: "steps".into(), shape: vec![4, 3, 2], values: steps }], false)?;
//! assert_eq!(read_arrays(&path)?[0].shape, [4, 3, 2]);
//!
//! // Two of the four walks, without the others.
//! let two = ArrayReader::open(&path, Some("steps"))?.read(1..3)?;
//! assert_eq!(two.shape, [2, 3, 2]);
//! # Ok::<(), ramp_io::Error>(())
//! ```

mod error;
pub(crate) mod npy;
pub(crate) mod zip;

pub use error::{ArchiveDamage, ArrayDamage, ArrayError};

use crate::{Error, Result};
use arrow_buffer::ScalarBuffer;
use npy::{Element, Header};
use ramp::storage::PendingFile;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use zip::{Member, MemberReader, Shared, ZipWriter};

/// Elements are read in pieces of this many bytes.
const PIECE: usize = 1 << 18;

/// An array with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its name in the archive, or the file's name without its ending.
    pub name: String,
    /// How long each axis is.
    pub shape: Vec<usize>,
    /// Its elements, the last axis fastest.
    pub values: ArrayValues,
}

/// The elements of an array: read from a file, or in memory that something else owns, such as NumPy. Clones and parts share them.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrayValues {
    /// Numbers; every type but bytes is read as these.
    Numbers(ScalarBuffer<f32>),
    /// Bytes, such as pixels.
    Bytes(ScalarBuffer<u8>),
}

impl Array {
    /// A range of the first axis, without a copy.
    pub(crate) fn slice(&self, rows: Range<usize>) -> Array {
        let width: usize = self.shape[1..].iter().product();
        let (start, count) = (rows.start * width, rows.len() * width);
        let mut shape = self.shape.clone();
        shape[0] = rows.len();
        Array {
            name: self.name.clone(),
            shape,
            values: match &self.values {
                ArrayValues::Numbers(x) => ArrayValues::Numbers(x.slice(start, count)),
                ArrayValues::Bytes(x) => ArrayValues::Bytes(x.slice(start, count)),
            },
        }
    }
}

/// Reads all arrays of a file.
///
/// Numbers of any width and byte order in either order of axes; bytes stay bytes.
pub fn read_arrays(path: &Path) -> Result<Vec<Array>> {
    let readers = ArrayReader::open_all(path)?;
    let whole = |mut reader: ArrayReader| {
        let rows = reader.rows();
        let mut array = reader.read(0..rows)?;
        array.shape.clone_from(&reader.header.shape);
        Ok(array)
    };
    readers.into_iter().map(whole).collect()
}

/// Writes arrays: one to `.npy`, any number to `.npz`, where `deflate` makes smaller files more slowly.
pub fn write_arrays(path: &Path, arrays: &[Array], deflate: bool) -> Result<()> {
    let archive = is_archive(path)?;
    for (place, array) in arrays.iter().enumerate() {
        let size = array
            .shape
            .iter()
            .try_fold(1, |size: usize, &axis| size.checked_mul(axis));
        let count = match &array.values {
            ArrayValues::Numbers(values) => values.len(),
            ArrayValues::Bytes(values) => values.len(),
        };
        if size != Some(count) {
            return Err(ArrayError::OtherShape {
                name: array.name.clone(),
                count,
                shape: array.shape.clone(),
            }
            .into());
        }
        if archive && (array.name.is_empty() || array.name.len() > 1000) {
            return Err(ArrayError::Unnamed {
                path: path.to_path_buf(),
                place: place + 1,
            }
            .into());
        }
        if archive {
            check_member(path, &array.name)?;
        }
        if arrays[..place].iter().any(|other| other.name == array.name) {
            return Err(ArrayError::SameName {
                path: path.to_path_buf(),
                name: array.name.clone(),
            }
            .into());
        }
    }
    if !archive && arrays.len() != 1 {
        return Err(ArrayError::NotOne {
            path: path.to_path_buf(),
            count: arrays.len(),
        }
        .into());
    }
    let failed = |source| Error::File {
        action: "write",
        path: path.to_path_buf(),
        source,
    };
    let file = PendingFile::create(path)?;
    let file = if archive {
        let mut zip = ZipWriter::new(file);
        for array in arrays {
            let name = format!("{}.npy", array.name);
            zip.add(&name, deflate, |to| write_array(to, array))
                .map_err(failed)?;
        }
        zip.finish().map_err(failed)?
    } else {
        let mut to = BufWriter::new(file);
        write_array(&mut to, &arrays[0]).map_err(failed)?;
        to.into_inner().map_err(|e| failed(e.into_error()))?
    };
    Ok(file.commit()?)
}

/// Checks that an array of this name stays where its archive is unpacked.
pub(crate) fn check_member(path: &Path, name: &str) -> Result<(), ArrayError> {
    let leads = name.starts_with('/')
        || name.contains('\\')
        || name.get(1..2) == Some(":")
        || name.chars().any(char::is_control)
        || name.split('/').any(|part| part == "..");
    match leads {
        false => Ok(()),
        true => Err(ArrayError::Leads {
            path: path.to_path_buf(),
            name: name.to_string(),
        }),
    }
}

fn write_array(to: &mut dyn Write, array: &Array) -> io::Result<()> {
    match &array.values {
        ArrayValues::Bytes(bytes) => {
            to.write_all(&Header::write(Element::U8, &array.shape))?;
            to.write_all(bytes)
        }
        ArrayValues::Numbers(numbers) => {
            to.write_all(&Header::write(Element::F32, &array.shape))?;
            for piece in numbers.chunks(PIECE / 4) {
                let bytes: Vec<u8> = piece.iter().flat_map(|x| x.to_le_bytes()).collect();
                to.write_all(&bytes)?;
            }
            Ok(())
        }
    }
}

fn is_archive(path: &Path) -> Result<bool, ArrayError> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("npy") => Ok(false),
        Some("npz") => Ok(true),
        _ => Err(ArrayError::UnknownFormat {
            path: path.to_path_buf(),
        }),
    }
}

/// One array in a file, of which parts can be read without the rest.
pub struct ArrayReader {
    path: PathBuf,
    name: String,
    header: Header,
    source: MemberReader,
}

impl ArrayReader {
    /// Opens the array of this name, or the only one of the file.
    pub fn open(path: &Path, name: Option<&str>) -> Result<Self> {
        let mut all = Self::open_all(path)?;
        let in_file = || path.to_path_buf();
        let names = || all.iter().map(|reader| reader.name.clone()).collect();
        match name {
            Some(name) => match all.iter().position(|reader| reader.name == name) {
                Some(place) => Ok(all.swap_remove(place)),
                None => Err(ArrayError::NotInFile {
                    path: in_file(),
                    name: name.to_owned(),
                    names: names(),
                }
                .into()),
            },
            None if all.len() == 1 => Ok(all.swap_remove(0)),
            None => Err(ArrayError::Several {
                path: in_file(),
                names: names(),
            }
            .into()),
        }
    }

    /// Opens all arrays of a file.
    pub fn open_all(path: &Path) -> Result<Vec<Self>> {
        let archive = is_archive(path)?;
        let cannot_read = |source| Error::File {
            action: "read",
            path: path.to_path_buf(),
            source,
        };
        let file = File::open(path).map_err(cannot_read)?;
        let length = file.metadata().map_err(cannot_read)?.len();
        let file: Shared = Arc::new(Mutex::new(file));
        if !archive {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            // A lone file is read as the one stored member of an archive.
            let member = Member {
                name: stem.into_owned(),
                deflated: false,
                checksum: 0,
                start: 0,
                packed: length,
                size: length,
            };
            let name = member.name.clone();
            let source = MemberReader::without_checksum(file, member);
            return Ok(vec![Self::new(path, name, length, source)?]);
        }
        let members = zip::members(&file, length).map_err(|why| unusable(path, why))?;
        let mut readers: Vec<Self> = Vec::new();
        for member in members {
            let Some(name) = member.name.strip_suffix(".npy").map(str::to_owned) else {
                continue;
            };
            let size = member.size;
            let source = MemberReader::new(file.clone(), member);
            readers.push(Self::new(path, name, size, source)?);
        }
        if readers.is_empty() {
            return Err(unusable(path, ArchiveDamage::NoArray));
        }
        let mut names: Vec<&str> = readers.iter().map(|reader| reader.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = twice[0].to_owned();
            return Err(unusable(path, ArchiveDamage::SameName { name }));
        }
        Ok(readers)
    }

    fn new(path: &Path, name: String, size: u64, mut source: MemberReader) -> Result<Self> {
        let header = Header::read(&mut source).map_err(|why| array_unusable(path, &name, why))?;
        if header.length.checked_add(header.bytes) != Some(size) {
            let why = ArrayDamage::Size {
                expected: header.bytes,
                found: size - header.length.min(size),
                shape: header.shape,
            };
            return Err(array_unusable(path, &name, why));
        }
        Ok(Self {
            path: path.to_path_buf(),
            name,
            header,
            source,
        })
    }

    /// The array's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long each axis is.
    pub fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// How long the first axis is; 1 for a single number.
    pub fn rows(&self) -> usize {
        self.header.shape.first().copied().unwrap_or(1)
    }

    /// Whether it is read as bytes.
    pub fn is_bytes(&self) -> bool {
        self.header.element == Element::U8
    }

    /// How many elements one row has; beyond all bounds only where there are no rows.
    fn width(&self) -> usize {
        let others = self.header.shape.iter().skip(1);
        others.fold(1, |width, &axis| width.saturating_mul(axis))
    }

    /// Reads a range of the first axis.
    ///
    /// From a deflated archive this is fast only forwards, and from one in Fortran order not at all: there each range means to
    /// read the whole array.
    pub fn read(&mut self, rows: Range<usize>) -> Result<Array> {
        let count = rows.len().saturating_mul(self.width());
        let values = if self.is_bytes() {
            let mut bytes = self.room(count)?;
            self.each(rows.clone(), |place, raw| {
                bytes[place] = raw[0];
            })?;
            ArrayValues::Bytes(bytes.into())
        } else {
            let mut numbers = self.room(count)?;
            let element = self.header.element;
            self.each(rows.clone(), |place, raw| {
                numbers[place] = element.number(raw) as f32;
            })?;
            ArrayValues::Numbers(numbers.into())
        };
        let mut shape = self.header.shape.clone();
        match shape.first_mut() {
            Some(first) => *first = rows.len(),
            None => shape.push(rows.len()),
        }
        Ok(Array {
            name: self.name.clone(),
            shape,
            values,
        })
    }

    fn room<T: Clone + Default>(&self, count: usize) -> Result<Vec<T>> {
        let mut values = Vec::new();
        values
            .try_reserve_exact(count)
            .map_err(|_| array_unusable(&self.path, &self.name, ArrayDamage::Memory { count }))?;
        values.resize(count, T::default());
        Ok(values)
    }

    /// The type of the elements, for tables, which keep whole numbers whole.
    pub(crate) fn element(&self) -> Element {
        self.header.element
    }

    /// Hands over the bytes of every element of some rows, with its place among them in C order.
    pub(crate) fn each(
        &mut self,
        rows: Range<usize>,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let (all, width, size) = (self.rows(), self.width(), self.header.element.size);
        if rows.start > rows.end || rows.end > all {
            return Err(ArrayError::NoSuchRows {
                path: self.path.clone(),
                name: self.name.clone(),
                rows: all,
                from: rows.start,
                to: rows.end,
            }
            .into());
        }
        if rows.is_empty() || width == 0 {
            return Ok(());
        }
        let in_rows = !self.header.fortran_order || self.header.shape.len() < 2;
        if in_rows {
            let (first, count) = (rows.start * width, rows.len() * width);
            return self.run(first, count, size, |place, raw| take(place, raw));
        }
        // In Fortran order the first axis is fastest: one run for each place in the other axes, counted with the second axis
        // fastest too.
        let others = self.header.shape[1..].to_vec();
        let mut strides = vec![1; others.len()];
        for axis in (0..others.len() - 1).rev() {
            strides[axis] = strides[axis + 1] * others[axis + 1];
        }
        for other in 0..width {
            let (mut rest, mut column) = (other, 0);
            for (axis, stride) in others.iter().zip(&strides) {
                column += rest % axis * stride;
                rest /= axis;
            }
            let first = other * all + rows.start;
            self.run(first, rows.len(), size, |place, raw| {
                take(place * width + column, raw)
            })?;
        }
        Ok(())
    }

    /// Elements that stand side by side in the file.
    fn run(
        &mut self,
        first: usize,
        count: usize,
        size: usize,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let damaged = |path: &Path, name: &str, e: io::Error| match e.kind() {
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof => {
                let said = e.to_string();
                array_unusable(path, name, ArrayDamage::Damaged { said })
            }
            _ => Error::File {
                action: "read",
                path: path.to_path_buf(),
                source: e,
            },
        };
        let start = self.header.length + first as u64 * size as u64;
        let mut piece = vec![0; PIECE.min(count * size)];
        let read = self.source.go_to(start).and_then(|()| {
            let mut place = 0;
            while place < count {
                let elements = (PIECE / size).min(count - place);
                let bytes = &mut piece[..elements * size];
                self.source.read_exact(bytes)?;
                for (i, raw) in bytes.chunks_exact(size).enumerate() {
                    take(place + i, raw);
                }
                place += elements;
            }
            Ok(())
        });
        read.map_err(|e| damaged(&self.path, &self.name, e))
    }
}

fn unusable(path: &Path, why: ArchiveDamage) -> Error {
    ArrayError::Archive {
        path: path.to_path_buf(),
        why,
    }
    .into()
}

fn array_unusable(path: &Path, name: &str, why: ArrayDamage) -> Error {
    ArrayError::Unusable {
        path: path.to_path_buf(),
        name: name.to_owned(),
        why,
    }
    .into()
}
