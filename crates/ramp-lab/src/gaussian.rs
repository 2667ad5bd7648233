//! The exact and the mean-field posterior of a linear-Gaussian tree, by dense conditioning.
//!
//! RAMP fixes the prior of every latent to a standard normal, so posteriors are stated for latents
//! that are scaled to unit marginal variance: `L~ = S L Sᵀ` with `S` the inverse standard deviation on
//! latents and one on observations (the paper's appendix on the Gaussian tree).

use faer::linalg::solvers::{DenseSolveCore, Solve};
use faer::{Mat, Side};

use crate::error::LabError;

/// A tree (or forest) in which every node is its weighted parent plus Gaussian noise.
#[derive(Clone, Debug)]
pub struct GaussianTree {
    parents: Vec<Option<usize>>,
    weights: Vec<f64>,
    variances: Vec<f64>,
    latents: Vec<usize>,
    observed: Vec<usize>,
}

impl GaussianTree {
    /// A tree from each node's parent, the weight of that parent and the variance of the node's noise.
    ///
    /// Parents come before their children. The weight of a root is not used; its variance is its
    /// marginal one. `observed` lists the observed nodes, the others are latent.
    pub fn new(
        parents: Vec<Option<usize>>,
        weights: Vec<f64>,
        variances: Vec<f64>,
        observed: Vec<usize>,
    ) -> Result<Self, LabError> {
        let nodes = parents.len();
        if weights.len() != nodes || variances.len() != nodes {
            return Err(LabError::Invalid(format!(
                "a tree of {nodes} nodes needs as many weights and variances, not {} and {}",
                weights.len(),
                variances.len()
            )));
        }
        for (node, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent.filter(|&parent| parent >= node) {
                return Err(LabError::Invalid(format!(
                    "node {node} has the parent {parent}; list parents before their children"
                )));
            }
        }
        let mut is_observed = vec![false; nodes];
        for &node in &observed {
            match is_observed.get_mut(node) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => {
                    return Err(LabError::Invalid(format!(
                        "node {node} is listed as observed twice"
                    )));
                }
                None => {
                    return Err(LabError::Invalid(format!(
                        "the observed node {node} is not in a tree of {nodes} nodes"
                    )));
                }
            }
        }
        let latents = (0..nodes).filter(|&node| !is_observed[node]).collect();
        Ok(Self {
            parents,
            weights,
            variances,
            latents,
            observed,
        })
    }

    /// The joint covariance `L` of all nodes.
    pub fn covariance(&self) -> Mat<f64> {
        let nodes = self.parents.len();
        let mut covariance = Mat::zeros(nodes, nodes);
        for node in 0..nodes {
            covariance[(node, node)] = self.variances[node];
            let Some(parent) = self.parents[node] else {
                continue;
            };
            let weight = self.weights[node];
            for earlier in 0..node {
                let shared = weight * covariance[(parent, earlier)];
                covariance[(node, earlier)] = shared;
                covariance[(earlier, node)] = shared;
            }
            covariance[(node, node)] += weight * weight * covariance[(parent, parent)];
        }
        covariance
    }

    /// The covariance `L~ = S L Sᵀ`, in which every latent has unit variance.
    pub fn rescaled_covariance(&self) -> Mat<f64> {
        rescaled(&self.covariance(), &self.latents)
    }

    /// The posterior of the rescaled latents given all observations but the `missing` ones.
    ///
    /// `missing` counts among the observations (0 is the first observed node), and a missing observation
    /// is integrated out of the model, for the mean-field posterior as well.
    pub fn posterior(&self, missing: &[usize]) -> Result<GaussianPosterior, LabError> {
        GaussianPosterior::condition(&self.covariance(), &self.latents, &self.observed, missing)
    }

    /// The posterior means of all samples and the marginal variances, [`Self::posterior`] in one call.
    pub fn exact_posterior(
        &self,
        observations: &[Vec<f32>],
        missing: &[usize],
    ) -> Result<(Vec<Vec<f64>>, Vec<f64>), LabError> {
        let posterior = self.posterior(missing)?;
        Ok((posterior.means(observations)?, posterior.variances))
    }
}

/// `p(z|x)` of a Gaussian tree with latents of unit marginal variance; the same variances for any data.
#[derive(Clone, Debug)]
pub struct GaussianPosterior {
    gain: Mat<f64>,
    variances: Vec<f64>,
    mean_field_variances: Vec<f64>,
    /// The observations that are not missing, in the order of the gain's columns.
    present: Vec<usize>,
    observations: usize,
}

/// `S L Sᵀ`, in which every latent has unit variance.
fn rescaled(covariance: &Mat<f64>, latents: &[usize]) -> Mat<f64> {
    let mut scale = vec![1.0; covariance.nrows()];
    for &latent in latents {
        scale[latent] = covariance[(latent, latent)].sqrt().recip();
    }
    Mat::from_fn(scale.len(), scale.len(), |i, j| {
        scale[i] * covariance[(i, j)] * scale[j]
    })
}

impl GaussianPosterior {
    /// The posterior of latents, rescaled to unit variance, in a joint Gaussian of any covariance with mean zero.
    ///
    /// `latents` and `observed` say which rows of the covariance are which; `missing` counts among the observed.
    pub fn condition(
        covariance: &Mat<f64>,
        latents: &[usize],
        observed: &[usize],
        missing: &[usize],
    ) -> Result<GaussianPosterior, LabError> {
        if let Some(wrong) = missing.iter().find(|&&index| index >= observed.len()) {
            return Err(LabError::Invalid(format!(
                "observation {wrong} cannot be missing; the tree has {} observations",
                observed.len()
            )));
        }
        let present: Vec<usize> = (0..observed.len())
            .filter(|index| !missing.contains(index))
            .collect();
        let covariance = rescaled(covariance, latents);
        let kept: Vec<usize> = latents
            .iter()
            .copied()
            .chain(present.iter().map(|&i| observed[i]))
            .collect();
        let kept_covariance = Mat::from_fn(kept.len(), kept.len(), |i, j| {
            covariance[(kept[i], kept[j])]
        });
        let precision = kept_covariance
            .llt(Side::Lower)
            .map_err(|_| LabError::Singular {
                what: "the nodes of the tree",
            })?
            .inverse();

        let factor = precision
            .submatrix(0, 0, latents.len(), latents.len())
            .llt(Side::Lower)
            .map_err(|_| LabError::Singular {
                what: "the latents given the observations",
            })?;
        let gain =
            -factor.solve(precision.submatrix(0, latents.len(), latents.len(), present.len()));
        let posterior_covariance = factor.inverse();
        Ok(GaussianPosterior {
            gain,
            variances: (0..latents.len())
                .map(|k| posterior_covariance[(k, k)])
                .collect(),
            mean_field_variances: (0..latents.len())
                .map(|k| precision[(k, k)].recip())
                .collect(),
            present,
            observations: observed.len(),
        })
    }

    /// The exact marginal variance of every latent.
    pub fn variances(&self) -> &[f64] {
        &self.variances
    }

    /// The variances `1 / diag(Λ~zz)` of the best factorised posterior, which are too small.
    pub fn mean_field_variances(&self) -> &[f64] {
        &self.mean_field_variances
    }

    /// The correlation of every posterior mean with its latent over infinitely many samples.
    ///
    /// No estimate from these observations correlates better.
    pub fn correlations(&self) -> Vec<f64> {
        self.variances
            .iter()
            .map(|variance| (1.0 - variance).max(0.0).sqrt())
            .collect()
    }

    /// The posterior means, a row per latent, from a row per observation. Missing rows are not read.
    pub fn means(&self, observations: &[Vec<f32>]) -> Result<Vec<Vec<f64>>, LabError> {
        if observations.len() != self.observations {
            return Err(LabError::Invalid(format!(
                "the tree has {} observations, the data {} rows",
                self.observations,
                observations.len()
            )));
        }
        let n = observations
            .get(self.present.first().copied().unwrap_or(0))
            .map_or(0, Vec::len);
        if let Some(&odd) = self
            .present
            .iter()
            .find(|&&row| observations[row].len() != n)
        {
            return Err(LabError::Invalid(format!(
                "observation {odd} has {} samples where the first has {n}",
                observations[odd].len()
            )));
        }
        let mut means = vec![vec![0.0; n]; self.gain.nrows()];
        for (latent, means) in means.iter_mut().enumerate() {
            for (column, &row) in self.present.iter().enumerate() {
                let gain = self.gain[(latent, column)];
                for (mean, &x) in means.iter_mut().zip(&observations[row]) {
                    *mean += gain * f64::from(x);
                }
            }
        }
        Ok(means)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::linear_tree::data::LinearTree;
    use crate::metrics::pearson;
    use proptest::prelude::*;

    #[test]
    fn the_paper_tree_has_the_variances_of_the_paper() {
        let posterior = LinearTree::default()
            .gaussian()
            .unwrap()
            .posterior(&[])
            .unwrap();
        let exact = posterior.variances();
        let mean_field = posterior.mean_field_variances();
        for (latent, level) in [0, 1, 1, 2, 2, 2, 2].into_iter().enumerate() {
            assert!((exact[latent] - [0.467, 0.257, 0.130][level]).abs() < 1e-3);
            assert!((mean_field[latent] - [1.0 / 3.0, 1.0 / 6.0, 1.0 / 9.0][level]).abs() < 1e-12);
        }
    }

    #[test]
    fn the_means_correlate_with_the_latents_as_predicted() {
        let tree = LinearTree::default();
        let sample = tree.sample(20_000, 5, 0).unwrap();
        for missing in [vec![], vec![0, 1, 6]] {
            let posterior = tree.gaussian().unwrap().posterior(&missing).unwrap();
            let means = posterior.means(&sample.observations).unwrap();
            for (latent, expected) in posterior.correlations().into_iter().enumerate() {
                let r = pearson(&means[latent], &sample.latents[latent]);
                assert!((r - expected).abs() < 0.015, "{latent}: {r} {expected}");
            }
        }
    }

    #[test]
    fn without_observations_the_posterior_is_the_prior() {
        let all: Vec<usize> = (0..8).collect();
        let posterior = LinearTree::default()
            .gaussian()
            .unwrap()
            .posterior(&all)
            .unwrap();
        assert!(
            posterior
                .variances()
                .iter()
                .all(|variance| (variance - 1.0).abs() < 1e-12)
        );
    }

    #[test]
    fn trees_without_a_meaning_are_refused() {
        let ones = vec![1.0; 2];
        let tree =
            |parents, observed| GaussianTree::new(parents, ones.clone(), ones.clone(), observed);
        assert!(tree(vec![Some(1), None], vec![0]).is_err());
        assert!(tree(vec![None, Some(0)], vec![2]).is_err());
        assert!(tree(vec![None, Some(0)], vec![1, 1]).is_err());
        let good = tree(vec![None, Some(0)], vec![1]).unwrap();
        assert!(good.posterior(&[1]).is_err());
        assert!(good.posterior(&[]).unwrap().means(&[]).is_err());
        let certain =
            GaussianTree::new(vec![None, Some(0)], ones, vec![1.0, 0.0], vec![1]).unwrap();
        assert!(matches!(
            certain.posterior(&[]),
            Err(LabError::Singular { .. })
        ));
    }

    /// Conditioning in the covariance form, by Gauss–Jordan elimination: `Lzz − Lzx Lxx⁻¹ Lxz`.
    fn schur(covariance: &Mat<f64>, latents: &[usize], observed: &[usize]) -> (Mat<f64>, Vec<f64>) {
        let (k, m) = (latents.len(), observed.len());
        let mut left = Mat::from_fn(m, m, |i, j| covariance[(observed[i], observed[j])]);
        let mut right = Mat::from_fn(m, k, |i, j| covariance[(observed[i], latents[j])]);
        for pivot in 0..m {
            let scale = left[(pivot, pivot)].recip();
            for row in (0..m).filter(|&row| row != pivot) {
                let factor = left[(row, pivot)] * scale;
                for column in 0..m {
                    let drop = factor * left[(pivot, column)];
                    left[(row, column)] -= drop;
                }
                for column in 0..k {
                    let drop = factor * right[(pivot, column)];
                    right[(row, column)] -= drop;
                }
            }
        }
        let gain = Mat::from_fn(k, m, |latent, row| right[(row, latent)] / left[(row, row)]);
        let variances = (0..k)
            .map(|latent| {
                let explained: f64 = (0..m)
                    .map(|row| gain[(latent, row)] * covariance[(observed[row], latents[latent])])
                    .sum();
                covariance[(latents[latent], latents[latent])] - explained
            })
            .collect();
        (gain, variances)
    }

    proptest! {
        #[test]
        fn precision_and_covariance_forms_agree(
            nodes in prop::collection::vec(
                (any::<prop::sample::Index>(), -2.0..2.0_f64, 0.1..2.0_f64, any::<bool>(), any::<bool>()),
                2..12,
            ),
        ) {
            let parents =
                nodes.iter().enumerate().map(|(i, n)| (i > 0).then(|| n.0.index(i))).collect();
            let observed: Vec<usize> = (0..nodes.len()).filter(|&i| nodes[i].3).collect();
            let missing: Vec<usize> = (0..observed.len()).filter(|&i| nodes[observed[i]].4).collect();
            let tree = GaussianTree::new(
                parents,
                nodes.iter().map(|n| n.1).collect(),
                nodes.iter().map(|n| n.2).collect(),
                observed.clone(),
            )
            .unwrap();
            let posterior = tree.posterior(&missing).unwrap();
            let present: Vec<usize> = posterior.present.iter().map(|&i| observed[i]).collect();
            let (gain, variances) = schur(&tree.rescaled_covariance(), &tree.latents, &present);
            for latent in 0..tree.latents.len() {
                prop_assert!((posterior.variances[latent] - variances[latent]).abs() < 1e-8);
                prop_assert!(posterior.mean_field_variances[latent] <= variances[latent] + 1e-8);
                for column in 0..present.len() {
                    let difference = posterior.gain[(latent, column)] - gain[(latent, column)];
                    prop_assert!(difference.abs() < 1e-8);
                }
            }
        }
    }
}
