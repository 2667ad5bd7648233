//! How strongly every two columns go together, whatever monotone distortion they have been through and whatever is missing: rank
//! correlations, and canonical ones where levels have no order or dependence is not monotone.

use super::moments::{Functions, Layout, Pair};
use ramp::infer::normal_quantile;

/// A column as numbers, row by row; `NaN` where it is missing.
pub struct ColumnScores {
    /// Numbers of a row: one where values have an order, one per level but the last where they have none.
    pub width: usize,
    /// `[row, width]`.
    pub values: Vec<f32>,
}

/// Columns ready for associations under any weights of rows.
pub struct Associations {
    rows: usize,
    columns: Vec<Functions>,
    /// Whether a column's values have an order: its first function is then its normal scores.
    ordered: Vec<bool>,
    layout: Layout,
    /// Whether canonical correlations count in place of plain ones.
    canonical: bool,
    /// Associations below this cannot be told from none.
    floor: f64,
}

/// A canonical correlation tells of something else than a monotone dependence if it is this much greater than the plain one, beside what noise adds.
const MORE: f64 = 0.05;
/// Keeps the inverse of a basis' covariance finite.
const RIDGE: f64 = 1e-6;

impl Associations {
    /// Learns whether columns depend on each other otherwise than monotonely. One of them that does with half of the columns that it depends on at all is enough for
    /// canonical correlations everywhere: along the path of a tree either kind multiplies, a mixture of both does not, and what is left over looks like edges.
    pub fn new(columns: Vec<ColumnScores>) -> Self {
        let rows = columns
            .first()
            .map_or(0, |c| c.values.len() / c.width.max(1));
        let ordered = columns.iter().map(|c| c.width == 1).collect();
        let columns: Vec<Functions> = columns.into_iter().map(|c| functions(c, rows)).collect();
        let mut all = Associations {
            rows,
            ordered,
            layout: Layout::new(&columns),
            columns,
            canonical: false,
            floor: 1.0 / (rows.max(2) as f64).sqrt(),
        };
        all.canonical = all.has_bent();
        all
    }

    fn has_bent(&self) -> bool {
        let moments = self.layout.moments(&self.columns, &vec![1.0; self.rows]);
        let noise = 3.5 / (self.rows.max(2) as f64).sqrt();
        let count = self.columns.len();
        let (mut bent, mut associated) = (vec![0; count], vec![0; count]);
        for (i, j) in self.pairs() {
            let pair = moments.pair(i, j);
            let Some(plain) = self.plain(i, j, &pair) else {
                continue;
            };
            let canonical = canonical(&pair);
            for c in [i, j] {
                associated[c] += usize::from(canonical > MORE + noise);
                bent[c] += usize::from(canonical > plain + MORE + noise);
            }
        }
        let mut both = bent.iter().zip(&associated);
        both.any(|(&bent, &associated)| bent > 0 && 2 * bent >= associated)
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        (0..self.columns.len()).flat_map(|i| (0..i).map(move |j| (i, j)))
    }

    /// `−log` of every association with rows weighted, `[column, column]`. What cannot be told from no association is as far as
    /// such an association.
    pub fn distances(&self, weights: &[f32]) -> Vec<f64> {
        let count = self.columns.len();
        let moments = self.layout.moments(&self.columns, weights);
        let mut distances = vec![0.0; count * count];
        for (i, j) in self.pairs() {
            let pair = moments.pair(i, j);
            let plain = (!self.canonical).then(|| self.plain(i, j, &pair)).flatten();
            let strength = plain.unwrap_or_else(|| canonical(&pair));
            let distance = -strength.clamp(self.floor, 1.0).ln();
            distances[i * count + j] = distance;
            distances[j * count + i] = distance;
        }
        distances
    }

    /// The size of the correlation of normal scores over the rows that have both; `None` where there are no such scores.
    fn plain(&self, i: usize, j: usize, pair: &Pair) -> Option<f64> {
        if !(self.ordered[i] && self.ordered[j]) {
            return None;
        }
        if pair.weight <= 2.0 {
            return Some(0.0);
        }
        let spread = (pair.one[0] * pair.other[0]).max(0.0).sqrt();
        Some((pair.both[0] / spread.max(1e-12)).abs().min(1.0))
    }
}

/// The greatest correlation of functions of both, less what noise makes of it.
fn canonical(pair: &Pair) -> f64 {
    let (p, q) = (pair.one.len().isqrt(), pair.other.len().isqrt());
    let n = pair.weight;
    if n <= (p + q) as f64 + 2.0 || p == 0 || q == 0 {
        return 0.0;
    }
    let squared = largest(&pair.one, &pair.both, &pair.other, p, q).clamp(0.0, 1.0);
    // The greatest of several is lifted by noise: as R² is by its predictors.
    (squared - (1.0 - squared) * (p + q - 2) as f64 / n)
        .max(0.0)
        .sqrt()
}

/// The largest eigenvalue of `A⁻¹ B C⁻¹ Bᵀ`, a squared canonical correlation, by power iteration.
fn largest(a: &[f64], b: &[f64], c: &[f64], p: usize, q: usize) -> f64 {
    let (a, c) = (inverse(a, p), inverse(c, q));
    let times = |m: &[f64], rows: usize, columns: usize, v: &[f64]| -> Vec<f64> {
        (0..rows)
            .map(|i| (0..columns).map(|j| m[i * columns + j] * v[j]).sum())
            .collect()
    };
    let mut v: Vec<f64> = (0..p).map(|i| 1.0 + 0.1 * (i as f64).cos()).collect();
    let mut value = 0.0;
    for _ in 0..60 {
        let down: Vec<f64> = (0..q)
            .map(|j| (0..p).map(|i| b[i * q + j] * v[i]).sum())
            .collect();
        let next = times(&a, p, p, &times(b, p, q, &times(&c, q, q, &down)));
        let size = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        if size < 1e-15 {
            return 0.0;
        }
        value = size / v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v = next.iter().map(|x| x / size).collect();
    }
    value
}

/// The inverse of a covariance, made safe by a ridge.
fn inverse(a: &[f64], k: usize) -> Vec<f64> {
    let mut a = a.to_vec();
    let mut b = vec![0.0; k * k];
    for i in 0..k {
        a[i * k + i] += RIDGE * (1.0 + a[i * k + i]);
        b[i * k + i] = 1.0;
    }
    for s in 0..k {
        let pivot = a[s * k + s];
        for j in 0..k {
            a[s * k + j] /= pivot;
            b[s * k + j] /= pivot;
        }
        for i in (0..k).filter(|&i| i != s) {
            let ratio = a[i * k + s];
            for j in 0..k {
                a[i * k + j] -= ratio * a[s * k + j];
                b[i * k + j] -= ratio * b[s * k + j];
            }
        }
    }
    b
}

/// What associations are sought among: of ordered values normal scores and their bends, of levels themselves.
fn functions(column: ColumnScores, rows: usize) -> Functions {
    let width = column.width;
    let present: Vec<bool> = column
        .values
        .chunks_exact(width.max(1))
        .map(|cell| cell.iter().all(|x| x.is_finite()))
        .collect();
    let values = match width {
        1 => {
            let scores = normal_scores(&column.values, &present);
            // Hermite's polynomials: of two normal variables the first alone has their correlation, so a greater one tells of something else.
            let bend = |f: &dyn Fn(f32) -> f32| -> Vec<f32> {
                let one = |(&x, &p): (&f32, &bool)| if p { f(x) } else { 0.0 };
                scores.iter().zip(&present).map(one).collect()
            };
            let (square, cube) = (
                bend(&|x| (x * x - 1.0) / 2f32.sqrt()),
                bend(&|x| (x * x * x - 3.0 * x) / 6f32.sqrt()),
            );
            vec![scores, square, cube]
        }
        _ => {
            let value = |r: usize, f: usize| match present[r] {
                true => column.values[r * width + f],
                false => 0.0,
            };
            (0..width)
                .map(|f| (0..rows).map(|r| value(r, f)).collect())
                .collect()
        }
    };
    Functions { values, present }
}

/// Normal scores of mid-ranks, of unit variance; zero where a value is missing.
fn normal_scores(values: &[f32], present: &[bool]) -> Vec<f32> {
    let mut order: Vec<usize> = (0..values.len()).filter(|&r| present[r]).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let n = order.len() as f64;
    let mut scores = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let value = values[order[start]];
        let end = order[start..].partition_point(|&r| values[r] <= value) + start;
        let middle = (start + end) as f64 / 2.0;
        let score = normal_quantile(middle / n);
        order[start..end]
            .iter()
            .for_each(|&r| scores[r] = score as f32);
        start = end;
    }
    let mean: f64 = order.iter().map(|&r| f64::from(scores[r])).sum::<f64>() / n.max(1.0);
    let square = |&r: &usize| (f64::from(scores[r]) - mean).powi(2);
    let size = (order.iter().map(square).sum::<f64>() / n.max(1.0))
        .sqrt()
        .max(1e-9);
    for &r in &order {
        scores[r] = ((f64::from(scores[r]) - mean) / size) as f32;
    }
    scores
}
