//! How close an inferred quantity is to the truth: correlations, explained variance, medians.
//!
//! Everything accumulates in `f64`, whatever the type of the data. A quantity that has no value (a
//! correlation with a constant, say) is `NaN`, never an arbitrary number.

/// The Pearson correlation of two equally long series; `NaN` if either is constant or empty.
///
/// # Panics
/// If the series differ in length.
///
/// ```
/// let r = ramp_lab::metrics::pearson(&[1.0, 2.0, 3.0], &[-2.0_f32, -4.0, -6.0]);
/// assert!((r + 1.0).abs() < 1e-12);
/// ```
pub fn pearson<A, B>(a: &[A], b: &[B]) -> f64
where
    A: Copy + Into<f64>,
    B: Copy + Into<f64>,
{
    assert_same_length(a.len(), b.len());
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut covariance, mut variance_a, mut variance_b) = (0.0, 0.0, 0.0);
    for (&x, &y) in a.iter().zip(b) {
        let (x, y) = (x.into() - mean_a, y.into() - mean_b);
        covariance += x * y;
        variance_a += x * x;
        variance_b += y * y;
    }
    // Two square roots: the product of the variances can leave the range of f64 when each does not.
    let scale = variance_a.sqrt() * variance_b.sqrt();
    if scale > 0.0 {
        (covariance / scale).clamp(-1.0, 1.0)
    } else {
        f64::NAN
    }
}

/// The Spearman correlation: Pearson's of the ranks, where tied values share their average rank.
///
/// # Panics
/// If the series differ in length.
pub fn spearman<A, B>(a: &[A], b: &[B]) -> f64
where
    A: Copy + Into<f64>,
    B: Copy + Into<f64>,
{
    assert_same_length(a.len(), b.len());
    pearson(&ranks(a), &ranks(b))
}

/// The fraction of the truth's variance that a prediction explains, `1 − Σ(t−p)² / Σ(t−t̄)²`.
///
/// Negative when the prediction is worse than the truth's mean; `NaN` if the truth is constant.
///
/// # Panics
/// If the series differ in length.
pub fn r_squared<A, B>(truth: &[A], prediction: &[B]) -> f64
where
    A: Copy + Into<f64>,
    B: Copy + Into<f64>,
{
    assert_same_length(truth.len(), prediction.len());
    let centre = mean(truth);
    let (mut residual, mut total) = (0.0, 0.0);
    for (&t, &p) in truth.iter().zip(prediction) {
        let t: f64 = t.into();
        residual += (t - p.into()).powi(2);
        total += (t - centre).powi(2);
    }
    if total > 0.0 {
        1.0 - residual / total
    } else {
        f64::NAN
    }
}

/// The median; the mean of the two middle values for an even count, `NaN` for none.
///
/// Not-a-numbers sort last, so they count as very large.
pub fn median<A: Copy + Into<f64>>(values: &[A]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().map(|&v| v.into()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => 0.5 * (sorted[middle - 1] + sorted[middle]),
    }
}

/// The arithmetic mean; `NaN` for none.
pub fn mean<A: Copy + Into<f64>>(values: &[A]) -> f64 {
    values.iter().map(|&v| v.into()).sum::<f64>() / values.len() as f64
}

/// Ranks from 1; equal values share the average of the ranks they span.
fn ranks<A: Copy + Into<f64>>(values: &[A]) -> Vec<f64> {
    let values: Vec<f64> = values.iter().map(|&v| v.into()).collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let same = |&&i: &&usize| values[i] == values[order[start]];
        // At least one, also for a NaN, which equals nothing.
        let length = order[start..].iter().take_while(same).count().max(1);
        for &i in &order[start..start + length] {
            ranks[i] = start as f64 + 0.5 * (length as f64 + 1.0);
        }
        start += length;
    }
    ranks
}

fn assert_same_length(a: usize, b: usize) {
    assert_eq!(
        a, b,
        "the two series that are compared have {a} and {b} values; they need as many"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_share_their_average_rank() {
        assert_eq!(
            ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]),
            vec![4.0, 1.0, 4.0, 2.0, 4.0]
        );
        assert_eq!(ranks(&[0.0, -0.0]), vec![1.5, 1.5]);
    }

    #[test]
    fn textbook_values() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 5.0]);
        // 1 − 6 Σd² / (n (n² − 1)) with Σd² = 4.
        assert!((spearman(&a, &b) - 0.8).abs() < 1e-12);
        assert!((pearson(&a, &b) - 0.8).abs() < 1e-12);
        assert!((r_squared(&a, &b) - 0.6).abs() < 1e-12);
        assert_eq!(median(&[4.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
    }

    #[test]
    fn nothing_to_say_is_nan() {
        assert!(pearson(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
        assert!(spearman::<f64, f64>(&[], &[]).is_nan());
        assert!(r_squared(&[2.0, 2.0], &[1.0, 2.0]).is_nan());
        assert!(median::<f64>(&[]).is_nan());
    }

    #[test]
    fn a_large_offset_does_not_eat_the_correlation() {
        let a: Vec<f64> = (0..1000).map(|i| 1e9 + f64::from(i).sin()).collect();
        let b: Vec<f64> = (0..1000).map(|i| -1e9 + f64::from(i).sin()).collect();
        assert!((pearson(&a, &b) - 1.0).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn spearman_sees_only_the_order(values in prop::collection::vec(-5.0..5.0_f64, 3..60)) {
            let bent: Vec<f64> = values.iter().map(|v| v.exp()).collect();
            let rho = spearman(&values, &bent);
            prop_assert!(rho.is_nan() || (rho - 1.0).abs() < 1e-9);
        }

        #[test]
        fn pearson_ignores_scale_and_shift(
            pairs in prop::collection::vec((-5.0..5.0_f64, -5.0..5.0_f64), 3..60),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let moved: Vec<f64> = a.iter().map(|v| 3.0 - 2.0 * v).collect();
            let (r, s) = (pearson(&a, &b), pearson(&moved, &b));
            prop_assert!(r.is_nan() || (r + s).abs() < 1e-9);
            prop_assert!(r.is_nan() || r.abs() <= 1.0);
        }
    }
}
