//! The start: neighbour joining, the bootstrap, and no edge that the data do not insist on.

use super::association::Associations;
use super::joining::neighbour_joining;
use super::sketch::{Sketch, Split};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// An edge stays if it is this many of its standard errors long. Joining chooses the longest of many edges that noise makes: three errors
/// leave one of them in every few trees.
const ERRORS: f64 = 3.7;
/// And if it is in this part of the bootstrap's trees.
const SUPPORT: f64 = 0.7;

/// A tree from distances, with what the bootstrap says of it.
pub struct Start {
    /// The tree, its short edges contracted.
    pub sketch: Sketch,
    /// The tree before that.
    pub joined: Sketch,
    /// Distances, `[column, column]`.
    pub distances: Vec<f64>,
    /// In which part of the bootstrap's trees each division is that occurs in any.
    support: BTreeMap<Split, f64>,
}

impl Start {
    /// Joins columns; groups in `together` stay. `stopped` is asked between bootstraps; `None` where it says so.
    pub fn new(
        columns: &Associations,
        together: &[Split],
        bootstraps: usize,
        seed: u64,
        stopped: &dyn Fn(usize) -> bool,
    ) -> Option<Self> {
        let count = columns.len();
        let ones = vec![1.0; columns.rows()];
        let distances = columns.distances(&ones);
        let joined = neighbour_joining(&distances, count, together);
        let mut support: BTreeMap<Split, f64> = BTreeMap::new();
        let mut drawn = vec![];
        let mut weights = vec![0.0f32; columns.rows()];
        for b in 0..bootstraps {
            if stopped(b) {
                return None;
            }
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(1 + b as u64);
            weights.fill(0.0);
            for _ in 0..columns.rows() {
                weights[rng.random_range(0..columns.rows())] += 1.0;
            }
            let distances = columns.distances(&weights);
            for split in neighbour_joining(&distances, count, together).splits() {
                *support.entry(split).or_default() += 1.0 / bootstraps as f64;
            }
            drawn.push(distances);
        }
        let mut sketch = joined.clone();
        let mut start = Start {
            joined,
            sketch: sketch.clone(),
            distances,
            support,
        };
        // The weakest first: what is left is looked at again, with more columns on its sides.
        loop {
            let weakest = (0..sketch.edges.len())
                .filter(|&e| sketch.is_inner(e))
                .filter(|&e| !start.is_kept(&sketch, &sketch.split(e), together))
                .map(|e| (e, start.strength(&sketch, e, &drawn)))
                .min_by(|a, b| a.1.total_cmp(&b.1));
            match weakest {
                Some((edge, strength)) if strength < 1.0 => sketch.contract(edge),
                _ => break,
            }
        }
        start.sketch = sketch;
        Some(start)
    }

    /// The part of the bootstrap's trees that have a division.
    pub fn support(&self, split: &Split) -> f64 {
        self.support.get(split).copied().unwrap_or(0.0).min(1.0)
    }

    /// Whether a division is that of a group which must stay.
    fn is_kept(&self, sketch: &Sketch, split: &Split, together: &[Split]) -> bool {
        together.iter().any(|group| match group.contains(&0) {
            false => group == split,
            true => {
                let other = (0..sketch.columns).filter(|c| !group.contains(c));
                other.eq(split.iter().copied())
            }
        })
    }

    /// How strongly the data insist on an edge; below one it goes.
    fn strength(&self, sketch: &Sketch, edge: usize, drawn: &[Vec<f64>]) -> f64 {
        let weigh = |distances: &[f64]| length(sketch, edge, distances);
        let own = weigh(&self.distances);
        let lengths: Vec<f64> = drawn.iter().map(|d| weigh(d)).collect();
        let n = lengths.len().max(2) as f64;
        let mean = lengths.iter().sum::<f64>() / n;
        let error = (lengths.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        let by_length = own / (ERRORS * error.max(1e-9));
        by_length.min(self.support(&sketch.split(edge)) / SUPPORT)
    }
}

/// The length of an inner edge: how much further columns across it are than those on the same side of it. Columns near to the edge
/// count most: far ones have noisy distances.
fn length(sketch: &Sketch, edge: usize, distances: &[f64]) -> f64 {
    let (a, b, _) = sketch.edges[edge];
    let count = sketch.columns;
    let branches = |node: usize| -> Vec<Vec<(usize, f64)>> {
        let others = sketch.neighbours(node).filter(|&(_, e)| e != edge);
        others
            .map(|(next, e)| {
                let first = sketch.edges[e].2.max(0.0);
                let columns = sketch.behind(next, e);
                // As the square of the correlation with the node.
                columns
                    .into_iter()
                    .map(|(c, far)| (c, (-2.0 * (first + far)).exp()))
                    .collect()
            })
            .collect()
    };
    let (near, far) = (branches(a), branches(b));
    let between = |one: &[(usize, f64)], other: &[(usize, f64)]| -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for &(i, v) in one {
            for &(j, w) in other {
                sum += v * w * distances[i * count + j];
                weight += v * w;
            }
        }
        sum / weight
    };
    let within = |side: &[Vec<(usize, f64)>]| -> f64 {
        let (mut sum, mut pairs) = (0.0, 0.0);
        for (i, one) in side.iter().enumerate() {
            for other in &side[..i] {
                sum += between(one, other);
                pairs += 1.0;
            }
        }
        sum / f64::max(pairs, 1.0)
    };
    let across: f64 = near
        .iter()
        .flat_map(|one| far.iter().map(|other| between(one, other)))
        .sum::<f64>()
        / (near.len() * far.len()) as f64;
    across - 0.5 * within(&near) - 0.5 * within(&far)
}
