//! A readout of what the tree says of a missing number: its own conditional mean and the rest of the row, weighted by
//! cross-validation on training rows, and smooth curves of the row where they foretell more (`waves`).
//!
//! The tree's conditional goes through one latent, which is what makes it speak of what it has learned and what makes it lose
//! where a column depends on another beyond that. A ridge regression of every number on the tree's mean and on the other
//! observations keeps the first and mends the second; where the tree is right, the rest is shrunk away. What other observations are where
//! they are missing themselves is the tree's mean of them, so a line of their means is the mean of the line. A draw adds to the mean what was missed of a
//! training row of which about the same was said, by a fit that did not see it. (Rows must not be drawn by their values here, as the tree's weights do: those of
//! high values are those that were missed from below.) What was missed is of rows of which much is known; where other observations are missing too, a draw takes them from
//! a row that is drawn with the tree's weights, and goes with its value as far as the tree is less sure than it is of training rows.

mod ahead;
mod describe;
mod signals;
mod stored;
#[cfg(test)]
mod tests;
mod waves;

use crate::Result;
use crate::encode::{Encoded, Encoder, Encoding, numbers_of};
use crate::run::{Project, support_samples};
use crate::source::Samples;
use crate::table::column;
use ramp::data::Dataset;
use ramp::infer::{Conditionals, Imputer, Ridge, SupportSet};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use signals::Signals;
use waves::{Directions, Waves};

pub(crate) use ahead::{AheadReadout, Numbers, Origin, View};
pub(crate) use stored::{read, write};

/// Fewer training rows than this leave the tree's conditional as it is.
const FEWEST: usize = 40;
/// The most observations that have readouts: their number times that of training rows is the work.
const MOST_OBSERVATIONS: usize = 400;
/// The most signals of one regression: those that go along with the target most.
const MOST_SIGNALS: usize = 128;
/// Pairs of rows that are compared to learn all readouts, in those of a latent of one number: some seconds of work.
const PAIRS: f64 = 2e8;
/// The most rows of those that chose the weights.
const MOST_FRESH: usize = 500;
/// Rows on which validation is believed as much as cross-validation: how much wider draws become where new rows are missed by more.
const DOUBT: f64 = 100.0;

/// How near rows must be, in ranks of what is said of them, for what was missed of one to be drawn for another.
const NEAR: f64 = 0.15;

/// Readouts of every column of numbers, learned from a support set.
#[derive(Clone, Debug)]
pub struct Readout {
    signals: Signals,
    directions: Directions,
    /// The signals of the support set, row by row, with the tree's means where they are missing.
    support: Vec<f64>,
    /// For every observation, one for every column of numbers; none where there is nothing to gain.
    columns: Vec<Vec<Option<ColumnReadout>>>,
}

/// How the number of one column is read off the tree and the rest of the row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnReadout {
    /// Which signals it sees, and their weights.
    signals: Vec<usize>,
    weights: Vec<f64>,
    /// The weight of the tree's mean.
    tree: f64,
    constant: f64,
    /// What is added to the line.
    curves: Option<Waves>,
    /// The variance of the tree's conditional that nine of ten training rows stay below.
    doubt: f64,
    /// How far it may go: somewhat beyond the range of training rows.
    low: f64,
    high: f64,
    /// For every candidate of the imputer, by how much it lies above what is said of it without it; in ascending order of what is said, which is beside it.
    residuals: Vec<f64>,
    said: Vec<f64>,
    /// How well it does.
    pub measured: Measured,
}

/// Mean squared errors of predictions of training rows that did not see them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// The mean's, which is the variance.
    pub variance: f64,
    /// Of the tree's conditional mean.
    pub tree: f64,
    /// Of a linear regression on the rest of the row, without the tree.
    pub linear: f64,
    /// Of both together, which is what is used.
    pub both: f64,
}

/// What is known of a target before regressions: rows of training, then others that the networks have not seen.
struct Target<'a> {
    observation: usize,
    /// The value of every row, what the tree says of it, and its signals.
    values: Vec<f64>,
    tree: Vec<f64>,
    signals: Vec<&'a [f64]>,
    /// The variance of the tree's conditional in rows of the support set.
    doubts: Vec<f64>,
    /// The rows of the support set among them, which come first.
    trained: Vec<u32>,
}

/// Rows that the networks have not seen: those that chose the weights.
struct Fresh<'a> {
    samples: Samples,
    conditionals: Conditionals<'a>,
    signals: Vec<f64>,
}

impl<'a> Fresh<'a> {
    fn new(project: &Project, readout: &Readout, imputer: &'a Imputer) -> Result<Option<Self>> {
        if project.validation.is_empty() {
            return Ok(None);
        }
        let stride = project.validation.len().div_ceil(MOST_FRESH);
        let rows: Vec<u32> = project.validation.iter().copied().step_by(stride).collect();
        let samples = project.select(&rows)?;
        let data = project.observed(&rows)?;
        let conditionals = imputer.conditionals(&project.model, &data)?;
        let (signals, _) =
            readout.signals_of(&project.encoder, &samples, &data, imputer, &conditionals, 1)?;
        Ok(Some(Fresh {
            samples,
            conditionals,
            signals,
        }))
    }
}

impl Readout {
    /// Learns from the training rows that a run keeps, and from those that chose the weights; `None` where samples are sequences or arrays, or there are too few or too wide rows.
    pub fn learn(project: &Project) -> Result<Option<Self>> {
        let encoder = &project.encoder;
        let kept = support_samples(project);
        let wide = encoder.observations.len() > MOST_OBSERVATIONS;
        if encoder.chain || project.samples.table().is_none() || wide || kept.len() < FEWEST {
            return Ok(None);
        }
        let samples = project.select(&kept)?;
        let data = project.observed(&kept)?;
        let set = SupportSet::new(&project.model, &data, project.training.len())?;
        let imputer = Imputer::new(&project.model, &set, &data)?;
        let conditionals = imputer.conditionals(&project.model, &data)?;
        let latents = 0..project.model.beliefs().len();
        let widest = latents.map(|k| project.model.prior(k).len()).max();
        let dear = (widest.unwrap_or(2) as f64 / 2.0).max(1.0);
        let each = PAIRS / dear / (kept.len() * encoder.observations.len()) as f64;
        let rows = (each as usize).clamp(FEWEST.max(200), kept.len().max(200));
        let mut readout = Readout::unlearned(encoder, &samples, &data, &imputer, &conditionals)?;
        let fresh = Fresh::new(project, &readout, &imputer)?;
        for (observation, encoded) in encoder.observations.iter().enumerate() {
            let mut columns = vec![];
            for (feature, name) in encoded.columns.iter().enumerate() {
                if !is_number(&encoded.encoding, feature) {
                    columns.push(None);
                    continue;
                }
                let values = numbers(&samples, name)?;
                let candidates = imputer.candidates(observation);
                let stride = candidates.len().div_ceil(rows).max(1);
                let used: Vec<u32> = candidates.iter().copied().step_by(stride).collect();
                let said = tree_moments(&conditionals, &imputer, observation, &used, &values);
                let (tree, doubts) = said.into_iter().unzip();
                let mut target = Target {
                    observation,
                    tree,
                    doubts,
                    values: used.iter().map(|&row| values[row as usize]).collect(),
                    signals: used
                        .iter()
                        .map(|&row| readout.row(&readout.support, row))
                        .collect(),
                    trained: used,
                };
                if let Some(fresh) = &fresh {
                    let truth = numbers(&fresh.samples, name)?;
                    let rows = (0..truth.len() as u32).filter(|&r| truth[r as usize].is_finite());
                    let rows: Vec<u32> = rows.collect();
                    let weighed = |&row: &u32| {
                        let weights = fresh.conditionals.weights(observation, row as usize);
                        moments_of(candidates, &weights, &values).0
                    };
                    target.tree.par_extend(rows.par_iter().map(weighed));
                    target
                        .values
                        .extend(rows.iter().map(|&row| truth[row as usize]));
                    let signals = rows.iter().map(|&row| readout.row(&fresh.signals, row));
                    target.signals.extend(signals);
                }
                let learned = readout.regress(&target, candidates);
                columns.push(learned);
            }
            readout.columns[observation] = columns;
        }
        Ok(Some(readout))
    }

    /// Signals alone.
    fn unlearned(
        encoder: &Encoder,
        samples: &Samples,
        data: &Dataset,
        imputer: &Imputer,
        conditionals: &Conditionals<'_>,
    ) -> Result<Self> {
        let signals = Signals::new(encoder, samples, data)?;
        let support = signals.values(encoder, samples, data)?;
        let mut readout = Readout {
            directions: Directions::new(signals.len()),
            signals,
            support,
            columns: vec![vec![]; encoder.observations.len()],
        };
        let mut support = readout.support.clone();
        readout.fill(&mut support, imputer, conditionals, 1);
        readout.support = support;
        Ok(readout)
    }

    /// The signals of samples, with the tree's means where observations are missing, in rows that lack at least so many: where one is asked for that is
    /// missing itself, its own are not needed; and where they were missing.
    pub(crate) fn signals_of(
        &self,
        encoder: &Encoder,
        samples: &Samples,
        data: &Dataset,
        imputer: &Imputer,
        conditionals: &Conditionals<'_>,
        least: usize,
    ) -> Result<(Vec<f64>, Vec<bool>)> {
        let mut values = self.signals.values(encoder, samples, data)?;
        let holes = values.iter().map(|x| x.is_nan()).collect();
        self.fill(&mut values, imputer, conditionals, least);
        Ok((values, holes))
    }

    /// Puts the tree's means where signals are missing.
    fn fill(
        &self,
        values: &mut [f64],
        imputer: &Imputer,
        conditionals: &Conditionals<'_>,
        least: usize,
    ) {
        let width = self.signals.len();
        if width == 0 {
            return;
        }
        let observations = self.columns.len();
        values
            .par_chunks_mut(width)
            .enumerate()
            .for_each(|(row, values)| {
                let lacks = |o: &usize| self.signals.of(*o).any(|s| values[s].is_nan());
                let missing: Vec<usize> = (0..observations).filter(lacks).collect();
                if missing.len() >= least {
                    for o in missing {
                        let weights = conditionals.weights(o, row);
                        for s in self.signals.of(o) {
                            values[s] = self.mean_of(s, imputer.candidates(o), &weights);
                        }
                    }
                }
                values
                    .iter_mut()
                    .filter(|x| x.is_nan())
                    .for_each(|x| *x = 0.0);
            });
    }

    /// The mean of a signal over weighted rows of the support set.
    fn mean_of(&self, signal: usize, rows: &[u32], weights: &[f64]) -> f64 {
        let at = |row: u32| self.support[row as usize * self.signals.len() + signal];
        let known = rows
            .iter()
            .zip(weights)
            .filter(|(row, _)| at(**row).is_finite());
        let (sum, total) = known.fold((0.0, 0.0), |(sum, total), (row, w)| {
            (sum + w * at(*row), total + w)
        });
        if total > 0.0 { sum / total } else { 0.0 }
    }

    /// The regression of one target, if there are rows enough.
    fn regress(&self, target: &Target<'_>, candidates: &[u32]) -> Option<ColumnReadout> {
        let width = self.signals.len();
        let own = self.signals.of(target.observation);
        let (values, trained) = (&target.values, target.trained.len());
        if trained < FEWEST || values.iter().chain(&target.tree).any(|x| !x.is_finite()) {
            return None;
        }
        let (mean, variance) = moments(values);
        let (tree_mean, tree_variance) = moments(&target.tree);
        let unit = variance.sqrt();
        if unit.is_nan() || unit <= 0.0 {
            return None;
        }
        let mut chosen: Vec<usize> = (0..width).filter(|s| !own.contains(s)).collect();
        if chosen.len() > MOST_SIGNALS {
            let agreement = |s: usize| {
                let products = target.signals.iter().zip(values);
                products
                    .map(|(row, y)| row[s] * (y - mean))
                    .sum::<f64>()
                    .abs()
            };
            let mut ranked: Vec<(f64, usize)> = chosen.iter().map(|&s| (agreement(s), s)).collect();
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            chosen = ranked[..MOST_SIGNALS].iter().map(|&(_, s)| s).collect();
            chosen.sort_unstable();
        }
        let targets: Vec<f64> = values.iter().map(|y| (y - mean) / unit).collect();
        let spread = tree_variance.sqrt().max(1e-6 * unit);
        let with_tree = |tree: bool| -> Vec<f64> {
            let rows = target.signals.iter().zip(&target.tree);
            rows.flat_map(|(row, t)| {
                let first = tree.then_some((t - tree_mean) / spread);
                first.into_iter().chain(chosen.iter().map(move |&s| row[s]))
            })
            .collect()
        };
        let linear = Ridge::fit(&with_tree(false), chosen.len(), &targets)?;
        let both = Ridge::fit(&with_tree(true), chosen.len() + 1, &targets)?;
        let left: Vec<f64> = (targets.iter().zip(&both.crossed))
            .map(|(y, said)| y - said)
            .collect();
        let curves = self.directions.learn(&chosen, &target.signals, &left);
        let (curves, bent, error) = match curves {
            Some((curves, bent, error)) => (Some(curves), bent, error),
            None => (None, vec![0.0; left.len()], both.error),
        };
        let tree = (target.tree.iter().zip(values)).map(|(t, y)| (t - y).powi(2));
        let measured = Measured {
            variance,
            tree: tree.sum::<f64>() / values.len() as f64,
            linear: linear.error * variance,
            both: error * variance,
        };
        let alone = measured.tree <= measured.both;
        let at = |row: &u32| target.trained.binary_search(row).ok();
        let said = |i: usize| match alone {
            true => target.tree[i],
            false => mean + unit * (both.crossed[i] + bent[i]),
        };
        let residual = |i: usize| values[i] - said(i);
        // The networks have seen the values of training rows: where others are missed by more, draws must be wider than residuals of these.
        let square = |rows: std::ops::Range<usize>| rows.map(|i| residual(i).powi(2)).sum::<f64>();
        let usual = square(0..trained) / trained as f64;
        let others = (values.len() - trained) as f64;
        let missed = square(trained..values.len()) / usual.max(f64::MIN_POSITIVE);
        let widen = ((missed + DOUBT) / (others + DOUBT)).sqrt().clamp(1.0, 1.5);
        let mut missed: Vec<(f64, f64)> = (candidates.iter().enumerate())
            .map(|(i, row)| at(row).unwrap_or(i % trained))
            .map(|i| (said(i), widen * residual(i)))
            .collect();
        missed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (said, residuals) = missed.into_iter().unzip();
        let weight = unit * both.weights[0] / spread;
        let curves = curves.filter(|_| !alone).map(|mut curves| {
            curves.weights.iter_mut().for_each(|w| *w *= unit);
            curves
        });
        let range = || values.iter().copied();
        let (low, high) = reach(
            range().fold(f64::INFINITY, f64::min),
            range().fold(f64::NEG_INFINITY, f64::max),
        );
        let mut doubts = target.doubts.clone();
        doubts.sort_by(f64::total_cmp);
        Some(ColumnReadout {
            doubt: doubts[(doubts.len() * 9 / 10).min(doubts.len() - 1)],
            signals: if alone { vec![] } else { chosen },
            weights: match alone {
                true => vec![],
                false => both.weights[1..].iter().map(|w| unit * w).collect(),
            },
            tree: if alone { 1.0 } else { weight },
            constant: match alone {
                true => 0.0,
                false => mean + unit * both.constant - weight * tree_mean,
            },
            curves,
            low,
            high,
            residuals,
            said,
            measured: Measured {
                both: if alone { measured.tree } else { measured.both },
                ..measured
            },
        })
    }

    /// The signals of one row among all.
    fn row<'a>(&self, signals: &'a [f64], row: u32) -> &'a [f64] {
        &signals[row as usize * self.signals.len()..][..self.signals.len()]
    }

    /// What is said of a row, of which the tree alone has a mean.
    pub(crate) fn predict(
        &self,
        column: &ColumnReadout,
        tree: f64,
        signals: &[f64],
        row: usize,
    ) -> f64 {
        self.line(column, tree, self.row(signals, row as u32))
    }

    /// A draw for a row of which this mean was said, where the tree has this mean and variance and a candidate was drawn with its weights, with its value and its row in the
    /// support set.
    pub(crate) fn draw(
        &self,
        column: &ColumnReadout,
        (mean, (tree, variance)): (f64, (f64, f64)),
        (signals, holes): (&[f64], &[bool]),
        row: usize,
        (value, donor): (f64, u32),
        rng: &mut ChaCha8Rng,
    ) -> f64 {
        let width = self.signals.len();
        let lacks = &holes[row * width..][..width];
        // Most rows lack nothing that the line sees, and all of their draws have the same.
        let mean = match column.signals.iter().any(|&s| lacks[s]) {
            false => mean,
            true => {
                let given = self.row(&self.support, donor).iter().zip(lacks);
                let own = self.row(signals, row as u32).iter().zip(given);
                let seen: Vec<f64> = own
                    .map(|(&own, (&given, &lacks))| if lacks { given } else { own })
                    .collect();
                self.line(column, tree, &seen)
            }
        };
        let unknown = (variance - column.doubt).max(0.0);
        let follows = match variance > 0.0 {
            true => (unknown / variance).sqrt() * column.tree.clamp(0.0, 1.0),
            false => 0.0,
        };
        mean + column.missed(mean, rng) + follows * (value - tree)
    }

    fn line(&self, column: &ColumnReadout, tree: f64, signals: &[f64]) -> f64 {
        let seen = column.signals.iter().zip(&column.weights);
        let sum = column.constant + column.tree * tree;
        let said = seen.fold(sum, |sum, (&s, w)| sum + w * signals[s]);
        let bent = column.curves.as_ref();
        let said = said + bent.map_or(0.0, |c| self.directions.at(c, &column.signals, signals));
        said.clamp(column.low, column.high)
    }

    /// The readout of a column, if it has one.
    pub(crate) fn column(&self, observation: usize, column: usize) -> Option<&ColumnReadout> {
        self.columns[observation].get(column)?.as_ref()
    }

    /// What was measured of every column of numbers.
    pub fn measured(&self) -> impl Iterator<Item = (usize, usize, Measured)> + '_ {
        let all = self.columns.iter().enumerate();
        all.flat_map(|(o, columns)| {
            let own = columns.iter().enumerate();
            own.filter_map(move |(c, column)| Some((o, c, column.as_ref()?.measured)))
        })
    }

    /// The shares of variance, averaged over columns, that the tree, a line on the rest of the row, and both explain of rows that regressions did not see;
    /// `None` where there are no readouts.
    pub fn explained(&self) -> Option<[f64; 3]> {
        let all: Vec<Measured> = self.measured().map(|(.., m)| m).collect();
        let share = |error: fn(&Measured) -> f64| {
            all.iter().map(|m| 1.0 - error(m) / m.variance).sum::<f64>() / all.len() as f64
        };
        (!all.is_empty()).then(|| [share(|m| m.tree), share(|m| m.linear), share(|m| m.both)])
    }
}

impl ColumnReadout {
    /// What was missed of a training row of which about as much was said.
    fn missed(&self, said: f64, rng: &mut ChaCha8Rng) -> f64 {
        let count = self.said.len();
        let place = self.said.partition_point(|&x| x < said) as f64 / count as f64;
        let apart: f64 = StandardNormal.sample(rng);
        // Beyond either end there are no rows: back from there.
        let place = (place + NEAR * apart).rem_euclid(2.0);
        let place = if place > 1.0 { 2.0 - place } else { place };
        self.residuals[((place * count as f64) as usize).min(count - 1)]
    }
}

/// How far numbers may go that training rows have seen in a range: half of it beyond, where lines still hold, but not beyond zero where all were on one side
/// of it. On 777 colleges a mean that ended with the largest of training rows missed the four largest by half as much again as a line.
fn reach(low: f64, high: f64) -> (f64, f64) {
    let beyond = 0.5 * (high - low);
    let down = if low >= 0.0 {
        (low - beyond).max(0.0)
    } else {
        low - beyond
    };
    let up = if high <= 0.0 {
        (high + beyond).min(0.0)
    } else {
        high + beyond
    };
    (down, up)
}

/// The numbers of a column.
fn numbers(samples: &Samples, name: &str) -> Result<Vec<f64>> {
    match samples.table() {
        Some(table) => column(table, name)?.numbers(samples.first_row),
        None => Ok(vec![]),
    }
}

/// Whether an observation has columns of numbers, which are read off the rest of a row; the tree alone fills all others.
pub(crate) fn has_numbers(observation: &Encoded) -> bool {
    let columns = 0..observation.columns.len();
    let mut number = columns.map(|feature| is_number(&observation.encoding, feature));
    number.any(|number| number)
}

/// Whether a column of an observation is filled with numbers that have means.
pub(crate) fn is_number(encoding: &Encoding, feature: usize) -> bool {
    match encoding {
        Encoding::Number { .. } => feature == 0,
        Encoding::Vector { scales } => feature < scales.len(),
        Encoding::Ordinal { levels } => feature == 0 && numbers_of(levels).is_some(),
        Encoding::Categorical { .. } | Encoding::Image { .. } => false,
    }
}

/// The tree's mean and variance of rows of the support set, each without itself among its candidates.
fn tree_moments(
    conditionals: &Conditionals<'_>,
    imputer: &Imputer,
    observation: usize,
    rows: &[u32],
    values: &[f64],
) -> Vec<(f64, f64)> {
    let candidates = imputer.candidates(observation);
    rows.par_iter()
        .map(|row| {
            let mut weights = conditionals.weights(observation, *row as usize);
            if let Ok(own) = candidates.binary_search(row) {
                weights[own] = 0.0;
            }
            moments_of(candidates, &weights, values)
        })
        .collect()
}

/// Mean and variance over weighted rows.
fn moments_of(rows: &[u32], weights: &[f64], values: &[f64]) -> (f64, f64) {
    let each = || {
        rows.iter()
            .zip(weights)
            .map(|(&row, w)| (values[row as usize], w))
    };
    let (sum, total) = each().fold((0.0, 0.0), |(sum, total), (x, w)| (sum + w * x, total + w));
    let mean = sum / total;
    let squares: f64 = each().map(|(x, w)| w * (x - mean).powi(2)).sum();
    (mean, squares / total)
}

/// Mean and variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = |x: &f64| (x - mean).powi(2);
    (mean, values.iter().map(square).sum::<f64>() / count)
}
