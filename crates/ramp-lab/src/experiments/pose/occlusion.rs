//! Joints out of sight: where their limbs point, told by the rest of the body through the tree.

use super::data::{JOINTS, NAMES, Poses, Sight, neighbours};
use super::probe::{Means, shown};
use crate::error::LabError;
use crate::experiments::pendulum::data::wrapped;
use crate::kernel_ridge::KernelRidge;
use ramp::model::Model;
use serde::{Deserialize, Serialize};

/// Errors of the direction of a limb whose joint is occluded, in radians: means of absolute values over held-out images. The
/// direction is read off the occluded joint's latent or off those of its neighbours, whichever is nearer on training images.
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
            let by = |(known, fresh): &(Means, Means)| {
                let fit = |joints: &[usize], images: &[usize]| {
                    let of = |i: &usize| some[*i];
                    let points = known.beside(joints, &images.iter().map(of).collect::<Vec<_>>());
                    KernelRidge::fit(points, joints.len() * known.dim, &picked(&targets, images))
                };
                // Which latents to read is chosen on training images: fitted to one half, judged on the other.
                let (half, rest): (Vec<usize>, Vec<usize>) =
                    (0..some.len()).partition(|i| i % 2 == 0);
                let judged: Vec<usize> = rest.iter().map(|&i| some[i]).collect();
                let own = [joint];
                let mut readers: Vec<(f64, &[usize])> = vec![];
                for joints in [&own[..], &near] {
                    let told = fit(joints, &half)?.predict(&known.beside(joints, &judged));
                    readers.push((off(&told, &picked(&targets, &rest)), joints));
                }
                readers.sort_by(|a, b| a.0.total_cmp(&b.0));
                let joints = readers[0].1;
                let all: Vec<usize> = (0..some.len()).collect();
                let told = fit(joints, &all)?.predict(&fresh.beside(joints, &others));
                Ok::<_, LabError>(off(&told, &truth))
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
                mean: off(&targets.iter().map(mean).collect::<Vec<_>>(), &truth),
                images: others.len(),
            });
        }
    }
    Ok(all)
}

/// The mean absolute difference of directions that are given by cosines and sines.
fn off(told: &[Vec<f64>], truth: &[Vec<f64>]) -> f64 {
    let count = truth[0].len();
    let angle = |parts: &[Vec<f64>], i: usize| parts[1][i].atan2(parts[0][i]);
    let errors = (0..count).map(|i| wrapped(angle(told, i) - angle(truth, i)).abs());
    errors.sum::<f64>() / count.max(1) as f64
}

/// The values at some places, target by target.
fn picked(targets: &[Vec<f64>], places: &[usize]) -> Vec<Vec<f64>> {
    let pick = |t: &Vec<f64>| places.iter().map(|&i| t[i]).collect();
    targets.iter().map(pick).collect()
}
