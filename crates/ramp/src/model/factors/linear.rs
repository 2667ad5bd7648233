//! The linear Gaussian model of a tree, by expectation and maximisation: every latent standard normal, every edge and every observation a line with
//! normal noise. All latents of a row are jointly normal, so a belief is one small matrix per pattern of missing observations.

use super::super::linalg::{cholesky, eigen, inverse, product, solve, times};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Rounds at most, and the largest change of a loading below which they end. Those of edges settle last; where a latent has two neighbours, only the product of
/// its two is told by data, and they drift along it for long.
const ROUNDS: usize = 400;
const SETTLED: f64 = 1e-4;
/// The least share of noise in an observation and in a latent given its neighbour: nothing is known for certain from a sample.
const LEAST_NOISE: f64 = 0.02;
/// How sure the first scores are taken to be.
const FIRST_RELIABILITY: f64 = 0.7;

/// Scores of observations, row by row, each of about unit size.
pub struct Scores {
    /// The latent that they hang on.
    pub latent: usize,
    /// Whether the first of them is the place among ordered levels.
    pub ordered: bool,
    /// How many numbers a row has.
    pub width: usize,
    /// The share of variance of each among the others, for the first guess alone.
    pub sizes: Vec<f64>,
    pub values: Vec<f64>,
    pub present: Vec<bool>,
}

impl Scores {
    fn row(&self, n: usize) -> &[f64] {
        &self.values[n * self.width..][..self.width]
    }
}

/// `z_child = A z_parent + noise` with covariance `Q`.
#[derive(Clone, Debug)]
pub struct Edge {
    pub parent: usize,
    pub child: usize,
    pub a: Vec<f64>,
    pub q: Vec<f64>,
}

/// `y = W z + noise` with the variances `noise`.
#[derive(Clone, Debug)]
pub struct Line {
    pub latent: usize,
    pub w: Vec<f64>,
    pub noise: Vec<f64>,
}

/// All of it; latents have unit covariance each.
#[derive(Clone, Debug)]
pub struct LinearTree {
    pub dims: Vec<usize>,
    /// Where a latent's coordinates begin among all.
    starts: Vec<usize>,
    /// Each after the edge that leads to its parent.
    pub edges: Vec<Edge>,
    pub lines: Vec<Line>,
}

/// Of a line: `Σ y zᵀ`, `Σ z zᵀ`, `Σ y²` and the number of rows.
type LineSums = (Vec<f64>, Vec<f64>, Vec<f64>, f64);

/// Sums over rows of what the M-step needs.
struct Sums {
    /// Second moments of all latents together.
    latents: Vec<f64>,
    lines: Vec<LineSums>,
}

impl LinearTree {
    /// Fits rows of scores; `links` are pairs of latents, each a parent that is known before and a child. `None` where a matrix cannot be inverted.
    pub fn fit(dims: &[usize], links: &[(usize, usize)], scores: &[Scores]) -> Option<Self> {
        let rows = scores.first()?.present.len();
        let mut tree = Self::first(dims, links, scores, rows)?;
        let mut patterns: BTreeMap<Vec<bool>, Vec<usize>> = BTreeMap::new();
        for n in 0..rows {
            let pattern = scores.iter().map(|s| s.present[n]).collect();
            patterns.entry(pattern).or_default().push(n);
        }
        let patterns: Vec<(Vec<bool>, Vec<usize>)> = patterns.into_iter().collect();
        for _ in 0..ROUNDS {
            let sums = tree.expect(scores, &patterns)?;
            let next = tree.maximise(&sums, rows as f64)?;
            let change = tree.distance(&next);
            tree = next;
            if change < SETTLED {
                break;
            }
        }
        Some(tree)
    }

    fn size(&self) -> usize {
        self.dims.iter().sum()
    }

    /// The largest difference of loadings, those of edges too.
    fn distance(&self, other: &Self) -> f64 {
        let lines = self.lines.iter().zip(&other.lines);
        let edges = self.edges.iter().zip(&other.edges);
        lines
            .flat_map(|(a, b)| a.w.iter().zip(&b.w))
            .chain(edges.flat_map(|(a, b)| a.a.iter().zip(&b.a)))
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max)
    }

    /// A first guess: principal components of what hangs on a latent, then of its neighbours' scores, taken for the latent with some doubt.
    fn first(
        dims: &[usize],
        links: &[(usize, usize)],
        scores: &[Scores],
        rows: usize,
    ) -> Option<Self> {
        let mut guess: Vec<Option<Vec<f64>>> = vec![None; dims.len()];
        for (k, &d) in dims.iter().enumerate() {
            let own: Vec<&Scores> = scores.iter().filter(|s| s.latent == k).collect();
            let width: usize = own.iter().map(|s| s.width).sum();
            if width == 0 {
                continue;
            }
            let mut points = vec![0.0; rows * width];
            for n in 0..rows {
                let mut at = n * width;
                for s in &own {
                    for (y, size) in s.row(n).iter().zip(&s.sizes) {
                        points[at] = if s.present[n] { y * size.sqrt() } else { 0.0 };
                        at += 1;
                    }
                }
            }
            guess[k] = Some(components(&points, width, rows, d));
        }
        while guess.iter().any(Option::is_none) {
            let before = guess.clone();
            for k in (0..dims.len()).filter(|&k| before[k].is_none()) {
                let other = |&(a, b): &(usize, usize)| match (a == k, b == k) {
                    (true, _) => Some(b),
                    (_, true) => Some(a),
                    _ => None,
                };
                let known: Vec<(usize, &Vec<f64>)> = links
                    .iter()
                    .filter_map(other)
                    .filter_map(|j| Some((dims[j], before[j].as_ref()?)))
                    .collect();
                let width: usize = known.iter().map(|(d, _)| d).sum();
                if width == 0 {
                    continue;
                }
                let point = |n: usize| known.iter().flat_map(move |(d, z)| &z[n * d..][..*d]);
                let points: Vec<f64> = (0..rows).flat_map(point).copied().collect();
                guess[k] = Some(components(&points, width, rows, dims[k]));
            }
            if guess
                .iter()
                .zip(&before)
                .all(|(a, b)| a.is_none() == b.is_none())
            {
                return None;
            }
        }
        let guess: Vec<Vec<f64>> = guess.into_iter().flatten().collect();
        let mut starts = vec![0];
        for d in dims {
            starts.push(starts[starts.len() - 1] + d);
        }
        let size = starts.pop()?;
        let shrink = FIRST_RELIABILITY.sqrt();
        let mut sums = Sums {
            latents: vec![0.0; size * size],
            lines: scores
                .iter()
                .map(|s| {
                    let d = dims[s.latent];
                    (
                        vec![0.0; s.width * d],
                        vec![0.0; d * d],
                        vec![0.0; s.width],
                        0.0,
                    )
                })
                .collect(),
        };
        let doubt: Vec<f64> = diagonal(size, 1.0 - FIRST_RELIABILITY);
        for n in 0..rows {
            let each = dims.iter().enumerate();
            let z: Vec<f64> = each
                .flat_map(|(k, d)| guess[k][n * d..][..*d].iter().map(|z| shrink * z))
                .collect();
            sums.add(n, &z, &doubt, &starts, dims, scores);
        }
        let edges = links
            .iter()
            .map(|&(parent, child)| Edge {
                parent,
                child,
                a: vec![],
                q: vec![],
            })
            .collect();
        let lines = scores
            .iter()
            .map(|s| Line {
                latent: s.latent,
                w: vec![0.0; s.width * dims[s.latent]],
                noise: vec![1.0; s.width],
            })
            .collect();
        let blank = LinearTree {
            dims: dims.to_vec(),
            starts,
            edges,
            lines,
        };
        blank.maximise(&sums, rows as f64)
    }

    /// The precision of all latents before anything is seen.
    fn prior(&self) -> Option<Vec<f64>> {
        let size = self.size();
        let mut precision = vec![0.0; size * size];
        let mut is_child = vec![false; self.dims.len()];
        for edge in &self.edges {
            is_child[edge.child] = true;
            let (dc, dp) = (self.dims[edge.child], self.dims[edge.parent]);
            let (c0, p0) = (self.starts[edge.child], self.starts[edge.parent]);
            let q = inverse(dc, &edge.q)?;
            let qa = matmul(dc, dc, dp, &q, &edge.a);
            for i in 0..dc {
                for j in 0..dc {
                    precision[(c0 + i) * size + c0 + j] += q[i * dc + j];
                }
                for j in 0..dp {
                    precision[(c0 + i) * size + p0 + j] -= qa[i * dp + j];
                    precision[(p0 + j) * size + c0 + i] -= qa[i * dp + j];
                }
            }
            let aqa = matmul(dp, dc, dp, &transposed(dc, dp, &edge.a), &qa);
            for i in 0..dp {
                for j in 0..dp {
                    precision[(p0 + i) * size + p0 + j] += aqa[i * dp + j];
                }
            }
        }
        for (k, &d) in self.dims.iter().enumerate().filter(|(k, _)| !is_child[*k]) {
            for i in self.starts[k]..self.starts[k] + d {
                precision[i * size + i] += 1.0;
            }
        }
        Some(precision)
    }

    fn expect(&self, scores: &[Scores], patterns: &[(Vec<bool>, Vec<usize>)]) -> Option<Sums> {
        let size = self.size();
        let prior = self.prior()?;
        let told: Vec<(Vec<f64>, Vec<f64>)> = self.lines.iter().map(|l| self.message(l)).collect();
        // Fixed shards, so that sums do not depend on the number of threads.
        let shard = patterns.len().div_ceil(16).max(1);
        let parts: Vec<Option<Sums>> = patterns
            .par_chunks(shard)
            .map(|some| {
                let mut sums = Sums::new(size, &self.lines, &self.dims);
                for (pattern, rows) in some {
                    let mut precision = prior.clone();
                    for (line, (_, p)) in
                        self.lines.iter().zip(&told).zip(pattern).filter_map(there)
                    {
                        let (d, at) = (self.dims[line.latent], self.starts[line.latent]);
                        for i in 0..d {
                            for j in 0..d {
                                precision[(at + i) * size + at + j] += p[i * d + j];
                            }
                        }
                    }
                    let covariance = inverse(size, &precision)?;
                    for &n in rows {
                        let mut h = vec![0.0; size];
                        let present = self.lines.iter().zip(&told).zip(scores);
                        for ((line, (wr, _)), s) in present.filter(|(_, s)| s.present[n]) {
                            let (d, at) = (self.dims[line.latent], self.starts[line.latent]);
                            for (y, w) in s.row(n).iter().zip(wr.chunks_exact(d)) {
                                h[at..at + d]
                                    .iter_mut()
                                    .zip(w)
                                    .for_each(|(h, w)| *h += w * y);
                            }
                        }
                        let mean = times(size, &covariance, &h);
                        sums.add(n, &mean, &covariance, &self.starts, &self.dims, scores);
                    }
                }
                Some(sums)
            })
            .collect();
        let mut all = Sums::new(size, &self.lines, &self.dims);
        for part in parts {
            all.merge(&part?);
        }
        Some(all)
    }

    fn maximise(&self, sums: &Sums, rows: f64) -> Option<Self> {
        let size = self.size();
        let block = |a: usize, b: usize| -> Vec<f64> {
            let (da, db) = (self.dims[a], self.dims[b]);
            (0..da * db)
                .map(|k| {
                    sums.latents[(self.starts[a] + k / db) * size + self.starts[b] + k % db] / rows
                })
                .collect()
        };
        let mut next = self.clone();
        // What a latent's coordinates must be multiplied with from the left to become those of unit covariance.
        let mut unit: Vec<Option<Vec<f64>>> = vec![None; self.dims.len()];
        let roots: Vec<usize> = (0..self.dims.len())
            .filter(|&k| !self.edges.iter().any(|e| e.child == k))
            .collect();
        for &k in &roots {
            unit[k] = Some(cholesky(
                self.dims[k],
                &floored(self.dims[k], block(k, k), 1e-6),
            )?);
        }
        for edge in &mut next.edges {
            let (dc, dp) = (self.dims[edge.child], self.dims[edge.parent]);
            let pp = floored(dp, block(edge.parent, edge.parent), 1e-6);
            let cp = block(edge.child, edge.parent);
            let a = matmul(dc, dp, dp, &cp, &inverse(dp, &pp)?);
            let explained = matmul(dc, dp, dc, &a, &transposed(dc, dp, &cp));
            let mut q = block(edge.child, edge.child);
            q.iter_mut().zip(&explained).for_each(|(q, e)| *q -= e);
            // Into coordinates where the parent has unit covariance, then the same for the child.
            let a = matmul(dc, dp, dp, &a, unit[edge.parent].as_ref()?);
            let aa = matmul(dc, dp, dc, &a, &transposed(dc, dp, &a));
            // A floor and no addition: what were added in every round would add up, the more the slower an edge settles.
            let spread = (0..dc).map(|i| q[i * dc + i] + aa[i * dc + i]).sum::<f64>() / dc as f64;
            let q = raised(dc, q, LEAST_NOISE * spread);
            let both: Vec<f64> = q.iter().zip(&aa).map(|(q, a)| q + a).collect();
            let l = cholesky(dc, &floored(dc, both, 1e-6))?;
            edge.a = lower_solve(dc, dp, &l, &a);
            let half = lower_solve(dc, dc, &l, &q);
            edge.q = lower_solve(dc, dc, &l, &transposed(dc, dc, &half));
            unit[edge.child] = Some(l);
        }
        for (line, (yz, zz, yy, n)) in next.lines.iter_mut().zip(&sums.lines) {
            let d = self.dims[line.latent];
            if *n < 2.0 {
                continue;
            }
            let scale = |x: &Vec<f64>| x.iter().map(|x| x / n).collect::<Vec<f64>>();
            let (yz, zz) = (scale(yz), floored(d, scale(zz), 1e-6));
            let factor = cholesky(d, &zz)?;
            for (i, yy) in yy.iter().enumerate() {
                let own = &yz[i * d..][..d];
                let mut w = own.to_vec();
                solve(d, &factor, &mut w);
                let explained: f64 = w.iter().zip(own).map(|(a, b)| a * b).sum();
                let total = (yy / n).max(1e-9);
                line.noise[i] = (total - explained).max(LEAST_NOISE * total);
                line.w[i * d..][..d].copy_from_slice(&w);
            }
            line.w = matmul(line.noise.len(), d, d, &line.w, unit[line.latent].as_ref()?);
        }
        Some(next)
    }

    /// What an observation says of its latent: `R⁻¹ W`, row by row of the observation's numbers, and the precision `Wᵀ R⁻¹ W`.
    pub fn message(&self, line: &Line) -> (Vec<f64>, Vec<f64>) {
        let d = self.dims[line.latent];
        let by_noise: Vec<f64> = (line.w.chunks_exact(d).zip(&line.noise))
            .flat_map(|(w, noise)| w.iter().map(move |w| w / noise))
            .collect();
        let width = line.noise.len();
        let precision = matmul(d, width, d, &transposed(width, d, &line.w), &by_noise);
        (by_noise, precision)
    }

    /// What a latent says of its neighbour where everything behind it says `(h, P)`.
    pub fn hand_on(
        &self,
        from: usize,
        to: usize,
        h: &[f64],
        p: &[f64],
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        let (df, dt) = (self.dims[from], self.dims[to]);
        let find = |parent: usize, child: usize| {
            self.edges
                .iter()
                .find(move |e| e.parent == parent && e.child == child)
        };
        let (a, q) = match (find(to, from), find(from, to)) {
            (Some(edge), _) => (edge.a.clone(), edge.q.clone()),
            (None, Some(edge)) => {
                // Both have unit covariance, so the line runs backwards with its transpose.
                let a = transposed(dt, df, &edge.a);
                let aa = matmul(df, dt, df, &a, &edge.a);
                let mut q = diagonal(df, 1.0);
                q.iter_mut().zip(&aa).for_each(|(q, a)| *q -= a);
                (a, floored(df, q, 1e-6))
            }
            _ => return None,
        };
        let r = inverse(df, &q)?;
        let both: Vec<f64> = r.iter().zip(p).map(|(r, p)| r + p).collect();
        let inside = inverse(df, &both)?;
        // (P⁻¹ + Q)⁻¹ = R − R (R + P)⁻¹ R, with R = Q⁻¹.
        let ri = product(df, &r, &inside);
        let rir = product(df, &ri, &r);
        let middle: Vec<f64> = r.iter().zip(&rir).map(|(a, b)| a - b).collect();
        let at = transposed(df, dt, &a);
        let moved = matmul(dt, df, dt, &at, &matmul(df, df, dt, &middle, &a));
        let h = matmul(dt, df, 1, &at, &times(df, &ri, h));
        Some((h, moved))
    }
}

fn there<T, U>(((line, told), there): ((T, U), &bool)) -> Option<(T, U)> {
    there.then_some((line, told))
}

impl Sums {
    fn new(size: usize, lines: &[Line], dims: &[usize]) -> Self {
        let blank = |line: &Line| {
            let (d, width) = (dims[line.latent], line.noise.len());
            (
                vec![0.0; width * d],
                vec![0.0; d * d],
                vec![0.0; width],
                0.0,
            )
        };
        Sums {
            latents: vec![0.0; size * size],
            lines: lines.iter().map(blank).collect(),
        }
    }

    /// A row whose latents have this mean and covariance.
    fn add(
        &mut self,
        n: usize,
        mean: &[f64],
        covariance: &[f64],
        starts: &[usize],
        dims: &[usize],
        scores: &[Scores],
    ) {
        let size = mean.len();
        for i in 0..size {
            let row = &mut self.latents[i * size..][..size];
            for (j, to) in row.iter_mut().enumerate() {
                *to += covariance[i * size + j] + mean[i] * mean[j];
            }
        }
        for ((yz, zz, yy, count), s) in self.lines.iter_mut().zip(scores) {
            if !s.present[n] {
                continue;
            }
            let (d, at) = (dims[s.latent], starts[s.latent]);
            let z = &mean[at..at + d];
            for (i, y) in s.row(n).iter().enumerate() {
                yz[i * d..][..d]
                    .iter_mut()
                    .zip(z)
                    .for_each(|(to, z)| *to += y * z);
                yy[i] += y * y;
            }
            for i in 0..d {
                for j in 0..d {
                    zz[i * d + j] += covariance[(at + i) * size + at + j] + z[i] * z[j];
                }
            }
            *count += 1.0;
        }
    }

    fn merge(&mut self, other: &Sums) {
        let add = |to: &mut Vec<f64>, from: &Vec<f64>| {
            to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        };
        add(&mut self.latents, &other.latents);
        for (own, theirs) in self.lines.iter_mut().zip(&other.lines) {
            add(&mut own.0, &theirs.0);
            add(&mut own.1, &theirs.1);
            add(&mut own.2, &theirs.2);
            own.3 += theirs.3;
        }
    }
}

/// The first principal components of points, of unit variance; what is asked for beyond their number is faint noise.
fn components(points: &[f64], width: usize, rows: usize, count: usize) -> Vec<f64> {
    let mut mean = vec![0.0; width];
    for point in points.chunks_exact(width) {
        mean.iter_mut()
            .zip(point)
            .for_each(|(m, x)| *m += x / rows as f64);
    }
    let mut covariance = vec![0.0; width * width];
    for point in points.chunks_exact(width) {
        for i in 0..width {
            for j in 0..=i {
                let product = (point[i] - mean[i]) * (point[j] - mean[j]) / rows as f64;
                covariance[i * width + j] += product;
            }
        }
    }
    for i in 0..width {
        for j in 0..i {
            covariance[j * width + i] = covariance[i * width + j];
        }
    }
    let (values, vectors) = eigen(width, &covariance);
    let mut scores = vec![0.0; rows * count];
    for (n, point) in points.chunks_exact(width).enumerate() {
        for (c, score) in scores[n * count..][..count].iter_mut().enumerate() {
            *score = match values.get(c) {
                Some(&value) if value > 1e-9 * values[0].max(1e-30) => {
                    let along = point.iter().zip(&mean).zip(&vectors[c]);
                    along.map(|((x, m), v)| (x - m) * v).sum::<f64>() / value.sqrt()
                }
                // Golden-ratio noise: it goes with nothing.
                _ => 0.3 * (((n * (c + 3)) as f64 * 0.618_033_988_75).fract() - 0.5),
            };
        }
    }
    scores
}

/// `A B`, of `m × k` and `k × n`.
pub fn matmul(m: usize, k: usize, n: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for l in 0..k {
            let x = a[i * k + l];
            for (to, y) in c[i * n..][..n].iter_mut().zip(&b[l * n..]) {
                *to += x * y;
            }
        }
    }
    c
}

fn transposed(m: usize, n: usize, a: &[f64]) -> Vec<f64> {
    (0..m * n).map(|k| a[k % m * n + k / m]).collect()
}

fn diagonal(n: usize, value: f64) -> Vec<f64> {
    (0..n * n)
        .map(|k| if k % (n + 1) == 0 { value } else { 0.0 })
        .collect()
}

/// The same matrix with no variance below a least one in any direction.
fn raised(n: usize, a: Vec<f64>, least: f64) -> Vec<f64> {
    let (values, vectors) = eigen(n, &a);
    if values.iter().all(|v| *v >= least) {
        return a;
    }
    let part = |i: usize, j: usize| {
        let each = values.iter().zip(&vectors);
        each.map(|(v, e)| v.max(least) * e[i] * e[j]).sum::<f64>()
    };
    (0..n * n).map(|k| part(k / n, k % n)).collect()
}

/// A little more on the diagonal, in parts of its mean.
fn floored(n: usize, mut a: Vec<f64>, part: f64) -> Vec<f64> {
    let mean = (0..n).map(|i| a[i * n + i]).sum::<f64>() / n.max(1) as f64;
    (0..n).for_each(|i| a[i * n + i] += part * mean);
    a
}

/// `L⁻¹ B` with `L` lower triangular of size `n` and `B` of `n × m`.
fn lower_solve(n: usize, m: usize, l: &[f64], b: &[f64]) -> Vec<f64> {
    let mut x = b.to_vec();
    for i in 0..n {
        for k in 0..i {
            let factor = l[i * n + k];
            for j in 0..m {
                x[i * m + j] -= factor * x[k * m + j];
            }
        }
        (0..m).for_each(|j| x[i * m + j] /= l[i * n + i]);
    }
    x
}
