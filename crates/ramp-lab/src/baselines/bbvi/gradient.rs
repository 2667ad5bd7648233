//! The Monte Carlo free energy of a block of samples and its gradient.
//!
//! Contract: `free_energy = Σ_rows E_q[log p(x, z)] + H(q)`, the expectation over `samples` draws per row; the gradient with
//! respect to weights is exact for these draws, that with respect to posteriors is the estimator's. Draws lie side by
//! side, padded with draws of weight zero to a multiple of every lane width. As the weights stand still within a step, the
//! gradient of a unit follows from two sums over draws, `Σ g·on` and `Σ g·on·z`, which stay in registers.

use pulp::{Arch, Simd, WithSimd};
use rand_distr::{Distribution, StandardNormal};

use super::super::draws;
use super::generative::Network;
use super::{BbviSpec, Estimator, GenerativeTree};

/// Rows that share a stream of random numbers: fixed, so that threads do not change the result.
pub(super) const BLOCK: usize = 64;
/// The widest lanes there are; every narrower width divides it.
const WIDEST: usize = 16;
const LOG_2PI: f64 = 1.8378770664093453;

/// What a block adds to the whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub free_energy: f64,
    /// The gradient with respect to all weights, summed over rows; empty when nothing is learned.
    pub weights: Vec<f32>,
}

/// The arrays of one thread.
pub(super) struct Space {
    arch: Arch,
    /// Draws per node, padding included.
    width: usize,
    /// One over the number of draws; zero for padding.
    share: Vec<f32>,
    draws: Vec<f32>,
    /// Per node, its values, then the gradient with respect to them, then the log-probability of the factors it is in.
    values: Vec<f32>,
    slopes: Vec<f32>,
    blankets: Vec<f32>,
    /// The gradient with respect to the means of one conditional.
    pull: Vec<f32>,
    /// Per conditional and unit, `Σ g·on` and `Σ g·on·z`; then `Σ g`. Each lies in lanes, to be added up once per block.
    sums: Vec<f32>,
    pub local_gradient: Vec<f32>,
}

impl Space {
    pub fn new(tree: &GenerativeTree, samples: usize) -> Self {
        let width = samples.next_multiple_of(WIDEST);
        let nodes = tree.latents() + tree.observed();
        let mut share = vec![0.0; width];
        share[..samples].fill((samples as f32).recip());
        Space {
            arch: Arch::new(),
            width,
            share,
            draws: vec![0.0; tree.latents() * width],
            values: vec![0.0; nodes * width],
            slopes: vec![0.0; nodes * width],
            blankets: vec![0.0; nodes * width],
            pull: vec![0.0; width],
            sums: vec![0.0; (nodes - 1) * (2 * tree.hidden() + 1) * WIDEST],
            local_gradient: vec![],
        }
    }

    /// The free energy of a block and its gradient; that of the posteriors is left in `local_gradient`.
    pub fn block(
        &mut self,
        tree: &GenerativeTree,
        spec: &BbviSpec,
        (iteration, number): (usize, usize),
        (local, observations): (&[f32], &[f32]),
        block: &mut Block,
    ) {
        let mut random = draws(spec.seed, iteration, number as u64);
        self.sums.fill(0.0);
        self.local_gradient.clear();
        let rows = local
            .chunks_exact(2 * tree.latents())
            .zip(observations.chunks_exact(tree.observed()));
        block.free_energy = 0.0;
        for (posterior, row) in rows {
            for node in self.draws.chunks_exact_mut(self.width) {
                node[..spec.samples].fill_with(|| StandardNormal.sample(&mut random));
            }
            block.free_energy += self.row(tree, spec, posterior, row);
        }
        if spec.learn {
            self.weight_gradient(tree, &mut block.weights);
        }
    }

    fn row(
        &mut self,
        tree: &GenerativeTree,
        spec: &BbviSpec,
        posterior: &[f32],
        observations: &[f32],
    ) -> f64 {
        let (latents, width) = (tree.latents(), self.width);
        let (means, log_sds) = posterior.split_at(latents);
        let (hidden, seen) = self.values.split_at_mut(latents * width);
        let nodes = hidden
            .chunks_exact_mut(width)
            .zip(self.draws.chunks_exact(width));
        for ((values, draws), (mean, log_sd)) in nodes.zip(means.iter().zip(log_sds)) {
            let sd = log_sd.exp();
            for (value, draw) in values.iter_mut().zip(draws) {
                *value = mean + sd * draw;
            }
        }
        for (values, x) in seen.chunks_exact_mut(width).zip(observations) {
            values.fill(*x);
        }

        // The root, a standard normal.
        self.slopes.fill(0.0);
        self.blankets.fill(0.0);
        let mut expected = 0.0;
        for s in 0..width {
            let (z, share) = (self.values[s], self.share[s]);
            self.slopes[s] = -z * share;
            self.blankets[s] = -0.5 * z * z;
            expected += f64::from(self.blankets[s] * share);
        }
        for (node, parent) in tree.edges() {
            let (earlier, own) = self.slopes.split_at_mut(node * width);
            let (earlier_blankets, own_blanket) = self.blankets.split_at_mut(node * width);
            let above = parent * width..(parent + 1) * width;
            let size = (2 * tree.hidden() + 1) * WIDEST;
            expected += f64::from(
                self.arch.dispatch(Conditional {
                    network: tree.network(node),
                    z: &self.values[above.clone()],
                    v: &self.values[node * width..(node + 1) * width],
                    share: &self.share,
                    pull: &mut self.pull,
                    slope: &mut own[..width],
                    slope_above: &mut earlier[above.clone()],
                    blanket: &mut own_blanket[..width],
                    blanket_above: &mut earlier_blankets[above],
                    sums: spec
                        .learn
                        .then_some(&mut self.sums[(node - 1) * size..node * size]),
                }),
            );
        }
        match spec.estimator {
            Estimator::Pathwise => self.pathwise(log_sds),
            Estimator::Reinforce => self.reinforce(log_sds, spec.samples),
        }
        let entropy: f64 = log_sds
            .iter()
            .map(|&r| f64::from(r) + 0.5 * (1.0 + LOG_2PI))
            .sum();
        let nodes = (latents + observations.len()) as f64;
        expected - 0.5 * LOG_2PI * nodes + entropy
    }

    /// The gradient through the draws, and that of the entropy.
    fn pathwise(&mut self, log_sds: &[f32]) {
        let start = self.local_gradient.len();
        self.local_gradient.resize(start + 2 * log_sds.len(), 0.0);
        let nodes = self
            .slopes
            .chunks_exact(self.width)
            .zip(self.draws.chunks_exact(self.width));
        for (k, ((slopes, draws), log_sd)) in nodes.zip(log_sds).enumerate() {
            self.local_gradient[start + k] = slopes.iter().sum();
            let scale: f32 = slopes.iter().zip(draws).map(|(s, d)| s * d).sum();
            self.local_gradient[start + log_sds.len() + k] = log_sd.exp() * scale + 1.0;
        }
    }

    /// The gradient from values of the factors that a latent is in, each draw measured against the others.
    fn reinforce(&mut self, log_sds: &[f32], samples: usize) {
        let start = self.local_gradient.len();
        self.local_gradient.resize(start + 2 * log_sds.len(), 0.0);
        // A draw's value less the mean of the others is S/(S−1) times its value less the mean of all.
        let others = samples as f32 / (samples as f32 - 1.0);
        let nodes = self
            .blankets
            .chunks_exact(self.width)
            .zip(self.draws.chunks_exact(self.width));
        for (k, ((blanket, draws), log_sd)) in nodes.zip(log_sds).enumerate() {
            let values = blanket.iter().zip(&self.share);
            let centre: f32 = values.clone().map(|(value, share)| value * share).sum();
            let (mut mean, mut scale) = (0.0, 0.0);
            for ((value, share), draw) in values.zip(draws) {
                let gain = (value - centre) * share * others;
                mean += gain * draw;
                scale += gain * (draw * draw - 1.0);
            }
            self.local_gradient[start + k] = mean / log_sd.exp();
            self.local_gradient[start + log_sds.len() + k] = scale + 1.0;
        }
    }

    fn weight_gradient(&self, tree: &GenerativeTree, gradient: &mut Vec<f32>) {
        let hidden = tree.hidden();
        gradient.resize(tree.weights().len(), 0.0);
        let per_node = gradient
            .chunks_exact_mut(3 * hidden + 1)
            .zip(self.sums.chunks_exact((2 * hidden + 1) * WIDEST));
        for ((node, _), (gradient, sums)) in tree.edges().zip(per_node) {
            let network = tree.network(node);
            let total = |entry: usize| sums[entry * WIDEST..][..WIDEST].iter().sum::<f32>();
            for j in 0..hidden {
                let (on, on_z) = (total(2 * j), total(2 * j + 1));
                gradient[j] = network.out[j] * on_z;
                gradient[hidden + j] = network.out[j] * on;
                gradient[2 * hidden + j] = network.slope[j] * on_z + network.offset[j] * on;
            }
            gradient[3 * hidden] = total(2 * hidden);
        }
    }
}

/// Adds `log p(child | parent)` and its gradients for all draws of a row; returns its expectation.
struct Conditional<'a> {
    network: Network<'a>,
    z: &'a [f32],
    v: &'a [f32],
    share: &'a [f32],
    pull: &'a mut [f32],
    slope: &'a mut [f32],
    slope_above: &'a mut [f32],
    blanket: &'a mut [f32],
    blanket_above: &'a mut [f32],
    /// Where to add the sums of the network's gradient, when it learns.
    sums: Option<&'a mut [f32]>,
}

impl WithSimd for Conditional<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let Network {
            slope: slopes,
            offset: offsets,
            out: outs,
            bias,
        } = self.network;
        // Widths are multiples of the lanes: the tails are empty.
        let (z, v) = (S::as_simd_f32s(self.z).0, S::as_simd_f32s(self.v).0);
        let share = S::as_simd_f32s(self.share).0;
        let pull = S::as_mut_simd_f32s(self.pull).0;
        let slope = S::as_mut_simd_f32s(self.slope).0;
        let slope_above = S::as_mut_simd_f32s(self.slope_above).0;
        let blanket = S::as_mut_simd_f32s(self.blanket).0;
        let blanket_above = S::as_mut_simd_f32s(self.blanket_above).0;

        let (zero, half) = (simd.splat_f32s(0.0), simd.splat_f32s(-0.5));
        let (mut expected, mut all_pull) = (zero, zero);
        for i in 0..z.len() {
            let mut mean = simd.splat_f32s(bias);
            for ((&slope, &offset), &out) in slopes.iter().zip(offsets).zip(outs) {
                let inner =
                    simd.mul_add_e_f32s(simd.splat_f32s(slope), z[i], simd.splat_f32s(offset));
                mean = simd.mul_add_e_f32s(simd.splat_f32s(out), simd.max_f32s(inner, zero), mean);
            }
            let off = simd.sub_f32s(v[i], mean);
            let value = simd.mul_f32s(simd.mul_f32s(half, off), off);
            let g = simd.mul_f32s(off, share[i]);
            pull[i] = g;
            all_pull = simd.add_f32s(all_pull, g);
            expected = simd.mul_add_e_f32s(value, share[i], expected);
            blanket[i] = simd.add_f32s(blanket[i], value);
            blanket_above[i] = simd.add_f32s(blanket_above[i], value);
            slope[i] = simd.sub_f32s(slope[i], g);
        }

        let mut sums = self.sums;
        for (j, ((&slope, &offset), &out)) in slopes.iter().zip(offsets).zip(outs).enumerate() {
            let through = simd.splat_f32s(out * slope);
            let (slope, offset) = (simd.splat_f32s(slope), simd.splat_f32s(offset));
            let (mut sum_on, mut sum_on_z) = (zero, zero);
            for i in 0..z.len() {
                let inner = simd.mul_add_e_f32s(slope, z[i], offset);
                let on = simd.select_f32s(simd.less_than_f32s(zero, inner), pull[i], zero);
                slope_above[i] = simd.mul_add_e_f32s(on, through, slope_above[i]);
                sum_on = simd.add_f32s(sum_on, on);
                sum_on_z = simd.mul_add_e_f32s(on, z[i], sum_on_z);
            }
            if let Some(sums) = &mut sums {
                add(simd, sums, 2 * j, sum_on);
                add(simd, sums, 2 * j + 1, sum_on_z);
            }
        }
        if let Some(sums) = &mut sums {
            add(simd, sums, 2 * slopes.len(), all_pull);
        }
        simd.reduce_sum_f32s(expected)
    }
}

/// Adds lanes to those of an entry; narrow lanes use the first of its places.
#[inline(always)]
fn add<S: Simd>(simd: S, sums: &mut [f32], entry: usize, lanes: S::f32s) {
    let places = S::as_mut_simd_f32s(&mut sums[entry * WIDEST..][..WIDEST]).0;
    places[0] = simd.add_f32s(places[0], lanes);
}
