//! Data from a linear-Gaussian generative tree, the first experiment of the paper.

use ramp::data::Dataset;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::error::LabError;
use crate::gaussian::GaussianTree;

/// The most nodes a generated tree may have; more is a slip of the keyboard.
const MOST_NODES: usize = 1 << 24;

/// A complete tree in which every node is its parent, weighted, plus Gaussian noise.
///
/// The root is standard normal. Nodes count in level order from the root; the last level is observed
/// and everything above it is latent.
///
/// ```
/// let tree = ramp_lab::experiments::linear_tree::data::LinearTree::default();
/// let train = tree.sample(100, 1, 0)?;
/// let test = tree.sample(50, 1, 1)?; // the same seed, another stream: fresh data
/// assert_eq!((train.latents.len(), train.observations.len()), (7, 8));
/// assert_eq!(test.observations[0].len(), 50);
/// # Ok::<(), ramp_lab::error::LabError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinearTree {
    /// The number of levels, the root and the observations included.
    pub depth: usize,
    /// The number of children of every node above the last level.
    pub arity: usize,
    /// The weight `a` of a parent in its child.
    pub weight: f64,
    /// The variance `σ²` of the noise that a node adds to its parent.
    pub noise_variance: f64,
}

impl Default for LinearTree {
    /// The paper's tree: four levels, binary, unit weights and variances.
    fn default() -> Self {
        Self {
            depth: 4,
            arity: 2,
            weight: 1.0,
            noise_variance: 1.0,
        }
    }
}

/// Samples of a tree: one row per node, one column per sample.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeSample {
    /// The latent nodes in level order, the root first.
    pub latents: Vec<Vec<f32>>,
    /// The observed leaves from left to right.
    pub observations: Vec<Vec<f32>>,
}

impl TreeSample {
    /// How many samples.
    pub fn rows(&self) -> usize {
        self.latents.first().map_or(0, Vec::len)
    }

    /// Cuts off the samples from a place on, into a sample of their own.
    pub fn split_off(&mut self, at: usize) -> TreeSample {
        let at = at.min(self.rows());
        let cut = |rows: &mut Vec<Vec<f32>>| rows.iter_mut().map(|row| row.split_off(at)).collect();
        TreeSample {
            latents: cut(&mut self.latents),
            observations: cut(&mut self.observations),
        }
    }

    /// The observations as a data set with the names of [`FactorTree::balanced`](ramp::graph::FactorTree::balanced).
    pub fn dataset(&self) -> Result<Dataset, LabError> {
        let mut data = Dataset::new();
        for (i, values) in self.observations.iter().enumerate() {
            data = data.observe(format!("x{}", i + 1), 1, values.clone())?;
        }
        Ok(data)
    }
}

impl LinearTree {
    /// Draws `n` samples. Seed and stream determine them wholly; streams of one seed are independent.
    ///
    /// The first samples of a longer draw are the samples of a shorter one.
    pub fn sample(&self, n: usize, seed: u64, stream: u64) -> Result<TreeSample, LabError> {
        let parents = self.parents()?;
        let latents = self.latent_count()?;
        let noise = self.noise_variance.sqrt();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);

        let mut rows = vec![Vec::with_capacity(n); parents.len()];
        let mut values = vec![0.0_f64; parents.len()];
        for _ in 0..n {
            for (node, parent) in parents.iter().enumerate() {
                let standard: f64 = StandardNormal.sample(&mut random);
                values[node] = match parent {
                    Some(parent) => self.weight * values[*parent] + noise * standard,
                    None => standard,
                };
                rows[node].push(values[node] as f32);
            }
        }
        let observations = rows.split_off(latents);
        Ok(TreeSample {
            latents: rows,
            observations,
        })
    }

    /// The parent of every node in level order; `None` for the root.
    pub fn parents(&self) -> Result<Vec<Option<usize>>, LabError> {
        let nodes = self.latent_count()? + self.level_size(self.depth - 1)?;
        Ok((0..nodes)
            .map(|node| node.checked_sub(1).map(|earlier| earlier / self.arity))
            .collect())
    }

    /// The level of every latent in level order, 0 for the root.
    pub fn depth_of_latent(&self) -> Result<Vec<usize>, LabError> {
        let mut depths = Vec::new();
        for level in 0..self.checked_depth()? - 1 {
            depths.resize(depths.len() + self.level_size(level)?, level);
        }
        Ok(depths)
    }

    /// The same tree as a joint Gaussian, for exact inference.
    pub fn gaussian(&self) -> Result<GaussianTree, LabError> {
        let parents = self.parents()?;
        let (nodes, latents) = (parents.len(), self.latent_count()?);
        let mut variances = vec![self.noise_variance; nodes];
        variances[0] = 1.0;
        GaussianTree::new(
            parents,
            vec![self.weight; nodes],
            variances,
            (latents..nodes).collect(),
        )
    }

    fn latent_count(&self) -> Result<usize, LabError> {
        (0..self.checked_depth()? - 1)
            .map(|level| self.level_size(level))
            .sum()
    }

    fn level_size(&self, level: usize) -> Result<usize, LabError> {
        u32::try_from(level)
            .ok()
            .and_then(|level| self.arity.checked_pow(level))
            .filter(|&size| size <= MOST_NODES / self.depth)
            .ok_or_else(|| {
                LabError::Invalid(format!(
                    "a tree of depth {} and arity {} has too many nodes; choose a smaller depth",
                    self.depth, self.arity
                ))
            })
    }

    /// The depth of a tree whose every setting has a meaning.
    fn checked_depth(&self) -> Result<usize, LabError> {
        let complaint = if self.depth < 2 {
            format!(
                "a tree of depth {} has no latents; the depth starts at 2",
                self.depth
            )
        } else if self.arity == 0 {
            "a tree of arity 0 has no observations; the arity starts at 1".to_owned()
        } else if !self.weight.is_finite() {
            format!(
                "the weight of a tree is a finite number, not {}",
                self.weight
            )
        } else if !(self.noise_variance.is_finite() && self.noise_variance >= 0.0) {
            format!(
                "the noise variance of a tree is a number from 0 on, not {}",
                self.noise_variance
            )
        } else {
            return Ok(self.depth);
        };
        Err(LabError::Invalid(complaint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{mean, pearson};

    #[test]
    fn the_moments_are_those_of_the_joint_gaussian() {
        let tree = LinearTree {
            depth: 3,
            arity: 3,
            weight: 0.8,
            noise_variance: 0.5,
        };
        let n = 40_000;
        let sample = tree.sample(n, 3, 0).unwrap();
        let covariance = tree.gaussian().unwrap().covariance();
        let rows: Vec<_> = sample.latents.iter().chain(&sample.observations).collect();
        assert_eq!(rows.len(), 1 + 3 + 9);
        for i in 0..rows.len() {
            assert!(mean(rows[i]).abs() < 0.03);
            for j in 0..rows.len() {
                let products: f64 = rows[i]
                    .iter()
                    .zip(rows[j])
                    .map(|(a, b)| f64::from(*a) * f64::from(*b))
                    .sum();
                let empirical = products / n as f64;
                assert!(
                    (empirical - covariance[(i, j)]).abs() < 0.04,
                    "{i} {j} {empirical}"
                );
            }
        }
    }

    #[test]
    fn seed_and_stream_determine_the_data() {
        let tree = LinearTree::default();
        let long = tree.sample(300, 7, 0).unwrap();
        let short = tree.sample(200, 7, 0).unwrap();
        assert_eq!(long.latents[3][..200], short.latents[3][..]);
        let fresh = tree.sample(300, 7, 1).unwrap();
        assert!(pearson(&long.latents[0], &fresh.latents[0]).abs() < 0.2);
        assert_ne!(long, tree.sample(300, 8, 0).unwrap());
    }

    #[test]
    fn the_paper_tree_has_seven_latents_on_three_levels() {
        let tree = LinearTree::default();
        assert_eq!(tree.depth_of_latent().unwrap(), vec![0, 1, 1, 2, 2, 2, 2]);
        let parents = tree.parents().unwrap();
        assert_eq!(parents.len(), 15);
        assert_eq!(
            (parents[0], parents[6], parents[14]),
            (None, Some(2), Some(6))
        );
        let chain = LinearTree {
            depth: 4,
            arity: 1,
            ..tree
        };
        assert_eq!(
            chain.parents().unwrap(),
            vec![None, Some(0), Some(1), Some(2)]
        );
    }

    #[test]
    fn settings_without_a_meaning_are_refused() {
        let tree = LinearTree::default();
        for wrong in [
            LinearTree { depth: 1, ..tree },
            LinearTree { depth: 70, ..tree },
            LinearTree { arity: 0, ..tree },
            LinearTree {
                weight: f64::NAN,
                ..tree
            },
            LinearTree {
                noise_variance: -1.0,
                ..tree
            },
        ] {
            assert!(wrong.sample(1, 0, 0).is_err(), "{wrong:?}");
        }
    }
}
