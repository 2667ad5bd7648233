//! Contrastive predictive coding (van den Oord et al. 2018).
//!
//! - **Encoder**: a perceptron from an observation to its code `z_t`, a point.
//! - **Context**: a perceptron from the codes of a causal window, the last [`CpcSpec::window`] steps, to `c_t`, again a point. What
//!   came before the sequence is zero. A recurrent network would have to carry its memory in the same few numbers that are its output,
//!   or else be a wide one that is projected; a window has all of the recent past before it at once, and two frames
//!   already tell a pendulum's angle and speed. So the window is the easier of the two to learn and loses nothing.
//! - **Score** of an observation `k = 1 … K` steps ahead: see [`Score`].
//! - **Negatives**: what the other sequences of the batch show at the same time. A code sees one frame, so that other times of the
//!   same sequence would only repeat what other sequences show already.
//! - **Objective**: InfoNCE over all steps and horizons. Knowing nothing scores `−ln(batch)`, a perfect guess zero. A small penalty
//!   ([`CpcSpec::spread`]) keeps the covariances of codes and contexts near unit ones.
//!
//! Both code and context are points. The **context is the embedding**: the code has seen one frame, from which no speed can
//! be read, while the context is what the method predicts from. [`Learner::codes`] gives the codes too.
//!
//! # What gives it a fair chance
//! Measured on 500 videos of 24×24 pixels and 50 steps. Plain CPC (bilinear scores, no penalty) finds about half of a pendulum's
//! angle and nothing of its speed. Quadratic scores alone fold the plane along the pendulum's symmetry: one of cosine and sine is
//! found and the other lost, which costs no more than ln 2 of the objective and never unfolds. With the penalty as well, about six in
//! ten random starts unfold the ring of angles, and the objective of those is clearly higher after 200 steps; so several starts
//! are tried ([`Learner::choose_start`]). Horizons beyond three steps and smaller learning rates fold more often.

mod info_nce;
mod spread;
#[cfg(test)]
mod tests;

use super::learner::{Array, Batch, Learner, LearningSpec, Parts, SequenceModel};
use super::perceptron::{Frames, Pass, Perceptron};
use super::sequences::Sequences;
use crate::error::LabError;
use info_nce::Contrast;
use ramp::network::Block;
use ramp::train::Decay;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use spread::Spread;

/// How well an observation fits a context from which it is `k` steps ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Score {
    /// `zᵀ(W_k c + w_k)`, as in the paper that CPC comes from. The best `z` for any context lies at the rim.
    Bilinear,
    /// `u_k(c)ᵀ(z, z zᵀ)` with a perceptron `u`: the logarithm of any Gaussian over codes. It can ask for a place anywhere and
    /// say how sure it is, so that codes need not be bent into what lines can tell.
    #[default]
    Quadratic,
}

impl Score {
    /// Numbers of a code of some dimension that are compared.
    fn features(self, dim: usize) -> usize {
        match self {
            Score::Bilinear => dim,
            Score::Quadratic => dim + dim * (dim + 1) / 2,
        }
    }

    /// The numbers of a code that are compared: the code, then products of its numbers.
    fn of_code(self, code: &[f32]) -> Vec<f32> {
        let mut numbers = code.to_vec();
        if self == Score::Quadratic {
            let products = |i: usize| code[i..].iter().map(move |y| code[i] * y);
            numbers.extend((0..code.len()).flat_map(products));
        }
        numbers
    }

    /// The gradient at a code from that at its features.
    fn back(self, code: &[f32], at: &[f32]) -> Vec<f32> {
        let dim = code.len();
        let mut slope = at[..dim].to_vec();
        if self == Score::Quadratic {
            let pairs = (0..dim).flat_map(|i| (i..dim).map(move |j| (i, j)));
            for ((i, j), g) in pairs.zip(&at[dim..]) {
                slope[i] += g * code[j];
                slope[j] += g * code[i];
            }
        }
        slope
    }
}

/// The settings of contrastive predictive coding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpcSpec {
    /// How it is learned; a batch of `B` sequences has `B − 1` negatives.
    pub learning: LearningSpec,
    /// The dimension of codes and contexts.
    pub dim: usize,
    /// Hidden units of the encoder, layer by layer.
    pub encoder: Vec<usize>,
    /// Hidden units of the context's network, and of the score's if it has one.
    pub context: Vec<usize>,
    /// Steps that the context sees, the present one included.
    pub window: usize,
    /// Steps ahead that are predicted: all from one to this.
    pub ahead: usize,
    /// How predictions are compared with codes.
    pub score: Score,
    /// The weight of a penalty on how far the covariances of a batch's codes and contexts are from unit ones; zero is plain CPC.
    pub spread: f64,
}

impl Default for CpcSpec {
    fn default() -> Self {
        CpcSpec {
            learning: LearningSpec {
                iterations: 3000,
                batch: 128,
                learning_rate: 3e-3,
                decay: Decay::Cosine { to: 0.0 },
                starts: 4,
                trial: 200,
                seed: 0,
            },
            dim: 2,
            encoder: vec![128],
            context: vec![64],
            window: 8,
            ahead: 3,
            score: Score::default(),
            spread: 0.1,
        }
    }
}

/// Contrastive predictive coding; [`Learner`] learns it.
#[derive(Clone, Debug)]
pub struct Cpc {
    spec: CpcSpec,
    encoder: Perceptron,
    context: Perceptron,
    predictor: Perceptron,
}

/// Everything computed from one sequence.
struct Seen {
    rows: usize,
    encoded: Pass,
    windows: Vec<f32>,
    context: Pass,
    predicted: Pass,
}

impl Seen {
    fn code(&self, step: usize) -> Vec<f32> {
        let numbers = self.encoded.output.chunks_exact(self.rows);
        numbers.map(|of_step| of_step[step]).collect()
    }
}

/// The gradient of the objective at one time that was predicted.
struct Target {
    value: f64,
    /// At the codes of all sequences.
    codes: Vec<Vec<f32>>,
    /// At the predictions from one step before, two, …; sequence by sequence, feature by feature.
    predictions: Vec<Vec<f32>>,
}

impl Cpc {
    fn see(&self, parameters: &[f32], frames: &Frames) -> Seen {
        let rows = frames.rows;
        let encoded = self.encoder.forward(parameters, frames.block());
        let (window, dim) = (self.spec.window, self.spec.dim);
        let mut windows = vec![0.0; dim * window * rows];
        for back in 0..window.min(rows) {
            for d in 0..dim {
                windows[(dim * back + d) * rows + back..(dim * back + d + 1) * rows]
                    .copy_from_slice(&encoded.output[d * rows..(d + 1) * rows - back]);
            }
        }
        let block = Block::feature_major(&windows, dim * window, rows);
        let context = self.context.forward(parameters, block);
        let points = Block::feature_major(&context.output, dim, rows);
        let predicted = self.predictor.forward(parameters, points);
        Seen {
            rows,
            encoded,
            windows,
            context,
            predicted,
        }
    }

    /// The way back from the gradients at codes and predictions, both feature-major; padding has none.
    fn unsee(
        &self,
        parameters: &[f32],
        frames: &Frames,
        seen: &Seen,
        (mut at_codes, at_predictions): (Vec<f32>, Vec<f32>),
        spread: Option<(&[Spread; 2], usize)>,
        gradient: &mut [f32],
    ) {
        let (rows, window, dim) = (seen.rows, self.spec.window, self.spec.dim);
        let mut at_context = vec![0.0; dim * rows];
        self.predictor.backward(
            parameters,
            Block::feature_major(&seen.context.output, dim, rows),
            &seen.predicted,
            &at_predictions,
            Some(&mut at_context),
            gradient,
        );
        if let Some(([codes, contexts], steps)) = spread {
            let weight = self.spec.spread;
            codes.pull(weight, (&seen.encoded.output, rows), steps, &mut at_codes);
            contexts.pull(weight, (&seen.context.output, rows), steps, &mut at_context);
        }
        let mut at_windows = vec![0.0; seen.windows.len()];
        self.context.backward(
            parameters,
            Block::feature_major(&seen.windows, dim * window, rows),
            &seen.context,
            &at_context,
            Some(&mut at_windows),
            gradient,
        );
        for back in 0..window.min(rows) {
            for d in 0..dim {
                let from = &at_windows[(dim * back + d) * rows + back..(dim * back + d + 1) * rows];
                let to = &mut at_codes[d * rows..(d + 1) * rows - back];
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
        }
        self.encoder.backward(
            parameters,
            frames.block(),
            &seen.encoded,
            &at_codes,
            None,
            gradient,
        );
    }

    /// What all sequences show at a time, compared with all predictions of it.
    fn target(&self, seen: &[Seen], time: usize) -> Target {
        let (score, count) = (self.spec.score, seen.len());
        let features = score.features(self.spec.dim);
        let width = info_nce::padded(count);
        let mut candidates = vec![0.0; features * width];
        for (j, seen) in seen.iter().enumerate() {
            for (f, &x) in score.of_code(&seen.code(time)).iter().enumerate() {
                candidates[f * width + j] = x;
            }
        }
        let mut to_candidates = vec![0.0; candidates.len()];
        let mut value = 0.0;
        let mut anchors = vec![0.0; features * count];
        let predictions = (1..=self.spec.ahead.min(time)).map(|ahead| {
            for (anchor, seen) in anchors.chunks_exact_mut(features).zip(seen) {
                for (f, a) in anchor.iter_mut().enumerate() {
                    let place = (ahead - 1) * features + f;
                    *a = seen.predicted.output[place * seen.rows + time - ahead];
                }
            }
            let mut to_anchors = vec![0.0; anchors.len()];
            value += Contrast {
                features,
                anchors: &anchors,
                candidates: &candidates,
                to_anchors: &mut to_anchors,
                to_candidates: &mut to_candidates,
            }
            .value();
            to_anchors
        });
        let predictions = predictions.collect();
        let codes = seen.iter().enumerate().map(|(j, seen)| {
            let at: Vec<f32> = (0..features)
                .map(|f| to_candidates[f * width + j])
                .collect();
            score.back(&seen.code(time), &at)
        });
        Target {
            value,
            codes: codes.collect(),
            predictions,
        }
    }

    /// The gradients at the codes and predictions of the sequence at a place of the batch.
    fn pulls(
        &self,
        targets: &[Target],
        place: usize,
        rows: usize,
        share: f32,
    ) -> (Vec<f32>, Vec<f32>) {
        let dim = self.spec.dim;
        let features = self.spec.score.features(dim);
        let mut at_codes = vec![0.0; dim * rows];
        let mut at_predictions = vec![0.0; self.predictor.outputs() * rows];
        for (time, target) in targets.iter().enumerate() {
            for d in 0..dim {
                at_codes[d * rows + time] = share * target.codes[place][d];
            }
            for (before, anchors) in target.predictions.iter().enumerate() {
                for f in 0..features {
                    at_predictions[(before * features + f) * rows + time - before - 1] =
                        share * anchors[place * features + f];
                }
            }
        }
        (at_codes, at_predictions)
    }
}

impl SequenceModel for Cpc {
    const NAME: &'static str = "CPC";
    type Spec = CpcSpec;

    fn new(spec: CpcSpec, data: &dyn Sequences) -> Result<Self, LabError> {
        if spec.window == 0 || spec.ahead == 0 || spec.dim == 0 {
            return Err(LabError::Invalid(format!(
                "CPC with codes of {} numbers, a window of {} steps and predictions {} steps ahead: all must be at least 1",
                spec.dim, spec.window, spec.ahead
            )));
        }
        if !(spec.spread.is_finite() && spec.spread >= 0.0) {
            return Err(LabError::Invalid(format!(
                "the weight of CPC's penalty on spread must not be negative, but is {}",
                spec.spread
            )));
        }
        let compared = spec.learning.batch.min(data.count());
        if compared < 2 || data.steps() < 2 {
            return Err(LabError::Invalid(format!(
                "CPC compares the sequences of a batch and predicts their next steps: {compared} of {} steps are too few, \
                 use at least 2",
                data.steps()
            )));
        }
        let dim = spec.dim;
        let encoder = Perceptron::new(data.width(), &spec.encoder, dim, 0)?;
        let context = Perceptron::new(dim * spec.window, &spec.context, dim, encoder.place().end)?;
        let hidden: &[usize] = match spec.score {
            Score::Bilinear => &[],
            Score::Quadratic => &spec.context,
        };
        let outputs = spec.ahead * spec.score.features(dim);
        let predictor = Perceptron::new(dim, hidden, outputs, context.place().end)?;
        Ok(Cpc {
            spec,
            encoder,
            context,
            predictor,
        })
    }

    fn spec(&self) -> &CpcSpec {
        &self.spec
    }

    fn learning(&self) -> &LearningSpec {
        &self.spec.learning
    }

    fn arrays(&self) -> Vec<Array> {
        let mut arrays = self.encoder.arrays("encoder", true);
        arrays.extend(self.context.arrays("context", false));
        arrays.extend(self.predictor.arrays("predictor", false));
        arrays
    }

    fn initialise(&self, _: &dyn Sequences, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.predictor.place().end];
        for network in [&self.encoder, &self.context, &self.predictor] {
            network.initialize(rng, &mut parameters);
        }
        parameters
    }

    /// The objective is the mean over sequences, steps and horizons of the log-probability of the right one, less penalties.
    fn gradient(
        &self,
        parameters: &[f32],
        data: &dyn Sequences,
        batch: &Batch,
        parts: &mut Parts,
        gradient: &mut [f32],
    ) -> f64 {
        let seen: Vec<Seen> = batch
            .sequences
            .par_iter()
            .map(|&sequence| self.see(parameters, &Frames::read(data, sequence)))
            .collect();
        let targets: Vec<Target> = (0..data.steps())
            .into_par_iter()
            .map(|time| self.target(&seen, time))
            .collect();
        let predictions: usize = targets.iter().map(|t| t.predictions.len()).sum();
        let share = 1.0 / (predictions * seen.len()).max(1) as f64;
        let spread = (self.spec.spread > 0.0).then(|| {
            [
                Spread::of(
                    seen.iter().map(|s| (&s.encoded.output[..], s.rows)),
                    data.steps(),
                ),
                Spread::of(
                    seen.iter().map(|s| (&s.context.output[..], s.rows)),
                    data.steps(),
                ),
            ]
        });
        batch.sum(parts, gradient, |place, gradient| {
            let frames = Frames::read(data, batch.sequences[place]);
            let pulls = self.pulls(&targets, place, frames.rows, share as f32);
            let spread = spread.as_ref().map(|s| (s, data.steps()));
            self.unsee(parameters, &frames, &seen[place], pulls, spread, gradient);
            0.0
        });
        let value: f64 = targets.iter().map(|t| t.value).sum();
        let penalty: f64 = spread.iter().flatten().map(|s| s.penalty).sum();
        share * value - self.spec.spread * penalty
    }

    fn points(&self, parameters: &[f32], data: &dyn Sequences, sequence: usize) -> Vec<f64> {
        let seen = self.see(parameters, &Frames::read(data, sequence));
        points((&seen.context.output, seen.rows), data.steps())
    }

    fn dim(&self) -> usize {
        self.spec.dim
    }
}

impl Learner<Cpc> {
    /// The code of every observation, sequence by sequence and step by step.
    pub fn codes(&self, data: &dyn Sequences) -> Result<Vec<f64>, LabError> {
        self.for_each(data, |sequence| {
            let frames = Frames::read(data, sequence);
            let encoded = self.model.encoder.forward(&self.parameters, frames.block());
            points((&encoded.output, frames.rows), data.steps())
        })
    }
}

/// The first points of a feature-major block with so many rows, one after the other.
fn points((block, rows): (&[f32], usize), steps: usize) -> Vec<f64> {
    let point = |t: usize| block.chunks_exact(rows).map(move |of| f64::from(of[t]));
    (0..steps).flat_map(point).collect()
}
