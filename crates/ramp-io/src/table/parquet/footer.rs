//! A look at a Parquet file's footer before the parser: schemas that would make it reserve gigabytes or nest without end.
//!
//! The parser believes the number of children that a schema element claims, and follows nested groups by recursion; neither
//! ends in an error that could be caught.

use std::io::{Read, Seek, SeekFrom};

/// Deeper schemas are not tables.
const DEEPEST: usize = 50;

/// Checks the end of the file and its schema; the error says in half a sentence what is wrong.
pub(super) fn check(file: &mut (impl Read + Seek), length: u64) -> Result<(), String> {
    let broken = |e: std::io::Error| e.to_string();
    if length < 12 {
        return Err("it is too short to be a Parquet file".into());
    }
    let mut tail = [0; 8];
    file.seek(SeekFrom::Start(length - 8)).map_err(broken)?;
    file.read_exact(&mut tail).map_err(broken)?;
    match &tail[4..] {
        b"PAR1" => {}
        b"PARE" => return Err("it is encrypted".into()),
        _ => {
            return Err(
                "it does not end as a Parquet file: it is cut off or something else".into(),
            );
        }
    }
    let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if size > length - 12 {
        return Err("its footer is damaged".into());
    }
    let mut footer = vec![0; size as usize];
    file.seek(SeekFrom::Start(length - 8 - size))
        .map_err(broken)?;
    file.read_exact(&mut footer).map_err(broken)?;
    let children = Compact { rest: &footer }
        .schema_children()
        .ok_or("its footer is damaged")?;
    check_nesting(&children)
}

fn check_nesting(children: &[u64]) -> Result<(), String> {
    // How many elements each open group still waits for.
    let mut open: Vec<u64> = Vec::new();
    for (place, &count) in children.iter().enumerate() {
        if place > 0 {
            while open.last() == Some(&0) {
                open.pop();
            }
            match open.last_mut() {
                Some(left) => *left -= 1,
                None => return Err("its schema is damaged".into()),
            }
        }
        if count > (children.len() - place - 1) as u64 {
            return Err("its schema claims more columns than it has".into());
        }
        open.push(count);
        if open.len() > DEEPEST {
            return Err(format!("its columns are nested more than {DEEPEST} deep"));
        }
    }
    if open.iter().any(|&left| left > 0) {
        return Err("its schema claims more columns than it has".into());
    }
    Ok(())
}

/// Thrift's compact protocol, as far as it takes to skip through it.
struct Compact<'a> {
    rest: &'a [u8],
}

const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Compact<'_> {
    /// The number of children of every element of the schema, the second field of the footer.
    fn schema_children(&mut self) -> Option<Vec<u64>> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            if (id, kind) != (2, LIST) {
                self.skip(kind, 0)?;
                continue;
            }
            let (count, kind) = self.list()?;
            if kind != STRUCT {
                return None;
            }
            let mut all = Vec::new();
            for _ in 0..count {
                let (mut children, mut id) = (0, 0);
                while let Some(kind) = self.field(&mut id)? {
                    if (id, kind) == (5, 5) {
                        let zigzag = self.varint()?;
                        // A negative count is one that no schema has.
                        children = if zigzag & 1 == 1 {
                            u64::MAX
                        } else {
                            zigzag >> 1
                        };
                    } else {
                        self.skip(kind, 0)?;
                    }
                }
                all.push(children);
            }
            return Some(all);
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
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
    fn field(&mut self, id: &mut i64) -> Option<Option<u8>> {
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
    fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        Some((count, byte & 15))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_must_have_what_they_claim() {
        assert!(check_nesting(&[2, 0, 0]).is_ok());
        assert!(check_nesting(&[2, 1, 0, 0]).is_ok());
        assert!(check_nesting(&[0]).is_ok());
        for bad in [
            &[3, 0, 0][..],
            &[1, 0, 0],
            &[u64::MAX],
            &[1; 100],
            &[2, 2, 0, 0],
        ] {
            assert!(check_nesting(bad).is_err(), "{bad:?}");
        }
    }
}
