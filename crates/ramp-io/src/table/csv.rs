//! Text tables: CSV, TSV and their relatives.

use super::column::{self, Cells, Column, ColumnType, Table, is_missing_text, spell_number};
use super::{TableReader, TableWriter, check_columns};
use crate::{Error, Result};
use csv::{ByteRecord, ReaderBuilder, Writer, WriterBuilder};
use ramp::storage::PendingFile;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

/// A row longer than this is a quote that was never closed: reading on would take the rest of the file into memory.
const LONGEST_ROW: u64 = 64 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct CsvReader {
    path: PathBuf,
    reader: csv::Reader<Bounded<Chain<Cursor<Vec<u8>>, File>>>,
    names: Vec<String>,
    types: Vec<ColumnType>,
    /// Where the columns stand in a row.
    places: Vec<usize>,
    fields: usize,
    record: ByteRecord,
    row: usize,
    bytes: u64,
    /// Bytes before the text, such as a byte-order mark.
    skipped: u64,
}

impl CsvReader {
    pub(super) fn open(
        path: &Path,
        separator: Option<u8>,
        wanted: Option<&[String]>,
    ) -> Result<Self> {
        let cannot_read = |source| Error::File {
            action: "read",
            path: path.to_path_buf(),
            source,
        };
        let mut file = File::open(path).map_err(cannot_read)?;
        let bytes = file.metadata().map_err(cannot_read)?.len();
        let mut start = first_line(&mut file).map_err(cannot_read)?;
        let shown = path.display();
        if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
            return Err(Error::Invalid(format!(
                "`{shown}` is in UTF-16: save it as UTF-8"
            )));
        }
        let mut skipped = 0;
        if start.starts_with(BYTE_ORDER_MARK) {
            start.drain(..BYTE_ORDER_MARK.len());
            skipped = BYTE_ORDER_MARK.len() as u64;
        }
        if start.trim_ascii().is_empty() {
            return Err(Error::Invalid(format!(
                "`{shown}` is empty: its first line must name the columns"
            )));
        }
        let separator = separator.unwrap_or_else(|| find_separator(&start));
        let input = Bounded {
            inner: Cursor::new(start).chain(file),
            left: LONGEST_ROW,
        };
        let reader = ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            // Rows of another length get our own sentence.
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(input);
        let mut this = Self {
            path: path.to_path_buf(),
            reader,
            names: Vec::new(),
            types: Vec::new(),
            places: Vec::new(),
            fields: 0,
            record: ByteRecord::new(),
            row: 0,
            bytes,
            skipped,
        };
        this.read_header(wanted)?;
        Ok(this)
    }

    fn read_header(&mut self, wanted: Option<&[String]>) -> Result<()> {
        self.advance()?;
        let mut columns = Vec::with_capacity(self.record.len());
        for field in &self.record {
            let name = std::str::from_utf8(field).map_err(|_| self.not_utf8())?;
            columns.push((name.trim().to_owned(), ColumnType::Text));
        }
        let shown = self.path.display().to_string();
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        column::check_names(&shown, &names)?;
        self.fields = columns.len();
        self.places = column::pick(&shown, &columns, wanted)?;
        self.names = self.places.iter().map(|&at| names[at].clone()).collect();
        self.types = vec![ColumnType::Text; self.places.len()];
        Ok(())
    }

    /// Reads the next record; false after the last.
    fn advance(&mut self) -> Result<bool> {
        self.reader.get_mut().left = LONGEST_ROW;
        self.reader.read_byte_record(&mut self.record).map_err(|e| {
            match e.into_kind() {
                csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
                    Error::Invalid(format!(
                        "the row that begins in line {} of `{}` is longer than {} MB: is there a quote that is not closed?",
                        self.record_line(),
                        self.path.display(),
                        LONGEST_ROW >> 20
                    ))
                }
                csv::ErrorKind::Io(source) => Error::File {
                    action: "read",
                    path: self.path.clone(),
                    source,
                },
                other => Error::Invalid(format!(
                    "line {} of `{}` cannot be read: {other:?}",
                    self.record_line(),
                    self.path.display()
                )),
            }
        })
    }

    /// The line in which the current record begins.
    ///
    /// The parser does not count carriage returns and skips blank lines only after it has noted where a record begins; so,
    /// for a message, count again.
    fn record_line(&self) -> u64 {
        let position = self.record.position();
        let noted = position.map_or(1, |position| position.line());
        let start = self.skipped + position.map_or(0, |position| position.byte());
        let Ok(file) = File::open(&self.path) else {
            return noted;
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
                Ok(_) => return line,
                Err(_) => return noted,
            }
        }
        line
    }

    fn not_utf8(&self) -> Error {
        Error::Invalid(format!(
            "line {} of `{}` is not UTF-8: save the file as UTF-8",
            self.record_line(),
            self.path.display()
        ))
    }
}

impl TableReader for CsvReader {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn types(&self) -> &[ColumnType] {
        &self.types
    }

    fn next(&mut self, rows: usize) -> Result<Option<Table>> {
        // Not more room than the file can need, whatever the caller asks for.
        let likely = rows
            .min((self.bytes / self.fields.max(1) as u64) as usize + 1)
            .min(1 << 14);
        let mut cells: Vec<Vec<Option<String>>> = self
            .places
            .iter()
            .map(|_| Vec::with_capacity(likely))
            .collect();
        let mut spelt: Vec<Vec<(usize, Box<str>)>> = vec![Vec::new(); self.places.len()];
        let mut count = 0;
        while count < rows && self.advance()? {
            if self.record.len() != self.fields {
                return Err(Error::Invalid(format!(
                    "line {} of `{}` has {} fields, but the header has {}",
                    self.record_line(),
                    self.path.display(),
                    self.record.len(),
                    self.fields
                )));
            }
            if !self.record.as_slice().is_ascii()
                && self
                    .record
                    .iter()
                    .any(|field| std::str::from_utf8(field).is_err())
            {
                return Err(self.not_utf8());
            }
            for (column, &place) in self.places.iter().enumerate() {
                let text = std::str::from_utf8(&self.record[place]).map_err(|_| self.not_utf8())?;
                if is_missing_text(text) {
                    cells[column].push(None);
                    if !text.is_empty() {
                        spelt[column].push((count, text.into()));
                    }
                } else {
                    cells[column].push(Some(text.to_owned()));
                }
            }
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        let columns = self.names.iter().zip(cells).zip(spelt);
        let columns = columns
            .map(|((name, cells), spelt)| {
                let mut column = Column::new(name.clone(), Cells::Texts(cells));
                column.spelt = spelt;
                column
            })
            .collect();
        let first_row = self.row;
        self.row += count;
        Ok(Some(Table::of_checked(columns, first_row)))
    }

    fn progress(&self) -> Option<f64> {
        let read = self.reader.position().byte();
        (self.bytes > 0).then(|| (read as f64 / self.bytes as f64).min(1.0))
    }
}

/// Gives up when more bytes are asked for than one row may have.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(count)
    }
}

/// The file's bytes up to the end of its first line that is not blank, and perhaps some more.
fn first_line(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    while file.take(1 << 16).read_to_end(&mut start)? > 0 && (start.len() as u64) < LONGEST_ROW {
        let line = start.trim_ascii_start();
        if line.iter().any(|&byte| byte == b'\n' || byte == b'\r') {
            break;
        }
    }
    Ok(start)
}

/// A comma if the header has one; else a tab, else a semicolon, if it has one.
fn find_separator(start: &[u8]) -> u8 {
    let mut quoted = false;
    let mut seen = [false; 256];
    for &byte in start.trim_ascii_start() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if !quoted => seen[usize::from(byte)] = true,
            _ => {}
        }
    }
    let separators = [b',', b'\t', b';'];
    separators
        .into_iter()
        .find(|&separator| seen[usize::from(separator)])
        .unwrap_or(b',')
}

pub(super) struct CsvWriter {
    writer: Writer<BufWriter<PendingFile>>,
    shown: String,
    path: PathBuf,
    columns: Vec<(String, ColumnType)>,
}

impl CsvWriter {
    pub(super) fn create(
        path: &Path,
        separator: Option<u8>,
        columns: &[(String, ColumnType)],
    ) -> Result<Self> {
        let file = BufWriter::with_capacity(1 << 16, PendingFile::create(path)?);
        let mut writer = WriterBuilder::new()
            .delimiter(separator.unwrap_or(b','))
            .from_writer(file);
        writer
            .write_record(columns.iter().map(|(name, _)| name))
            .map_err(|e| cannot_write(path, e))?;
        Ok(Self {
            writer,
            shown: path.display().to_string(),
            path: path.to_path_buf(),
            columns: columns.to_vec(),
        })
    }
}

impl TableWriter for CsvWriter {
    fn write(&mut self, table: &Table) -> Result<()> {
        check_columns(&self.shown, &self.columns, table)?;
        let failed = |e| cannot_write(&self.path, e);
        for row in 0..table.rows() {
            for column in table.columns() {
                match &column.cells {
                    Cells::Numbers(cells) if !cells[row].is_nan() => {
                        self.writer.write_field(spell_number(cells[row]))
                    }
                    Cells::Integers(cells) if cells[row].is_some() => self
                        .writer
                        .write_field(cells[row].unwrap_or_default().to_string()),
                    Cells::Texts(cells) => {
                        let spelling = || column.spelling(row);
                        self.writer
                            .write_field(cells[row].as_deref().unwrap_or_else(spelling))
                    }
                    _ => self.writer.write_field(""),
                }
                .map_err(failed)?;
            }
            self.writer.write_record(None::<&[u8]>).map_err(failed)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let failed = |source: io::Error| Error::File {
            action: "write",
            path: self.path.clone(),
            source,
        };
        let buffered = self
            .writer
            .into_inner()
            .map_err(|e| failed(e.into_error()))?;
        let file = buffered.into_inner().map_err(|e| failed(e.into_error()))?;
        Ok(file.commit()?)
    }
}

fn cannot_write(path: &Path, error: csv::Error) -> Error {
    let source = match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    };
    Error::File {
        action: "write",
        path: path.to_path_buf(),
        source,
    }
}
