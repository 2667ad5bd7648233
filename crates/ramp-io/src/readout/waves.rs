//! What a line leaves over, read off smooth curves of all signals together: random waves (random Fourier features of a Gaussian kernel), weighted by a
//! ridge regression.

use ramp::infer::Ridge;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Directions of waves; each has a cosine and a sine.
const DIRECTIONS: usize = 64;
/// Mean squared distances of rows, in parts, over which the kernel falls off: the smoothness is chosen among them by cross-validation.
const STRETCHES: [f64; 2] = [0.3, 1.0];
/// Signals beyond so many standard deviations count as if they were there: no curve is known out there.
const REACH: f64 = 3.0;
/// Fewer rows than this hold no curves.
const FEWEST: usize = 200;
/// What is left of the squared error must be below this part for curves to be used.
const WORTH: f64 = 0.985;
/// Directions are the same in every run.
const SEED: u64 = 16;

/// The directions of all waves, for every signal.
#[derive(Clone, Debug)]
pub(super) struct Directions {
    all: Vec<f64>,
    signals: usize,
}

/// Curves for one column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Waves {
    pub stretch: f64,
    /// Of every cosine and sine, and a constant last.
    pub weights: Vec<f64>,
}

impl Waves {
    /// How many numbers its weights are.
    pub const WEIGHTS: usize = 2 * DIRECTIONS + 1;
}

impl Directions {
    pub fn new(signals: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let all = (0..DIRECTIONS * signals).map(|_| StandardNormal.sample(&mut rng));
        Directions {
            all: all.collect(),
            signals,
        }
    }

    /// The waves of a row, of which some signals are seen.
    fn features(&self, chosen: &[usize], stretch: f64, row: &[f64]) -> impl Iterator<Item = f64> {
        let scale = 1.0 / (2.0 * stretch * chosen.len().max(1) as f64).sqrt();
        let seen: Vec<(usize, f64)> = chosen
            .iter()
            .map(|&s| (s, scale * row[s].clamp(-REACH, REACH)))
            .collect();
        let signals = self.signals;
        (0..DIRECTIONS).flat_map(move |k| {
            let direction = &self.all[k * signals..][..signals];
            let phase: f64 = seen.iter().map(|&(s, x)| direction[s] * x).sum();
            let (sine, cosine) = phase.sin_cos();
            [cosine, sine].map(|x| std::f64::consts::SQRT_2 * x)
        })
    }

    /// Learns what is left of targets; with what is said of each row without it, and the mean squared error. `None` where curves do not gain enough.
    pub fn learn(
        &self,
        chosen: &[usize],
        rows: &[&[f64]],
        left: &[f64],
    ) -> Option<(Waves, Vec<f64>, f64)> {
        if left.len() < FEWEST || chosen.is_empty() {
            return None;
        }
        let before = left.iter().map(|x| x * x).sum::<f64>() / left.len() as f64;
        let fit = |&stretch: &f64| {
            let features = |row: &&[f64]| self.features(chosen, stretch, row).collect::<Vec<_>>();
            let points: Vec<f64> = rows.iter().flat_map(features).collect();
            Some((stretch, Ridge::fit(&points, 2 * DIRECTIONS, left)?))
        };
        let fits = STRETCHES.iter().filter_map(fit);
        let (stretch, best) = fits.min_by(|a, b| a.1.error.total_cmp(&b.1.error))?;
        if best.error > WORTH * before {
            return None;
        }
        let mut weights = best.weights;
        weights.push(best.constant);
        Some((Waves { stretch, weights }, best.crossed, best.error))
    }

    /// What the curves say of a row.
    pub fn at(&self, waves: &Waves, chosen: &[usize], row: &[f64]) -> f64 {
        let features = self.features(chosen, waves.stretch, row);
        let constant = waves.weights[2 * DIRECTIONS];
        features
            .zip(&waves.weights)
            .fold(constant, |sum, (x, w)| sum + w * x)
    }
}
