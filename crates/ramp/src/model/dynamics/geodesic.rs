//! Coordinates of the manifold that observations lie on: distances along it, laid out in a few dimensions (Isomap).
//!
//! A dot that moves along a line traces a curve that bends through as many dimensions as a picture has places for it, so that no
//! linear component is its place. Distances to near neighbours are right all the same; the shortest ways over them (the geodesics of a
//! graph of neighbours) are distances along the manifold, and classical scaling turns these into coordinates. Everything is
//! found on some landmarks; a kernel regression then reads the coordinates off any row.

use super::linalg::{cholesky, eigen, solve};
use super::slow::{dot, orthonormalise};
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rows that coordinates are found on, at most; and at least.
const LANDMARKS: usize = 1000;
const FEWEST: usize = 30;
/// Neighbours of a landmark in the graph.
const NEIGHBOURS: usize = 10;
/// Directions beyond those that are wanted, and rounds, of the subspace iteration.
const BEYOND: usize = 4;
const ROUNDS: usize = 40;
/// A coordinate with less than this share of the variance of the first is bending, not extent.
const LEAST: f64 = 0.02;
/// The kernel that reads coordinates is as wide as this many times the distance to the neighbour of this rank; the penalty is small, as geodesics have little noise.
const WIDTH: f64 = 2.0;
const RANK: usize = 2 * NEIGHBOURS;
const PENALTY: f64 = 1e-2;

/// A map from rows to coordinates of the manifold that they lie on, the longest first.
#[derive(Clone, Debug)]
pub(crate) struct Geodesic {
    landmarks: Vec<Vec<f64>>,
    /// For each coordinate, a weight for every landmark.
    weights: Vec<Vec<f64>>,
    /// The kernel's exponent per squared distance.
    narrow: f64,
}

impl Geodesic {
    /// Up to `dims` coordinates of some rows; `None` where there are too few of them, or all are the same.
    pub fn of(rows: &[Vec<f64>], dims: usize, rng: &mut ChaCha8Rng) -> Option<Self> {
        if rows.len() < FEWEST {
            return None;
        }
        let landmarks: Vec<Vec<f64>> = sample(rng, rows.len(), rows.len().min(LANDMARKS))
            .iter()
            .map(|i| rows[i].clone())
            .collect();
        let n = landmarks.len();
        let apart: Vec<f64> = (0..n * n)
            .into_par_iter()
            .map(|k| squared(&landmarks[k / n], &landmarks[k % n]).sqrt())
            .collect();
        let graph = connected(n, &apart, neighbours(n, &apart));
        let ways: Vec<Vec<f64>> = (0..n)
            .into_par_iter()
            .map(|from| shortest(&graph, from))
            .collect();
        let coordinates = scaled(&ways, dims, rng);
        // How far the neighbour of a rank is, usually.
        let mut usual: Vec<f64> = (0..n)
            .map(|i| {
                let mut own = apart[i * n..][..n].to_vec();
                let (_, far, _) = own.select_nth_unstable_by(RANK.min(n - 1), f64::total_cmp);
                *far
            })
            .collect();
        let (_, usual, _) = usual.select_nth_unstable_by(n / 2, f64::total_cmp);
        let narrow = 0.5 / (WIDTH * *usual).powi(2);
        if coordinates.is_empty() || !narrow.is_finite() {
            return None;
        }
        let mut gram: Vec<f64> = apart
            .par_iter()
            .map(|far| (-narrow * far * far).exp())
            .collect();
        (0..n).for_each(|i| gram[i * n + i] += PENALTY);
        let factor = cholesky(n, &gram)?;
        let weights = coordinates
            .into_par_iter()
            .map(|mut y| {
                solve(n, &factor, &mut y);
                y
            })
            .collect();
        Some(Geodesic {
            landmarks,
            weights,
            narrow,
        })
    }

    /// How many coordinates there are.
    #[cfg(test)]
    fn dims(&self) -> usize {
        self.weights.len()
    }

    /// The coordinates of a row.
    pub fn at(&self, row: &[f64]) -> Vec<f64> {
        let near = |landmark: &Vec<f64>| (-self.narrow * squared(landmark, row)).exp();
        let near: Vec<f64> = self.landmarks.iter().map(near).collect();
        self.weights.iter().map(|w| dot(w, &near)).collect()
    }
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Who is near whom, both ways, and how far.
type Graph = Vec<Vec<(usize, f64)>>;

fn neighbours(n: usize, apart: &[f64]) -> Graph {
    let nearest: Vec<Vec<usize>> = (0..n)
        .into_par_iter()
        .map(|i| {
            let mut others: Vec<usize> = (0..n).filter(|&j| j != i).collect();
            let last = NEIGHBOURS.min(n - 1) - 1;
            others.select_nth_unstable_by(last, |&a, &b| {
                apart[i * n + a].total_cmp(&apart[i * n + b])
            });
            others.truncate(last + 1);
            others
        })
        .collect();
    let mut graph: Graph = vec![vec![]; n];
    for (i, near) in nearest.iter().enumerate() {
        for &j in near {
            graph[i].push((j, apart[i * n + j]));
            graph[j].push((i, apart[i * n + j]));
        }
    }
    graph
}

/// The graph with its islands joined where they are nearest to each other.
fn connected(n: usize, apart: &[f64], mut graph: Graph) -> Graph {
    let mut reached = vec![false; n];
    let mut open = vec![0];
    loop {
        while let Some(i) = open.pop() {
            if !std::mem::replace(&mut reached[i], true) {
                open.extend(graph[i].iter().map(|(j, _)| *j).filter(|&j| !reached[j]));
            }
        }
        let bridges = (0..n)
            .filter(|&i| reached[i])
            .flat_map(|i| (0..n).map(move |j| (i, j)));
        let nearest = bridges
            .filter(|(_, j)| !reached[*j])
            .min_by(|a, b| apart[a.0 * n + a.1].total_cmp(&apart[b.0 * n + b.1]));
        let Some((i, j)) = nearest else {
            return graph;
        };
        graph[i].push((j, apart[i * n + j]));
        graph[j].push((i, apart[i * n + j]));
        open.push(j);
    }
}

/// A distance that can be ordered.
#[derive(Clone, Copy, PartialEq)]
struct Far(f64);

impl Eq for Far {}

impl PartialOrd for Far {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Far {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The lengths of the shortest ways from one landmark to all (Dijkstra).
fn shortest(graph: &Graph, from: usize) -> Vec<f64> {
    let mut lengths = vec![f64::INFINITY; graph.len()];
    lengths[from] = 0.0;
    let mut open = BinaryHeap::from([Reverse((Far(0.0), from))]);
    while let Some(Reverse((Far(length), i))) = open.pop() {
        if length > lengths[i] {
            continue;
        }
        for &(j, far) in &graph[i] {
            if length + far < lengths[j] {
                lengths[j] = length + far;
                open.push(Reverse((Far(lengths[j]), j)));
            }
        }
    }
    lengths
}

/// Classical scaling: coordinates whose distances are these as nearly as can be, each for all points.
fn scaled(ways: &[Vec<f64>], dims: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    let n = ways.len();
    let inner: Vec<Vec<f64>> = ways
        .iter()
        .map(|row| row.iter().map(|far| -0.5 * far * far).collect())
        .collect();
    let means: Vec<f64> = inner
        .iter()
        .map(|row| row.iter().sum::<f64>() / n as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    let centred = |i: usize, j: usize| inner[i][j] - means[i] - means[j] + mean;
    let times = |v: &[f64]| -> Vec<f64> {
        (0..n)
            .into_par_iter()
            .map(|i| (0..n).map(|j| centred(i, j) * v[j]).sum())
            .collect()
    };
    let count = (dims + BEYOND).min(n);
    let mut basis: Vec<Vec<f64>> = (0..count)
        .map(|_| (0..n).map(|_| StandardNormal.sample(rng)).collect())
        .collect();
    for _ in 0..ROUNDS {
        orthonormalise(&mut basis);
        basis = basis.iter().map(|v| times(v)).collect();
    }
    orthonormalise(&mut basis);
    let moved: Vec<Vec<f64>> = basis.iter().map(|v| times(v)).collect();
    let small: Vec<f64> = (0..count * count)
        .map(|k| dot(&basis[k / count], &moved[k % count]))
        .collect();
    let (values, vectors) = eigen(count, &small);
    let kept = values.iter().zip(&vectors).take(dims);
    kept.take_while(|(value, _)| **value > 0.0 && **value > LEAST * values[0])
        .map(|(value, vector)| {
            let along = |i: usize| -> f64 {
                let parts = basis.iter().zip(vector);
                parts.map(|(b, part)| b[i] * part).sum()
            };
            (0..n).map(|i| value.sqrt() * along(i)).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    /// How much of one list of numbers a line through another explains.
    fn explained(x: &[f64], y: &[f64]) -> f64 {
        let n = x.len() as f64;
        let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let sum = |a: &[f64], ma: f64, b: &[f64], mb: f64| -> f64 {
            a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum()
        };
        sum(x, mx, y, my).powi(2) / (sum(x, mx, x, mx) * sum(y, my, y, my))
    }

    /// A row of pixels with a dot: dots that share no pixel are all equally far apart.
    fn picture(place: f64) -> Vec<f64> {
        (0..30)
            .map(|pixel| (-(f64::from(pixel) - 3.0 - 24.0 * place).powi(2)).exp())
            .collect()
    }

    #[test]
    fn the_place_of_a_dot_is_one_coordinate_though_no_component_tells_it() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut places: Vec<f64> = (0..700).map(|_| rng.random_range(0.0..1.0)).collect();
        // Most of the time it is at one end: components then tell that end from the rest.
        places.iter_mut().for_each(|p| *p = p.powi(2));
        let rows: Vec<Vec<f64>> = places.iter().map(|&p| picture(p)).collect();
        let found = Geodesic::of(&rows[..500], 3, &mut rng).unwrap();
        assert_eq!(found.dims(), 1);
        let told: Vec<f64> = rows[500..].iter().map(|row| found.at(row)[0]).collect();
        assert!(explained(&told, &places[500..]) > 0.99);
    }

    #[test]
    fn a_circle_has_two_coordinates() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let turn = |i: usize| std::f64::consts::TAU * i as f64 / 300.0;
        let rows: Vec<Vec<f64>> = (0..300)
            .map(|i| vec![turn(i).cos(), turn(i).sin()])
            .collect();
        let found = Geodesic::of(&rows, 4, &mut rng).unwrap();
        assert!(found.dims() >= 2);
        let along = |k: usize| -> Vec<f64> { rows.iter().map(|row| found.at(row)[k]).collect() };
        // In the first two, all are as far from the centre.
        let distances = along(0).into_iter().zip(along(1)).map(|(a, b)| a.hypot(b));
        let (least, most) =
            distances.fold((f64::INFINITY, 0.0_f64), |(l, m), d| (l.min(d), m.max(d)));
        assert!(least > 0.95 * most, "{least} {most}");
    }

    #[test]
    fn islands_are_joined_and_what_has_no_extent_has_no_coordinates() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let place = |i: usize| i as f64 / 100.0 + if i < 100 { 0.0 } else { 7.0 };
        let rows: Vec<Vec<f64>> = (0..200).map(|i| vec![place(i), 0.0]).collect();
        let found = Geodesic::of(&rows, 2, &mut rng).unwrap();
        assert_eq!(found.dims(), 1);
        let told: Vec<f64> = rows.iter().map(|row| found.at(row)[0]).collect();
        let truth: Vec<f64> = (0..200).map(place).collect();
        assert!(explained(&told, &truth) > 0.99);
        assert!(Geodesic::of(&rows[..10], 2, &mut rng).is_none());
        assert!(Geodesic::of(&vec![vec![1.0, 2.0]; 50], 2, &mut rng).is_none());
    }
}
