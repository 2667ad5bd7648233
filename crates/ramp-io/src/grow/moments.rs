//! Weighted moments of functions of columns over the rows that have both columns of a pair: all pairs at once, as products of matrices.

use ramp::kernel::summed_products;
use rayon::prelude::*;

/// Rows whose products are added in single precision.
const CHUNK: usize = 512;

/// Functions of a column, and in which rows they are known; elsewhere they are zero.
pub(super) struct Functions {
    /// Function after function, `[function, row]`.
    pub values: Vec<Vec<f32>>,
    pub present: Vec<bool>,
}

/// How functions of all columns lie in a row of the matrices that are multiplied.
pub(super) struct Layout {
    rows: usize,
    /// Where each column's functions begin.
    first: Vec<usize>,
    functions: usize,
    /// Which mask is a column's; those that miss nothing share one.
    mask: Vec<usize>,
    /// A column for each mask.
    masked: Vec<usize>,
    /// Where the products of each column's functions with one another begin.
    first_square: Vec<usize>,
    squares: usize,
}

/// Sums over rows, weighted.
pub(super) struct Moments<'a> {
    layout: &'a Layout,
    /// Functions, then masks, with functions, then masks.
    cross: Vec<f64>,
    /// Products of a column's functions with masks.
    square: Vec<f64>,
}

/// Moments of two columns' functions over the rows that have both.
pub(super) struct Pair {
    /// The rows' weight.
    pub weight: f64,
    /// The covariances `[function, function]` of the one, of both, and of the other.
    pub one: Vec<f64>,
    pub both: Vec<f64>,
    pub other: Vec<f64>,
}

fn triangle(i: usize, j: usize) -> usize {
    let (i, j) = (i.max(j), i.min(j));
    i * (i + 1) / 2 + j
}

impl Layout {
    pub fn new(columns: &[Functions]) -> Self {
        let mut layout = Layout {
            rows: columns.first().map_or(0, |c| c.present.len()),
            first: vec![],
            functions: 0,
            mask: vec![],
            masked: vec![],
            first_square: vec![],
            squares: 0,
        };
        let mut whole = None;
        for (i, column) in columns.iter().enumerate() {
            let count = column.values.len();
            layout.first.push(layout.functions);
            layout.functions += count;
            layout.first_square.push(layout.squares);
            layout.squares += triangle(count, 0);
            let new = layout.masked.len();
            let mask = match column.present.iter().all(|p| *p) {
                true => *whole.get_or_insert(new),
                false => new,
            };
            if mask == new {
                layout.masked.push(i);
            }
            layout.mask.push(mask);
        }
        layout
    }

    /// The moments with rows weighted; rows of no weight cost nothing.
    pub fn moments(&self, columns: &[Functions], weights: &[f32]) -> Moments<'_> {
        let width = self.functions + self.masked.len();
        let rows: Vec<usize> = (0..self.rows).filter(|&r| weights[r] != 0.0).collect();
        let chunk = |rows: &[usize]| {
            let mut plain = vec![0.0f32; rows.len() * width];
            let mut squares = vec![0.0f32; rows.len() * self.squares];
            for (i, column) in columns.iter().enumerate() {
                for (f, values) in column.values.iter().enumerate() {
                    let at = self.first[i] + f;
                    for (k, &r) in rows.iter().enumerate() {
                        plain[k * width + at] = values[r];
                    }
                    for (g, others) in column.values[..=f].iter().enumerate() {
                        let at = self.first_square[i] + triangle(f, g);
                        for (k, &r) in rows.iter().enumerate() {
                            squares[k * self.squares + at] = weights[r] * values[r] * others[r];
                        }
                    }
                }
            }
            for (m, &i) in self.masked.iter().enumerate() {
                for (k, &r) in rows.iter().enumerate() {
                    plain[k * width + self.functions + m] =
                        f32::from(u8::from(columns[i].present[r]));
                }
            }
            let mut weighted = plain.clone();
            let mut masks = vec![0.0f32; rows.len() * self.masked.len()];
            for (k, &r) in rows.iter().enumerate() {
                let row = k * width..(k + 1) * width;
                weighted[row].iter_mut().for_each(|x| *x *= weights[r]);
                masks[k * self.masked.len()..][..self.masked.len()]
                    .copy_from_slice(&plain[k * width + self.functions..(k + 1) * width]);
            }
            (
                summed_products(rows.len(), &weighted, &plain),
                summed_products(rows.len(), &squares, &masks),
            )
        };
        let mut moments = Moments {
            layout: self,
            cross: vec![0.0; width * width],
            square: vec![0.0; self.squares * self.masked.len()],
        };
        // In the order of rows, some chunks at a time: the same sums on any number of threads, in little memory.
        for some in rows.chunks(16 * CHUNK) {
            let parts: Vec<_> = some.par_chunks(CHUNK).map(chunk).collect();
            for (cross, square) in parts {
                add(&mut moments.cross, &cross);
                add(&mut moments.square, &square);
            }
        }
        moments
    }
}

fn add(to: &mut [f64], part: &[f32]) {
    to.iter_mut()
        .zip(part)
        .for_each(|(t, p)| *t += f64::from(*p));
}

impl Moments<'_> {
    /// Those of two columns.
    pub fn pair(&self, i: usize, j: usize) -> Pair {
        let layout = self.layout;
        let width = layout.functions + layout.masked.len();
        let functions = |c: usize| {
            let end = layout.first.get(c + 1).copied();
            layout.first[c]..end.unwrap_or(layout.functions)
        };
        let mask = |c: usize| layout.functions + layout.mask[c];
        let weight = self.cross[mask(i) * width + mask(j)];
        let n = weight.max(f64::MIN_POSITIVE);
        let mean = |c: usize, other: usize| -> Vec<f64> {
            functions(c)
                .map(|f| self.cross[f * width + mask(other)] / n)
                .collect()
        };
        let (of_i, of_j) = (mean(i, j), mean(j, i));
        let own = |c: usize, other: usize, mean: &[f64]| -> Vec<f64> {
            let count = mean.len();
            let square = |f: usize, g: usize| {
                let at = layout.first_square[c] + triangle(f, g);
                self.square[at * layout.masked.len() + layout.mask[other]] / n
            };
            (0..count * count)
                .map(|e| (e / count, e % count))
                .map(|(f, g)| square(f, g) - mean[f] * mean[g])
                .collect()
        };
        let mut both = vec![];
        for (f, a) in functions(i).zip(&of_i) {
            for (g, b) in functions(j).zip(&of_j) {
                both.push(self.cross[f * width + g] / n - a * b);
            }
        }
        Pair {
            weight,
            one: own(i, j, &of_i),
            both,
            other: own(j, i, &of_j),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_rows_that_have_both() {
        let rows = 1300;
        let at = |r: usize, by: usize| ((r * by % 997) as f32 / 500.0) - 1.0;
        let column = |by: usize, functions: usize, gap: usize| {
            let present: Vec<bool> = (0..rows).map(|r| gap == 0 || r % gap != 0).collect();
            let values = (0..functions)
                .map(|f| {
                    let value = |r: usize| if present[r] { at(r, by + 13 * f) } else { 0.0 };
                    (0..rows).map(value).collect()
                })
                .collect();
            Functions { values, present }
        };
        let columns = [column(311, 3, 5), column(173, 2, 0), column(719, 3, 7)];
        let weights: Vec<f32> = (0..rows).map(|r| (r * 31 % 4) as f32).collect();
        let layout = Layout::new(&columns);
        let moments = layout.moments(&columns, &weights);
        for (i, j) in [(0, 1), (0, 2), (2, 1)] {
            let (a, b) = (&columns[i], &columns[j]);
            let both: Vec<usize> = (0..rows)
                .filter(|&r| a.present[r] && b.present[r])
                .collect();
            let mean = |of: &dyn Fn(usize) -> f64| -> f64 {
                let n: f64 = both.iter().map(|&r| f64::from(weights[r])).sum();
                both.iter()
                    .map(|&r| f64::from(weights[r]) * of(r))
                    .sum::<f64>()
                    / n
            };
            let covariance = |x: &[f32], y: &[f32]| {
                mean(&|r| f64::from(x[r]) * f64::from(y[r]))
                    - mean(&|r| f64::from(x[r])) * mean(&|r| f64::from(y[r]))
            };
            let all = |x: &Functions, y: &Functions| -> Vec<f64> {
                let pairs = x
                    .values
                    .iter()
                    .flat_map(|x| y.values.iter().map(move |y| (x, y)));
                pairs.map(|(x, y)| covariance(x, y)).collect()
            };
            let found = moments.pair(i, j);
            let near = |found: &[f64], right: &[f64]| {
                assert_eq!(found.len(), right.len());
                let apart = found.iter().zip(right).map(|(a, b)| (a - b).abs());
                assert!(apart.fold(0.0, f64::max) < 1e-5);
            };
            near(&found.one, &all(a, a));
            near(&found.both, &all(a, b));
            near(&found.other, &all(b, b));
            let n: f32 = both.iter().map(|&r| weights[r]).sum();
            assert!((found.weight - f64::from(n)).abs() < 1e-6 * f64::from(n));
        }
    }
}
