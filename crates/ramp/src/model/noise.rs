//! Noise on images while learning: drawn anew in every step, and again the same wherever that step asks for it.
//!
//! Forward and backward passes rebuild their inputs, on any thread and on any rank, so a number of the noise is a function of the seed, the step, the
//! observation, the sample and the pixel alone.

use super::Bound;

/// Samples that tell how much pixels vary.
const MEASURED: usize = 1000;

/// The noise of a training, at one of its steps.
pub(crate) struct Noise {
    seed: u64,
    step: u64,
    /// For every observation of the tree the standard deviation; zero for those that are no images.
    spread: Vec<f32>,
}

impl Noise {
    /// Noise of so many standard deviations of an image's pixels (the root of their mean variance over samples); `None` where there is no image.
    pub fn new(bound: &Bound<'_>, samples: &[u32], share: f64, seed: u64) -> Option<Self> {
        let chosen = Noise::measured(samples);
        let chosen: Vec<usize> = chosen.into_iter().map(|n| n as usize).collect();
        let spread = (0..bound.observations())
            .map(|index| {
                let step = bound.observation(index);
                if !step.observation().is_bytes() {
                    return 0.0;
                }
                let mut rows = 0.0_f64;
                let mut sums = vec![[0.0_f64; 2]; step.features()];
                for &n in chosen.iter().filter(|&&n| step.is_present(n)) {
                    rows += 1.0;
                    for (sum, x) in sums.iter_mut().zip(step.numbers(n)) {
                        let x = f64::from(x);
                        *sum = [sum[0] + x, sum[1] + x * x];
                    }
                }
                let rows = rows.max(1.0);
                let variance = |[sum, squares]: [f64; 2]| squares / rows - (sum / rows).powi(2);
                let mean =
                    sums.iter().map(|&s| variance(s)).sum::<f64>() / sums.len().max(1) as f64;
                (share * mean.max(0.0).sqrt()) as f32
            })
            .collect::<Vec<_>>();
        spread.iter().any(|&s| s > 0.0).then_some(Noise {
            seed: mix(seed ^ 0x006e_6f69_7365),
            step: 0,
            spread,
        })
    }

    /// Those of some samples that tell how much pixels vary; of these, all do.
    pub fn measured(samples: &[u32]) -> Vec<u32> {
        let stride = samples.len().div_ceil(MEASURED).max(1);
        samples.iter().copied().step_by(stride).collect()
    }

    /// The noise of a step.
    pub fn of_step(&mut self, step: usize) -> &Self {
        self.step = step as u64;
        self
    }

    /// Adds it to one sample's numbers, which lie `stride` apart.
    pub fn add(&self, index: usize, sample: u32, features: usize, to: &mut [f32], stride: usize) {
        let spread = self.spread[index];
        if spread == 0.0 {
            return;
        }
        let key = mix(self.seed ^ mix(self.step ^ mix((index as u64) << 32 | u64::from(sample))));
        for i in 0..features {
            let x = &mut to[i * stride];
            *x += spread * normal(mix(key.wrapping_add(i as u64)));
        }
    }
}

/// The finaliser of SplitMix64: a bijection after which nothing is left of any pattern.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// About a standard normal number: the sum of the four uniform ones in 64 bits, which ends at 3.5 standard deviations.
fn normal(bits: u64) -> f32 {
    let sum = (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum::<u64>();
    // Four uniform numbers of variance (2³² − 1)/12 each, of mean (2¹⁶ − 1)/2.
    (sum as f32 - 131_070.0) * (1.0 / 37_837.227)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::graph::FactorTree;
    use crate::model::Model;

    /// Images of two pixels, one of which never changes, and a number.
    fn data() -> Dataset {
        let pixels = (0..400).flat_map(|n| [((n * 37) % 256) as u8, 9]);
        Dataset::new()
            .observe_bytes("x1", 2, pixels.collect(), None)
            .unwrap()
            .observe("x2", 1, (0..400).map(|n| n as f32).collect())
            .unwrap()
    }

    #[test]
    fn noise_has_the_spread_of_the_pixels_and_spares_numbers() {
        let data = data();
        let model = Model::builder(FactorTree::star(2).unwrap())
            .build(&data)
            .unwrap();
        let bound = model.bind(&data).unwrap();
        let samples: Vec<u32> = (0..400).collect();
        let mut noise = Noise::new(&bound, &samples, 0.5, 3).unwrap();
        // Uniform bytes have a standard deviation of 256/√12; the pixel that never changes halves the mean variance.
        let expected = 0.5 * 256.0 / 12.0_f64.sqrt() / 255.0 / 2.0_f64.sqrt();
        let (mut sum, mut squares, mut draws) = (0.0, 0.0, 0.0);
        for step in 0..200 {
            let noise = noise.of_step(step);
            for sample in 0..100 {
                let mut pixels = [0.0; 2];
                noise.add(0, sample, 2, &mut pixels, 1);
                for x in pixels.map(f64::from) {
                    (sum, squares, draws) = (sum + x, squares + x * x, draws + 1.0);
                }
                let mut number = [1.0];
                noise.add(1, sample, 1, &mut number, 1);
                assert_eq!(number, [1.0]);
            }
        }
        let spread = (squares / draws - (sum / draws).powi(2)).sqrt();
        assert!(
            (spread / expected - 1.0).abs() < 0.02,
            "{spread} {expected}"
        );
        assert!((sum / draws).abs() < 0.02 * expected);
    }

    #[test]
    fn a_step_draws_the_same_again_and_another_one_not() {
        let data = data();
        let model = Model::builder(FactorTree::star(2).unwrap())
            .build(&data)
            .unwrap();
        let bound = model.bind(&data).unwrap();
        let mut noise = Noise::new(&bound, &[0, 1, 2, 3], 1.0, 3).unwrap();
        let mut of = |step, sample| {
            let mut pixels = [0.0; 2];
            noise.of_step(step).add(0, sample, 2, &mut pixels, 1);
            pixels
        };
        let first = of(7, 5);
        assert_eq!(first, of(7, 5));
        assert_ne!(first[0], first[1]);
        assert_ne!(first, of(8, 5));
        assert_ne!(first, of(7, 6));
    }
}
