//! The steps after the end of every sequence: latents by forward messages, observations as those of training reweighted, with
//! intervals.

use super::StreamError;
use super::answers::{Answers, Part, SampleSource};
use super::candidates::{Candidates, Values};
use super::impute::{CANDIDATES, candidates, support_rows};
use super::layout::{OutputColumn, integer_column, new_column, number_column};
use super::posterior_columns::posterior_columns;
use crate::Result;
use crate::encode::{Encoded, Encoder};
use crate::model_file::Chain;
use crate::readout::{AheadReadout, Numbers, Origin, View, is_number};
use crate::run::Run;
use crate::source::{Samples, Sequence, spelled};
use crate::table::{column, select_rows, table_of};
use arrow_array::{ArrayRef, Float64Array, StringArray};
use ramp::data::Dataset;
use ramp::infer::{Forecaster, PointBelief, SeriesSupport};
use ramp::model::Model;
use rayon::prelude::*;
use std::sync::Arc;

/// How far to look ahead, and how wide intervals are.
///
/// ```
/// use ramp_io::stream::Horizon;
/// let week = Horizon::new(7).interval(0.9);
/// assert!(week.check().is_ok());
/// assert!(Horizon::new(7).interval(1.5).check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Horizon {
    /// Steps after the end of a sequence.
    pub steps: u32,
    /// The chance that a value lies within its interval; as much is left on either side, unless one end is a value that comes again and again, such as no rain: less is left
    /// beyond that, and the other end comes nearer.
    pub interval: f64,
}

/// Candidates of the chain's own forecasts where very many of them are made, to learn from.
const FEW: usize = 400;

/// The most steps that are forecast: beyond, nothing is left to foretell.
const FURTHEST: u32 = 10_000;

impl Horizon {
    /// So many steps, with intervals of 80 %.
    pub fn new(steps: u32) -> Self {
        Horizon {
            steps,
            interval: 0.8,
        }
    }

    /// Intervals of another width.
    pub fn interval(mut self, interval: f64) -> Self {
        self.interval = interval;
        self
    }

    /// Whether it can be looked so far ahead, and so surely.
    pub fn check(&self) -> Result<(), StreamError> {
        if !(1..=FURTHEST).contains(&self.steps) {
            return Err(StreamError::Steps {
                steps: self.steps,
                most: FURTHEST,
            });
        }
        match self.interval > 0.0 && self.interval < 1.0 {
            true => Ok(()),
            false => Err(StreamError::Interval {
                value: self.interval,
            }),
        }
    }
}

impl Run {
    /// So many steps after the end of every sequence, a row each: the posterior of the latent, and for every number its mean and an
    /// interval, for every category the likeliest level and the chance of each.
    pub fn forecast<S: SampleSource>(
        &self,
        samples: S,
        horizon: Horizon,
    ) -> Result<Answers<'_, S>> {
        horizon.check()?;
        let Some(chain) = &self.chain else {
            return Err(StreamError::NoSequences.into());
        };
        let support = self.known_series()?;
        let outlook = Outlook::new(&self.encoder, &self.model, chain, &support, horizon)?;
        Ok(Answers::new(self, samples, move |part| {
            let (fields, cells): (Vec<_>, Vec<_>) = outlook.columns(part)?.into_iter().unzip();
            Ok(table_of(fields, cells)?.into())
        })
        .at_trained_length())
    }
}

/// What stays the same from part to part.
pub(super) struct Outlook<'a> {
    encoder: &'a Encoder,
    chain: &'a Chain,
    horizon: Horizon,
    forecaster: Forecaster,
    series: SeriesSupport,
    /// For every series, the rows of the support set's table in which its observations stand.
    rows: Vec<Vec<usize>>,
    /// For every observation, what each of its columns may be; none where training samples are arrays.
    candidates: Vec<Vec<Candidates>>,
    /// What followed in training sequences; with a smaller support set for the chain's own forecasts.
    readout: Option<AheadReadout>,
    few: SeriesSupport,
    few_rows: Vec<Vec<usize>>,
}

/// A step ahead of one sample.
pub(super) struct Step {
    pub belief: PointBelief,
    pub moment: Option<f64>,
    /// Numbers or levels, observation by observation.
    pub foretold: Vec<Foretold>,
}

pub(super) enum Foretold {
    /// Mean and ends of the interval, for every column.
    Numbers(Vec<[f64; 3]>),
    /// The chance of every level.
    Levels(Vec<f64>),
}

impl<'a> Outlook<'a> {
    pub fn new(
        encoder: &'a Encoder,
        model: &Model,
        chain: &'a Chain,
        support: &Samples,
        horizon: Horizon,
    ) -> Result<Self> {
        let (data, _) = encoder.encode(support)?;
        let series = SeriesSupport::new(model, &data, CANDIDATES)?;
        let few = SeriesSupport::new(model, &data, FEW)?;
        let (rows, few_rows, candidates) = match support.table() {
            Some(table) => (
                support_rows(&series, support, encoder.observations.len()),
                support_rows(&few, support, encoder.observations.len()),
                candidates(encoder, support, table)?,
            ),
            None => (vec![], vec![], vec![]),
        };
        let mut outlook = Outlook {
            encoder,
            chain,
            horizon,
            forecaster: Forecaster::new(model)?,
            series,
            rows,
            candidates,
            readout: None,
            few,
            few_rows,
        };
        let numbers = outlook.numbers(support)?;
        outlook.readout = AheadReadout::learn(
            encoder,
            support,
            &data,
            &outlook.forecaster,
            (horizon.steps as usize, FEW),
            View {
                numbers: &numbers,
                moment: &|sequence, step| outlook.moment(sequence, step),
                foretell: &|o, c, belief, moment| outlook.chains_mean(o, c, belief, moment),
            },
        )?;
        Ok(outlook)
    }

    /// The columns of numbers of some samples.
    fn numbers(&self, samples: &Samples) -> Result<Vec<Numbers>> {
        let Some(table) = samples.table() else {
            return Ok(vec![]);
        };
        let mut all = vec![];
        for (observation, encoded) in self.encoder.observations.iter().enumerate() {
            for (c, name) in encoded.columns.iter().enumerate() {
                if is_number(&encoded.encoding, c) {
                    all.push(Numbers {
                        observation,
                        column: c,
                        values: column(table, name)?.numbers(samples.first_row)?,
                    });
                }
            }
        }
        Ok(all)
    }

    /// The moment of a step of a sequence.
    fn moment(&self, sequence: &Sequence, step: u32) -> Option<f64> {
        let after = f64::from(sequence.offset) + f64::from(step);
        Some(self.chain.step?.after(sequence.start?, after))
    }

    /// The chain's own forecast of a column, by few candidates.
    fn chains_mean(&self, o: usize, c: usize, belief: &PointBelief, moment: Option<f64>) -> f64 {
        let weights = self.few.weights(o, belief.natural());
        let (observation, season) = (&self.encoder.observations[o], self.encoder.season.as_ref());
        let numbers = self.candidates[o][c].numbers(&self.few_rows[o], observation, season, moment);
        let numbers = numbers.unwrap_or_default();
        match numbers.is_empty() {
            true => f64::NAN,
            false => numbers.iter().zip(&weights).map(|(x, w)| x * w).sum(),
        }
    }

    fn columns(&self, part: &Part<'_>) -> Result<Vec<OutputColumn>> {
        let each = self.steps(part.samples, part.data)?;
        let all: Vec<&Step> = each.iter().flatten().collect();
        let mut columns = self.places(part, &each)?;
        columns.extend(latents(&all));
        for (o, observation) in self.encoder.observations.iter().enumerate() {
            columns.extend(foretold(&all, o, observation, &self.candidates));
        }
        Ok(columns)
    }

    /// What is foretold of every sample, step by step.
    pub fn steps(&self, samples: &Samples, data: &Dataset) -> Result<Vec<Vec<Step>>> {
        let steps = self.horizon.steps as usize;
        let numbers = self.numbers(samples)?;
        (0..samples.len())
            .into_par_iter()
            .map_init(
                || self.forecaster.clone(),
                |forecaster, sample| {
                    let origin = self.origin(forecaster, samples, data, sample, &numbers)?;
                    let beliefs = forecaster.beliefs(data, sample, steps)?;
                    let ahead = beliefs.into_iter().zip(1..);
                    let step = |(belief, h)| self.step(samples, sample, h, belief, origin.as_ref());
                    Ok(ahead.map(step).collect())
                },
            )
            .collect()
    }

    /// What is seen from the end of a sample, where there is a readout for it.
    fn origin(
        &self,
        forecaster: &mut Forecaster,
        samples: &Samples,
        data: &Dataset,
        sample: usize,
        numbers: &[Numbers],
    ) -> Result<Option<Origin>> {
        let (Some(readout), Some(sequences)) = (&self.readout, &samples.sequences) else {
            return Ok(None);
        };
        let sequence = &sequences[sample];
        let Some(last) = (sequence.length as usize).checked_sub(1) else {
            return Ok(None);
        };
        let mut beliefs =
            forecaster.from_origins(data, sample, &[last], self.horizon.steps as usize)?;
        let view = View {
            numbers,
            moment: &|sequence, step| self.moment(sequence, step),
            foretell: &|o, c, belief, moment| self.chains_mean(o, c, belief, moment),
        };
        Ok((beliefs.pop()).map(|beliefs| readout.origin(sequence, view, last, beliefs)))
    }

    /// What is foretold of one step.
    fn step(
        &self,
        samples: &Samples,
        sample: usize,
        ahead: u32,
        belief: PointBelief,
        origin: Option<&Origin>,
    ) -> Step {
        let moment = samples.sequences.as_ref().and_then(|sequences| {
            let sequence = &sequences[sample];
            self.moment(sequence, sequence.length + ahead - 1)
        });
        let observations = self.encoder.observations.iter();
        let foretold = observations
            .zip(&self.candidates)
            .enumerate()
            .map(|(o, (observation, columns))| {
                let weights = self.series.weights(o, belief.natural());
                let mut foretold = self.observation(o, observation, columns, &weights, moment);
                if let (Some(origin), Foretold::Numbers(numbers)) = (origin, &mut foretold) {
                    for (c, number) in numbers.iter_mut().enumerate() {
                        *number = self.read(o, c, origin, ahead).unwrap_or(*number);
                    }
                }
                foretold
            })
            .collect();
        Step {
            belief,
            moment,
            foretold,
        }
    }

    /// The mean and the interval of a column by what followed in training, where that is known.
    fn read(&self, o: usize, c: usize, origin: &Origin, ahead: u32) -> Option<[f64; 3]> {
        let view = View {
            numbers: &[],
            moment: &|sequence, step| self.moment(sequence, step),
            foretell: &|o, c, belief, moment| self.chains_mean(o, c, belief, moment),
        };
        let to_come = (self.readout.as_ref()?).ahead(o, c, origin, ahead as usize, view)?;
        let [low, high] = interval(&to_come.values, &to_come.weights, self.horizon.interval);
        Some([to_come.mean, low, high])
    }

    fn observation(
        &self,
        o: usize,
        observation: &Encoded,
        columns: &[Candidates],
        weights: &[f64],
        moment: Option<f64>,
    ) -> Foretold {
        if let Some(Candidates {
            values: Values::Levels { levels, codes },
            ..
        }) = columns.first()
        {
            let mut chances = vec![0.0; levels.len()];
            for (&row, w) in self.rows[o].iter().zip(weights) {
                if let Some(level) = codes[row] {
                    chances[level] += w;
                }
            }
            return Foretold::Levels(chances);
        }
        let season = self.encoder.season.as_ref();
        let numbers = columns.iter().map(|column| {
            let numbers = column.numbers(&self.rows[o], observation, season, moment);
            let numbers = numbers.unwrap_or_default();
            let mean = numbers.iter().zip(weights).map(|(x, w)| x * w).sum();
            let [low, high] = interval(&numbers, weights, self.horizon.interval);
            match numbers.is_empty() {
                true => [f64::NAN; 3],
                false => [mean, low, high],
            }
        });
        Foretold::Numbers(numbers.collect())
    }

    /// The columns that say which sequence and which step a row is about.
    fn places(&self, part: &Part<'_>, each: &[Vec<Step>]) -> Result<Vec<OutputColumn>> {
        let steps = self.horizon.steps;
        let mut columns = vec![];
        match (
            part.samples.table(),
            &part.samples.sequences,
            &self.chain.sequence,
        ) {
            (Some(table), Some(sequences), Some(name)) => {
                let rows: Vec<u32> = sequences
                    .iter()
                    .flat_map(|s| vec![s.items[0]; steps as usize])
                    .collect();
                let ids = select_rows(table, &rows)?;
                let id = column(&ids, name)?;
                columns.push((id.field.clone(), id.cells.clone()));
            }
            (None, ..) => {
                let first = part.first as i64;
                let of = (0..each.len() as i64).flat_map(|n| vec![first + n; steps as usize]);
                columns.push(integer_column("sample", of));
            }
            _ => {}
        }
        let moments: Option<Vec<f64>> = each.iter().flatten().map(|step| step.moment).collect();
        if let (Some(name), Some(step), Some(moments)) =
            (&self.chain.time, self.chain.step, moments)
        {
            let cells: ArrayRef = match step.is_calendar() {
                true => {
                    let spelled = moments.iter().map(|&moment| spelled(moment, step));
                    Arc::new(StringArray::from_iter_values(spelled))
                }
                false => Arc::new(Float64Array::from(moments)),
            };
            columns.push(new_column(name, cells));
        }
        let mut name = String::from("ahead");
        while columns.iter().any(|(field, _)| *field.name() == name) {
            name.push('_');
        }
        let ahead = each.iter().flat_map(|_| 1..=i64::from(steps));
        columns.push(integer_column(name, ahead));
        Ok(columns)
    }
}

/// The latent's posterior, step by step.
fn latents(all: &[&Step]) -> Vec<OutputColumn> {
    let Some(first) = all.first() else {
        return vec![];
    };
    let described: Vec<_> = all.iter().map(|step| step.belief.describe()).collect();
    posterior_columns(first.belief.family())
        .into_iter()
        .map(|column| {
            let numbers = described.iter().map(|d| match column.sd {
                true => d.sd[column.coordinate],
                false => d.mean[column.coordinate],
            });
            let name = format!("{}.{}", ramp::graph::TimeAxis::LATENT, column.suffix);
            number_column(name, numbers.collect())
        })
        .collect()
}

/// What is foretold of one observation, column by column.
fn foretold(
    all: &[&Step],
    o: usize,
    observation: &Encoded,
    candidates: &[Vec<Candidates>],
) -> Vec<OutputColumn> {
    let steps = || all.iter().filter_map(|step| step.foretold.get(o));
    match steps().next() {
        None => vec![],
        Some(Foretold::Numbers(columns)) => (0..columns.len())
            .flat_map(|c| {
                ["mean", "low", "high"]
                    .into_iter()
                    .enumerate()
                    .map(move |(i, what)| (c, i, what))
            })
            .map(|(c, i, what)| {
                let number = |step: &Foretold| match step {
                    Foretold::Numbers(columns) => columns[c][i],
                    Foretold::Levels(_) => f64::NAN,
                };
                let name = format!("{}.{what}", observation.columns[c]);
                number_column(name, steps().map(number).collect())
            })
            .collect(),
        Some(Foretold::Levels(_)) => {
            let Some(Values::Levels { levels, .. }) = candidates[o].first().map(|c| &c.values)
            else {
                return vec![];
            };
            let chances = |step: &'_ Foretold| match step {
                Foretold::Levels(chances) => chances.clone(),
                Foretold::Numbers(_) => vec![],
            };
            let name = &observation.columns[0];
            let likeliest = steps().map(|step| {
                let chances = chances(step);
                let best = (0..chances.len()).max_by(|&a, &b| chances[a].total_cmp(&chances[b]));
                best.map(|best| levels[best].as_str())
            });
            let likeliest: ArrayRef = Arc::new(StringArray::from_iter(likeliest));
            let mut columns = vec![new_column(name, likeliest)];
            columns.extend(levels.iter().enumerate().map(|(l, level)| {
                let chance = steps().map(|step| chances(step)[l]).collect();
                number_column(format!("{name}.{level}"), chance)
            }));
            columns
        }
    }
}

/// The ends of the interval that holds a part of the weight. An end at a value that many share has them all inside, so the other end is drawn in by as much.
fn interval(values: &[f64], weights: &[f64], part: f64) -> [f64; 2] {
    let side = (1.0 - part) / 2.0;
    let [low, high] = quantiles(values, weights, [side, 1.0 - side]);
    let weight = |of: &dyn Fn(f64) -> bool| -> f64 {
        let all = values.iter().zip(weights);
        all.filter(|(x, _)| of(**x)).map(|(_, w)| w).sum()
    };
    let shared = |end: f64| values.iter().filter(|x| **x == end).count() > 1;
    let spare = |end: f64, beyond: f64| match shared(end) {
        true => (side - beyond).max(0.0),
        false => 0.0,
    };
    let below = spare(low, weight(&|x| x < low));
    let above = spare(high, weight(&|x| x > high));
    quantiles(values, weights, [side + above, 1.0 - side - below])
}

/// Values below which these parts of the weight lie, between neighbours in proportion.
fn quantiles<const N: usize>(values: &[f64], weights: &[f64], parts: [f64; N]) -> [f64; N] {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    // Each value stands in the middle of its weight.
    let mut below = 0.0;
    let middles: Vec<f64> = order
        .iter()
        .map(|&i| {
            below += weights[i];
            below - weights[i] / 2.0
        })
        .collect();
    parts.map(|part| {
        let after = middles.partition_point(|&m| m < part);
        match (
            after.checked_sub(1).map(|i| (i, order[i])),
            order.get(after),
        ) {
            (Some((i, a)), Some(&b)) => {
                let way =
                    (part - middles[i]) / (middles[after] - middles[i]).max(f64::MIN_POSITIVE);
                values[a] + (values[b] - values[a]) * way.min(1.0)
            }
            (Some((_, only)), None) => values[only],
            (None, Some(&only)) => values[only],
            (None, None) => f64::NAN,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_ends_at_a_shared_value_still_holds_its_part() {
        // Six of ten days are dry; the rest have all amounts alike.
        let many = 10_000;
        let rain: Vec<f64> = (0..many)
            .map(|i| f64::from((i - many * 6 / 10).max(0)))
            .collect();
        let weights = vec![1.0 / f64::from(many); many as usize];
        let holds = |[low, high]: [f64; 2], values: &[f64]| {
            let inside = values.iter().filter(|x| low <= **x && **x <= high);
            inside.count() as f64 / f64::from(many)
        };
        let ends = interval(&rain, &weights, 0.8);
        assert_eq!(ends[0], 0.0);
        assert!((holds(ends, &rain) - 0.8).abs() < 1e-3, "{ends:?}");
        // The other way round, and where nothing is shared.
        let gone: Vec<f64> = rain.iter().map(|x| -x).collect();
        let ends = interval(&gone, &weights, 0.8);
        assert_eq!(ends[1], 0.0);
        assert!((holds(ends, &gone) - 0.8).abs() < 1e-3, "{ends:?}");
        let each: Vec<f64> = (0..many).map(f64::from).collect();
        let [low, high] = interval(&each, &weights, 0.8);
        assert!((low - 999.5).abs() < 1.0 && (high - 8999.5).abs() < 1.0);
        // Where nearly all are dry, dry is all that is foretold.
        let dry: Vec<f64> = (0..many).map(|i| f64::from(i / 9500)).collect();
        assert_eq!(interval(&dry, &weights, 0.8), [0.0, 0.0]);
    }

    #[test]
    fn quantiles_are_those_of_as_many_copies() {
        let values = [3.0, 1.0, 2.0, 10.0];
        let copies = [4, 1, 3, 2];
        let weights = copies.map(|n| f64::from(n) / 10.0);
        let [low, middle, high] = quantiles(&values, &weights, [0.001, 0.45, 0.95]);
        assert_eq!(low, 1.0);
        // 1, 2, 2, 2, 3, 3, 3, 3, 10, 10: the middle of the twos is at 0.25, of the threes at 0.6, of the tens at 0.9.
        assert!((middle - (2.0 + (0.45 - 0.25) / (0.6 - 0.25))).abs() < 1e-12);
        assert_eq!(high, 10.0);
        // Many draws of a bell have its quantiles.
        let many: Vec<f64> = (0..10_001).map(|i| f64::from(i - 5000) / 1000.0).collect();
        let bell: Vec<f64> = many.iter().map(|x| (-x * x / 2.0).exp()).collect();
        let total: f64 = bell.iter().sum();
        let bell: Vec<f64> = bell.iter().map(|w| w / total).collect();
        let [low, high] = quantiles(&many, &bell, [0.1, 0.9]);
        assert!(
            (high - 1.281_55).abs() < 1e-3 && (low + high).abs() < 1e-9,
            "{low} {high}"
        );
    }
}
