//! Augmentation of poses: as many more as one likes, all of them possible, to learn from.

use super::drawing::LimbSet;
use super::{JOINTS, LIMBS, Pose, Poses, observed};
use crate::error::LabError;
use ramp::data::Dataset;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The joint on the other side of a body, in the order of [`super::NAMES`].
const OPPOSITE: [usize; JOINTS] = [5, 4, 3, 2, 1, 0, 11, 10, 9, 8, 7, 6, 12, 13];

/// How poses are augmented: the camera is held aslant, stands nearer or further away, or looks into a mirror, and something
/// is in front of a joint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augmentation {
    /// How many of each pose, itself included.
    pub of_each: usize,
    /// The largest turn either way, in radians.
    pub turn: f64,
    /// The largest change of size: a factor of this much, up or down.
    pub zoom: f64,
    /// The chance with which a joint is occluded: it is not seen, nor are the limbs that end there.
    #[serde(rename = "cover")]
    pub occlusion: f64,
    /// The chance with which a limb is occluded near one joint and seen near another.
    #[serde(rename = "fade")]
    pub fading: f64,
}

impl Default for Augmentation {
    /// No pose but itself.
    fn default() -> Self {
        Augmentation {
            of_each: 1,
            turn: 0.0,
            zoom: 1.0,
            occlusion: 0.0,
            fading: 0.0,
        }
    }
}

impl Augmentation {
    /// The poses, each followed by its variants; half of them are mirrored.
    pub fn of(&self, poses: &Poses, seed: u64) -> Poses {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut all = Vec::with_capacity(poses.poses.len() * self.of_each.max(1));
        for pose in &poses.poses {
            all.push(*pose);
            all.extend((1..self.of_each).map(|_| self.one(pose, &mut rng)));
        }
        Poses {
            poses: all,
            found: poses.found.clone(),
        }
    }

    /// What is seen of them.
    pub fn dataset(&self, poses: &Poses, seed: u64) -> Result<Dataset, LabError> {
        let all = self.of(poses, seed).poses;
        let drawn = self.drawn(all.len(), seed);
        observed(
            &all,
            |pose, joint| all[pose][joint].is_some(),
            |pose, joint| drawn[pose][joint],
        )
    }

    /// The limbs that are drawn around each joint of so many poses and variants.
    fn drawn(&self, count: usize, seed: u64) -> Vec<[LimbSet; JOINTS]> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        let mut around = |pose: usize| {
            (0..LIMBS.len())
                .filter(|_| pose.is_multiple_of(self.of_each) || !rng.random_bool(self.fading))
                .fold(0, |set, limb| set | 1 << limb)
        };
        (0..count)
            .map(|pose| std::array::from_fn(|_| around(pose)))
            .collect()
    }

    fn one(&self, pose: &Pose, rng: &mut ChaCha8Rng) -> Pose {
        let mirrored = rng.random_bool(0.5);
        let turn = self.turn * rng.random_range(-1.0..=1.0);
        let zoom = self.zoom.powf(rng.random_range(-1.0..=1.0));
        let (sin, cos) = turn.sin_cos();
        std::array::from_fn(|joint| {
            let occluded = rng.random_bool(self.occlusion);
            let joint = if mirrored { OPPOSITE[joint] } else { joint };
            let (x, y) = pose[joint].filter(|_| !occluded)?;
            let x = if mirrored { -x } else { x };
            Some((zoom * (cos * x - sin * y), zoom * (sin * x + cos * y)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Body, LIMBS, NAMES, direction};
    use super::*;

    fn made() -> Poses {
        Body {
            covered: 0.0,
            ..Body::default()
        }
        .poses(50, 1)
    }

    #[test]
    fn opposites_are_left_and_right() {
        for joint in 0..JOINTS {
            let name = NAMES[joint]
                .replace("right", "other")
                .replace("left", "right");
            assert_eq!(NAMES[OPPOSITE[joint]], name.replace("other", "left"));
        }
    }

    #[test]
    fn poses_come_first_and_no_augmentation_leaves_them_alone() {
        let poses = made();
        assert_eq!(Augmentation::default().of(&poses, 3).poses, poses.poses);
        let varied = Augmentation {
            of_each: 3,
            turn: 0.3,
            zoom: 1.2,
            occlusion: 0.1,
            fading: 0.1,
        }
        .of(&poses, 3);
        assert_eq!(varied.poses.len(), 150);
        assert!(varied.poses.iter().step_by(3).eq(&poses.poses));
        let seen = varied.share_seen();
        assert!((0.9..0.96).contains(&seen), "{seen}");
    }

    #[test]
    fn a_mirrored_body_bends_as_before_on_its_other_side() {
        let poses = made();
        let varied = Augmentation {
            of_each: 2,
            zoom: 2.0,
            ..Augmentation::default()
        }
        .of(&poses, 7);
        let mut mirrored = 0;
        for pair in varied.poses.chunks(2) {
            let angle = |pose: &Pose, (a, b): (usize, usize)| direction(pose, a, b).unwrap();
            let same = (angle(&pair[0], LIMBS[0]) - angle(&pair[1], LIMBS[0])).abs() < 1e-9;
            mirrored += usize::from(!same);
            for (a, b) in LIMBS {
                let before = angle(&pair[0], (a, b));
                let after = match same {
                    true => angle(&pair[1], (a, b)),
                    false => angle(&pair[1], (OPPOSITE[a], OPPOSITE[b])),
                };
                assert!((before.sin() - after.sin()).abs() < 1e-9);
                let cos = if same { after.cos() } else { -after.cos() };
                assert!((before.cos() - cos).abs() < 1e-9);
            }
        }
        assert!((10..40).contains(&mirrored), "{mirrored}");
    }

    #[test]
    fn limbs_fade_in_variants_only() {
        let varied = Augmentation {
            of_each: 2,
            fading: 0.3,
            ..Augmentation::default()
        };
        let drawn = varied.drawn(200, 5);
        let mut limbs = [0; 2];
        for (pose, sets) in drawn.iter().enumerate() {
            limbs[pose % 2] += sets.iter().map(|s| s.count_ones()).sum::<u32>();
        }
        let all = 100 * JOINTS * LIMBS.len();
        assert_eq!(limbs[0] as usize, all);
        let share = f64::from(limbs[1]) / all as f64;
        assert!((share - 0.7).abs() < 0.02, "{share}");
    }
}
