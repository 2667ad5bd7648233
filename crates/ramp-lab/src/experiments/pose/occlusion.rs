//! Joints out of sight: where their limbs point, told by the rest of the body through the tree.

use super::data::{JOINTS, NAMES, Poses, Sight, neighbours};
use super::probe::{Means, shown};
use crate::error::LabError;
use crate::experiments::pendulum::data::wrapped;
use crate::kernel_ridge::KernelRidge;
use ramp::model::Model;
use serde::{Deserialize, Serialize};

/// Errors of the direction of a limb whose joint is occluded, in radians: means of absolute values over held-out images. The
/// direction is read off the occluded joint's latent or off those of its neighbours, whichever is nearer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occluded {
    /// The occluded joint.
    pub joint: String,
    /// The joint at the other end of the limb.
    pub neighbour: String,
    /// Through the tree, from all that is seen.
    pub tree: f64,
    /// From the patches of the occluded joint's neighbours alone.
    pub neighbours: f64,
    /// By the mean direction of the limb.
    pub mean: f64,
    /// Held-out images that show the limb.
    pub images: usize,
}

/// Occludes every joint in turn. Regressions are fitted to training images in which the same joint is occluded.
pub(super) fn occlusion(
    model: &Model,
    train: &Poses,
    test: &Poses,
    most: usize,
) -> Result<Vec<Occluded>, LabError> {
    let mut all = vec![];
    for joint in 0..JOINTS {
        let near: Vec<usize> = neighbours(joint).collect();
        let occluded = |other: usize| match other == joint {
            true => Sight::Occluded,
            false => Sight::Seen,
        };
        let alone = |other: usize| match (other == joint, near.contains(&other)) {
            (true, _) => Sight::Occluded,
            (_, true) => Sight::Seen,
            (_, false) => Sight::Drawn,
        };
        let means = |poses: &Poses, sight: &dyn Fn(usize) -> Sight| {
            Means::of(model, &poses.dataset_with(sight)?)
        };
        let tree = (means(train, &occluded)?, means(test, &occluded)?);
        let few = (means(train, &alone)?, means(test, &alone)?);
        for &neighbour in &near {
            let limb = (joint, neighbour);
            let (some, targets) = shown(train, limb, most);
            let (others, truth) = shown(test, limb, usize::MAX);
            let off = |told: &[Vec<f64>]| {
                let errors = (0..others.len()).map(|i| {
                    let angle = |parts: &[Vec<f64>]| parts[1][i].atan2(parts[0][i]);
                    wrapped(angle(told) - angle(&truth)).abs()
                });
                errors.sum::<f64>() / others.len().max(1) as f64
            };
            let by = |(known, fresh): &(Means, Means)| {
                let read_off = |joints: &[usize]| {
                    let features = joints.len() * known.dim;
                    let ridge = KernelRidge::fit(known.beside(joints, &some), features, &targets)?;
                    Ok::<_, LabError>(off(&ridge.predict(&fresh.beside(joints, &others))))
                };
                Ok::<_, LabError>(read_off(&[joint])?.min(read_off(&near)?))
            };
            let mean = |part: &Vec<f64>| {
                let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
                vec![mean; others.len()]
            };
            all.push(Occluded {
                joint: NAMES[joint].into(),
                neighbour: NAMES[neighbour].into(),
                tree: by(&tree)?,
                neighbours: by(&few)?,
                mean: off(&targets.iter().map(mean).collect::<Vec<_>>()),
                images: others.len(),
            });
        }
    }
    Ok(all)
}
