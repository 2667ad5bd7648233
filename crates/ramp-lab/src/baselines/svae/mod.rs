//! A structured variational autoencoder with linear-Gaussian dynamics in the plane (Johnson et al. 2016; Zhao and Linderman 2023).
//!
//! - **Latents**: `z₁ ~ N(m, S)`, `z_{t+1} = A z_t + b + N(0, Q)` in two dimensions, all of it learned.
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
use super::tape::Small;
use crate::error::LabError;
use chain::{DYNAMICS, POTENTIAL, Posterior, factor};
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
            encoder: vec![128],
            decoder: vec![128],
            likelihood: Likelihood::default(),
        }
    }
}

/// Linear-Gaussian dynamics in the plane; matrices row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dynamics {
    /// `A`, which turns a state into the next.
    pub transition: [[f64; 2]; 2],
    /// `b`, added to it.
    pub shift: [f64; 2],
    /// `Q`, the covariance of what is added at random.
    pub noise: [[f64; 2]; 2],
    /// `m`, the mean of the first state.
    pub first_mean: [f64; 2],
    /// `S`, its covariance.
    pub first_covariance: [[f64; 2]; 2],
}

/// The posterior of one latent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Its mean.
    pub mean: [f64; 2],
    /// Its covariance.
    pub covariance: [[f64; 2]; 2],
}

/// A structured variational autoencoder; [`Learner`] learns it.
#[derive(Clone, Debug)]
pub struct Svae {
    spec: SvaeSpec,
    width: usize,
    encoder: Perceptron,
    decoder: Perceptron,
    dynamics: Range<usize>,
}

impl Svae {
    fn dynamics_of(&self, parameters: &[f32]) -> [f64; DYNAMICS] {
        let numbers = &parameters[self.dynamics.clone()];
        std::array::from_fn(|i| f64::from(numbers[i]))
    }

    /// The place of the logarithm of the noise's standard deviation, for Gaussian observations.
    fn log_sd(&self) -> usize {
        self.dynamics.end
    }

    fn potentials(&self, encoded: &Pass, steps: usize) -> Vec<[f64; POTENTIAL]> {
        let rows = encoded.output.len() / POTENTIAL;
        (0..steps)
            .map(|r| std::array::from_fn(|i| f64::from(encoded.output[i * rows + r])))
            .collect()
    }

    fn posterior(
        &self,
        parameters: &[f32],
        frames: &Frames,
        noise: &[[f64; 2]],
    ) -> (Pass, Posterior) {
        let encoded = self.encoder.forward(parameters, frames.block());
        let potentials = self.potentials(&encoded, noise.len());
        let posterior = Posterior::new(&self.dynamics_of(parameters), &potentials, noise);
        (encoded, posterior)
    }

    /// The bound of one sequence; adds `share` of its gradient.
    fn sequence(
        &self,
        parameters: &[f32],
        frames: &Frames,
        noise: &[[f64; 2]],
        share: f64,
        gradient: &mut [f32],
    ) -> f64 {
        let (rows, steps) = (frames.rows, noise.len());
        let (encoded, posterior) = self.posterior(parameters, frames, noise);
        let mut draws = vec![0.0; 2 * rows];
        for (r, [x, y]) in posterior.draws().enumerate() {
            (draws[r], draws[rows + r]) = (x as f32, y as f32);
        }
        let drawn = Block::feature_major(&draws, 2, rows);
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

        let mut at_draws = vec![0.0; 2 * rows];
        self.decoder.backward(
            parameters,
            drawn,
            &decoded,
            &evidence.at_output,
            Some(&mut at_draws),
            gradient,
        );
        let pulls: Vec<[f64; 2]> = (0..steps)
            .map(|r| [f64::from(at_draws[r]), f64::from(at_draws[rows + r])])
            .collect();
        let slopes = posterior.backward(&pulls, -share);
        for (to, slope) in gradient[self.dynamics.clone()]
            .iter_mut()
            .zip(slopes.dynamics)
        {
            *to += slope as f32;
        }
        let mut at_encoded = vec![0.0; POTENTIAL * rows];
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
        let width = data.width();
        let encoder = Perceptron::new(width, &spec.encoder, POTENTIAL, 0)?;
        let decoder = Perceptron::new(2, &spec.decoder, width, encoder.place().end)?;
        let from = decoder.place().end;
        Ok(Svae {
            spec,
            width,
            encoder,
            decoder,
            dynamics: from..from + DYNAMICS,
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
        (dynamics[0], dynamics[3]) = (0.95, 0.95);
        dynamics[6..8].fill(-1.05);
        dynamics[11..13].fill(0.541);
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
            let noise: Vec<[f64; 2]> = (0..data.steps())
                .map(|_| [(); 2].map(|()| StandardNormal.sample(&mut rng)))
                .collect();
            let frames = Frames::read(data, batch.sequences[place]);
            self.sequence(parameters, &frames, &noise, share, gradient)
        });
        share * value
    }

    fn points(&self, parameters: &[f32], data: &dyn Sequences, sequence: usize) -> Vec<f64> {
        let frames = Frames::read(data, sequence);
        let (_, posterior) = self.posterior(parameters, &frames, &vec![[0.0; 2]; data.steps()]);
        posterior.means().flatten().collect()
    }
}

impl Learner<Svae> {
    /// The posterior of every step of a sequence.
    pub fn states(&self, data: &dyn Sequences, sequence: usize) -> Result<Vec<State>, LabError> {
        self.check_width(data)?;
        let frames = Frames::read(data, sequence);
        let noise = vec![[0.0; 2]; data.steps()];
        let (_, posterior) = self.model.posterior(&self.parameters, &frames, &noise);
        let both = posterior.means().zip(posterior.covariances());
        let states = both.map(|(mean, covariance)| State {
            mean,
            covariance: rows(covariance),
        });
        Ok(states.collect())
    }

    /// The dynamics as they stand.
    pub fn dynamics(&self) -> Dynamics {
        let d = self.model.dynamics_of(&self.parameters);
        let covariance = |raw: &[f64]| {
            let factor = factor(raw).positive();
            rows(factor * factor.transpose())
        };
        Dynamics {
            transition: [[d[0], d[1]], [d[2], d[3]]],
            shift: [d[4], d[5]],
            noise: covariance(&d[6..9]),
            first_mean: [d[9], d[10]],
            first_covariance: covariance(&d[11..14]),
        }
    }
}

fn rows(of: Small) -> [[f64; 2]; 2] {
    [0, 1].map(|i| [0, 1].map(|j| of[(i, j)]))
}
