//! The tables of all experiments: what every scale and every recipe means, in one place.

use super::BbviSettings;
use crate::baselines::{BbviSpec, CpcSpec, LearningSpec, Score, SvaeSpec};
use crate::experiments::pendulum::baselines::BaselineSettings;
use crate::experiments::pose::data::Augmentation;
use ramp::family::Inputs;
use ramp::model::Initialisation;
use ramp::train::{Decay, Optimizer, TrainSpec};
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
    fn new(scale: Scale, recipe: Recipe, train: TrainSpec) -> Self {
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

    /// Those of the linear tree.
    pub(crate) fn linear_tree(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let paper = trees(scale, seed);
        let train = match recipe {
            Recipe::Paper => paper,
            // A long warm-up and a soft start keep the root alive until the levels below have something to tell it; a high
            // rate and its slow fall take it to the optimum. With two children, the data do not say how much of the root is in
            // either: decay of weights that falls with the rate chooses the middle. At so high a rate a rare large gradient can throw a latent
            // into a lower optimum for good: clipping holds those back.
            Recipe::Ours => {
                let (iterations, warmup, learning_rate) = match scale {
                    Scale::Paper => (2500, 1250, 4e-2),
                    Scale::Quick => (750, 375, 3e-2),
                };
                TrainSpec {
                    iterations,
                    warmup,
                    learning_rate,
                    batch: Some(1000),
                    decay: Decay::Cosine { to: 0.0 },
                    optimizer: Optimizer::Adam {
                        decay: 0.3,
                        scheduled_decay: true,
                    },
                    clip: Some(2.0),
                    ..paper
                }
            }
        };
        Core::new(scale, recipe, train)
    }

    /// Those of misspecified trees: as the linear tree, shorter when there is little time.
    pub(crate) fn misspecified_tree(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let linear = Core::linear_tree(scale, recipe, seed);
        match scale {
            Scale::Paper => linear,
            Scale::Quick => Core {
                train: TrainSpec {
                    iterations: 400,
                    warmup: linear.train.warmup * 400 / linear.train.iterations,
                    ..linear.train
                },
                ..linear
            },
        }
    }

    /// Those of the nonlinear tree.
    pub(crate) fn nonlinear_tree(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let paper = trees(scale, seed);
        let train = match recipe {
            Recipe::Paper => paper,
            // With a soft start. A higher rate or more iterations overfit the root, so far from the data; decay of weights holds
            // that back.
            Recipe::Ours => {
                let (iterations, warmup) = match scale {
                    Scale::Paper => (600, 180),
                    Scale::Quick => (400, 120),
                };
                TrainSpec {
                    iterations,
                    warmup,
                    batch: Some(1000),
                    decay: Decay::Cosine { to: 0.0 },
                    optimizer: Optimizer::Adam {
                        decay: 0.03,
                        scheduled_decay: false,
                    },
                    ..paper
                }
            }
        };
        Core::new(scale, recipe, train)
    }

    /// Those of the pendulum.
    pub(crate) fn pendulum(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let (iterations, batch) = match (scale, recipe) {
            (Scale::Paper, Recipe::Paper) => (3000, 200),
            (Scale::Paper, Recipe::Ours) => (1000, 200),
            (Scale::Quick, _) => (800, 100),
        };
        let paper = TrainSpec {
            iterations,
            batch: Some(batch),
            learning_rate: 5e-4,
            seed,
            ..TrainSpec::default()
        };
        let train = match recipe {
            // The mixture is that of the batch, and nothing else, as in the paper's listing.
            Recipe::Paper => TrainSpec {
                population: Some(batch),
                even_rates: true,
                ..paper
            },
            // The rate falls in the end to let velocities sharpen. Frames are masked, more and more of them, so that networks
            // learn to see ahead.
            Recipe::Ours => TrainSpec {
                learning_rate: 1e-3,
                warmup: iterations / 10,
                decay: Decay::Cosine { to: 0.0 },
                clip: Some(10.0),
                mask: 0.4,
                mask_span: Some(5.0),
                mask_warmup: iterations * 2 / 3,
                ..paper
            },
        };
        Core::new(scale, recipe, train)
    }

    /// Those of poses.
    pub(crate) fn pose(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let (iterations, batch) = match (scale, recipe) {
            (Scale::Paper, Recipe::Paper) => (3000, 200),
            (Scale::Paper, Recipe::Ours) => (1500, 200),
            (Scale::Quick, _) => (350, 50),
        };
        let paper = TrainSpec {
            iterations,
            batch: Some(batch),
            learning_rate: 1e-4,
            seed,
            ..TrainSpec::default()
        };
        let train = match recipe {
            Recipe::Paper => paper,
            Recipe::Ours => TrainSpec {
                learning_rate: 1e-3,
                warmup: iterations / 10,
                decay: Decay::Cosine { to: 0.0 },
                clip: Some(10.0),
                ..paper
            },
        };
        Core::new(scale, recipe, train)
    }
}

/// The training of the paper's table for trees; a quick run takes it in batches.
fn trees(scale: Scale, seed: u64) -> TrainSpec {
    TrainSpec {
        iterations: 500,
        batch: match scale {
            Scale::Paper => None,
            Scale::Quick => Some(1000),
        },
        learning_rate: 1e-3,
        seed,
        ..TrainSpec::default()
    }
}

impl Augmentation {
    /// What poses are learned from beside themselves.
    pub(crate) fn new(recipe: Recipe) -> Self {
        match recipe {
            Recipe::Paper => Augmentation::default(),
            Recipe::Ours => Augmentation {
                of_each: 4,
                turn: 0.35,
                zoom: 1.2,
                occlusion: 0.1,
                fading: 0.3,
            },
        }
    }
}

impl BbviSettings {
    /// The settings of a scale. As in the paper: 16 hidden units, 100 Monte Carlo samples, Adam on the full batch; the step size is
    /// not given there, and this one does best.
    pub fn new(scale: Scale, iterations: usize, seed: u64) -> Self {
        let learning = BbviSpec {
            iterations,
            learning_rate: 1e-2,
            seed,
            ..BbviSpec::default()
        };
        let inference = BbviSpec {
            iterations: 300,
            samples: 25,
            learning_rate: 5e-2,
            decay: Decay::Cosine { to: 0.0 },
            learn: false,
            ..learning.clone()
        };
        let (n, learning, inference) = match scale {
            Scale::Paper => (10_000, learning, inference),
            Scale::Quick => (
                2000,
                BbviSpec {
                    iterations: iterations / 3,
                    samples: 32,
                    ..learning
                },
                BbviSpec {
                    iterations: 150,
                    samples: 16,
                    ..inference
                },
            ),
        };
        BbviSettings {
            n,
            hidden: 16,
            learning,
            inference,
        }
    }
}

impl BaselineSettings {
    /// The settings of a scale; the paper's recipe has contrastive coding as it was proposed.
    pub(crate) fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let (mut svae, mut cpc) = (SvaeSpec::default(), CpcSpec::default());
        for learning in [&mut svae.learning, &mut cpc.learning] {
            learning.seed = seed;
            if scale == Scale::Quick {
                *learning = LearningSpec {
                    iterations: 300,
                    starts: learning.starts.min(2),
                    trial: learning.trial.min(60),
                    ..learning.clone()
                };
            }
        }
        if recipe == Recipe::Paper {
            (cpc.score, cpc.spread, cpc.learning.starts) = (Score::Bilinear, 0.0, 1);
        }
        BaselineSettings { svae, cpc }
    }
}
