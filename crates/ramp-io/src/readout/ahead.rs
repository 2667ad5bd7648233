//! What a number will be some steps after the end of a sequence, read off the chain's forecast and the last observations by what followed in
//! training sequences.
//!
//! For every step ahead a ridge regression of the number's distance from what is usual at that time: on the chain's own forecast of it, on the belief about the
//! present, and on the last few observations. All but the last distance of the number itself is shrunk, as cross-validation over spans of time has it: an autoregression of first order is
//! what is left where nothing else foretells anything, so it has no reason to be worse than that. Intervals are residuals of fits that did not see them, from forecasts of about the same
//! value at about the same time of the season; where a number stood at the end of its range, as rain does on a dry day, it stands there again.

use crate::Result;
use crate::encode::{Climate, Encoder, Season};
use crate::source::{Samples, Sequence};
use ramp::data::Dataset;
use ramp::infer::{Forecaster, PointBelief, Ridge};
use rayon::prelude::*;

/// The last steps whose observations are seen.
const LAGS: usize = 3;
/// Fewer origins than this say nothing.
const FEWEST: usize = 100;
/// The most origins in all.
const MOST_ORIGINS: usize = 4000;
/// Candidates that are reweighted to learn everything.
const WORK: usize = 30_000_000;
/// Steps ahead beyond which the chain's own forecast stands: hardly anything of the present is left by then.
const FURTHEST: usize = 60;
/// Steps that a belief needs to settle, at most.
const SETTLED: u32 = 10;
/// How near forecasts must be, in ranks, and moments, in parts of the season, for their residuals to count.
const NEAR: f64 = 0.15;

/// A column of numbers: its observation, its place there, and its values, row by row of a table.
pub(crate) struct Numbers {
    pub observation: usize,
    pub column: usize,
    pub values: Vec<f64>,
}

/// The chain's own forecast of a column: for its observation, its column, a belief and a moment, the mean.
type Foretell<'a> = dyn Fn(usize, usize, &PointBelief, Option<f64>) -> f64 + Sync + 'a;

/// Samples as the readout sees them.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    /// Their columns of numbers.
    pub numbers: &'a [Numbers],
    /// The moment of a step of a sequence.
    pub moment: &'a (dyn Fn(&Sequence, u32) -> Option<f64> + Sync),
    /// What the chain itself foretells.
    pub foretell: &'a Foretell<'a>,
}

/// How numbers of steps to come are read off.
pub(crate) struct AheadReadout {
    season: Option<Season>,
    columns: Vec<AheadColumn>,
}

struct AheadColumn {
    observation: usize,
    column: usize,
    usual: Usual,
    /// For every step ahead; none where the chain's own forecast is best left as it is.
    steps: Vec<Option<StepReadout>>,
}

/// What is usual for a number, and how far it goes from that.
struct Usual {
    climate: Option<Climate>,
    mean: f64,
    sd: f64,
    low: f64,
    high: f64,
}

struct StepReadout {
    ridge: Ridge,
    /// Of every origin: what was foretold without it, by rank from 0 to 1; the part of the season that it was foretold for; what was missed.
    ranks: Vec<f64>,
    phases: Vec<f64>,
    residuals: Vec<f64>,
    /// What was observed, where that is an end of the range.
    ends: Vec<Option<f64>>,
    /// What was foretold, ascending.
    ascending: Vec<f64>,
}

/// What is seen from the end of a sequence, or from anywhere in it.
pub(crate) struct Origin {
    /// How far the last observations were from what is usual, and the belief about the present.
    seen: Vec<f64>,
    /// The beliefs about the steps to come, and their moments.
    ahead: Vec<(PointBelief, Option<f64>)>,
}

/// A number to come: its mean, and what it may be, with weights.
pub(crate) struct Ahead {
    pub mean: f64,
    pub values: Vec<f64>,
    pub weights: Vec<f64>,
}

impl AheadReadout {
    /// Learns from the sequences of a support set for so many steps ahead, where each forecast of the chain weighs so many candidates; `None` where sequences are
    /// too few and too short.
    pub fn learn(
        encoder: &Encoder,
        support: &Samples,
        data: &Dataset,
        forecaster: &Forecaster,
        (steps, candidates): (usize, usize),
        view: View<'_>,
    ) -> Result<Option<Self>> {
        let (numbers, steps) = (view.numbers, steps.min(FURTHEST));
        let Some(sequences) = support.sequences.as_ref().filter(|_| !numbers.is_empty()) else {
            return Ok(None);
        };
        let season = encoder.season.clone();
        let moments = match &season {
            Some(season) => season.moments(support),
            None => vec![],
        };
        let columns: Vec<AheadColumn> = numbers
            .iter()
            .map(|n| AheadColumn {
                observation: n.observation,
                column: n.column,
                usual: Usual::learn(season.as_ref(), &moments, &n.values),
                steps: vec![],
            })
            .collect();
        let mut readout = AheadReadout { season, columns };
        let first = |s: &Sequence| SETTLED.min(s.length / 3);
        let all: usize = (sequences.iter())
            .map(|s| s.length.saturating_sub(first(s) + 1) as usize)
            .sum();
        let most = (WORK / (steps * numbers.len() * candidates).max(1)).clamp(200, MOST_ORIGINS);
        let stride = all.div_ceil(most).max(1);
        let mut at = 0;
        let mut chosen: Vec<(usize, Vec<usize>)> = vec![];
        for (n, sequence) in sequences.iter().enumerate() {
            let places = first(sequence)..sequence.length.saturating_sub(1);
            let places: Vec<usize> = places
                .filter(|_| {
                    at += 1;
                    (at - 1) % stride == 0
                })
                .map(|t| t as usize)
                .collect();
            if !places.is_empty() {
                chosen.push((n, places));
            }
        }
        let origins: Vec<(usize, usize, Origin)> = chosen
            .into_par_iter()
            .map_init(
                || forecaster.clone(),
                |forecaster, (n, places)| {
                    let beliefs = forecaster.from_origins(data, n, &places, steps)?;
                    let origins = places.into_iter().zip(beliefs).map(|(t, beliefs)| {
                        let origin = readout.origin(&sequences[n], view, t, beliefs);
                        (n, t, origin)
                    });
                    Ok(origins.collect::<Vec<_>>())
                },
            )
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        if origins.len() < FEWEST {
            return Ok(None);
        }
        let learned: Vec<Vec<Option<StepReadout>>> = readout
            .columns
            .par_iter()
            .zip(numbers)
            .map(|(column, numbers)| {
                (1..=steps)
                    .map(|h| {
                        readout.step(
                            column,
                            &numbers.values,
                            h,
                            sequences,
                            &origins,
                            view.foretell,
                        )
                    })
                    .collect()
            })
            .collect();
        for (column, steps) in readout.columns.iter_mut().zip(learned) {
            column.steps = steps;
        }
        Ok(Some(readout))
    }

    /// What is seen from a step of a sequence.
    pub fn origin(
        &self,
        sequence: &Sequence,
        view: View<'_>,
        step: usize,
        mut beliefs: Vec<PointBelief>,
    ) -> Origin {
        let mut seen = vec![];
        for lag in 0..LAGS {
            let place = step.checked_sub(lag).map(|s| s as u32);
            let row = place.and_then(|s| sequence.steps.binary_search(&s).ok());
            let row = row.map(|at| sequence.items[at] as usize);
            let moment = place.and_then(|s| (view.moment)(sequence, s));
            for (column, numbers) in self.columns.iter().zip(view.numbers) {
                let value = row.map_or(f64::NAN, |row| numbers.values[row]);
                let from = column.usual.distance(self.season.as_ref(), value, moment);
                seen.push(if from.is_finite() { from } else { 0.0 });
            }
        }
        let ahead = beliefs.split_off(1);
        seen.extend(beliefs[0].describe().mean);
        let moments = (step as u32 + 1..).map(|s| (view.moment)(sequence, s));
        Origin {
            seen,
            ahead: ahead.into_iter().zip(moments).collect(),
        }
    }

    /// What a regression sees of a step ahead.
    fn features(
        &self,
        column: &AheadColumn,
        origin: &Origin,
        h: usize,
        foretell: &Foretell<'_>,
    ) -> Vec<f64> {
        let (belief, moment) = &origin.ahead[h - 1];
        let own = foretell(column.observation, column.column, belief, *moment);
        let own = column.usual.distance(self.season.as_ref(), own, *moment);
        let own = if own.is_finite() { own } else { 0.0 };
        std::iter::once(own)
            .chain(origin.seen.iter().copied())
            .collect()
    }

    fn step(
        &self,
        column: &AheadColumn,
        values: &[f64],
        h: usize,
        sequences: &[Sequence],
        origins: &[(usize, usize, Origin)],
        foretell: &Foretell<'_>,
    ) -> Option<StepReadout> {
        let (mut points, mut targets, mut own) = (vec![], vec![], vec![]);
        let (mut phases, mut ends) = (vec![], vec![]);
        for (n, t, origin) in origins {
            let steps = &sequences[*n].steps;
            let Ok(at) = steps.binary_search(&((t + h) as u32)) else {
                continue;
            };
            let value = values[sequences[*n].items[at] as usize];
            let moment = origin.ahead[h - 1].1;
            let from = column.usual.distance(self.season.as_ref(), value, moment);
            if !from.is_finite() {
                continue;
            }
            let features = self.features(column, origin, h, foretell);
            own.push(features[0]);
            points.extend(features);
            targets.push(from);
            phases.push(self.phase(moment));
            let at_end = [column.usual.low, column.usual.high].contains(&value);
            ends.push(at_end.then_some(value));
        }
        if targets.len() < FEWEST {
            return None;
        }
        let last = self.last_distance(column)?;
        let ridge = Ridge::continuing(&points, points.len() / targets.len(), &targets, last)?;
        let chains = own.iter().zip(&targets).map(|(a, b)| (a - b).powi(2));
        if chains.sum::<f64>() / targets.len() as f64 <= ridge.error {
            return None;
        }
        let mut ascending = ridge.crossed.clone();
        ascending.sort_by(f64::total_cmp);
        let residuals = ridge.crossed.iter().zip(&targets);
        Some(StepReadout {
            ranks: ridge.crossed.iter().map(|&x| rank(&ascending, x)).collect(),
            residuals: residuals
                .map(|(said, y)| (y - said) * column.usual.sd)
                .collect(),
            phases,
            ends,
            ascending,
            ridge,
        })
    }

    /// Where the last distance of a column from what is usual stands among what a regression sees: after the chain's own forecast.
    fn last_distance(&self, column: &AheadColumn) -> Option<usize> {
        let own =
            |c: &AheadColumn| c.observation == column.observation && c.column == column.column;
        Some(1 + self.columns.iter().position(own)?)
    }

    fn phase(&self, moment: Option<f64>) -> f64 {
        let period = self.season.as_ref().and_then(|s| s.periods.first());
        match (period, moment) {
            (Some(period), Some(moment)) => (moment / period.length()).rem_euclid(1.0),
            _ => 0.0,
        }
    }

    /// A column so many steps ahead; `None` where the chain's own forecast stands.
    pub fn ahead(
        &self,
        observation: usize,
        column: usize,
        origin: &Origin,
        h: usize,
        view: View<'_>,
    ) -> Option<Ahead> {
        let own = |c: &&AheadColumn| c.observation == observation && c.column == column;
        let column = self.columns.iter().find(own)?;
        let step = column.steps.get(h - 1)?.as_ref()?;
        let said = step
            .ridge
            .predict(&self.features(column, origin, h, view.foretell));
        let moment = origin.ahead[h - 1].1;
        let usual = &column.usual;
        let mean = usual.usual(self.season.as_ref(), moment)? + usual.sd * said;
        let (rank, phase) = (rank(&step.ascending, said), self.phase(moment));
        let near = |(r, p): (&f64, &f64)| {
            let apart = (p - phase).abs();
            let apart = apart.min(1.0 - apart);
            (-0.5 * ((r - rank).powi(2) + apart * apart) / (NEAR * NEAR)).exp()
        };
        let mut weights: Vec<f64> = step.ranks.iter().zip(&step.phases).map(near).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        let mean = mean.clamp(usual.low, usual.high);
        let observed = step.residuals.iter().zip(&step.ends);
        let values = observed
            .map(|(missed, end)| end.unwrap_or((mean + missed).clamp(usual.low, usual.high)));
        Some(Ahead {
            mean,
            values: values.collect(),
            weights,
        })
    }
}

/// The part of ascending values below one.
fn rank(ascending: &[f64], value: f64) -> f64 {
    ascending.partition_point(|&x| x < value) as f64 / ascending.len() as f64
}

impl Usual {
    fn learn(season: Option<&Season>, moments: &[f64], values: &[f64]) -> Self {
        let known = || values.iter().copied().filter(|x| x.is_finite());
        let count = known().count().max(1) as f64;
        let mut usual = Usual {
            climate: season.map(|season| season.learn(moments, values)),
            mean: known().sum::<f64>() / count,
            sd: 1.0,
            low: known().fold(f64::INFINITY, f64::min),
            high: known().fold(f64::NEG_INFINITY, f64::max),
        };
        let moment = |row: usize| moments.get(row).copied().filter(|t| t.is_finite());
        let each = values.iter().enumerate();
        let squares: Vec<f64> = each
            .map(|(row, &x)| usual.distance(season, x, moment(row)).powi(2))
            .filter(|x| x.is_finite())
            .collect();
        let variance = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
        if variance > 0.0 {
            usual.sd = variance.sqrt();
        }
        usual
    }

    /// What is usual at a moment; `None` where that is not known.
    fn usual(&self, season: Option<&Season>, moment: Option<f64>) -> Option<f64> {
        match (&self.climate, season) {
            (Some(climate), Some(season)) => Some(season.usual(climate, moment?).0),
            _ => Some(self.mean),
        }
    }

    /// How far a value is from what is usual, in standard deviations; `NaN` where that is not known.
    fn distance(&self, season: Option<&Season>, value: f64, moment: Option<f64>) -> f64 {
        let usual = self.usual(season, moment).unwrap_or(f64::NAN);
        (value - usual) / self.sd
    }
}
