//! MATLAB files of version 5, as far as one array of numbers: the header, elements, compressed elements.
//!
//! By hand, because it is a header and a list of tagged pieces, and every size in them must be doubted anyway.

use crate::error::LabError;
use flate2::read::ZlibDecoder;
use std::io::Read;
use std::path::Path;

/// The longest file, and the longest array when it is unpacked: a hundred times what poses need.
const LARGEST: u64 = 1 << 28;
/// The most numbers of all arrays together.
const MOST_NUMBERS: usize = 1 << 24;

const HEADER: usize = 128;
const COMPRESSED: u32 = 15;
const MATRIX: u32 = 14;

/// An array, its first index fastest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// The array of this name, or the only one.
pub(super) fn read(path: &Path, name: &str) -> Result<Array, LabError> {
    let say = |what: &str| LabError::Invalid(format!("{}: {what}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| say(&format!("cannot be opened: {e}")))?;
    let mut bytes = vec![];
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| say(&format!("cannot be read: {e}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(say("is larger than 256 MB, which no file of poses is"));
    }
    let mut arrays = arrays(&bytes).map_err(|what| say(&what))?;
    let names: Vec<String> = arrays.iter().map(|a| format!("`{}`", a.name)).collect();
    match arrays.iter().position(|a| a.name == name) {
        Some(at) => Ok(arrays.swap_remove(at)),
        None if arrays.len() == 1 => Ok(arrays.swap_remove(0)),
        None if arrays.is_empty() => Err(say("has no array of numbers")),
        None => Err(say(&format!(
            "has no array `{name}`, only {}",
            names.join(", ")
        ))),
    }
}

/// All arrays of real numbers.
fn arrays(bytes: &[u8]) -> Result<Vec<Array>, String> {
    let header = bytes
        .get(..HEADER)
        .ok_or("is too short for a MATLAB file")?;
    let big = match &header[126..128] {
        b"IM" => false,
        b"MI" => true,
        _ if header.starts_with(b"MATLAB 7.3") || bytes.get(..8) == Some(b"\x89HDF\r\n\x1a\n") => {
            return Err(
                "is a MATLAB file of version 7.3; save it with `save -v7` and try again".into(),
            );
        }
        _ => return Err("is not a MATLAB file of version 5".into()),
    };
    let mut at = Walker {
        bytes: &bytes[HEADER..],
        big,
    };
    let mut found = vec![];
    let mut room = MOST_NUMBERS;
    while !at.bytes.is_empty() {
        let (kind, content) = at.element(false)?;
        match kind {
            COMPRESSED => {
                let mut plain = vec![];
                ZlibDecoder::new(content)
                    .take(LARGEST + 1)
                    .read_to_end(&mut plain)
                    .map_err(|e| {
                        format!("holds a compressed array that cannot be unpacked: {e}")
                    })?;
                if plain.len() as u64 > LARGEST {
                    return Err("unpacks to more than 256 MB, which no file of poses does".into());
                }
                let mut inside = Walker { bytes: &plain, big };
                if let (MATRIX, content) = inside.element(true)? {
                    found.extend(matrix(content, big, &mut room)?);
                }
            }
            MATRIX => found.extend(matrix(content, big, &mut room)?),
            _ => {}
        }
    }
    Ok(found)
}

/// An array of real numbers, for which there is so much room left; none for text, cells and the like.
fn matrix(bytes: &[u8], big: bool, room: &mut usize) -> Result<Option<Array>, String> {
    let mut at = Walker { bytes, big };
    let (_, flags) = at.element(true)?;
    let flags = at.word(flags).ok_or("has an array without flags")?;
    let class = flags & 0xff;
    let complex = flags & 0x800 != 0;
    // From double to unsigned 64 bits.
    if !(6..=15).contains(&class) || complex {
        return Ok(None);
    }
    let (_, shape) = at.element(true)?;
    let shape: Vec<usize> = shape
        .chunks_exact(4)
        .filter_map(|c| at.word(c))
        .map(|n| n as usize)
        .collect();
    let (_, name) = at.element(true)?;
    let name: String = String::from_utf8_lossy(name).chars().take(60).collect();
    let (kind, content) = at.element(true)?;
    let wanted = shape.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
    *room = wanted
        .and_then(|wanted| room.checked_sub(wanted))
        .ok_or_else(|| {
            format!("holds more numbers than poses have, the last of them in `{name}`")
        })?;
    // No number takes more than eight bytes: these are enough to fill the shape, and to tell if there are more.
    let enough = content.len().min(8 * wanted.unwrap_or(0) + 8);
    let values = numbers(kind, &content[..enough], big)?;
    if wanted != Some(values.len()) {
        return Err(format!(
            "holds {} numbers for `{name}`, which do not fill its shape",
            values.len()
        ));
    }
    Ok(Some(Array {
        name,
        shape,
        values,
    }))
}

fn numbers(kind: u32, bytes: &[u8], big: bool) -> Result<Vec<f64>, String> {
    macro_rules! all {
        ($type:ty) => {
            bytes
                .chunks_exact(size_of::<$type>())
                .map(|chunk| {
                    let mut own = [0; size_of::<$type>()];
                    own.copy_from_slice(chunk);
                    let number = match big {
                        true => <$type>::from_be_bytes(own),
                        false => <$type>::from_le_bytes(own),
                    };
                    number as f64
                })
                .collect()
        };
    }
    Ok(match kind {
        1 => all!(i8),
        2 => all!(u8),
        3 => all!(i16),
        4 => all!(u16),
        5 => all!(i32),
        6 => all!(u32),
        7 => all!(f32),
        9 => all!(f64),
        12 => all!(i64),
        13 => all!(u64),
        _ => return Err(format!("holds numbers of the unknown kind {kind}")),
    })
}

/// Goes from element to element.
struct Walker<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Walker<'a> {
    fn word(&self, bytes: &[u8]) -> Option<u32> {
        let word = <[u8; 4]>::try_from(bytes.get(..4)?).ok()?;
        Some(match self.big {
            true => u32::from_be_bytes(word),
            false => u32::from_le_bytes(word),
        })
    }

    /// The next element's kind and content. All but compressed ones are filled up to eight bytes.
    fn element(&mut self, padded: bool) -> Result<(u32, &'a [u8]), String> {
        let ends = || "ends in the middle of an array".to_string();
        let first = self.word(self.bytes).ok_or_else(ends)?;
        // Up to four bytes fit into the tag itself.
        if first >> 16 != 0 {
            let (length, kind) = ((first >> 16) as usize, first & 0xffff);
            let content = self.bytes.get(4..8).and_then(|c| c.get(..length));
            let content = content.ok_or_else(ends)?;
            self.bytes = &self.bytes[8..];
            return Ok((kind, content));
        }
        let length = self.bytes.get(4..8).and_then(|b| self.word(b));
        let length = length.ok_or_else(ends)? as usize;
        let content = self.bytes[8..].get(..length).ok_or_else(ends)?;
        let padded = padded || first != COMPRESSED;
        let whole = if padded {
            length.next_multiple_of(8)
        } else {
            length
        };
        self.bytes = self.bytes[8..].get(whole..).unwrap_or_default();
        Ok((first, content))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use std::io::Write;

    /// A file with one array of doubles.
    pub fn bytes(name: &str, shape: &[usize], values: &[f64], compressed: bool) -> Vec<u8> {
        let mut file = vec![b' '; 124];
        file[..19].copy_from_slice(b"MATLAB 5.0 MAT-file");
        file.extend([0, 1, b'I', b'M']);
        let element = |kind: u32, content: &[u8]| {
            let mut all = [kind.to_le_bytes(), (content.len() as u32).to_le_bytes()].concat();
            all.extend(content);
            all.resize(all.len().next_multiple_of(8), 0);
            all
        };
        let flags = [6u32, 0].map(u32::to_le_bytes).concat();
        let sizes: Vec<u8> = shape
            .iter()
            .flat_map(|&n| (n as u32).to_le_bytes())
            .collect();
        let numbers: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let parts = [
            element(6, &flags),
            element(5, &sizes),
            element(1, name.as_bytes()),
            element(9, &numbers),
        ];
        let matrix = element(MATRIX, &parts.concat());
        if compressed {
            let mut packed = ZlibEncoder::new(vec![], Compression::default());
            packed.write_all(&matrix).unwrap();
            let packed = packed.finish().unwrap();
            file.extend(COMPRESSED.to_le_bytes());
            file.extend((packed.len() as u32).to_le_bytes());
            file.extend(packed);
        } else {
            file.extend(matrix);
        }
        file
    }

    #[test]
    fn arrays_are_read_plain_and_compressed() {
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        for compressed in [false, true] {
            let found = arrays(&bytes("some", &[2, 3, 4], &values, compressed)).unwrap();
            let wanted = Array {
                name: "some".into(),
                shape: vec![2, 3, 4],
                values: values.clone(),
            };
            assert_eq!(found, [wanted]);
        }
    }

    #[test]
    fn a_file_of_poses_is_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/joints.mat");
        let array = read(Path::new(path), "joints").unwrap();
        assert_eq!(array.shape, [14, 3, 60]);
        // As the script that made it has them.
        assert!((array.values[1] - 50.08242644040247).abs() < 1e-12);
        assert!((array.values[59 * 42 + 14 + 13] - 35.60682892833549).abs() < 1e-12);
        assert_eq!(array.values[28..42].iter().sum::<f64>(), 12.0);
    }

    #[test]
    fn other_files_get_a_sentence() {
        let good = bytes("x", &[2, 1], &[1.0, 2.0], false);
        let says = |bytes: &[u8]| arrays(bytes).unwrap_err();
        assert!(says(b"short").contains("too short"));
        assert!(says(&[0; 200]).contains("not a MATLAB file"));
        assert!(says(&good[..good.len() - 9]).contains("ends in the middle"));
        let mut newer = good.clone();
        newer[..10].copy_from_slice(b"MATLAB 7.3");
        newer[126..128].copy_from_slice(b"\0\0");
        assert!(says(&newer).contains("save -v7"));
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(
            compressed: bool,
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut file = bytes("joints", &[14, 3, 1], &[0.5; 42], compressed);
            for (at, byte) in damage {
                let at = at.index(file.len());
                file[at] = byte;
            }
            let _ = arrays(&file);
            let _ = arrays(&file[..cut.index(file.len())]);
        }
    }
}
