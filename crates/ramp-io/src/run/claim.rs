//! Who may write to a run folder, and how a new run takes an old one's place: whole or not at all, and never over a user's file.
//!
//! A run is written into a folder of its own inside (the stage). When its manifest is there, the new run counts: readers take its files from
//! the stage until they have been moved to their places, and a process that ends in between leaves that to the next one.

use super::folder::{write_readout, write_support, write_weights};
use super::lock::FolderLock;
use super::manifest::{MANIFEST, METRICS, MODEL, Manifest, NAMES, REPORT};
use super::{Project, Run, RunError};
use crate::{Error, Result};
use ramp::storage::{PendingFile, remove_leftovers, same_file, write_atomically};
use ramp::train::{checkpoint_file, records_file};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where a new run is written.
pub(super) const STAGE: &str = ".next";
/// Where the state of training is.
const CHECKPOINTS: &str = "checkpoint";

/// What is to become of a run that is in a folder already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// There must be none.
    New,
    /// It goes on.
    Resume,
    /// It stays until the new one is whole.
    Overwrite,
}

/// A run folder that this process alone writes to.
#[derive(Debug)]
pub struct RunFolder {
    folder: PathBuf,
    /// Where training keeps its state: the folder, or the stage while an older run is in the folder.
    work: PathBuf,
    /// The files that are read; they are not to be written over.
    inputs: Vec<PathBuf>,
    _lock: FolderLock,
}

/// What is in a folder.
struct Found {
    /// The manifest of the run in its place.
    placed: Option<Manifest>,
    /// That of the stage.
    staged: Option<Manifest>,
}

impl Found {
    fn of(folder: &Path) -> Result<Self> {
        Ok(Found {
            placed: Manifest::read(folder)?,
            staged: Manifest::read(&folder.join(STAGE))?,
        })
    }

    /// Whether a new run was begun in the stage and can go on there.
    fn resumes_in_stage(&self, folder: &Path) -> bool {
        self.staged.as_ref().is_some_and(|m| !m.finished) && has_state(&folder.join(STAGE))
    }

    /// Whether there is anything worth keeping.
    fn is_run(&self, folder: &Path) -> bool {
        let finished = |m: &Option<Manifest>| m.as_ref().is_some_and(|m| m.finished);
        finished(&self.placed)
            || finished(&self.staged)
            || self.placed.is_some() && has_state(folder)
            || self.resumes_in_stage(folder)
    }
}

fn has_state(work: &Path) -> bool {
    checkpoint_file(&work.join(CHECKPOINTS)).exists()
}

/// Whether there is no stage, or one without any file: a process may have ended before the first or after the last.
fn is_bare(stage: &Path) -> bool {
    let empty =
        |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    match std::fs::read_dir(stage) {
        Err(_) => !stage.exists(),
        Ok(mut entries) => entries
            .all(|entry| entry.is_ok_and(|e| e.file_name() == CHECKPOINTS && empty(&e.path()))),
    }
}

impl RunFolder {
    /// Whether a run may be written into a folder: nothing there may be a user's, or one of the files that are read. Nothing is
    /// touched.
    pub fn check(folder: &Path, intent: Intent, inputs: &[PathBuf]) -> Result<()> {
        Self::find(folder, intent, inputs).map(drop)
    }

    fn find(folder: &Path, intent: Intent, inputs: &[PathBuf]) -> Result<Found> {
        if folder.exists() && !folder.is_dir() {
            let folder = folder.to_path_buf();
            return Err(RunError::FolderIsFile { folder }.into());
        }
        let found = Found::of(folder)?;
        let stage = folder.join(STAGE);
        let checkpoints = folder.join(CHECKPOINTS);
        let state = [checkpoint_file(&checkpoints), records_file(&checkpoints)];
        let places = NAMES.iter().chain([&MANIFEST]).map(|n| folder.join(n));
        for path in places.chain(state.clone()) {
            if inputs.iter().any(|input| same_file(input, &path)) {
                return Err(RunError::OverInput { path }.into());
            }
        }
        // In a folder that is no run's, nothing is the run's.
        let unmarked_state = state.iter().find(|p| found.placed.is_none() && p.exists());
        let unmarked_stage = Some(&stage).filter(|s| found.staged.is_none() && !is_bare(s));
        if let Some(path) = unmarked_state.or(unmarked_stage) {
            return Err(RunError::NotFromRun { path: path.clone() }.into());
        }
        for name in NAMES {
            let path = folder.join(name);
            let known = [&found.placed, &found.staged].map(|m| m.as_ref()?.files.get(name));
            if !path.exists() {
                continue;
            }
            let mut known = known.into_iter().flatten().peekable();
            if known.peek().is_none() {
                return Err(RunError::NotFromRun { path }.into());
            }
            let mut fits = false;
            for sum in known {
                fits |= sum.fits(&path)?;
            }
            if !fits {
                return Err(RunError::ChangedByHand { path }.into());
            }
        }
        let is_run = found.is_run(folder);
        let folder_name = || folder.to_path_buf();
        match intent {
            Intent::New if is_run => Err(RunError::Occupied {
                folder: folder_name(),
            }
            .into()),
            Intent::Resume if !has_state(folder) && !has_state(&stage) => {
                Err(RunError::NothingToResume {
                    folder: folder_name(),
                    gone: is_run,
                }
                .into())
            }
            _ => Ok(found),
        }
    }

    /// Takes the folder for a training: locks it, tidies up after processes that were killed, and marks it as a run's.
    pub fn claim(folder: &Path, intent: Intent, inputs: &[PathBuf]) -> Result<Self> {
        let lock = FolderLock::take(folder)?;
        tidy(folder);
        let mut found = Self::find(folder, intent, inputs)?;
        let stage = folder.join(STAGE);
        if found.staged.as_ref().is_some_and(|m| m.finished) {
            promote(folder)?;
            found = Found::of(folder)?;
        }
        let in_stage = match intent {
            Intent::New => false,
            Intent::Resume => found.resumes_in_stage(folder),
            Intent::Overwrite => found.is_run(folder),
        };
        if !in_stage || intent == Intent::Overwrite {
            clear(&stage)?;
        }
        let work = if in_stage { stage } else { folder.into() };
        if Manifest::read(&work)?.is_none() {
            Manifest::begun().write(&work)?;
        }
        Ok(RunFolder {
            folder: folder.to_path_buf(),
            work,
            inputs: inputs.to_vec(),
            _lock: lock,
        })
    }

    /// Takes the folder of a finished run, to change what does not depend on its training.
    pub fn claim_finished(folder: &Path) -> Result<Self> {
        // No lock is left in a folder that is no run.
        if Found::of(folder)?.placed.is_none() {
            return Err(not_finished(folder).into());
        }
        let lock = FolderLock::take(folder)?;
        tidy(folder);
        let found = Self::find(folder, Intent::Overwrite, &[])?;
        match found.staged {
            Some(new) if new.finished => promote(folder)?,
            // A training that was stopped may go on.
            Some(_) => {}
            None => clear(&folder.join(STAGE))?,
        }
        Ok(RunFolder {
            folder: folder.to_path_buf(),
            work: folder.to_path_buf(),
            inputs: vec![],
            _lock: lock,
        })
    }

    /// Where training keeps its state.
    pub fn checkpoints(&self) -> PathBuf {
        self.work.join(CHECKPOINTS)
    }

    /// Writes a trained project with its report. The run that was there before stays whole until this one is.
    pub fn finish(&self, project: &Project, report: &str) -> Result<()> {
        self.write(project, report, write_readout)
    }

    /// The same in a moment, for a training that was stopped: what takes long is left out, which is the report and how gaps are read off the rest of a row.
    pub fn finish_unmeasured(&self, project: &Project) -> Result<()> {
        self.write(project, "", |_, _| Ok(()))
    }

    fn write(
        &self,
        project: &Project,
        report: &str,
        readout: impl FnOnce(&Project, &Path) -> Result<()>,
    ) -> Result<()> {
        let records = records_file(&self.checkpoints());
        self.replace(None, |stage| {
            write_atomically(&stage.join(MODEL), project.settings.as_bytes())?;
            write_support(project, stage)?;
            readout(project, stage)?;
            if records.exists() {
                copy(&records, &stage.join(METRICS))?;
            }
            write_atomically(&stage.join(REPORT), report.as_bytes())?;
            write_weights(project, stage)
        })
    }

    /// Writes a copy of a run that is elsewhere. The run that was there before stays whole until this one is.
    pub fn copy_run(&self, run: &Run) -> Result<()> {
        self.replace(None, |stage| {
            for name in run.run_files().manifest.files.keys() {
                copy(&run.run_files().checked(name)?, &stage.join(name))?;
            }
            Ok(())
        })
    }

    /// Writes another report of the run.
    pub fn replace_report(&self, report: &str) -> Result<()> {
        let placed = Manifest::read(&self.folder)?;
        self.replace(placed.as_ref(), |stage| {
            Ok(write_atomically(&stage.join(REPORT), report.as_bytes())?)
        })
    }

    /// Lets files take their places together.
    fn replace(
        &self,
        others: Option<&Manifest>,
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        // Hours may have passed since the folder was found in order.
        Self::find(&self.folder, Intent::Overwrite, &self.inputs)?;
        let stage = self.folder.join(STAGE);
        if Manifest::read(&stage)?.is_none() {
            Manifest::begun().write(&stage)?;
        }
        let written = write(&stage)
            .and_then(|()| Manifest::finished(&stage, others))
            .and_then(|manifest| manifest.write(&stage));
        if let Err(error) = written {
            // The state of training stays; what is half written makes room, on a full disk above all.
            let _ = NAMES.iter().try_for_each(|name| remove(&stage.join(name)));
            if self.work != stage {
                let _ = clear(&stage);
            }
            return Err(error);
        }
        promote(&self.folder)
    }
}

/// A folder in which nothing came of a training is left as it was found.
impl Drop for RunFolder {
    fn drop(&mut self) {
        let begun = Manifest::read(&self.work).is_ok_and(|m| m.is_some_and(|m| !m.finished));
        if begun && !has_state(&self.work) {
            let checkpoints = self.checkpoints();
            let _ = remove(&records_file(&checkpoints));
            let _ = remove(&self.work.join(MANIFEST));
            let _ = std::fs::remove_dir(&checkpoints);
            if self.work != self.folder {
                let _ = std::fs::remove_dir(&self.work);
            }
        }
    }
}

pub(super) fn not_finished(folder: &Path) -> RunError {
    RunError::NotFinished {
        folder: folder.into(),
        begun: has_state(folder) || has_state(&folder.join(STAGE)),
    }
}

/// Removes what killed processes left under way.
fn tidy(folder: &Path) {
    let stage = folder.join(STAGE);
    for place in [folder, &stage] {
        remove_leftovers(place);
        remove_leftovers(&place.join(CHECKPOINTS));
    }
}

/// Moves the files of a finished run from the stage to their places; what has been moved before stays where it is.
fn promote(folder: &Path) -> Result<()> {
    let stage = folder.join(STAGE);
    let old = Manifest::read(folder)?;
    let Some(new) = Manifest::read(&stage)? else {
        return Ok(());
    };
    let checkpoints = |place: &Path| place.join(CHECKPOINTS);
    let (from, to) = (checkpoints(&stage), checkpoints(folder));
    if has_state(&stage) {
        std::fs::create_dir_all(&to).map_err(failed("create", &to))?;
    }
    for (from, to) in [
        (records_file(&from), records_file(&to)),
        (checkpoint_file(&from), checkpoint_file(&to)),
    ] {
        step(&from, &to)?;
    }
    for name in new.files.keys() {
        step(&stage.join(name), &folder.join(name))?;
    }
    for name in old.iter().flat_map(|old| old.files.keys()) {
        if !new.files.contains_key(name) {
            remove(&folder.join(name))?;
        }
    }
    step(&stage.join(MANIFEST), &folder.join(MANIFEST))?;
    clear(&stage)
}

/// Takes away a stage: the files that a run has there, and no others.
fn clear(stage: &Path) -> Result<()> {
    let checkpoints = stage.join(CHECKPOINTS);
    remove(&records_file(&checkpoints))?;
    remove(&checkpoint_file(&checkpoints))?;
    for name in NAMES {
        remove(&stage.join(name))?;
    }
    // The mark goes last: without it, nobody may touch the rest.
    remove(&stage.join(MANIFEST))?;
    for folder in [&checkpoints, stage] {
        match std::fs::remove_dir(folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(failed("remove", folder))?,
        }
    }
    Ok(())
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::File {
        action,
        path,
        source,
    }
}

/// Moves a file over another, unless that has been done.
fn step(from: &Path, to: &Path) -> Result<()> {
    match std::fs::rename(from, to) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        moved => moved.map_err(failed("write", to)),
    }
}

/// Takes away a file, if it is there.
fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(failed("remove", path)),
    }
}

/// Copies a file of any length.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut read = std::fs::File::open(from).map_err(failed("read", from))?;
    let mut file = PendingFile::create(to)?;
    std::io::copy(&mut read, &mut file).map_err(failed("write", to))?;
    Ok(file.commit()?)
}
