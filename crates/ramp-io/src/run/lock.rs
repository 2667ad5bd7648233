//! One writer per folder. The system's lock goes with its process, however that ends, so a lock is never stale.

use super::RunError;
use crate::{Error, Result};
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The file that is locked; it names the process that writes.
pub(super) const LOCK: &str = ".ramp-lock";

/// The right to write to a folder, until it is dropped.
#[derive(Debug)]
pub struct FolderLock {
    path: PathBuf,
    /// Held open: closing it gives the lock back.
    _file: File,
}

impl FolderLock {
    /// Takes the lock of a folder, which is made if it is not there; the error names the process that has it.
    pub fn take(folder: &Path) -> Result<Self> {
        let failed = |action: &'static str, path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::File {
                action,
                path,
                source,
            }
        };
        std::fs::create_dir_all(folder).map_err(failed("create", folder))?;
        let path = folder.join(LOCK);
        loop {
            let not_ours = || RunError::NotFromRun { path: path.clone() };
            // Never through a link into someone's file.
            if std::fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
                return Err(not_ours().into());
            }
            let mut file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(failed("write", &path))?;
            let locked = file.try_lock();
            let mut text = String::new();
            let read = (&mut file).take(64).read_to_string(&mut text);
            let process: Option<u32> = text.trim().parse().ok();
            match locked {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let folder = folder.to_path_buf();
                    return Err(RunError::Busy { folder, process }.into());
                }
                // A file system without locks.
                Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(e)) => return Err(failed("lock", &path)(e)),
            }
            if read.is_err() || !text.is_empty() && process.is_none() {
                return Err(not_ours().into());
            }
            // Whoever had it may have taken it away in between; then it is another file that others would lock.
            if !still_there(&file, &path) {
                continue;
            }
            let id = format!("{}\n", std::process::id());
            file.set_len(0)
                .and_then(|()| std::io::Seek::rewind(&mut file))
                .and_then(|()| file.write_all(id.as_bytes()))
                .map_err(failed("write", &path))?;
            return Ok(FolderLock { path, _file: file });
        }
    }
}

/// Whether a path leads to an open file.
fn still_there(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match (file.metadata(), std::fs::metadata(path)) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // While it is still locked; a file that stays does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}
