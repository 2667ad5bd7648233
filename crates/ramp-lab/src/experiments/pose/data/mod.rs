//! Poses of a body: fourteen joints in the plane, some of them unseen, drawn as stick figures.

mod augmentation;
mod body;
mod drawing;
mod mat;

pub use augmentation::Augmentation;
pub use body::Body;
pub(crate) use drawing::{ALL_LIMBS, patches};
pub use drawing::{PATCH, STROKE, picture};

use crate::error::LabError;
use ramp::data::Dataset;
use ramp::graph::{FactorTree, GraphError};
use std::path::Path;

/// How many joints a body has.
pub const JOINTS: usize = 14;

/// The joints, in the order of the Leeds Sports Poses.
pub const NAMES: [&str; JOINTS] = [
    "right_ankle",
    "right_knee",
    "right_hip",
    "left_hip",
    "left_knee",
    "left_ankle",
    "right_wrist",
    "right_elbow",
    "right_shoulder",
    "left_shoulder",
    "left_elbow",
    "left_wrist",
    "neck",
    "head",
];

/// The limbs: pairs of neighbours in the body's tree, from the head outwards.
pub const LIMBS: [(usize, usize); JOINTS - 1] = [
    (13, 12),
    (12, 8),
    (12, 9),
    (12, 2),
    (12, 3),
    (8, 7),
    (7, 6),
    (9, 10),
    (10, 11),
    (2, 1),
    (1, 0),
    (3, 4),
    (4, 5),
];

/// One pose: where each joint is, if it is seen. Numbers grow to the right and downwards.
pub type Pose = [Option<(f64, f64)>; JOINTS];

/// The neighbours of a joint in the body's tree.
pub fn neighbours(joint: usize) -> impl Iterator<Item = usize> {
    LIMBS.iter().filter_map(move |&(a, b)| match joint {
        j if j == a => Some(b),
        j if j == b => Some(a),
        _ => None,
    })
}

/// The direction from a joint to another, if both are seen, in radians.
pub fn direction(pose: &Pose, from: usize, to: usize) -> Option<f64> {
    let (a, b) = (pose[from]?, pose[to]?);
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    // Joints in one place have no direction.
    (dx != 0.0 || dy != 0.0).then(|| dy.atan2(dx))
}

/// The tree of the body: a latent at each joint, with what is seen there.
pub fn tree() -> Result<FactorTree, GraphError> {
    let limbs = LIMBS
        .iter()
        .map(|&(a, b)| (NAMES[a].to_string(), NAMES[b].to_string()));
    let seen = NAMES.iter().map(|n| (n.to_string(), patch_name(n)));
    FactorTree::from_edges(&limbs.chain(seen).collect::<Vec<_>>())
}

fn patch_name(joint: &str) -> String {
    format!("{joint}_patch")
}

/// The patches around joints as observations of [`tree`]: whether a joint of a pose is seen, and which limbs are drawn there.
fn observed(
    poses: &[Pose],
    seen: impl Fn(usize, usize) -> bool,
    limbs: impl Fn(usize, usize) -> drawing::LimbSet + Sync,
) -> Result<Dataset, LabError> {
    let mut data = Dataset::new();
    for (joint, name) in NAMES.iter().enumerate() {
        let present = (0..poses.len()).map(|pose| seen(pose, joint)).collect();
        let patches = patches(poses, joint, |pose| limbs(pose, joint));
        data = data.observe_bytes(patch_name(name), PATCH * PATCH, patches, Some(present))?;
    }
    Ok(data)
}

/// What is in sight of a joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// All there is: its limbs, and the patch around it.
    Seen,
    /// Its limbs, where they reach into the patches of others; its own patch is missing.
    Drawn,
    /// Nothing: limbs that end there are not drawn either.
    Occluded,
}

/// Poses, and what was found where they came from.
#[derive(Clone, Debug)]
pub struct Poses {
    /// The poses.
    pub poses: Vec<Pose>,
    /// How they were read or made, in a sentence.
    pub found: String,
}

impl Poses {
    /// Reads the `joints.mat` of the Leeds Sports Poses or their extension. Both orders of axes are in use, and flags that mean
    /// seen as well as flags that mean hidden; most joints are seen, which tells them apart.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let array = mat::read(path, "joints")?;
        let wrong = |what: String| {
            LabError::Invalid(format!(
                "{}: {what}; a file of poses has an array of 14 × 3 × N or 3 × 14 × N, x and y and a flag for each joint",
                path.display()
            ))
        };
        let (joint_step, part_step, count) = match array.shape[..] {
            [JOINTS, 3, count] => (1, JOINTS, count),
            [3, JOINTS, count] => (3, 1, count),
            _ => {
                let shape: Vec<String> = array.shape.iter().map(usize::to_string).collect();
                return Err(wrong(format!("`{}` is {}", array.name, shape.join(" × "))));
            }
        };
        if count == 0 {
            return Err(wrong(format!("`{}` holds no pose", array.name)));
        }
        let at = |pose: usize, joint: usize, part: usize| {
            array.values[pose * 3 * JOINTS + joint * joint_step + part * part_step]
        };
        let every = || (0..count).flat_map(|pose| (0..JOINTS).map(move |joint| (pose, joint)));
        if let Some((pose, joint)) = every().find(|&(p, j)| ![0.0, 1.0].contains(&at(p, j, 2))) {
            return Err(wrong(format!(
                "the flag of {} in pose {} is {}, not 0 or 1",
                NAMES[joint],
                pose + 1,
                at(pose, joint, 2)
            )));
        }
        let flagged = every().filter(|&(p, j)| at(p, j, 2) == 1.0).count();
        let flag_of_seen = if 2 * flagged >= count * JOINTS {
            1.0
        } else {
            0.0
        };
        let poses = (0..count)
            .map(|pose| {
                std::array::from_fn(|joint| {
                    let place = (at(pose, joint, 0), at(pose, joint, 1));
                    let seen = at(pose, joint, 2) == flag_of_seen;
                    (seen && place.0.is_finite() && place.1.is_finite()).then_some(place)
                })
            })
            .collect();
        let poses = Poses {
            poses,
            found: String::new(),
        };
        let seen = 100.0 * poses.share_seen();
        let order = if joint_step == 1 {
            "14 × 3 × N"
        } else {
            "3 × 14 × N"
        };
        let found = format!(
            "{count} poses in an array of {order}, where a flag of {flag_of_seen} means seen: {seen:.0} % of all joints"
        );
        Ok(Poses { found, ..poses })
    }

    /// The share of joints that are seen.
    pub fn share_seen(&self) -> f64 {
        let seen = self.poses.iter().flatten().flatten().count();
        seen as f64 / (self.poses.len() * JOINTS).max(1) as f64
    }

    /// What is seen around each joint, as observations of [`tree`].
    pub fn dataset(&self) -> Result<Dataset, LabError> {
        self.dataset_with(|_| Sight::Seen)
    }

    /// The same with less in sight of some joints.
    pub fn dataset_with(&self, sight: impl Fn(usize) -> Sight) -> Result<Dataset, LabError> {
        let sights: [Sight; JOINTS] = std::array::from_fn(sight);
        let drawn: Vec<Pose> = self
            .poses
            .iter()
            .map(|pose| std::array::from_fn(|j| pose[j].filter(|_| sights[j] != Sight::Occluded)))
            .collect();
        let seen = |pose: usize, joint: usize| {
            sights[joint] == Sight::Seen && drawn[pose][joint].is_some()
        };
        observed(&drawn, seen, |_, _| ALL_LIMBS)
    }

    /// The poses from one place to another.
    pub fn part(&self, span: std::ops::Range<usize>) -> Poses {
        let end = span.end.min(self.poses.len());
        Poses {
            poses: self.poses[span.start.min(end)..end].to_vec(),
            found: self.found.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_a_body() {
        let tree = tree().unwrap();
        assert_eq!((tree.latents().len(), tree.observations().len()), (14, 14));
        let degrees: Vec<usize> = (0..JOINTS).map(|j| neighbours(j).count()).collect();
        assert_eq!(degrees.iter().sum::<usize>(), 26);
        assert_eq!(degrees[12], 5);
        assert_eq!(neighbours(1).collect::<Vec<_>>(), [2, 0]);
    }

    #[test]
    fn directions_point_from_joint_to_joint() {
        let mut pose: Pose = [None; JOINTS];
        (pose[12], pose[13]) = (Some((0.0, 0.0)), Some((0.0, -10.0)));
        // Upwards is where rows grow smaller.
        let up = direction(&pose, 12, 13).unwrap();
        assert!((up + std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        assert_eq!(direction(&pose, 12, 8), None);
        pose[8] = pose[12];
        assert_eq!(direction(&pose, 12, 8), None);
    }

    /// The bytes of an array of a MATLAB file.
    fn file(shape: [usize; 3], values: &[f64]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            mat::tests::bytes("joints", &shape, values, false),
        )
        .unwrap();
        file
    }

    #[test]
    fn both_orders_of_axes_and_both_meanings_of_flags_are_read() {
        // Joint 3 of pose 1 is unseen.
        let at = |pose: usize, joint: usize, part: usize, seen: f64| match part {
            2 if (pose, joint) == (1, 3) => 1.0 - seen,
            2 => seen,
            _ => (100 * pose + 10 * joint + part) as f64,
        };
        for (seen, joints_first) in [(1.0, true), (0.0, true), (1.0, false), (0.0, false)] {
            let mut values = vec![];
            for pose in 0..2 {
                let (outer, inner) = if joints_first { (3, 14) } else { (14, 3) };
                for o in 0..outer {
                    for i in 0..inner {
                        let (joint, part) = if joints_first { (i, o) } else { (o, i) };
                        values.push(at(pose, joint, part, seen));
                    }
                }
            }
            let shape = if joints_first { [14, 3, 2] } else { [3, 14, 2] };
            let file = file(shape, &values);
            let poses = Poses::read(file.path()).unwrap();
            assert_eq!(poses.poses.len(), 2);
            assert_eq!(poses.poses[1][5], Some((150.0, 151.0)));
            assert_eq!(poses.poses[1][3], None);
            assert_eq!(poses.poses.iter().flatten().flatten().count(), 27);
            let order = if joints_first {
                "14 × 3 × N"
            } else {
                "3 × 14 × N"
            };
            assert!(poses.found.contains(order), "{}", poses.found);
        }
    }

    #[test]
    fn what_is_not_poses_gets_a_sentence() {
        let says = |shape, values: &[f64]| {
            let file = file(shape, values);
            Poses::read(file.path()).unwrap_err().to_string()
        };
        assert!(says([2, 2, 1], &[0.0; 4]).contains("`joints` is 2 × 2 × 1"));
        let mut values = [1.0; 42];
        values[30] = 7.0;
        assert!(says([14, 3, 1], &values).contains("the flag of right_hip in pose 1 is 7"));
        assert!(says([14, 3, 0], &[]).contains("no pose"));
        let missing = Poses::read(Path::new("nowhere.mat")).unwrap_err();
        assert!(missing.to_string().contains("nowhere.mat"));
    }

    #[test]
    fn a_joint_out_of_sight_is_missing() {
        let poses = Body::default().poses(5, 1);
        let poses = Poses {
            poses: poses
                .poses
                .iter()
                .map(|p| p.map(|j| j.or(Some((40.0, 40.0)))))
                .collect(),
            ..poses
        };
        let there = |sight: Sight| {
            let data = poses.dataset_with(|joint| if joint == 7 { sight } else { Sight::Seen });
            let data = data.unwrap();
            let elbow = data.observation("right_elbow_patch").unwrap();
            (0..5).filter(|&row| elbow.is_present(row)).count()
        };
        let seen = [Sight::Seen, Sight::Drawn, Sight::Occluded].map(there);
        assert_eq!(seen, [5, 0, 0]);

        // Its limbs go with it only where it is hidden.
        let shoulder = |poses: &Poses, sight: Sight| {
            let data = poses.dataset_with(|joint| if joint == 7 { sight } else { Sight::Seen });
            let data = data.unwrap();
            let patch = data.observation("right_shoulder_patch").unwrap();
            (0..5).map(|row| patch.numbers(row)).collect::<Vec<_>>()
        };
        let without = Poses {
            poses: poses
                .poses
                .iter()
                .map(|pose| {
                    let mut pose = *pose;
                    pose[7] = None;
                    pose
                })
                .collect(),
            ..poses.clone()
        };
        let whole = shoulder(&poses, Sight::Seen);
        assert_eq!(whole, shoulder(&poses, Sight::Drawn));
        assert_eq!(
            shoulder(&poses, Sight::Occluded),
            shoulder(&without, Sight::Seen)
        );
        assert_ne!(whole, shoulder(&without, Sight::Seen));
    }
}
