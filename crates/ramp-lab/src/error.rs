//! What can go wrong in the lab, each case a sentence the reader can act on.

use std::path::PathBuf;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The library said no.
    #[error(transparent)]
    Ramp(#[from] ramp::Error),
    /// A generator or a model was asked for something that has no meaning.
    #[error("{0}")]
    Invalid(String),
    /// Someone stopped a run; the same run goes on from there.
    #[error("{what} was stopped after iteration {iteration} of {iterations}")]
    Interrupted {
        /// Which piece of work.
        what: String,
        /// Steps taken.
        iteration: usize,
        /// Steps in all.
        iterations: usize,
    },
    /// A folder holds the state of another run.
    #[error(
        "{} holds the state of a run with other settings; give this one another folder",
        folder.display()
    )]
    OtherRun {
        /// The folder.
        folder: PathBuf,
    },
    /// A baseline's objective is no longer a number.
    #[error(
        "{method} lost its way: the objective of step {step} is not a number; use a smaller learning rate"
    )]
    Diverged {
        /// Which baseline.
        method: &'static str,
        /// The step.
        step: usize,
    },
    /// Something could not be written as JSON.
    #[error("{what} cannot be written as JSON: {source}")]
    Json {
        /// What.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A covariance has no inverse, so that there is no posterior to compute.
    #[error(
        "the covariance of {what} is not positive definite; give every node a positive variance"
    )]
    Singular {
        /// Which block of the joint covariance failed.
        what: &'static str,
    },
    /// A drawn figure could not be turned into pixels.
    #[error("the figure \"{name}\" cannot be rasterised: {reason}")]
    Raster {
        /// The figure's file name, without ending.
        name: String,
        /// What the renderer said.
        reason: String,
    },
}

/// Errors of the engine's rooms come in by its front door.
macro_rules! engine_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for LabError {
            fn from(error: $error) -> Self {
                LabError::Ramp(error.into())
            }
        }
    )*};
}

engine_errors!(
    ramp::data::DataError,
    ramp::infer::InferError,
    ramp::family::FamilyError,
    ramp::graph::GraphError,
    ramp::model::ModelError,
    ramp::network::NetworkError,
    ramp::train::TrainError,
    ramp::storage::StorageError
);
