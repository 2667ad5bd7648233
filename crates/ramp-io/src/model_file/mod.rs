//! The model file: what a user says about data, tree, latents, observations, networks and training, read and checked.

mod error;
mod file;
mod init;
mod retired;
mod sections;
mod toml_errors;

pub use error::{ModelFileError, ObservationConflict};
pub use file::{
    Chain, DataSettings, LatentSettings, ModelFile, NetworkSettings, ObservationKind,
    ObservationSettings, TreeSettings,
};
pub use sections::known_settings;
