//! Writing Arrow IPC files.

use super::super::column::{Cells, Column, ColumnType, Table};
use super::super::{TableWriter, check_columns};
use super::flat::{self, Fields, Value};
use super::{FIFTH, MAGIC, schema};
use crate::{Error, Result};
use ramp::storage::PendingFile;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Larger tables are cut into batches of so many rows.
const ROWS: usize = 1 << 16;

pub(in super::super) struct ArrowWriter {
    path: PathBuf,
    shown: String,
    columns: Vec<(String, ColumnType)>,
    file: BufWriter<PendingFile>,
    at: u64,
    /// Place, length of the description and length of the body of each batch, for the footer.
    blocks: Vec<[i64; 3]>,
}

impl ArrowWriter {
    pub(in super::super) fn create(path: &Path, columns: &[(String, ColumnType)]) -> Result<Self> {
        let mut this = Self {
            path: path.to_path_buf(),
            shown: path.display().to_string(),
            columns: columns.to_vec(),
            file: BufWriter::with_capacity(1 << 16, PendingFile::create(path)?),
            at: 0,
            blocks: Vec::new(),
        };
        let schema = schema::write(columns);
        let started = this
            .put(&[MAGIC, &[0, 0]].concat())
            .and_then(|()| this.message(1, schema, &[]));
        started.map_err(|source| this.cannot_write(source))?;
        Ok(this)
    }

    fn cannot_write(&self, source: io::Error) -> Error {
        Error::File {
            action: "write",
            path: self.path.clone(),
            source,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn message(&mut self, kind: u8, header: Fields, body: &[u8]) -> io::Result<()> {
        let description = flat::write(vec![
            (0, Value::Short(FIFTH)),
            (1, Value::Byte(kind)),
            (2, Value::Table(header)),
            (3, Value::Long(body.len() as i64)),
        ]);
        self.put(&u32::MAX.to_le_bytes())?;
        self.put(&(description.len() as u32).to_le_bytes())?;
        self.put(&description)?;
        self.put(body)
    }

    fn batch(&mut self, columns: &[Column], first: usize, rows: usize) -> Result<()> {
        let (mut body, mut nodes, mut buffers) = (Vec::new(), Vec::new(), Vec::new());
        for column in columns {
            let missing = add_column(&mut body, &mut buffers, &column.cells, first, rows)
                .ok_or_else(|| {
                    Error::Invalid(format!(
                        "column `{}` has more than 2 GB of text in {rows} rows, too much for `{}`",
                        column.name, self.shown
                    ))
                })?;
            nodes.extend([rows as i64, missing]);
        }
        let start = self.at;
        let header = vec![
            (0, Value::Long(rows as i64)),
            (1, Value::Structs(nodes.len() / 2, nodes)),
            (2, Value::Structs(buffers.len() / 2, buffers)),
        ];
        self.message(3, header, &body)
            .map_err(|source| self.cannot_write(source))?;
        let description = self.at - start - body.len() as u64;
        self.blocks
            .push([start as i64, description as i64, body.len() as i64]);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.put(&[u32::MAX.to_le_bytes(), [0; 4]].concat())?;
        let blocks = self.blocks.iter().flatten().copied().collect();
        let footer = flat::write(vec![
            (0, Value::Short(FIFTH)),
            (1, Value::Table(schema::write(&self.columns))),
            (2, Value::Structs(0, vec![])),
            (3, Value::Structs(self.blocks.len(), blocks)),
        ]);
        self.put(&footer)?;
        self.put(&(footer.len() as u32).to_le_bytes())?;
        self.put(MAGIC)
    }
}

/// Adds the buffers of one column's rows to a body, and says how many cells are missing.
fn add_column(
    body: &mut Vec<u8>,
    buffers: &mut Vec<i64>,
    cells: &Cells,
    first: usize,
    rows: usize,
) -> Option<i64> {
    let end = first + rows;
    let there: Vec<bool> = match cells {
        Cells::Numbers(cells) => cells[first..end].iter().map(|x| !x.is_nan()).collect(),
        Cells::Integers(cells) => cells[first..end].iter().map(Option::is_some).collect(),
        Cells::Texts(cells) => cells[first..end].iter().map(Option::is_some).collect(),
        Cells::Unread { .. } => vec![false; rows],
    };
    let missing = there.iter().filter(|&&there| !there).count();
    let mut add = |bytes: &mut dyn Iterator<Item = u8>| {
        let start = body.len();
        body.extend(bytes);
        buffers.extend([start as i64, (body.len() - start) as i64]);
        body.resize(body.len().next_multiple_of(8), 0);
    };
    if missing == 0 {
        add(&mut std::iter::empty());
    } else {
        let byte = |bits: &[bool]| {
            bits.iter()
                .rev()
                .fold(0, |byte, &bit| byte << 1 | u8::from(bit))
        };
        add(&mut there.chunks(8).map(byte));
    }
    match cells {
        Cells::Numbers(cells) => add(&mut cells[first..end].iter().flat_map(|x| x.to_le_bytes())),
        Cells::Integers(cells) => {
            add(&mut cells[first..end]
                .iter()
                .flat_map(|x| x.unwrap_or(0).to_le_bytes()));
        }
        Cells::Texts(cells) => {
            let texts = || {
                cells[first..end]
                    .iter()
                    .map(|cell| cell.as_deref().unwrap_or_default())
            };
            let mut offsets = vec![0_i32];
            for text in texts() {
                let length = i32::try_from(text.len()).ok()?;
                offsets.push(offsets.last()?.checked_add(length)?);
            }
            add(&mut offsets.iter().flat_map(|x| x.to_le_bytes()));
            add(&mut texts().flat_map(str::bytes));
        }
        Cells::Unread { .. } => {}
    }
    Some(missing as i64)
}

impl TableWriter for ArrowWriter {
    fn write(&mut self, table: &Table) -> Result<()> {
        check_columns(&self.shown, &self.columns, table)?;
        for first in (0..table.rows()).step_by(ROWS) {
            self.batch(table.columns(), first, ROWS.min(table.rows() - first))?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.end().map_err(|source| self.cannot_write(source))?;
        let path = self.path;
        let file = self.file.into_inner().map_err(|e| Error::File {
            action: "write",
            path,
            source: e.into_error(),
        })?;
        Ok(file.commit()?)
    }
}
