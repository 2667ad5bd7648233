//! From a model file to a trained model in its folder: the project that is trained, and the run that stays.

mod beyond_linear;
mod claim;
mod cross_validation;
mod data_file;
mod dealt;
#[cfg(test)]
mod dealt_tests;
mod error;
mod estimate;
mod folder;
mod learned_rows;
mod lock;
mod manifest;
mod project;
mod reopen;
#[cfg(test)]
mod small_tests;
mod temperature;
#[cfg(test)]
mod tests;
mod training;

pub use beyond_linear::BeyondLinear;
pub use claim::{Intent, RunFolder};
pub use cross_validation::CrossValidation;
pub use error::RunError;
pub use estimate::Estimate;
pub use folder::Run;
pub(crate) use folder::{SUPPORT_NUMBERS, support_samples};
pub use learned_rows::RowUse;
pub use lock::FolderLock;
pub use project::Project;
pub use training::Account;
