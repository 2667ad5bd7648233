//! Which rows of a run's own data were learned from: a run remembers the file by its checksum, and how its rows were dealt out.

use super::manifest::Checksum;
use super::{Project, Run};
use crate::Result;
use ramp::train::TrainSpec;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a row of the data was to a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowUse {
    /// It was learned from.
    Training,
    /// It was not learned from; it chose the weights.
    Validation,
    /// Training never touched it.
    HeldOut,
}

impl RowUse {
    /// The word for it in tables.
    pub fn word(self) -> &'static str {
        match self {
            RowUse::Training => "training",
            RowUse::Validation => "validation",
            RowUse::HeldOut => "held-out",
        }
    }
}

/// The file that a run was fitted to, and what it takes to deal out its rows again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LearnedRows {
    file: Checksum,
    rows: usize,
    holdout: f64,
    validation: f64,
    seed: u64,
}

impl LearnedRows {
    /// Of a project whose samples are rows of a file.
    pub fn of(project: &Project) -> Option<Self> {
        let (Some(read), None) = (&project.read, &project.samples.sequences) else {
            return None;
        };
        Some(LearnedRows {
            file: read.clone(),
            rows: project.rows(),
            holdout: project.train.holdout,
            validation: project.train.validation,
            seed: project.train.dealt_by(),
        })
    }

    fn uses(&self) -> Result<Vec<RowUse>> {
        let spec = TrainSpec {
            holdout: self.holdout,
            validation: self.validation,
            seed: self.seed,
            ..TrainSpec::default()
        };
        let split = spec.split(self.rows).map_err(ramp::Error::from)?;
        let mut uses = vec![RowUse::Training; self.rows];
        for (rows, what) in [
            (split.validation, RowUse::Validation),
            (split.held_out, RowUse::HeldOut),
        ] {
            rows.iter().for_each(|&n| uses[n as usize] = what);
        }
        Ok(uses)
    }
}

impl Run {
    /// Whether it was fitted to rows of a file that it would know again.
    pub fn knows_its_rows(&self) -> bool {
        self.learned_rows.is_some()
    }

    /// What each row of a file was to the fit, where it is the file that the run was fitted to, unchanged; `None` for other data, for sequences, and for runs that
    /// do not know.
    pub fn row_uses(&self, data: &Path) -> Result<Option<Vec<RowUse>>> {
        match &self.learned_rows {
            Some(learned) if data.is_file() && learned.file.fits(data)? => learned.uses().map(Some),
            _ => Ok(None),
        }
    }
}
