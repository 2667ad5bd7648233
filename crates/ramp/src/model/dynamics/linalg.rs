//! Small dense matrices, row by row in f64: what an initialisation needs once, where no speed is at stake.

/// The lower Cholesky factor of a positive definite matrix, or `None` where it is not.
pub fn cholesky(n: usize, a: &[f64]) -> Option<Vec<f64>> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let sum = a[i * n + j] - (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum::<f64>();
            if i > j {
                l[i * n + j] = sum / l[j * n + j];
            } else if sum > 0.0 && sum.is_finite() {
                l[i * n + i] = sum.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(l)
}

/// Solves `L Lᵀ x = b` in place.
pub fn solve(n: usize, l: &[f64], b: &mut [f64]) {
    for i in 0..n {
        let sum = (0..i).map(|k| l[i * n + k] * b[k]).sum::<f64>();
        b[i] = (b[i] - sum) / l[i * n + i];
    }
    for i in (0..n).rev() {
        let sum = (i + 1..n).map(|k| l[k * n + i] * b[k]).sum::<f64>();
        b[i] = (b[i] - sum) / l[i * n + i];
    }
}

/// The inverse of a positive definite matrix.
pub fn inverse(n: usize, a: &[f64]) -> Option<Vec<f64>> {
    let l = cholesky(n, a)?;
    let mut inverse = vec![0.0; n * n];
    for j in 0..n {
        let mut column = vec![0.0; n];
        column[j] = 1.0;
        solve(n, &l, &mut column);
        (0..n).for_each(|i| inverse[i * n + j] = column[i]);
    }
    Some(inverse)
}

/// Eigenvalues, falling, and the eigenvectors as rows, of a symmetric matrix, by Jacobi's rotations.
pub fn eigen(n: usize, a: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    const SWEEPS: usize = 60;
    let mut a = a.to_vec();
    let mut v = vec![0.0; n * n];
    (0..n).for_each(|i| v[i * n + i] = 1.0);
    for _ in 0..SWEEPS {
        let off: f64 = (0..n)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| a[i * n + j].powi(2))
            .sum();
        let size: f64 = (0..n).map(|i| a[i * n + i].powi(2)).sum();
        if off <= 1e-24 * size || off == 0.0 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                if apq == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let t = if theta == 0.0 { 1.0 } else { t };
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    (a[k * n + p], a[k * n + q]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    (a[p * n + k], a[q * n + k]) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (v[p * n + k], v[q * n + k]);
                    (v[p * n + k], v[q * n + k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[j * n + j].total_cmp(&a[i * n + i]));
    let values = order.iter().map(|&i| a[i * n + i]).collect();
    let vectors = order.iter().map(|&i| v[i * n..][..n].to_vec()).collect();
    (values, vectors)
}

/// `A B` of square matrices.
pub fn product(n: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut c = vec![0.0; n * n];
    for i in 0..n {
        for k in 0..n {
            for j in 0..n {
                c[i * n + j] += a[i * n + k] * b[k * n + j];
            }
        }
    }
    c
}

/// `A x`.
pub fn times(n: usize, a: &[f64], x: &[f64]) -> Vec<f64> {
    (0..n)
        .map(|i| (0..n).map(|j| a[i * n + j] * x[j]).sum())
        .collect()
}

/// Ridge regression with an intercept: for every target the weights of the features, then the constant. `points` holds a row
/// of features for every row of targets; the penalty is per row.
pub fn ridge(
    points: &[f64],
    features: usize,
    targets: &[Vec<f64>],
    penalty: f64,
) -> Option<Vec<Vec<f64>>> {
    use rayon::prelude::*;
    let n = features + 1;
    let (rows, outputs) = (targets.len(), targets.first()?.len());
    // Fixed shards, so that sums do not depend on the number of threads.
    let shard = rows.div_ceil(16).max(1);
    let parts: Vec<(Vec<f64>, Vec<f64>)> = (0..rows.div_ceil(shard))
        .into_par_iter()
        .map(|s| {
            let (mut normal, mut right) = (vec![0.0; n * n], vec![0.0; n * outputs]);
            let mut x = vec![1.0; n];
            for r in s * shard..((s + 1) * shard).min(rows) {
                x[..features].copy_from_slice(&points[r * features..][..features]);
                for i in 0..n {
                    let xi = x[i];
                    for (to, xj) in normal[i * n..][..=i].iter_mut().zip(&x) {
                        *to += xi * xj;
                    }
                    for (to, y) in right[i * outputs..][..outputs].iter_mut().zip(&targets[r]) {
                        *to += xi * y;
                    }
                }
            }
            (normal, right)
        })
        .collect();
    let (mut normal, mut right) = (vec![0.0; n * n], vec![0.0; n * outputs]);
    for (a, b) in &parts {
        normal.iter_mut().zip(a).for_each(|(x, y)| *x += y);
        right.iter_mut().zip(b).for_each(|(x, y)| *x += y);
    }
    (0..features).for_each(|i| normal[i * n + i] += penalty * rows as f64);
    let l = cholesky(n, &normal)?;
    let fit = |o: usize| {
        let mut b: Vec<f64> = (0..n).map(|i| right[i * outputs + o]).collect();
        solve(n, &l, &mut b);
        b
    };
    Some((0..outputs).map(fit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_put_a_matrix_together_again() {
        let n = 5;
        let a: Vec<f64> = (0..n * n)
            .map(|k| ((k / n * k % n) as f64).sin() + ((k % n * (k / n)) as f64).cos())
            .collect();
        let a: Vec<f64> = (0..n * n).map(|k| a[k] + a[k % n * n + k / n]).collect();
        let (values, vectors) = eigen(n, &a);
        assert!(values.windows(2).all(|w| w[0] >= w[1]));
        for i in 0..n {
            for j in 0..n {
                let back: f64 = (0..n)
                    .map(|k| values[k] * vectors[k][i] * vectors[k][j])
                    .sum();
                assert!((back - a[i * n + j]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_ridge_without_penalty_finds_the_line() {
        let points: Vec<f64> = (0..20).map(|i| f64::from(i) * 0.3).collect();
        let targets: Vec<Vec<f64>> = points.iter().map(|x| vec![2.0 * x - 1.0]).collect();
        let fit = ridge(&points, 1, &targets, 0.0).unwrap();
        assert!((fit[0][0] - 2.0).abs() < 1e-9 && (fit[0][1] + 1.0).abs() < 1e-9);
    }
}
