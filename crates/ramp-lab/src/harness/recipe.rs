//! How large and how trained: the settings that all experiments share.

use ramp::family::Inputs;
use ramp::model::Initialisation;
use ramp::train::TrainSpec;
use serde::{Deserialize, Serialize};

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds: enough to see the effect.
    Quick,
    /// The paper's sizes.
    Paper,
}

/// How a model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recipe {
    /// What works best.
    Ours,
    /// The settings of the paper's tables, networks that see natural parameters.
    Paper,
}

impl Recipe {
    /// How the networks of a tree begin.
    pub(crate) fn init(self) -> Initialisation {
        match self {
            Recipe::Ours => Initialisation::ScaledDown,
            Recipe::Paper => Initialisation::Independent,
        }
    }
}

/// The settings that all experiments share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Core {
    /// How large.
    pub scale: Scale,
    /// How trained.
    pub recipe: Recipe,
    /// What networks see of beliefs.
    pub inputs: Inputs,
    /// The training settings of every model.
    pub train: TrainSpec,
    /// The seed of data, weights and batches.
    pub seed: u64,
    /// Threads, or models that train at the same time; all of the machine's by default.
    pub threads: Option<usize>,
}

impl Core {
    /// The settings of a scale and a recipe, with these of training.
    pub(crate) fn new(scale: Scale, recipe: Recipe, train: TrainSpec) -> Self {
        Core {
            scale,
            recipe,
            inputs: match recipe {
                Recipe::Ours => Inputs::Moments,
                Recipe::Paper => Inputs::Natural,
            },
            seed: train.seed,
            train,
            threads: None,
        }
    }
}
