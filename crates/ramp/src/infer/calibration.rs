//! Whether beliefs are as sure as they should be: the rank of what is true among what was held possible is uniform
//! (probability integral transform; simulation-based calibration).

use crate::kernel::normal::normal_quantile;
use serde::{Deserialize, Serialize};

/// The bins of a histogram of ranks.
const BINS: usize = 20;
/// Below this, ranks are called other than uniform.
const DOUBT: f64 = 0.001;

/// The place of a value among weighted candidates, from 0 to 1: uniform over many values if each of them is a draw from its candidates'
/// weights.
///
/// Ties (categories, whole numbers) are broken at random by `chance`, a number drawn between 0 and 1. So is the gap between two
/// candidates: the value counts as one more of them, as among `n` equal draws each of `n + 1` ranks is as likely.
///
/// ```
/// use ramp::infer::rank_among;
/// let candidates = || [(1.0, 0.5), (2.0, 0.25), (3.0, 0.25)].into_iter();
/// assert!(rank_among(0.0, candidates(), 0.0) == 0.0);
/// assert!(rank_among(9.0, candidates(), 1.0) == 1.0);
/// let (low, high) = (rank_among(2.0, candidates(), 0.0), rank_among(2.0, candidates(), 1.0));
/// assert!(low < 0.5 && high > 0.5);
/// ```
pub fn rank_among(value: f64, candidates: impl Iterator<Item = (f64, f64)>, chance: f64) -> f64 {
    let (mut below, mut equal, mut all, mut squares) = (0.0, 0.0, 0.0, 0.0);
    for (candidate, weight) in candidates {
        all += weight;
        squares += weight * weight;
        if candidate < value {
            below += weight;
        } else if candidate == value {
            equal += weight;
        }
    }
    // One over the effective number of candidates.
    let own = squares / all;
    (below + chance * (equal + own)) / (all + own)
}

/// The rank of a value in a normal distribution.
///
/// ```
/// assert!((ramp::infer::rank_in_normal(1.96, 0.0, 1.0) - 0.975).abs() < 1e-4);
/// ```
pub fn rank_in_normal(value: f64, mean: f64, sd: f64) -> f64 {
    let x = (value - mean) / sd / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    // A Chebyshev fit whose relative error is below 1.2e-7 everywhere.
    let tail = [
        0.17087277,
        -0.82215223,
        1.48851587,
        -1.13520398,
        0.27886807,
        -0.18628806,
        0.09678418,
        0.37409196,
        1.00002368,
        -1.26551223,
    ];
    let tail = t * (tail.iter().fold(0.0, |sum, c| sum * t + c) - x * x).exp();
    if x < 0.0 {
        tail / 2.0
    } else {
        1.0 - tail / 2.0
    }
}

/// What many ranks say of the beliefs that they are ranks in.
///
/// ```
/// use ramp::infer::{Calibration, rank_in_normal};
/// // Errors are standard normal; the beliefs say that they are narrower.
/// let error = |n: usize| Calibration::normal_score((n as f64 + 0.5) / 2000.0);
/// let ranks = |sd: f64| (0..2000).map(move |n| rank_in_normal(error(n), 0.0, sd)).collect::<Vec<_>>();
/// assert!(Calibration::of(&ranks(1.0), None).is_some_and(|c| c.is_uniform()));
/// let narrow = Calibration::of(&ranks(0.9), None).unwrap();
/// assert!(!narrow.is_uniform() && (narrow.spread - 0.9).abs() < 0.01);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Calibration {
    /// How many ranks.
    pub ranks: usize,
    /// How many of them fall into each twentieth.
    pub histogram: Vec<usize>,
    /// How far truths lie above beliefs on average, in standard deviations of the beliefs.
    pub shift: f64,
    /// Its standard error.
    pub shift_error: f64,
    /// How wide beliefs are, compared with how wide they should be: 0.9 is ten per cent too sure.
    pub spread: f64,
    /// Its standard error.
    pub spread_error: f64,
    /// The chance that ranks of right beliefs look as uneven as these.
    pub p: f64,
}

impl Calibration {
    /// Looks at independent ranks; none if there are too few to say anything. `support` is the number of candidates that all of them
    /// were compared with, where they were: another set of candidates would move all ranks together.
    pub fn of(ranks: &[f64], support: Option<usize>) -> Option<Self> {
        Self::of_groups(ranks, ranks.len(), support)
    }

    /// The same where ranks of one group, such as the cells of a row, may go together. So many groups count as so many ranks, which is
    /// careful: those of a group seldom agree wholly.
    pub fn of_groups(ranks: &[f64], groups: usize, support: Option<usize>) -> Option<Self> {
        let count = ranks.len();
        if count < BINS || groups < BINS {
            return None;
        }
        let n = count as f64;
        let inflated =
            n / groups.min(count) as f64 + support.map_or(0.0, |support| n / support.max(1) as f64);
        let mut histogram = vec![0; BINS];
        let mut legendre = [0.0; 4];
        for &u in ranks {
            histogram[((u * BINS as f64) as usize).min(BINS - 1)] += 1;
            for (sum, value) in legendre.iter_mut().zip(orthonormal(u)) {
                *sum += value / n;
            }
        }
        let scores: Vec<f64> = ranks.iter().map(|&u| Self::normal_score(u)).collect();
        let moment =
            |centre: f64, power| scores.iter().map(|e| (e - centre).powi(power)).sum::<f64>() / n;
        let shift = moment(0.0, 1);
        let (variance, fourth) = (moment(shift, 2), moment(shift, 4));
        let spread = variance.sqrt().recip();
        let shift_error = (variance / n * inflated).sqrt();
        // Of the logarithm of a standard deviation.
        let log_error =
            ((fourth / (variance * variance) - 1.0).max(0.0) / n * inflated).sqrt() / 2.0;
        // Neyman's smooth test with four components, and the two that matter most by themselves.
        let smooth = legendre.iter().map(|c| n * c * c).sum::<f64>() / inflated / 2.0;
        let of_four = (-smooth).exp() * (1.0 + smooth);
        let two_sided = |z: f64| 2.0 * rank_in_normal(-z.abs(), 0.0, 1.0);
        // Under the hypothesis, the logarithm's error is that of normal scores.
        let of_spread = two_sided(spread.ln() / (inflated / (2.0 * n)).sqrt());
        let of_shift = two_sided(shift / (inflated / n).sqrt());
        Some(Calibration {
            ranks: count,
            histogram,
            shift,
            shift_error,
            spread,
            spread_error: spread * log_error,
            p: (3.0 * of_four.min(of_spread).min(of_shift)).min(1.0),
        })
    }

    /// Whether ranks of right beliefs would look like these at least once in a thousand times.
    pub fn is_uniform(&self) -> bool {
        self.p >= DOUBT
    }

    /// The standard normal number of a rank. A rank of 0 or 1 stands for one that many draws would tell apart from it.
    pub fn normal_score(rank: f64) -> f64 {
        normal_quantile(rank.clamp(1e-6, 1.0 - 1e-6))
    }
}

/// Legendre polynomials of degree 1 to 4 on the unit interval, orthonormal: bias, spread, skew, tails.
fn orthonormal(u: f64) -> [f64; 4] {
    let x = 2.0 * u - 1.0;
    let (x2, x4) = (x * x, x * x * x * x);
    [
        3f64.sqrt() * x,
        5f64.sqrt() * (3.0 * x2 - 1.0) / 2.0,
        7f64.sqrt() * x * (5.0 * x2 - 3.0) / 2.0,
        3.0 * (35.0 * x4 - 30.0 * x2 + 3.0) / 8.0,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn normal_ranks_and_scores_are_those_of_tables() {
        for (x, p) in [
            (0.0, 0.5),
            (1.0, 0.841344746),
            (-1.644853627, 0.05),
            (2.575829304, 0.995),
            (-3.719016485, 1e-4),
        ] {
            assert!((rank_in_normal(x, 0.0, 1.0) - p).abs() < 2e-7, "{x}");
            assert!((Calibration::normal_score(p) - x).abs() < 1e-3, "{p}");
            assert!((rank_in_normal(7.0 + 2.0 * x, 7.0, 2.0) - p).abs() < 2e-7);
        }
    }

    /// Right beliefs pass about as often as they should; of those off by a tenth not one in a hundred does, at the 2,000 ranks that are promised.
    #[test]
    fn two_thousand_ranks_tell_spreads_that_are_off_by_a_tenth() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut low, mut lower, mut missed) = (0, 0, 0);
        for _ in 0..300 {
            let errors: Vec<f64> = (0..2000).map(|_| StandardNormal.sample(&mut rng)).collect();
            let judged = |centre: f64, sd: f64| {
                let ranks: Vec<f64> = errors
                    .iter()
                    .map(|&e| rank_in_normal(e, centre, sd))
                    .collect();
                Calibration::of(&ranks, None).unwrap()
            };
            let right = judged(0.0, 1.0);
            low += usize::from(right.p < 0.1);
            lower += usize::from(right.p < DOUBT);
            for sd in [0.9, 1.1] {
                let wrong = judged(0.0, sd);
                missed += usize::from(wrong.is_uniform());
                assert!(
                    (wrong.spread - sd).abs() < 4.5 * wrong.spread_error,
                    "{wrong:?}"
                );
            }
            missed += usize::from(judged(0.15, 1.0).is_uniform());
        }
        assert!(missed <= 9, "{missed} of 900 that are off pass");
        // A tenth of 300, at most: three looks share the chance.
        assert!((5..=45).contains(&low), "{low} of 300 below 0.1");
        assert!(lower <= 3, "{lower} of 300 below {DOUBT}");
    }

    /// Cells whose candidates are draws of the same distribution, some with ties; few candidates, and as many as ranks.
    #[test]
    fn ranks_among_draws_are_uniform_whatever_the_ties() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for levels in [0, 2, 5] {
            let cut = |x: f64| match levels {
                0 => x,
                n => (x * f64::from(n) / 4.0).round().clamp(0.0, f64::from(n)),
            };
            for count in [10, 200] {
                let draw = |rng: &mut ChaCha8Rng| cut(StandardNormal.sample(rng));
                let ranks: Vec<f64> = (0..4000)
                    .map(|_| {
                        let all: Vec<f64> = (0..count).map(|_| draw(&mut rng)).collect();
                        let value = draw(&mut rng);
                        let even = all.into_iter().map(|c| (c, 1.0 / f64::from(count)));
                        rank_among(value, even, rng.random_range(0.0..1.0))
                    })
                    .collect();
                let found = Calibration::of(&ranks, None).unwrap();
                assert!(found.is_uniform(), "{levels} {count}: {found:?}");
            }
        }
        // The same candidates for all: their own chance counts.
        let (mut alone, mut together) = (0, 0);
        for _ in 0..60 {
            let support: Vec<f64> = (0..1000).map(|_| StandardNormal.sample(&mut rng)).collect();
            let ranks: Vec<f64> = (0..4000)
                .map(|_| {
                    let value = StandardNormal.sample(&mut rng);
                    let even = support.iter().map(|&c| (c, 1e-3));
                    rank_among(value, even, rng.random_range(0.0..1.0))
                })
                .collect();
            alone += usize::from(Calibration::of(&ranks, None).unwrap().p < 0.01);
            together += usize::from(Calibration::of(&ranks, Some(1000)).unwrap().p < 0.01);
        }
        assert!(alone > 10 && together <= 6, "{alone} {together}");
    }

    #[test]
    fn few_ranks_say_nothing() {
        assert_eq!(Calibration::of(&[0.5; 19], None), None);
    }
}
