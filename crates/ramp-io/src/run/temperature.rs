//! How much messages count where the tree alone fills missing cells: learned from the samples that chose the weights.
//!
//! Numbers are read off the tree and the rest of a row by regressions that have their own shares of both and their own widths
//! ([`Readout`](crate::readout::Readout)), so they take messages at their word. What has no such regression, levels above all, is drawn with the
//! tree's own chances, and those are only as sure as messages are.

use super::{Project, support_samples};
use crate::Result;
use crate::readout::has_numbers;
use ramp::infer::{Imputer, SupportSet};

/// The most samples that it is learned from.
const MOST_FRESH: usize = 2000;

/// The temperature of a trained project; `None` where the tree fills nothing alone, or no samples chose the weights.
pub(super) fn learn(project: &Project) -> Result<Option<f64>> {
    let encoder = &project.encoder;
    let alone = |o: usize| !has_numbers(&encoder.observations[o]);
    let none = !(0..encoder.observations.len()).any(alone);
    if encoder.chain || project.samples.table().is_none() || project.validation.is_empty() || none {
        return Ok(None);
    }
    let model = &project.model;
    let kept = project.observed(&support_samples(project))?;
    let support = SupportSet::new(model, &kept, project.training.len())?;
    let mut imputer = Imputer::new(model, &support, &kept)?;
    let stride = project.validation.len().div_ceil(MOST_FRESH);
    let rows: Vec<u32> = project.validation.iter().copied().step_by(stride).collect();
    let fresh = project.observed(&rows)?;
    Ok(Some(imputer.fit_temperature_of(model, &fresh, alone)?))
}
