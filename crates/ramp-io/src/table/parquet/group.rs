//! Some columns of a row group on their way from checked pages to arrays.

use super::super::column::unread_field;
use super::super::guard::{guarded, unusable};
use super::super::{Damage, TableError};
use super::pages::CheckedPages;
use super::{headers, plain_field};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Compression, LogicalType};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::SchemaDescriptor;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Texts may all stand for one value of a dictionary, so their sum has no limit in the file.
const LONGEST_TEXTS: usize = 1 << 30;

/// The field that a column of the file becomes: flat, texts as views of the pages they stand in, or without a reading.
pub(super) fn readable(schema: &SchemaDescriptor, root: usize, field: &FieldRef) -> FieldRef {
    let name = field.name();
    let uuid = || {
        let leaf = schema.root_schema().get_fields().get(root);
        let logical = leaf.and_then(|leaf| leaf.get_basic_info().logical_type_ref());
        matches!(logical, Some(LogicalType::Uuid))
    };
    let kind = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        kind => kind,
    };
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            plain_field(name, DataType::Utf8View)
        }
        // Old writers do not say that bytes are text; those that are not are found when they are read.
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            plain_field(name, DataType::Utf8View)
        }
        DataType::FixedSizeBinary(16) if uuid() => plain_field(name, DataType::Utf8),
        DataType::FixedSizeBinary(_) => Arc::new(unread_field(name, "binary of fixed length")),
        DataType::Duration(_) => Arc::new(unread_field(name, "duration")),
        DataType::Interval(_) => Arc::new(unread_field(name, "interval")),
        kind if kind.is_nested() => Arc::new(unread_field(name, "list or struct")),
        kind => plain_field(name, kind.clone()),
    }
}

/// The type that the decoder is to make of a column: texts as views, so that a value of a dictionary is not copied for each of
/// its rows.
pub(super) fn decoded(field: &FieldRef) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        kind => kind,
    };
    let kind = match kind {
        DataType::Utf8 | DataType::LargeUtf8 => &DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => &DataType::BinaryView,
        kind => kind,
    };
    Arc::new(Field::clone(field).with_data_type(kind.clone()))
}

/// Columns that one thread decodes.
pub(super) struct Part {
    file: Arc<File>,
    bytes: u64,
    /// Places in the file's schema.
    roots: Vec<usize>,
    /// What they become.
    fields: Vec<FieldRef>,
    levels: FieldLevels,
    reader: Option<ParquetRecordBatchReader>,
}

impl Part {
    /// Divides columns among the threads by their bytes; also the order in which the columns then come.
    pub(super) fn divide(
        path: &Path,
        metadata: &ParquetMetaData,
        schema: &Schema,
        decoded: &Fields,
        picked: &[usize],
    ) -> Result<(Vec<Part>, Vec<usize>), TableError> {
        let described = metadata.file_metadata().schema_descr();
        let mut sizes = vec![0_u64; schema.fields().len()];
        if let Some(group) = metadata.row_groups().first() {
            for leaf in 0..described.num_columns().min(group.num_columns()) {
                let size = group.column(leaf).uncompressed_size();
                let root = described.get_column_root_idx(leaf);
                if let Some(sum) = sizes.get_mut(root) {
                    *sum = sum.saturating_add(u64::try_from(size).unwrap_or(0));
                }
            }
        }
        let count = rayon::current_num_threads().min(picked.len()).max(1);
        let mut shares: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new()); count];
        let mut largest_first = picked.to_vec();
        largest_first.sort_by_key(|&at| std::cmp::Reverse(sizes[at]));
        for at in largest_first {
            if let Some(least) = shares.iter_mut().min_by_key(|share| share.0) {
                least.0 = least.0.saturating_add(sizes[at]);
                least.1.push(at);
            }
        }
        let mut parts = Vec::new();
        for (_, mut roots) in shares {
            // The decoder yields columns in the order of the file.
            roots.sort_unstable();
            parts.extend(Part::new(path, described, schema, decoded, roots)?);
        }
        let order = parts.iter().flat_map(|part| part.roots.clone()).collect();
        Ok((parts, order))
    }

    fn new(
        path: &Path,
        described: &SchemaDescriptor,
        schema: &Schema,
        decoded: &Fields,
        roots: Vec<usize>,
    ) -> Result<Option<Self>, TableError> {
        if roots.is_empty() {
            return Ok(None);
        }
        // A handle of its own: threads must not move each other's place in the file.
        let file = File::open(path).map_err(|e| unusable(path, e))?;
        let bytes = file.metadata().map_err(|e| unusable(path, e))?.len();
        let levels = guarded(path, || {
            let mask = ProjectionMask::roots(described, roots.iter().copied());
            parquet_to_arrow_field_levels(described, mask, Some(decoded))
        })?;
        Ok(Some(Part {
            file: Arc::new(file),
            bytes,
            fields: roots.iter().map(|&r| schema.fields()[r].clone()).collect(),
            roots,
            levels,
            reader: None,
        }))
    }

    /// Begins a row group.
    pub(super) fn open(
        &mut self,
        path: &Path,
        metadata: &Arc<ParquetMetaData>,
        number: usize,
        at_once: usize,
    ) -> Result<(), TableError> {
        self.reader = None;
        let group = &metadata.row_groups()[number];
        let described = metadata.file_metadata().schema_descr();
        for leaf in 0..described.num_columns() {
            let root = described.get_column_root_idx(leaf);
            let Ok(place) = self.roots.binary_search(&root) else {
                continue;
            };
            let name = self.fields[place].name();
            let cut = || {
                unusable(
                    path,
                    Damage::ColumnCutOff {
                        column: name.clone(),
                    },
                )
            };
            let chunk = group.columns().get(leaf).ok_or_else(cut)?;
            check_codec(name, chunk).map_err(|why| unusable(path, why))?;
            let start = chunk.dictionary_page_offset();
            let start = start.unwrap_or(chunk.data_page_offset());
            let start = u64::try_from(start)
                .ok()
                .zip(u64::try_from(chunk.compressed_size()).ok());
            let inside = |&(start, size): &(u64, u64)| {
                start.checked_add(size).is_some_and(|end| end <= self.bytes)
            };
            let (start, size) = start.filter(inside).ok_or_else(cut)?;
            let mut file: &File = &self.file;
            headers::check(&mut file, start, size).map_err(|why| unusable(path, why))?;
        }
        let group = Group {
            file: self.file.clone(),
            metadata: metadata.clone(),
            number,
        };
        self.reader = Some(guarded(path, || {
            ParquetRecordBatchReader::try_new_with_row_groups(&self.levels, &group, at_once, None)
        })?);
        Ok(())
    }

    /// The next rows of the group, at most so many.
    pub(super) fn next(
        &mut self,
        path: &Path,
        most: usize,
        row: usize,
    ) -> Result<Vec<ArrayRef>, TableError> {
        let Some(reader) = &mut self.reader else {
            return Ok(Vec::new());
        };
        let rows = guarded(path, || reader.next().transpose())?;
        let fewer = |field: &FieldRef| Damage::FewerValues {
            column: field.name().clone(),
        };
        let Some(rows) = rows.filter(|rows| rows.num_rows() <= most) else {
            return Err(unusable(path, fewer(&self.fields[0])));
        };
        let cells = rows.columns().iter().zip(&self.fields);
        cells
            .map(|(cells, field)| finish(cells, field, row).map_err(|why| unusable(path, why)))
            .collect()
    }
}

/// Decoded cells as the field says.
fn finish(cells: &ArrayRef, field: &FieldRef, row: usize) -> Result<ArrayRef, Damage> {
    let cells: ArrayRef = match cells.data_type() {
        DataType::BinaryView => {
            let bytes = cells.as_binary_view();
            match bytes.clone().to_string_view() {
                Ok(texts) => Arc::new(texts),
                Err(_) => {
                    let not_text = |bytes: &Option<&[u8]>| {
                        bytes.is_some_and(|bytes| std::str::from_utf8(bytes).is_err())
                    };
                    let at = bytes.iter().position(|bytes| not_text(&bytes)).unwrap_or(0);
                    return Err(Damage::NotText {
                        column: field.name().clone(),
                        row: row + at + 1,
                        start: String::from_utf8_lossy(bytes.value(at)).into_owned(),
                    });
                }
            }
        }
        DataType::FixedSizeBinary(16) => {
            let spelled = cells
                .as_fixed_size_binary()
                .iter()
                .map(|id| id.map(spell_uuid));
            Arc::new(spelled.collect::<StringArray>())
        }
        kind if kind == field.data_type() => cells.clone(),
        _ => arrow_cast::cast(cells, field.data_type()).map_err(|e| Damage::Said {
            said: e.to_string(),
        })?,
    };
    if let Some(views) = cells.as_string_view_opt() {
        // The length is the low half of a view.
        let length: usize = views.views().iter().map(|&view| view as u32 as usize).sum();
        if length > LONGEST_TEXTS {
            return Err(Damage::LongTexts {
                column: field.name().clone(),
            });
        }
    }
    Ok(cells)
}

fn spell_uuid(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    let parts: Vec<&str> = parts
        .iter()
        .filter_map(|&(a, b)| digits.get(a..b))
        .collect();
    parts.join("-")
}

/// Checks that a column is packed in a way that can be unpacked.
fn check_codec(name: &str, chunk: &ColumnChunkMetaData) -> Result<(), Damage> {
    let codec = match chunk.compression() {
        Compression::BROTLI(_) => "Brotli",
        Compression::LZO => "LZO",
        _ => return Ok(()),
    };
    Err(Damage::Compression {
        column: name.to_owned(),
        codec,
    })
}

/// One row group, whose pages are checked on their way.
struct Group {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    number: usize,
}

impl RowGroups for Group {
    fn num_rows(&self) -> usize {
        usize::try_from(self.metadata.row_group(self.number).num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        let group = self.metadata.row_group(self.number);
        let chunk = group.column(leaf);
        let descriptor = group.schema_descr().column(leaf);
        let pages = SerializedPageReader::new(self.file.clone(), chunk, self.num_rows(), None)?;
        let pages: Box<dyn PageReader> = Box::new(CheckedPages {
            pages: Box::new(pages),
            physical_type: descriptor.physical_type(),
            optional: descriptor.max_def_level() > 0,
        });
        Ok(Box::new(Once(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata.row_group(self.number)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of one column of one row group.
struct Once(Option<Box<dyn PageReader>>);

impl Iterator for Once {
    type Item = Result<Box<dyn PageReader>, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for Once {}
