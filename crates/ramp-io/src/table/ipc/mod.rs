//! Arrow IPC tables: files (also called Feather) and streams, also through a pipe, decoded by the official crate.
//!
//! Messages are found here, so that every length is checked against the file before memory is taken for it. Of a record batch only the columns
//! that are asked for are read, but those with all their rows: reading takes as much memory as they have in the largest batch of a file, and some rows of
//! it for what is handed on. The official crate decodes no part of a batch's rows.

mod message;
mod needed;
mod write;

pub(super) use write::{IpcStreamWriter, IpcWriter};

use super::column::{self, unread_field};
use super::guard::{guarded, unusable};
use super::{Damage, TableError, TableReader};
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, NullArray, RecordBatch};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Endianness, MessageHeader};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use message::{Messages, check_batch};
use needed::needed;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Texts may all stand for the same bytes, so their sum has no limit in the file.
const LONGEST_TEXTS: usize = 1 << 30;

pub(super) struct IpcReader {
    path: PathBuf,
    messages: Messages,
    /// All columns of the file, as it has them.
    file_schema: SchemaRef,
    /// The columns that it yields.
    schema: SchemaRef,
    /// Places in the file of those that are decoded.
    decoded: Vec<usize>,
    /// For each yielded column its place among the decoded ones, or none where it has no reading.
    places: Vec<Option<usize>>,
    /// Numbers of the dictionaries that decoded columns use.
    used: HashSet<i64>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// Rows that nobody has asked for yet, as the file has them.
    waiting: Option<RecordBatch>,
    /// The row that comes next in the file, and those that are asked for.
    row: u64,
    wanted: Range<u64>,
}

/// What a file's schema says.
struct Described {
    schema: Schema,
    /// For each column the number of its dictionary.
    dictionaries: Vec<Option<i64>>,
}

impl Described {
    fn of(path: &Path, schema: arrow_ipc::Schema<'_>) -> Result<Self, TableError> {
        if schema.endianness() != Endianness::Little {
            return Err(unusable(path, Damage::BigEndian));
        }
        let fields = schema.fields().into_iter().flatten();
        let dictionaries = fields
            .map(|field| field.dictionary().map(|dictionary| dictionary.id()))
            .collect();
        let schema = guarded(path, || Ok::<_, ArrowError>(fb_to_schema(schema)));
        Ok(Self {
            schema: schema.map_err(|_| unusable(path, Damage::Schema))?,
            dictionaries,
        })
    }
}

impl IpcReader {
    pub(super) fn open(path: &Path, wanted: Option<&[String]>) -> Result<Self> {
        let cannot_read = |source| Error::File {
            action: "read",
            path: path.to_path_buf(),
            source,
        };
        let file = File::open(path).map_err(cannot_read)?;
        let length = file.metadata().map_err(cannot_read)?.len();
        let mut messages = Messages::new(file, length);
        let damaged = |why| unusable(path, why);
        let described = if messages.is_file().map_err(damaged)? {
            let footer = messages.read_footer().map_err(damaged)?;
            let footer = arrow_ipc::root_as_footer(&footer);
            let footer = footer.map_err(|_| damaged(Damage::Footer))?;
            messages.take_blocks(&footer).map_err(damaged)?;
            let schema = footer.schema().ok_or_else(|| damaged(Damage::Footer))?;
            Described::of(path, schema)?
        } else {
            first_schema(path, &mut messages)?
        };
        Self::of(path, messages, described, wanted)
    }

    /// What comes through a pipe, by the name that people know it by.
    pub(super) fn of_pipe(name: &Path, pipe: Box<dyn Read + Send>) -> Result<Self> {
        let mut messages = Messages::of_pipe(pipe).map_err(|why| unusable(name, why))?;
        let described = first_schema(name, &mut messages)?;
        Self::of(name, messages, described, None)
    }

    fn of(
        path: &Path,
        messages: Messages,
        described: Described,
        wanted: Option<&[String]>,
    ) -> Result<Self> {
        let fields = described.schema.fields();
        if fields.is_empty() {
            return Err(unusable(path, Damage::NoColumns).into());
        }
        let all = Schema::new(fields.iter().map(readable).collect::<Vec<_>>());
        column::check_names(path, &all)?;
        let picked = column::pick(path, &all, wanted)?;
        let has_reading = |at: &usize| column::unread_kind(all.field(*at)).is_none();
        let mut decoded: Vec<usize> = picked.iter().copied().filter(has_reading).collect();
        decoded.sort_unstable();
        Ok(Self {
            path: path.to_path_buf(),
            messages,
            schema: Arc::new(all.project(&picked).map_err(TableError::from)?),
            places: picked
                .iter()
                .map(|at| decoded.binary_search(at).ok())
                .collect(),
            used: decoded
                .iter()
                .filter_map(|&at| described.dictionaries[at])
                .collect(),
            file_schema: Arc::new(described.schema),
            decoded,
            dictionaries: HashMap::new(),
            waiting: None,
            row: 0,
            wanted: 0..u64::MAX,
        })
    }

    /// How many rows a file has, from the descriptions of its batches.
    pub(super) fn count(path: &Path) -> Result<u64> {
        let mut counted = Self::open(path, None)?;
        let damaged = |why| unusable(path, why);
        let mut rows = 0_u64;
        while let Some(envelope) = counted.messages.next().map_err(damaged)? {
            let message = envelope.message().map_err(damaged)?;
            if let Some(batch) = message.header_as_record_batch() {
                let own = u64::try_from(batch.length()).ok();
                let all = own.and_then(|own| rows.checked_add(own));
                rows = all.ok_or_else(|| damaged(Damage::Rows))?;
            }
        }
        Ok(rows)
    }

    /// Reads only these rows: batches that have none of them are passed over.
    pub(super) fn only(&mut self, rows: Range<u64>) {
        self.wanted = rows;
    }

    /// Reads messages up to the next batch that has rows; none after the last.
    fn read_batch(&mut self) -> Result<Option<RecordBatch>, TableError> {
        loop {
            let next = self.messages.next();
            let Some(envelope) = next.map_err(|why| unusable(&self.path, why))? else {
                return Ok(None);
            };
            let damaged = |why| unusable(&self.path, why);
            let message = envelope.message().map_err(damaged)?;
            let version = message.version();
            match message.header_type() {
                MessageHeader::DictionaryBatch => {
                    let header = message.header_as_dictionary_batch();
                    let header = header.ok_or_else(|| damaged(Damage::Damaged))?;
                    if !self.used.contains(&header.id()) {
                        continue;
                    }
                    let data = header.data().ok_or_else(|| damaged(Damage::Damaged))?;
                    let body = self.messages.body(&envelope, None).map_err(damaged)?;
                    check_batch(&data, &body).map_err(damaged)?;
                    let (schema, all) = (&self.file_schema, &mut self.dictionaries);
                    guarded(&self.path, || {
                        read_dictionary(&body, header, schema, all, &version)
                    })?;
                }
                MessageHeader::RecordBatch => {
                    let header = message.header_as_record_batch();
                    let header = header.ok_or_else(|| damaged(Damage::Damaged))?;
                    let first = self.row;
                    self.row = first.saturating_add(u64::try_from(header.length()).unwrap_or(0));
                    if self.row <= self.wanted.start || first >= self.wanted.end {
                        continue;
                    }
                    let needed = needed(&self.file_schema, &self.decoded, &header);
                    let body = self.messages.body(&envelope, needed).map_err(damaged)?;
                    check_batch(&header, &body).map_err(damaged)?;
                    let batch = guarded(&self.path, || {
                        read_record_batch(
                            &body,
                            header,
                            self.file_schema.clone(),
                            &self.dictionaries,
                            Some(&self.decoded),
                            &version,
                        )
                    })?;
                    let all = batch.num_rows();
                    let within = |row: u64| (row.saturating_sub(first) as usize).min(all);
                    let (from, to) = (within(self.wanted.start), within(self.wanted.end));
                    if from < to {
                        return Ok(Some(batch.slice(from, to - from)));
                    }
                }
                _ => return Err(damaged(Damage::Damaged)),
            }
        }
    }

    /// Rows as they are yielded: flat columns in the wanted order.
    fn finish(&self, rows: &RecordBatch) -> Result<RecordBatch, TableError> {
        let cells = self.places.iter().zip(self.schema.fields());
        let cells = cells.map(|(place, field)| match place {
            None => Ok(Arc::new(NullArray::new(rows.num_rows())) as ArrayRef),
            Some(place) => flat(&self.path, rows.column(*place), field),
        });
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        column::batch(self.schema.clone(), cells, Some(rows.num_rows()))
    }
}

impl TableReader for IpcReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        if rows == 0 {
            return Ok(None);
        }
        let all = match self.waiting.take() {
            Some(waiting) => waiting,
            None => match self.read_batch()? {
                Some(batch) => batch,
                None => return Ok(None),
            },
        };
        let count = rows.min(all.num_rows());
        if count < all.num_rows() {
            self.waiting = Some(all.slice(count, all.num_rows() - count));
        }
        Ok(Some(self.finish(&all.slice(0, count))?))
    }

    fn progress(&self) -> Option<f64> {
        self.messages.progress()
    }
}

/// The schema that a stream begins with.
fn first_schema(path: &Path, messages: &mut Messages) -> Result<Described, TableError> {
    let strange = || unusable(path, Damage::NotArrow);
    let first = messages.next().ok().flatten().ok_or_else(strange)?;
    let message = first.message().map_err(|_| strange())?;
    let schema = message.header_as_schema().ok_or_else(strange)?;
    Described::of(path, schema)
}

/// The field that a column of the file becomes: flat, or without a reading.
pub(super) fn readable(field: &FieldRef) -> FieldRef {
    let (name, flat) = match field.data_type() {
        DataType::Dictionary(_, values) => (field.name(), values.as_ref()),
        kind => (field.name(), kind),
    };
    let unread = |kind| Arc::new(unread_field(name, kind));
    match flat {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => unread("binary"),
        DataType::FixedSizeBinary(_) => unread("binary of fixed length"),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => unread("list"),
        DataType::Struct(_) => unread("struct"),
        DataType::Union(..) => unread("union"),
        DataType::Map(..) => unread("map"),
        DataType::RunEndEncoded(..) => unread("run-end encoded"),
        DataType::Duration(_) => unread("duration"),
        DataType::Interval(_) => unread("interval"),
        DataType::Dictionary(..) => unread("dictionary of dictionaries"),
        // A text of a dictionary is then not copied for each of its rows.
        DataType::Utf8 | DataType::LargeUtf8 if flat != field.data_type() => {
            Arc::new(Field::new(name, DataType::Utf8View, true))
        }
        kind => Arc::new(Field::new(name, kind.clone(), true)),
    }
}

fn flat(path: &Path, cells: &ArrayRef, field: &FieldRef) -> Result<ArrayRef, TableError> {
    let cells = match cells.data_type() == field.data_type() {
        true => cells.clone(),
        false => guarded(path, || arrow_cast::cast(cells, field.data_type()))?,
    };
    if let Some(views) = cells.as_string_view_opt() {
        // The length is the low half of a view.
        let length: usize = views.views().iter().map(|&view| view as u32 as usize).sum();
        if length > LONGEST_TEXTS {
            let column = field.name().clone();
            return Err(unusable(path, Damage::LongTexts { column }));
        }
    }
    Ok(cells)
}
