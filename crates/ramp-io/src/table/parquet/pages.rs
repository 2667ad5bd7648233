//! A look at every Parquet page before it is decoded: counts that would make the decoder reserve gigabytes.

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Pages on their way to the decoder.
pub(super) struct CheckedPages {
    pub(super) pages: Box<dyn PageReader>,
    pub(super) physical_type: Type,
    /// Whether the values come after levels that say which are missing.
    pub(super) optional: bool,
}

impl CheckedPages {
    fn check(&self, page: &Page) -> Option<()> {
        let (bytes, values) = (page.buffer().as_ref(), page.num_values() as usize);
        match page {
            Page::DictionaryPage { .. } => {
                let least = match self.physical_type {
                    Type::BOOLEAN | Type::FIXED_LEN_BYTE_ARRAY => 1,
                    Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
                    Type::INT64 | Type::DOUBLE => 8,
                    Type::INT96 => 12,
                };
                (values <= bytes.len() / least).then_some(())
            }
            Page::DataPage { encoding, .. } => {
                let start = if self.optional {
                    let length = bytes.get(..4)?;
                    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
                    (length as usize).checked_add(4)?
                } else {
                    0
                };
                check_values(bytes.get(start..)?, *encoding, values)
            }
            Page::DataPageV2 {
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let start =
                    (*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize)?;
                check_values(bytes.get(start..)?, *encoding, values)
            }
        }
    }
}

/// The delta encodings say once more how many values they have.
fn check_values(bytes: &[u8], encoding: Encoding, values: usize) -> Option<()> {
    match encoding {
        Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY if !bytes.is_empty() => {
            after_deltas(bytes, values).map(drop)
        }
        Encoding::DELTA_BYTE_ARRAY if !bytes.is_empty() => {
            let suffixes = after_deltas(bytes, values)?;
            after_deltas(suffixes, values).map(drop)
        }
        _ => Some(()),
    }
}

/// Goes through one run of delta-coded numbers, which must not be more than the page's values.
fn after_deltas(bytes: &[u8], values: usize) -> Option<&[u8]> {
    let mut rest = bytes;
    let (block, per_block, count) = (varint(&mut rest)?, varint(&mut rest)?, varint(&mut rest)?);
    varint(&mut rest)?;
    if count > values as u64 || per_block == 0 || per_block > 1 << 16 || block > 1 << 24 {
        return None;
    }
    let in_small = block / per_block;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        varint(&mut rest)?;
        let widths = rest.get(..per_block as usize)?;
        rest = &rest[per_block as usize..];
        if in_small == 0 {
            return None;
        }
        for &width in widths {
            // Blocks after the last value are left out.
            if left == 0 {
                break;
            }
            let length = usize::from(width) * in_small as usize / 8;
            // The last one may be cut short.
            rest = rest.get(length..).unwrap_or(&[]);
            left = left.saturating_sub(in_small);
        }
    }
    Some(rest)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        match &page {
            Some(page) if self.check(page).is_none() => Err(ParquetError::General(
                "a page's counts are not what it holds".into(),
            )),
            _ => Ok(page),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
