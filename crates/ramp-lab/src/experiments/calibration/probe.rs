//! Ranks of latents in their posteriors, and of hidden cells and cells to come among what they may be.

use super::data::Sample;
use crate::error::LabError;
use crate::gaussian::{GaussianPosterior, GaussianTree};
use crate::metrics::pearson;
use ramp::infer::{
    Calibration, Forecaster, Imputer, SeriesSupport, SupportSet, rank_among, rank_in_normal,
};
use ramp::model::Model;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Samples of training that cells are compared with.
const SUPPORT: usize = 4000;
/// Steps that are forecast.
pub(super) const AHEAD: usize = 3;
/// What spreads are multiplied by to see that it would be noticed; the first is what the model says.
const FACTORS: [f64; 3] = [1.0, 0.9, 1.1];

/// What was asked of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// The true latent in its posterior.
    Latents,
    /// A hidden cell among its imputations.
    HiddenCells,
    /// A cell to come among its forecasts.
    Forecasts,
}

/// Ranks of one kind, one of each test sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// Of what.
    pub of: Of,
    /// What they say.
    #[serde(flatten)]
    pub calibration: Calibration,
    /// The chance of ranks as uneven, had spreads been multiplied by 0.9.
    pub p_narrow: f64,
    /// The same by 1.1.
    pub p_wide: f64,
    /// What ranks of the same truths in exact posteriors say, where there are such: what of the unevenness is the sample's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Calibration>,
}

impl Ranks {
    /// From ranks at each of the factors.
    fn new(of: Of, ranks: Vec<[f64; 3]>, support: Option<usize>) -> Result<Self, LabError> {
        let [right, narrow, wide] = [0, 1, 2].map(|i| {
            let ranks: Vec<f64> = ranks.iter().map(|r| r[i]).collect();
            Calibration::of(&ranks, support)
        });
        match (right, narrow, wide) {
            (Some(calibration), Some(narrow), Some(wide)) => Ok(Ranks {
                of,
                calibration,
                p_narrow: narrow.p,
                p_wide: wide.p,
                exact: None,
            }),
            _ => Err(LabError::Invalid(
                "ranks of so few samples say nothing; take at least 20 test samples".into(),
            )),
        }
    }
}

/// The ranks of true latents in their posteriors. One latent of each sample: those of a sample are not independent.
///
/// A model's latents have no zero and no unit but those of its training samples, whose beliefs should add up to the prior. So truths are counted from the
/// mean of the training samples' truths, in their standard deviations: among 6,000 samples that mean is 0.013 off, which against a posterior three
/// times as narrow as the prior is 0.04 of its standard deviations, and thousands of ranks notice it. What beliefs add up to is the
/// model's: a tree's have means within 0.01 of the prior's, and a chain is centred at the end of its fit.
pub(super) fn latents(model: &Model, train: &Sample, test: &Sample) -> Result<Ranks, LabError> {
    let scales = train.latent_scales();
    let posterior = model.posterior(&test.dataset(0)?)?;
    let of = |k: usize, row: usize| match posterior.latents() {
        [chain] if chain.steps().is_some() => chain.describe_at(row, k),
        all => all[k].describe(row),
    };
    let count = test.latents.len();
    // Their signs are free, each in a tree, all together in a chain.
    let signs: Vec<f64> = (0..count)
        .map(|k| {
            let means: Vec<f64> = (0..test.rows()).map(|row| of(k, row).mean[0]).collect();
            pearson(&means, &test.latents[k]).signum()
        })
        .collect();
    let ranks = (0..test.rows())
        .map(|row| {
            let k = row % count;
            let (mean, sd) = scales[k];
            let truth = signs[k] * (f64::from(test.latents[k][row]) - mean) / sd;
            let belief = of(k, row);
            FACTORS.map(|factor| rank_in_normal(truth, belief.mean[0], factor * belief.sd[0]))
        })
        .collect();
    Ranks::new(Of::Latents, ranks, None)
}

/// What the ranks of the same latents say in their exact posteriors, truths as they are.
pub(super) fn exact_latents(
    tree: &GaussianTree,
    test: &Sample,
) -> Result<Option<Calibration>, LabError> {
    let count = test.latents.len();
    let latents = Vec::from_iter(0..count);
    let observed = Vec::from_iter(count..count + test.observed.len());
    let covariance = tree.covariance();
    let rank = |row: usize| -> Result<f64, LabError> {
        let values: Vec<Vec<f32>> = test.observed.iter().map(|x| vec![x[row]]).collect();
        let missing = (0..values.len()).filter(|&o| values[o][0].is_nan());
        let missing: Vec<usize> = missing.collect();
        let k = row % count;
        if missing.len() == values.len() {
            return Ok(rank_in_normal(f64::from(test.latents[k][row]), 0.0, 1.0));
        }
        let exact = GaussianPosterior::condition(&covariance, &latents, &observed, &missing)?;
        let (mean, variance) = (exact.means(&values)?[k][0], exact.variances()[k]);
        let truth = f64::from(test.latents[k][row]);
        Ok(rank_in_normal(truth, mean, variance.sqrt()))
    };
    let ranks = (0..test.rows()).into_par_iter().map(rank);
    let ranks = ranks.collect::<Result<Vec<f64>, LabError>>()?;
    Ok(Calibration::of(&ranks, None))
}

/// A cell: its sample and its observation.
type Cell = (usize, usize);

/// One cell of each sample that has one of these observations, in turn.
fn cells(test: &Sample, observations: std::ops::Range<usize>) -> Vec<Cell> {
    let count = observations.len();
    let there = |row: usize| {
        let turn = (0..count).map(move |i| observations.start + (row + i) % count);
        let mut turn = turn.filter(|&o| test.observed[o][row].is_finite());
        turn.next().map(|o| (row, o))
    };
    (0..test.rows()).filter_map(there).collect()
}

/// The ranks of a cell at each of the factors, among weighted candidates.
fn rank(truth: f32, candidates: &[f64], weights: &[f64], chance: f64) -> [f64; 3] {
    let truth = f64::from(truth);
    let middle: f64 = candidates.iter().zip(weights).map(|(c, w)| c * w).sum();
    // Whole numbers have no spread that could be changed: they are never halves of a unit apart by chance.
    let whole = candidates.iter().take(50).all(|c| (2.0 * c).fract() == 0.0);
    FACTORS.map(|factor| {
        let factor = if whole { 1.0 } else { factor };
        let scaled = candidates.iter().map(|c| match factor == 1.0 {
            true => *c,
            false => middle + factor * (c - middle),
        });
        rank_among(truth, scaled.zip(weights.iter().copied()), chance)
    })
}

/// A chance for every cell, the same whoever asks first.
fn chances(count: usize, seed: u64) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(2);
    (0..count).map(|_| random.random_range(0.0..1.0)).collect()
}

/// The first samples of training, that cells are compared with.
fn support(train: &Sample) -> Sample {
    let mut support = train.clone();
    for values in &mut support.observed {
        values.truncate(SUPPORT);
    }
    support
}

/// The ranks of hidden cells of a tree, one of each sample. How much messages count is learned from fresh samples that are neither learned from nor tested.
pub(super) fn hidden_in_tree(
    model: &Model,
    train: &Sample,
    fresh: &Sample,
    test: &Sample,
    seed: u64,
) -> Result<Ranks, LabError> {
    let kept = support(train);
    let data = kept.dataset(0)?;
    let set = SupportSet::new(model, &data, train.rows())?;
    let mut imputer = Imputer::new(model, &set, &data)?;
    imputer.fit_temperature(model, &fresh.dataset(0)?)?;
    let conditionals = imputer.conditionals(model, &test.dataset(0)?)?;
    let cells = cells(test, 0..test.observed.len());
    let chances = chances(cells.len(), seed);
    let ranks = cells.par_iter().zip(&chances).map(|(&(row, o), &chance)| {
        let weights = conditionals.weights(o, row);
        let candidates = imputer.candidates(o).iter();
        let candidates: Vec<f64> = candidates
            .map(|&n| f64::from(kept.observed[o][n as usize]))
            .collect();
        rank(test.observed[o][row], &candidates, &weights, chance)
    });
    Ranks::new(Of::HiddenCells, ranks.collect(), Some(kept.rows()))
}

/// What the cells of a series may be, with their values.
struct Series {
    support: SeriesSupport,
    values: Vec<Vec<f64>>,
    rows: usize,
}

impl Series {
    fn new(model: &Model, train: &Sample, series: usize) -> Result<Self, LabError> {
        let kept = support(train);
        let support = SeriesSupport::new(model, &kept.dataset(0)?, SUPPORT)?;
        let values = (0..series)
            .map(|s| {
                let places = support.places(s).iter();
                let value =
                    |&(n, t): &(u32, u32)| kept.observed[t as usize * series + s][n as usize];
                places.map(|place| f64::from(value(place))).collect()
            })
            .collect();
        Ok(Series {
            rows: support.places(0).len(),
            support,
            values,
        })
    }

    fn rank(&self, series: usize, belief: &[f64], truth: f32, chance: f64) -> [f64; 3] {
        let weights = self.support.weights(series, belief);
        rank(truth, &self.values[series], &weights, chance)
    }
}

/// The ranks of hidden cells of a chain and of cells to come, one of each sample.
pub(super) fn over_time(
    model: &Model,
    train: &Sample,
    test: &Sample,
    seed: u64,
) -> Result<[Ranks; 2], LabError> {
    let Some(time) = model.tree().time_axis() else {
        return Err(LabError::Invalid("only chains go on".into()));
    };
    let each = time.series().len();
    let series = Series::new(model, train, each)?;

    let hidden = cells(test, 0..test.observed.len());
    let mut without = test.clone();
    for &(row, o) in &hidden {
        without.observed[o][row] = f32::NAN;
    }
    let posterior = model.posterior(&without.dataset(0)?)?;
    let beliefs = &posterior.latents()[0];
    let chance = chances(2 * test.rows(), seed);
    let ranks = hidden.par_iter().zip(&chance).map(|(&(row, o), &chance)| {
        let (s, step) = Sample::place(time, o);
        let belief = beliefs.natural_at(row, step);
        series.rank(s, belief, test.observed[o][row], chance)
    });
    let hidden = Ranks::new(Of::HiddenCells, ranks.collect(), Some(series.rows))?;

    let known = time.steps() - AHEAD;
    let begun = test.dataset(AHEAD)?;
    let forecaster = Forecaster::new(model)?;
    let to_come = cells(test, known * each..test.observed.len());
    let chance = &chance[test.rows()..];
    let ranks = to_come.par_iter().zip(chance).map(|(&(row, o), &chance)| {
        let (s, step) = Sample::place(time, o);
        let ahead = forecaster.clone().beliefs(&begun, row, step + 1 - known)?;
        let belief = ahead[step - known].natural();
        Ok(series.rank(s, belief, test.observed[o][row], chance))
    });
    let ranks = ranks.collect::<Result<Vec<_>, LabError>>()?;
    let to_come = Ranks::new(Of::Forecasts, ranks, Some(series.rows))?;
    Ok([hidden, to_come])
}
