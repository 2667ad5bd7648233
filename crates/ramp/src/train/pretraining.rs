//! Pretraining of a chain's messages on estimated states, as a problem for the loop.

use super::TrainSpec;
use super::batches::Batches;
use super::problem::{Group, Identity, Problem};
use crate::data::Dataset;
use crate::model::{Bound, Model, PretrainingTargets, Workspace};
use crate::{Error, Result};

/// All samples of some data with targets for each; what is masked grows as it does for the free energy, so that networks meet gaps from
/// the beginning.
pub(super) struct PretrainingProblem<'a> {
    model: &'a mut Model,
    bound: Bound<'a>,
    targets: &'a PretrainingTargets,
    batches: Batches,
    even_rates: bool,
    space: Workspace,
}

impl<'a> PretrainingProblem<'a> {
    pub fn new(
        model: &'a mut Model,
        data: &'a Dataset,
        targets: &'a PretrainingTargets,
        spec: &TrainSpec,
    ) -> Result<Self> {
        let bound = model.bind(data)?;
        let series = model.tree().time_axis().map_or(1, |t| t.series().len());
        let observations = model.tree().observations().len();
        let all = (0..bound.rows() as u32).collect();
        Ok(PretrainingProblem {
            batches: Batches::new(spec.clone(), all, (observations, series)),
            even_rates: spec.even_rates,
            model,
            bound,
            targets,
            space: Workspace::default(),
        })
    }
}

impl Problem for PretrainingProblem<'_> {
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
        let memory = std::mem::take(&mut self.space.batch);
        let batch = (self.model).batch_with(&self.bound, drawn.samples, drawn.mask, memory);
        let value = (self.model).pretrain(&batch, self.targets, gradient, &mut self.space);
        self.space.batch = batch.into_memory();
        value
    }

    fn not_finite(error: &Error) -> Option<&str> {
        match error {
            Error::NotFinite { what } => Some(what),
            _ => None,
        }
    }

    /// Nothing of it is kept.
    fn identity(&self) -> Result<Identity> {
        Ok(Identity::default())
    }
}
