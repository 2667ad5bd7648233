//! A run folder: the trained model, how its data was encoded, and the samples that new ones are compared with.

use super::{Project, RunError};
use crate::Result;
use crate::array::write_arrays;
use crate::encode::Encoder;
use crate::model_file::{Chain, ModelFile};
use crate::source::{Content, SampleReader, Samples};
use crate::table::{TableReader, create_table, select_rows};
use arrow_schema::Schema;
use ramp::data::Dataset;
use ramp::infer::SupportSet;
use ramp::model::{Model, ModelBuilder, ModelSpec};
use ramp::storage::{read_tensors, write_atomically, write_tensors};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The form of run folders.
const VERSION: u32 = 2;
/// The most samples that a run keeps to compare others with.
const SUPPORT: usize = 2000;
/// The most numbers that they may have together.
const SUPPORT_NUMBERS: usize = 1 << 25;

/// A trained model in its folder.
///
/// `model.toml` says everything about how it was made, `weights.safetensors` holds the networks, and `support.csv` (or
/// `.npz`) some of the training samples as they stood in their file.
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
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    software: String,
    model: ModelSpec,
    encoder: Encoder,
    chain: Option<Chain>,
    population: usize,
}

fn weights_file(folder: &Path) -> PathBuf {
    folder.join("weights.safetensors")
}

fn support_file(folder: &Path, content: &Content) -> PathBuf {
    folder.join(match content {
        Content::Table(_) => "support.csv",
        Content::Arrays(_) => "support.npz",
    })
}

impl Run {
    /// Writes a trained project into a folder. The weights come last: where they are, the rest is.
    pub fn save(project: &Project, folder: &Path) -> Result<()> {
        write_atomically(
            &folder.join("model.toml"),
            project.file.resolved(&project.train)?.as_bytes(),
        )?;
        let support = kept(project)?;
        let path = support_file(folder, &support.content);
        match &support.content {
            Content::Arrays(arrays) => write_arrays(&path, arrays, true)?,
            Content::Table(table) => {
                let mut writer = create_table(&path, table.schema_ref())?;
                writer.write(table)?;
                writer.finish()?;
            }
        }
        let model = &project.model;
        let header = Header {
            version: VERSION,
            software: env!("CARGO_PKG_VERSION").into(),
            model: model.spec().clone(),
            encoder: project.encoder.clone(),
            chain: project.file.chain().cloned(),
            population: project.training.len(),
        };
        let text = serde_json::to_string(&header).map_err(RunError::Write)?;
        let arrays = model
            .named_parameters()
            .into_iter()
            .map(|(name, shape, span)| (name, shape, &model.parameters()[span]))
            .collect();
        Ok(write_tensors(&weights_file(folder), arrays, &text)?)
    }

    /// Opens a run folder.
    pub fn open(folder: &Path) -> Result<Self> {
        if folder.is_file() {
            return Err(RunError::IsFile {
                path: folder.into(),
            }
            .into());
        }
        let path = weights_file(folder);
        let Some((text, mut arrays)) = read_tensors(&path)? else {
            return Err(RunError::NotFinished {
                folder: folder.into(),
                begun: folder.join("checkpoint").is_dir(),
            }
            .into());
        };
        let header_error = |what: &'static str, why: String| RunError::Header {
            path: path.clone(),
            what,
            why,
        };
        #[derive(Deserialize)]
        struct Version {
            version: u32,
            software: String,
        }
        let writer: Version = serde_json::from_str(&text)
            .map_err(|e| header_error("no header of a run", e.to_string()))?;
        if writer.version > VERSION {
            return Err(RunError::Newer {
                path,
                software: writer.software,
                this: env!("CARGO_PKG_VERSION"),
            }
            .into());
        }
        if writer.version < VERSION {
            return Err(RunError::Older {
                path,
                software: writer.software,
                this: env!("CARGO_PKG_VERSION"),
            }
            .into());
        }
        let header: Header = serde_json::from_str(&text)
            .map_err(|e| header_error("a damaged header", e.to_string()))?;
        let chains = header.chain.is_some() == header.encoder.chain;
        if !header.encoder.is_sound() || header.population == 0 || !chains {
            return Err(
                header_error("a damaged header", "scales or levels that cannot be".into()).into(),
            );
        }
        let mut model = ModelBuilder::from_spec(header.model)?.build_as_stored()?;
        for (name, _, span) in model.named_parameters() {
            match arrays.remove(&name) {
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
            encoder: header.encoder,
            chain: header.chain,
            model,
            population: header.population,
            folder: folder.to_path_buf(),
        })
    }

    /// The files that make up a run and must not be written over.
    pub fn files(&self) -> Vec<PathBuf> {
        ["model.toml", "support.csv", "support.npz"]
            .map(|name| self.folder.join(name))
            .into_iter()
            .chain([weights_file(&self.folder)])
            .collect()
    }

    /// The data that it was fitted to, as its model file names it.
    pub fn data_file(&self) -> Result<PathBuf> {
        let file = ModelFile::read(&self.folder.join("model.toml"))?;
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
        let csv = self.folder.join("support.csv");
        let path = if csv.exists() {
            csv
        } else {
            self.folder.join("support.npz")
        };
        let mut reader = SampleReader::open(&path, self.chain.as_ref(), None)?;
        reader.rest()
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
    let (Some(_), Some(table), Some(sequences)) = (
        &project.windows,
        project.samples.table(),
        &project.samples.sequences,
    ) else {
        return project.samples.select(&support_samples(project));
    };
    let training = project.training.iter().map(|&n| &sequences[n as usize]);
    let mut rows: Vec<u32> = training.flat_map(|s| &s.items).copied().collect();
    rows.sort_unstable();
    rows.dedup();
    // The latest, where there are very many.
    let most = SUPPORT_NUMBERS / table.num_columns().max(1);
    let first = rows.len().saturating_sub(most);
    Ok(Samples {
        content: Content::Table(select_rows(table, &rows[first..])?),
        sequences: None,
        first_row: 0,
    })
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
    let per_sample = width * project.samples.steps().max(1);
    let most = SUPPORT.min((SUPPORT_NUMBERS / per_sample.max(1)).max(50));
    chosen.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(
        project.train.seed,
    ));
    chosen.truncate(most);
    chosen.sort_unstable();
    chosen
}
