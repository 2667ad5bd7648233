//! Text tables: CSV, TSV and their relatives. Cells are kept as they are spelled, so that `007` and `1.50` are written back as
//! they came.

pub(crate) mod cut;
mod dialect;
mod rows;
mod write;

pub(super) use write::CsvWriter;

use super::column::{self, concat_rows};
use super::{TableError, TableReader};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use cut::{State, Walk};
use rayon::prelude::*;
use rows::{Fault, Layout};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A row longer than this is a quote that was never closed: reading on would take the rest of the file into memory.
const LONGEST_ROW: usize = 64 << 20;

/// A first line longer than this names more columns than any model could have.
const LONGEST_HEADER: usize = 8 << 20;

/// So many bytes are read at once.
const BLOCK: usize = 4 << 20;

/// Smaller pieces of a block are not worth a thread.
const SMALLEST_PIECE: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct CsvReader {
    path: PathBuf,
    file: File,
    schema: SchemaRef,
    layout: Layout,
    /// Bytes that are read but not yet rows; a row begins with the first.
    buffer: Vec<u8>,
    /// Where the first of them stands in the file.
    at: u64,
    ended: bool,
    bytes: u64,
    /// Where reading ends, if not at the end of the file.
    until: Option<u64>,
    /// Rows that nobody has asked for yet.
    waiting: VecDeque<RecordBatch>,
}

impl CsvReader {
    pub(super) fn open(
        path: &Path,
        separator: Option<u8>,
        wanted: Option<&[String]>,
    ) -> Result<Self> {
        let file = File::open(path).map_err(|e| cannot_read(path, e))?;
        let bytes = file.metadata().map_err(|e| cannot_read(path, e))?.len();
        let mut this = Self {
            path: path.to_path_buf(),
            file,
            schema: Arc::new(Schema::empty()),
            layout: Layout::new(separator.unwrap_or(b','), 0, &[]),
            buffer: Vec::new(),
            at: 0,
            ended: false,
            bytes,
            until: None,
            waiting: VecDeque::new(),
        };
        this.find_first_line()?;
        let in_file = || path.to_path_buf();
        if this.buffer.starts_with(b"\xff\xfe") || this.buffer.starts_with(b"\xfe\xff") {
            return Err(TableError::Utf16 { path: in_file() }.into());
        }
        if this.buffer.starts_with(BYTE_ORDER_MARK) {
            this.forget(BYTE_ORDER_MARK.len());
        }
        if this.buffer.trim_ascii().is_empty() {
            return Err(TableError::Empty { path: in_file() }.into());
        }
        let separator =
            separator.unwrap_or_else(|| dialect::find_separator(&this.buffer, this.ended));
        this.layout = Layout::new(separator, 0, &[]);
        let mut names = this.read_header()?;
        name_index(&mut names);
        let fields: Vec<Field> = names
            .into_iter()
            .map(|name| Field::new(name, DataType::Utf8, true))
            .collect();
        let schema = Schema::new(fields);
        column::check_names(path, &schema)?;
        let places = column::pick(path, &schema, wanted)?;
        let fields = schema.fields().len();
        let commas = dialect::decimal_commas(&this.buffer, this.ended, separator, fields);
        this.layout = Layout::new(separator, fields, &places).with_decimal_commas(&commas);
        this.schema = Arc::new(schema.project(&places).map_err(TableError::from)?);
        Ok(this)
    }

    /// Reads until so many bytes wait, or to the end.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        let lacking = wanted.saturating_sub(self.buffer.len()) as u64;
        if lacking > 0 && !self.ended {
            let here = self.at + self.buffer.len() as u64;
            let left = self.until.map_or(u64::MAX, |end| end.saturating_sub(here));
            let asked = lacking.min(left);
            let read = (&mut self.file).take(asked).read_to_end(&mut self.buffer);
            let read = read.map_err(|e| cannot_read(&self.path, e))?;
            self.ended = (read as u64) < lacking;
        }
        Ok(())
    }

    /// Where the rows behind the header lie.
    pub(super) fn body(&self) -> Range<u64> {
        self.at..self.bytes.max(self.at)
    }

    /// Reads on at another place, at which a row begins, and up to one at which another does.
    pub(super) fn only(&mut self, bytes: Range<u64>) -> Result<()> {
        let place = self.file.seek(SeekFrom::Start(bytes.start));
        place.map_err(|e| cannot_read(&self.path, e))?;
        self.buffer.clear();
        self.waiting.clear();
        (self.at, self.until, self.ended) = (bytes.start, Some(bytes.end), false);
        Ok(())
    }

    /// What some bytes do to the state that they are read in.
    pub(super) fn walk(&self, bytes: Range<u64>) -> Result<Walk> {
        let mut walk = Walk::default();
        let mut read = pieces_of(&self.path, bytes)?;
        let mut piece = vec![];
        loop {
            piece.clear();
            read(&mut piece).map_err(|e| cannot_read(&self.path, e))?;
            if piece.is_empty() {
                return Ok(walk);
            }
            walk.through(&piece, self.layout.separator());
        }
    }

    /// Where the next row begins, seen from a place that is in some state.
    pub(super) fn next_row(&self, from: u64, state: State) -> Result<u64> {
        let read = pieces_of(&self.path, from..self.bytes)?;
        let passed = cut::next_row(state, self.layout.separator(), read);
        Ok(from + passed.map_err(|e| cannot_read(&self.path, e))?)
    }

    fn forget(&mut self, bytes: usize) {
        self.buffer.drain(..bytes);
        self.at += bytes as u64;
    }

    /// Reads up to the end of the first line that is not blank, and perhaps some more.
    fn find_first_line(&mut self) -> Result<()> {
        let mut wanted = 1 << 16;
        loop {
            self.fill(wanted)?;
            let line = self.buffer.trim_ascii_start();
            let whole = line.iter().any(|&byte| byte == b'\n' || byte == b'\r');
            if whole || self.ended {
                return Ok(());
            }
            self.check_length(LONGEST_HEADER)?;
            wanted *= 2;
        }
    }

    fn read_header(&mut self) -> Result<Vec<String>> {
        let mut wanted = self.buffer.len().max(1);
        loop {
            self.fill(wanted)?;
            let mut reader = self.layout.reader(&self.buffer);
            let mut record = csv::ByteRecord::new();
            let read = reader.read_byte_record(&mut record);
            read.map_err(|e| cannot_read(&self.path, e.into()))?;
            let end = reader.position().byte() as usize;
            if end < self.buffer.len() || self.ended {
                let name = |field| std::str::from_utf8(field).map(|name| name.trim().to_owned());
                let names: Result<Vec<String>, _> = record.iter().map(name).collect();
                let start = record.position().map_or(0, |p| p.byte()) as usize;
                let names = names.map_err(|_| self.mistake(Fault::NotUtf8 { start }))?;
                self.forget(end);
                return Ok(names);
            }
            self.check_length(LONGEST_HEADER)?;
            wanted *= 2;
        }
    }

    /// Turns the next block of the file into rows that wait; false after the last.
    fn read_block(&mut self) -> Result<bool> {
        let mut wanted = BLOCK;
        loop {
            self.fill(wanted)?;
            if self.buffer.is_empty() {
                return Ok(false);
            }
            // Without quotes, rows end where lines do, and can be told apart by several threads at once.
            let plain = memchr::memchr(b'"', &self.buffer).unwrap_or(self.buffer.len());
            let last_line = memchr::memrchr2(b'\n', b'\r', &self.buffer[..plain]);
            let whole = match last_line {
                _ if plain == self.buffer.len() && self.ended => plain,
                Some(end) => end + 1,
                None => 0,
            };
            if whole > 0 {
                let pieces = pieces(&self.buffer[..whole], rayon::current_num_threads());
                let parsed: Vec<_> = pieces
                    .into_par_iter()
                    .map(|(start, piece)| {
                        rows::parse_plain(piece, &self.layout, &self.schema)
                            .map_err(|fault| fault.moved_by(start))
                    })
                    .collect();
                for rows in parsed {
                    let rows = rows.map_err(|fault| self.mistake(fault))?;
                    self.waiting.extend((rows.num_rows() > 0).then_some(rows));
                }
                self.forget(whole);
                return Ok(true);
            }
            let parsed = rows::parse_quoted(&self.buffer, &self.layout, &self.schema, self.ended);
            if let Some((rows, used)) = parsed.map_err(|fault| self.mistake(fault))? {
                self.waiting.extend((rows.num_rows() > 0).then_some(rows));
                self.forget(used);
                return Ok(true);
            }
            self.check_length(LONGEST_ROW)?;
            wanted = 2 * self.buffer.len();
        }
    }

    /// Gives up on a row that does not end.
    fn check_length(&self, longest: usize) -> Result<(), TableError> {
        if self.buffer.len() < longest {
            return Ok(());
        }
        Err(TableError::EndlessRow {
            path: self.path.clone(),
            line: self.line_of(0),
            megabytes: (longest >> 20) as u64,
        })
    }

    fn mistake(&self, fault: Fault) -> Error {
        let path = self.path.clone();
        match fault {
            Fault::NotUtf8 { start } => TableError::NotUtf8 {
                path,
                line: self.line_of(start),
            },
            Fault::FieldCount { start, found } => TableError::FieldCount {
                path,
                line: self.line_of(start),
                found,
                expected: self.layout.fields,
                commas: self.layout.has_commas(),
            },
            Fault::Arrow(error) => error,
        }
        .into()
    }

    /// The line in which a row begins, blank lines before it aside; for a message, so the file is simply read again.
    fn line_of(&self, start: usize) -> u64 {
        let start = self.at + start as u64;
        let Ok(file) = File::open(&self.path) else {
            return 1;
        };
        let (mut line, mut after_return) = (1, false);
        for (at, byte) in (0..).zip(BufReader::new(file).bytes()) {
            match byte {
                Ok(b'\n') if after_return => after_return = false,
                Ok(byte @ (b'\n' | b'\r')) => {
                    line += 1;
                    after_return = byte == b'\r';
                }
                Ok(_) if at < start => after_return = false,
                _ => return line,
            }
        }
        line
    }
}

impl TableReader for CsvReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let (mut parts, mut count) = (Vec::new(), 0);
        while count < rows {
            let Some(part) = self.waiting.pop_front() else {
                match self.read_block()? {
                    true => continue,
                    false => break,
                }
            };
            let taken = part.num_rows().min(rows - count);
            if taken < part.num_rows() {
                let rest = part.slice(taken, part.num_rows() - taken);
                self.waiting.push_front(rest);
            }
            parts.push(part.slice(0, taken));
            count += taken;
        }
        match parts.is_empty() {
            true => Ok(None),
            false => concat_rows(&parts).map(Some),
        }
    }

    fn progress(&self) -> Option<f64> {
        (self.bytes > 0).then(|| (self.at as f64 / self.bytes as f64).min(1.0))
    }
}

/// Hands out bytes of a file, some at a time and none at their end.
fn pieces_of(
    path: &Path,
    bytes: Range<u64>,
) -> Result<impl FnMut(&mut Vec<u8>) -> io::Result<()> + use<>> {
    let mut file = File::open(path).map_err(|e| cannot_read(path, e))?;
    let place = file.seek(SeekFrom::Start(bytes.start));
    place.map_err(|e| cannot_read(path, e))?;
    let mut left = bytes.end.saturating_sub(bytes.start);
    Ok(move |piece: &mut Vec<u8>| {
        let asked = left.min(BLOCK as u64);
        let read = (&mut file).take(asked).read_to_end(piece)?;
        left -= read as u64;
        Ok(())
    })
}

/// Cuts lines into pieces of about equal size, with the place of each.
fn pieces(bytes: &[u8], threads: usize) -> Vec<(usize, &[u8])> {
    let size = bytes.len().div_ceil(threads.max(1)).max(SMALLEST_PIECE);
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let near = (start + size).min(bytes.len());
        let end = memchr::memchr2(b'\n', b'\r', &bytes[near..]).map_or(bytes.len(), |n| near + n);
        pieces.push((start, &bytes[start..end]));
        start = end;
    }
    pieces
}

/// What pandas and R write in front of a table is its index, and has no name; a column without one elsewhere is a mistake.
fn name_index(names: &mut [String]) {
    let [first, rest @ ..] = names else { return };
    if !first.is_empty() || rest.is_empty() || rest.iter().any(String::is_empty) {
        return;
    }
    let mut name = String::from("index");
    while rest.contains(&name) {
        name.push('_');
    }
    *first = name;
}

fn cannot_read(path: &Path, source: io::Error) -> Error {
    Error::File {
        action: "read",
        path: path.to_path_buf(),
        source,
    }
}
