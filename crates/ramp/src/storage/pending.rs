//! A file on its way: it grows under a temporary name, beside the place that it takes when it is whole.
//!
//! Temporary names cannot be guessed and are made exclusively, so nobody can put a link in their way. As long as a file is under way it
//! is locked; the lock goes with its process, however that ends, so a temporary file without a lock is a leftover.

use super::{Result, StorageError, failed};
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How temporary files begin and end.
const NAME: (&str, &str) = (".ramp-", ".tmp");

/// Writes a file whole or not at all: see [`PendingFile`].
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<()> {
    let mut file = PendingFile::create(path)?;
    file.write_all(contents).map_err(failed("write", path))?;
    file.commit()
}

/// A file that grows under a temporary name beside its place and takes the place in [`commit`](Self::commit): a reader sees
/// the old file or the new one, whatever happens in between. Dropped before, it leaves nothing behind. A file that is replaced hands on its
/// permissions; a link stays, and what it points to is replaced.
#[derive(Debug)]
#[must_use = "a pending file takes its place only when it is committed"]
pub struct PendingFile {
    file: File,
    path: PathBuf,
    /// The file itself where the path is a link.
    target: PathBuf,
    temporary: PathBuf,
    committed: bool,
}

impl PendingFile {
    /// Starts a file. Missing folders are made.
    pub fn create(path: &Path) -> Result<Self> {
        let target = match fs::symlink_metadata(path) {
            Ok(link) if link.is_symlink() => path.canonicalize().unwrap_or(path.into()),
            _ => path.into(),
        };
        let replaced = fs::metadata(&target).ok();
        match &replaced {
            Some(old) if old.is_dir() => return Err(StorageError::Folder { path: path.into() }),
            Some(old) if !old.is_file() => {
                return Err(StorageError::NotAFile { path: path.into() });
            }
            _ => {}
        }
        let folder = folder_of(&target);
        fs::create_dir_all(folder).map_err(failed("create", folder))?;
        let (file, temporary) = begin(folder, replaced.is_some()).map_err(failed("write", path))?;
        let pending = Self {
            file,
            path: path.to_path_buf(),
            target,
            temporary,
            committed: false,
        };
        if let Some(old) = replaced {
            take_after(&pending.file, &old).map_err(failed("write", path))?;
        }
        Ok(pending)
    }

    /// The place that the file will take.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that the file is on the disk and puts it in its place.
    pub fn commit(mut self) -> Result<()> {
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.temporary, &self.target))
            .map_err(failed("write", &self.path))?;
        self.committed = true;
        sync_folder(folder_of(&self.target));
        Ok(())
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Makes sure that new names in a folder are on the disk, where the system can do that.
fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// A new file that nobody else has, with its lock. One that takes another's place begins for its owner's eyes only.
fn begin(folder: &Path, replaces: bool) -> std::io::Result<(File, PathBuf)> {
    loop {
        // Both keys come from the system's source of randomness.
        let random = || RandomState::new().build_hasher().finish();
        let name = format!("{}{:016x}{:016x}{}", NAME.0, random(), random(), NAME.1);
        let temporary = folder.join(name);
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        if replaces {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = replaces;
        let file = match options.open(&temporary) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        match file.try_lock() {
            // Someone who cleans up was between the two calls: another name.
            Err(TryLockError::WouldBlock) => continue,
            // A file system without locks has leftovers that stay.
            _ if temporary.exists() => return Ok((file, temporary)),
            _ => continue,
        }
    }
}

/// Gives a new file the permissions of an old one and, where this process may, its owner.
fn take_after(file: &File, old: &fs::Metadata) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
        }
    }
    let mut permissions = old.permissions();
    // A file that must not be written over is replaced all the same if its folder allows it, as `mv` does.
    if !cfg!(unix) {
        #[allow(clippy::permissions_set_readonly_false)]
        permissions.set_readonly(false);
    }
    file.set_permissions(permissions)
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// What has been written can be read again before it takes its place.
impl Read for PendingFile {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.file.read(into)
    }
}

impl Seek for PendingFile {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.committed {
            // Nobody is left to tell about a leftover that cannot be removed.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Removes what killed processes left under way in a folder. Files that are still under way stay, and so does everything else.
pub fn remove_leftovers(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(random) = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME.0)?.strip_suffix(NAME.1))
        else {
            continue;
        };
        let ours = random.len() == 32 && random.bytes().all(|b| b.is_ascii_hexdigit());
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = File::options().write(true).open(entry.path()) else {
            continue;
        };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}
