//! FlatBuffers, as far as Arrow's messages need them: every offset checked when reading, children after parents when writing.

/// Why a message cannot be read: an offset that leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

type Result<T> = std::result::Result<T, Damaged>;

fn bytes<const N: usize>(buffer: &[u8], at: usize) -> Result<[u8; N]> {
    let end = at.checked_add(N).ok_or(Damaged)?;
    buffer
        .get(at..end)
        .and_then(|part| part.try_into().ok())
        .ok_or(Damaged)
}

/// The place that an offset leads to.
fn follow(buffer: &[u8], at: usize) -> Result<usize> {
    let step = u32::from_le_bytes(bytes(buffer, at)?) as usize;
    at.checked_add(step)
        .filter(|&to| to < buffer.len())
        .ok_or(Damaged)
}

/// A table in a buffer.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    pub(super) fn root(buffer: &'a [u8]) -> Result<Self> {
        let at = follow(buffer, 0)?;
        Ok(Self { buffer, at })
    }

    /// Where a field stands, if the table has it.
    fn field(&self, slot: usize) -> Result<Option<usize>> {
        let back = i64::from(i32::from_le_bytes(bytes(self.buffer, self.at)?));
        let fields = usize::try_from(self.at as i64 - back).map_err(|_| Damaged)?;
        let size = usize::from(u16::from_le_bytes(bytes(self.buffer, fields)?));
        let place = 4 + 2 * slot;
        if place + 2 > size {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(bytes(self.buffer, fields + place)?);
        Ok((offset > 0).then(|| self.at + usize::from(offset)))
    }

    fn scalar<const N: usize>(&self, slot: usize) -> Result<Option<[u8; N]>> {
        self.field(slot)?
            .map(|at| bytes(self.buffer, at))
            .transpose()
    }

    pub(super) fn byte(&self, slot: usize) -> Result<u8> {
        Ok(self.scalar::<1>(slot)?.map_or(0, |raw| raw[0]))
    }

    pub(super) fn short(&self, slot: usize, default: i16) -> Result<i16> {
        Ok(self.scalar(slot)?.map_or(default, i16::from_le_bytes))
    }

    pub(super) fn int(&self, slot: usize, default: i32) -> Result<i32> {
        Ok(self.scalar(slot)?.map_or(default, i32::from_le_bytes))
    }

    pub(super) fn long(&self, slot: usize) -> Result<i64> {
        Ok(self.scalar(slot)?.map_or(0, i64::from_le_bytes))
    }

    pub(super) fn table(&self, slot: usize) -> Result<Option<Table<'a>>> {
        let Some(at) = self.field(slot)? else {
            return Ok(None);
        };
        let at = follow(self.buffer, at)?;
        Ok(Some(Self { at, ..*self }))
    }

    /// Where a vector's elements begin and how many they are.
    fn vector(&self, slot: usize, size: usize) -> Result<(usize, usize)> {
        let Some(at) = self.field(slot)? else {
            return Ok((0, 0));
        };
        let at = follow(self.buffer, at)?;
        let count = u32::from_le_bytes(bytes(self.buffer, at)?) as usize;
        let room = self.buffer.len() - at - 4;
        if count > room / size {
            return Err(Damaged);
        }
        Ok((at + 4, count))
    }

    pub(super) fn text(&self, slot: usize) -> Result<Option<&'a str>> {
        if self.field(slot)?.is_none() {
            return Ok(None);
        }
        let (at, length) = self.vector(slot, 1)?;
        std::str::from_utf8(&self.buffer[at..at + length])
            .map(Some)
            .map_err(|_| Damaged)
    }

    pub(super) fn tables(&self, slot: usize) -> Result<Vec<Table<'a>>> {
        let (start, count) = self.vector(slot, 4)?;
        let buffer = self.buffer;
        (0..count)
            .map(|i| follow(buffer, start + 4 * i).map(|at| Table { buffer, at }))
            .collect()
    }

    /// A vector of structs that are pairs of 64-bit numbers.
    pub(super) fn pairs(&self, slot: usize) -> Result<Vec<(i64, i64)>> {
        let (start, count) = self.vector(slot, 16)?;
        let number = |at| bytes(self.buffer, at).map(i64::from_le_bytes);
        (0..count)
            .map(|i| Ok((number(start + 16 * i)?, number(start + 16 * i + 8)?)))
            .collect()
    }

    /// The first words of a vector of structs of three 64-bit words.
    pub(super) fn firsts_of_three(&self, slot: usize) -> Result<Vec<i64>> {
        let (start, count) = self.vector(slot, 24)?;
        (0..count)
            .map(|i| bytes(self.buffer, start + 24 * i).map(i64::from_le_bytes))
            .collect()
    }

    pub(super) fn longs(&self, slot: usize) -> Result<Vec<i64>> {
        let (start, count) = self.vector(slot, 8)?;
        (0..count)
            .map(|i| bytes(self.buffer, start + 8 * i).map(i64::from_le_bytes))
            .collect()
    }
}

/// A field's value on its way into a buffer.
pub(super) enum Value {
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    Text(String),
    Table(Fields),
    Tables(Vec<Fields>),
    /// Structs of 64-bit words: how many, and their words.
    Structs(usize, Vec<i64>),
}

/// A table's fields by slot.
pub(super) type Fields = Vec<(usize, Value)>;

/// The buffer of a root table.
pub(super) fn write(root: Fields) -> Vec<u8> {
    let mut buffer = vec![0; 4];
    let at = write_table(&mut buffer, root);
    buffer[..4].copy_from_slice(&(at as u32).to_le_bytes());
    pad(&mut buffer, 8, 0);
    buffer
}

/// Grows the buffer until `after` more bytes would end on a multiple of `to`.
fn pad(buffer: &mut Vec<u8>, to: usize, after: usize) {
    while !(buffer.len() + after).is_multiple_of(to) {
        buffer.push(0);
    }
}

fn write_table(buffer: &mut Vec<u8>, mut fields: Fields) -> usize {
    let slots = fields.iter().map(|(slot, _)| slot + 1).max().unwrap_or(0);
    // Wide fields first: then each is aligned if the table is.
    let width = |value: &Value| match value {
        Value::Byte(_) => 1,
        Value::Short(_) => 2,
        Value::Long(_) => 8,
        _ => 4,
    };
    fields.sort_by_key(|(_, value)| std::cmp::Reverse(width(value)));
    let any_long = fields.iter().any(|(_, value)| width(value) == 8);
    let first = if any_long { 8 } else { 4 };
    let size = first + fields.iter().map(|(_, value)| width(value)).sum::<usize>();

    pad(buffer, 8, 4 + 2 * slots);
    let list = buffer.len();
    buffer.extend(((4 + 2 * slots) as u16).to_le_bytes());
    buffer.extend((size as u16).to_le_bytes());
    buffer.resize(buffer.len() + 2 * slots, 0);
    let at = buffer.len();
    buffer.extend(((at - list) as i32).to_le_bytes());
    buffer.resize(at + first, 0);
    let mut places = Vec::new();
    for (slot, value) in &fields {
        let place = buffer.len();
        let entry = list + 4 + 2 * slot;
        buffer[entry..entry + 2].copy_from_slice(&((place - at) as u16).to_le_bytes());
        places.push(place);
        match value {
            Value::Byte(x) => buffer.push(*x),
            Value::Short(x) => buffer.extend(x.to_le_bytes()),
            Value::Int(x) => buffer.extend(x.to_le_bytes()),
            Value::Long(x) => buffer.extend(x.to_le_bytes()),
            _ => buffer.extend([0; 4]),
        }
    }
    for ((_, value), place) in fields.into_iter().zip(places) {
        let Some(to) = write_child(buffer, value) else {
            continue;
        };
        buffer[place..place + 4].copy_from_slice(&((to - place) as u32).to_le_bytes());
    }
    at
}

fn write_child(buffer: &mut Vec<u8>, value: Value) -> Option<usize> {
    match value {
        Value::Text(text) => {
            pad(buffer, 4, 0);
            let at = buffer.len();
            buffer.extend((text.len() as u32).to_le_bytes());
            buffer.extend(text.as_bytes());
            buffer.push(0);
            Some(at)
        }
        Value::Table(fields) => Some(write_table(buffer, fields)),
        Value::Tables(tables) => {
            pad(buffer, 4, 0);
            let at = buffer.len();
            buffer.extend((tables.len() as u32).to_le_bytes());
            buffer.resize(at + 4 + 4 * tables.len(), 0);
            for (i, fields) in tables.into_iter().enumerate() {
                let (to, place) = (write_table(buffer, fields), at + 4 + 4 * i);
                buffer[place..place + 4].copy_from_slice(&((to - place) as u32).to_le_bytes());
            }
            Some(at)
        }
        Value::Structs(count, words) => {
            pad(buffer, 8, 4);
            let at = buffer.len();
            buffer.extend((count as u32).to_le_bytes());
            words
                .iter()
                .for_each(|word| buffer.extend(word.to_le_bytes()));
            Some(at)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let child = || vec![(1, Value::Text("näme".into())), (0, Value::Byte(7))];
        let buffer = write(vec![
            (0, Value::Short(-5)),
            (2, Value::Long(1 << 40)),
            (3, Value::Tables(vec![child(), child()])),
            (4, Value::Structs(2, vec![1, -2, 3, 4])),
            (6, Value::Table(child())),
        ]);
        let root = Table::root(&buffer).unwrap();
        assert_eq!((root.short(0, 0), root.long(2)), (Ok(-5), Ok(1 << 40)));
        assert_eq!((root.int(1, 9), root.byte(5)), (Ok(9), Ok(0)));
        assert_eq!(root.pairs(4), Ok(vec![(1, -2), (3, 4)]));
        let tables = root.tables(3).unwrap();
        for table in [tables[0], tables[1], root.table(6).unwrap().unwrap()] {
            assert_eq!((table.text(1), table.byte(0)), (Ok(Some("näme")), Ok(7)));
        }
    }

    #[test]
    fn no_offset_leads_outside() {
        let buffer = write(vec![
            (0, Value::Tables(vec![vec![(0, Value::Text("a".into()))]])),
            (1, Value::Structs(1, vec![1, 2])),
        ]);
        for at in 0..buffer.len() {
            for byte in [0, 1, 127, 128, 255] {
                let mut broken = buffer.clone();
                broken[at] = byte;
                if let Ok(root) = Table::root(&broken) {
                    let tables = root.tables(0).unwrap_or_default();
                    tables.iter().for_each(|table| {
                        let _ = table.text(0);
                    });
                    let _ = root.pairs(1);
                }
            }
        }
    }
}
