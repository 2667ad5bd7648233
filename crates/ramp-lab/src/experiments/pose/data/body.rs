//! Poses of a made-up body, for whoever has no file of real ones: limbs of a person's lengths that bend as far as joints
//! let them, seen from a random side, with some joints out of sight.

use super::{JOINTS, Pose, Poses};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// How bodies are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// The height of a standing body, in pixels.
    pub height: f64,
    /// The chance that something covers a part of a limb, for each hand, foot and the head.
    pub covered: f64,
}

impl Default for Body {
    fn default() -> Self {
        Body {
            height: 150.0,
            covered: 0.15,
        }
    }
}

type Vector = [f64; 3];

fn plus(a: Vector, by: f64, b: Vector) -> Vector {
    std::array::from_fn(|i| a[i] + by * b[i])
}

/// A rotation by rows.
type Turn = [Vector; 3];

/// About one axis.
fn about(axis: usize, angle: f64) -> Turn {
    let (s, c) = angle.sin_cos();
    let (i, j) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut turn = [[0.0; 3]; 3];
    turn[axis][axis] = 1.0;
    (turn[i][i], turn[j][j]) = (c, c);
    (turn[i][j], turn[j][i]) = (-s, s);
    turn
}

/// First `b`, then `a`.
fn after(a: Turn, b: Turn) -> Turn {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

fn turned(turn: Turn, v: Vector) -> Vector {
    turn.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
}

impl Body {
    /// So many poses.
    pub fn poses(&self, count: usize, seed: u64) -> Poses {
        let mut rng = SmallRng::seed_from_u64(seed);
        let poses = (0..count).map(|_| self.pose(&mut rng)).collect();
        let poses = Poses {
            poses,
            found: String::new(),
        };
        let seen = 100.0 * poses.share_seen();
        Poses {
            found: format!("{count} made-up poses: {seen:.0} % of all joints are seen"),
            ..poses
        }
    }

    /// Axes of the body: x to its left, y upwards, z forwards. Limbs hang down before they are bent.
    fn pose(&self, rng: &mut impl Rng) -> Pose {
        let mut normal = |mean: f64, spread: f64, low: f64, high: f64| -> f64 {
            let x: f64 = StandardNormal.sample(rng);
            (mean + spread * x).clamp(low, high)
        };
        let h = self.height;
        let down = [0.0, -h, 0.0];
        let mut at = [[0.0; 3]; JOINTS];
        const NECK: usize = 12;
        // The trunk, with shoulders and hips to its sides.
        let bend = after(
            about(0, normal(0.0, 0.4, -0.6, 1.2)),
            about(2, normal(0.0, 0.25, -0.6, 0.6)),
        );
        at[NECK] = turned(bend, [0.0, 0.3 * h, 0.0]);
        let nod = after(bend, about(0, normal(0.1, 0.3, -0.6, 0.9)));
        at[13] = plus(at[NECK], 0.17, turned(nod, [0.0, h, 0.0]));
        for (side, shoulder, elbow, wrist, hip, knee, ankle) in
            [(1.0, 9, 10, 11, 3, 4, 5), (-1.0, 8, 7, 6, 2, 1, 0)]
        {
            at[shoulder] = plus(
                at[NECK],
                1.0,
                turned(bend, [side * 0.12 * h, -0.01 * h, 0.0]),
            );
            // Forwards and sideways, then twisted; the elbow bends one way only.
            let arm = after(
                after(
                    bend,
                    after(
                        about(2, side * normal(0.5, 0.8, -0.3, 2.8)),
                        about(0, -normal(0.3, 0.9, -0.9, 2.9)),
                    ),
                ),
                about(1, side * normal(0.0, 0.7, -1.4, 1.4)),
            );
            at[elbow] = plus(at[shoulder], 0.18, turned(arm, down));
            let forearm = after(arm, about(0, -normal(0.9, 0.7, 0.0, 2.5)));
            at[wrist] = plus(at[elbow], 0.16, turned(forearm, down));
            at[hip] = [side * 0.06 * h, 0.0, 0.0];
            let leg = after(
                about(2, side * normal(0.2, 0.35, -0.3, 1.3)),
                about(0, -normal(0.5, 0.7, -0.6, 2.2)),
            );
            at[knee] = plus(at[hip], 0.25, turned(leg, down));
            let shin = after(leg, about(0, normal(0.6, 0.6, 0.0, 2.4)));
            at[ankle] = plus(at[knee], 0.24, turned(shin, down));
        }
        // Seen from anywhere around, a little from above or below; few stand on their heads.
        let roll = match normal(0.0, 1.0, -9.0, 9.0) {
            x if x > 1.5 => normal(0.0, 1.5, -3.1, 3.1),
            _ => normal(0.0, 0.3, -1.0, 1.0),
        };
        let tilt = normal(0.1, 0.25, -0.6, 0.8);
        let view = |around| after(about(2, roll), after(about(0, tilt), about(1, around)));
        let view = view(rng.random_range(-std::f64::consts::PI..std::f64::consts::PI));
        let mut pose: Pose = std::array::from_fn(|j| {
            let [x, y, _] = turned(view, at[j]);
            Some((100.0 + x, 100.0 - y))
        });
        // What covers a limb covers it from its end.
        for limb in [[6, 7, 8], [11, 10, 9], [0, 1, 2], [5, 4, 3], [13, 12, 13]] {
            if rng.random_bool(self.covered) {
                let joints = rng.random_range(1..=2);
                for &joint in &limb[..joints] {
                    pose[joint] = None;
                }
            }
        }
        pose
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LIMBS, NAMES};
    use super::*;

    #[test]
    fn bodies_have_limbs_of_a_persons_size() {
        let poses = Body::default().poses(2000, 3);
        assert_eq!(poses.poses, Body::default().poses(2000, 3).poses);
        assert!((0.8..0.95).contains(&poses.share_seen()), "{}", poses.found);
        for &(a, b) in &LIMBS {
            let seen = poses.poses.iter().filter_map(|p| Some((p[a]?, p[b]?)));
            let lengths: Vec<f64> = seen.map(|(a, b)| (a.0 - b.0).hypot(a.1 - b.1)).collect();
            let longest = lengths.iter().copied().fold(0.0, f64::max);
            // Foreshortened at most to nothing, never stretched.
            assert!(
                (15.0..55.0).contains(&longest),
                "{}–{}: {longest}",
                NAMES[a],
                NAMES[b]
            );
        }
    }
}
