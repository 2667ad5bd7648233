//! Zip archives of arrays: the directory is read and written by the `zip` crate; members are read from any place on, several at
//! once, and every size in the directory is doubted.

use super::ArchiveDamage;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use ramp::storage::PendingFile;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive};

/// More members than this no NPZ has.
const MOST_MEMBERS: usize = 1 << 20;

/// An archive that unpacks to more than a gigabyte and to so many times its size is made to fill the memory.
const LARGEST_UNCHECKED: u64 = 1 << 30;
const LARGEST_RATIO: u64 = 200;

/// A file that several readers share, each with its own place in it.
pub(crate) type Shared = Arc<Mutex<File>>;

/// Part of a shared file.
#[derive(Clone)]
pub(crate) struct Part {
    file: Shared,
    start: u64,
    length: u64,
    at: u64,
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.at);
        let most = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        // A reader that panicked while it held the file left nothing half done: each seeks first.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.start + self.at))?;
        let count = file.read(&mut into[..most])?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Part {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// One member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) deflated: bool,
    pub(crate) checksum: u32,
    /// Where its bytes stand.
    pub(crate) start: u64,
    /// How many they are.
    pub(crate) packed: u64,
    /// How many they become.
    pub(crate) size: u64,
}

/// The members of an archive.
pub(crate) fn members(file: &Shared, length: u64) -> Result<Vec<Member>, ArchiveDamage> {
    let whole = Part {
        file: file.clone(),
        start: 0,
        length,
        at: 0,
    };
    let said = |e: zip::result::ZipError| ArchiveDamage::Said {
        said: e.to_string(),
    };
    let mut archive = ZipArchive::new(BufReader::new(whole)).map_err(said)?;
    if archive.len() > MOST_MEMBERS {
        return Err(ArchiveDamage::Directory);
    }
    let twice = archive.has_duplicate_names();
    let (mut members, mut total) = (Vec::new(), 0_u64);
    for place in 0..archive.len() {
        let found = archive.by_index_raw(place).map_err(said)?;
        let name = String::from_utf8_lossy(found.name_raw()).into_owned();
        let deflated = match found.compression() {
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            method => {
                let method = method.to_string();
                return Err(ArchiveDamage::Method {
                    member: name,
                    method,
                });
            }
        };
        if found.encrypted() {
            return Err(ArchiveDamage::Encrypted { member: name });
        }
        let member = Member {
            deflated,
            checksum: found.crc32(),
            start: found.data_start().unwrap_or(length),
            packed: found.compressed_size(),
            size: found.size(),
            name,
        };
        let end = member.start.checked_add(member.packed);
        if end.is_none_or(|end| end > length) {
            return Err(ArchiveDamage::CutOff {
                member: member.name,
            });
        }
        if !member.deflated && member.packed != member.size {
            return Err(ArchiveDamage::Damaged {
                member: member.name,
            });
        }
        total = total.saturating_add(member.size);
        members.push(member);
    }
    if let (true, Some(member)) = (twice, members.first()) {
        return Err(ArchiveDamage::SameName {
            name: member.name.trim_end_matches(".npy").to_owned(),
        });
    }
    if total > LARGEST_UNCHECKED && total / LARGEST_RATIO > length {
        return Err(ArchiveDamage::Bomb {
            megabytes: total >> 20,
            ratio: LARGEST_RATIO,
        });
    }
    Ok(members)
}

/// A member's bytes from any place on, checked against its checksum if they are read from the first to the last.
pub(crate) struct MemberReader {
    file: Shared,
    member: Member,
    unpacked: Unpacked,
    at: u64,
    checksum: Option<Crc>,
}

enum Unpacked {
    Stored(Part),
    Deflated(DeflateDecoder<Part>),
}

impl MemberReader {
    pub(crate) fn new(file: Shared, member: Member) -> Self {
        let unpacked = Self::unpack(&file, &member);
        Self {
            file,
            member,
            unpacked,
            at: 0,
            checksum: Some(Crc::new()),
        }
    }

    /// For a file that has none.
    pub(crate) fn without_checksum(file: Shared, member: Member) -> Self {
        let mut reader = Self::new(file, member);
        reader.checksum = None;
        reader
    }

    fn unpack(file: &Shared, member: &Member) -> Unpacked {
        let part = Part {
            file: file.clone(),
            start: member.start,
            length: member.packed,
            at: 0,
        };
        if member.deflated {
            Unpacked::Deflated(DeflateDecoder::new(part))
        } else {
            Unpacked::Stored(part)
        }
    }

    /// Goes to a place; backwards in a deflated member means to begin again.
    pub(crate) fn go_to(&mut self, place: u64) -> io::Result<()> {
        if place == self.at {
            return Ok(());
        }
        self.checksum = None;
        if let Unpacked::Stored(part) = &mut self.unpacked {
            part.at = place;
            self.at = place;
            return Ok(());
        }
        if place < self.at {
            self.unpacked = Self::unpack(&self.file, &self.member);
            self.at = 0;
        }
        let skip = place - self.at;
        if io::copy(&mut self.by_ref().take(skip), &mut io::sink())? < skip {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl Read for MemberReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.member.size.saturating_sub(self.at);
        let most = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = match &mut self.unpacked {
            Unpacked::Stored(part) => part.read(&mut into[..most])?,
            Unpacked::Deflated(decoder) => decoder.read(&mut into[..most])?,
        };
        self.at += count as u64;
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&into[..count]);
            if self.at == self.member.size && checksum.sum() != self.member.checksum {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "its checksum does not fit",
                ));
            }
        }
        Ok(count)
    }
}

/// An archive on its way into a file.
pub(crate) struct ZipWriter {
    zip: zip::ZipWriter<BufWriter<PendingFile>>,
}

impl ZipWriter {
    pub(crate) fn new(file: PendingFile) -> Self {
        let file = BufWriter::with_capacity(1 << 16, file);
        Self {
            zip: zip::ZipWriter::new(file),
        }
    }

    /// Adds a member, whose bytes `write` hands over.
    pub(crate) fn add(
        &mut self,
        name: &str,
        deflate: bool,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let method = match deflate {
            true => CompressionMethod::Deflated,
            false => CompressionMethod::Stored,
        };
        let options = SimpleFileOptions::default()
            .compression_method(method)
            // The same arrays make the same file.
            .last_modified_time(DateTime::default())
            // Sizes are known only afterwards.
            .large_file(true);
        self.zip.start_file(name, options)?;
        write(&mut self.zip)
    }

    /// Writes the directory.
    pub(crate) fn finish(self) -> io::Result<PendingFile> {
        self.zip.finish()?.into_inner().map_err(|e| e.into_error())
    }
}
