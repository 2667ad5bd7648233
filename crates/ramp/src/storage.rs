//! Files written whole or not at all, and arrays of numbers in them (safetensors: nothing that can execute on load).

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// A file that is not what it should be.
    #[error("`{}` is damaged or not a weights file: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

type Result<T, E = StorageError> = std::result::Result<T, E>;

/// Writes a file whole or not at all: see [`PendingFile`].
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<()> {
    let mut file = PendingFile::create(path)?;
    file.write_all(contents)
        .map_err(|source| StorageError::File {
            action: "write",
            path: path.to_path_buf(),
            source,
        })?;
    file.commit()
}

/// A file that grows under a temporary name beside its place and takes the place in [`commit`](Self::commit): a reader sees
/// the old file or the new one, whatever happens in between. Dropped before, it leaves nothing behind.
#[derive(Debug)]
#[must_use = "a pending file takes its place only when it is committed"]
pub struct PendingFile {
    file: File,
    path: PathBuf,
    temporary: PathBuf,
    committed: bool,
}

impl PendingFile {
    /// Starts a file. Missing folders are made.
    pub fn create(path: &Path) -> Result<Self> {
        // Several files of one process may be under way to the same place.
        static STARTED: AtomicU64 = AtomicU64::new(0);
        if path.is_dir() {
            return Err(StorageError::Folder {
                path: path.to_path_buf(),
            });
        }
        let folder = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|source| StorageError::File {
            action: "create",
            path: folder.to_path_buf(),
            source,
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = folder.join(format!(
            ".{name}.{}.{}.tmp",
            std::process::id(),
            STARTED.fetch_add(1, Ordering::Relaxed)
        ));
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary);
        let file = opened.map_err(|source| StorageError::File {
            action: "write",
            path: path.to_path_buf(),
            source,
        })?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            temporary,
            committed: false,
        })
    }

    /// The place that the file will take.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that the file is on the disk and puts it in its place.
    pub fn commit(mut self) -> Result<()> {
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.temporary, &self.path))
            .map_err(|source| StorageError::File {
                action: "write",
                path: self.path.clone(),
                source,
            })?;
        self.committed = true;
        Ok(())
    }
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

/// Writes named arrays with a line of text beside them.
pub fn write_tensors(
    path: &Path,
    tensors: Vec<(String, Vec<usize>, &[f32])>,
    text: &str,
) -> Result<()> {
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, shape, data)| {
            (
                name,
                shape,
                data.iter().flat_map(|x| x.to_le_bytes()).collect(),
            )
        })
        .collect();
    let unfit = |e: safetensors::SafeTensorError| StorageError::Arrays {
        path: path.to_path_buf(),
        reason: e.to_string(),
    };
    let views = bytes
        .iter()
        .map(|(name, shape, data)| {
            Ok((
                name.as_str(),
                TensorView::new(Dtype::F32, shape.clone(), data)?,
            ))
        })
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(unfit)?;
    let text = HashMap::from([("ramp".to_string(), text.to_string())]);
    let contents = safetensors::serialize(views, Some(text)).map_err(unfit)?;
    write_atomically(path, &contents)
}

/// Text and arrays by name.
pub type Stored = (String, HashMap<String, Vec<f32>>);

/// What [`write_tensors`] wrote: the text and the arrays by name; `None` where there is no such file.
pub fn read_tensors(path: &Path) -> Result<Option<Stored>> {
    let contents = match fs::read(path) {
        Ok(contents) => contents,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(StorageError::File {
                action: "read",
                path: path.to_path_buf(),
                source,
            });
        }
    };
    let damaged = |reason: String| StorageError::Damaged {
        path: path.to_path_buf(),
        reason,
    };
    let (_, header) = SafeTensors::read_metadata(&contents).map_err(|e| damaged(e.to_string()))?;
    let text = header
        .metadata()
        .as_ref()
        .and_then(|m| m.get("ramp"))
        .cloned()
        .unwrap_or_default();
    let tensors = SafeTensors::deserialize(&contents).map_err(|e| damaged(e.to_string()))?;
    let mut arrays = HashMap::new();
    for (name, view) in tensors.tensors() {
        if view.dtype() != Dtype::F32 {
            return Err(damaged(format!(
                "`{name}` is not an array of 32-bit numbers"
            )));
        }
        let numbers = view
            .data()
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        arrays.insert(name, numbers.collect());
    }
    Ok(Some((text, arrays)))
}
