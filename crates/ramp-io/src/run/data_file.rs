//! What a model file wants of its data, known before any row is read.

use super::RunError;
use crate::Result;
use crate::model_file::ModelFile;
use crate::source::SampleReader;
use arrow_schema::Schema;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The file with the data, and what is to be read of it.
pub(super) struct DataFile {
    pub path: PathBuf,
    /// The observations.
    pub names: Vec<String>,
    /// The columns that they need.
    pub wanted: Vec<String>,
}

impl DataFile {
    pub fn find(file: &ModelFile) -> Result<Self> {
        let Some(path) = file.data.file.clone() else {
            return Err(RunError::NoData.into());
        };
        // The tree is small; what is wrong with it comes before what is wrong with the data.
        let names = observed(file)?;
        let wanted = wanted(file, &names);
        if file.chain().is_none() {
            let schema = SampleReader::open(&path, None, None)?.schema();
            check_latents(file, Some(&path), schema.as_deref())?;
        }
        Ok(DataFile {
            path,
            names,
            wanted,
        })
    }
}

/// The columns or arrays that a project needs of its data, each once.
pub(super) fn wanted(file: &ModelFile, names: &[String]) -> Vec<String> {
    let mut wanted: Vec<String> = vec![];
    if let Some(chain) = file.chain() {
        wanted.extend(chain.sequence.iter().chain(&chain.time).cloned());
    }
    for name in names {
        let own = file.observations.get(name).and_then(|o| o.columns.clone());
        wanted.extend(own.unwrap_or_else(|| vec![name.clone()]));
    }
    let mut seen = HashSet::new();
    wanted.retain(|w| seen.insert(w.clone()));
    wanted
}

/// Latents must not be called like columns: one that was meant to be observed would be taken for a latent without a word.
pub(super) fn check_latents(
    file: &ModelFile,
    path: Option<&Path>,
    schema: Option<&Schema>,
) -> Result<()> {
    let (None, Some(schema)) = (file.chain(), schema) else {
        return Ok(());
    };
    let columns: HashSet<&str> = schema.fields().iter().map(|f| &f.name()[..]).collect();
    let tree = file.build_tree(2)?;
    let mut latents = tree.latents().iter().map(|&v| tree.name(v));
    match latents.find(|name| columns.contains(name)) {
        None => Ok(()),
        Some(name) => Err(RunError::LatentIsColumn {
            name: name.into(),
            path: path.map(Path::to_path_buf),
        }
        .into()),
    }
}

/// The names of the tree's observations, or of a chain's series.
pub(super) fn observed(file: &ModelFile) -> Result<Vec<String>> {
    if let Some(chain) = file.chain() {
        return Ok(chain.observe.clone());
    }
    let tree = file.build_tree(2)?;
    Ok(tree
        .observations()
        .iter()
        .map(|&x| tree.name(x).to_string())
        .collect())
}
