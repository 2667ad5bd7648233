//! What all results share, and how they come to the disk.

use super::{Clock, Settings};
use crate::error::LabError;
use ramp::storage::write_atomically;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The end of every results file: what it took, under which settings, by which software.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunInfo<S> {
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: S,
    /// The version of this software.
    pub version: String,
}

impl<S: Settings + Clone> RunInfo<S> {
    /// Of a run that ends now.
    pub(crate) fn new(settings: &S, clock: &mut Clock<'_, S>) -> Self {
        RunInfo {
            seconds: clock.seconds(),
            peak_rss_mb: peak_rss_mb(),
            settings: settings.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// How RAMP was trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingRun {
    /// The free energy of every iteration's batch, a mean over nodes and samples, in nats.
    pub free_energy_history: Vec<f64>,
    /// Steps taken; where samples are held out, up to the best weights.
    pub iterations: usize,
    /// The median time of a training step, in milliseconds; absent when the session took none.
    pub ms_per_iteration: Option<f64>,
}

/// The most memory this process has held so far, in MB, where the system tells.
pub fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// Writes a value as JSON, whole or not at all.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let text = serde_json::to_vec_pretty(value).map_err(|source| LabError::Json {
        what: path.display().to_string(),
        source,
    })?;
    Ok(write_atomically(path, &text)?)
}
