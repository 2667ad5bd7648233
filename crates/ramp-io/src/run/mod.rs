//! From a model file to a trained model in its folder: the project that is trained, and the run that stays.

mod claim;
mod dealt;
#[cfg(test)]
mod dealt_tests;
mod error;
mod folder;
mod lock;
mod manifest;
mod project;
mod reopen;
#[cfg(test)]
mod tests;
mod training;

pub use claim::{Intent, RunFolder};
pub use error::RunError;
pub use folder::Run;
pub(crate) use folder::{SUPPORT_NUMBERS, support_samples};
pub use lock::FolderLock;
pub use project::Project;
pub use training::{Account, kept_weights};
