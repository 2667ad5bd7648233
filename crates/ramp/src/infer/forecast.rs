//! What comes after the end of a sequence: beliefs handed on by forward messages alone, and observations as those of training
//! reweighted at any step of a chain (MATH, "Imputation and prediction").

use super::impute::reweighted;
use super::{Filter, InferError, PointBelief};
use crate::Result;
use crate::data::{Dataset, Observation};
use crate::family::Belief;
use crate::model::{ChainStep, Model};
use rayon::prelude::*;

/// Beliefs about steps that nobody has observed yet.
///
/// ```
/// use ramp::{data::Dataset, graph::{FactorTree, Tying}, infer::{Forecaster, SeriesSupport}, model::Model};
///
/// let data = Dataset::new().observe_sequence("x", 3, 1, (0..12).map(|n| n as f32 / 6.0).collect())?;
/// let model = Model::builder(FactorTree::chain(3)?).tying(Tying::Role).build(&data)?;
/// let support = SeriesSupport::new(&model, &data, 1000)?;
/// let beliefs = Forecaster::new(&model)?.beliefs(&data, 0, 2)?;
/// for belief in &beliefs {
///     // The chance of every observation of the support set to be the next one.
///     let weights = support.weights(0, belief.natural());
///     assert_eq!(weights.len(), support.places(0).len());
///     assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
/// }
/// assert_eq!(beliefs.len(), 2);
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone)]
pub struct Forecaster {
    filter: Filter,
    /// The series, in the order of the chain.
    series: Vec<String>,
}

impl Forecaster {
    /// Forecasts by the networks of a chain that is tied over time.
    pub fn new(model: &Model) -> Result<Self> {
        let time = model.tree().time_axis().ok_or(InferError::NotAChain)?;
        Ok(Forecaster {
            filter: Filter::new(model)?,
            series: time.series().to_vec(),
        })
    }

    /// For some steps of one sample, in ascending order: the belief about each given all until then, and those about so many steps after it.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::{FactorTree, Tying}, infer::Forecaster, model::Model};
    ///
    /// let data = Dataset::new().observe_sequence("x", 3, 1, (0..12).map(|n| n as f32 / 6.0).collect())?;
    /// let model = Model::builder(FactorTree::chain(3)?).tying(Tying::Role).build(&data)?;
    /// let mut forecaster = Forecaster::new(&model)?;
    /// let beliefs = forecaster.from_origins(&data, 0, &[0, 2], 2)?;
    /// // From the last step on it is the forecast of the whole sample.
    /// assert_eq!(beliefs[1][1..], forecaster.beliefs(&data, 0, 2)?);
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn from_origins(
        &mut self,
        data: &Dataset,
        row: usize,
        origins: &[usize],
        steps: usize,
    ) -> Result<Vec<Vec<PointBelief>>> {
        let observed: Vec<&Observation> = self
            .series
            .iter()
            .map(|name| data.sequence(name))
            .collect::<Result<_, _>>()?;
        let nothing = vec![None; observed.len()];
        let (mut all, mut t) = (vec![], 0);
        self.filter.reset();
        for &origin in origins {
            let mut belief = None;
            while t <= origin {
                let now: Vec<Option<Vec<f32>>> = observed
                    .iter()
                    .map(|series| series.step(t))
                    .map(|step| step.is_present(row).then(|| step.numbers(row)))
                    .collect();
                let now: Vec<Option<&[f32]>> = now.iter().map(|x| x.as_deref()).collect();
                belief = Some(self.filter.step(&now)?);
                t += 1;
            }
            let Some(belief) = belief else { continue };
            let mut ahead = self.filter.clone();
            let mut beliefs = vec![belief];
            for _ in 0..steps {
                beliefs.push(ahead.step(&nothing)?);
            }
            all.push(beliefs);
        }
        Ok(all)
    }

    /// The beliefs about so many steps after the end of one sample, given all of it.
    pub fn beliefs(
        &mut self,
        data: &Dataset,
        row: usize,
        steps: usize,
    ) -> Result<Vec<PointBelief>> {
        let observed: Vec<&Observation> = self
            .series
            .iter()
            .map(|name| data.sequence(name))
            .collect::<Result<_, _>>()?;
        let all = data.steps().unwrap_or(0);
        let length = data.lengths().map_or(all, |l| l[row] as usize);
        self.filter.reset();
        for t in 0..length {
            let now: Vec<Option<Vec<f32>>> = observed
                .iter()
                .map(|series| series.step(t))
                .map(|step| step.is_present(row).then(|| step.numbers(row)))
                .collect();
            let now: Vec<Option<&[f32]>> = now.iter().map(|x| x.as_deref()).collect();
            self.filter.step(&now)?;
        }
        let nothing = vec![None; observed.len()];
        (0..steps).map(|_| self.filter.step(&nothing)).collect()
    }
}

/// Observations of training samples at whatever step they stand, with the messages that they send: networks are tied over
/// time, so each may be what any step has.
pub struct SeriesSupport {
    belief: Belief,
    series: Vec<Candidates>,
}

/// The observations of one series.
struct Candidates {
    places: Vec<(u32, u32)>,
    /// One after the other.
    messages: Vec<f64>,
    /// `Φ(η0 + m)`.
    phi: Vec<f64>,
}

impl SeriesSupport {
    /// Takes the observations of these samples, and of each series at most so many, evenly spread.
    pub fn new(model: &Model, data: &Dataset, most: usize) -> Result<Self> {
        let time = model.tree().time_axis().ok_or(InferError::NotAChain)?;
        let step = ChainStep::new(model)?.ok_or(InferError::NotAChain)?;
        let belief = step.family().clone();
        let prior = step.belief(&step.no_messages());
        let series = time
            .series()
            .iter()
            .enumerate()
            .map(|(series, name)| {
                let observed = data.sequence(name)?;
                let all = observed.steps().unwrap_or(0);
                let mut places: Vec<(u32, u32)> = (0..data.rows())
                    .flat_map(|row| (0..all).map(move |t| (row, t)))
                    .filter(|&(row, t)| data.lengths().is_none_or(|l| t < l[row] as usize))
                    .filter(|&(row, t)| observed.step(t).is_present(row))
                    .map(|(row, t)| (row as u32, t as u32))
                    .collect();
                let stride = places.len().div_ceil(most.max(1)).max(1);
                places = places.into_iter().step_by(stride).collect();
                let sent: Vec<(Vec<f64>, f64)> = places
                    .par_iter()
                    .map(|&(row, t)| {
                        let numbers = observed.step(t as usize).numbers(row as usize);
                        let eta = step.belief(&step.observe(series, &numbers));
                        let phi = belief.log_normalizer(&eta[..]);
                        (eta.iter().zip(&prior).map(|(e, p)| e - p).collect(), phi)
                    })
                    .collect();
                Ok(Candidates {
                    phi: sent.iter().map(|(_, phi)| *phi).collect(),
                    messages: sent.into_iter().flat_map(|(message, _)| message).collect(),
                    places,
                })
            })
            .collect::<Result<_>>()?;
        Ok(SeriesSupport { belief, series })
    }

    /// The samples and steps of a series' observations: those that weights are for.
    pub fn places(&self, series: usize) -> &[(u32, u32)] {
        &self.series[series].places
    }

    /// The chance of each of a series' observations where the belief, as natural parameters, lacks it. They add up to one; there are none
    /// where no sample has the series.
    pub fn weights(&self, series: usize, belief: &[f64]) -> Vec<f64> {
        let Candidates { messages, phi, .. } = &self.series[series];
        reweighted(&self.belief, belief, messages, phi)
    }
}
