//! The probe of poses: the direction of every limb, by regression from posterior means at its joints.

use super::data::{JOINTS, NAMES, Poses, direction};
use crate::error::LabError;
use crate::kernel_ridge::KernelRidge;
use crate::least_squares::LeastSquares;
use crate::metrics::r_squared;
use ramp::data::Dataset;
use ramp::model::Model;
use serde::{Deserialize, Serialize};

/// The rows of the paper's table: a joint, its neighbour, R².
pub(super) const TABLE: [(usize, usize, f64); 26] = [
    (5, 4, 0.83),
    (0, 1, 0.84),
    (10, 11, 0.67),
    (10, 9, 0.56),
    (7, 8, 0.53),
    (7, 6, 0.65),
    (13, 12, 0.77),
    (3, 4, 0.46),
    (3, 12, 0.68),
    (2, 1, 0.50),
    (2, 12, 0.71),
    (4, 3, 0.44),
    (4, 5, 0.73),
    (1, 0, 0.79),
    (1, 2, 0.44),
    (12, 8, 0.40),
    (12, 9, 0.41),
    (12, 3, 0.79),
    (12, 2, 0.81),
    (12, 13, 0.62),
    (9, 10, 0.65),
    (9, 12, 0.44),
    (8, 7, 0.56),
    (8, 12, 0.40),
    (11, 10, 0.77),
    (6, 7, 0.74),
];

/// Samples that go through a model together.
const ROWS: usize = 512;

/// The posterior means of every joint, in the order of [`NAMES`]: coordinate after coordinate, pose after pose.
pub(super) struct Means {
    pub dim: usize,
    pub joints: Vec<Vec<f64>>,
}

impl Means {
    pub fn of(model: &Model, data: &Dataset) -> Result<Self, LabError> {
        let mut joints = vec![vec![]; JOINTS];
        model.for_each_posterior(data, ROWS, |part| {
            for latent in part.latents() {
                let joint = NAMES.iter().position(|n| *n == latent.name());
                let Some(joint) = joint else { continue };
                for row in 0..part.rows() {
                    joints[joint].extend(latent.describe(row).mean);
                }
            }
            Ok(())
        })?;
        let dim = joints[0].len() / data.rows().max(1);
        Ok(Means { dim, joints })
    }

    pub fn at(&self, joint: usize, pose: usize) -> &[f64] {
        &self.joints[joint][pose * self.dim..][..self.dim]
    }

    /// The means at some joints of some poses, pose after pose.
    pub fn beside(&self, joints: &[usize], poses: &[usize]) -> Vec<f64> {
        let each = poses
            .iter()
            .flat_map(|&pose| joints.iter().flat_map(move |&joint| self.at(joint, pose)));
        each.copied().collect()
    }

    /// The means at a joint of some poses, one after the other.
    pub fn some(&self, joint: usize, poses: &[usize]) -> Vec<f64> {
        self.beside(&[joint], poses)
    }
}

/// The poses that show a limb, at most so many, evenly spread; and the cosines and sines of its directions.
pub(super) fn shown(
    poses: &Poses,
    (from, to): (usize, usize),
    most: usize,
) -> (Vec<usize>, Vec<Vec<f64>>) {
    let all: Vec<(usize, f64)> = poses
        .poses
        .iter()
        .enumerate()
        .filter_map(|(i, pose)| Some((i, direction(pose, from, to)?)))
        .collect();
    let count = all.len().min(most);
    let some = || (0..count).map(|k| &all[k * all.len() / count]);
    let targets = vec![
        some().map(|(_, a)| a.cos()).collect(),
        some().map(|(_, a)| a.sin()).collect(),
    ];
    (some().map(|(i, _)| *i).collect(), targets)
}

/// R² on the images that a regression was fitted to and on held-out ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeR2 {
    /// On the training images that it was fitted to.
    pub train: f64,
    /// On held-out images.
    pub test: f64,
}

/// R² of the limb from a joint to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimbProbe {
    /// The joint.
    pub joint: usize,
    /// Its neighbour.
    pub neighbour: usize,
    /// By kernel ridge regression.
    pub kernel: ProbeR2,
    /// By linear regression.
    pub linear: ProbeR2,
    /// The paper's, by kernel ridge regression on training images.
    pub paper: f64,
}

/// The regressions from a joint's posterior mean to the direction of a limb, and their R².
pub(super) struct Probe {
    pub kernel: KernelRidge,
    pub linear: LeastSquares,
    pub limb: LimbProbe,
}

/// Poses and their posterior means.
pub(super) struct Seen<'a> {
    pub poses: &'a Poses,
    pub means: &'a Means,
}

/// Probes every limb from the joints at its ends, by regressions on at most so many training images; row by row of [`TABLE`].
pub(super) fn probes(
    train: &Seen<'_>,
    test: &Seen<'_>,
    most: usize,
) -> Result<Vec<Probe>, LabError> {
    TABLE
        .iter()
        .map(|&(joint, neighbour, paper)| {
            let limb = (joint, neighbour);
            let (some, targets) = shown(train.poses, limb, most);
            let (others, truth) = shown(test.poses, limb, usize::MAX);
            let points = train.means.some(joint, &some);
            let fresh = test.means.some(joint, &others);
            // The mean over cosine and sine, as scikit-learn's score.
            let r2 = |truth: &[Vec<f64>], predicted: &[Vec<f64>]| {
                let parts = truth.iter().zip(predicted).map(|(t, p)| r_squared(t, p));
                parts.sum::<f64>() / truth.len() as f64
            };
            let linear = LeastSquares::fit(&points, train.means.dim, &targets)?;
            let kernel = KernelRidge::fit(points.clone(), train.means.dim, &targets)?;
            let scores = LimbProbe {
                joint,
                neighbour,
                kernel: ProbeR2 {
                    train: r2(&targets, &kernel.predict(&points)),
                    test: r2(&truth, &kernel.predict(&fresh)),
                },
                linear: ProbeR2 {
                    train: r2(&targets, &linear.predict(&points)),
                    test: r2(&truth, &linear.predict(&fresh)),
                },
                paper,
            };
            Ok(Probe {
                kernel,
                linear,
                limb: scores,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::pose::data::{Body, neighbours};

    #[test]
    fn the_papers_table_has_every_limb_from_both_ends() {
        let mut rows: Vec<(usize, usize)> = TABLE.iter().map(|r| (r.0, r.1)).collect();
        let mut limbs: Vec<(usize, usize)> = (0..JOINTS)
            .flat_map(|j| neighbours(j).map(move |n| (j, n)))
            .collect();
        rows.sort_unstable();
        limbs.sort_unstable();
        assert_eq!(rows, limbs);
        let mean = TABLE.iter().map(|r| r.2).sum::<f64>() / 26.0;
        assert!((mean - 0.623).abs() < 5e-4, "{mean}");
    }

    #[test]
    fn limbs_are_read_off_means_that_tell_them() {
        let body = Body {
            covered: 0.1,
            ..Body::default()
        };
        let (train, test) = (body.poses(400, 1), body.poses(200, 2));
        // Means of joints that hold the directions of their limbs, or nothing where a limb is not seen.
        let means = |poses: &Poses| Means {
            dim: 10,
            joints: (0..JOINTS)
                .map(|joint| {
                    let tell = |pose: &crate::experiments::pose::data::Pose| {
                        let mut told = vec![];
                        for n in neighbours(joint) {
                            let angle = direction(pose, joint, n);
                            told.extend(angle.map_or([0.0; 2], |a| [a.cos(), a.sin()]));
                        }
                        told.resize(10, 0.0);
                        told
                    };
                    poses.poses.iter().flat_map(tell).collect()
                })
                .collect(),
        };
        let (a, b) = (means(&train), means(&test));
        let seen = |poses, means| Seen { poses, means };
        for probe in probes(&seen(&train, &a), &seen(&test, &b), 300).unwrap() {
            let limb = probe.limb;
            assert!(limb.linear.test > 0.999, "{limb:?}");
            assert!(limb.kernel.test > 0.8, "{limb:?}");
        }
    }
}
