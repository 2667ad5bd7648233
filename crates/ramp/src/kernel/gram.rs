//! Products of features summed over rows, for callers outside the crate: one safe `gemm` call on this thread.

use super::dense::product_gemm;

/// `leftᵀ · right` of two row-major matrices with the same number of rows: the products of every feature of the one with every feature of the other, summed over
/// rows, `[left feature, right feature]`. Sums are of single precision: hand over some hundred rows at a time and add in double.
///
/// ```
/// use ramp::kernel::summed_products;
///
/// let left = [1.0, 2.0, 3.0, 4.0]; // two rows of two features
/// let right = [10.0, 100.0]; // two rows of one
/// assert_eq!(summed_products(2, &left, &right), [310.0, 420.0]);
/// ```
///
/// # Panics
/// Where the matrices do not have whole rows.
pub fn summed_products(rows: usize, left: &[f32], right: &[f32]) -> Vec<f32> {
    if rows == 0 {
        return vec![];
    }
    assert!(left.len().is_multiple_of(rows) && right.len().is_multiple_of(rows));
    let (m, n) = (left.len() / rows, right.len() / rows);
    let mut out = vec![0.0f32; m * n];
    // SAFETY: the shapes are those of the slices, checked above, and `out` is no part of them.
    unsafe {
        product_gemm(
            (m, n, rows),
            (out.as_mut_ptr(), n, 1, false),
            (left.as_ptr(), 1, m),
            (right.as_ptr(), n, 1),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_plain_sum() {
        let (rows, m, n) = (37, 5, 3);
        let at = |i: usize| ((i * 7919 % 101) as f32 - 50.0) / 25.0;
        let left: Vec<f32> = (0..rows * m).map(at).collect();
        let right: Vec<f32> = (0..rows * n).map(|i| at(i + 1000)).collect();
        let found = summed_products(rows, &left, &right);
        for i in 0..m {
            for j in 0..n {
                let sum: f64 = (0..rows)
                    .map(|r| f64::from(left[r * m + i]) * f64::from(right[r * n + j]))
                    .sum();
                assert!((f64::from(found[i * n + j]) - sum).abs() < 1e-4);
            }
        }
        assert!(summed_products(0, &[], &[]).is_empty());
    }
}
