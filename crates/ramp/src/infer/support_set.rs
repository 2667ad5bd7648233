//! The samples that stand for the empirical mixture once training is over: what new samples are scored and imputed against.

use super::InferError;
use super::posterior::ROWS;
use crate::data::Dataset;
use crate::message::{Messages, Node, Presence};
use crate::model::{Model, Workspace};
use crate::objective::{Mixture, free_energy};
use crate::{Error, Result};

/// The messages of some training samples, in place of all of them.
///
/// ```
/// use ramp::{data::Dataset, graph::FactorTree, infer::SupportSet, model::Model};
///
/// let data = |values: Vec<f32>| {
///     (1..=3).try_fold(Dataset::new(), |data, i| data.observe(format!("x{i}"), 1, values.clone()))
/// };
/// let training = data(vec![-1.0, 0.0, 1.0, 2.0])?;
/// let model = Model::builder(FactorTree::star(3)?).build(&training)?;
/// let support = SupportSet::new(&model, &training, 4)?;
/// let scores = support.scores(&model, &data(vec![0.5, f32::NAN])?)?;
/// assert!(scores.latent(0)[0].is_finite());
/// assert_eq!(scores.latent(0)[1], 0.0, "nothing is said of a sample without observations");
/// # Ok::<(), ramp::Error>(())
/// ```
pub struct SupportSet {
    pub(super) messages: Messages,
    pub(super) presence: Presence,
    population: usize,
    /// The samples themselves, where some messages must be computed again without a part of them: in trees with factors of more than two
    /// variables.
    pub(super) samples: Option<Dataset>,
}

/// Nodewise free energies of samples, in nats: how much each latent explains of what hangs on it. A lower bound on the
/// log-likelihood ratio of the sample's parts together and apart; low values flag parts that do not belong together.
#[derive(Clone, Debug)]
pub struct Scores {
    rows: usize,
    /// Latent by latent.
    values: Vec<f64>,
}

impl Scores {
    /// How many samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The free energies of one latent, sample by sample; zero where nothing that hangs on it was observed.
    pub fn latent(&self, latent: usize) -> &[f64] {
        &self.values[latent * self.rows..][..self.rows]
    }

    /// The free energies of one of the [posterior's](super::Posterior) latents: sample by sample and, of a chain's latent,
    /// step by step, `[sample, (time)]`.
    pub fn of(&self, model: &Model, latent: usize) -> Vec<f64> {
        over_time(model, latent, |k| self.latent(k))
    }

    /// The mean over samples, latent by latent.
    pub fn means(&self) -> Vec<f64> {
        self.values
            .chunks_exact(self.rows.max(1))
            .map(|f| f.iter().sum::<f64>() / self.rows as f64)
            .collect()
    }
}

/// The numbers of one of the posterior's latents, given those of each latent of the tree: of a chain, the steps of every sample in turn.
pub(super) fn over_time<'a>(
    model: &Model,
    latent: usize,
    of: impl Fn(usize) -> &'a [f64],
) -> Vec<f64> {
    let Some(time) = model.tree().time_axis() else {
        return of(latent).to_vec();
    };
    let rows = of(0).len();
    (0..rows)
        .flat_map(|row| (0..time.steps()).map(move |step| (step, row)))
        .map(|(step, row)| of(step)[row])
        .collect()
}

impl SupportSet {
    /// Takes the messages of these samples; `population` is the size of the data set that they were drawn from.
    pub fn new(model: &Model, data: &Dataset, population: usize) -> Result<Self> {
        let bound = model.bind(data)?;
        if bound.rows() == 0 {
            return Err(InferError::EmptySupportSet.into());
        }
        let samples: Vec<u32> = (0..bound.rows() as u32).collect();
        let (messages, presence) = model.messages_of(
            &model.batch(&bound, &samples, None),
            &mut Workspace::default(),
        );
        Ok(SupportSet {
            messages,
            presence,
            population,
            samples: (!model.tree().is_pairwise()).then(|| data.clone()),
        })
    }

    /// How many samples.
    pub fn rows(&self) -> usize {
        self.messages.rows()
    }

    /// The size of the data set that the samples were drawn from.
    pub fn population(&self) -> usize {
        self.population
    }

    /// The nodewise free energies of samples. A sample's score does not depend on those beside it.
    pub fn scores(&self, model: &Model, data: &Dataset) -> Result<Scores> {
        let nodes = &model.nodes;
        let mut scores = Scores {
            rows: data.rows(),
            values: vec![0.0; nodes.len() * data.rows()],
        };
        self.scoring_batches(model, data, |first, batch| {
            let value = batch.free_energy(nodes)?;
            for (k, samples) in value.chunks_exact(batch.rows).enumerate() {
                scores.values[k * data.rows() + first..][..batch.rows].copy_from_slice(samples);
            }
            Ok(())
        })?;
        Ok(scores)
    }

    /// The nodewise free energies of the support set's own samples, each compared with all others: beside its own copy a sample
    /// would look less surprising than it is.
    pub fn own_scores(&self, model: &Model) -> Result<Scores> {
        let rows = self.rows();
        let batch = ScoringBatch {
            messages: self.messages.clone(),
            presence: self.presence.clone(),
            rows,
            drawn: (0..rows as u32).collect(),
            population: self.population,
        };
        let values = batch.free_energy(&model.nodes)?;
        Ok(Scores { rows, values })
    }

    /// What every message brings: for each latent and each message into it, in order, by how much the mean free energy of
    /// these samples falls when that message is left out. The work grows with the square of a latent's messages; of very
    /// many, only some are measured, evenly spread, and the others are `NaN`.
    pub fn contributions(&self, model: &Model, data: &Dataset) -> Result<Vec<Vec<f64>>> {
        let nodes = &model.nodes;
        let mut contributions: Vec<Vec<f64>> = nodes
            .iter()
            .map(|node| vec![0.0; node.messages.len()])
            .collect();
        self.scoring_batches(model, data, |_, mut batch| {
            let whole = batch.free_energy(nodes)?;
            let pairs = batch.rows * batch.drawn.len();
            for (k, node) in nodes.iter().enumerate() {
                let measured = measured(node.messages.len(), pairs);
                let sum = |f: &[f64]| f.iter().sum::<f64>();
                let whole = sum(&whole[k * batch.rows..][..batch.rows]);
                for (i, m) in node.messages.clone().enumerate() {
                    if !measured(i) {
                        contributions[k][i] = f64::NAN;
                        continue;
                    }
                    let kept = batch.mask(m);
                    let without = batch.free_energy(std::slice::from_ref(node))?;
                    contributions[k][i] += (whole - sum(&without)) / data.rows() as f64;
                    batch.restore(m, kept);
                }
            }
            Ok(())
        })?;
        Ok(contributions)
    }

    /// Puts samples beside the support set, run by run.
    pub(super) fn scoring_batches(
        &self,
        model: &Model,
        data: &Dataset,
        mut each: impl FnMut(usize, ScoringBatch) -> Result<()>,
    ) -> Result<()> {
        let bound = model.bind(data)?;
        let mut space = Workspace::default();
        for first in (0..bound.rows()).step_by(ROWS) {
            let samples: Vec<u32> =
                (first as u32..(first + ROWS).min(bound.rows()) as u32).collect();
            let batch = model.batch(&bound, &samples, None);
            let (messages, presence) = model.messages_of(&batch, &mut space);
            let rows = samples.len();
            let count = messages.len();
            each(
                first,
                ScoringBatch {
                    messages: Messages::concat(&messages, &self.messages),
                    presence: presence.concat(rows, &self.presence, self.rows(), count),
                    rows,
                    drawn: (rows as u32..(rows + self.rows()) as u32).collect(),
                    population: self.population,
                },
            )?;
        }
        Ok(())
    }
}

/// Which of a latent's messages there is time to measure, each of which takes a look at all of them.
fn measured(messages: usize, pairs: usize) -> impl Fn(usize) -> bool {
    /// Pairs of samples that may be compared for one latent: some seconds of work.
    const PAIRS: usize = 10_000_000_000;
    /// What a message costs besides its pairs, in pairs.
    const EACH: usize = 50_000;
    let most = (PAIRS / (messages * (pairs + EACH)).max(1)).max(8);
    let stride = messages.div_ceil(most).max(1);
    move |i| i.is_multiple_of(stride)
}

/// A run of samples followed by the support set.
pub(super) struct ScoringBatch {
    pub messages: Messages,
    pub presence: Presence,
    pub rows: usize,
    drawn: Vec<u32>,
    population: usize,
}

impl ScoringBatch {
    pub fn free_energy(&self, nodes: &[Node]) -> Result<Vec<f64>> {
        let mixture = Mixture {
            drawn: Some(&self.drawn),
            population: Some(self.population),
            scored: Some(self.rows),
        };
        let value = free_energy(nodes, &self.messages, &self.presence, mixture, None);
        let all = self.messages.rows();
        let samples: Vec<f64> = value
            .samples
            .chunks_exact(all)
            .flat_map(|f| &f[..self.rows])
            .copied()
            .collect();
        match samples.iter().all(|f| f.is_finite()) {
            true => Ok(samples),
            false => Err(Error::NotFinite {
                what: "a sample's free energy".into(),
            }),
        }
    }

    /// Leaves a message out; what comes back restores it.
    pub fn mask(&mut self, message: usize) -> (Vec<f32>, Option<Vec<u32>>) {
        let planes = self.messages.message_mut(message);
        let kept = planes.to_vec();
        planes.fill(0.0);
        (kept, self.presence.replace(message, Some(vec![])))
    }

    pub fn restore(&mut self, message: usize, (planes, rows): (Vec<f32>, Option<Vec<u32>>)) {
        self.messages.message_mut(message).copy_from_slice(&planes);
        self.presence.replace(message, rows);
    }
}
