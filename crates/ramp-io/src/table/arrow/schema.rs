//! The columns that an Arrow schema describes, and which buffers of a batch are theirs.

use super::super::column::ColumnType;
use super::super::iso::Unit;
use super::flat::{Damaged, Fields, Table, Value};
use std::result::Result;

/// Deeper nesting is no table.
const DEEPEST: usize = 50;

/// How a column's values become cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Null,
    Bool,
    Integer {
        bytes: usize,
        signed: bool,
    },
    Float {
        bytes: usize,
    },
    /// With offsets of 4 or 8 bytes.
    Text {
        bytes: usize,
    },
    TextView,
    Date {
        bytes: usize,
    },
    Time {
        unit: Unit,
        bytes: usize,
    },
    Timestamp {
        unit: Unit,
        utc: bool,
    },
    Decimal {
        bytes: usize,
        scale: i32,
    },
    Unread(String),
}

impl Reading {
    pub(super) fn column_type(&self) -> ColumnType {
        match self {
            Reading::Integer {
                bytes: 8,
                signed: false,
            } => ColumnType::Text,
            Reading::Integer { .. } => ColumnType::Integer,
            Reading::Float { .. } => ColumnType::Number,
            Reading::Unread(kind) => ColumnType::Unread(kind.clone()),
            _ => ColumnType::Text,
        }
    }
}

/// One column of the schema.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// The reading of the values, which stand in the dictionary if it has one.
    pub(super) reading: Reading,
    /// The dictionary's number, and bytes and sign of the indices into it.
    pub(super) dictionary: Option<(i64, usize, bool)>,
    /// What its part of a record batch looks like.
    pub(super) layout: Layout,
    /// The same for a dictionary batch.
    pub(super) values: Layout,
}

/// How many entries of a batch's lists belong to a column and its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) nodes: usize,
    pub(super) buffers: usize,
    /// Columns of views, which have as many more buffers as the batch says.
    pub(super) views: usize,
}

/// The columns of a schema; the error says in half a sentence what is wrong with it.
pub(super) fn read(schema: Table) -> Result<Vec<Field>, String> {
    let damaged = |_: Damaged| "its schema is damaged".to_owned();
    if schema.short(0, 0).map_err(damaged)? != 0 {
        return Err("it was written on a big-endian machine".into());
    }
    let fields = schema.tables(1).map_err(damaged)?;
    // Fields may be shared within a damaged buffer; without a limit a few bytes could describe more fields than there is time.
    let mut budget = 1 << 20;
    let read = |field| read_field(field, &mut budget);
    fields
        .into_iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(damaged)
}

fn read_field(field: Table, budget: &mut usize) -> Result<Field, Damaged> {
    let name = field.text(0)?.unwrap_or_default().to_owned();
    let kind = field.byte(2)?;
    let mut reading = read_type(kind, field.table(3)?)?;
    let values = layout(field, 0, budget, false)?;
    let dictionary = match field.table(4)? {
        None => None,
        Some(dictionary) => {
            // Without an index type it is a signed 32-bit number.
            let (bits, signed) = match dictionary.table(1)? {
                Some(int) => (int.int(0, 0)?, int.byte(1)? != 0),
                None => (32, true),
            };
            let bytes = usize::try_from(bits / 8).unwrap_or(0);
            if !matches!(bytes, 1 | 2 | 4 | 8) {
                reading = Reading::Unread("dictionary with unusual indices".into());
            }
            Some((dictionary.long(0)?, bytes, signed))
        }
    };
    Ok(Field {
        name,
        layout: layout(field, 0, budget, true)?,
        values,
        reading,
        dictionary,
    })
}

fn read_type(kind: u8, of: Option<Table>) -> Result<Reading, Damaged> {
    let unread = |name: &str| Ok(Reading::Unread(name.to_owned()));
    let of = || of.ok_or(Damaged);
    let width = |bits: i32, known: &[usize]| {
        let bytes = usize::try_from(bits / 8).unwrap_or(0);
        if known.contains(&bytes) {
            Ok(bytes)
        } else {
            Err(Damaged)
        }
    };
    let unit = |unit: i16| match unit {
        0 => Ok(Unit::Second),
        1 => Ok(Unit::Millisecond),
        2 => Ok(Unit::Microsecond),
        3 => Ok(Unit::Nanosecond),
        _ => Err(Damaged),
    };
    match kind {
        1 => Ok(Reading::Null),
        2 => Ok(Reading::Integer {
            bytes: width(of()?.int(0, 0)?, &[1, 2, 4, 8])?,
            signed: of()?.byte(1)? != 0,
        }),
        3 => match of()?.short(0, 0)? {
            precision @ 0..=2 => Ok(Reading::Float {
                bytes: 2 << precision,
            }),
            _ => Err(Damaged),
        },
        5 => Ok(Reading::Text { bytes: 4 }),
        6 => Ok(Reading::Bool),
        7 => match of()?.int(2, 128)? {
            bits @ (32 | 64 | 128) => Ok(Reading::Decimal {
                bytes: bits as usize / 8,
                scale: of()?.int(1, 0)?,
            }),
            _ => unread("decimal of more than 38 digits"),
        },
        8 => Ok(Reading::Date {
            bytes: if of()?.short(0, 1)? == 0 { 4 } else { 8 },
        }),
        9 => Ok(Reading::Time {
            unit: unit(of()?.short(0, 1)?)?,
            bytes: width(of()?.int(1, 32)?, &[4, 8])?,
        }),
        10 => Ok(Reading::Timestamp {
            unit: unit(of()?.short(0, 0)?)?,
            // With a time zone the count is in UTC; the zone is only for display.
            utc: of()?.text(1)?.is_some_and(|zone| !zone.is_empty()),
        }),
        20 => Ok(Reading::Text { bytes: 8 }),
        24 => Ok(Reading::TextView),
        4 | 19 | 23 => unread("binary"),
        11 => unread("interval"),
        12 | 16 | 21 | 25 | 26 => unread("list"),
        13 => unread("struct"),
        14 => unread("union"),
        15 => unread("binary of fixed length"),
        17 => unread("map"),
        18 => unread("duration"),
        22 => unread("run-end encoded"),
        _ => Err(Damaged),
    }
}

fn layout(
    field: Table,
    depth: usize,
    budget: &mut usize,
    encoded: bool,
) -> Result<Layout, Damaged> {
    *budget = budget.checked_sub(1).ok_or(Damaged)?;
    if depth > DEEPEST {
        return Err(Damaged);
    }
    if encoded && field.table(4)?.is_some() {
        return Ok(Layout {
            nodes: 1,
            buffers: 2,
            views: 0,
        });
    }
    let kind = field.byte(2)?;
    let (buffers, nested) = match kind {
        1 => (0, false),
        2 | 3 | 6..=11 | 15 | 18 => (2, false),
        4 | 5 | 19 | 20 => (3, false),
        12 | 17 | 21 => (2, true),
        13 | 16 => (1, true),
        // A dense union has offsets beside its types.
        14 => match field.table(3)? {
            Some(union) => (1 + usize::from(union.short(0, 0)? == 1), true),
            None => return Err(Damaged),
        },
        22 => (0, true),
        23 | 24 => (2, false),
        25 | 26 => (3, true),
        _ => return Err(Damaged),
    };
    let mut all = Layout {
        nodes: 1,
        buffers,
        views: usize::from(matches!(kind, 23 | 24)),
    };
    if nested {
        for child in field.tables(5)? {
            let child = layout(child, depth + 1, budget, true)?;
            all.nodes += child.nodes;
            all.buffers += child.buffers;
            all.views += child.views;
        }
    }
    Ok(all)
}

/// The schema of columns to be written.
pub(super) fn write(columns: &[(String, ColumnType)]) -> Fields {
    let field = |(name, kind): &(String, ColumnType)| {
        let (number, of) = match kind {
            ColumnType::Integer => (2, vec![(0, Value::Int(64)), (1, Value::Byte(1))]),
            ColumnType::Number => (3, vec![(0, Value::Short(2))]),
            _ => (5, vec![]),
        };
        vec![
            (0, Value::Text(name.clone())),
            (1, Value::Byte(1)),
            (2, Value::Byte(number)),
            (3, Value::Table(of)),
            (5, Value::Tables(vec![])),
        ]
    };
    vec![
        (0, Value::Short(0)),
        (1, Value::Tables(columns.iter().map(field).collect())),
    ]
}
