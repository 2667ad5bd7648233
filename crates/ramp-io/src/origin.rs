//! Data by where it is: in a file, or in memory already.

use crate::model_file::ModelFile;
use crate::run::{Project, Run};
use crate::source::{Content, SourceError};
use crate::table::{BatchReader, TableReader, open_table, readable};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Where data is.
///
/// ```
/// use ramp_io::Origin;
/// let file = Origin::file("answers.csv");
/// assert_eq!(file.name().to_str(), Some("answers.csv"));
/// ```
#[derive(Clone, Debug)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// A table or arrays.
    Memory(Content),
}

impl Origin {
    /// Data in a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Origin::File(path.into())
    }

    /// What sentences call it.
    pub fn name(&self) -> &Path {
        match self {
            Origin::File(path) => path,
            Origin::Memory(_) => Path::new("the data"),
        }
    }

    /// Lets a model file meet this data, whatever file it names.
    pub fn prepare(&self, mut file: ModelFile) -> Result<Project> {
        match self {
            Origin::File(path) => {
                file.data.file = Some(path.clone());
                Project::prepare(file)
            }
            Origin::Memory(content) => Project::prepare_in_memory(file, content.clone()),
        }
    }

    /// A run's model and this data, which must be what it was fitted to; `name` is what the error calls the run.
    pub fn reopen(&self, run: &Run, name: &Path) -> Result<Project> {
        let file = ModelFile::read(&run.model_file()?)?;
        let project = self.prepare(file)?;
        project.with_weights_of(run, name)
    }

    /// Reads it as a table.
    pub(crate) fn table(&self) -> Result<Box<dyn TableReader>> {
        match self {
            Origin::File(path) => open_table(path),
            Origin::Memory(Content::Table(table)) => {
                let table = readable(table)?;
                Ok(Box::new(BatchReader::new(table.schema(), [Ok(table)])))
            }
            Origin::Memory(Content::Arrays(_)) => Err(Error::from(SourceError::NotATable)),
        }
    }
}
