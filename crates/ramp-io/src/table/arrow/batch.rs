//! From the buffers of an Arrow batch to cells, some rows at a time.

use super::super::column::{Cells, is_missing_text};
use super::super::iso::{self, Unit};
use super::schema::Reading;
use crate::array::npy::{Element, ElementKind};
use lz4_flex::frame::FrameDecoder;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// A buffer that unpacks to more than a gigabyte and to so many times its size is made to fill the memory.
const LARGEST_UNCHECKED: u64 = 1 << 30;
const LARGEST_RATIO: u64 = 200;

/// Views may all name the same bytes, so their sum has no limit in the file.
const LONGEST_TEXTS: usize = 1 << 30;

/// Why cells cannot be read, as half a sentence.
type Result<T> = std::result::Result<T, String>;

fn damaged() -> String {
    "it is damaged".into()
}

/// A run of bytes of a batch.
#[derive(Debug)]
pub(super) enum Buffer {
    /// As it stands in the file, so that only the rows asked for are read.
    Stored { start: u64, length: u64 },
    /// Unpacked.
    Memory(Vec<u8>),
}

impl Buffer {
    /// A buffer in the file, unpacked if it is packed.
    pub(super) fn open(file: &mut File, start: u64, length: u64, packed: bool) -> Result<Self> {
        if !packed || length == 0 {
            return Ok(Buffer::Stored { start, length });
        }
        let stored = Buffer::Stored { start, length };
        let head = stored.part(file, 0, 8)?;
        let size = i64::from_le_bytes(head.try_into().map_err(|_| damaged())?);
        if size == -1 {
            return Ok(Buffer::Stored {
                start: start + 8,
                length: length - 8,
            });
        }
        let size = u64::try_from(size).map_err(|_| damaged())?;
        if size > LARGEST_UNCHECKED && size / LARGEST_RATIO > length {
            return Err(format!(
                "a part of it would unpack to {} MB, more than {LARGEST_RATIO} times its size",
                size >> 20
            ));
        }
        let rest = usize::try_from(length - 8).map_err(|_| damaged())?;
        let bytes = stored.part(file, 8, rest)?;
        let mut unpacked = Vec::new();
        let mut decoder = FrameDecoder::new(bytes.as_slice()).take(size + 1);
        decoder.read_to_end(&mut unpacked).map_err(|_| damaged())?;
        if unpacked.len() as u64 != size {
            return Err(damaged());
        }
        Ok(Buffer::Memory(unpacked))
    }

    fn len(&self) -> u64 {
        match self {
            Buffer::Stored { length, .. } => *length,
            Buffer::Memory(bytes) => bytes.len() as u64,
        }
    }

    fn part(&self, file: &mut File, from: u64, length: usize) -> Result<Vec<u8>> {
        let end = from.checked_add(length as u64);
        if end.is_none_or(|end| end > self.len()) {
            return Err(damaged());
        }
        match self {
            Buffer::Stored { start, .. } => {
                let mut bytes = vec![0; length];
                let read = file
                    .seek(SeekFrom::Start(start + from))
                    .and_then(|_| file.read_exact(&mut bytes));
                read.map_err(|e| e.to_string())?;
                Ok(bytes)
            }
            Buffer::Memory(bytes) => Ok(bytes[from as usize..from as usize + length].to_vec()),
        }
    }
}

/// The buffers of one column in a batch.
#[derive(Debug)]
pub(super) struct Columnar {
    pub(super) buffers: Vec<Buffer>,
}

impl Columnar {
    /// The cells of some rows.
    pub(super) fn cells(
        &self,
        file: &mut File,
        reading: &Reading,
        first: usize,
        rows: usize,
    ) -> Result<Cells> {
        let texts = |cells: Vec<Option<String>>| Ok(Cells::Texts(cells));
        if let Reading::Unread(kind) = reading {
            return Ok(Cells::Unread {
                kind: kind.clone(),
                rows,
            });
        }
        if *reading == Reading::Null {
            return texts(vec![None; rows]);
        }
        let present = self.bits(file, 0, first, rows)?;
        let there = |row: usize| present.as_ref().is_none_or(|bits| bits[row]);
        let signed = |bytes| Element::little(ElementKind::Signed, bytes);
        let spelt = |raw: Vec<Option<i64>>, spell: &dyn Fn(i64) -> String| {
            texts(raw.into_iter().map(|x| x.map(spell)).collect())
        };
        match *reading {
            Reading::Integer {
                bytes: 8,
                signed: false,
            } => {
                let raw = self.integers(file, signed(8), first, rows, &there)?;
                spelt(raw, &|x| (x as u64).to_string())
            }
            Reading::Integer { bytes, signed } => {
                let kind = if signed {
                    ElementKind::Signed
                } else {
                    ElementKind::Unsigned
                };
                let element = Element::little(kind, bytes);
                self.integers(file, element, first, rows, &there)
                    .map(Cells::Integers)
            }
            Reading::Float { bytes } => {
                let element = Element::little(ElementKind::Float, bytes);
                let raw = self.fixed(file, bytes, first, rows)?;
                let number = |(row, raw)| {
                    if there(row) {
                        element.number(raw)
                    } else {
                        f64::NAN
                    }
                };
                Ok(Cells::Numbers(
                    raw.chunks_exact(bytes).enumerate().map(number).collect(),
                ))
            }
            Reading::Bool => {
                let bits = self.bits(file, 1, first, rows)?.ok_or_else(damaged)?;
                texts(
                    bits.into_iter()
                        .enumerate()
                        .map(|(row, bit)| there(row).then(|| bit.to_string()))
                        .collect(),
                )
            }
            Reading::Date { bytes } => {
                let raw = self.integers(file, signed(bytes), first, rows, &there)?;
                spelt(raw, &|x| {
                    iso::date(if bytes == 4 {
                        x
                    } else {
                        x.div_euclid(86_400_000)
                    })
                })
            }
            Reading::Time { unit, bytes } => {
                let raw = self.integers(file, signed(bytes), first, rows, &there)?;
                spelt(raw, &|x| iso::time(x, unit))
            }
            Reading::Timestamp { unit, utc } => {
                let raw = self.integers(file, signed(8), first, rows, &there)?;
                spelt(raw, &|x| iso::timestamp(x, unit as Unit, utc))
            }
            Reading::Decimal { bytes, scale } => {
                let raw = self.fixed(file, bytes, first, rows)?;
                let spell = |(row, raw): (usize, &[u8])| {
                    let sign = if raw[bytes - 1] >= 128 { -1 } else { 0 };
                    let unscaled = raw
                        .iter()
                        .rev()
                        .fold(sign, |all: i128, &b| all << 8 | i128::from(b));
                    there(row).then(|| iso::decimal(unscaled, scale))
                };
                texts(raw.chunks_exact(bytes).enumerate().map(spell).collect())
            }
            Reading::Text { bytes } => self
                .texts(file, bytes, first, rows, &there)
                .map(Cells::Texts),
            Reading::TextView => self.views(file, first, rows, &there).map(Cells::Texts),
            Reading::Null | Reading::Unread(_) => texts(vec![None; rows]),
        }
    }

    fn buffer(&self, at: usize) -> Result<&Buffer> {
        self.buffers.get(at).ok_or_else(damaged)
    }

    /// `None` where the buffer is left out: then all cells are there.
    fn bits(
        &self,
        file: &mut File,
        at: usize,
        first: usize,
        rows: usize,
    ) -> Result<Option<Vec<bool>>> {
        let buffer = self.buffer(at)?;
        if buffer.len() == 0 {
            return Ok(None);
        }
        let start = first / 8;
        let bytes = buffer.part(file, start as u64, (first + rows).div_ceil(8) - start)?;
        let bit = |row: usize| bytes[row / 8 - start] >> (row % 8) & 1 == 1;
        Ok(Some((first..first + rows).map(bit).collect()))
    }

    fn fixed(&self, file: &mut File, size: usize, first: usize, rows: usize) -> Result<Vec<u8>> {
        let length = rows.checked_mul(size).ok_or_else(damaged)?;
        let start = (first as u64)
            .checked_mul(size as u64)
            .ok_or_else(damaged)?;
        self.buffer(1)?.part(file, start, length)
    }

    pub(super) fn integers(
        &self,
        file: &mut File,
        element: Element,
        first: usize,
        rows: usize,
        there: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<Option<i64>>> {
        let raw = self.fixed(file, element.size, first, rows)?;
        let cells = raw.chunks_exact(element.size).enumerate();
        Ok(cells
            .map(|(row, raw)| {
                if there(row) {
                    element.integer(raw)
                } else {
                    None
                }
            })
            .collect())
    }

    /// Indices into a dictionary, `None` where a cell is missing.
    pub(super) fn indices(
        &self,
        file: &mut File,
        (bytes, signed): (usize, bool),
        first: usize,
        rows: usize,
    ) -> Result<Vec<Option<i64>>> {
        let present = self.bits(file, 0, first, rows)?;
        let there = |row: usize| present.as_ref().is_none_or(|bits| bits[row]);
        // An index beyond 2⁶³ reads as a negative one, which no dictionary has either.
        let kind = if signed || bytes == 8 {
            ElementKind::Signed
        } else {
            ElementKind::Unsigned
        };
        self.integers(file, Element::little(kind, bytes), first, rows, &there)
    }

    fn texts(
        &self,
        file: &mut File,
        size: usize,
        first: usize,
        rows: usize,
        there: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<Option<String>>> {
        let raw = self.fixed(file, size, first, rows.checked_add(1).ok_or_else(damaged)?)?;
        let element = Element::little(ElementKind::Signed, size);
        let offsets: Vec<i64> = raw
            .chunks_exact(size)
            .filter_map(|raw| element.integer(raw))
            .collect();
        let (Some(&start), Some(&end)) = (offsets.first(), offsets.last()) else {
            return Err(damaged());
        };
        if start < 0 || !offsets.is_sorted() {
            return Err(damaged());
        }
        let length = usize::try_from(end - start).map_err(|_| damaged())?;
        let data = self.buffer(2)?.part(file, start as u64, length)?;
        let cell = |(row, pair): (usize, &[i64])| {
            if !there(row) {
                return Ok(None);
            }
            text(&data[(pair[0] - start) as usize..(pair[1] - start) as usize])
        };
        offsets.windows(2).enumerate().map(cell).collect()
    }

    /// Sixteen bytes per cell: the length, then the text itself or where it stands.
    fn views(
        &self,
        file: &mut File,
        first: usize,
        rows: usize,
        there: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<Option<String>>> {
        let raw = self.fixed(file, 16, first, rows)?;
        let mut total = 0;
        let mut cells = Vec::with_capacity(rows);
        for (row, view) in raw.chunks_exact(16).enumerate() {
            if !there(row) {
                cells.push(None);
                continue;
            }
            let word = |at: usize| {
                u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]])
            };
            let length = word(0) as usize;
            total += length;
            if total > LONGEST_TEXTS {
                return Err("its texts are longer than can be read at once".into());
            }
            cells.push(if length <= 12 {
                text(&view[4..4 + length])?
            } else {
                let buffer = self.buffer(2 + word(8) as usize)?;
                text(&buffer.part(file, u64::from(word(12)), length)?)?
            });
        }
        Ok(cells)
    }
}

fn text(bytes: &[u8]) -> Result<Option<String>> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it has a text that is not UTF-8")?;
    Ok((!is_missing_text(text)).then(|| text.to_owned()))
}
