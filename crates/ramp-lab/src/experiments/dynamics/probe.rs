//! The two probes of a system's variables.

use crate::error::LabError;
use crate::experiments::state_probe::{Points, Probe};
use serde::{Deserialize, Serialize};

/// Points that a regression is fitted to, and judged on, at most.
const FITTED: usize = 2500;
const JUDGED: usize = 10_000;

/// R² of every variable on test sequences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeR2 {
    /// By scikit-learn's default settings.
    pub usual: Vec<f64>,
    /// By a width of the kernel and a penalty found by cross-validation on training sequences: how much is there at all.
    pub tuned: Vec<f64>,
}

/// Probes variables from points of training and test sequences.
pub(super) fn probe(
    train: (&Points, &[Vec<f64>]),
    test: (&Points, &[Vec<f64>]),
) -> Result<ProbeR2, LabError> {
    let probe = Probe::new(train, test, FITTED, JUDGED);
    let [_, usual] = probe.usual()?;
    Ok(ProbeR2 {
        usual,
        tuned: probe.tuned()?,
    })
}
