//! The report of a fit: what its page shows, gathered from a project, and the page itself.

mod build;
mod gaps;
mod page;

pub use build::{Shown, build};
pub use page::{
    Band, ChangeGain, Contribution, Coordinate, DataColumn, FreeEnergy, HeldOutRanks, ItemCurve,
    Latent, MissingPattern, OverTime, Prior, Report, Sequence, StepCurve, TrainingPoint, Values,
    Variable, data_of, page, with_changes, with_changes_of,
};
