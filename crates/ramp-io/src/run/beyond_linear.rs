//! Whether networks say more than the linear factor model that a tree begins as, on rows that they did not learn from.

use super::Project;
use crate::compare::paired;
use crate::total::{most, some, totals};
use serde::{Deserialize, Serialize};

/// How many standard errors of the gain it takes to leave a linear factor model.
const CLEAR: f64 = 1.0;
/// Fewer rows decide nothing.
const FEWEST: usize = 20;
/// Rows that decide, at most.
const MOST: usize = 2000;

/// By how much trained networks explain more than the linear factor model of the same tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeyondLinear {
    /// Nats a row.
    pub gain: f64,
    /// The standard error of that, rows paired.
    pub standard_error: f64,
    /// How many rows told.
    pub rows: usize,
}

impl BeyondLinear {
    /// Compares what is explained of the same rows.
    pub(super) fn of(trained: &[f64], linear: &[f64]) -> Self {
        let (gain, standard_error) = paired(trained, linear);
        BeyondLinear {
            gain,
            standard_error,
            rows: trained.len(),
        }
    }

    /// Whether networks are worth it; where they are not, a fit stays the linear factor model.
    pub fn is_clear(&self) -> bool {
        self.gain > CLEAR * self.standard_error
    }

    /// The finding in words.
    pub fn sentence(&self) -> String {
        let BeyondLinear {
            gain,
            standard_error,
            rows,
        } = self;
        match self.is_clear() {
            true => format!(
                "trained networks explain {gain:.3} ± {standard_error:.3} nats a row more than a linear factor model of this tree, on {rows} rows that they did not learn from"
            ),
            false if *standard_error == 0.0 => format!(
                "a linear factor model is the better choice: training never explained more of the {rows} rows that it did not learn from, so this fit is the linear factor model of its tree"
            ),
            false => format!(
                "a linear factor model is the better choice: trained networks explain {gain:+.3} ± {standard_error:.3} nats a row in comparison, on {rows} rows that they did \
                 not learn from, so this fit is the linear factor model of its tree"
            ),
        }
    }
}

impl Project {
    /// Whether the fit stayed the linear factor model that it began as.
    pub fn is_linear(&self) -> bool {
        self.beyond_linear.is_some_and(|found| !found.is_clear())
    }

    /// Goes back to the linear factor model that training began with where validation rows do not prefer what became of it. In a small sample, cross-validation
    /// has decided that before.
    pub(crate) fn judge_beyond_linear(&mut self, start: &[f32]) -> ramp::Result<()> {
        let rows = some(&self.validation, most(self, MOST));
        if rows.len() < FEWEST {
            return Ok(());
        }
        let root = self.model.tree().root();
        let trained = totals(self, &rows, &[root])?.remove(0).samples();
        let kept = self.model.parameters().to_vec();
        self.model.parameters_mut().copy_from_slice(start);
        let linear = totals(self, &rows, &[root])?.remove(0).samples();
        let found = BeyondLinear::of(&trained, &linear);
        if found.is_clear() {
            self.model.parameters_mut().copy_from_slice(&kept);
        }
        self.beyond_linear = Some(found);
        Ok(())
    }
}
