//! Data whose hidden cells, and where they can be told their latents, are known: trees and chains, linear and not, with gaps.

use crate::error::LabError;
use crate::experiments::linear_tree::data::LinearTree;
use crate::experiments::nonlinear_tree::data::NonlinearTree;
use crate::gaussian::GaussianTree;
use ramp::data::Dataset;
use ramp::graph::{FactorTree, TimeAxis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Beta, Distribution, Gamma, StandardNormal};
use serde::{Deserialize, Serialize};

/// The share of cells that are missing everywhere.
const GAPS: f64 = 0.15;
/// Steps of a chain.
const STEPS: usize = 12;
/// What the series of a chain are called.
const SERIES: [&str; 2] = ["x", "y"];
/// How much of a chain's latent stays from step to step.
const STAYS: f64 = 0.8;
/// The standard deviation of noise in its readings.
const READING_NOISE: [f64; 2] = [0.7, 1.0];
/// Observations of a star.
const LEAVES: usize = 6;

/// What is asked whether it is calibrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// The paper's linear Gaussian tree.
    LinearTree,
    /// A linear Gaussian state seen by two noisy series.
    LinearChain,
    /// The paper's tree of clipped reciprocals.
    NonlinearTree,
    /// The same state seen through two curves.
    NonlinearChain,
    /// A star around a plane.
    Gaussian,
    /// The same, believed to have no correlations.
    DiagonalGaussian,
    /// A star around a share.
    Beta,
    /// A star around a rate.
    Gamma,
    /// A star around one of three kinds.
    Categorical,
    /// A star around shares of three kinds.
    Dirichlet,
    /// A star around an angle.
    VonMises,
}

impl Case {
    /// All of them.
    pub const ALL: [Case; 11] = [
        Case::LinearTree,
        Case::LinearChain,
        Case::NonlinearTree,
        Case::NonlinearChain,
        Case::Gaussian,
        Case::DiagonalGaussian,
        Case::Beta,
        Case::Gamma,
        Case::Categorical,
        Case::Dirichlet,
        Case::VonMises,
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Case::LinearTree => "linear-tree",
            Case::LinearChain => "linear-chain",
            Case::NonlinearTree => "nonlinear-tree",
            Case::NonlinearChain => "nonlinear-chain",
            Case::Gaussian => "gaussian",
            Case::DiagonalGaussian => "diagonal-gaussian",
            Case::Beta => "beta",
            Case::Gamma => "gamma",
            Case::Categorical => "categorical",
            Case::Dirichlet => "dirichlet",
            Case::VonMises => "von-mises",
        }
    }

    /// The family of its latents.
    pub fn family(self) -> &'static str {
        match self {
            Case::Gaussian => "gaussian(2)",
            Case::DiagonalGaussian => "diagonal_gaussian(2)",
            Case::Beta => "beta",
            Case::Gamma => "gamma",
            Case::Categorical => "categorical(3)",
            Case::Dirichlet => "dirichlet(3)",
            Case::VonMises => "von_mises",
            _ => "gaussian",
        }
    }

    /// Whether it is a chain.
    pub fn is_chain(self) -> bool {
        matches!(self, Case::LinearChain | Case::NonlinearChain)
    }

    /// The tree that its data come from.
    pub fn tree(self) -> Result<FactorTree, LabError> {
        Ok(match self {
            Case::LinearTree => {
                let tree = LinearTree::default();
                FactorTree::balanced(tree.depth, tree.arity)?
            }
            Case::NonlinearTree => {
                let tree = NonlinearTree::default();
                FactorTree::balanced(tree.depth, tree.arity)?
            }
            Case::LinearChain | Case::NonlinearChain => FactorTree::sequence(STEPS, &SERIES)?,
            _ => FactorTree::star(LEAVES)?,
        })
    }

    /// The Gaussian tree that data come from, latents first and then observations, each in the tree's order, where they come from one.
    pub(super) fn gaussian(self) -> Result<Option<GaussianTree>, LabError> {
        match self {
            Case::LinearTree => LinearTree::default().gaussian().map(Some),
            Case::LinearChain => {
                let series = SERIES.len();
                let states = (0..STEPS).map(|t| match t {
                    0 => (None, 0.0, 1.0),
                    _ => (Some(t - 1), STAYS, 1.0 - STAYS * STAYS),
                });
                let readings = (0..STEPS * series)
                    .map(|o| (Some(o / series), 1.0, READING_NOISE[o % series].powi(2)));
                let nodes: Vec<(Option<usize>, f64, f64)> = states.chain(readings).collect();
                let parents = nodes.iter().map(|node| node.0).collect();
                let weights = nodes.iter().map(|node| node.1).collect();
                let variances = nodes.iter().map(|node| node.2).collect();
                let observed = (STEPS..nodes.len()).collect();
                GaussianTree::new(parents, weights, variances, observed).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Draws samples, some for training and some for tests.
    pub fn sample(self, train: usize, test: usize, seed: u64) -> Result<[Sample; 2], LabError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let n = train + test;
        let mut all = match self {
            Case::LinearTree => {
                let tree = LinearTree::default();
                let made = tree.sample(n, seed, 0)?;
                let covariance = tree.gaussian()?.covariance();
                let mut latents = made.latents;
                for (k, latent) in latents.iter_mut().enumerate() {
                    let sd = covariance[(k, k)].sqrt() as f32;
                    latent.iter_mut().for_each(|z| *z /= sd);
                }
                Sample {
                    observed: made.observations,
                    latents,
                    chain: false,
                }
            }
            Case::NonlinearTree => Sample {
                observed: NonlinearTree::default().sample(n, seed)?.observations,
                latents: vec![],
                chain: false,
            },
            Case::LinearChain | Case::NonlinearChain => chain(self, n, &mut random),
            _ => self.star(n, &mut random)?,
        };
        let mut gaps = ChaCha8Rng::seed_from_u64(seed);
        gaps.set_stream(1);
        for cell in all.observed.iter_mut().flatten() {
            if gaps.random_bool(GAPS) {
                *cell = f32::NAN;
            }
        }
        let tests = all.split_off(train);
        Ok([all, tests])
    }

    /// Bent readings of a latent of the family, the last of them whole numbers.
    fn star(self, n: usize, random: &mut ChaCha8Rng) -> Result<Sample, LabError> {
        // The curves are those of the case, whatever the seed of the data.
        let mut fixed = ChaCha8Rng::seed_from_u64(self as u64);
        let features = self.features(random)?.len();
        let mut curve = || -> Vec<[f64; 4]> {
            let mut number = |low: f64, high: f64| fixed.random_range(low..high);
            (0..features)
                .map(|_| {
                    [
                        number(-1.0, 1.0),
                        number(0.5, 1.5),
                        number(1.0, 2.5),
                        number(-3.0, 3.0),
                    ]
                })
                .collect()
        };
        let curves: Vec<Vec<[f64; 4]>> = (0..LEAVES).map(|_| curve()).collect();
        let mut observed = vec![vec![]; LEAVES];
        for _ in 0..n {
            let features = self.features(random)?;
            for (leaf, (curve, column)) in curves.iter().zip(&mut observed).enumerate() {
                let noise: f64 = StandardNormal.sample(random);
                let bent = curve.iter().zip(&features);
                let bent = bent.map(|([a, b, c, d], t)| a * t + b * (c * t + d).sin());
                let x = bent.sum::<f64>() + 0.5 * noise;
                let x = if leaf + 1 == LEAVES {
                    (2.0 * x).round() / 2.0
                } else {
                    x
                };
                column.push(x as f32);
            }
        }
        Ok(Sample {
            observed,
            latents: vec![],
            chain: false,
        })
    }

    /// A draw from the family's prior, as numbers that readings depend on.
    fn features(self, random: &mut ChaCha8Rng) -> Result<Vec<f64>, LabError> {
        let normal = |random: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(random) };
        let wrong = |e: &dyn std::fmt::Display| LabError::Invalid(e.to_string());
        Ok(match self {
            Case::Beta => {
                let share = Beta::new(1.0, 1.0).map_err(|e| wrong(&e))?;
                vec![3.0 * (share.sample(random) - 0.5)]
            }
            Case::Gamma => {
                let rate = Gamma::new(1.0, 1.0).map_err(|e| wrong(&e))?;
                let rate: f64 = rate.sample(random);
                vec![rate.max(1e-3).ln()]
            }
            Case::Categorical => {
                let kind = random.random_range(0..3);
                (0..3)
                    .map(|k| 2.0 * f64::from(u8::from(k == kind)))
                    .collect()
            }
            Case::Dirichlet => {
                let each = Gamma::new(1.0, 1.0).map_err(|e| wrong(&e))?;
                let shares: Vec<f64> = (0..3).map(|_| each.sample(random)).collect();
                let total: f64 = shares.iter().sum();
                shares.iter().map(|s| 3.0 * s / total - 1.0).collect()
            }
            Case::VonMises => {
                let angle: f64 = random.random_range(0.0..std::f64::consts::TAU);
                vec![angle.cos(), angle.sin()]
            }
            _ => vec![normal(random), normal(random)],
        })
    }
}

/// A state that forgets, and two readings of it at every step.
fn chain(case: Case, n: usize, random: &mut ChaCha8Rng) -> Sample {
    let mut normal = || -> f64 { StandardNormal.sample(random) };
    let mut observed = vec![vec![]; STEPS * SERIES.len()];
    let mut latents = vec![vec![]; STEPS];
    for _ in 0..n {
        let mut z = normal();
        for step in 0..STEPS {
            if step > 0 {
                z = STAYS * z + (1.0 - STAYS * STAYS).sqrt() * normal();
            }
            latents[step].push(z as f32);
            let [x, y] = match case {
                Case::LinearChain => [z, z],
                _ => [z + 0.4 * z * z, 1.5 * (1.5 * z).tanh()],
            };
            let [of_x, of_y] = READING_NOISE;
            observed[2 * step].push((x + of_x * normal()) as f32);
            observed[2 * step + 1].push((y + of_y * normal()) as f32);
        }
    }
    if case != Case::LinearChain {
        latents.clear();
    }
    Sample {
        observed,
        latents,
        chain: true,
    }
}

/// Samples: a column per observation of the tree, in its order, with gaps.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The observations; not a number where one is missing.
    pub observed: Vec<Vec<f32>>,
    /// The latents in the tree's order, of unit variance, where nothing but their signs is free.
    pub latents: Vec<Vec<f32>>,
    chain: bool,
}

impl Sample {
    /// How many.
    pub fn rows(&self) -> usize {
        self.observed[0].len()
    }

    /// The mean and standard deviation of every latent over these samples, and of a chain's over its steps too, which share their networks.
    pub(super) fn latent_scales(&self) -> Vec<(f64, f64)> {
        let scale = |values: &[&Vec<f32>]| {
            let all = || values.iter().copied().flatten().map(|&z| f64::from(z));
            let n = all().count() as f64;
            let mean = all().sum::<f64>() / n;
            let variance = all().map(|z| (z - mean).powi(2)).sum::<f64>() / n;
            (mean, variance.sqrt())
        };
        match self.chain {
            true => vec![scale(&Vec::from_iter(&self.latents)); self.latents.len()],
            false => self.latents.iter().map(|z| scale(&[z])).collect(),
        }
    }

    /// Some of the samples.
    pub(super) fn select(&self, rows: &[u32]) -> Sample {
        let some = |values: &Vec<f32>| rows.iter().map(|&row| values[row as usize]).collect();
        Sample {
            observed: self.observed.iter().map(some).collect(),
            latents: self.latents.iter().map(some).collect(),
            chain: self.chain,
        }
    }

    fn split_off(&mut self, at: usize) -> Sample {
        let cut = |rows: &mut Vec<Vec<f32>>| rows.iter_mut().map(|r| r.split_off(at)).collect();
        Sample {
            observed: cut(&mut self.observed),
            latents: cut(&mut self.latents),
            chain: self.chain,
        }
    }

    /// As a data set; of chains without the last steps.
    pub fn dataset(&self, without: usize) -> Result<Dataset, LabError> {
        let mut data = Dataset::new();
        if !self.chain {
            for (i, values) in self.observed.iter().enumerate() {
                data = data.observe(format!("x{}", i + 1), 1, values.clone())?;
            }
            return Ok(data);
        }
        for (s, name) in SERIES.iter().enumerate() {
            let rows = 0..self.rows();
            let values = rows.flat_map(|n| (0..STEPS).map(move |t| (n, t)));
            let values = values.map(|(n, t)| match t + without < STEPS {
                true => self.observed[SERIES.len() * t + s][n],
                false => f32::NAN,
            });
            data = data.observe_sequence(*name, STEPS, 1, values.collect())?;
        }
        let length = (STEPS - without) as u32;
        Ok(data.with_lengths(vec![length; self.rows()])?)
    }

    /// The series and step of an observation of a chain.
    pub fn place(time: &TimeAxis, observation: usize) -> (usize, usize) {
        let each = time.series().len();
        (observation % each, observation / each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::pearson;

    #[test]
    fn samples_are_those_of_the_seed_and_fit_their_trees() {
        for case in Case::ALL {
            let [train, test] = case.sample(300, 100, 4).unwrap();
            assert_eq!((train.rows(), test.rows()), (300, 100));
            let tree = case.tree().unwrap();
            assert_eq!(train.observed.len(), tree.observations().len());
            let known = [Case::LinearTree, Case::LinearChain].contains(&case);
            assert_eq!(
                test.latents.len(),
                if known { tree.latents().len() } else { 0 }
            );
            let cells = train.observed.iter().flatten();
            let missing = cells.clone().filter(|x| x.is_nan()).count() as f64;
            let share = missing / cells.count() as f64;
            assert!((share - GAPS).abs() < 0.03, "{} {share}", case.name());
            let again = case.sample(300, 100, 4).unwrap();
            let bits = |s: &Sample| {
                s.observed
                    .concat()
                    .iter()
                    .map(|x| x.to_bits())
                    .collect::<Vec<_>>()
            };
            assert_eq!(bits(&again[1]), bits(&test));
            assert_eq!(train.dataset(0).unwrap().rows(), 300);
        }
    }

    #[test]
    fn latents_of_a_chain_have_unit_variance_and_forget() {
        let [_, test] = Case::LinearChain.sample(1, 20_000, 1).unwrap();
        for z in &test.latents {
            let square = z.iter().map(|&z| f64::from(z).powi(2)).sum::<f64>() / 20_000.0;
            assert!((square - 1.0).abs() < 0.04, "{square}");
        }
        let near = pearson(&test.latents[5], &test.latents[6]);
        assert!((near - STAYS).abs() < 0.02, "{near}");
    }
}
