//! Arrow IPC tables: files (also called Feather) and streams.
//!
//! By hand, because the official crates take more than a minute to build; of a message only what is asked for is read.

mod batch;
mod flat;
mod schema;
mod write;

pub(super) use write::ArrowWriter;

use super::TableReader;
use super::column::{self, Cells, Column, ColumnType, Table};
use crate::{Error, Result};
use batch::{Buffer, Columnar};
use flat::Damaged;
use ramp::names::shortened;
use schema::{Field, Layout, Reading};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"ARROW1";

/// A message's description is some bytes per column.
const LONGEST_DESCRIPTION: u64 = 64 << 20;

/// Columns without values take no bytes, so nothing else limits the rows that a batch may claim.
const MOST_ROWS: i64 = 1 << 32;

/// The version before which unions had one buffer more.
const FIFTH: i16 = 4;

pub(super) struct ArrowReader {
    path: PathBuf,
    stream: Stream,
    fields: Vec<Field>,
    picked: Vec<usize>,
    names: Vec<String>,
    types: Vec<ColumnType>,
    dictionaries: HashMap<i64, Cells>,
    batch: Option<Batch>,
    row: usize,
}

/// A record batch of which rows are still to be read.
struct Batch {
    rows: usize,
    next: usize,
    /// For each yielded column.
    columns: Vec<Columnar>,
}

/// The messages of a file.
struct Stream {
    file: File,
    /// Where the next message begins.
    at: u64,
    length: u64,
    /// Where the messages of a file begin, the next one first; a stream has them one after the other.
    blocks: Option<VecDeque<u64>>,
}

/// A message: what it says, and where its body is.
struct Message {
    description: Vec<u8>,
    body: u64,
    body_length: u64,
}

impl Stream {
    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, String> {
        if self.length - self.at < length {
            return Err("it is cut off".into());
        }
        let mut bytes = vec![0; length as usize];
        let read = self
            .file
            .seek(SeekFrom::Start(self.at))
            .and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|e| e.to_string())?;
        self.at += length;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u32, String> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn next(&mut self) -> Result<Option<Message>, String> {
        match &mut self.blocks {
            Some(blocks) => match blocks.pop_front() {
                Some(block) => self.at = block,
                None => return Ok(None),
            },
            // The mark at the end may be left out.
            None if self.at == self.length => return Ok(None),
            None => {}
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
            return Err("it is damaged".into());
        }
        let description = self.bytes(u64::from(size))?;
        let body_length = flat::Table::root(&description).and_then(|message| message.long(3));
        let body_length = body_length
            .ok()
            .and_then(|length| u64::try_from(length).ok());
        let body_length = body_length.ok_or("it is damaged")?;
        let body = self.at;
        if body_length > self.length - body {
            return Err("it is cut off".into());
        }
        self.at += body_length;
        Ok(Some(Message {
            description,
            body,
            body_length,
        }))
    }
}

impl ArrowReader {
    pub(super) fn open(path: &Path, wanted: Option<&[String]>) -> Result<Self> {
        let cannot_read = |source| Error::File {
            action: "read",
            path: path.to_path_buf(),
            source,
        };
        let mut file = File::open(path).map_err(cannot_read)?;
        let length = file.metadata().map_err(cannot_read)?.len();
        let mut start = [0; 8];
        let is_file = length >= 8 && {
            file.read_exact(&mut start).map_err(cannot_read)?;
            start.starts_with(MAGIC)
        };
        if start.starts_with(b"FEA1") {
            return Err(unusable(
                path,
                "it is in the old Feather format: write it as Feather version 2",
            ));
        }
        let mut stream = Stream {
            file,
            at: 0,
            length,
            blocks: None,
        };
        let fields = if is_file {
            read_footer(&mut stream)
        } else {
            read_schema(&mut stream)
        };
        let fields = fields.map_err(|why| unusable(path, &why))?;

        let shown = path.display().to_string();
        let columns: Vec<(String, ColumnType)> = fields
            .iter()
            .map(|field| (field.name.clone(), field.reading.column_type()))
            .collect();
        if columns.is_empty() {
            return Err(unusable(path, "it has no columns"));
        }
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        column::check_names(&shown, &names)?;
        let picked = column::pick(&shown, &columns, wanted)?;
        Ok(Self {
            path: path.to_path_buf(),
            stream,
            names: picked.iter().map(|&at| columns[at].0.clone()).collect(),
            types: picked.iter().map(|&at| columns[at].1.clone()).collect(),
            fields,
            picked,
            dictionaries: HashMap::new(),
            batch: None,
            row: 0,
        })
    }

    /// Reads messages up to the next batch that has rows; false after the last.
    fn open_batch(&mut self) -> Result<bool, String> {
        while self.batch.is_none() {
            let Some(message) = self.stream.next()? else {
                return Ok(false);
            };
            let damaged = |_: Damaged| "it is damaged".to_owned();
            let root = flat::Table::root(&message.description).map_err(damaged)?;
            let header = root.table(2).map_err(damaged)?.ok_or("it is damaged")?;
            let old = root.short(0, 0).map_err(damaged)? < FIFTH;
            if old && self.fields.iter().any(|field| field.layout.nodes > 1) {
                return Err("it has nested columns in the layout of an old Arrow version".into());
            }
            match root.byte(1).map_err(damaged)? {
                2 => self.read_dictionary(&message, header)?,
                3 => {
                    let layouts: Vec<Layout> =
                        self.fields.iter().map(|field| field.layout).collect();
                    let (rows, columns) = open_columnar(
                        &mut self.stream.file,
                        &message,
                        header,
                        &layouts,
                        &self.picked,
                    )?;
                    self.batch = (rows > 0).then_some(Batch {
                        rows,
                        next: 0,
                        columns,
                    });
                }
                _ => return Err("it is damaged".into()),
            }
        }
        Ok(true)
    }

    fn read_dictionary(&mut self, message: &Message, header: flat::Table) -> Result<(), String> {
        let damaged = |_: Damaged| "it is damaged".to_owned();
        let id = header.long(0).map_err(damaged)?;
        let uses = |&&at: &&usize| {
            let of = self.fields[at].dictionary;
            of.is_some_and(|(of, ..)| of == id)
        };
        let Some(&at) = self.picked.iter().find(uses) else {
            return Ok(());
        };
        let field = &self.fields[at];
        if matches!(field.reading, Reading::Unread(_)) {
            return Ok(());
        }
        let data = header.table(1).map_err(damaged)?.ok_or("it is damaged")?;
        let file = &mut self.stream.file;
        let (rows, columns) = open_columnar(file, message, data, &[field.values], &[0])?;
        if rows as u64 > 8 * self.stream.length {
            return Err("it is damaged".into());
        }
        let cells = match columns.first() {
            Some(column) if rows > 0 => column.cells(file, &field.reading, 0, rows)?,
            _ => Cells::Texts(Vec::new()),
        };
        let is_delta = header.byte(2).map_err(damaged)? != 0;
        match (self.dictionaries.get_mut(&id), cells) {
            (Some(Cells::Texts(all)), Cells::Texts(more)) if is_delta => all.extend(more),
            (Some(Cells::Numbers(all)), Cells::Numbers(more)) if is_delta => all.extend(more),
            (Some(Cells::Integers(all)), Cells::Integers(more)) if is_delta => all.extend(more),
            (_, cells) => drop(self.dictionaries.insert(id, cells)),
        }
        Ok(())
    }

    fn read_rows(&mut self, rows: usize) -> Result<Option<Table>, String> {
        if rows == 0 || !self.open_batch()? {
            return Ok(None);
        }
        let Some(batch) = &mut self.batch else {
            return Ok(None);
        };
        let count = rows.min(batch.rows - batch.next);
        let mut columns = Vec::with_capacity(self.picked.len());
        for (&at, columnar) in self.picked.iter().zip(&batch.columns) {
            let (field, file) = (&self.fields[at], &mut self.stream.file);
            let cells = match field.dictionary {
                Some((id, bytes, signed)) if !matches!(field.reading, Reading::Unread(_)) => {
                    let indices = columnar.indices(file, (bytes, signed), batch.next, count);
                    let of_column = |why| format!("column `{}`: {why}", shortened(&field.name));
                    look_up(
                        indices.map_err(of_column)?,
                        self.dictionaries.get(&id),
                        &field.reading,
                    )
                    .map_err(of_column)?
                }
                _ => columnar
                    .cells(file, &field.reading, batch.next, count)
                    .map_err(|why| format!("column `{}`: {why}", shortened(&field.name)))?,
            };
            columns.push(Column::new(field.name.clone(), cells));
        }
        batch.next += count;
        if batch.next == batch.rows {
            self.batch = None;
        }
        let first_row = self.row;
        self.row += count;
        Ok(Some(Table::of_checked(columns, first_row)))
    }
}

impl TableReader for ArrowReader {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn types(&self) -> &[ColumnType] {
        &self.types
    }

    fn next(&mut self, rows: usize) -> Result<Option<Table>> {
        self.read_rows(rows)
            .map_err(|why| unusable(&self.path, &why))
    }

    fn progress(&self) -> Option<f64> {
        (self.stream.length > 0).then(|| self.stream.at as f64 / self.stream.length as f64)
    }
}

/// The columns of a file, and where its messages begin.
fn read_footer(stream: &mut Stream) -> Result<Vec<Field>, String> {
    let cut = || "it is cut off".to_owned();
    let tail = 4 + MAGIC.len() as u64;
    stream.at = stream.length.checked_sub(tail).ok_or_else(cut)?;
    let size = u64::from(stream.number()?);
    if stream.bytes(MAGIC.len() as u64)? != MAGIC {
        return Err(cut());
    }
    let start = stream
        .length
        .checked_sub(tail + size)
        .filter(|_| size <= LONGEST_DESCRIPTION);
    stream.at = start.ok_or("its footer is damaged")?;
    let footer = stream.bytes(size)?;
    let damaged = |_: Damaged| "its footer is damaged".to_owned();
    let root = flat::Table::root(&footer).map_err(damaged)?;
    let schema = root
        .table(1)
        .map_err(damaged)?
        .ok_or("its footer is damaged")?;
    let mut blocks = VecDeque::new();
    for slot in [2, 3] {
        for block in root.firsts_of_three(slot).map_err(damaged)? {
            let block = u64::try_from(block)
                .ok()
                .filter(|&block| block < stream.length);
            blocks.push_back(block.ok_or("its footer is damaged")?);
        }
    }
    stream.blocks = Some(blocks);
    schema::read(schema)
}

fn read_schema(stream: &mut Stream) -> Result<Vec<Field>, String> {
    let strange = || "it is not an Arrow IPC file".to_owned();
    let first = stream.next().ok().flatten().ok_or_else(strange)?;
    let root = flat::Table::root(&first.description).map_err(|_| strange())?;
    if root.byte(1) != Ok(1) {
        return Err(strange());
    }
    let schema = root.table(2).ok().flatten().ok_or_else(strange)?;
    schema::read(schema)
}

/// The rows of a batch and the buffers of the picked columns.
fn open_columnar(
    file: &mut File,
    message: &Message,
    batch: flat::Table,
    layouts: &[Layout],
    picked: &[usize],
) -> Result<(usize, Vec<Columnar>), String> {
    let damaged = |_: Damaged| "it is damaged".to_owned();
    let cut = || "it is damaged".to_owned();
    let rows = batch.long(0).map_err(damaged)?;
    if !(0..=MOST_ROWS).contains(&rows) {
        return Err(cut());
    }
    let (nodes, buffers) = (
        batch.pairs(1).map_err(damaged)?,
        batch.pairs(2).map_err(damaged)?,
    );
    let extra = batch.longs(4).map_err(damaged)?;
    let packed = match batch.table(3).map_err(damaged)? {
        None => false,
        Some(compression) => match compression.byte(0).map_err(damaged)? {
            0 => true,
            1 => {
                return Err(
                    "it is compressed with Zstandard; write it with LZ4 or uncompressed".into(),
                );
            }
            _ => return Err(cut()),
        },
    };
    let (mut node, mut buffer, mut view) = (0, 0, 0);
    let mut places = Vec::with_capacity(layouts.len());
    for layout in layouts {
        let more = extra.get(view..view + layout.views).ok_or_else(cut)?;
        let mut count = layout.buffers;
        for &more in more {
            let more = usize::try_from(more)
                .ok()
                .filter(|&more| more <= buffers.len());
            count += more.ok_or_else(cut)?;
        }
        places.push((node, buffer, count));
        (node, buffer, view) = (node + layout.nodes, buffer + count, view + layout.views);
    }
    if node > nodes.len() || buffer > buffers.len() {
        return Err(cut());
    }
    let mut columns = Vec::with_capacity(picked.len());
    for &at in picked {
        let (node, first, count) = places[at];
        if nodes[node].0 != rows {
            return Err(cut());
        }
        let mut opened = Vec::with_capacity(count);
        for &(offset, length) in &buffers[first..first + count] {
            let place = u64::try_from(offset).ok().zip(u64::try_from(length).ok());
            let inside = |&(offset, length): &(u64, u64)| {
                offset
                    .checked_add(length)
                    .is_some_and(|end| end <= message.body_length)
            };
            let (offset, length) = place.filter(inside).ok_or_else(cut)?;
            opened.push(Buffer::open(file, message.body + offset, length, packed)?);
        }
        columns.push(Columnar { buffers: opened });
    }
    Ok((rows as usize, columns))
}

/// The cells that indices stand for.
fn look_up(
    indices: Vec<Option<i64>>,
    dictionary: Option<&Cells>,
    reading: &Reading,
) -> Result<Cells, String> {
    let count = dictionary.map_or(0, Cells::len);
    let inside = |index: i64| usize::try_from(index).ok().filter(|&index| index < count);
    let mut places = Vec::with_capacity(indices.len());
    for index in indices {
        places.push(match index {
            None => None,
            Some(index) => Some(inside(index).ok_or("it is damaged")?),
        });
    }
    Ok(match (dictionary, reading.column_type()) {
        (Some(Cells::Numbers(values)), _) => Cells::Numbers(
            places
                .into_iter()
                .map(|at| at.map_or(f64::NAN, |at| values[at]))
                .collect(),
        ),
        (Some(Cells::Integers(values)), _) => Cells::Integers(
            places
                .into_iter()
                .map(|at| at.and_then(|at| values[at]))
                .collect(),
        ),
        (Some(Cells::Texts(values)), ColumnType::Text) => Cells::Texts(
            places
                .into_iter()
                .map(|at| at.and_then(|at| values[at].clone()))
                .collect(),
        ),
        // An empty dictionary, or none: every cell is missing.
        (_, ColumnType::Number) => Cells::Numbers(vec![f64::NAN; places.len()]),
        (_, ColumnType::Integer) => Cells::Integers(vec![None; places.len()]),
        _ => Cells::Texts(vec![None; places.len()]),
    })
}

fn unusable(path: &Path, why: &str) -> Error {
    Error::Invalid(format!("`{}` cannot be read: {why}", path.display()))
}
