//! A look at the page headers of a column before any page is unpacked: sizes that would fill the memory.

use super::super::Damage;
use super::thrift::Compact;
use std::io::{Read, Seek, SeekFrom};

/// A page that unpacks to more than this and to so many times its size is made to fill the memory.
const LARGEST_UNCHECKED: u64 = 256 << 20;
const LARGEST_RATIO: u64 = 200;

/// Headers take some dozen bytes and the least and greatest value of their page.
const HEADER: [usize; 3] = [1 << 9, 1 << 16, 1 << 24];

/// Goes from header to header of the pages that stand between two places of the file.
pub(super) fn check(file: &mut (impl Read + Seek), start: u64, length: u64) -> Result<(), Damage> {
    let end = start + length;
    let mut at = start;
    let mut bytes = Vec::new();
    while at < end {
        let (size, unpacked, packed) = read(file, at, end, &mut bytes)?;
        if unpacked > LARGEST_UNCHECKED && unpacked / LARGEST_RATIO > packed {
            return Err(Damage::Bomb {
                megabytes: unpacked >> 20,
                ratio: LARGEST_RATIO,
            });
        }
        at += size + packed;
        if at > end {
            return Err(Damage::CutOff);
        }
    }
    Ok(())
}

/// A header's own size, and its page's unpacked and as it stands.
fn read(
    file: &mut (impl Read + Seek),
    at: u64,
    end: u64,
    bytes: &mut Vec<u8>,
) -> Result<(u64, u64, u64), Damage> {
    for most in HEADER {
        bytes.clear();
        file.seek(SeekFrom::Start(at))?;
        file.take((most as u64).min(end - at)).read_to_end(bytes)?;
        let mut thrift = Compact { rest: bytes };
        if let Some((unpacked, packed)) = sizes(&mut thrift) {
            let size = (bytes.len() - thrift.rest.len()) as u64;
            return Ok((size, unpacked, packed));
        }
        if bytes.len() < most {
            break;
        }
    }
    Err(Damage::Damaged)
}

/// The second and third field of a page header.
fn sizes(thrift: &mut Compact<'_>) -> Option<(u64, u64)> {
    let (mut id, mut found) = (0, [None; 2]);
    while let Some(kind) = thrift.field(&mut id)? {
        match (id, kind) {
            (2 | 3, 5) => {
                let zigzag = thrift.varint()?;
                // No page has a negative size.
                found[id as usize - 2] = (zigzag & 1 == 0).then_some(zigzag >> 1);
            }
            _ => thrift.skip(kind, 0)?,
        }
    }
    found[0].zip(found[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn varint(mut number: u64, to: &mut Vec<u8>) {
        while number > 127 {
            to.push(number as u8 | 128);
            number >>= 7;
        }
        to.push(number as u8);
    }

    /// A data page of some bytes that claims to unpack to so many.
    fn page(unpacked: u64, packed: u64, there: usize) -> Vec<u8> {
        let mut bytes = vec![0x15, 0];
        for size in [unpacked, packed] {
            bytes.push(0x15);
            varint(size << 1, &mut bytes);
        }
        bytes.push(0);
        bytes.resize(bytes.len() + there, 7);
        bytes
    }

    fn checked(bytes: Vec<u8>) -> Result<(), Damage> {
        let length = bytes.len() as u64;
        check(&mut Cursor::new(bytes), 0, length)
    }

    #[test]
    fn pages_that_would_fill_the_memory_or_are_cut_off_are_refused() {
        let good = [page(40, 10, 10), page(1 << 20, 100, 100)].concat();
        assert!(checked(good.clone()).is_ok());
        let bomb = [good.clone(), page(1 << 30, 100, 100)].concat();
        assert!(matches!(
            checked(bomb),
            Err(Damage::Bomb {
                megabytes: 1024,
                ..
            })
        ));
        let cut = [good.clone(), page(1 << 30, 1 << 30, 100)].concat();
        assert!(matches!(checked(cut), Err(Damage::CutOff)));
        let torn = good[..good.len() - 101].to_vec();
        assert!(checked(torn).is_err());
    }
}
