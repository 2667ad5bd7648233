//! Data from trees whose nodes depend on their parents through a bent link, every variable of mean zero and variance one.

use std::fmt;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::experiments::linear_tree::data::{LinearTree, TreeSample};
use crate::metrics::mean;

/// Where the paper cuts reciprocals, on both sides of zero.
pub const RECIPROCAL_LIMIT: f64 = 15.0;

/// The function through which a parent acts on its children, before it is standardised.
///
/// ```
/// use ramp_lab::experiments::nonlinear_tree::data::Link;
///
/// assert_eq!(Link::Reciprocal.of(-0.5), -2.0);
/// assert_eq!(Link::Reciprocal.of(0.001), 15.0);
/// assert_eq!(Link::SignedSquare.of(-3.0), -9.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// `clip(1/z, ±15)`, the paper's.
    Reciprocal,
    /// `z³`.
    Cubic,
    /// `sin(2z)`, which turns back beyond a quarter of π.
    Sine,
    /// `−1` below zero, `1` above: all but the sign is lost.
    Step,
    /// `z·|z|`.
    SignedSquare,
}

impl Link {
    /// Every link, the paper's first.
    pub const ALL: [Link; 5] = [
        Link::Reciprocal,
        Link::Cubic,
        Link::Sine,
        Link::Step,
        Link::SignedSquare,
    ];

    /// The link at a value.
    pub fn of(self, z: f64) -> f64 {
        match self {
            Link::Reciprocal => reciprocal(z),
            Link::Cubic => z * z * z,
            Link::Sine => (2.0 * z).sin(),
            Link::Step => z.signum(),
            Link::SignedSquare => z * z.abs(),
        }
    }

    /// The link as a formula.
    pub fn formula(self) -> &'static str {
        match self {
            Link::Reciprocal => "clip(1/z, ±15)",
            Link::Cubic => "z³",
            Link::Sine => "sin 2z",
            Link::Step => "sign z",
            Link::SignedSquare => "z·|z|",
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::Reciprocal => "reciprocal",
            Link::Cubic => "cubic",
            Link::Sine => "sine",
            Link::Step => "step",
            Link::SignedSquare => "signed-square",
        })
    }
}

/// `1/z`, cut at ±15; the one at zero takes the side of its sign.
pub fn reciprocal(z: f64) -> f64 {
    z.recip().clamp(-RECIPROCAL_LIMIT, RECIPROCAL_LIMIT)
}

/// A complete tree in which every node is the standardised link of its parent, mixed with Gaussian noise:
/// `v = √(1−α) (f(pa) − μ)/σ + √α ξ`, where `μ` and `σ` are the mean and deviation of `f(pa)` over the batch.
///
/// Nodes count in level order from the root; the last level is observed and everything above it is latent. As the
/// links are scaled by the batch, data to train on and to test on are cuts of one batch: see [`TreeSample::split_off`].
///
/// ```
/// use ramp_lab::experiments::nonlinear_tree::data::NonlinearTree;
///
/// let mut train = NonlinearTree::default().sample(300, 1)?;
/// let test = train.split_off(200);
/// assert_eq!((train.rows(), test.rows()), (200, 100));
/// assert_eq!((test.latents.len(), test.observations.len()), (7, 8));
/// # Ok::<(), ramp_lab::error::LabError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NonlinearTree {
    /// The number of levels, the root and the observations included.
    pub depth: usize,
    /// The number of children of every node above the last level.
    pub arity: usize,
    /// How a parent acts on its children.
    pub link: Link,
    /// The share `α` of noise in the variance of a node.
    pub noise: f64,
}

impl Default for NonlinearTree {
    /// The paper's tree: four levels, binary, clipped reciprocals, a fifth of noise.
    fn default() -> Self {
        Self {
            depth: 4,
            arity: 2,
            link: Link::Reciprocal,
            noise: 0.2,
        }
    }
}

impl NonlinearTree {
    /// Draws a batch of `n` samples, which the seed determines wholly.
    pub fn sample(&self, n: usize, seed: u64) -> Result<TreeSample, LabError> {
        if !(0.0..=1.0).contains(&self.noise) {
            return Err(LabError::Invalid(format!(
                "the share of noise is a number from 0 to 1, not {}",
                self.noise
            )));
        }
        if n < 2 {
            return Err(LabError::Invalid(format!(
                "{n} samples have no standard deviation to scale by; draw at least 2"
            )));
        }
        let shape = self.shape();
        let parents = shape.parents()?;
        let latents = shape.depth_of_latent()?.len();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (signal, noise) = ((1.0 - self.noise).sqrt(), self.noise.sqrt());

        let mut nodes: Vec<Vec<f64>> = Vec::with_capacity(parents.len());
        for parent in parents {
            let standard = (0..n).map(|_| -> f64 { StandardNormal.sample(&mut random) });
            nodes.push(match parent {
                None => standard.collect(),
                Some(parent) => {
                    let bent = self.standardised(&nodes[parent]);
                    let both = bent.iter().zip(standard);
                    both.map(|(f, xi)| signal * f + noise * xi).collect()
                }
            });
        }
        let mut rows = nodes
            .into_iter()
            .map(|node| node.into_iter().map(|v| v as f32).collect());
        Ok(TreeSample {
            latents: rows.by_ref().take(latents).collect(),
            observations: rows.collect(),
        })
    }

    /// The level of every latent in level order, 0 for the root.
    pub fn depth_of_latent(&self) -> Result<Vec<usize>, LabError> {
        self.shape().depth_of_latent()
    }

    /// The parent of every node in level order; `None` for the root.
    pub fn parents(&self) -> Result<Vec<Option<usize>>, LabError> {
        self.shape().parents()
    }

    fn shape(&self) -> LinearTree {
        LinearTree {
            depth: self.depth,
            arity: self.arity,
            ..LinearTree::default()
        }
    }

    /// The link of every value, shifted and scaled to mean zero and variance one.
    fn standardised(&self, values: &[f64]) -> Vec<f64> {
        let bent: Vec<f64> = values.iter().map(|&z| self.link.of(z)).collect();
        let centre = mean(&bent);
        let variance = bent.iter().map(|f| (f - centre).powi(2)).sum::<f64>() / bent.len() as f64;
        // A batch on which the link is constant has nothing to scale.
        let scale = if variance > 0.0 {
            variance.sqrt().recip()
        } else {
            0.0
        };
        bent.iter().map(|f| (f - centre) * scale).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::pearson;

    #[test]
    fn every_variable_has_mean_zero_and_variance_one_for_every_link() {
        for link in Link::ALL {
            let tree = NonlinearTree {
                link,
                ..NonlinearTree::default()
            };
            let sample = tree.sample(20_000, 5).unwrap();
            for row in sample.latents.iter().chain(&sample.observations) {
                let centre = mean(row);
                let variance = row
                    .iter()
                    .map(|&v| (f64::from(v) - centre).powi(2))
                    .sum::<f64>()
                    / row.len() as f64;
                assert!(centre.abs() < 0.03, "{link} {centre}");
                assert!((variance - 1.0).abs() < 0.05, "{link} {variance}");
            }
        }
    }

    #[test]
    fn a_child_is_linear_in_the_link_of_its_parent_and_the_noise_has_its_share() {
        for (link, noise) in [
            (Link::Reciprocal, 0.2),
            (Link::Sine, 0.5),
            (Link::Step, 0.05),
        ] {
            let tree = NonlinearTree {
                link,
                noise,
                ..NonlinearTree::default()
            };
            let sample = tree.sample(20_000, 6).unwrap();
            let bent: Vec<f64> = sample.latents[3]
                .iter()
                .map(|&z| link.of(f64::from(z)))
                .collect();
            let explained = pearson(&bent, &sample.observations[0]).powi(2);
            assert!(
                (explained - (1.0 - noise)).abs() < 0.02,
                "{link} {explained}"
            );
            // Siblings share nothing but their parent.
            let [left, right] = [0, 1].map(|i| -> Vec<f64> {
                let slope = pearson(&bent, &sample.observations[i]);
                let flat = tree.standardised(
                    &sample.latents[3]
                        .iter()
                        .map(|&z| f64::from(z))
                        .collect::<Vec<_>>(),
                );
                let pairs = sample.observations[i].iter().zip(flat);
                pairs.map(|(&x, f)| f64::from(x) - slope * f).collect()
            });
            assert!(pearson(&left, &right).abs() < 0.03);
        }
    }

    #[test]
    fn settings_without_a_meaning_are_refused() {
        let tree = NonlinearTree::default();
        for noise in [-0.1, 1.1, f64::NAN] {
            let message = NonlinearTree { noise, ..tree }
                .sample(10, 0)
                .unwrap_err()
                .to_string();
            assert!(message.contains("from 0 to 1"), "{message}");
        }
        assert!(tree.sample(1, 0).is_err());
        assert!(
            NonlinearTree { depth: 1, ..tree }.sample(10, 0).is_err(),
            "no latents"
        );
    }

    #[test]
    fn the_reciprocal_is_cut_on_the_side_of_its_sign() {
        assert_eq!(
            [0.0, -0.0, 0.05, -0.05, 4.0].map(reciprocal),
            [15.0, -15.0, 15.0, -15.0, 0.25]
        );
    }
}
