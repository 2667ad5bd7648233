use super::*;
use crate::baselines::Series;
use crate::metrics::r_squared;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A noisy rotation seen through noise, and its states.
fn rotation(sequences: usize, seed: u64) -> (Series, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let (mut seen, mut states) = (vec![], vec![]);
    for _ in 0..sequences {
        let (mut x, mut y) = (normal(), normal());
        for _ in 0..30 {
            states.push(y);
            seen.push((x + 0.3 * normal()) as f32);
            let (c, s) = (0.3f64.cos(), 0.3f64.sin());
            (x, y) = (
                c * x - s * y + 0.05 * normal(),
                s * x + c * y + 0.05 * normal(),
            );
        }
    }
    (Series::new(30, 1, seen).unwrap(), states)
}

#[test]
fn a_smoother_finds_the_hidden_half_of_a_rotation() {
    let ((train, _), (test, hidden)) = (rotation(80, 1), rotation(40, 2));
    let [a, b] = Scores::of(&train, &test).unwrap();
    let windows = window_components([&a, &b], 2).unwrap();
    let [same, wide] = kalman_smoothers([&a, &b], 2).unwrap();
    assert_eq!(same.dim, 2);
    // A rotation has two numbers: more of them make nothing likelier.
    assert!(wide.held_out < same.held_out + 0.02, "{}", wide.held_out);
    let smoothed = same.points;
    let read = |points: &Points| {
        // The best linear reading, by the two-by-two normal equations.
        let at = |i: usize, k: usize| points.values[i * 2 + k];
        let n = hidden.len();
        let sum = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>();
        let (xx, xy, yy) = (
            sum(&|i| at(i, 0) * at(i, 0)),
            sum(&|i| at(i, 0) * at(i, 1)),
            sum(&|i| at(i, 1) * at(i, 1)),
        );
        let (bx, by) = (
            sum(&|i| at(i, 0) * hidden[i]),
            sum(&|i| at(i, 1) * hidden[i]),
        );
        let det = xx * yy - xy * xy;
        let (u, v) = ((bx * yy - by * xy) / det, (by * xx - bx * xy) / det);
        let predicted: Vec<f64> = (0..n).map(|i| u * at(i, 0) + v * at(i, 1)).collect();
        r_squared(&hidden, &predicted)
    };
    let (smoother, window) = (read(&smoothed[1]), read(&windows[1]));
    assert!(smoother > 0.9, "{smoother}");
    assert!(smoother > window, "{smoother} {window}");
}
