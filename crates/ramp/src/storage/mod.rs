//! Files written whole or not at all, and arrays of numbers in them (safetensors: nothing that can execute on load) under a checksum.

mod pending;
mod tensors;

pub use pending::{PendingFile, remove_leftovers, write_atomically};
pub use tensors::{Arrays, Numbers, Stored, read_tensors, write_tensors};

use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Why a file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// A folder is where the file should be.
    #[error("`{}` is a folder; name a file in it", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// A pipe, a device or the like is where the file should be.
    #[error("`{}` is a pipe or a device, not a file; name a file", path.display())]
    NotAFile {
        /// The pipe.
        path: PathBuf,
    },
    /// The system could not do it.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// `read`, `write`, `create` …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Arrays whose shapes do not fit their numbers, or of the same name.
    #[error("arrays for `{}`: {reason}", path.display())]
    Arrays {
        /// The file they were for.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// Text beside the arrays that no reader would take.
    #[error(
        "the description beside the arrays of `{}` takes {} MB, and at most {} MB can be read again; use fewer or shorter names",
        path.display(), bytes >> 20, most >> 20
    )]
    TooLong {
        /// The file it was for.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// The most that can be read again.
        most: usize,
    },
    /// A file that is not what it should be.
    #[error("`{}` is damaged or not a weights file: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file whose contents are not those that its checksum was made of.
    #[error("`{}` is damaged: its contents do not match its checksum; restore it from a copy", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
    },
    /// A file without a checksum.
    #[error(
        "`{}` has no checksum: it is damaged, or of an older version of this software; write it again",
        path.display()
    )]
    NoChecksum {
        /// The file.
        path: PathBuf,
    },
}

type Result<T, E = StorageError> = std::result::Result<T, E>;

/// An error of the system with the file it is about.
fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> StorageError + 'a {
    move |source| StorageError::File {
        action,
        path: path.to_path_buf(),
        source,
    }
}

/// The SHA-256 of a file, in hexadecimal digits, and its length in bytes.
pub fn checksum(path: &Path) -> Result<(String, u64)> {
    let mut file = std::fs::File::open(path).map_err(failed("read", path))?;
    let (mut sum, mut length) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(failed("read", path))? {
            0 => return Ok((hexadecimal(&sum.finalize()), length)),
            read => {
                sum.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
}

/// Whether two paths lead to one file that is there, by links too.
pub fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match (std::fs::metadata(a), std::fs::metadata(b)) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
