//! The NPY format: what the header says, and elements to numbers.

use super::ArrayDamage;
use std::io::{self, Read};

/// Headers are a few hundred bytes; a longer one is not one.
const LONGEST_HEADER: usize = 1 << 16;

/// NumPy itself stops at 64.
const MOST_AXES: usize = 64;

const MAGIC: &[u8] = b"\x93NUMPY";

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) kind: ElementKind,
    pub(crate) size: usize,
    big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Bool,
    Signed,
    Unsigned,
    Float,
}

impl Element {
    pub(crate) const U8: Self = Self::little(ElementKind::Unsigned, 1);
    pub(crate) const F32: Self = Self::little(ElementKind::Float, 4);
    pub(crate) const F64: Self = Self::little(ElementKind::Float, 8);
    pub(crate) const I64: Self = Self::little(ElementKind::Signed, 8);

    pub(crate) const fn little(kind: ElementKind, size: usize) -> Self {
        Self {
            kind,
            size,
            big_endian: false,
        }
    }

    /// From NumPy's code, such as `<f4`.
    fn parse(code: &str) -> Result<Self, ArrayDamage> {
        let (order, rest) = match code.as_bytes().first() {
            Some(b'<' | b'>' | b'|' | b'=') => (code.as_bytes()[0], &code[1..]),
            _ => (b'<', code),
        };
        let kind = match rest.as_bytes().first() {
            Some(b'b' | b'?') => Some(ElementKind::Bool),
            Some(b'i') => Some(ElementKind::Signed),
            Some(b'u') => Some(ElementKind::Unsigned),
            Some(b'f') => Some(ElementKind::Float),
            _ => None,
        };
        let size = match rest {
            "?" => Some(1),
            _ => rest.get(1..).and_then(|digits| digits.parse().ok()),
        };
        let (Some(kind), Some(size)) = (kind, size) else {
            return Err(match rest.as_bytes().first() {
                Some(b'O') => ArrayDamage::Objects,
                Some(b'U' | b'S') => ArrayDamage::Texts,
                Some(b'c') => ArrayDamage::Complex,
                _ => ArrayDamage::Type { code: code.into() },
            });
        };
        let known: &[usize] = match kind {
            ElementKind::Bool => &[1],
            ElementKind::Float => &[2, 4, 8],
            _ => &[1, 2, 4, 8],
        };
        if !known.contains(&size) {
            return Err(ArrayDamage::Width { code: code.into() });
        }
        Ok(Self {
            kind,
            size,
            big_endian: order == b'>',
        })
    }

    fn code(self) -> String {
        let order = match (self.size, self.big_endian) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        let kind = match self.kind {
            ElementKind::Bool => 'b',
            ElementKind::Signed => 'i',
            ElementKind::Unsigned => 'u',
            ElementKind::Float => 'f',
        };
        format!("{order}{kind}{}", self.size)
    }

    /// The number that a whole element's bytes stand for; exact but for 64-bit integers beyond 2⁵³.
    pub(crate) fn number(self, bytes: &[u8]) -> f64 {
        match (self.kind, self.size) {
            (ElementKind::Float, 2) => half(self.bits(bytes) as u16),
            (ElementKind::Float, 4) => f64::from(f32::from_bits(self.bits(bytes) as u32)),
            (ElementKind::Float, _) => f64::from_bits(self.bits(bytes)),
            (ElementKind::Signed, _) => self.signed(bytes) as f64,
            (ElementKind::Bool, _) => f64::from(u8::from(self.bits(bytes) != 0)),
            (ElementKind::Unsigned, _) => self.bits(bytes) as f64,
        }
    }

    /// The whole number that an element's bytes stand for, if its type is one that 64 bits with a sign can hold.
    pub(crate) fn integer(self, bytes: &[u8]) -> Option<i64> {
        match (self.kind, self.size) {
            (ElementKind::Float, _) | (ElementKind::Unsigned, 8) => None,
            (ElementKind::Signed, _) => Some(self.signed(bytes)),
            (ElementKind::Bool, _) => Some(i64::from(self.bits(bytes) != 0)),
            (ElementKind::Unsigned, _) => i64::try_from(self.bits(bytes)).ok(),
        }
    }

    /// Whether [`integer`](Self::integer) has an answer.
    pub(crate) fn is_integer(self) -> bool {
        self.kind != ElementKind::Float && (self.kind, self.size) != (ElementKind::Unsigned, 8)
    }

    fn bits(self, bytes: &[u8]) -> u64 {
        let mut all = [0; 8];
        if self.big_endian {
            all[8 - self.size..].copy_from_slice(&bytes[..self.size]);
            u64::from_be_bytes(all)
        } else {
            all[..self.size].copy_from_slice(&bytes[..self.size]);
            u64::from_le_bytes(all)
        }
    }

    fn signed(self, bytes: &[u8]) -> i64 {
        let unused = 64 - 8 * self.size as u32;
        ((self.bits(bytes) << unused) as i64) >> unused
    }
}

/// A 16-bit float; exact.
pub(crate) fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2.0_f64.powi(exponent - 25),
    }
}

/// What stands before an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) element: Element,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
    /// Where the elements begin.
    pub(crate) length: u64,
    /// How many bytes they take.
    pub(crate) bytes: u64,
}

impl Header {
    /// Reads a header; the error says in half a sentence what is wrong with it.
    pub(crate) fn read(from: &mut impl Read) -> Result<Self, ArrayDamage> {
        let damaged = |_: io::Error| ArrayDamage::HeaderCut;
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(damaged)?;
        if &start[..6] != MAGIC {
            return Err(ArrayDamage::NotNpy);
        }
        let (width, length) = match start[6] {
            1 => {
                let mut bytes = [0; 2];
                from.read_exact(&mut bytes).map_err(damaged)?;
                (2, usize::from(u16::from_le_bytes(bytes)))
            }
            2 | 3 => {
                let mut bytes = [0; 4];
                from.read_exact(&mut bytes).map_err(damaged)?;
                (4, u32::from_le_bytes(bytes) as usize)
            }
            version => return Err(ArrayDamage::Version { version }),
        };
        if length > LONGEST_HEADER {
            return Err(ArrayDamage::LongHeader { length });
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text).map_err(damaged)?;
        let text = std::str::from_utf8(&text).map_err(|_| ArrayDamage::HeaderNotText)?;
        let (element, fortran_order, shape) = parse_header(text)?;
        let bytes = shape
            .iter()
            .try_fold(element.size as u64, |bytes, &axis| {
                bytes.checked_mul(axis as u64)
            })
            .filter(|&bytes| bytes <= i64::MAX as u64)
            .ok_or(ArrayDamage::Shape)?;
        Ok(Self {
            element,
            fortran_order,
            shape,
            length: (8 + width + length) as u64,
            bytes,
        })
    }

    /// The bytes of a header, padded so that the elements are aligned.
    pub(crate) fn write(element: Element, shape: &[usize]) -> Vec<u8> {
        let axes: String = shape.iter().map(|axis| format!("{axis}, ")).collect();
        // A tuple of one is written `(3,)`.
        let axes = if shape.len() == 1 {
            axes.trim_end()
        } else {
            axes.trim_end_matches(", ")
        };
        let mut text = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({axes}), }}",
            element.code()
        );
        while (10 + text.len() + 1) % 64 != 0 {
            text.push(' ');
        }
        text.push('\n');
        let mut header = MAGIC.to_vec();
        header.extend([1, 0]);
        // At most 64 axes of 20 digits: far below 2¹⁶.
        header.extend((text.len() as u16).to_le_bytes());
        header.extend(text.as_bytes());
        header
    }
}

/// Takes apart `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse_header(text: &str) -> Result<(Element, bool, Vec<usize>), ArrayDamage> {
    let broken = || ArrayDamage::Header;
    let mut rest = text.trim().strip_prefix('{').ok_or_else(broken)?;
    let (mut element, mut fortran_order, mut shape) = (None, None, None);
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if rest.starts_with('}') {
            break;
        }
        let (key, after) = quoted(rest).ok_or_else(broken)?;
        let value = after
            .trim_start()
            .strip_prefix(':')
            .ok_or_else(broken)?
            .trim_start();
        match key {
            "descr" => {
                if value.starts_with('[') {
                    return Err(ArrayDamage::Records);
                }
                let (code, after) = quoted(value).ok_or_else(broken)?;
                element = Some(Element::parse(code)?);
                rest = after;
            }
            "fortran_order" => {
                let yes = value.strip_prefix("True").map(|after| (true, after));
                let no = || value.strip_prefix("False").map(|after| (false, after));
                let (order, after) = yes.or_else(no).ok_or_else(broken)?;
                fortran_order = Some(order);
                rest = after;
            }
            "shape" => {
                let (inside, after) = value
                    .strip_prefix('(')
                    .and_then(|v| v.split_once(')'))
                    .ok_or_else(broken)?;
                let axes = inside
                    .split(',')
                    .map(str::trim)
                    .filter(|axis| !axis.is_empty());
                // Python 2 wrote long numbers with an L.
                let axes: Result<Vec<usize>, _> = axes
                    .map(|axis| axis.trim_end_matches('L').parse())
                    .collect();
                shape = Some(axes.map_err(|_| broken())?);
                rest = after;
            }
            _ => return Err(broken()),
        }
    }
    match (element, fortran_order, shape) {
        (Some(element), Some(order), Some(shape)) if shape.len() <= MOST_AXES => {
            Ok((element, order, shape))
        }
        _ => Err(broken()),
    }
}

/// What stands in quotes at the beginning, and what comes after.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        for shape in [vec![], vec![3], vec![0, 5], vec![2, 3, 4]] {
            for element in [Element::U8, Element::F32, Element::F64, Element::I64] {
                let bytes = Header::write(element, &shape);
                let header = Header::read(&mut bytes.as_slice()).unwrap();
                assert_eq!((header.element, &header.shape), (element, &shape));
                assert_eq!(header.length % 64, 0);
                assert_eq!(header.length, bytes.len() as u64);
            }
        }
    }

    #[test]
    fn half_floats_are_exact() {
        for (bits, number) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333251953125),
            (1, 2.0_f64.powi(-24)),
            (0x7bff, 65504.0),
        ] {
            assert_eq!(half(bits), number);
        }
        assert!(half(0x7c00).is_infinite() && half(0x7c01).is_nan());
    }

    #[test]
    fn types_without_a_number_get_their_sentence() {
        let say = |descr: &str| {
            parse_header(&format!(
                "{{'descr': {descr}, 'fortran_order': False, 'shape': (3,), }}"
            ))
            .unwrap_err()
            .to_string()
        };
        assert!(say("'|O'").contains("Python objects"));
        assert!(say("'<U5'").contains("texts"));
        assert!(say("'<c16'").contains("complex"));
        assert!(say("[('a', '<f8')]").contains("records"));
        assert!(say("'<f16'").contains("64 bits"));
        assert!(say("'é8'").contains("not a plain number"));
    }
}
