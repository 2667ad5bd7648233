//! A finished run with the data that it was fitted to, as it stood when training ended.

use super::{Project, Run, RunError};
use crate::Result;
use crate::model_file::ModelFile;
use ramp::data::Gather;
use std::path::{Path, PathBuf};

impl Project {
    /// Reads the data of a run again, or `data` where it has moved, and puts the run's weights into the model. Data that is not what the
    /// run was fitted to is an error; `folder` is what that calls the run.
    pub fn reopen(run: &Run, folder: &Path, data: Option<PathBuf>) -> Result<Self> {
        let mut file = ModelFile::read(&run.model_file()?)?;
        if let Some(data) = data {
            file.data.file = Some(data);
        }
        Project::prepare(file)?.with_weights_of(run, folder)
    }

    /// Puts a run's weights into the model of the data that it was fitted to.
    pub(crate) fn with_weights_of(mut self, run: &Run, folder: &Path) -> Result<Self> {
        let project = &mut self;
        let same = project.model.spec() == run.model.spec()
            && project.encoder == run.encoder
            && project.training.len() == run.population
            && project.data.fingerprint() == run.data;
        if !same {
            return Err(RunError::NotItsData {
                folder: folder.into(),
            }
            .into());
        }
        project
            .model
            .parameters_mut()
            .copy_from_slice(run.model.parameters());
        project.cross_validation = run.cross_validation.clone();
        project.beyond_linear = run.beyond_linear;
        project.temperature = run.temperature;
        Ok(self)
    }
}
