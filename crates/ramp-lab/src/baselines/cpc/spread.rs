//! What keeps codes and contexts spread out over the plane.

use super::points;

/// The penalty `‖C − I‖²` on points with mean `m` and covariance `C`.
pub(super) struct Spread {
    pub penalty: f64,
    mean: [f64; 2],
    /// `4 (C − I) / count`: the gradient at a point is this times what it is away from the mean.
    slope: [[f64; 2]; 2],
}

impl Spread {
    /// Of the first `steps` points of every feature-major block.
    pub fn of<'a>(blocks: impl Iterator<Item = &'a [f32]> + Clone, steps: usize) -> Self {
        let all = || blocks.clone().flat_map(|block| points(block, steps));
        let count = all().count() as f64 / 2.0;
        let flat: Vec<f64> = all().collect();
        let pairs = || flat.chunks_exact(2);
        let mean = [0, 1].map(|d| pairs().map(|p| p[d]).sum::<f64>() / count);
        let excess = [0, 1].map(|i| {
            [0, 1].map(|j| {
                let products = pairs().map(|p| (p[i] - mean[i]) * (p[j] - mean[j]));
                products.sum::<f64>() / count - if i == j { 1.0 } else { 0.0 }
            })
        });
        Spread {
            penalty: excess.iter().flatten().map(|x| x * x).sum(),
            mean,
            slope: excess.map(|row| row.map(|x| 4.0 * x / count)),
        }
    }

    /// Adds the gradient of `−weight · penalty` at the first `steps` points of a block.
    pub fn pull(&self, weight: f64, block: &[f32], steps: usize, to: &mut [f32]) {
        let rows = block.len() / 2;
        for (step, p) in points(block, steps).chunks_exact(2).enumerate() {
            let off = [p[0] - self.mean[0], p[1] - self.mean[1]];
            for (d, row) in self.slope.iter().enumerate() {
                to[d * rows + step] -= (weight * (row[0] * off[0] + row[1] * off[1])) as f32;
            }
        }
    }
}
