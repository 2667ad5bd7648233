//! Thrift's compact protocol, as far as it takes to skip through it.

/// Deeper values are not metadata of a table.
const DEEPEST: usize = 50;

/// Bytes on their way.
pub(super) struct Compact<'a> {
    pub(super) rest: &'a [u8],
}

pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

impl Compact<'_> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    /// The type of the next field; `Some(None)` at the end of a struct.
    pub(super) fn field(&mut self, id: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *id = match byte >> 4 {
            0 => {
                let zigzag = self.varint()?;
                (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
            }
            step => id.checked_add(i64::from(step))?,
        };
        Some(Some(byte & 15))
    }

    /// Length and type of a list.
    pub(super) fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        Some((count, byte & 15))
    }

    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            1 | 2 => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => self.rest = self.rest.get(8..)?,
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.rest = self.rest.get(length..)?;
            }
            LIST | 10 => {
                let (count, kind) = self.list()?;
                // Elements of no bytes would let a few bytes claim years of work.
                if count > self.rest.len() as u64 {
                    return None;
                }
                for _ in 0..count {
                    // A truth value takes a byte of its own in a list.
                    self.skip(if kind <= 2 { 3 } else { kind }, depth + 1)?;
                }
            }
            STRUCT => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}
