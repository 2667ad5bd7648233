//! A run folder: the trained model, how its data was encoded, and the samples that new ones are compared with.

use super::claim::not_finished;
use super::learned_rows::LearnedRows;
use super::manifest::{
    HELD_OUT, MANIFEST, METRICS, MODEL, NAMES, READOUT, REPORT, RunFiles, SUPPORT_ARRAYS,
    SUPPORT_TABLE, WEIGHTS,
};
use super::{BeyondLinear, CrossValidation, Project, RunError};
use crate::Result;
use crate::array::write_arrays;
use crate::encode::{Encoder, Scale};
use crate::model_file::{Chain, ModelFile};
use crate::readout::{self, Readout};
use crate::source::{Content, SampleReader, Samples};
use crate::table::{BatchReader, TableReader, concat_rows, create_table, select_rows};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use ramp::data::{Dataset, Gather};
use ramp::infer::{Imputer, SupportSet};
use ramp::model::{Model, ModelBuilder, ModelSpec};
use ramp::storage::{Arrays, Numbers, read_tensors, write_tensors};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The most samples that a run keeps to compare others with.
const SUPPORT: usize = 2000;
/// The most numbers that they may have together.
pub(crate) const SUPPORT_NUMBERS: usize = 1 << 25;

/// A trained model in its folder.
///
/// `run.json` names all files with their checksums, `model.toml` says everything about how it was made, `weights.safetensors` holds
/// the networks, and `support.csv` (or `.npz`) some of the training samples as they stood in their file. Every file is compared with
/// its checksum before it is used.
#[derive(Debug)]
pub struct Run {
    /// How data is encoded.
    pub encoder: Encoder,
    /// The chain, where samples are sequences.
    pub chain: Option<Chain>,
    /// The model.
    pub model: Model,
    /// The number of training samples.
    pub population: usize,
    /// The fingerprint of the data that it was fitted to.
    pub data: u64,
    /// What fits to parts of a small sample said.
    pub cross_validation: Option<CrossValidation>,
    /// Whether networks say more than a linear factor model of the tree.
    pub beyond_linear: Option<BeyondLinear>,
    /// How much messages count where the tree alone fills missing cells; as they are where nothing was learned.
    pub temperature: Option<f64>,
    pub(super) learned_rows: Option<LearnedRows>,
    files: RunFiles,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    model: ModelSpec,
    /// Without its rank scales, of which wide tables have so many that they are arrays of their own.
    encoder: Encoder,
    chain: Option<Chain>,
    population: usize,
    data: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cross_validation: Option<CrossValidation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beyond_linear: Option<BeyondLinear>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learned_rows: Option<LearnedRows>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

/// Arrays of all rank scales, one after the other.
const SCALES: [&str; 3] = ["scales.lengths", "scales.values", "scales.scores"];

/// Takes the numbers of rank scales out of an encoder.
fn detach_scales(encoder: &mut Encoder) -> [Vec<f64>; 3] {
    let [mut lengths, mut all_values, mut all_scores] = [const { Vec::new() }; 3];
    for scale in encoder.scales_mut() {
        if let Scale::Rank { values, scores } = scale {
            lengths.push(values.len() as f64);
            all_values.append(values);
            all_scores.append(scores);
        }
    }
    [lengths, all_values, all_scores]
}

/// Puts them back; `None` if they do not fit.
fn attach_scales(encoder: &mut Encoder, arrays: &mut Arrays) -> Option<()> {
    let [lengths, all_values, all_scores] = SCALES.map(|name| arrays.double.remove(name));
    let (mut lengths, mut at) = (lengths?.into_iter(), 0_usize);
    let (all_values, all_scores) = (all_values?, all_scores?);
    for scale in encoder.scales_mut() {
        if let Scale::Rank { values, scores } = scale {
            let end = lengths.next().and_then(|n| at.checked_add(n as usize))?;
            *values = all_values.get(at..end)?.to_vec();
            *scores = all_scores.get(at..end)?.to_vec();
            at = end;
        }
    }
    (lengths.next().is_none() && at == all_values.len() && at == all_scores.len()).then_some(())
}

/// Writes the samples that a run keeps.
pub(super) fn write_support(project: &Project, folder: &Path) -> Result<()> {
    let support = kept(project)?;
    match &support.content {
        Content::Arrays(arrays) => write_arrays(&folder.join(SUPPORT_ARRAYS), arrays, true)?,
        Content::Table(table) => write_table(table, &folder.join(SUPPORT_TABLE))?,
    }
    match of_windows(project, &project.held_out)? {
        Some(table) if table.num_rows() > 0 => write_table(&table, &folder.join(HELD_OUT)),
        _ => Ok(()),
    }
}

fn write_table(table: &RecordBatch, path: &Path) -> Result<()> {
    let mut writer = create_table(path, table.schema_ref())?;
    writer.write(table)?;
    writer.finish()
}

/// Writes how missing numbers are read off the tree and the rest of a row, where that is learned.
pub(super) fn write_readout(project: &Project, folder: &Path) -> Result<()> {
    let path = folder.join(READOUT);
    match &project.readout {
        Some(learned) => readout::write(learned, &path),
        None => match Readout::learn(project)? {
            Some(learned) => readout::write(&learned, &path),
            None => Ok(()),
        },
    }
}

/// Writes the networks, and how data becomes their inputs.
pub(super) fn write_weights(project: &Project, folder: &Path) -> Result<()> {
    let model = &project.model;
    let mut encoder = project.encoder.clone();
    let scales = detach_scales(&mut encoder);
    let header = Header {
        model: model.spec().clone(),
        encoder,
        chain: project.file.chain().cloned(),
        population: project.training.len(),
        data: project.data.fingerprint(),
        cross_validation: project.cross_validation.clone(),
        beyond_linear: project.beyond_linear,
        learned_rows: LearnedRows::of(project),
        temperature: project.temperature,
    };
    let text = serde_json::to_string(&header).map_err(RunError::Write)?;
    let networks = model
        .named_parameters()
        .into_iter()
        .map(|(name, shape, span)| (name, shape, Numbers::from(&model.parameters()[span])));
    let scales = SCALES
        .iter()
        .zip(&scales)
        .map(|(name, x)| (name.to_string(), vec![x.len()], Numbers::from(&x[..])));
    let arrays = networks.chain(scales).collect();
    Ok(write_tensors(&folder.join(WEIGHTS), arrays, &text)?)
}

impl Run {
    /// Opens a run folder.
    pub fn open(folder: &Path) -> Result<Self> {
        if folder.is_file() {
            return Err(RunError::IsFile {
                path: folder.into(),
            }
            .into());
        }
        let files = match RunFiles::of(folder)? {
            Some(files) if files.manifest.finished => files,
            _ => return Err(not_finished(folder).into()),
        };
        let path = files.checked(WEIGHTS)?;
        let Some(stored) = read_tensors(&path)? else {
            return Err(RunError::Gone { path }.into());
        };
        let damaged = |why: String| RunError::Header {
            path: path.clone(),
            why,
        };
        let parsed = serde_json::from_str(&stored.text);
        let header: Header = parsed.map_err(|e| damaged(e.to_string()))?;
        let mut arrays = stored.arrays()?;
        let mut encoder = header.encoder;
        let attached = attach_scales(&mut encoder, &mut arrays).is_some();
        let chains = header.chain.is_some() == encoder.chain;
        if !attached || !encoder.is_sound() || header.population == 0 || !chains {
            return Err(damaged("scales or levels that cannot be".into()).into());
        }
        if header
            .temperature
            .is_some_and(|t| !(t.is_finite() && t > 0.0))
        {
            return Err(damaged("a temperature that cannot be".into()).into());
        }
        let there = arrays.single.values().map(Vec::len).sum();
        let mut model = ModelBuilder::from_spec(header.model)?
            .stored_parameters(there)
            .build_as_stored()?;
        for (name, _, span) in model.named_parameters() {
            match arrays.single.remove(&name) {
                Some(values)
                    if values.len() == span.len() && values.iter().all(|x| x.is_finite()) =>
                {
                    model.parameters_mut()[span].copy_from_slice(&values);
                }
                Some(_) => return Err(RunError::DamagedArray { path, array: name }.into()),
                None => return Err(RunError::MissingArray { path, array: name }.into()),
            }
        }
        Ok(Run {
            encoder,
            chain: header.chain,
            model,
            population: header.population,
            data: header.data,
            cross_validation: header.cross_validation,
            beyond_linear: header.beyond_linear,
            learned_rows: header.learned_rows,
            temperature: header.temperature,
            files,
        })
    }

    /// The files that make up a run and must not be written over.
    pub fn files(&self) -> Vec<PathBuf> {
        let names = NAMES.into_iter().chain([MANIFEST]);
        names.map(|name| self.files.path(name)).collect()
    }

    /// The model file with all settings, as it was kept.
    pub fn model_file(&self) -> Result<PathBuf> {
        self.files.checked(MODEL)
    }

    /// Whether it was fitted to arrays, and not to a table.
    pub fn is_of_arrays(&self) -> bool {
        self.files.manifest.files.contains_key(SUPPORT_ARRAYS)
    }

    /// The page of the fit, as it was kept.
    pub fn report(&self) -> Result<PathBuf> {
        self.files.checked(REPORT)
    }

    pub(super) fn run_files(&self) -> &RunFiles {
        &self.files
    }

    /// The records of training, as they were kept.
    pub fn metrics(&self) -> Result<PathBuf> {
        self.files.checked(METRICS)
    }

    /// The data that it was fitted to, as its model file names it.
    pub fn data_file(&self) -> Result<PathBuf> {
        let file = ModelFile::read(&self.model_file()?)?;
        Ok(file.data.file.ok_or(RunError::NoData)?)
    }

    /// Opens data for this run: all its columns, or only those that the model needs.
    pub fn read(&self, path: &Path, all_columns: bool) -> Result<SampleReader> {
        let reader = SampleReader::open(path, self.chain.as_ref(), None)?;
        let Some(schema) = reader.schema() else {
            return SampleReader::open(path, self.chain.as_ref(), Some(&self.encoder.columns()));
        };
        let needed = self.needed(&schema, Some(path))?;
        match all_columns {
            true => Ok(reader),
            false => SampleReader::open(path, self.chain.as_ref(), Some(&needed)),
        }
    }

    /// Data for this run from a table that is no file, such as one in memory.
    pub fn read_table(&self, reader: Box<dyn TableReader>) -> Result<SampleReader> {
        self.needed(&reader.schema(), None)?;
        SampleReader::from_table(reader, self.chain.as_ref())
    }

    /// Data for this run from a table that may be longer than memory, such as one that comes through a pipe; the rows of a sequence stand together.
    pub fn read_stream(&self, reader: Box<dyn TableReader>) -> Result<SampleReader> {
        self.needed(&reader.schema(), None)?;
        SampleReader::from_stream(reader, self.chain.as_ref())
    }

    /// The columns that the model needs, all of which the data must have.
    fn needed(&self, schema: &Schema, path: Option<&Path>) -> Result<Vec<String>, RunError> {
        let mut needed = self.encoder.columns();
        if let Some(chain) = &self.chain {
            needed.extend(chain.sequence.iter().chain(&chain.time).cloned());
        }
        let names = || schema.fields().iter().map(|field| &field.name()[..]);
        let there: HashSet<&str> = names().collect();
        match needed.iter().find(|n| !there.contains(&n[..])) {
            None => Ok(needed),
            Some(missing) => Err(RunError::MissingColumn {
                column: missing.clone(),
                path: path.map(Path::to_path_buf),
                known: names().map(str::to_string).collect(),
            }),
        }
    }

    /// The model unrolled to sequences of so many steps, where they are longer than those that it was trained on.
    pub fn longer_model(&self, steps: usize) -> Result<Option<Model>> {
        match &self.chain {
            Some(_) if steps > self.model.tree().latents().len() => {
                Ok(self.model.unrolled(steps).map(Some)?)
            }
            _ => Ok(None),
        }
    }

    /// Samples as observations, and how many cells held levels that training never saw.
    pub fn encode(&self, samples: &Samples) -> Result<(Dataset, u64)> {
        self.encoder.encode(samples)
    }

    /// The moment of a step of a sample, where the chain has seasons.
    pub(crate) fn moment(&self, samples: &Samples, sample: usize, step: u32) -> Option<f64> {
        let sequence = samples.sequences.as_ref()?.get(sample)?;
        self.encoder.season.as_ref()?.moment(sequence, step)
    }

    /// The training samples that were kept; windows, where sequences were cut into them.
    pub fn support_samples(&self) -> Result<Samples> {
        let series = self.support_series()?;
        let Some(window) = self.chain.as_ref().and_then(|chain| chain.window) else {
            return Ok(series);
        };
        let (windows, _) = series.cut(window, 0.0);
        let first: Vec<u32> = (0..windows.len().min(SUPPORT) as u32).collect();
        windows.select(&first)
    }

    /// The training samples that were kept, none of them cut.
    pub fn support_series(&self) -> Result<Samples> {
        let path = match self.is_of_arrays() {
            true => self.files.checked(SUPPORT_ARRAYS)?,
            false => self.files.checked(SUPPORT_TABLE)?,
        };
        let mut reader = SampleReader::open(&path, self.chain.as_ref(), None)?;
        reader.rest()
    }

    /// Series that were cut, as far as they are known: with the time that was held out, which comes last. It has judged the fit by then, and what comes next is foretold from the
    /// latest. Other samples are those of [`support_series`](Self::support_series).
    pub fn known_series(&self) -> Result<Samples> {
        let learned = self.support_series()?;
        let (Some(table), true) = (
            learned.table(),
            self.files.manifest.files.contains_key(HELD_OUT),
        ) else {
            return Ok(learned);
        };
        let path = self.files.checked(HELD_OUT)?;
        let later = SampleReader::open(&path, None, None)?.rest()?;
        let all = match later.table() {
            Some(later) => concat_rows(&[table.clone(), later.clone()])?,
            None => return Ok(learned),
        };
        let reader = BatchReader::new(all.schema(), vec![Ok(all)]);
        SampleReader::from_table(Box::new(reader), self.chain.as_ref())?.rest()
    }

    /// How missing numbers are read off the tree and the rest of a row; `None` where nothing was learned of that. The samples are those that were
    /// kept, and the imputer is made of them.
    pub(crate) fn readout(
        &self,
        samples: &Samples,
        data: &Dataset,
        imputer: &Imputer,
    ) -> Result<Option<Readout>> {
        if !self.files.manifest.files.contains_key(READOUT) {
            return Ok(None);
        }
        let path = self.files.checked(READOUT)?;
        let conditionals = imputer.conditionals(&self.model, data)?;
        let learned = readout::read(&path, &self.encoder, samples, data, imputer, &conditionals);
        learned.map(Some)
    }

    /// What new samples are compared with: the kept samples, encoded, and their messages under a model of this run.
    pub fn support_set(&self, model: &Model, samples: &Samples) -> Result<(Dataset, SupportSet)> {
        let (data, _) = self.encode(samples)?;
        let support = SupportSet::new(model, &data, self.population)?;
        Ok((data, support))
    }
}

/// The training samples that are kept. Of windows, which share their rows, the rows.
fn kept(project: &Project) -> Result<Samples> {
    match of_windows(project, &project.training)? {
        None => project.select(&support_samples(project)),
        Some(table) => Ok(Samples {
            content: Content::Table(table),
            sequences: None,
            first_row: 0,
        }),
    }
}

/// The rows of some windows, each once and in their order; `None` where sequences were not cut.
fn of_windows(project: &Project, windows: &[u32]) -> Result<Option<RecordBatch>> {
    let (Some(_), Some(table), Some(sequences)) = (
        &project.windows,
        project.samples.table(),
        &project.samples.sequences,
    ) else {
        return Ok(None);
    };
    let windows = windows.iter().map(|&n| &sequences[n as usize]);
    let mut rows: Vec<u32> = windows.flat_map(|s| &s.items).copied().collect();
    rows.sort_unstable();
    rows.dedup();
    // The latest, where there are very many.
    let most = SUPPORT_NUMBERS / table.num_columns().max(1);
    let first = rows.len().saturating_sub(most);
    Ok(Some(select_rows(table, &rows[first..])?))
}

/// Which training samples are kept: a random few, the same for the same seed.
pub(crate) fn support_samples(project: &Project) -> Vec<u32> {
    let mut chosen = project.training.clone();
    let width: usize = project
        .encoder
        .observations
        .iter()
        .map(|o| o.encoding.features())
        .sum();
    let per_sample = width * project.steps().1.max(1);
    let most = SUPPORT.min((SUPPORT_NUMBERS / per_sample.max(1)).max(50));
    chosen.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(
        project.train.seed,
    ));
    chosen.truncate(most);
    chosen.sort_unstable();
    chosen
}
