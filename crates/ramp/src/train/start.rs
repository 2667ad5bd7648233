//! Which of several starts of a chain to train from: each learns for a while, and the one whose present foretells the future best
//! goes on.
//!
//! No start suits every system, and the free energy does not see what is missing: a belief that knows places but no velocities can
//! have as high a free energy as one that knows both. What differs is what lies ahead. So every start is judged, without labels, by
//! how well a smooth function (kernel ridge regression) of the filtered mean, which has seen nothing of the future, predicts what
//! observations will show some steps later.

use super::{Event, Observer, TrainSpec, Trainer};
use crate::Result;
use crate::data::Dataset;
use crate::model::{DynamicsInit, Model, Observed, linalg};

/// Sequences that starts learn from.
const SEQUENCES: usize = 400;
/// The part of all iterations that each start learns for, within bounds.
const PART: usize = 6;
const ITERATIONS: std::ops::RangeInclusive<usize> = 60..=200;
/// How many steps ahead is foretold.
const AHEAD: [usize; 3] = [2, 4, 8];
/// Rows that the regression is fitted to, and judged on, at most.
const ROWS: usize = 700;
/// Components that are foretold, at most.
const COMPONENTS: usize = 8;

/// One start and how it did.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TriedStart {
    /// The start.
    pub init: DynamicsInit,
    /// The share of variance of what observations show that was foretold, over a few distances; at most 1.
    pub foretold: f64,
    /// The mean free energy of its last iterations, in nats.
    pub free_energy: f64,
}

/// Initialises a chain by the best of the starts that suit its latents, from some samples of its data, and tells how each did, the best first.
/// Where only one start suits them, nothing is tried. The observer watches the short trainings and may stop them, which is
/// [`TrainError::Interrupted`](super::TrainError::Interrupted); they take all threads unless told otherwise.
pub fn start_chain(
    model: &mut Model,
    data: &Dataset,
    samples: &[u32],
    spec: &TrainSpec,
    threads: Option<usize>,
    observer: &mut dyn Observer,
) -> Result<Vec<TriedStart>> {
    if !model.has_rates() {
        model.init_dynamics(data, samples, DynamicsInit::twist())?;
        return Ok(vec![]);
    }
    let chosen: Vec<u32> = samples.iter().copied().take(SEQUENCES).collect();
    let few = data.select(&chosen);
    let all: Vec<u32> = (0..chosen.len() as u32).collect();
    let iterations = (spec.iterations / PART).clamp(*ITERATIONS.start(), *ITERATIONS.end());
    let mut short = spec.clone().lasting(iterations.min(spec.iterations.max(1)));
    short.holdout = 0.0;
    short.patience = None;
    short.batch = short.batch.filter(|&b| b < all.len());
    let Some(observed) = model.observed(&few, &all, COMPONENTS)? else {
        model.init_dynamics(data, samples, DynamicsInit::twist())?;
        return Ok(vec![]);
    };
    let mut tried = vec![];
    for init in [DynamicsInit::twist(), DynamicsInit::drift()] {
        let mut candidate = model.clone();
        candidate.init_dynamics(data, samples, init)?;
        let mut trainer = Trainer::new(short.clone())?
            .observer(|event: &Event<'_, Model>| observer.observe(event));
        if let Some(threads) = threads {
            trainer = trainer.threads(threads);
        }
        let fit = trainer.fit(&mut candidate, &few)?;
        drop(trainer);
        let last = fit.records.len().saturating_sub(10);
        let last: Vec<f64> = fit.records[last..].iter().map(|r| r.free_energy).collect();
        tried.push(TriedStart {
            init,
            foretold: foretold(&candidate, &few, &observed)?,
            free_energy: last.iter().sum::<f64>() / last.len().max(1) as f64,
        });
    }
    tried.sort_by(|a, b| b.foretold.total_cmp(&a.foretold));
    if let Some(best) = tried.first() {
        model.init_dynamics(data, samples, best.init)?;
    }
    Ok(tried)
}

/// The share of variance of components some steps ahead that filtered means foretell, on other sequences than those it is learned from.
fn foretold(model: &Model, data: &Dataset, observed: &Observed) -> Result<f64> {
    let posterior = model.filtered(data)?;
    let mut total = vec![];
    let latents = posterior.latents();
    let point = |sequence: usize, step: usize| match latents {
        [one] if one.steps().is_some() => one.describe_at(sequence, step).mean,
        many => many[step].describe(sequence).mean,
    };
    let components: Vec<Vec<f64>> = (0..observed.len())
        .map(|i| observed.components(i))
        .collect();
    let row_of: std::collections::HashMap<(usize, usize), usize> = observed
        .places
        .iter()
        .enumerate()
        .map(|(i, &p)| (p, i))
        .collect();
    for ahead in AHEAD {
        let pairs: Vec<(usize, usize)> = observed
            .places
            .iter()
            .enumerate()
            .filter_map(|(i, &(sequence, step))| {
                row_of.get(&(sequence, step + ahead)).map(|&j| (i, j))
            })
            .collect();
        let half = |odd: usize| {
            let own: Vec<&(usize, usize)> = pairs
                .iter()
                .filter(|(i, _)| observed.places[*i].0 % 2 == odd)
                .collect();
            let every = own.len().div_ceil(ROWS).max(1);
            let (mut points, mut targets) = (vec![], vec![]);
            for &&(i, j) in own.iter().step_by(every) {
                let (sequence, step) = observed.places[i];
                points.push(point(sequence, step));
                targets.push(components[j].clone());
            }
            (points, targets)
        };
        let ((known, known_targets), (others, other_targets)) = (half(0), half(1));
        if known.len() < 10 || others.len() < 10 {
            continue;
        }
        total.push(explained(&known, &known_targets, &others, &other_targets));
    }
    let count = total.len().max(1) as f64;
    Ok(total.iter().sum::<f64>() / count)
}

/// The share of variance that a kernel ridge regression explains on other points: a Gaussian kernel as wide as the points spread.
fn explained(
    known: &[Vec<f64>],
    targets: &[Vec<f64>],
    others: &[Vec<f64>],
    truth: &[Vec<f64>],
) -> f64 {
    let n = known.len();
    let dims = known[0].len();
    let spread: Vec<f64> = (0..dims)
        .map(|d| {
            let mean = known.iter().map(|p| p[d]).sum::<f64>() / n as f64;
            let square = known.iter().map(|p| (p[d] - mean).powi(2)).sum::<f64>() / n as f64;
            square.sqrt().max(1e-9)
        })
        .collect();
    let kernel = |a: &[f64], b: &[f64]| {
        let parts = a.iter().zip(b).zip(&spread);
        let square: f64 = parts.map(|((a, b), s)| ((a - b) / s).powi(2)).sum();
        (-square / dims as f64).exp()
    };
    let mut gram = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            gram[i * n + j] = kernel(&known[i], &known[j]) + f64::from(u8::from(i == j));
        }
    }
    let Some(factor) = linalg::cholesky(n, &gram) else {
        return 0.0;
    };
    let near: Vec<Vec<f64>> = others
        .iter()
        .map(|p| known.iter().map(|k| kernel(p, k)).collect())
        .collect();
    let (mut left, mut all) = (0.0, 0.0);
    for c in 0..targets[0].len() {
        let mut weights: Vec<f64> = targets.iter().map(|t| t[c]).collect();
        linalg::solve(n, &factor, &mut weights);
        for (near, truth) in near.iter().zip(truth) {
            let predicted: f64 = near.iter().zip(&weights).map(|(a, b)| a * b).sum();
            left += (predicted - truth[c]).powi(2);
            all += truth[c].powi(2);
        }
    }
    1.0 - left / f64::max(all, 1e-12)
}
