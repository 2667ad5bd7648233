//! Isomap: distances along a manifold, by the shortest ways over near neighbours, laid out in a few dimensions.

use super::linalg::eigen;
use super::slow::{dot, orthonormalise};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Neighbours of a point in the graph.
pub const NEIGHBOURS: usize = 10;
/// Directions beyond those that are wanted, and rounds, of the subspace iteration.
const BEYOND: usize = 4;
const ROUNDS: usize = 40;

/// Up to `dims` coordinates of `n` points, two at least, that are so far apart, each of at least a share of the variance of the first.
pub fn isomap(
    n: usize,
    apart: &[f64],
    dims: usize,
    least: f64,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<f64>> {
    let graph = connected(n, apart, neighbours(n, apart));
    let ways: Vec<Vec<f64>> = (0..n)
        .into_par_iter()
        .map(|from| shortest(&graph, from))
        .collect();
    scaled(&ways, dims, least, rng)
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

/// The lengths of the shortest ways from one point to all (Dijkstra).
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
fn scaled(ways: &[Vec<f64>], dims: usize, least: f64, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
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
    kept.take_while(|(value, _)| **value > 0.0 && **value > least * values[0])
        .map(|(value, vector)| {
            let along = |i: usize| -> f64 {
                let parts = basis.iter().zip(vector);
                parts.map(|(b, part)| b[i] * part).sum()
            };
            (0..n).map(|i| value.sqrt() * along(i)).collect()
        })
        .collect()
}
