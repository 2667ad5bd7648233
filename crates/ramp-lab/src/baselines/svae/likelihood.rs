//! How observations come from a decoder's outputs, and the slope of their log-probability.

use super::super::perceptron::Frames;
use ramp::kernel::real::{Element, Kernel, Real};
use serde::{Deserialize, Serialize};

/// The distribution of an observation's numbers given the decoder's outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Likelihood {
    /// Pixels from zero to one; outputs are their logits.
    #[default]
    Bernoulli,
    /// Any numbers; outputs are their means, and one noise level is learned for all.
    Gaussian,
}

/// The log-probability of a sequence and its gradient.
pub(super) struct Evidence {
    pub value: f64,
    /// At the outputs, feature-major; zero for padding.
    pub at_output: Vec<f32>,
    /// At the logarithm of the noise's standard deviation.
    pub at_log_sd: f64,
}

impl Likelihood {
    /// The output without any latent that fits a mean best.
    pub(super) fn output_of_mean(self, mean: f64) -> f64 {
        match self {
            Likelihood::Bernoulli => {
                // A pixel that was always dark may be bright in another video.
                let mean = mean.clamp(1e-3, 1.0 - 1e-3);
                (mean / (1.0 - mean)).ln()
            }
            Likelihood::Gaussian => mean,
        }
    }

    /// Looks at the first `steps` rows of frames and outputs.
    pub(super) fn evidence(
        self,
        frames: &Frames,
        output: &[f32],
        steps: usize,
        log_sd: f64,
    ) -> Evidence {
        let (rows, width) = (frames.rows, output.len() / frames.rows);
        let mut at_output = vec![0.0; output.len()];
        let observed = frames.values.chunks_exact(width).take(steps);
        match self {
            Likelihood::Bernoulli => {
                let mask: Vec<f32> = (0..rows).map(|r| f32::from(u8::from(r < steps))).collect();
                let mut value = -f32::dispatch(Partition {
                    logits: output,
                    mask: &mask,
                    slope: &mut at_output,
                });
                // ln p = x·logit − ln(1 + exp(logit)); most pixels are zero, and few x remain.
                for (r, row) in observed.enumerate() {
                    for (i, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                        value += f64::from(x) * f64::from(output[i * rows + r]);
                        at_output[i * rows + r] += x;
                    }
                }
                Evidence {
                    value,
                    at_output,
                    at_log_sd: 0.0,
                }
            }
            Likelihood::Gaussian => {
                let precision = (-2.0 * log_sd).exp();
                let mut squares = 0.0;
                for (r, row) in observed.enumerate() {
                    for (i, &x) in row.iter().enumerate() {
                        let off = f64::from(x) - f64::from(output[i * rows + r]);
                        squares += off * off;
                        at_output[i * rows + r] = (precision * off) as f32;
                    }
                }
                let numbers = (steps * width) as f64;
                let log_2pi = (2.0 * std::f64::consts::PI).ln();
                Evidence {
                    value: -0.5 * precision * squares - numbers * (log_sd + 0.5 * log_2pi),
                    at_output,
                    at_log_sd: precision * squares - numbers,
                }
            }
        }
    }
}

/// `Σ mask · ln(1 + exp(logit))`; the slope of its negative is left for every logit. Masks repeat after every feature.
struct Partition<'a> {
    logits: &'a [f32],
    mask: &'a [f32],
    slope: &'a mut [f32],
}

impl Kernel<f32> for Partition<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) -> f64 {
        let rows = self.mask.len();
        let features = self.logits.chunks_exact(rows);
        let mut total = 0.0;
        for (logits, slope) in features.zip(self.slope.chunks_exact_mut(rows)) {
            let mut sum = R::zero();
            for at in (0..rows).step_by(R::LANES) {
                let (x, mask) = (R::load(&logits[at..]), R::load(&self.mask[at..]));
                let e = (-x.abs()).max(R::splat(-80.0)).exp();
                let gate = R::one() / (R::one() + e);
                let sigmoid = x.select_lt(R::zero(), e * gate, gate);
                sum = mask.mul_add(x.max(R::zero()) + (R::one() + e).ln(), sum);
                (-(mask * sigmoid)).store(&mut slope[at..]);
            }
            total += f64::from(sum.sum());
        }
        total
    }
}
