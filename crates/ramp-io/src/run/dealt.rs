//! A project whose samples are dealt to ranks: each reads and holds some of them, and what any of them needs of the others' they gather together.

use super::Project;
use super::data_file::DataFile;
use super::manifest::Checksum;
use crate::model_file::ModelFile;
use crate::ranks::{Parts, description, engine, together};
use crate::source::{SampleReader, Samples, SourceError};
use crate::{Error, Result};
use ramp::collective::{Collective, broadcast_bytes, ends_of, gather_numbers};
use ramp::data::{Dataset, Gather, Observation};
use ramp::train::{TrainError, same_on_all};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Of larger files, so many blocks of so many bytes are looked at to see whether ranks have the same.
const BLOCKS: u64 = 256;
const BLOCK: u64 = 4096;

/// What is known of all samples, wherever they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    /// How many there are.
    pub rows: usize,
    /// The steps of the longest sequence, and of the shortest.
    pub steps: usize,
    pub shortest: usize,
    /// Items of all sequences.
    pub items: usize,
    /// For every observation in how many items it is missing, of how many; where samples are dealt.
    pub missing: Option<Vec<(u64, u64)>>,
}

impl Extent {
    pub fn of(samples: &Samples, parts: Option<&Parts>) -> Result<Self> {
        let sequences = || samples.sequences.iter().flatten();
        let shortest = sequences().map(|s| s.length as usize).min();
        let own = [
            samples.steps() as u64,
            // The largest stands for the smallest.
            !(shortest.map_or(u64::MAX, |s| s as u64)),
            sequences().map(|s| s.items.len() as u64).sum(),
        ];
        let all = match parts {
            None => own.to_vec(),
            Some(parts) => gather_numbers(&*parts.ranks, &own).map_err(engine)?,
        };
        let each = |at: usize| all.chunks_exact(own.len()).map(move |said| said[at]);
        Ok(Extent {
            rows: parts.map_or(samples.len(), Parts::rows),
            steps: each(0).max().unwrap_or(0) as usize,
            shortest: match !each(1).max().unwrap_or(0) {
                u64::MAX => 0,
                shortest => shortest as usize,
            },
            items: each(2).sum::<u64>() as usize,
            missing: None,
        })
    }

    /// Counts on all ranks together what is missing.
    pub fn count_missing(&mut self, own: &Dataset, ranks: &dyn Collective) -> Result<()> {
        let counted = own.observations().iter().flat_map(|o| {
            let (gone, all) = missing_in(own, o);
            [gone, all]
        });
        let counted: Vec<u64> = counted.collect();
        let all = gather_numbers(ranks, &counted).map_err(engine)?;
        let sum = |at: usize| all.chunks_exact(counted.len()).map(|said| said[at]).sum();
        let observations = 0..own.observations().len();
        self.missing = Some(observations.map(|o| (sum(2 * o), sum(2 * o + 1))).collect());
        Ok(())
    }
}

/// In how many items an observation is missing, and of how many.
pub(super) fn missing_in(data: &Dataset, observation: &Observation) -> (u64, u64) {
    let (mut gone, mut all) = (0, 0);
    for step in 0..observation.steps().unwrap_or(1) {
        let lives = |&row: &usize| data.lengths().is_none_or(|l| l[row] as usize > step);
        for row in (0..data.rows()).filter(lives) {
            gone += u64::from(!observation.step(step).is_present(row));
            all += 1;
        }
    }
    (gone, all)
}

/// What the rank that leads asks the others for.
#[derive(Serialize, Deserialize)]
enum Asked {
    Observed(Vec<u32>),
    Samples(Vec<u32>),
    Column(String),
    Nothing,
}

impl Project {
    /// [`prepare`](Self::prepare) by ranks that call it together: each reads and holds its own part of the samples, and all else is what one process has, to the bit.
    /// Sequences of a long table may have their rows anywhere, so of those every rank has all.
    pub fn prepare_among(file: ModelFile, ranks: Arc<dyn Collective>) -> Result<Self> {
        if ranks.ranks() == 1 {
            return Self::prepare(file);
        }
        let look = || {
            let found = DataFile::find(&file)?;
            let print = print_of(&found.path)?;
            // Before any rank reads rows, as one process does, by the one that writes it down.
            let checksum = match ranks.rank() {
                0 => Some(Checksum::of(&found.path)?),
                _ => None,
            };
            Ok((found, print, checksum))
        };
        let (found, print, checksum) = together(&*ranks, look())?;
        let DataFile {
            path,
            names,
            wanted,
        } = found;
        same_settings(&file, &print, &*ranks)?;
        let chain = file.chain();
        if !SampleReader::has_parts(&path, chain) {
            let read = SampleReader::open(&path, chain, Some(&wanted)).and_then(|mut r| r.rest());
            let samples = together(&*ranks, read)?;
            let mut project = Self::assemble(file, names, samples, Some(&path), None, None)?;
            project.read = checksum;
            return Ok(project);
        }
        let place = SampleReader::find_part(&path, chain, &*ranks)?;
        let read = SampleReader::open_part(&path, chain, Some(&wanted), &place)
            .and_then(|mut reader| reader.rest_of_part());
        let mut samples = together(&*ranks, read)?;
        let counts = gather_numbers(&*ranks, &[samples.len() as u64]).map_err(engine)?;
        let ends = ends_of(counts.into_iter().map(|count| count as usize));
        let parts = Parts { ranks, ends, place };
        if parts.rows() == 0 {
            return Err(SourceError::Empty { path: Some(path) }.into());
        }
        samples.first_row = parts.first();
        let mut project = Self::assemble(file, names, samples, Some(&path), None, Some(parts))?;
        project.read = checksum;
        Ok(project)
    }

    /// How many samples there are, on all ranks together.
    pub fn rows(&self) -> usize {
        self.extent.rows
    }

    /// The steps of the shortest and of the longest sequence.
    pub fn steps(&self) -> (usize, usize) {
        (self.extent.shortest, self.extent.steps)
    }

    /// Items of all sequences, which are rows of a table or steps of arrays.
    pub(crate) fn items(&self) -> usize {
        self.extent.items
    }

    /// How samples are dealt to ranks, where they are.
    pub(crate) fn parts(&self) -> Option<&Parts> {
        self.parts.as_ref()
    }

    /// Some samples as observations, in this order. All ranks call it together, unless one [leads](Self::lead).
    pub fn observed(&self, samples: &[u32]) -> ramp::Result<Dataset> {
        self.ask(|| Asked::Observed(samples.to_vec()))?;
        Ok(self.data.gather(samples)?)
    }

    /// Some samples as they stand in their file, in this order. All ranks call it together, unless one [leads](Self::lead).
    pub fn select(&self, samples: &[u32]) -> Result<Samples> {
        let Some(parts) = &self.parts else {
            return self.samples.select(samples);
        };
        self.ask(|| Asked::Samples(samples.to_vec()))?;
        parts.gather(&self.samples, samples)
    }

    /// All samples as they stand in their file: for where these are few. All ranks call it together, unless one [leads](Self::lead).
    pub(super) fn all_samples(&self) -> Result<Cow<'_, Samples>> {
        match &self.parts {
            None => Ok(Cow::Borrowed(&self.samples)),
            Some(_) => {
                let all: Vec<u32> = (0..self.rows() as u32).collect();
                self.select(&all).map(Cow::Owned)
            }
        }
    }

    /// One observation of all samples. All ranks call it together, unless one [leads](Self::lead).
    pub(crate) fn observed_column(&self, name: &str) -> Result<Dataset> {
        self.ask(|| Asked::Column(name.to_string()))?;
        Ok(self.data.gather_observation(name)?)
    }

    /// From now on rank 0 works alone, and the others, which [follow](Self::follow), give what it asks for, until it [releases](Self::release) them.
    pub fn lead(&mut self) {
        self.leads = self.parts.is_some();
    }

    /// Ends what [`lead`](Self::lead) began.
    pub fn release(&mut self) -> Result<()> {
        self.ask(|| Asked::Nothing)?;
        self.leads = false;
        Ok(())
    }

    /// Gives rank 0 what it asks for until it has done.
    pub fn follow(&self) -> Result<()> {
        let Some(parts) = &self.parts else {
            return Ok(());
        };
        loop {
            let mut asked = vec![];
            broadcast_bytes(&*parts.ranks, &mut asked).map_err(engine)?;
            let asked: Asked = serde_json::from_slice(&asked).map_err(description)?;
            match asked {
                Asked::Observed(samples) => drop(self.data.gather(&samples).map_err(engine)?),
                Asked::Samples(samples) => drop(parts.gather(&self.samples, &samples)?),
                Asked::Column(name) => drop(self.data.gather_observation(&name)?),
                Asked::Nothing => return Ok(()),
            }
        }
    }

    /// Tells those that follow what is wanted of them.
    fn ask(&self, asked: impl FnOnce() -> Asked) -> ramp::Result<()> {
        let Some(parts) = self.parts.as_ref().filter(|_| self.leads) else {
            return Ok(());
        };
        let mut asked = serde_json::to_vec(&asked()).map_err(TrainError::Description)?;
        Ok(broadcast_bytes(&*parts.ranks, &mut asked)?)
    }
}

/// Makes sure that ranks were given the same, before anything that they do together depends on it.
fn same_settings(file: &ModelFile, data: &[u64; 2], ranks: &dyn Collective) -> Result<()> {
    // Machines may call the same file by other names.
    let mut model = file.clone();
    model.data.file = None;
    let training = std::mem::take(&mut model.train).to_string();
    let model = format!("{model:?}");
    let data: Vec<u8> = data.iter().flat_map(|n| n.to_le_bytes()).collect();
    let said = [
        ("other training settings", training.as_bytes()),
        ("other data", &data[..]),
        ("another model", model.as_bytes()),
    ];
    Ok(same_on_all(ranks, &said)?)
}

/// The length of a file and a number that differs where its content does: all of it where it is small, else blocks from its first bytes to its last.
fn print_of(path: &Path) -> Result<[u64; 2]> {
    let cannot_read = |source| Error::File {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let mut file = File::open(path).map_err(cannot_read)?;
    let length = file.metadata().map_err(cannot_read)?.len();
    let mut bytes = vec![];
    if length <= BLOCKS * BLOCK {
        file.read_to_end(&mut bytes).map_err(cannot_read)?;
    } else {
        for block in 0..BLOCKS {
            let from =
                (u128::from(length - BLOCK) * u128::from(block) / u128::from(BLOCKS - 1)) as u64;
            file.seek(SeekFrom::Start(from)).map_err(cannot_read)?;
            let read = (&mut file).take(BLOCK).read_to_end(&mut bytes);
            read.map_err(cannot_read)?;
        }
    }
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Ok([length, hash])
}
