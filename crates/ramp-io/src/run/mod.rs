//! From a model file to a trained model in its folder: the project that is trained, and the run that stays.

mod error;
mod folder;
mod project;

pub use error::RunError;
pub use folder::Run;
pub(crate) use folder::support_samples;
pub use project::Project;
