//! Posterior beliefs of many samples: one contiguous block of natural parameters for every latent.

use super::InferError;
use crate::data::{DataError, Dataset};
use crate::family::{Belief, Description};
use crate::graph::{TimeAxis, Tying};
use crate::model::{Bound, Model, Workspace};
use crate::{Error, Result};
use rayon::prelude::*;

/// Samples that go through the model together.
pub(super) const ROWS: usize = 4096;

/// Posterior beliefs about every latent for a run of samples.
///
/// A chain in time has one latent, `z`, with a belief for every sample and step.
///
/// ```
/// use ramp::{data::Dataset, graph::{FactorTree, Tying}, model::Model};
///
/// // Four sequences of up to three steps; the last one has two.
/// let data = Dataset::new().observe_sequence("x", 3, 1, vec![0.5; 12])?.with_lengths(vec![3, 3, 3, 2])?;
/// let model = Model::builder(FactorTree::chain(3)?).families("gaussian(2)")?.tying(Tying::Role).build(&data)?;
/// let posterior = model.posterior(&data)?;
/// let z = posterior.latent("z")?;
/// let means = z.mean_array();
/// assert_eq!(means.shape(), [4, 3, 2]); // sample, time, coordinate
/// assert_eq!(means.row(0)[2..4], z.describe_at(0, 1).mean);
/// assert!(means.row(3)[4].is_nan()); // after the end of the last sequence
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Posterior {
    first: usize,
    rows: usize,
    latents: Vec<LatentPosterior>,
}

/// Posterior beliefs about one latent, of a chain at every step.
///
/// Where a sample is shorter than the chain there is nothing to believe: whatever is asked about later steps is `NaN`.
#[derive(Clone, Debug)]
pub struct LatentPosterior {
    name: String,
    belief: Belief,
    rows: usize,
    /// `None` where there is no time axis.
    steps: Option<usize>,
    /// Natural parameters `[sample, (time,) parameter]`.
    eta: Vec<f64>,
}

/// Numbers `[sample, (time,) coordinate]` in one block, the last axis running fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct PosteriorArray {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl PosteriorArray {
    /// The length of every axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// All numbers.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All numbers, without a copy.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// One sample's numbers, of a chain step by step.
    pub fn row(&self, row: usize) -> &[f64] {
        let width: usize = self.shape[1..].iter().product();
        &self.values[row * width..][..width]
    }

    /// One coordinate of every sample, of a chain of every step of every sample.
    pub fn column(&self, coordinate: usize) -> impl ExactSizeIterator<Item = f64> + '_ {
        let width = self.shape[self.shape.len() - 1];
        self.values.chunks_exact(width).map(move |c| c[coordinate])
    }
}

impl Posterior {
    /// The first sample's place in the data.
    pub fn first(&self) -> usize {
        self.first
    }

    /// How many samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All latents, in the order of the tree; the one latent of a chain in time.
    pub fn latents(&self) -> &[LatentPosterior] {
        &self.latents
    }

    /// One latent by its name; a chain in time has the latent `z`.
    pub fn latent(&self, name: &str) -> Result<&LatentPosterior, InferError> {
        self.latents
            .iter()
            .find(|l| l.name == name)
            .ok_or_else(|| InferError::UnknownLatent {
                name: name.into(),
                have: self
                    .latents
                    .iter()
                    .take(8)
                    .map(|l| l.name.clone())
                    .collect(),
            })
    }

    /// Room for a run of samples.
    fn new(model: &Model, first: usize, rows: usize) -> Self {
        let tree = model.tree();
        let time = tree.time_axis();
        let count = if time.is_some() {
            1
        } else {
            tree.latents().len()
        };
        let latents = (0..count)
            .map(|k| {
                let belief = model.nodes[k].belief.clone();
                let steps = time.map(TimeAxis::steps);
                LatentPosterior {
                    name: match time {
                        Some(_) => TimeAxis::LATENT.into(),
                        None => tree.name(tree.latents()[k]).into(),
                    },
                    rows,
                    steps,
                    eta: vec![0.0; rows * steps.unwrap_or(1) * belief.dim()],
                    belief,
                }
            })
            .collect();
        Posterior {
            first,
            rows,
            latents,
        }
    }

    /// Takes the beliefs of some samples about the tree's latent `k`, plane by plane.
    fn fill(&mut self, k: usize, samples: &[u32], planes: &[f64], lengths: Option<&[u32]>) {
        let first = self.first;
        let (latent, step) = match self.latents[0].steps {
            Some(_) => (&mut self.latents[0], k),
            None => (&mut self.latents[k], 0),
        };
        let (dim, steps) = (latent.belief.dim(), latent.steps.unwrap_or(1));
        for (r, &n) in samples.iter().enumerate() {
            let cell = (n as usize - first) * steps + step;
            let to = &mut latent.eta[cell * dim..][..dim];
            if lengths.is_some_and(|l| l[n as usize] as usize <= k) {
                to.fill(f64::NAN);
                continue;
            }
            for (to, plane) in to.iter_mut().zip(planes.chunks_exact(samples.len())) {
                *to = plane[r];
            }
        }
    }
}

impl LatentPosterior {
    /// The latent's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its family.
    pub fn belief(&self) -> &Belief {
        &self.belief
    }

    /// How many samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The steps of a chain; `None` where there is no time axis.
    pub fn steps(&self) -> Option<usize> {
        self.steps
    }

    /// All natural parameters in one block, `[sample, (time,) parameter]`.
    pub fn naturals(&self) -> &[f64] {
        &self.eta
    }

    /// The natural parameters of one sample's posterior, of a chain step by step.
    pub fn natural(&self, row: usize) -> &[f64] {
        let width = self.steps.unwrap_or(1) * self.belief.dim();
        &self.eta[row * width..][..width]
    }

    /// The natural parameters of one sample's posterior at a step of a chain, counted from 0.
    pub fn natural_at(&self, row: usize, step: usize) -> &[f64] {
        let dim = self.belief.dim();
        &self.natural(row)[step * dim..][..dim]
    }

    /// One sample's posterior in words.
    ///
    /// # Panics
    /// If the latent has a time axis: [`LatentPosterior::describe_at`] describes one step.
    pub fn describe(&self, row: usize) -> Description {
        assert!(
            self.steps.is_none(),
            "a chain's latent has a belief for every step: see describe_at"
        );
        self.describe_at(row, 0)
    }

    /// One sample's posterior at a step of a chain, counted from 0, in words.
    pub fn describe_at(&self, row: usize, step: usize) -> Description {
        self.describe_cell(self.natural_at(row, step))
    }

    fn describe_cell(&self, eta: &[f64]) -> Description {
        if !eta[0].is_nan() {
            return self.belief.describe(eta);
        }
        let mut nothing = self.belief.describe(&self.belief.prior());
        nothing.mean.fill(f64::NAN);
        nothing.sd.fill(f64::NAN);
        nothing.entropy = f64::NAN;
        nothing
    }

    /// All posterior means, `[sample, (time,) coordinate]`.
    pub fn mean_array(&self) -> PosteriorArray {
        self.moments().0
    }

    /// All posterior standard deviations, `[sample, (time,) coordinate]`.
    pub fn sd_array(&self) -> PosteriorArray {
        self.moments().1
    }

    /// All posterior means and standard deviations, `[sample, (time,) coordinate]` each.
    pub fn moments(&self) -> (PosteriorArray, PosteriorArray) {
        /// Beliefs that one task describes.
        const TASK: usize = 512;
        let width = self.belief.describe(&self.belief.prior()).mean.len();
        let dim = self.belief.dim();
        let cells = self.eta.len() / dim;
        let mut shape = vec![self.rows];
        shape.extend(self.steps);
        shape.push(width);
        let array = || PosteriorArray {
            shape: shape.clone(),
            values: vec![0.0; cells * width],
        };
        let (mut means, mut sds) = (array(), array());
        self.eta
            .par_chunks(TASK * dim)
            .zip(means.values.par_chunks_mut(TASK * width))
            .zip(sds.values.par_chunks_mut(TASK * width))
            .for_each(|((etas, means), sds)| {
                let to = means
                    .chunks_exact_mut(width)
                    .zip(sds.chunks_exact_mut(width));
                for (eta, (mean, sd)) in etas.chunks_exact(dim).zip(to) {
                    let said = self.describe_cell(eta);
                    mean.copy_from_slice(&said.mean);
                    sd.copy_from_slice(&said.sd);
                }
            });
        (means, sds)
    }

    /// The posterior means of one coordinate, sample by sample and, of a chain, step by step.
    pub fn means(&self, coordinate: usize) -> Vec<f64> {
        self.mean_array().column(coordinate).collect()
    }

    /// The posterior standard deviations of one coordinate, sample by sample and, of a chain, step by step.
    pub fn sds(&self, coordinate: usize) -> Vec<f64> {
        self.sd_array().column(coordinate).collect()
    }
}

/// Which messages count.
type Keep<'a> = dyn Fn(usize) -> bool + Sync + 'a;

impl Model {
    /// The posterior of every latent for every sample, all in memory.
    pub fn posterior(&self, data: &Dataset) -> Result<Posterior> {
        self.collect(data, &|_| true)
    }

    /// The posterior of every latent given the past and present of a chain only: `p(z_t | x_1, …, x_t)`.
    pub fn filtered(&self, data: &Dataset) -> Result<Posterior> {
        let roles = Tying::Role.assign(self.tree());
        let backward = roles.keys.iter().position(|k| k == "backward");
        if backward.is_none() && self.tree().latents().len() > 1 {
            return Err(InferError::NotAChain.into());
        }
        self.collect(data, &|m| Some(roles.of_message[m]) != backward)
    }

    fn collect(&self, data: &Dataset, keep: &Keep<'_>) -> Result<Posterior> {
        let bound = self.bind(data)?;
        let rows = bound.rows();
        if rows == 0 {
            return Err(DataError::Empty.into());
        }
        let mut space = Workspace::default();
        let mut whole = Posterior::new(self, 0, rows);
        for first in (0..rows).step_by(ROWS) {
            let samples = samples(first..(first + ROWS).min(rows));
            self.believe(&bound, &samples, keep, &mut space, &mut whole)?;
        }
        Ok(whole)
    }

    /// The posterior of every latent, run by run of at most `rows` samples, in memory that does not grow with the data.
    pub fn for_each_posterior(
        &self,
        data: &Dataset,
        rows: usize,
        mut emit: impl FnMut(Posterior) -> Result<()>,
    ) -> Result<()> {
        let bound = self.bind(data)?;
        let mut space = Workspace::default();
        for first in (0..bound.rows()).step_by(rows.max(1)) {
            let samples = samples(first..(first + rows.max(1)).min(bound.rows()));
            let mut part = Posterior::new(self, first, samples.len());
            self.believe(&bound, &samples, &|_| true, &mut space, &mut part)?;
            emit(part)?;
        }
        Ok(())
    }

    /// Puts the beliefs of some samples into their place.
    fn believe(
        &self,
        bound: &Bound<'_>,
        samples: &[u32],
        keep: &Keep<'_>,
        space: &mut Workspace,
        into: &mut Posterior,
    ) -> Result<(), Error> {
        let memory = std::mem::take(&mut space.batch);
        let batch = self.batch_with(bound, samples, None, memory);
        let done = self.beliefs_of(&batch, space, keep, |k, planes| {
            into.fill(k, samples, &planes, bound.lengths());
        });
        space.batch = batch.into_memory();
        done
    }
}

fn samples(range: std::ops::Range<usize>) -> Vec<u32> {
    range.map(|n| n as u32).collect()
}
