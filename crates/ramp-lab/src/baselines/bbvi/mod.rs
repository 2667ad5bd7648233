//! Black-box variational inference with a learned generative tree (the paper's appendix, "Black Box Variational Inference").
//!
//! The generative model has the true tree: a standard normal root, and `v = f_v(pa(v)) + ξ` with unit Gaussian noise, each
//! `f_v` a network of its own with one hidden layer of rectified units. Every sample has a posterior of its own, a Gaussian
//! per latent, fully factorised. Both are learned together by Adam on all samples at once, along a Monte Carlo estimate of
//! the free energy's gradient; its entropy term is exact.
//!
//! # Which gradient
//! The gradient with respect to the networks is the same in any case. For the posteriors there are two [`Estimator`]s:
//! - **Pathwise** (the default): samples `z = m + s·ε` move with the posterior, and the gradient passes through them. Its
//!   variance is far lower, and it needs the derivative of the joint, which networks have. It is the stronger baseline, so that
//!   a comparison with it flatters nobody.
//! - **Reinforce**: the score-function estimator of the paper that BBVI comes from, which only needs values of the joint. As
//!   there, it is Rao–Blackwellised (a latent sees only the factors it is in) and has a control variate (the mean of the
//!   other samples' values).

mod generative;
mod gradient;

pub use generative::GenerativeTree;

use ramp::train::{Decay, Identity, Problem, TrainSpec};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use gradient::{BLOCK, Block, Space};

/// How the gradient with respect to the posteriors is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// Through the samples.
    #[default]
    Pathwise,
    /// From the values of the joint only.
    Reinforce,
}

/// The settings of black-box variational inference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BbviSpec {
    /// Steps to take.
    pub iterations: usize,
    /// Monte Carlo samples per step and data sample.
    pub samples: usize,
    /// The step size of Adam.
    pub learning_rate: f64,
    /// How it changes.
    pub decay: Decay,
    /// How gradients are estimated.
    pub estimator: Estimator,
    /// Whether the generative networks learn; without, the posteriors of a known model are inferred.
    pub learn: bool,
    /// The seed of the Monte Carlo samples.
    pub seed: u64,
}

impl Default for BbviSpec {
    /// The paper's settings for the linear tree.
    fn default() -> Self {
        BbviSpec {
            iterations: 2500,
            samples: 100,
            learning_rate: 1e-3,
            decay: Decay::Constant,
            estimator: Estimator::Pathwise,
            learn: true,
            seed: 0,
        }
    }
}

impl BbviSpec {
    /// What the training loop has to know.
    pub fn train(&self) -> TrainSpec {
        TrainSpec {
            iterations: self.iterations,
            learning_rate: self.learning_rate,
            decay: self.decay.clone(),
            ..TrainSpec::default()
        }
    }

    /// Checks every setting.
    pub fn check(&self) -> Result<(), LabError> {
        // The score of one sample has no other sample to be compared with.
        let least = match self.estimator {
            Estimator::Pathwise => 1,
            Estimator::Reinforce => 2,
        };
        if self.samples < least {
            return Err(LabError::Invalid(format!(
                "BBVI needs at least {least} Monte Carlo samples, not {}",
                self.samples
            )));
        }
        Ok(self.train().check()?)
    }
}

/// A generative tree and the posteriors of a data set, a problem for the training loop.
///
/// The same seed gives the same numbers on any number of threads.
///
/// ```
/// use ramp::train::Trainer;
/// use ramp_lab::baselines::{Bbvi, BbviSpec, GenerativeTree};
/// use ramp_lab::experiments::linear_tree::data::LinearTree;
///
/// let tree = LinearTree::default();
/// let data = tree.sample(200, 1, 0)?;
/// let model = GenerativeTree::random(tree.parents()?, 7, 16, 1)?;
/// let spec = BbviSpec { iterations: 50, samples: 10, ..BbviSpec::default() };
/// let mut bbvi = Bbvi::new(model, &data.observations, spec.clone())?;
/// let fit = Trainer::new(spec.train())?.train(&mut bbvi)?;
/// assert!(fit.records[49].free_energy > fit.records[0].free_energy);
/// assert_eq!(bbvi.means(0).len(), 200);
/// # Ok::<(), ramp_lab::error::LabError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bbvi {
    spec: BbviSpec,
    /// Its weights are those of the last step; what is learned lies in `parameters`.
    tree: GenerativeTree,
    rows: usize,
    /// Sample after sample, the observations in the order of the tree.
    observations: Vec<f32>,
    /// Sample after sample, the means of all latents, then the logarithms of their standard deviations; behind all samples the
    /// weights of the tree, if they learn.
    parameters: Vec<f32>,
    /// What blocks add to a step, and the sum of their weights' gradients: room that is reused.
    blocks: Vec<Block>,
    sums: Vec<f64>,
}

impl Bbvi {
    /// Posteriors that start at the prior, a row per observation of the tree.
    pub fn new(
        tree: GenerativeTree,
        observations: &[Vec<f32>],
        spec: BbviSpec,
    ) -> Result<Self, LabError> {
        spec.check()?;
        if observations.len() != tree.observed() {
            return Err(LabError::Invalid(format!(
                "the generative tree has {} observations, the data {} rows",
                tree.observed(),
                observations.len()
            )));
        }
        let rows = observations.first().map_or(0, Vec::len);
        if rows == 0 || observations.iter().any(|row| row.len() != rows) {
            return Err(LabError::Invalid(
                "BBVI needs as many samples, at least one, of every observation".into(),
            ));
        }
        let mut parameters = vec![0.0; rows * 2 * tree.latents()];
        if spec.learn {
            parameters.extend_from_slice(tree.weights());
        }
        Ok(Bbvi {
            rows,
            observations: (0..rows)
                .flat_map(|n| observations.iter().map(move |row| row[n]))
                .collect(),
            parameters,
            blocks: vec![],
            sums: vec![],
            spec,
            tree,
        })
    }

    /// How many numbers the posteriors have.
    fn local(&self) -> usize {
        self.rows * 2 * self.tree.latents()
    }

    /// The generative model as it stands.
    pub fn tree(&self) -> GenerativeTree {
        let mut tree = self.tree.clone();
        if self.spec.learn {
            let learned = &self.parameters[self.local()..];
            tree.weights_mut().copy_from_slice(learned);
        }
        tree
    }

    /// The posterior means of a latent, sample by sample.
    pub fn means(&self, latent: usize) -> Vec<f64> {
        self.of_each_row(latent, f64::from)
    }

    /// The posterior variances of a latent, sample by sample.
    pub fn variances(&self, latent: usize) -> Vec<f64> {
        self.of_each_row(self.tree.latents() + latent, |log_sd| {
            (2.0 * f64::from(log_sd)).exp()
        })
    }

    fn of_each_row(&self, place: usize, read: impl Fn(f32) -> f64) -> Vec<f64> {
        let local = &self.parameters[..self.local()];
        let rows = local.chunks_exact(2 * self.tree.latents());
        rows.map(|row| read(row[place])).collect()
    }
}

impl Problem for Bbvi {
    type Model = Self;
    type Error = LabError;

    fn model(&self) -> &Self {
        self
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// The free energy, in nats per sample. Every posterior follows the gradient of its own sample's, the weights that of the
    /// mean.
    fn step(&mut self, iteration: usize, gradient: &mut [f32]) -> Result<f64, LabError> {
        let (local, weights) = self.parameters.split_at(self.local());
        if self.spec.learn {
            self.tree.weights_mut().copy_from_slice(weights);
        }
        let (tree, spec, number_of_step) = (&self.tree, &self.spec, iteration + 1);
        let (width, observed) = (2 * tree.latents(), tree.observed());
        let (to_local, to_weights) = gradient.split_at_mut(local.len());
        self.blocks
            .resize_with(self.rows.div_ceil(BLOCK), Block::default);
        self.blocks
            .par_iter_mut()
            .zip(to_local.par_chunks_mut(BLOCK * width))
            .zip(local.par_chunks(BLOCK * width))
            .zip(self.observations.par_chunks(BLOCK * observed))
            .enumerate()
            .for_each_init(
                || Space::new(tree, spec.samples),
                |space, (number, (((block, gradient), local), observations))| {
                    let draws = (number_of_step, number);
                    space.block(tree, spec, draws, (local, observations), block);
                    gradient.copy_from_slice(&space.local_gradient);
                },
            );
        self.sums.clear();
        self.sums.resize(to_weights.len(), 0.0);
        for block in &self.blocks {
            for (sum, part) in self.sums.iter_mut().zip(&block.weights) {
                *sum += f64::from(*part);
            }
        }
        for (to, sum) in to_weights.iter_mut().zip(&self.sums) {
            *to = (sum / self.rows as f64) as f32;
        }
        let value = self.blocks.iter().map(|block| block.free_energy);
        let value = value.sum::<f64>() / self.rows as f64;
        match value.is_finite() {
            true => Ok(value),
            false => Err(LabError::Diverged {
                method: "BBVI",
                step: number_of_step,
            }),
        }
    }

    fn identity(&self) -> Result<Identity, LabError> {
        let model = serde_json::to_value(("BBVI", &self.spec)).map_err(|e| LabError::Json {
            what: "BBVI".into(),
            source: e,
        })?;
        Ok(Identity {
            model,
            samples: self.rows,
            // Made from a seed, which is among the settings.
            data: 0,
        })
    }
}

#[cfg(test)]
mod tests;
