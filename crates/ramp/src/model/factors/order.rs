//! Ordered levels under a latent of several dimensions: what their order tells lies along the first, and how far answers are from the middle beside it.

use super::super::linalg::eigen;
use super::linear::{LinearTree, Scores, matmul};

/// The directions of ordered levels, seen as ones among zeros: their place and, for a latent that has room for it, how far they are from the middle, as far as the place does
/// not tell that already.
pub fn places(known: &[f32], width: usize, room: usize) -> Vec<Vec<f64>> {
    let place: Vec<f64> = (0..width).map(|l| l as f64).collect();
    let rows = (known.len() / width).max(1) as f64;
    let mut shares = vec![0.0; width];
    for row in known.chunks_exact(width) {
        (shares.iter_mut().zip(row)).for_each(|(s, &x)| *s += f64::from(x) / rows);
    }
    let over =
        |f: &dyn Fn(f64) -> f64| -> f64 { shares.iter().zip(&place).map(|(s, &l)| s * f(l)).sum() };
    let mean = over(&|l| l);
    let (square, cube) = (over(&|l| (l - mean).powi(2)), over(&|l| (l - mean).powi(3)));
    if room < 2 || width < 3 || square < 1e-9 {
        return vec![place];
    }
    let far = |&l: &f64| (l - mean).powi(2) - cube / square * (l - mean);
    let far = place.iter().map(far).collect();
    vec![place, far]
}

impl LinearTree {
    /// Turns every latent that ordered levels hang on so that what their order tells lies along its first coordinate and rises with it, as far as it can: data do not choose between turned coordinates,
    /// but networks that are monotone along the first alone do.
    pub fn put_order_first(&mut self, scores: &[Scores]) {
        for (k, &d) in self
            .dims
            .clone()
            .iter()
            .enumerate()
            .filter(|(_, d)| **d > 1)
        {
            let mut told = vec![0.0; d * d];
            let own = self.lines.iter().zip(scores);
            for (line, _) in own.filter(|(_, s)| s.latent == k && s.ordered) {
                for (i, a) in line.w[..d].iter().enumerate() {
                    for (j, b) in line.w[..d].iter().enumerate() {
                        told[i * d + j] += a * b / line.noise[0];
                    }
                }
            }
            if told.iter().all(|&x| x == 0.0) {
                continue;
            }
            let mut axis = eigen(d, &told).1.swap_remove(0);
            // High is high: most of what their order tells rises along the axis.
            let own = self.lines.iter().zip(scores);
            let rises: f64 = own
                .filter(|(_, s)| s.latent == k && s.ordered)
                .map(|(line, _)| {
                    let along: f64 = line.w[..d].iter().zip(&axis).map(|(w, x)| w * x).sum();
                    along / line.noise[0]
                })
                .sum();
            if rises < 0.0 {
                axis.iter_mut().for_each(|x| *x = -*x);
            }
            // The reflection that takes the axis to the first coordinate; none where it lies there.
            axis[0] -= 1.0;
            let norm: f64 = axis.iter().map(|x| x * x).sum();
            if norm < 1e-12 {
                continue;
            }
            let turn: Vec<f64> = (0..d * d)
                .map(|at| {
                    let same = if at / d == at % d { 1.0 } else { 0.0 };
                    same - 2.0 * axis[at / d] * axis[at % d] / norm
                })
                .collect();
            for line in self.lines.iter_mut().filter(|l| l.latent == k) {
                line.w = matmul(line.noise.len(), d, d, &line.w, &turn);
            }
            for edge in &mut self.edges {
                let (dc, dp) = (self.dims[edge.child], self.dims[edge.parent]);
                if edge.child == k {
                    edge.a = matmul(d, d, dp, &turn, &edge.a);
                    edge.q = matmul(d, d, d, &matmul(d, d, d, &turn, &edge.q), &turn);
                }
                if edge.parent == k {
                    edge.a = matmul(dc, d, d, &edge.a, &turn);
                }
            }
        }
    }
}
