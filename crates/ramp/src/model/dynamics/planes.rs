//! Circles among coordinates of a manifold: the planes that hold them, told apart.
//!
//! Squared distances along a product of manifolds are sums of theirs, so classical scaling lays circles side by side in planes at right angles to each
//! other. But where two circles are of about the same size their planes have the same eigenvalues, and come mixed. A circle is told by what no
//! mixture has: all of it is as far from its centre. So coordinates are turned until squared distances within planes vary least.

use super::slow::orthonormalise;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Points that planes are sought on, at most.
const POINTS: usize = 400;
/// Rotations that the search starts from, the first being none; rounds over all pairs of axes of each, and angles that are tried for a pair at first.
const STARTS: usize = 40;
const ROUNDS: usize = 12;
const ANGLES: usize = 12;
/// Halvings of the interval around the best angle.
const HALVINGS: usize = 14;
/// A round that lowers the sum by less than this share of it is the last.
const SETTLED: f64 = 1e-3;

/// An orthogonal map of coordinates, axis by axis: two for every circle, then those that are left, whose first lie along the first coordinates.
pub fn circle_planes(
    points: &[Vec<f64>],
    coordinates: usize,
    circles: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<f64>> {
    let every = points.len().div_ceil(POINTS).max(1);
    let mut centred: Vec<Vec<f64>> = points
        .iter()
        .step_by(every)
        .map(|x| x[..coordinates].to_vec())
        .collect();
    for k in 0..coordinates {
        let mean = centred.iter().map(|x| x[k]).sum::<f64>() / centred.len() as f64;
        centred.iter_mut().for_each(|x| x[k] -= mean);
    }
    let start = |number: usize, rng: &mut ChaCha8Rng| -> Vec<Vec<f64>> {
        let mut axes: Vec<Vec<f64>> = (0..coordinates)
            .map(|i| {
                let entry = |j: usize, rng: &mut ChaCha8Rng| match number {
                    0 => f64::from(u8::from(i == j)),
                    _ => StandardNormal.sample(rng),
                };
                (0..coordinates).map(|j| entry(j, rng)).collect()
            })
            .collect();
        orthonormalise(&mut axes);
        axes
    };
    let starts: Vec<Vec<Vec<f64>>> = (0..STARTS).map(|number| start(number, rng)).collect();
    starts
        .into_par_iter()
        .map(|axes| turned(&centred, axes, circles))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(vec![], |(_, axes)| axes)
}

/// Axes turned until the planes of the first of them hold circles as nearly as they can, and how far they are from it.
fn turned(points: &[Vec<f64>], mut axes: Vec<Vec<f64>>, circles: usize) -> (f64, Vec<Vec<f64>>) {
    let along = |axis: &Vec<f64>| -> Vec<f64> {
        let at = |x: &Vec<f64>| axis.iter().zip(x).map(|(a, b)| a * b).sum();
        points.iter().map(at).collect()
    };
    // Axis by axis, the place of every point along it.
    let mut places: Vec<Vec<f64>> = axes.iter().map(along).collect();
    let planes = 2 * circles;
    let mut before = f64::INFINITY;
    for _ in 0..ROUNDS {
        for i in 0..planes {
            for j in i + 1..places.len() {
                if i / 2 == j / 2 {
                    continue;
                }
                // The other axes of the planes that i and j lie in.
                let (beside, other) = (i ^ 1, j ^ 1);
                let unevenness = |angle: f64| {
                    let (sin, cos) = angle.sin_cos();
                    let across: Vec<f64> = (places[i].iter().zip(&places[j]))
                        .map(|(a, b)| cos * a + sin * b)
                        .collect();
                    let mut sum = uneven(&across, &places[beside]);
                    if j < planes {
                        let up: Vec<f64> = (places[i].iter().zip(&places[j]))
                            .map(|(a, b)| cos * b - sin * a)
                            .collect();
                        sum += uneven(&up, &places[other]);
                    }
                    sum
                };
                let angle = least(unevenness);
                let (sin, cos) = angle.sin_cos();
                for list in [&mut axes, &mut places] {
                    let (first, second) = list.split_at_mut(j);
                    for (a, b) in first[i].iter_mut().zip(&mut second[0]) {
                        (*a, *b) = (cos * *a + sin * *b, cos * *b - sin * *a);
                    }
                }
            }
        }
        let now: f64 = (0..circles)
            .map(|c| uneven(&places[2 * c], &places[2 * c + 1]))
            .sum();
        if before - now < SETTLED * now {
            return (now, axes);
        }
        before = now;
    }
    (before, axes)
}

/// How unlike a circle points of a plane are: the variance of their squared distances from the centre, where the mean of these is one.
fn uneven(across: &[f64], up: &[f64]) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for (a, b) in across.iter().zip(up) {
        let distance = a * a + b * b;
        sum += distance;
        squares += distance * distance;
    }
    across.len() as f64 * squares / f64::max(sum * sum, 1e-300) - 1.0
}

/// The angle within a quarter turn either way at which something is least.
fn least(of: impl Fn(f64) -> f64) -> f64 {
    let mut step = std::f64::consts::PI / ANGLES as f64;
    let angles = (0..ANGLES).map(|k| (k as f64 - (ANGLES / 2) as f64) * step);
    let mut best = angles
        .map(|angle| (of(angle), angle))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or((0.0, 0.0));
    for _ in 0..HALVINGS {
        step /= 2.0;
        for angle in [best.1 - step, best.1 + step] {
            let value = of(angle);
            if value < best.0 {
                best = (value, angle);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::f64::consts::TAU;

    /// Points mixed by a rotation that nothing is known of, and what its axes are in the coordinates as mixed.
    fn mixed(points: &[Vec<f64>], rng: &mut ChaCha8Rng) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let n = points[0].len();
        let mut axes: Vec<Vec<f64>> = (0..n)
            .map(|_| (0..n).map(|_| StandardNormal.sample(rng)).collect())
            .collect();
        orthonormalise(&mut axes);
        let at = |x: &Vec<f64>| {
            (0..n)
                .map(|k| (0..n).map(|i| x[i] * axes[i][k]).sum())
                .collect()
        };
        (points.iter().map(at).collect(), axes)
    }

    /// The share of one plane's axes that lies in another plane.
    fn shared(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let pairs = a.iter().flat_map(|x| b.iter().map(move |y| dot(x, y)));
        pairs.map(|d| d * d).sum::<f64>() / a.len() as f64
    }

    #[test]
    fn the_circles_of_a_torus_are_told_apart() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        // Equally large: any rotation of the two planes is as good for scaling.
        let points: Vec<Vec<f64>> = (0..900)
            .map(|i| {
                let (a, b) = (
                    TAU * (f64::from(i) * 0.618).fract(),
                    TAU * (f64::from(i) * 0.7549).fract(),
                );
                vec![a.cos(), a.sin(), b.cos(), b.sin()]
            })
            .collect();
        for _ in 0..5 {
            let (points, truth) = mixed(&points, &mut rng);
            let axes = circle_planes(&points, 4, 2, &mut rng);
            let own = shared(&axes[..2], &truth[..2]).max(shared(&axes[..2], &truth[2..]));
            assert!(own > 0.999, "{own}");
        }
    }

    #[test]
    fn a_circle_is_told_from_a_line_and_from_a_rectangle() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for lines in [1, 2] {
            let points: Vec<Vec<f64>> = (0..900)
                .map(|i| {
                    let share = |by: f64| (f64::from(i) * by).fract();
                    let angle = TAU * share(0.618);
                    let mut x = vec![angle.cos(), angle.sin()];
                    x.extend(
                        [2.4, 2.0]
                            .iter()
                            .zip([0.7549, 0.5698])
                            .take(lines)
                            .map(|(s, by)| s * (share(by) - 0.5)),
                    );
                    x
                })
                .collect();
            let (points, truth) = mixed(&points, &mut rng);
            let axes = circle_planes(&points, 2 + lines, 1, &mut rng);
            let own = shared(&axes[..2], &truth[..2]);
            assert!(own > 0.99, "{lines}: {own}");
        }
    }
}
