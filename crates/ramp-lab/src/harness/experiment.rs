//! An experiment: settings that can be run, and what a run leaves in its folder.

use super::results::write_json;
use super::{Clock, Settings, Watch};
use crate::error::LabError;
use crate::figure::Figure;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Figures by the names of their files.
pub type Figures = Vec<(&'static str, Figure)>;

/// What a run that came to its end measured and wrote.
#[derive(Debug)]
pub struct Finished<R> {
    /// What was measured.
    pub results: R,
    /// What was written: `results.json`, then the figures.
    pub files: Vec<PathBuf>,
}

/// Settings of an experiment that can be run.
pub trait Experiment: Settings + Sync + Sized {
    /// Everything a run measures.
    type Results: Serialize;

    /// Trains and measures, keeping states in a folder and going on from what is there.
    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(Self::Results, Figures), LabError>;

    /// Trains, measures and writes `results.json` and figures into a folder. If someone stops it, that is
    /// [`LabError::Interrupted`], and the same run goes on from the state that it leaves.
    fn run(&self, out: &Path, watch: &mut dyn Watch) -> Result<Finished<Self::Results>, LabError> {
        let folder = out.join("checkpoint");
        let mut clock = Clock::new(watch, &folder, self);
        let (results, figures) = self.measure(&folder, &mut clock)?;
        let json = out.join("results.json");
        let mut files = vec![json.clone()];
        for (name, figure) in figures {
            let written = figure.write(out, name)?;
            files.extend([written.svg, written.png]);
        }
        // Last: whoever sees results finds the figures too.
        write_json(&json, &results)?;
        Ok(Finished { results, files })
    }
}
