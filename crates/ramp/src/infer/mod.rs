//! What a trained model believes: the posterior of every latent for every sample, and its filtered version on chains; scores
//! of samples, and what their missing observations may be.

mod impute;
mod support_set;
#[cfg(test)]
mod tests;

pub use crate::model::filter::{Filter, PointBelief};
pub use impute::{Conditionals, Imputer};
pub use support_set::{Scores, SupportSet};

use crate::data::Dataset;
use crate::family::{Belief, Description};
use crate::graph::Tying;
use crate::model::{Model, Workspace};
use crate::{Error, Result};

/// Samples that go through the model together.
const ROWS: usize = 4096;

/// Posterior beliefs about every latent for a run of samples.
#[derive(Clone, Debug)]
pub struct Posterior {
    first: usize,
    rows: usize,
    latents: Vec<LatentPosterior>,
}

/// Posterior beliefs about one latent.
#[derive(Clone, Debug)]
pub struct LatentPosterior {
    name: String,
    belief: Belief,
    rows: usize,
    /// Natural parameters, plane by plane.
    eta: Vec<f64>,
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

    /// All latents, in the order of the tree.
    pub fn latents(&self) -> &[LatentPosterior] {
        &self.latents
    }

    /// One latent by its name.
    pub fn latent(&self, name: &str) -> Result<&LatentPosterior> {
        self.latents.iter().find(|l| l.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.latents.iter().take(8).map(|l| &l.name[..]).collect();
            Error::Invalid(format!(
                "there is no latent `{name}`; there are {}",
                names.join(", ")
            ))
        })
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

    /// The natural parameters of one sample's posterior.
    pub fn natural(&self, row: usize) -> Vec<f64> {
        self.eta
            .chunks_exact(self.rows)
            .map(|plane| plane[row])
            .collect()
    }

    /// One sample's posterior in words.
    pub fn describe(&self, row: usize) -> Description {
        self.belief.describe(&self.natural(row))
    }

    /// The posterior means of one coordinate, sample by sample.
    pub fn means(&self, coordinate: usize) -> Vec<f64> {
        (0..self.rows)
            .map(|row| self.describe(row).mean[coordinate])
            .collect()
    }

    /// The posterior standard deviations of one coordinate, sample by sample.
    pub fn sds(&self, coordinate: usize) -> Vec<f64> {
        (0..self.rows)
            .map(|row| self.describe(row).sd[coordinate])
            .collect()
    }
}

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
            return Err(Error::Invalid(
                "filtering needs a chain: latents joined one after the other, in order".into(),
            ));
        }
        self.collect(data, &|m| Some(roles.of_message[m]) != backward)
    }

    fn collect(&self, data: &Dataset, keep: &(dyn Fn(usize) -> bool + Sync)) -> Result<Posterior> {
        let mut whole: Option<Posterior> = None;
        self.stream(data, ROWS, keep, &mut |part| {
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => {
                    for (all, new) in whole.latents.iter_mut().zip(part.latents) {
                        let (had, has) = (all.rows, new.rows);
                        all.eta = all
                            .eta
                            .chunks_exact(had)
                            .zip(new.eta.chunks_exact(has))
                            .flat_map(|(a, b)| a.iter().chain(b).copied())
                            .collect();
                        all.rows += has;
                    }
                    whole.rows += part.rows;
                }
            }
            Ok(())
        })?;
        whole.ok_or_else(|| Error::Invalid("the data set has no samples".into()))
    }

    /// The posterior of every latent, run by run of at most `rows` samples, in memory that does not grow with the data.
    pub fn for_each_posterior(
        &self,
        data: &Dataset,
        rows: usize,
        mut emit: impl FnMut(Posterior) -> Result<()>,
    ) -> Result<()> {
        self.stream(data, rows.max(1), &|_| true, &mut emit)
    }

    fn stream(
        &self,
        data: &Dataset,
        rows: usize,
        keep: &(dyn Fn(usize) -> bool + Sync),
        emit: &mut dyn FnMut(Posterior) -> Result<()>,
    ) -> Result<()> {
        let bound = self.bind(data)?;
        let mut space = Workspace::default();
        for first in (0..bound.rows()).step_by(rows) {
            let samples: Vec<u32> = (first..(first + rows).min(bound.rows()))
                .map(|n| n as u32)
                .collect();
            let batch = self.batch(&bound, &samples, None);
            let mut latents = vec![];
            self.beliefs_of(&batch, &mut space, keep, |k, eta| {
                latents.push(LatentPosterior {
                    name: self.tree().name(self.tree().latents()[k]).to_string(),
                    belief: self.nodes[k].belief.clone(),
                    rows: samples.len(),
                    eta,
                });
            })?;
            emit(Posterior {
                first,
                rows: samples.len(),
                latents,
            })?;
        }
        Ok(())
    }
}
