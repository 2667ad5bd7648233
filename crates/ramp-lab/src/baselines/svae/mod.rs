//! A structured variational autoencoder with linear-Gaussian dynamics (Johnson et al. 2016; Zhao and Linderman 2023).
//!
//! - **Latents**: `z₁ ~ N(m, S)`, `z_{t+1} = A z_t + b + N(0, Q)` in some dimensions, all of it learned.
//! - **Encoder**: a perceptron turns an observation into a Gaussian potential on its latent, with a full precision.
//! - **Posterior**: exact in the chain with these potentials, by Kalman smoothing. Every step's mean is its embedding.
//! - **Decoder**: a perceptron from a draw of the posterior to the logits of pixels, or to means of other numbers.
//! - **Objective**: the evidence lower bound, one draw per sequence and step with the gradient through it, the divergence from
//!   the prior in closed form.
//!
//! The bound is the one that the method maximises, without weights on its terms or a schedule for them. The outputs' biases
//! start at the data's mean, which only saves the steps it takes to learn an empty background.

mod chain;
mod likelihood;
#[cfg(test)]
mod tests;

pub use likelihood::Likelihood;

use super::learner::{Array, Batch, Learner, LearningSpec, Parts, SequenceModel};
use super::perceptron::{Frames, Pass, Perceptron};
use super::sequences::Sequences;
use crate::error::LabError;
use chain::{Layout, Posterior};
use ramp::network::Block;
use ramp::train::Decay;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Sequences whose mean the decoder starts at.
const LOOKED_AT: usize = 50;

/// The settings of a structured variational autoencoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SvaeSpec {
    /// How it is learned.
    pub learning: LearningSpec,
    /// The dimension of the latents.
    pub dim: usize,
    /// Hidden units of the encoder, layer by layer.
    pub encoder: Vec<usize>,
    /// Hidden units of the decoder; none makes it linear.
    pub decoder: Vec<usize>,
    /// How observations come from the decoder's outputs.
    pub likelihood: Likelihood,
}

impl Default for SvaeSpec {
    fn default() -> Self {
        SvaeSpec {
            learning: LearningSpec {
                iterations: 3000,
                batch: 20,
                learning_rate: 3e-3,
                decay: Decay::Cosine { to: 0.0 },
                starts: 1,
                trial: 0,
                seed: 0,
            },
            dim: 2,
            encoder: vec![128],
            decoder: vec![128],
            likelihood: Likelihood::default(),
        }
    }
}

/// Linear-Gaussian dynamics; matrices row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamics {
    /// `A`, which turns a state into the next.
    pub transition: Vec<f64>,
    /// `b`, added to it.
    pub shift: Vec<f64>,
    /// `Q`, the covariance of what is added at random.
    pub noise: Vec<f64>,
    /// `m`, the mean of the first state.
    pub first_mean: Vec<f64>,
    /// `S`, its covariance.
    pub first_covariance: Vec<f64>,
}

/// The posterior of one latent.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Its mean.
    pub mean: Vec<f64>,
    /// Its covariance, row by row.
    pub covariance: Vec<f64>,
}

/// A structured variational autoencoder; [`Learner`] learns it.
#[derive(Clone, Debug)]
pub struct Svae {
    spec: SvaeSpec,
    layout: Layout,
    width: usize,
    encoder: Perceptron,
    decoder: Perceptron,
    dynamics: Range<usize>,
}

impl Svae {
    fn dynamics_of(&self, parameters: &[f32]) -> Vec<f64> {
        let numbers = &parameters[self.dynamics.clone()];
        numbers.iter().map(|&x| f64::from(x)).collect()
    }

    /// The place of the logarithm of the noise's standard deviation, for Gaussian observations.
    fn log_sd(&self) -> usize {
        self.dynamics.end
    }

    fn potentials(&self, encoded: &Pass, steps: usize) -> Vec<Vec<f64>> {
        let numbers = self.layout.potential_len();
        let rows = encoded.output.len() / numbers;
        let at = |r: usize, i: usize| f64::from(encoded.output[i * rows + r]);
        (0..steps)
            .map(|r| (0..numbers).map(|i| at(r, i)).collect())
            .collect()
    }

    fn posterior(
        &self,
        parameters: &[f32],
        frames: &Frames,
        noise: &[Vec<f64>],
    ) -> (Pass, Posterior) {
        let encoded = self.encoder.forward(parameters, frames.block());
        let potentials = self.potentials(&encoded, noise.len());
        let dynamics = self.dynamics_of(parameters);
        let posterior = Posterior::new(self.layout, &dynamics, &potentials, noise);
        (encoded, posterior)
    }

    /// The noise of so many steps that makes every draw its mean.
    fn no_noise(&self, steps: usize) -> Vec<Vec<f64>> {
        vec![vec![0.0; self.spec.dim]; steps]
    }

    /// The bound of one sequence; adds `share` of its gradient.
    fn sequence(
        &self,
        parameters: &[f32],
        frames: &Frames,
        noise: &[Vec<f64>],
        share: f64,
        gradient: &mut [f32],
    ) -> f64 {
        let (rows, steps, dim) = (frames.rows, noise.len(), self.spec.dim);
        let (encoded, posterior) = self.posterior(parameters, frames, noise);
        let mut draws = vec![0.0; dim * rows];
        for (r, draw) in posterior.draws().enumerate() {
            for (i, &x) in draw.iter().enumerate() {
                draws[i * rows + r] = x as f32;
            }
        }
        let drawn = Block::feature_major(&draws, dim, rows);
        let decoded = self.decoder.forward(parameters, drawn);
        let log_sd = f64::from(parameters[self.log_sd()]);
        let mut evidence = self
            .spec
            .likelihood
            .evidence(frames, &decoded.output, steps, log_sd);
        for slope in &mut evidence.at_output {
            *slope *= share as f32;
        }
        gradient[self.log_sd()] += (share * evidence.at_log_sd) as f32;

        let mut at_draws = vec![0.0; dim * rows];
        self.decoder.backward(
            parameters,
            drawn,
            &decoded,
            &evidence.at_output,
            Some(&mut at_draws),
            gradient,
        );
        let pull = |r: usize| {
            (0..dim)
                .map(|i| f64::from(at_draws[i * rows + r]))
                .collect()
        };
        let pulls: Vec<Vec<f64>> = (0..steps).map(pull).collect();
        let slopes = posterior.backward(&pulls, -share);
        for (to, slope) in gradient[self.dynamics.clone()]
            .iter_mut()
            .zip(slopes.dynamics)
        {
            *to += slope as f32;
        }
        let mut at_encoded = vec![0.0; self.layout.potential_len() * rows];
        for (r, slopes) in slopes.potentials.iter().enumerate() {
            for (i, &slope) in slopes.iter().enumerate() {
                at_encoded[i * rows + r] = slope as f32;
            }
        }
        self.encoder.backward(
            parameters,
            frames.block(),
            &encoded,
            &at_encoded,
            None,
            gradient,
        );
        evidence.value - posterior.divergence()
    }
}

impl SequenceModel for Svae {
    const NAME: &'static str = "SVAE";
    type Spec = SvaeSpec;

    fn new(spec: SvaeSpec, data: &dyn Sequences) -> Result<Self, LabError> {
        if spec.dim == 0 {
            return Err(LabError::Invalid(
                "the latents of an SVAE must have at least one dimension".into(),
            ));
        }
        let (width, layout) = (data.width(), Layout { dim: spec.dim });
        let encoder = Perceptron::new(width, &spec.encoder, layout.potential_len(), 0)?;
        let decoder = Perceptron::new(spec.dim, &spec.decoder, width, encoder.place().end)?;
        let from = decoder.place().end;
        Ok(Svae {
            spec,
            layout,
            width,
            encoder,
            decoder,
            dynamics: from..from + layout.dynamics_len(),
        })
    }

    fn spec(&self) -> &SvaeSpec {
        &self.spec
    }

    fn learning(&self) -> &LearningSpec {
        &self.spec.learning
    }

    fn arrays(&self) -> Vec<Array> {
        let mut arrays = self.encoder.arrays("encoder", true);
        arrays.extend(self.decoder.arrays("decoder", false));
        let (dynamics, log_sd) = (self.dynamics.clone(), self.log_sd());
        for (name, span) in [("dynamics", dynamics), ("noise", log_sd..log_sd + 1)] {
            arrays.push(Array {
                name: name.into(),
                span,
                part: 1.0,
            });
        }
        arrays
    }

    fn initialise(&self, data: &dyn Sequences, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.log_sd() + 1];
        self.encoder.initialize(rng, &mut parameters);
        self.decoder.initialize(rng, &mut parameters);
        let mut mean = vec![0.0; self.width];
        let mut observation = vec![0.0; self.width];
        let looked_at = data.count().min(LOOKED_AT);
        for sequence in 0..looked_at {
            for step in 0..data.steps() {
                data.read(sequence, step, &mut observation);
                for (sum, &x) in mean.iter_mut().zip(&observation) {
                    *sum += f64::from(x) / (looked_at * data.steps()) as f64;
                }
            }
        }
        let end = self.decoder.place().end;
        for (bias, mean) in parameters[end - self.width..end].iter_mut().zip(mean) {
            *bias = self.spec.likelihood.output_of_mean(mean) as f32;
        }
        // States wander slowly and start as standard normals. softplus(0.541) = 1, softplus(−1.05) = 0.3.
        let dynamics = &mut parameters[self.dynamics.clone()];
        let (dim, [a, _, q, _, s]) = (self.spec.dim, self.layout.dynamics());
        (0..dim).for_each(|i| dynamics[a.start + i * dim + i] = 0.95);
        dynamics[q][..dim].fill(-1.05);
        dynamics[s][..dim].fill(0.541);
        parameters
    }

    fn gradient(
        &self,
        parameters: &[f32],
        data: &dyn Sequences,
        batch: &Batch,
        parts: &mut Parts,
        gradient: &mut [f32],
    ) -> f64 {
        let share = 1.0 / (batch.sequences.len() * data.steps()) as f64;
        let value = batch.sum(parts, gradient, |place, gradient| {
            let mut rng = batch.draws(place);
            let mut draw = || {
                (0..self.spec.dim)
                    .map(|_| StandardNormal.sample(&mut rng))
                    .collect()
            };
            let noise: Vec<Vec<f64>> = (0..data.steps()).map(|_| draw()).collect();
            let frames = Frames::read(data, batch.sequences[place]);
            self.sequence(parameters, &frames, &noise, share, gradient)
        });
        share * value
    }

    fn points(&self, parameters: &[f32], data: &dyn Sequences, sequence: usize) -> Vec<f64> {
        let frames = Frames::read(data, sequence);
        let (_, posterior) = self.posterior(parameters, &frames, &self.no_noise(data.steps()));
        posterior.means().flatten().copied().collect()
    }

    fn dim(&self) -> usize {
        self.spec.dim
    }
}

impl Learner<Svae> {
    /// The posterior of every step of a sequence.
    pub fn states(&self, data: &dyn Sequences, sequence: usize) -> Result<Vec<State>, LabError> {
        self.check_width(data)?;
        let frames = Frames::read(data, sequence);
        let noise = self.model.no_noise(data.steps());
        let (_, posterior) = self.model.posterior(&self.parameters, &frames, &noise);
        let both = posterior.means().zip(posterior.covariances());
        let states = both.map(|(mean, covariance)| State {
            mean: mean.to_vec(),
            covariance: covariance.values().to_vec(),
        });
        Ok(states.collect())
    }

    /// The dynamics as they stand.
    pub fn dynamics(&self) -> Dynamics {
        let numbers = self.model.dynamics_of(&self.parameters);
        let layout = self.model.layout;
        let [a, b, q, first, s] = layout.dynamics().map(|span| &numbers[span]);
        let covariance = |raw: &[f64]| {
            let factor = layout.factor(raw).positive();
            (&factor * &factor.transpose()).values().to_vec()
        };
        Dynamics {
            transition: a.to_vec(),
            shift: b.to_vec(),
            noise: covariance(q),
            first_mean: first.to_vec(),
            first_covariance: covariance(s),
        }
    }
}
