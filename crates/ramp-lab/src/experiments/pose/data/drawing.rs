//! Stick figures: a black line on white paper for every limb whose two joints are seen.

use super::{LIMBS, Pose};
use rayon::prelude::*;

/// Pixels on a side of what is seen around a joint.
pub const PATCH: usize = 32;
/// The width of a line, in pixels.
pub const STROKE: f64 = 2.0;

/// A square window on a stick figure, row by row from the top: for each pixel how much of it is ink, 0 for white paper and
/// 255 for black, to within the approximation of edges by straight lines.
pub fn picture(pose: &Pose, centre: (f64, f64), size: usize) -> Vec<u8> {
    let mut ink = vec![0; size * size];
    draw(pose, ALL_LIMBS, centre, size, &mut ink);
    ink
}

/// Limbs as bits, in the order of [`LIMBS`].
pub(crate) type LimbSet = u16;
pub(crate) const ALL_LIMBS: LimbSet = (1 << LIMBS.len()) - 1;

fn draw(pose: &Pose, limbs: LimbSet, centre: (f64, f64), size: usize, ink: &mut [u8]) {
    let half = size as f64 / 2.0;
    // Pixel i lies half a pixel in from its edge.
    let corner = (centre.0 - half + 0.5, centre.1 - half + 0.5);
    for (i, &(a, b)) in LIMBS.iter().enumerate() {
        let (Some(a), Some(b), 1) = (pose[a], pose[b], limbs >> i & 1) else {
            continue;
        };
        let (a, b) = (
            (a.0 - corner.0, a.1 - corner.1),
            (b.0 - corner.0, b.1 - corner.1),
        );
        let reach = STROKE / 2.0 + 0.5;
        let span = |a: f64, b: f64| {
            let (low, high) = (a.min(b) - reach, a.max(b) + reach);
            (low.ceil().max(0.0) as usize)..(high.floor() + 1.0).clamp(0.0, size as f64) as usize
        };
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = (dx * dx + dy * dy).max(1e-12);
        for y in span(a.1, b.1) {
            for x in span(a.0, b.0) {
                let (px, py) = (x as f64 - a.0, y as f64 - a.1);
                let along = ((px * dx + py * dy) / length).clamp(0.0, 1.0);
                let off = (px - along * dx).hypot(py - along * dy);
                let covered = (255.0 * (reach - off).clamp(0.0, 1.0)).round() as u8;
                let pixel = &mut ink[y * size + x];
                *pixel = covered.max(*pixel);
            }
        }
    }
}

/// What is seen around a joint of every pose, where these limbs of each are drawn; blank where the joint is not seen.
pub(crate) fn patches(
    poses: &[Pose],
    joint: usize,
    limbs: impl Fn(usize) -> LimbSet + Sync,
) -> Vec<u8> {
    let mut all = vec![0; poses.len() * PATCH * PATCH];
    all.par_chunks_exact_mut(PATCH * PATCH)
        .zip(poses)
        .enumerate()
        .for_each(|(i, (ink, pose))| {
            if let Some(centre) = pose[joint] {
                draw(pose, limbs(i), centre, PATCH, ink);
            }
        });
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Body, JOINTS};
    use super::*;

    #[test]
    fn a_line_is_as_dark_as_it_is_long_and_wide() {
        let mut pose: Pose = [None; JOINTS];
        (pose[13], pose[12]) = (Some((30.0, 20.0)), Some((50.0, 44.0)));
        let ink = picture(&pose, (40.0, 32.0), 64);
        let all: f64 = ink.iter().map(|&v| f64::from(v) / 255.0).sum();
        // A rectangle and two half discs.
        let area = 20f64.hypot(24.0) * STROKE + std::f64::consts::PI * (STROKE / 2.0).powi(2);
        assert!((all / area - 1.0).abs() < 0.03, "{all} {area}");
        // Nothing is drawn to a joint that is not seen.
        pose[13] = None;
        assert!(picture(&pose, (40.0, 32.0), 64).iter().all(|&v| v == 0));
    }

    #[test]
    fn a_patch_is_cut_out_of_the_whole_figure() {
        let poses = Body::default().poses(20, 4).poses;
        for pose in &poses {
            for joint in 0..JOINTS {
                let Some(at) = pose[joint] else { continue };
                // Whole pixels apart, windows show the same pixels.
                let whole = picture(pose, (at.0 + 9.0, at.1 - 30.0), 128);
                let patch = &patches(std::slice::from_ref(pose), joint, |_| ALL_LIMBS);
                for y in 0..PATCH {
                    for x in 0..PATCH {
                        let there = whole[(y + 48 + 30) * 128 + x + 48 - 9];
                        assert!(patch[y * PATCH + x].abs_diff(there) <= 1, "{joint} {x} {y}");
                    }
                }
            }
        }
    }
}
