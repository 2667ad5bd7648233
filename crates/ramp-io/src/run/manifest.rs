//! What marks a folder as a run's: `run.json`, with a checksum of every file that the run wrote.

use super::RunError;
use crate::{Error, Result};
use ramp::storage::{checksum, write_atomically};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file that marks a run.
pub(super) const MANIFEST: &str = "run.json";
/// The form of run folders.
const VERSION: u32 = 3;
/// A manifest has a line for each of a few files; what is longer is none.
const LONGEST: u64 = 1 << 16;

pub(super) const MODEL: &str = "model.toml";
pub(super) const WEIGHTS: &str = "weights.safetensors";
pub(super) const SUPPORT_TABLE: &str = "support.csv";
pub(super) const SUPPORT_ARRAYS: &str = "support.npz";
pub(super) const HELD_OUT: &str = "held_out.csv";
pub(super) const READOUT: &str = "readout.safetensors";
pub(super) const METRICS: &str = "metrics.jsonl";
pub(super) const REPORT: &str = "report.html";
/// Every file that a manifest may name.
pub(super) const NAMES: [&str; 8] = [
    MODEL,
    WEIGHTS,
    SUPPORT_TABLE,
    SUPPORT_ARRAYS,
    HELD_OUT,
    READOUT,
    METRICS,
    REPORT,
];

/// What a run consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    version: u32,
    /// The version of the software that wrote the run.
    software: String,
    /// Whether training came to its end.
    pub finished: bool,
    /// Its files.
    pub files: BTreeMap<String, Checksum>,
}

/// A file as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checksum {
    bytes: u64,
    sha256: String,
}

impl Checksum {
    pub fn of(path: &Path) -> Result<Self> {
        let (sha256, bytes) = checksum(path)?;
        Ok(Checksum { bytes, sha256 })
    }

    /// Whether a file is still what it was; one that is not there is not.
    pub fn fits(&self, path: &Path) -> Result<bool> {
        // The length first: a file of another one need not be read.
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() && found.len() == self.bytes => {
                Ok(Checksum::of(path)? == *self)
            }
            _ => Ok(false),
        }
    }
}

impl Manifest {
    /// That of a run whose training begins.
    pub fn begun() -> Self {
        Manifest {
            version: VERSION,
            software: env!("CARGO_PKG_VERSION").into(),
            finished: false,
            files: BTreeMap::new(),
        }
    }

    /// That of a finished run with those of its files that are in a folder, and the others as another manifest has them.
    pub fn finished(folder: &Path, others: Option<&Manifest>) -> Result<Self> {
        let mut files = others.map_or_else(BTreeMap::new, |others| others.files.clone());
        for name in NAMES {
            let path = folder.join(name);
            if path.exists() {
                files.insert(name.into(), Checksum::of(&path)?);
            }
        }
        Ok(Manifest {
            finished: true,
            files,
            ..Manifest::begun()
        })
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(RunError::Write)? + "\n";
        Ok(write_atomically(&folder.join(MANIFEST), text.as_bytes())?)
    }

    /// The manifest in a folder, if there is one.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(MANIFEST);
        let damaged = |why: String| RunError::Manifest {
            path: path.clone(),
            why,
        };
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() && found.len() <= LONGEST => {}
            Ok(_) => return Err(damaged("it is too long".into()).into()),
            // Below a file there is nothing either.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(_) => {}
        }
        let text = std::fs::read(&path).map_err(|source| Error::File {
            action: "read",
            path: path.clone(),
            source,
        })?;
        #[derive(Deserialize)]
        struct Writer {
            version: u32,
            software: String,
        }
        let writer: Writer = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        if writer.version != VERSION {
            let (software, this) = (writer.software, env!("CARGO_PKG_VERSION"));
            return Err(match writer.version > VERSION {
                true => RunError::Newer {
                    path,
                    software,
                    this,
                },
                false => RunError::Older {
                    path,
                    software,
                    this,
                },
            }
            .into());
        }
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        // Names lead nowhere but into the folder.
        match manifest.files.keys().find(|n| !NAMES.contains(&&n[..])) {
            Some(other) => Err(damaged(format!("a run has no file `{other}`")).into()),
            None => Ok(Some(manifest)),
        }
    }
}

/// The files of a run, wherever they lie while a new run takes an old one's place: see [`RunFolder`](super::RunFolder).
#[derive(Debug)]
pub(super) struct RunFiles {
    pub manifest: Manifest,
    folder: PathBuf,
    /// Where files are that have not taken their places yet.
    stage: Option<PathBuf>,
}

impl RunFiles {
    /// The files of the run in a folder, if it is marked as one.
    pub fn of(folder: &Path) -> Result<Option<Self>> {
        let stage = folder.join(super::claim::STAGE);
        let files = |manifest: Manifest, stage: Option<PathBuf>| RunFiles {
            manifest,
            folder: folder.to_path_buf(),
            stage,
        };
        match Manifest::read(&stage)? {
            Some(new) if new.finished => Ok(Some(files(new, Some(stage)))),
            _ => Ok(Manifest::read(folder)?.map(|manifest| files(manifest, None))),
        }
    }

    /// Where a file of the run is.
    pub fn path(&self, name: &str) -> PathBuf {
        let staged = self.stage.as_ref().map(|stage| stage.join(name));
        match staged.filter(|path| path.exists()) {
            Some(path) => path,
            None => self.folder.join(name),
        }
    }

    /// Where a file of the run is, if it is what the run wrote.
    pub fn checked(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        let Some(known) = self.manifest.files.get(name) else {
            let why = format!("it does not name `{name}`");
            let path = self.folder.join(MANIFEST);
            return Err(RunError::Manifest { path, why }.into());
        };
        match known.fits(&path)? {
            true => Ok(path),
            false if path.exists() => Err(RunError::Changed { path }.into()),
            false => Err(RunError::Gone { path }.into()),
        }
    }
}
