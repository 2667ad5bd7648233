//! The messages of an Arrow file or stream, each length checked before memory is taken for it.

use super::super::Damage;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::{Footer, Message, RecordBatch};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;

const MAGIC: &[u8] = b"ARROW1";

/// A message's description is some bytes per column.
const LONGEST_DESCRIPTION: u64 = 64 << 20;

/// Columns without values take no bytes, so nothing else limits the rows that a batch may claim.
const MOST_ROWS: i64 = 1 << 32;

/// A batch that unpacks to more than a gigabyte and to so many times its size is made to fill the memory.
const LARGEST_UNCHECKED: u64 = 1 << 30;
const LARGEST_RATIO: u64 = 200;

/// Memory that is taken at a time for a body whose length nothing but the stream itself vouches for.
const PIECE: u64 = 1 << 20;

/// The messages of a file, or of a pipe.
pub(super) struct Messages {
    bytes: Bytes,
    /// Where the next message begins.
    at: u64,
    /// Of a pipe, nobody knows how long it is.
    length: Option<u64>,
    /// Where the messages of a file begin, the next one first; a stream has them one after the other.
    blocks: Option<VecDeque<u64>>,
    /// How much of bodies was read.
    #[cfg(test)]
    pub(super) bytes_of_bodies: u64,
}

/// Where bytes come from.
enum Bytes {
    File(File),
    /// What comes once and in order, and how many bytes of it have come.
    Pipe(BufReader<Box<dyn Read + Send>>, u64),
}

impl Bytes {
    /// Reads at a place of a file; of a pipe, what lies before it is passed over.
    fn seek(&mut self, to: u64) -> io::Result<()> {
        match self {
            Bytes::File(file) => file.seek(SeekFrom::Start(to)).map(drop),
            Bytes::Pipe(pipe, at) => {
                let over = to.saturating_sub(*at);
                *at += io::copy(&mut pipe.by_ref().take(over), &mut io::sink())?;
                Ok(())
            }
        }
    }

    fn read_exact(&mut self, to: &mut [u8]) -> Result<(), Damage> {
        let read = match self {
            Bytes::File(file) => file.read_exact(to),
            Bytes::Pipe(pipe, at) => {
                *at += to.len() as u64;
                pipe.read_exact(to)
            }
        };
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Damage::CutOff,
            _ => error.into(),
        })
    }
}

/// A message: what it says, and where its body is.
pub(super) struct Envelope {
    description: Vec<u8>,
    body: u64,
    body_length: u64,
}

impl Envelope {
    pub(super) fn message(&self) -> Result<Message<'_>, Damage> {
        arrow_ipc::root_as_message(&self.description).map_err(|_| Damage::Damaged)
    }
}

impl Messages {
    pub(super) fn new(file: File, length: u64) -> Self {
        Self {
            bytes: Bytes::File(file),
            at: 0,
            length: Some(length),
            blocks: None,
            #[cfg(test)]
            bytes_of_bodies: 0,
        }
    }

    /// The messages of what comes through a pipe: a stream, or a file, whose messages lie in the same order before its footer.
    pub(super) fn of_pipe(mut pipe: Box<dyn Read + Send>) -> Result<Self, Damage> {
        let mut start = vec![];
        pipe.by_ref().take(8).read_to_end(&mut start)?;
        if start.starts_with(MAGIC) {
            // Some writers fill up to 64 bytes after the mark.
            for _ in 0..8 {
                start.clear();
                pipe.by_ref().take(8).read_to_end(&mut start)?;
                if start != [0; 8] {
                    break;
                }
            }
        }
        let start: Box<dyn Read + Send> = Box::new(Cursor::new(start).chain(pipe));
        Ok(Self {
            bytes: Bytes::Pipe(BufReader::new(start), 0),
            at: 0,
            length: None,
            blocks: None,
            #[cfg(test)]
            bytes_of_bodies: 0,
        })
    }

    pub(super) fn progress(&self) -> Option<f64> {
        let length = self.length.filter(|&length| length > 0)?;
        Some(self.at as f64 / length as f64)
    }

    /// Whether so many bytes may still come.
    fn has(&self, length: u64) -> bool {
        self.length.is_none_or(|all| all - self.at >= length)
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, Damage> {
        if !self.has(length) {
            return Err(Damage::CutOff);
        }
        let mut bytes = vec![0; length as usize];
        self.bytes.seek(self.at)?;
        self.bytes.read_exact(&mut bytes)?;
        self.at += length;
        Ok(bytes)
    }

    /// Whether nothing comes any more.
    fn at_end(&mut self) -> Result<bool, Damage> {
        if let Bytes::Pipe(..) = &self.bytes {
            self.bytes.seek(self.at)?;
        }
        Ok(match &mut self.bytes {
            Bytes::File(_) => self.length == Some(self.at),
            Bytes::Pipe(pipe, _) => pipe.fill_buf()?.is_empty(),
        })
    }

    fn number(&mut self) -> Result<u32, Damage> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Whether the file has a footer; else it may be a stream.
    pub(super) fn is_file(&mut self) -> Result<bool, Damage> {
        let start = self.bytes(self.length.unwrap_or(0).min(8))?;
        self.at = 0;
        if start.starts_with(b"FEA1") {
            return Err(Damage::OldFeather);
        }
        Ok(start.starts_with(MAGIC))
    }

    pub(super) fn read_footer(&mut self) -> Result<Vec<u8>, Damage> {
        let tail = 4 + MAGIC.len() as u64;
        let length = self.length.unwrap_or(0);
        self.at = length.checked_sub(tail).ok_or(Damage::CutOff)?;
        let size = u64::from(self.number()?);
        if self.bytes(MAGIC.len() as u64)? != MAGIC {
            return Err(Damage::CutOff);
        }
        let start = length.checked_sub(tail + size);
        self.at = start
            .filter(|_| size <= LONGEST_DESCRIPTION)
            .ok_or(Damage::Footer)?;
        self.bytes(size)
    }

    /// From here on, the messages that the footer names: first dictionaries, then rows.
    pub(super) fn take_blocks(&mut self, footer: &Footer<'_>) -> Result<(), Damage> {
        let dictionaries = footer.dictionaries().into_iter().flatten();
        let batches = footer.recordBatches().into_iter().flatten();
        let place = |block: &arrow_ipc::Block| {
            let place = u64::try_from(block.offset()).ok();
            place
                .filter(|&at| self.length.is_some_and(|length| at < length))
                .ok_or(Damage::Footer)
        };
        let blocks = dictionaries.chain(batches).map(place);
        self.blocks = Some(blocks.collect::<Result<_, _>>()?);
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Option<Envelope>, Damage> {
        if let Some(blocks) = &mut self.blocks {
            let Some(block) = blocks.pop_front() else {
                return Ok(None);
            };
            self.at = block;
        } else if self.at_end()? {
            // The mark at the end may be left out.
            return Ok(None);
        }
        // Before version 0.15 there was no mark before the length.
        let size = match self.number()? {
            u32::MAX => self.number()?,
            size => size,
        };
        if size == 0 {
            return Ok(None);
        }
        if u64::from(size) > LONGEST_DESCRIPTION {
            return Err(Damage::Damaged);
        }
        let description = self.bytes(u64::from(size))?;
        let mut envelope = Envelope {
            description,
            body: self.at,
            body_length: 0,
        };
        let length = envelope.message()?.bodyLength();
        envelope.body_length = u64::try_from(length).map_err(|_| Damage::Damaged)?;
        if !self.has(envelope.body_length) {
            return Err(Damage::CutOff);
        }
        let end = self.at.checked_add(envelope.body_length);
        self.at = end.ok_or(Damage::Damaged)?;
        Ok(Some(envelope))
    }

    /// The bytes of a message's columns. Of a file only those parts are read that are needed, if that is known; the others are zeros, which take no
    /// memory where the system gives it out on first touch.
    pub(super) fn body(
        &mut self,
        envelope: &Envelope,
        needed: Option<Vec<Range<u64>>>,
    ) -> Result<Buffer, Damage> {
        if let (Some(needed), Some(_)) = (needed, self.length) {
            return self.parts(envelope, needed);
        }
        let mut bytes = MutableBuffer::new(0);
        self.bytes.seek(envelope.body)?;
        while (bytes.len() as u64) < envelope.body_length {
            let left = envelope.body_length - bytes.len() as u64;
            // A pipe can claim anything: never more than twice what has come.
            let next = match self.length {
                Some(_) => left,
                None => left.min(PIECE.max(bytes.len() as u64)),
            };
            let first = bytes.len();
            bytes.resize(first + next as usize, 0);
            self.bytes.read_exact(&mut bytes.as_slice_mut()[first..])?;
        }
        self.count(envelope.body_length);
        Ok(bytes.into())
    }

    fn parts(&mut self, envelope: &Envelope, needed: Vec<Range<u64>>) -> Result<Buffer, Damage> {
        let mut bytes = MutableBuffer::from_len_zeroed(envelope.body_length as usize);
        for part in needed {
            let place = usize::try_from(part.start).ok();
            let place = place.zip(usize::try_from(part.end).ok());
            let place = place.and_then(|(start, end)| bytes.as_slice_mut().get_mut(start..end));
            let place = place.ok_or(Damage::Damaged)?;
            self.bytes.seek(envelope.body + part.start)?;
            self.bytes.read_exact(place)?;
            self.count(part.end - part.start);
        }
        Ok(bytes.into())
    }

    #[cfg(test)]
    fn count(&mut self, bytes: u64) {
        self.bytes_of_bodies += bytes;
    }

    #[cfg(not(test))]
    fn count(&mut self, _: u64) {}
}

/// Checks that a batch has the rows and bytes that it says, packed or not.
pub(super) fn check_batch(batch: &RecordBatch<'_>, body: &[u8]) -> Result<(), Damage> {
    if !(0..=MOST_ROWS).contains(&batch.length()) {
        return Err(Damage::Damaged);
    }
    let mut nodes = batch.nodes().into_iter().flatten();
    if nodes.any(|node| !(0..=MOST_ROWS).contains(&node.length()) || node.null_count() < 0) {
        return Err(Damage::Damaged);
    }
    let mut unpacked = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let place = usize::try_from(buffer.offset()).ok();
        let place = place.zip(usize::try_from(buffer.length()).ok());
        let bytes = place.and_then(|(start, length)| body.get(start..)?.get(..length));
        let bytes = bytes.ok_or(Damage::Damaged)?;
        if batch.compression().is_some() && !bytes.is_empty() {
            let size = bytes.first_chunk().ok_or(Damage::Damaged)?;
            // Minus one says that it is not packed after all.
            let size = match i64::from_le_bytes(*size) {
                -1 => 0,
                size => u64::try_from(size).map_err(|_| Damage::Damaged)?,
            };
            unpacked = unpacked.saturating_add(size);
        }
    }
    if unpacked > LARGEST_UNCHECKED && unpacked / LARGEST_RATIO > body.len() as u64 {
        return Err(Damage::Bomb {
            megabytes: unpacked >> 20,
            ratio: LARGEST_RATIO,
        });
    }
    Ok(())
}
