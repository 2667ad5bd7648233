//! How strongly every two columns go together, whatever monotone distortion they have been through and whatever is missing: rank
//! correlations, and canonical ones where levels have no order or dependence is not monotone.

use ramp::infer::normal_quantile;
use rayon::prelude::*;

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
    columns: Vec<Scored>,
    /// For every pair, as `triangle`, whether its canonical correlation counts in place of the plain one.
    canonical: Vec<bool>,
    /// Associations below this cannot be told from none.
    floor: f64,
}

struct Scored {
    /// Normal scores of ranks; of levels without order none.
    plain: Option<Vec<f32>>,
    /// Functions of the column whose canonical correlation with others is looked for, function after function.
    basis: Vec<Vec<f32>>,
    present: Vec<bool>,
    complete: bool,
}

/// A canonical correlation replaces a plain one only if it is this much greater, beside what noise adds.
const MORE: f64 = 0.05;
/// Keeps the inverse of a basis' covariance finite.
const RIDGE: f64 = 1e-6;

impl Associations {
    /// Learns which pairs depend on each other otherwise than monotonely.
    pub fn new(columns: Vec<ColumnScores>) -> Self {
        let rows = columns
            .first()
            .map_or(0, |c| c.values.len() / c.width.max(1));
        let columns: Vec<Scored> = columns.into_iter().map(|c| Scored::new(c, rows)).collect();
        let mut all = Associations {
            rows,
            floor: 1.0 / (rows.max(2) as f64).sqrt(),
            canonical: vec![],
            columns,
        };
        let weights = vec![1.0; rows];
        let noise = 3.5 / (rows.max(2) as f64).sqrt();
        all.canonical = all
            .pairs()
            .par_iter()
            .map(|&(i, j)| match all.plain(i, j, &weights) {
                None => true,
                Some(plain) => all.canonical(i, j, &weights) > plain + MORE + noise,
            })
            .collect();
        all
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

    fn pairs(&self) -> Vec<(usize, usize)> {
        let count = self.columns.len();
        (0..count)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .collect()
    }

    /// `−log` of every association with rows weighted, `[column, column]`. What cannot be told from no association is as far as
    /// such an association.
    pub fn distances(&self, weights: &[f32]) -> Vec<f64> {
        let count = self.columns.len();
        let pairs = self.pairs();
        let found: Vec<f64> = pairs
            .par_iter()
            .zip(&self.canonical)
            .map(|(&(i, j), &canonical)| {
                let strength = match canonical {
                    true => self.canonical(i, j, weights),
                    false => self.plain(i, j, weights).unwrap_or(0.0),
                };
                -strength.clamp(self.floor, 1.0).ln()
            })
            .collect();
        let mut distances = vec![0.0; count * count];
        for ((i, j), d) in pairs.into_iter().zip(found) {
            distances[i * count + j] = d;
            distances[j * count + i] = d;
        }
        distances
    }

    /// The size of the correlation of normal scores over the rows that have both.
    fn plain(&self, i: usize, j: usize, weights: &[f32]) -> Option<f64> {
        let (a, b) = (&self.columns[i], &self.columns[j]);
        let (x, y) = (a.plain.as_ref()?, b.plain.as_ref()?);
        // Missing scores are zero and must not count in the other's moments either.
        let mut sums = [0.0f64; 6];
        let chunk = 256;
        for start in (0..self.rows).step_by(chunk) {
            let span = start..(start + chunk).min(self.rows);
            let mut part = [0.0f32; 6];
            for r in span {
                let w = match a.complete && b.complete {
                    true => weights[r],
                    false => weights[r] * f32::from(u8::from(a.present[r] & b.present[r])),
                };
                let (x, y) = (x[r], y[r]);
                part[0] += w;
                part[1] += w * x;
                part[2] += w * y;
                part[3] += w * x * x;
                part[4] += w * y * y;
                part[5] += w * x * y;
            }
            sums.iter_mut()
                .zip(part)
                .for_each(|(s, p)| *s += f64::from(p));
        }
        let [n, sx, sy, sxx, syy, sxy] = sums;
        if n <= 2.0 {
            return Some(0.0);
        }
        let (vx, vy) = (sxx - sx * sx / n, syy - sy * sy / n);
        Some(
            ((sxy - sx * sy / n) / (vx * vy).sqrt().max(1e-12))
                .abs()
                .min(1.0),
        )
    }

    /// The greatest correlation of functions of both, less what noise makes of it.
    fn canonical(&self, i: usize, j: usize, weights: &[f32]) -> f64 {
        let (a, b) = (&self.columns[i], &self.columns[j]);
        let both: Vec<usize> = (0..self.rows)
            .filter(|&r| a.present[r] && b.present[r])
            .collect();
        let n: f64 = both.iter().map(|&r| f64::from(weights[r])).sum();
        let basis: Vec<&Vec<f32>> = a.basis.iter().chain(&b.basis).collect();
        let (p, k) = (a.basis.len(), basis.len());
        if n <= k as f64 + 2.0 || p == 0 || p == k {
            return 0.0;
        }
        let mean: Vec<f64> = basis
            .iter()
            .map(|f| {
                both.iter()
                    .map(|&r| f64::from(weights[r] * f[r]))
                    .sum::<f64>()
                    / n
            })
            .collect();
        let mut covariance = vec![0.0; k * k];
        for &r in &both {
            let w = f64::from(weights[r]);
            for s in 0..k {
                let left = w * (f64::from(basis[s][r]) - mean[s]);
                for t in 0..=s {
                    covariance[s * k + t] += left * (f64::from(basis[t][r]) - mean[t]) / n;
                }
            }
        }
        for s in 0..k {
            for t in s + 1..k {
                covariance[s * k + t] = covariance[t * k + s];
            }
        }
        let part = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| -> Vec<f64> {
            rows.flat_map(|s| columns.clone().map(move |t| (s, t)))
                .map(|(s, t)| covariance[s * k + t])
                .collect()
        };
        let q = k - p;
        let squared = largest(
            &part(0..p, 0..p),
            &part(0..p, p..k),
            &part(p..k, p..k),
            p,
            q,
        );
        let squared = squared.clamp(0.0, 1.0);
        // The greatest of several is lifted by noise: as R² is by its predictors.
        (squared - (1.0 - squared) * (k - 2) as f64 / n)
            .max(0.0)
            .sqrt()
    }
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

impl Scored {
    fn new(column: ColumnScores, rows: usize) -> Self {
        let width = column.width;
        let present: Vec<bool> = column
            .values
            .chunks_exact(width.max(1))
            .map(|cell| cell.iter().all(|x| x.is_finite()))
            .collect();
        let complete = present.iter().all(|p| *p);
        if width == 1 {
            let scores = normal_scores(&column.values, &present);
            // Hermite's polynomials: of two normal variables the first alone has their correlation, so a greater one tells of something else.
            let bend = |f: &dyn Fn(f32) -> f32| -> Vec<f32> {
                let one = |(&x, &p): (&f32, &bool)| if p { f(x) } else { 0.0 };
                scores.iter().zip(&present).map(one).collect()
            };
            let basis = vec![
                scores.clone(),
                bend(&|x| (x * x - 1.0) / 2f32.sqrt()),
                bend(&|x| (x * x * x - 3.0 * x) / 6f32.sqrt()),
            ];
            return Scored {
                plain: Some(scores),
                basis,
                present,
                complete,
            };
        }
        let basis = (0..width)
            .map(|f| {
                (0..rows)
                    .map(|r| {
                        if present[r] {
                            column.values[r * width + f]
                        } else {
                            0.0
                        }
                    })
                    .collect()
            })
            .collect();
        Scored {
            plain: None,
            basis,
            present,
            complete,
        }
    }
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
