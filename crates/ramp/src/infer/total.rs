//! One yardstick for all trees: how much a whole model explains against independence, in nats a sample (MATH, "One yardstick for
//! all trees").
//!
//! Free energies of latents are ratios to different references and cannot be added as they are. Their chain rule can: the
//! dependence between the branches of a root, plus that within each branch, and so on outwards.

use super::SupportSet;
use super::support_set::{ScoringBatch, over_time};
use crate::Result;
use crate::data::Dataset;
use crate::graph::{FactorId, FactorTree, Rooted, VariableId};
use crate::message::{Messages, Presence};
use crate::model::{Mask, Model, Workspace};
use std::collections::HashMap;

/// How much a model explains of samples, in nats a sample against independent observations: comparable between trees, families
/// and dimensions over the same samples.
///
/// On samples that were not learned from, it is on average a lower bound of the observations' total correlation. With exact
/// messages it does not depend on the root; how far it does measures how coherent a fitted model is.
#[derive(Clone, Debug)]
pub struct Total {
    root: VariableId,
    rows: usize,
    /// Latent by latent.
    values: Vec<f64>,
}

impl Total {
    /// The latent that was taken as root.
    pub fn root(&self) -> VariableId {
        self.root
    }

    /// How many samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What one latent adds, sample by sample: of what hangs on it away from the root, how much it explains.
    pub fn latent(&self, latent: usize) -> &[f64] {
        &self.values[latent * self.rows..][..self.rows]
    }

    /// What one of the [posterior's](super::Posterior) latents adds: sample by sample and, of a chain's latent, step by step, `[sample, (time)]`.
    pub fn of(&self, model: &Model, latent: usize) -> Vec<f64> {
        over_time(model, latent, |k| self.latent(k))
    }

    /// What each latent adds on average; these add up to [`Total::mean`].
    pub fn means(&self) -> Vec<f64> {
        self.values
            .chunks_exact(self.rows.max(1))
            .map(|values| values.iter().sum::<f64>() / self.rows as f64)
            .collect()
    }

    /// The total of every sample.
    pub fn samples(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.rows];
        for values in self.values.chunks_exact(self.rows.max(1)) {
            all.iter_mut().zip(values).for_each(|(sum, v)| *sum += v);
        }
        all
    }

    /// The mean over samples, in nats.
    pub fn mean(&self) -> f64 {
        self.means().iter().sum()
    }

    /// The standard error of the mean; `NaN` of a single sample.
    pub fn standard_error(&self) -> f64 {
        standard_error(&self.samples())
    }
}

/// The standard error of a mean.
fn standard_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (squares / (count - 1.0) / count).sqrt()
}

impl Model {
    /// How much this model explains of samples that were not learned from, beside training samples that stand for the
    /// empirical mixture: thousands of them, or rows that are rare in the mixture lift the mean.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::FactorTree, infer::SupportSet, model::Model};
    ///
    /// let data = |values: Vec<f32>| {
    ///     (1..=4).try_fold(Dataset::new(), |data, i| data.observe(format!("x{i}"), 1, values.clone()))
    /// };
    /// let training = data(vec![-1.0, 0.0, 1.0, 2.0])?;
    /// let tree = FactorTree::from_newick("((x1,x2)a,x3,x4)b;")?;
    /// let model = Model::builder(tree).build(&training)?;
    /// let support = SupportSet::new(&model, &training, 4)?;
    /// let total = model.total(&support, &data(vec![0.5, -0.5])?)?;
    /// assert!((total.mean() - total.means().iter().sum::<f64>()).abs() < 1e-12);
    /// assert_eq!(total.samples().len(), 2);
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn total(&self, support: &SupportSet, data: &Dataset) -> Result<Total> {
        let mut totals = self.totals(support, data, &[self.tree().root()])?;
        Ok(totals.remove(0))
    }

    /// The same from each of some latents as root. Terms that roots share are computed once: all roots of a pairwise tree cost little
    /// more than as many single ones as a latent has latent neighbours.
    pub fn totals(
        &self,
        support: &SupportSet,
        data: &Dataset,
        roots: &[VariableId],
    ) -> Result<Vec<Total>> {
        let tree = self.tree();
        let terms: Vec<Vec<Term>> = roots.iter().map(|&root| terms(tree, root)).collect();
        let rows = data.rows();
        let mut totals: Vec<Total> = roots
            .iter()
            .map(|&root| Total {
                root,
                rows,
                values: vec![0.0; tree.latents().len() * rows],
            })
            .collect();
        let mut space = Workspace::default();
        support.scoring_batches(self, data, |first, mut batch| {
            let some: Vec<u32> = (first as u32..(first + batch.rows) as u32).collect();
            let run = data.select(&some);
            let mut known: HashMap<Term, Vec<f64>> = HashMap::new();
            for (total, terms) in totals.iter_mut().zip(&terms) {
                for (k, term) in terms.iter().enumerate() {
                    let values = match known.get(term) {
                        Some(values) => values,
                        None => {
                            let values =
                                self.term(term, k, support, &run, &mut batch, &mut space)?;
                            known.entry(*term).or_insert(values)
                        }
                    };
                    total.values[k * rows + first..][..batch.rows].copy_from_slice(values);
                }
            }
            Ok(())
        })?;
        Ok(totals)
    }

    /// The free energy of a latent with what lies towards the root masked.
    fn term(
        &self,
        term: &Term,
        k: usize,
        support: &SupportSet,
        data: &Dataset,
        batch: &mut ScoringBatch,
        space: &mut Workspace,
    ) -> Result<Vec<f64>> {
        let node = std::slice::from_ref(&self.nodes[k]);
        let Some((factor, head)) = term.entrance else {
            return batch.free_energy(node);
        };
        // An entrance's factor holds the latent, so there is a message.
        let Some(message) = self.tree().message(factor, term.latent) else {
            return batch.free_energy(node);
        };
        let message = message.index();
        let left = remaining(self.tree(), factor, head, term.latent);
        let kept = batch.mask(message);
        if let (true, Some(samples)) = (left, &support.samples) {
            let absent = absent(self.tree(), factor, head, term.latent);
            let (own, own_rows) = self.message_without(data, &absent, space)?;
            let (others, their_rows) = self.message_without(samples, &absent, space)?;
            let both = Messages::concat(&own, &others);
            batch
                .messages
                .message_mut(message)
                .copy_from_slice(both.message(message));
            let rows = own_rows.concat(own.rows(), &their_rows, others.rows(), own.len());
            let rows = rows.rows(message).map(<[u32]>::to_vec);
            batch.presence.replace(message, rows);
        }
        let value = batch.free_energy(node);
        batch.restore(message, kept);
        value
    }

    /// All messages as they are when some observations are masked.
    fn message_without(
        &self,
        data: &Dataset,
        absent: &[bool],
        space: &mut Workspace,
    ) -> Result<(Messages, Presence)> {
        let bound = self.bind(data)?;
        let samples: Vec<u32> = (0..bound.rows() as u32).collect();
        let mut mask = Mask::default();
        mask.refill(absent.len(), samples.len(), |observation, _| {
            absent[observation]
        });
        Ok(self.messages_of(&self.batch(&bound, &samples, Some(&mask)), space))
    }
}

/// A latent and the factor through which it hangs towards the root, with that factor's variable nearest to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Term {
    latent: VariableId,
    entrance: Option<(FactorId, VariableId)>,
}

/// The terms of all latents, in their order.
fn terms(tree: &FactorTree, root: VariableId) -> Vec<Term> {
    let rooted = Rooted::at(tree, root);
    let latents = tree.latents().iter();
    latents
        .map(|&latent| Term {
            latent,
            entrance: rooted.entrance[latent.index()]
                .map(|factor| (factor, rooted.head[factor.index()])),
        })
        .collect()
}

/// The variables of a factor that are taken before one of its outer latents, with the factor's own root in front: outer latents are taken
/// in the order of the factor, observations are never.
fn taken(
    tree: &FactorTree,
    factor: FactorId,
    head: VariableId,
    latent: VariableId,
) -> impl Iterator<Item = VariableId> {
    let members = tree.variables_of(factor).iter().copied();
    let before = members.take_while(move |&member| member != latent);
    let outer = before.filter(move |&member| member != head && tree.is_latent(member));
    std::iter::once(head).chain(outer)
}

/// Whether anything of a factor is left for an outer latent when the variables before it are taken.
fn remaining(tree: &FactorTree, factor: FactorId, head: VariableId, latent: VariableId) -> bool {
    let gone = 1 + taken(tree, factor, head, latent).count();
    tree.variables_of(factor).len() > gone
}

/// For every observation whether it lies behind the variables that are taken.
fn absent(tree: &FactorTree, factor: FactorId, head: VariableId, latent: VariableId) -> Vec<bool> {
    let mut behind = vec![false; tree.variable_count()];
    for variable in taken(tree, factor, head, latent) {
        let groups = tree.partition(variable);
        let factors = tree.factors_of(variable).iter();
        for (_, group) in factors.zip(groups).filter(|(f, _)| **f != factor) {
            group.iter().for_each(|o| behind[o.index()] = true);
        }
    }
    let observations = tree.observations().iter();
    observations.map(|o| behind[o.index()]).collect()
}
