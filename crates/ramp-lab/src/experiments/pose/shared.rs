//! What neighbouring joints share: a linear model in which every edge of the tree has hidden factors of its own that show in the patches of both its ends.
//!
//! The tree says which joints are neighbours; nothing else is known of a body. What a patch shows is a sum of what it shares with each of its neighbours, and
//! noise: factor analysis in which a factor loads on two patches only, fitted by EM to all poses with whatever is seen of them. A joint's latent begins as the
//! factors of its edges. Patches are seen at a low resolution: what varies most comes first, and the wider a feature the more of it neighbours show. (Canonical
//! correlations of finer patches, which stood here before, find whatever goes together most exactly, however little there is of it: details that are hard to read.)

use super::data::{JOINTS, LIMBS, neighbours};
use super::init::{inverse, products, rows_of, scaled_eigenvectors};
use crate::error::LabError;
use faer::linalg::solvers::Solve;
use faer::{Mat, Scale, Side};
use std::collections::BTreeMap;

/// The penalty of the regressions that factors are first guessed by, as a part of the mean variance of a cell.
const PENALTY: f64 = 1.0;
/// Rounds of EM.
const ROUNDS: usize = 60;
/// The variance of factors that are only guessed.
const GUESSED: f64 = 0.3;
/// The least variance of a cell's noise, as a part of its variance.
const LEAST_NOISE: f64 = 1e-3;

/// Numbers seen around every joint, a row per pose with mean zero, zero where the joint is not seen; whether it is; and which poses show some joints and all
/// their neighbours.
pub(super) struct Around<'a> {
    pub cells: &'a [Mat<f64>],
    pub seen: &'a dyn Fn(usize, usize) -> bool,
    pub whole: &'a dyn Fn(&[usize]) -> Vec<usize>,
}

/// Which factors each edge has: the first, and how many.
struct Factors {
    spans: Vec<(usize, usize)>,
    count: usize,
}

impl Factors {
    /// As many as fill the latents at both ends.
    fn new(dim: usize) -> Self {
        let most = |joint: usize| dim.div_ceil(neighbours(joint).count());
        let mut count = 0;
        let mut spans = vec![];
        for &(a, b) in &LIMBS {
            let own = most(a).max(most(b));
            spans.push((count, own));
            count += own;
        }
        Factors { spans, count }
    }

    /// Those that show in the patch of a joint.
    fn of(&self, joint: usize) -> Vec<usize> {
        let own = LIMBS.iter().zip(&self.spans);
        own.filter(|((a, b), _)| joint == *a || joint == *b)
            .flat_map(|(_, &(first, count))| first..first + count)
            .collect()
    }
}

/// How factors show in the patch of a joint, `[cell, factor]`, and the variance of a cell's noise.
struct Loadings {
    own: Vec<usize>,
    by: Mat<f64>,
    noise: f64,
}

impl Around<'_> {
    fn poses(&self) -> usize {
        self.cells[0].nrows()
    }

    /// For every joint, in columns, the factors of its edges; at least as many as a latent has dimensions.
    pub fn shared(&self, dim: usize) -> Result<Vec<Mat<f64>>, LabError> {
        let factors = Factors::new(dim);
        // Poses that show the same joints are as sure of their factors.
        let mut alike: BTreeMap<Vec<bool>, Vec<usize>> = BTreeMap::new();
        for pose in 0..self.poses() {
            let seen = (0..JOINTS).map(|joint| (self.seen)(pose, joint)).collect();
            alike.entry(seen).or_default().push(pose);
        }
        let mut means = self.guessed(&factors)?;
        let guess = Mat::<f64>::identity(factors.count, factors.count) * Scale(GUESSED);
        let mut spreads = vec![guess; alike.len()];
        for _ in 0..ROUNDS {
            let loadings: Vec<Loadings> = (0..JOINTS)
                .map(|joint| self.loadings(joint, &factors, &alike, &means, &spreads))
                .collect::<Result<_, _>>()?;
            spreads = alike
                .keys()
                .map(|seen| spread(seen, &loadings, factors.count))
                .collect::<Result<_, _>>()?;
            means = self.means(&alike, &loadings, &spreads, factors.count);
        }
        let columns = |joint: usize| {
            let own = factors.of(joint);
            Mat::from_fn(self.poses(), own.len(), |i, k| means[(i, own[k])])
        };
        Ok((0..JOINTS).map(columns).collect())
    }

    /// First guesses: the directions in which the patches of two neighbours go together most, after what the other neighbours show is taken off.
    fn guessed(&self, factors: &Factors) -> Result<Mat<f64>, LabError> {
        let mut means = Mat::zeros(self.poses(), factors.count);
        for (&(a, b), &(first, count)) in LIMBS.iter().zip(&factors.spans) {
            let (of_a, of_b) = (self.own(a, b)?, self.own(b, a)?);
            let rows = (self.whole)(&[a, b]);
            let across = products(&rows_of(&of_a, &rows), &rows_of(&of_b, &rows));
            let left = scaled_eigenvectors(&(&across * across.transpose()), |_| 1.0)?;
            let left = left.subcols(0, count.min(left.ncols())).to_owned();
            let right = across.transpose() * &left;
            let (of_a, of_b) = (of_a * &left, of_b * &right);
            for k in 0..left.ncols() {
                let unit = |of: &Mat<f64>| {
                    let square = rows.iter().map(|&i| of[(i, k)].powi(2)).sum::<f64>();
                    (square / rows.len().max(1) as f64)
                        .max(1e-12)
                        .sqrt()
                        .recip()
                };
                let (by_a, by_b) = (unit(&of_a), unit(&of_b));
                for i in 0..self.poses() {
                    means[(i, first + k)] = 0.5 * (by_a * of_a[(i, k)] + by_b * of_b[(i, k)]);
                }
            }
        }
        Ok(means)
    }

    /// What a joint shows that its neighbours but one do not.
    fn own(&self, joint: usize, but: usize) -> Result<Mat<f64>, LabError> {
        let others: Vec<usize> = neighbours(joint).filter(|&n| n != but).collect();
        let cells = &self.cells[joint];
        if others.is_empty() {
            return Ok(cells.clone());
        }
        let width = cells.ncols();
        let beside = Mat::from_fn(cells.nrows(), width * others.len(), |i, k| {
            self.cells[others[k / width]][(i, k % width)]
        });
        let rows = (self.whole)(&[joint]);
        let (given, shown) = (rows_of(&beside, &rows), rows_of(cells, &rows));
        let square = penalised(&products(&given, &given));
        let factor = square.llt(Side::Lower).map_err(|_| LabError::Singular {
            what: "what neighbouring joints show",
        })?;
        Ok(cells - beside * factor.solve(products(&given, &shown)))
    }

    /// The regression of what is seen around a joint on its factors, given what is believed of them.
    fn loadings(
        &self,
        joint: usize,
        factors: &Factors,
        alike: &BTreeMap<Vec<bool>, Vec<usize>>,
        means: &Mat<f64>,
        spreads: &[Mat<f64>],
    ) -> Result<Loadings, LabError> {
        let own = factors.of(joint);
        let rows: Vec<usize> = (0..self.poses())
            .filter(|&pose| (self.seen)(pose, joint))
            .collect();
        let n = rows.len().max(1) as f64;
        let believed = Mat::from_fn(rows.len(), own.len(), |i, k| means[(rows[i], own[k])]);
        let shown = rows_of(&self.cells[joint], &rows);
        let mut square = products(&believed, &believed);
        for ((seen, poses), spread) in alike.iter().zip(spreads) {
            if !seen[joint] {
                continue;
            }
            let part = poses.len() as f64 / n;
            for (i, &f) in own.iter().enumerate() {
                for (k, &g) in own.iter().enumerate() {
                    square[(i, k)] += part * spread[(f, g)];
                }
            }
        }
        let across = products(&believed, &shown);
        let by = (inverse(&square)? * &across).transpose().to_owned();
        let width = shown.ncols() as f64;
        let variance = shown.squared_norm_l2() / n / width;
        let told = (0..own.len())
            .map(|k| {
                (0..shown.ncols())
                    .map(|c| by[(c, k)] * across[(k, c)])
                    .sum::<f64>()
            })
            .sum::<f64>();
        let noise = (variance - told / width)
            .max(LEAST_NOISE * variance)
            .max(1e-9);
        Ok(Loadings { own, by, noise })
    }

    /// What is believed of the factors of every pose.
    fn means(
        &self,
        alike: &BTreeMap<Vec<bool>, Vec<usize>>,
        loadings: &[Loadings],
        spreads: &[Mat<f64>],
        count: usize,
    ) -> Mat<f64> {
        // Cells of unseen joints are zero and say nothing.
        let mut shifts = Mat::<f64>::zeros(self.poses(), count);
        for (cells, Loadings { own, by, noise }) in self.cells.iter().zip(loadings) {
            let said = cells * by * Scale(noise.recip());
            for (k, &f) in own.iter().enumerate() {
                for i in 0..self.poses() {
                    shifts[(i, f)] += said[(i, k)];
                }
            }
        }
        let mut means = Mat::zeros(self.poses(), count);
        for (poses, spread) in alike.values().zip(spreads) {
            let own = rows_of(&shifts, poses) * spread;
            for (i, &pose) in poses.iter().enumerate() {
                means.row_mut(pose).copy_from(own.row(i));
            }
        }
        means
    }
}

/// The covariance of factors given the patches of these joints.
fn spread(seen: &[bool], loadings: &[Loadings], count: usize) -> Result<Mat<f64>, LabError> {
    let mut precision = Mat::<f64>::identity(count, count);
    for (_, Loadings { own, by, noise }) in seen.iter().zip(loadings).filter(|(seen, _)| **seen) {
        let square = by.transpose() * by;
        for (i, &f) in own.iter().enumerate() {
            for (k, &g) in own.iter().enumerate() {
                precision[(f, g)] += square[(i, k)] / noise;
            }
        }
    }
    inverse(&precision)
}

/// A covariance with a part of its mean variance added to the diagonal.
fn penalised(covariance: &Mat<f64>) -> Mat<f64> {
    let n = covariance.nrows();
    let mean = (0..n).map(|i| covariance[(i, i)]).sum::<f64>() / n.max(1) as f64;
    covariance + Mat::<f64>::identity(n, n) * Scale((PENALTY * mean).max(1e-12))
}
