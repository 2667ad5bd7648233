//! What can be read off points: kernel ridge regression with the usual settings, and with settings found by cross-validation.

use crate::error::LabError;
use crate::kernel_ridge::KernelRidge;
use crate::metrics::r_squared;
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Points that a regression is fitted to, and judged on, at most.
const FITTED: usize = 2500;
const JUDGED: usize = 10_000;

/// R² of every variable on test sequences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeR2 {
    /// By scikit-learn's default settings.
    pub usual: Vec<f64>,
    /// By a width of the kernel and a penalty found by cross-validation on training sequences: how much is there at all.
    pub tuned: Vec<f64>,
}

/// Points in a space of some dimension, step by step, sequence by sequence.
pub(super) struct Points {
    pub features: usize,
    pub values: Vec<f64>,
}

/// Probes variables from standardised points.
pub(super) fn probe(
    (train, train_truth): (&Points, &[Vec<f64>]),
    (test, test_truth): (&Points, &[Vec<f64>]),
) -> Result<ProbeR2, LabError> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut choose = |of: &Points, truth: &[Vec<f64>], most: usize| {
        let count = truth[0].len();
        let chosen = sample(&mut rng, count, most.min(count)).into_vec();
        let points: Vec<f64> = chosen
            .iter()
            .flat_map(|&i| of.values[i * of.features..][..of.features].to_vec())
            .collect();
        let values: Vec<Vec<f64>> = truth
            .iter()
            .map(|t| chosen.iter().map(|&i| t[i]).collect())
            .collect();
        (points, values)
    };
    let (points, values) = choose(train, train_truth, FITTED);
    let (others, truth) = choose(test, test_truth, JUDGED);
    let judge = |ridge: KernelRidge| -> Vec<f64> {
        let predicted = ridge.predict(&others);
        truth
            .iter()
            .zip(&predicted)
            .map(|(t, p)| r_squared(t, p))
            .collect()
    };
    Ok(ProbeR2 {
        usual: judge(KernelRidge::fit(points.clone(), train.features, &values)?),
        tuned: judge(KernelRidge::tuned(points, train.features, &values)?),
    })
}
