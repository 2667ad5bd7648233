//! What keeps codes and contexts spread out in all directions.

use super::points;

/// The penalty `‖C − I‖²` on points with mean `m` and covariance `C`.
pub(super) struct Spread {
    pub penalty: f64,
    mean: Vec<f64>,
    /// `4 (C − I) / count`, row by row: the gradient at a point is this times what it is away from the mean.
    slope: Vec<f64>,
}

impl Spread {
    /// Of the first `steps` points of every feature-major block, each with its number of rows.
    pub fn of<'a>(blocks: impl Iterator<Item = (&'a [f32], usize)>, steps: usize) -> Self {
        let (mut all, mut dim) = (vec![], 0);
        for (block, rows) in blocks {
            dim = block.len() / rows;
            all.extend(points((block, rows), steps));
        }
        let count = (all.len() / dim.max(1)).max(1) as f64;
        let each = || all.chunks_exact(dim.max(1));
        let mean: Vec<f64> = (0..dim)
            .map(|d| each().map(|p| p[d]).sum::<f64>() / count)
            .collect();
        let excess: Vec<f64> = (0..dim * dim)
            .map(|k| {
                let (i, j) = (k / dim, k % dim);
                let products = each().map(|p| (p[i] - mean[i]) * (p[j] - mean[j]));
                products.sum::<f64>() / count - if i == j { 1.0 } else { 0.0 }
            })
            .collect();
        Spread {
            penalty: excess.iter().map(|x| x * x).sum(),
            mean,
            slope: excess.iter().map(|x| 4.0 * x / count).collect(),
        }
    }

    /// Adds the gradient of `−weight · penalty` at the first `steps` points of a block.
    pub fn pull(&self, weight: f64, (block, rows): (&[f32], usize), steps: usize, to: &mut [f32]) {
        let dim = self.mean.len();
        for (step, p) in points((block, rows), steps).chunks_exact(dim).enumerate() {
            let off: Vec<f64> = p.iter().zip(&self.mean).map(|(p, m)| p - m).collect();
            for (d, row) in self.slope.chunks_exact(dim).enumerate() {
                let along: f64 = row.iter().zip(&off).map(|(s, o)| s * o).sum();
                to[d * rows + step] -= (weight * along) as f32;
            }
        }
    }
}
