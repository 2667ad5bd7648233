//! When training has done enough: all iterations, or no better on held-out samples for a while.

use super::TrainSpec;

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// All iterations are done.
    Finished,
    /// The held-out value stopped improving.
    Converged,
}

/// Whether enough was done after so many iterations, so many evaluations of which did not improve on the best, where it ends at `ends_at` at the latest.
pub(super) fn enough(
    spec: &TrainSpec,
    iteration: usize,
    since_best: usize,
    ends_at: Option<usize>,
) -> Option<Stop> {
    if iteration >= spec.iterations.min(ends_at.unwrap_or(usize::MAX)) {
        return Some(Stop::Finished);
    }
    let patient = spec.patience.is_none_or(|most| since_best < most);
    (!patient).then_some(Stop::Converged)
}
