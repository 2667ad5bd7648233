//! The arguments that experiments share: scale, recipe, seed, and what may stand in place of a recipe's numbers.

use clap::{Args, ValueEnum};
use ramp::family::Inputs;
use ramp_lab::baselines::Estimator;
use ramp_lab::experiments::nonlinear_tree::data::Link;
use ramp_lab::harness::{BbviSettings, Core, Recipe, Scale};

#[derive(Clone, Copy, ValueEnum)]
pub enum ScaleName {
    /// Seconds to minutes, and the effect is there
    Quick,
    /// The paper's sizes
    Paper,
}

#[derive(Clone, Copy, ValueEnum)]
enum RecipeName {
    /// What works best
    Ours,
    /// The settings of the paper's table
    Paper,
}

#[derive(Clone, Copy, ValueEnum)]
enum InputsName {
    /// Mean, correlations and log-precisions
    Moments,
    /// The sum of messages as it is
    Natural,
}

impl From<ScaleName> for Scale {
    fn from(name: ScaleName) -> Self {
        match name {
            ScaleName::Quick => Scale::Quick,
            ScaleName::Paper => Scale::Paper,
        }
    }
}

/// How a parent acts on its children.
#[derive(Clone, Copy, ValueEnum)]
pub enum LinkName {
    /// 1/z, clipped at ±15: the paper's
    Reciprocal,
    /// z³
    Cubic,
    /// sin(2z)
    Sine,
    /// The sign of z
    Step,
    /// z·|z|
    SignedSquare,
}

impl From<LinkName> for Link {
    fn from(name: LinkName) -> Self {
        match name {
            LinkName::Reciprocal => Link::Reciprocal,
            LinkName::Cubic => Link::Cubic,
            LinkName::Sine => Link::Sine,
            LinkName::Step => Link::Step,
            LinkName::SignedSquare => Link::SignedSquare,
        }
    }
}

/// What every experiment asks.
#[derive(Args)]
pub struct Choice {
    /// How large
    #[arg(long, value_enum, default_value = "quick")]
    scale: ScaleName,
    /// How to train
    #[arg(long, value_enum, default_value = "ours")]
    recipe: RecipeName,
    /// Seed of data, weights and batches
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

impl Choice {
    pub fn scale(&self) -> Scale {
        self.scale.into()
    }

    pub fn recipe(&self) -> Recipe {
        match self.recipe {
            RecipeName::Ours => Recipe::Ours,
            RecipeName::Paper => Recipe::Paper,
        }
    }
}

/// How much there is to learn from, under the name that suits an experiment.
pub trait Count {
    fn count(&self) -> Option<u32>;
}

#[derive(Args)]
pub struct Samples {
    /// Training samples, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    n: Option<u32>,
}

impl Count for Samples {
    fn count(&self) -> Option<u32> {
        self.n
    }
}

#[derive(Args)]
pub struct Sequences {
    /// Training videos, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    sequences: Option<u32>,
}

impl Count for Sequences {
    fn count(&self) -> Option<u32> {
        self.sequences
    }
}

/// Numbers in place of the recipe's.
#[derive(Args)]
pub struct Tuning<C: Args = Samples> {
    #[command(flatten)]
    count: C,
    /// Samples per step, in place of the recipe's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Samples in the mixture, redrawn each step, in place of the recipe's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    mixture: Option<u32>,
    /// Steps, in place of the recipe's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// Step size, in place of the recipe's
    #[arg(long, allow_negative_numbers = true)]
    pub learning_rate: Option<f64>,
    /// The share of observations that are left out of a step, in place of the recipe's
    #[arg(long)]
    mask: Option<f64>,
    /// What networks see of beliefs, in place of the recipe's
    #[arg(long, value_enum)]
    inputs: Option<InputsName>,
    #[command(flatten)]
    retired: Retired,
}

/// Options that go by other names now.
#[derive(Args)]
struct Retired {
    #[arg(long, hide = true, allow_hyphen_values = true, value_parser = renamed("--mask"))]
    hide: Option<String>,
    #[arg(long, hide = true, allow_hyphen_values = true, value_parser = renamed("--inputs"))]
    view: Option<String>,
}

/// Refuses the value of an option that has a new name.
pub fn renamed(to: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync {
    move |value| {
        Err(format!(
            "this option is called `{to}` now; write `{to} {value}`"
        ))
    }
}

impl<C: Args + Count> Tuning<C> {
    pub fn apply(&self, n: &mut usize, core: &mut Core) {
        let Core { inputs, train, .. } = core;
        let given = |asked: Option<u32>| asked.map(|n| n as usize);
        *n = given(self.count.count()).unwrap_or(*n);
        train.batch = given(self.batch).or(train.batch);
        train.mixture = given(self.mixture).or(train.mixture);
        if let Some(iterations) = given(self.iterations) {
            *train = train.clone().lasting(iterations);
        }
        train.learning_rate = self.learning_rate.unwrap_or(train.learning_rate);
        train.mask = self.mask.unwrap_or(train.mask);
        if self.mask == Some(0.0) {
            train.mask_span = None;
        }
        *inputs = match self.inputs {
            None => *inputs,
            Some(InputsName::Moments) => Inputs::Moments,
            Some(InputsName::Natural) => Inputs::Natural,
        };
        if self.batch.is_none() && train.batch.is_some_and(|b| b > *n) {
            // Fewer samples than the recipe's batch: all of them.
            train.batch = None;
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum EstimatorName {
    /// Through the samples: lower variance, the stronger baseline
    Pathwise,
    /// The score function, as in the paper that BBVI comes from
    Reinforce,
}

/// Numbers of black-box variational inference in place of the scale's.
#[derive(Args)]
pub struct BbviArgs {
    /// Steps of BBVI, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    bbvi_iterations: Option<u32>,
    /// Step size of BBVI, in place of the scale's
    #[arg(long, allow_negative_numbers = true)]
    bbvi_learning_rate: Option<f64>,
    /// How BBVI estimates the gradient of its posteriors
    #[arg(long, value_enum, default_value = "pathwise")]
    bbvi_estimator: EstimatorName,
}

impl BbviArgs {
    pub fn apply(&self, bbvi: &mut BbviSettings) {
        if let Some(iterations) = self.bbvi_iterations {
            bbvi.learning.iterations = iterations as usize;
            bbvi.inference.iterations = bbvi.inference.iterations.min(iterations as usize);
        }
        bbvi.learning.learning_rate = self
            .bbvi_learning_rate
            .unwrap_or(bbvi.learning.learning_rate);
        let estimator = match self.bbvi_estimator {
            EstimatorName::Pathwise => Estimator::Pathwise,
            EstimatorName::Reinforce => Estimator::Reinforce,
        };
        *bbvi = bbvi.clone().estimator(estimator);
    }
}
