//! A look at a Parquet file's footer before the parser: schemas that would make it reserve gigabytes or nest without end.
//!
//! The parser believes the number of children that a schema element claims, and follows nested groups by recursion; neither
//! ends in an error that could be caught.

use super::super::Damage;
use super::thrift::{Compact, LIST, STRUCT};
use std::io::{Read, Seek, SeekFrom};

/// Deeper schemas are not tables.
const DEEPEST: usize = 50;

/// Checks the end of the file and its schema; the error says in half a sentence what is wrong.
pub(super) fn check(file: &mut (impl Read + Seek), length: u64) -> Result<(), Damage> {
    if length < 12 {
        return Err(Damage::TooShort);
    }
    let mut tail = [0; 8];
    file.seek(SeekFrom::Start(length - 8))?;
    file.read_exact(&mut tail)?;
    match &tail[4..] {
        b"PAR1" => {}
        b"PARE" => return Err(Damage::Encrypted),
        _ => return Err(Damage::NotParquet),
    }
    let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if size > length - 12 {
        return Err(Damage::Footer);
    }
    let mut footer = vec![0; size as usize];
    file.seek(SeekFrom::Start(length - 8 - size))?;
    file.read_exact(&mut footer)?;
    let children = schema_children(&mut Compact { rest: &footer }).ok_or(Damage::Footer)?;
    check_nesting(&children)
}

fn check_nesting(children: &[u64]) -> Result<(), Damage> {
    // How many elements each open group still waits for.
    let mut open: Vec<u64> = Vec::new();
    for (place, &count) in children.iter().enumerate() {
        if place > 0 {
            while open.last() == Some(&0) {
                open.pop();
            }
            match open.last_mut() {
                Some(left) => *left -= 1,
                None => return Err(Damage::Schema),
            }
        }
        if count > (children.len() - place - 1) as u64 {
            return Err(Damage::MissingColumns);
        }
        open.push(count);
        if open.len() > DEEPEST {
            return Err(Damage::TooDeep { deepest: DEEPEST });
        }
    }
    if open.iter().any(|&left| left > 0) {
        return Err(Damage::MissingColumns);
    }
    Ok(())
}

/// The number of children of every element of the schema, the second field of the footer.
fn schema_children(thrift: &mut Compact<'_>) -> Option<Vec<u64>> {
    let mut id = 0;
    while let Some(kind) = thrift.field(&mut id)? {
        if (id, kind) != (2, LIST) {
            thrift.skip(kind, 0)?;
            continue;
        }
        let (count, kind) = thrift.list()?;
        if kind != STRUCT {
            return None;
        }
        let mut all = Vec::new();
        for _ in 0..count {
            let (mut children, mut id) = (0, 0);
            while let Some(kind) = thrift.field(&mut id)? {
                if (id, kind) == (5, 5) {
                    let zigzag = thrift.varint()?;
                    // A negative count is one that no schema has.
                    children = if zigzag & 1 == 1 {
                        u64::MAX
                    } else {
                        zigzag >> 1
                    };
                } else {
                    thrift.skip(kind, 0)?;
                }
            }
            all.push(children);
        }
        return Some(all);
    }
    None
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
