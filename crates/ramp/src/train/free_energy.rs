//! A model's free energy on a data set as a problem for the loop.

use super::TrainError;
use super::batches::{Batches, split};
use super::problem::{Group, Identity, Problem};
use super::spec::TrainSpec;
use crate::data::Dataset;
use crate::model::{Bound, Model, Workspace};
use crate::objective::Mixture;
use crate::{Error, Result};

/// Held-out samples are scored this many at a time: the objective is quadratic in them.
const HELD_OUT: usize = 2000;

pub(super) struct FreeEnergyProblem<'a> {
    model: &'a mut Model,
    data: &'a Dataset,
    bound: Bound<'a>,
    batches: Batches,
    held_out: Vec<u32>,
    /// The population that sets the weight of a sample's own term.
    population: usize,
    even_rates: bool,
    /// The memory of steps and that of evaluations, reused.
    step: Workspace,
    evaluation: Workspace,
}

impl<'a> FreeEnergyProblem<'a> {
    pub fn new(model: &'a mut Model, data: &'a Dataset, spec: &TrainSpec) -> Result<Self> {
        let bound = model.bind(data)?;
        let (train, held_out) = split(spec, bound.rows())?;
        // Along a chain, each series is masked in spans of its own.
        let series = model.tree().time_axis().map_or(1, |t| t.series().len());
        let observations = model.tree().observations().len();
        Ok(FreeEnergyProblem {
            population: spec.population.unwrap_or(train.len()),
            even_rates: spec.even_rates,
            batches: Batches::new(spec.clone(), train, (observations, series)),
            model,
            data,
            bound,
            held_out,
            step: Workspace::default(),
            evaluation: Workspace::default(),
        })
    }
}

impl Problem for FreeEnergyProblem<'_> {
    type Model = Model;
    type Error = Error;

    fn model(&self) -> &Model {
        self.model
    }

    fn parameters(&self) -> &[f32] {
        self.model.parameters()
    }

    fn parameters_mut(&mut self) -> &mut [f32] {
        self.model.parameters_mut()
    }

    fn groups(&self) -> Vec<Group> {
        let even = self.even_rates;
        self.model
            .each_parameter(|_, parameter, start| Group::of(parameter, start, even))
    }

    fn step(&mut self, iteration: usize, gradient: &mut [f32]) -> Result<f64> {
        let drawn = self.batches.draw(iteration);
        let memory = std::mem::take(&mut self.step.batch);
        let batch = (self.model).batch_with(&self.bound, drawn.samples, drawn.mask, memory);
        let mixture = Mixture {
            drawn: drawn.mixture,
            population: Some(self.population),
            ..Mixture::default()
        };
        let value = self
            .model
            .evaluate(&batch, mixture, Some(gradient), &mut self.step);
        self.step.batch = batch.into_memory();
        Ok(value?.mean())
    }

    fn held_out(&mut self) -> Result<Option<f64>> {
        let all = self.held_out.len();
        if all == 0 {
            return Ok(None);
        }
        let mut total = 0.0;
        for samples in self.held_out.chunks(all.div_ceil(all.div_ceil(HELD_OUT))) {
            let batch = self.model.batch(&self.bound, samples, None);
            let mixture = Mixture {
                population: Some(self.population),
                ..Mixture::default()
            };
            let value = self
                .model
                .evaluate(&batch, mixture, None, &mut self.evaluation)?;
            total += value.mean() * samples.len() as f64;
        }
        Ok(Some(total / all as f64))
    }

    fn not_finite(error: &Error) -> Option<&str> {
        match error {
            Error::NotFinite { what } => Some(what),
            _ => None,
        }
    }

    fn identity(&self) -> Result<Identity> {
        let model = serde_json::to_value(self.model.spec());
        Ok(Identity {
            model: model.map_err(TrainError::Description)?,
            samples: self.bound.rows(),
            data: self.data.fingerprint(),
        })
    }
}
