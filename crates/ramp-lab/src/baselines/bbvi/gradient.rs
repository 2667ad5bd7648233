//! The Monte Carlo free energy of a block of samples and its gradient.
//!
//! Contract: `free_energy = Σ_rows E_q[log p(x, z)] + H(q)`, the expectation over `samples` draws per row; the gradient with
//! respect to weights is exact for these draws, that with respect to posteriors is the estimator's. Draws lie side by
//! side in lanes of 16, the last lanes padded with draws of weight zero, so that every inner loop is a loop over a fixed
//! array and compiles to whole vectors of whatever width the machine has. As the weights stand still within a step, the gradient
//! of a unit follows from two sums over draws, `Σ g·on` and `Σ g·on·z`.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::generative::Network;
use super::{BbviSpec, Estimator, GenerativeTree};

/// Rows that share a stream of random numbers: fixed, so that threads do not change the result.
pub(super) const BLOCK: usize = 64;
const LANES: usize = 16;
type Lanes = [f32; LANES];
const ZERO: Lanes = [0.0; LANES];
const LOG_2PI: f64 = 1.8378770664093453;

/// What a block adds to the whole.
pub(super) struct Block {
    pub free_energy: f64,
    /// The gradient with respect to all weights, summed over rows; empty when nothing is learned.
    pub weights: Vec<f32>,
}

/// The arrays of one thread.
pub(super) struct Space {
    /// Lanes per node.
    chunks: usize,
    /// One over the number of draws; zero where a lane is padding.
    share: Vec<Lanes>,
    draws: Vec<Lanes>,
    /// Per node, its values, then the gradient with respect to them, then the log-probability of the factors it is in.
    values: Vec<Lanes>,
    slopes: Vec<Lanes>,
    blankets: Vec<Lanes>,
    /// Per conditional and unit, `Σ g·on` and `Σ g·on·z`; then `Σ g`.
    sums: Vec<Lanes>,
    pub local_gradient: Vec<f32>,
}

impl Space {
    pub fn new(tree: &GenerativeTree, samples: usize) -> Self {
        let chunks = samples.div_ceil(LANES);
        let nodes = tree.latents() + tree.observed();
        let mut share = vec![ZERO; chunks];
        for s in 0..samples {
            share[s / LANES][s % LANES] = (samples as f32).recip();
        }
        Space {
            chunks,
            share,
            draws: vec![ZERO; tree.latents() * chunks],
            values: vec![ZERO; nodes * chunks],
            slopes: vec![ZERO; nodes * chunks],
            blankets: vec![ZERO; nodes * chunks],
            sums: vec![ZERO; (nodes - 1) * (2 * tree.hidden() + 1)],
            local_gradient: vec![],
        }
    }

    /// The free energy of a block and its gradient; that of the posteriors is left in `local_gradient`.
    pub fn block(
        &mut self,
        tree: &GenerativeTree,
        spec: &BbviSpec,
        (iteration, number): (usize, usize),
        local: &[f32],
        observations: &[f32],
    ) -> Block {
        let mut random = ChaCha8Rng::seed_from_u64(
            spec.seed
                .wrapping_add((iteration as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        );
        random.set_stream(number as u64);
        self.sums.fill(ZERO);
        self.local_gradient.clear();
        let width = 2 * tree.latents();
        let rows = local
            .chunks_exact(width)
            .zip(observations.chunks_exact(tree.observed()));
        let mut free_energy = 0.0;
        for (posterior, row) in rows {
            for draw in self.draws.iter_mut().flatten() {
                *draw = StandardNormal.sample(&mut random);
            }
            free_energy += pulp::Arch::new().dispatch(
                #[inline(always)]
                || self.row(tree, spec, posterior, row),
            );
        }
        Block {
            free_energy,
            weights: if spec.learn {
                self.weight_gradient(tree)
            } else {
                vec![]
            },
        }
    }

    #[inline(always)]
    fn row(
        &mut self,
        tree: &GenerativeTree,
        spec: &BbviSpec,
        posterior: &[f32],
        observations: &[f32],
    ) -> f64 {
        let (latents, chunks) = (tree.latents(), self.chunks);
        let (means, log_sds) = posterior.split_at(latents);
        for k in 0..latents {
            let (mean, sd) = (means[k], log_sds[k].exp());
            for c in k * chunks..(k + 1) * chunks {
                for l in 0..LANES {
                    self.values[c][l] = mean + sd * self.draws[c][l];
                }
            }
        }
        for (i, &x) in observations.iter().enumerate() {
            let node = latents + i;
            self.values[node * chunks..(node + 1) * chunks].fill([x; LANES]);
        }

        // The root, a standard normal.
        self.slopes.fill(ZERO);
        self.blankets.fill(ZERO);
        let mut expected = ZERO;
        for c in 0..chunks {
            for l in 0..LANES {
                let z = self.values[c][l];
                self.slopes[c][l] = -z * self.share[c][l];
                self.blankets[c][l] = -0.5 * z * z;
                expected[l] += self.blankets[c][l] * self.share[c][l];
            }
        }
        for (node, parent) in tree.edges() {
            let part = if spec.learn {
                self.conditional::<true>(tree.network(node), node, parent)
            } else {
                self.conditional::<false>(tree.network(node), node, parent)
            };
            for l in 0..LANES {
                expected[l] += part[l];
            }
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
        expected.iter().map(|&e| f64::from(e)).sum::<f64>() - 0.5 * LOG_2PI * nodes + entropy
    }

    /// Adds `log p(child | parent)` and its gradients; returns its expectation, lane by lane.
    #[inline(always)]
    fn conditional<const LEARN: bool>(
        &mut self,
        network: Network<'_>,
        node: usize,
        parent: usize,
    ) -> Lanes {
        let (chunks, hidden) = (self.chunks, network.slope.len());
        let size = 2 * hidden + 1;
        let sums = &mut self.sums[(node - 1) * size..node * size];
        let mut expected = ZERO;
        for c in 0..chunks {
            let (child, above) = (node * chunks + c, parent * chunks + c);
            let (z, v, share) = (self.values[above], self.values[child], self.share[c]);
            let mut mean = [network.bias; LANES];
            for j in 0..hidden {
                let (slope, offset, out) = (network.slope[j], network.offset[j], network.out[j]);
                for l in 0..LANES {
                    mean[l] += out * (slope * z[l] + offset).max(0.0);
                }
            }
            let mut g = ZERO;
            for l in 0..LANES {
                let off = v[l] - mean[l];
                let value = -0.5 * off * off;
                g[l] = off * share[l];
                expected[l] += value * share[l];
                self.blankets[child][l] += value;
                self.blankets[above][l] += value;
                self.slopes[child][l] -= g[l];
            }
            let mut slope_above = self.slopes[above];
            for j in 0..hidden {
                let (slope, offset, out) = (network.slope[j], network.offset[j], network.out[j]);
                let through = out * slope;
                let mut on = ZERO;
                for l in 0..LANES {
                    on[l] = if slope * z[l] + offset > 0.0 {
                        g[l]
                    } else {
                        0.0
                    };
                    slope_above[l] += on[l] * through;
                }
                if LEARN {
                    for l in 0..LANES {
                        sums[2 * j][l] += on[l];
                        sums[2 * j + 1][l] += on[l] * z[l];
                    }
                }
            }
            self.slopes[above] = slope_above;
            if LEARN {
                for l in 0..LANES {
                    sums[2 * hidden][l] += g[l];
                }
            }
        }
        expected
    }

    /// The gradient through the draws, and that of the entropy.
    #[inline(always)]
    fn pathwise(&mut self, log_sds: &[f32]) {
        let start = self.local_gradient.len();
        self.local_gradient.resize(start + 2 * log_sds.len(), 0.0);
        for (k, log_sd) in log_sds.iter().enumerate() {
            let (mut mean, mut scale) = (ZERO, ZERO);
            for c in k * self.chunks..(k + 1) * self.chunks {
                for l in 0..LANES {
                    mean[l] += self.slopes[c][l];
                    scale[l] += self.slopes[c][l] * self.draws[c][l];
                }
            }
            self.local_gradient[start + k] = mean.iter().sum();
            self.local_gradient[start + log_sds.len() + k] =
                log_sd.exp() * scale.iter().sum::<f32>() + 1.0;
        }
    }

    /// The gradient from values of the factors that a latent is in, each draw measured against the others.
    #[inline(always)]
    fn reinforce(&mut self, log_sds: &[f32], samples: usize) {
        let start = self.local_gradient.len();
        self.local_gradient.resize(start + 2 * log_sds.len(), 0.0);
        // A draw's value less the mean of the others is S/(S−1) times its value less the mean of all.
        let others = samples as f32 / (samples as f32 - 1.0);
        for (k, log_sd) in log_sds.iter().enumerate() {
            let own = k * self.chunks..(k + 1) * self.chunks;
            let mut centre = ZERO;
            for (blanket, share) in self.blankets[own.clone()].iter().zip(&self.share) {
                for l in 0..LANES {
                    centre[l] += blanket[l] * share[l];
                }
            }
            let centre: f32 = centre.iter().sum();
            let (mut mean, mut scale) = (ZERO, ZERO);
            for (c, share) in own.zip(&self.share) {
                for l in 0..LANES {
                    let (draw, gain) = (
                        self.draws[c][l],
                        (self.blankets[c][l] - centre) * share[l] * others,
                    );
                    mean[l] += gain * draw;
                    scale[l] += gain * (draw * draw - 1.0);
                }
            }
            self.local_gradient[start + k] = mean.iter().sum::<f32>() / log_sd.exp();
            self.local_gradient[start + log_sds.len() + k] = scale.iter().sum::<f32>() + 1.0;
        }
    }

    fn weight_gradient(&self, tree: &GenerativeTree) -> Vec<f32> {
        let hidden = tree.hidden();
        let mut gradient = vec![0.0; tree.weights().len()];
        let per_node = gradient
            .chunks_exact_mut(3 * hidden + 1)
            .zip(self.sums.chunks_exact(2 * hidden + 1));
        for ((node, _), (gradient, sums)) in tree.edges().zip(per_node) {
            let network = tree.network(node);
            let total = |lanes: &Lanes| lanes.iter().sum::<f32>();
            for j in 0..hidden {
                let (on, on_z) = (total(&sums[2 * j]), total(&sums[2 * j + 1]));
                gradient[j] = network.out[j] * on_z;
                gradient[hidden + j] = network.out[j] * on;
                gradient[2 * hidden + j] = network.slope[j] * on_z + network.offset[j] * on;
            }
            gradient[3 * hidden] = total(&sums[2 * hidden]);
        }
        gradient
    }
}
