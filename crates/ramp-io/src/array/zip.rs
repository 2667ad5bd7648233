//! Zip archives, as far as NumPy writes them: members stored or deflated, also beyond 4 GB.
//!
//! By hand, because all of it is two records and a trailer, and every size in them must be doubted anyway.

use flate2::Crc;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use ramp::names::shortened;
use ramp::storage::PendingFile;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A directory longer than this has some hundred thousand members, which no NPZ has.
const LONGEST_DIRECTORY: u64 = 64 << 20;

/// An archive that unpacks to more than a gigabyte and to so many times its size is made to fill the memory.
const LARGEST_UNCHECKED: u64 = 1 << 30;
const LARGEST_RATIO: u64 = 200;

const TOO_LARGE: u32 = u32::MAX;

/// A file that several readers share, each with its own place in it.
pub(crate) type Shared = Arc<Mutex<File>>;

/// Part of a shared file.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) file: Shared,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) at: u64,
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

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The members of an archive; the error says in half a sentence what is wrong with it.
pub(crate) fn members(file: &Shared, length: u64) -> Result<Vec<Member>, String> {
    let part = |start: u64, size: u64| -> Result<Vec<u8>, String> {
        if start.checked_add(size).is_none_or(|end| end > length) || size > LONGEST_DIRECTORY {
            return Err("it is cut off or damaged".into());
        }
        let mut bytes = vec![0; size as usize];
        let mut reader = Part {
            file: file.clone(),
            start,
            length: size,
            at: 0,
        };
        reader.read_exact(&mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes)
    };
    let tail_start = length.saturating_sub(22 + 0xffff);
    let tail = part(tail_start, length - tail_start)?;
    let end = (0..(tail.len() + 1).saturating_sub(22))
        .rev()
        .find(|&at| tail[at..].starts_with(b"PK\x05\x06"))
        .ok_or("it is not a zip archive, or cut off")?;
    let mut count = u64::from(u16_at(&tail, end + 10));
    let mut size = u64::from(u32_at(&tail, end + 12));
    let mut start = u64::from(u32_at(&tail, end + 16));
    if end >= 20 && tail[end - 20..].starts_with(b"PK\x06\x07") {
        let large = part(u64_at(&tail, end - 20 + 8), 56)?;
        if !large.starts_with(b"PK\x06\x06") {
            return Err("its directory is damaged".into());
        }
        (count, size, start) = (u64_at(&large, 32), u64_at(&large, 40), u64_at(&large, 48));
    }
    let directory = part(start, size)?;
    let mut members = Vec::new();
    let (mut at, mut total) = (0, 0_u64);
    for _ in 0..count {
        let (mut member, used, header) = entry(&directory[at.min(directory.len())..])?;
        at += used;
        let local = part(header, 30)?;
        if !local.starts_with(b"PK\x03\x04") {
            return Err(format!(
                "its member `{}` is damaged",
                shortened(&member.name)
            ));
        }
        member.start = header + 30 + u64::from(u16_at(&local, 26)) + u64::from(u16_at(&local, 28));
        if member
            .start
            .checked_add(member.packed)
            .is_none_or(|end| end > length)
        {
            return Err(format!(
                "its member `{}` is cut off",
                shortened(&member.name)
            ));
        }
        if !member.deflated && member.packed != member.size {
            return Err(format!(
                "its member `{}` is damaged",
                shortened(&member.name)
            ));
        }
        total = total.saturating_add(member.size);
        members.push(member);
    }
    if total > LARGEST_UNCHECKED && total / LARGEST_RATIO > length {
        return Err(format!(
            "it would unpack to {} MB, more than {LARGEST_RATIO} times its size",
            total >> 20
        ));
    }
    Ok(members)
}

/// A member as the directory has it, how long its entry is, and where its own header stands.
fn entry(bytes: &[u8]) -> Result<(Member, usize, u64), String> {
    let damaged = || "its directory is damaged".to_owned();
    if bytes.len() < 46 || !bytes.starts_with(b"PK\x01\x02") {
        return Err(damaged());
    }
    let (name_length, extra_length) = (
        usize::from(u16_at(bytes, 28)),
        usize::from(u16_at(bytes, 30)),
    );
    let used = 46 + name_length + extra_length + usize::from(u16_at(bytes, 32));
    if bytes.len() < used {
        return Err(damaged());
    }
    let name = String::from_utf8_lossy(&bytes[46..46 + name_length]).into_owned();
    let mut extra = &bytes[46 + name_length..46 + name_length + extra_length];
    let mut wide: &[u8] = &[];
    while extra.len() >= 4 {
        let (id, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let Some(contents) = extra.get(4..4 + length) else {
            break;
        };
        if id == 1 {
            wide = contents;
        }
        extra = &extra[4 + length..];
    }
    // Numbers that do not fit into 32 bits stand in the extra field, in this order.
    let mut number = |at: usize| match u32_at(bytes, at) {
        TOO_LARGE if wide.len() >= 8 => {
            let number = u64_at(wide, 0);
            wide = &wide[8..];
            number
        }
        number => u64::from(number),
    };
    let (size, packed, header) = (number(24), number(20), number(42));
    if u16_at(bytes, 8) & 1 != 0 {
        return Err(format!("its member `{}` is encrypted", shortened(&name)));
    }
    let deflated = match u16_at(bytes, 10) {
        0 => false,
        8 => true,
        method => {
            return Err(format!(
                "its member `{}` is packed by method {method}: pack it with deflate or not at all",
                shortened(&name)
            ));
        }
    };
    let member = Member {
        name,
        deflated,
        checksum: u32_at(bytes, 16),
        start: 0,
        packed,
        size,
    };
    Ok((member, used, header))
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
    file: BufWriter<PendingFile>,
    members: Vec<(Member, u64)>,
}

impl ZipWriter {
    pub(crate) fn new(file: PendingFile) -> Self {
        Self {
            file: BufWriter::with_capacity(1 << 16, file),
            members: Vec::new(),
        }
    }

    /// Adds a member, whose bytes `write` hands over.
    pub(crate) fn add(
        &mut self,
        name: &str,
        deflate: bool,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let header = self.file.stream_position()?;
        let mut member = Member {
            name: name.to_owned(),
            deflated: deflate,
            checksum: 0,
            start: header,
            packed: 0,
            size: 0,
        };
        self.file.write_all(&local_header(&member))?;
        let data = self.file.stream_position()?;
        let (checksum, size) = {
            let mut counted = Counted {
                inner: Packer::new(&mut self.file, deflate),
                checksum: Crc::new(),
                size: 0,
            };
            write(&mut counted)?;
            counted.inner.finish()?;
            (counted.checksum, counted.size)
        };
        let end = self.file.stream_position()?;
        (member.checksum, member.size, member.packed) = (checksum.sum(), size, end - data);
        self.file.seek(SeekFrom::Start(header))?;
        self.file.write_all(&local_header(&member))?;
        self.file.seek(SeekFrom::Start(end))?;
        self.members.push((member, header));
        Ok(())
    }

    /// Writes the directory.
    pub(crate) fn finish(mut self) -> io::Result<PendingFile> {
        let start = self.file.stream_position()?;
        for (member, header) in &self.members {
            let mut wide = Vec::new();
            let mut narrow = |number: u64| {
                u32::try_from(number)
                    .ok()
                    .filter(|&n| n != TOO_LARGE)
                    .unwrap_or_else(|| {
                        wide.extend(number.to_le_bytes());
                        TOO_LARGE
                    })
            };
            let (size, packed, header) =
                (narrow(member.size), narrow(member.packed), narrow(*header));
            let mut entry = b"PK\x01\x02".to_vec();
            for half in [
                45,
                45,
                0x800,
                if member.deflated { 8 } else { 0 },
                0,
                33_u16,
            ] {
                entry.extend(half.to_le_bytes());
            }
            for word in [member.checksum, packed, size] {
                entry.extend(word.to_le_bytes());
            }
            let extra = if wide.is_empty() {
                0
            } else {
                4 + wide.len() as u16
            };
            for half in [member.name.len() as u16, extra, 0, 0, 0] {
                entry.extend(half.to_le_bytes());
            }
            entry.extend([0; 4]);
            entry.extend(header.to_le_bytes());
            entry.extend(member.name.as_bytes());
            if extra > 0 {
                entry.extend(1_u16.to_le_bytes());
                entry.extend((extra - 4).to_le_bytes());
                entry.extend(wide);
            }
            self.file.write_all(&entry)?;
        }
        let end = self.file.stream_position()?;
        let count = self.members.len() as u64;
        let mut trailer = Vec::new();
        // Always the wide one beside the narrow one: readers that do not need it skip it.
        trailer.extend(b"PK\x06\x06");
        trailer.extend(44_u64.to_le_bytes());
        trailer.extend([45, 0, 45, 0]);
        trailer.extend([0; 8]);
        for number in [count, count, end - start, start] {
            trailer.extend(number.to_le_bytes());
        }
        trailer.extend(b"PK\x06\x07\0\0\0\0");
        trailer.extend(end.to_le_bytes());
        trailer.extend(1_u32.to_le_bytes());
        trailer.extend(b"PK\x05\x06\0\0\0\0");
        let few = u16::try_from(count).unwrap_or(u16::MAX);
        trailer.extend([few.to_le_bytes(), few.to_le_bytes()].concat());
        for number in [end - start, start] {
            trailer.extend(u32::try_from(number).unwrap_or(TOO_LARGE).to_le_bytes());
        }
        trailer.extend([0; 2]);
        self.file.write_all(&trailer)?;
        self.file.into_inner().map_err(|e| e.into_error())
    }
}

/// With room for sizes beyond 4 GB, as NumPy itself writes it: they are known only afterwards.
fn local_header(member: &Member) -> Vec<u8> {
    let mut header = b"PK\x03\x04".to_vec();
    for half in [45, 0x800, if member.deflated { 8 } else { 0 }, 0, 33_u16] {
        header.extend(half.to_le_bytes());
    }
    for word in [member.checksum, TOO_LARGE, TOO_LARGE] {
        header.extend(word.to_le_bytes());
    }
    for half in [member.name.len() as u16, 20] {
        header.extend(half.to_le_bytes());
    }
    header.extend(member.name.as_bytes());
    header.extend([1, 0, 16, 0]);
    header.extend(member.size.to_le_bytes());
    header.extend(member.packed.to_le_bytes());
    header
}

enum Packer<W: Write> {
    Stored(W),
    Deflated(DeflateEncoder<W>),
}

impl<W: Write> Packer<W> {
    fn new(to: W, deflate: bool) -> Self {
        if deflate {
            Packer::Deflated(DeflateEncoder::new(to, flate2::Compression::default()))
        } else {
            Packer::Stored(to)
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Packer::Stored(_) => Ok(()),
            Packer::Deflated(encoder) => encoder.finish().map(drop),
        }
    }
}

struct Counted<W: Write> {
    inner: Packer<W>,
    checksum: Crc,
    size: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match &mut self.inner {
            Packer::Stored(to) => to.write(bytes)?,
            Packer::Deflated(encoder) => encoder.write(bytes)?,
        };
        self.checksum.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
