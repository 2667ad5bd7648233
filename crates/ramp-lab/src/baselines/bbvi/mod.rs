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

use ramp::train::{Decay, TrainSpec};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::Path;

use super::adam::{self, Adam};
use super::checkpoint;
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
    fn schedule(&self) -> TrainSpec {
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
        Ok(self.schedule().check()?)
    }
}

/// A generative tree and the posteriors of a data set, in the course of learning.
///
/// The same seed gives the same numbers on any number of threads.
///
/// ```
/// use ramp_lab::baselines::{Bbvi, BbviSpec, GenerativeTree};
/// use ramp_lab::tree_data::LinearTree;
///
/// let tree = LinearTree::default();
/// let data = tree.sample(200, 1, 0)?;
/// let model = GenerativeTree::random(tree.parents()?, 7, 16, 1)?;
/// let mut bbvi = Bbvi::new(model, &data.observations, BbviSpec { samples: 10, ..BbviSpec::default() })?;
/// let first = bbvi.step();
/// for _ in 0..50 {
///     bbvi.step();
/// }
/// assert!(bbvi.step() > first);
/// assert_eq!(bbvi.means(0).len(), 200);
/// # Ok::<(), ramp_lab::error::LabError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bbvi {
    spec: BbviSpec,
    tree: GenerativeTree,
    rows: usize,
    /// Sample after sample, the observations in the order of the tree.
    observations: Vec<f32>,
    /// Sample after sample, the means of all latents, then the logarithms of their standard deviations.
    local: Vec<f32>,
    local_memory: Adam,
    weight_memory: Adam,
    iteration: usize,
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
        let numbers = rows * 2 * tree.latents();
        Ok(Bbvi {
            rows,
            observations: (0..rows)
                .flat_map(|n| observations.iter().map(move |row| row[n]))
                .collect(),
            local: vec![0.0; numbers],
            local_memory: Adam::new(numbers),
            weight_memory: Adam::new(tree.weights().len()),
            iteration: 0,
            spec,
            tree,
        })
    }

    /// Takes a step and returns the free energy before it, in nats per sample.
    pub fn step(&mut self) -> f64 {
        let rate = self.spec.schedule().rate(self.iteration);
        self.iteration += 1;
        let (tree, spec, iteration) = (&self.tree, &self.spec, self.iteration);
        let (width, observed) = (2 * tree.latents(), tree.observed());
        let step = adam::Step::new(iteration, rate);
        // Each block updates its own posteriors at once; the networks wait for all blocks.
        let blocks: Vec<Block> = self
            .local
            .par_chunks_mut(BLOCK * width)
            .zip(self.local_memory.chunks_mut(BLOCK * width))
            .zip(self.observations.par_chunks(BLOCK * observed))
            .enumerate()
            .map_init(
                || Space::new(tree, spec.samples),
                |space, (number, ((local, memory), observations))| {
                    let block = space.block(tree, spec, (iteration, number), local, observations);
                    step.apply(&space.local_gradient, local, memory);
                    block
                },
            )
            .collect();
        if spec.learn {
            let mut gradient = vec![0.0_f64; tree.weights().len()];
            for block in &blocks {
                for (sum, part) in gradient.iter_mut().zip(&block.weights) {
                    *sum += f64::from(*part);
                }
            }
            let gradient: Vec<f32> = gradient
                .into_iter()
                .map(|g| (g / self.rows as f64) as f32)
                .collect();
            step.apply(
                &gradient,
                self.tree.weights_mut(),
                self.weight_memory.whole(),
            );
        }
        blocks.iter().map(|block| block.free_energy).sum::<f64>() / self.rows as f64
    }

    /// Steps taken.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// The generative model as it stands.
    pub fn tree(&self) -> &GenerativeTree {
        &self.tree
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
        let rows = self.local.chunks_exact(2 * self.tree.latents());
        rows.map(|row| read(row[place])).collect()
    }

    /// Writes the state to a file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), LabError> {
        let settings = (&self.spec, self.rows);
        checkpoint::save("BBVI", path, settings, self.iteration, &self.arrays())
    }

    /// Goes on from a file, if it is there; refuses the state of other settings or data.
    pub fn resume(&mut self, path: &Path) -> Result<(), LabError> {
        let settings = (self.spec.clone(), self.rows);
        let Some((iteration, stored)) = checkpoint::load("BBVI", path, &settings, &self.arrays())?
        else {
            return Ok(());
        };
        let mut stored = stored.into_iter();
        let mut next = || stored.next().unwrap_or_default();
        self.local = next();
        self.local_memory = Adam::from_parts(next(), next());
        self.tree.weights_mut().copy_from_slice(&next());
        self.weight_memory = Adam::from_parts(next(), next());
        self.iteration = iteration;
        Ok(())
    }

    fn arrays(&self) -> [(&'static str, &[f32]); 6] {
        [
            ("posteriors", &self.local),
            ("posteriors.first", self.local_memory.first()),
            ("posteriors.second", self.local_memory.second()),
            ("weights", self.tree.weights()),
            ("weights.first", self.weight_memory.first()),
            ("weights.second", self.weight_memory.second()),
        ]
    }
}

#[cfg(test)]
mod tests;
