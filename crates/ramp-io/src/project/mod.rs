//! From a model file and a data file to a trained model in a folder, and back: what the command line does, for programs.
//!
//! - [`ModelFile`]: what the user wrote, checked.
//! - [`source`]: samples from tables, long tables of sequences, and arrays, some at a time.
//! - [`Encoder`]: how columns become observations; learned once, used ever after.
//! - [`Project`]: a model file that has met its data, ready to be trained.
//! - [`Run`]: a trained model in its folder.
//! - [`Findings`]: what was learned about each latent.

mod columns;
mod encoder;
mod file;
mod findings;
mod keys;
mod levels;
mod orient;
mod prepare;
mod run;
mod scale;
mod sections;
pub mod source;
mod start;
#[cfg(test)]
mod tests;
mod time_order;

pub use columns::{PosteriorColumn, posterior_columns, posterior_values};
pub use encoder::{Encoder, Encoding};
pub use file::{
    Chain, DataSettings, LatentSettings, ModelFile, NetworkSettings, ObservationKind,
    ObservationSettings, TreeSettings,
};
pub use findings::{Findings, LatentFindings};
pub use levels::Levels;
pub use prepare::Project;
pub use run::Run;
pub use scale::{Scale, ScaleKind};
