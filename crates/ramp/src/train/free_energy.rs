//! A model's free energy on a data set as a problem for the loop.

use super::TrainError;
use super::batches::{Batches, Split, split};
use super::centre::centre;
use super::problem::{Group, Identity, Problem};
use super::spec::TrainSpec;
use super::trainer::is_lost;
use crate::collective::Collective;
use crate::data::{Dataset, Gather};
use crate::model::{Bound, Model, Noise, Workspace, row_ends};
use crate::objective::{FreeEnergy, Mixture};
use crate::{Error, Result};

/// Validation samples are scored this many at a time.
const SCORED: usize = 2000;
/// Training samples that they meet: as many as the findings of a fit take, as far as memory allows.
const MET: usize = 1000;
/// Nats that validation samples may lose when the zero of a chain is moved: less than they differ by from one evaluation to the next.
const CENTRED: f64 = 1e-3;

pub(super) struct FreeEnergyProblem<'a> {
    model: &'a mut Model,
    data: &'a dyn Gather,
    bound: Bound<'a>,
    batches: Batches,
    /// What is added to images, once it is known how much.
    noise: Option<Noise>,
    unmeasured: Option<Unmeasured>,
    validation: Vec<u32>,
    /// The training samples that these are scored against.
    met: Vec<u32>,
    /// The two together, and which rows of them are the latter.
    scored: (Vec<u32>, Vec<u32>),
    /// The population that sets the weight of a sample's own term.
    population: usize,
    even_rates: bool,
    /// Who takes the steps together.
    ranks: &'a dyn Collective,
    /// The memory of steps and that of evaluations, reused.
    step: Workspace,
    evaluation: Workspace,
    /// Where samples are dealt to ranks: those of the last step and of the last evaluation, as far as this rank needs them.
    of_step: Travelled,
    of_evaluation: Travelled,
}

/// Noise that is asked for. The first step measures how much that is: then ranks know that they train the same, and gather the same.
struct Unmeasured {
    /// Those that tell how much pixels vary.
    samples: Vec<u32>,
    share: f64,
    seed: u64,
}

impl Unmeasured {
    fn measure(self, model: &Model, data: &dyn Gather) -> Result<Option<Noise>> {
        let few = data.gather(&self.samples)?;
        let rows: Vec<u32> = (0..self.samples.len() as u32).collect();
        Ok(Noise::new(&model.bind(&few)?, &rows, self.share, self.seed))
    }
}

/// Samples that came from other ranks for a batch.
#[derive(Default)]
struct Travelled {
    samples: Vec<u32>,
    data: Dataset,
    /// The rows of the batch: each sample is in its place.
    rows: Vec<u32>,
}

impl Travelled {
    /// Has these samples; they do not travel twice where one batch is like the other.
    fn fetch(&mut self, data: &dyn Gather, samples: &[u32], ranks: &dyn Collective) -> Result<()> {
        let Some(dealt) = data.dealt().filter(|_| self.samples != samples) else {
            return Ok(());
        };
        // The old ones are given up first.
        self.data = Dataset::new();
        self.data = dealt.deal(samples, &row_ends(samples.len(), ranks))?;
        self.samples.clear();
        self.samples.extend_from_slice(samples);
        self.rows.clear();
        self.rows.extend(0..samples.len() as u32);
        Ok(())
    }
}

impl<'a> FreeEnergyProblem<'a> {
    pub fn new(
        model: &'a mut Model,
        data: &'a dyn Gather,
        spec: &TrainSpec,
        ranks: &'a dyn Collective,
    ) -> Result<Self> {
        let bound = model.bind(data.here())?;
        if (data.dealt()).is_some_and(|dealt| dealt.ranks().ranks() != ranks.ranks()) {
            return Err(TrainError::DealtToOthers.into());
        }
        let Split {
            training,
            validation,
            ..
        } = split(spec, data.rows())?;
        let unmeasured = (spec.noise > 0.0).then(|| Unmeasured {
            samples: Noise::measured(&training),
            share: spec.noise,
            seed: spec.seed,
        });
        let steps = model.tree().time_axis().map_or(1, |t| t.steps());
        let most = (MET / steps).max(100);
        let stride = training.len().div_ceil(most);
        let met: Vec<u32> = training.iter().copied().step_by(stride).collect();
        // Along a chain, each series is masked in spans of its own.
        let series = model.tree().time_axis().map_or(1, |t| t.series().len());
        let observations = model.tree().observations().len();
        Ok(FreeEnergyProblem {
            population: spec.population.unwrap_or(training.len()),
            even_rates: spec.even_rates,
            ranks,
            batches: Batches::new(spec.clone(), training, (observations, series)),
            noise: None,
            unmeasured,
            model,
            data,
            bound,
            validation,
            met,
            scored: (vec![], vec![]),
            step: Workspace::default(),
            evaluation: Workspace::default(),
            of_step: Travelled::default(),
            of_evaluation: Travelled::default(),
        })
    }
}

impl FreeEnergyProblem<'_> {
    /// Centres the weights that validation samples chose for this value of theirs, unless they say less then, and tells their value now.
    pub fn centre(&mut self, chosen: f64) -> Result<f64> {
        let Some(before) = centre(self.model, self.data, self.batches.training())? else {
            return Ok(chosen);
        };
        match self.held_out()? {
            Some(value) if value >= chosen - CENTRED => Ok(value),
            _ => {
                self.parameters_mut().copy_from_slice(&before);
                Ok(chosen)
            }
        }
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
        if let Some(noise) = self.unmeasured.take() {
            self.noise = noise.measure(self.model, self.data)?;
        }
        self.of_step.fetch(self.data, drawn.samples, self.ranks)?;
        let travelled = match self.data.dealt() {
            Some(_) => Some(self.model.bind(&self.of_step.data)?),
            None => None,
        };
        let (bound, samples) = match &travelled {
            Some(bound) => (bound, &self.of_step.rows[..]),
            None => (&self.bound, drawn.samples),
        };
        let batch = (self.model).batch_with(bound, samples, drawn.mask, memory);
        let batch = match &mut self.noise {
            Some(noise) => batch.with_noise(noise.of_step(iteration), drawn.samples),
            None => batch,
        };
        let mixture = Mixture {
            drawn: drawn.mixture,
            population: Some(self.population),
            ..Mixture::default()
        };
        let value = self
            .model
            .evaluate_among(self.ranks, &batch, mixture, Some(gradient), &mut self.step)
            .map(FreeEnergy::mean);
        self.step.batch = batch.into_memory();
        value
    }

    /// Validation samples against training samples, as new samples are scored: a few of them among themselves would be a small
    /// mixture, and the value another.
    fn held_out(&mut self) -> Result<Option<f64>> {
        let all = self.validation.len();
        if all == 0 {
            return Ok(None);
        }
        let mut total = 0.0;
        let (both, drawn) = (&mut self.scored.0, &mut self.scored.1);
        for samples in self.validation.chunks(SCORED) {
            let rows = samples.len();
            both.clear();
            both.extend(samples.iter().chain(&self.met));
            drawn.clear();
            drawn.extend(rows as u32..both.len() as u32);
            let memory = std::mem::take(&mut self.evaluation.batch);
            self.of_evaluation.fetch(self.data, both, self.ranks)?;
            let travelled = match self.data.dealt() {
                Some(_) => Some(self.model.bind(&self.of_evaluation.data)?),
                None => None,
            };
            let (bound, both) = match &travelled {
                Some(bound) => (bound, &self.of_evaluation.rows[..]),
                None => (&self.bound, &both[..]),
            };
            let batch = self.model.batch_with(bound, both, None, memory);
            let mixture = Mixture {
                drawn: Some(drawn),
                population: Some(self.population),
                scored: Some(rows),
            };
            let value = self
                .model
                .evaluate_among(self.ranks, &batch, mixture, None, &mut self.evaluation)
                .map(|value| {
                    let scored = value.samples.chunks_exact(both.len());
                    let sum = scored.flat_map(|node| &node[..rows]).sum::<f64>();
                    sum / value.nodes.len() as f64
                });
            self.evaluation.batch = batch.into_memory();
            total += value?;
        }
        Ok(Some(total / all as f64))
    }

    fn not_finite(error: &Error) -> Option<&str> {
        match error {
            Error::NotFinite { what } => Some(what),
            _ => None,
        }
    }

    fn is_lost(&self, first: f64, value: f64) -> bool {
        is_lost(first, value)
    }

    fn identity(&self) -> Result<Identity> {
        let model = serde_json::to_value(self.model.spec());
        Ok(Identity {
            model: model.map_err(TrainError::Description)?,
            samples: self.data.rows(),
            data: self.data.fingerprint(),
        })
    }
}
