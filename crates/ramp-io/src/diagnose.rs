//! Which change of a run's tree would explain more of rows that were not learned from: what modification indices are to structural
//! equations, in nats.

use crate::change::{Effort, Surroundings, split_candidates};
use crate::compare::paired;
use crate::report::{ChangeGain, with_changes};
use crate::run::{Project, Run, RunError, RunFolder};
use crate::{Error, Result};
use ramp::data::Gather;
use ramp::graph::{Change, FactorTree, VariableId};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Changes over more latents than these are not tried: the region would be most of the tree.
const REACH: usize = 4;
/// Splits that are tried of each latent.
const SPLITS: usize = 4;
/// Fewer rows than these say nothing.
const FEWEST: usize = 20;

/// What every change of a tree that was tried gains.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// How many rows judged.
    pub rows: usize,
    /// The changes, the greatest gain first.
    pub changes: Vec<TriedChange>,
}

/// What one change gains.
#[derive(Clone, Debug)]
pub struct TriedChange {
    /// The change.
    pub change: Change,
    /// The same in words.
    pub sentence: String,
    /// The tree after it.
    pub tree: FactorTree,
    /// Nats a row that it explains more.
    pub gain: f64,
    /// The standard error of that, rows paired.
    pub standard_error: f64,
    /// The chance of such a gain, or a greater one, if the change gained nothing, corrected for how many were tried (Holm).
    pub p_value: f64,
}

impl TriedChange {
    /// Whether chance does not explain it.
    pub fn is_clear(&self) -> bool {
        self.gain > 0.0 && self.p_value < 0.05
    }
}

impl Diagnosis {
    /// Tries every change of a trained project's tree on its held-out rows. `progress` hears how many fits are done, of how many, and says whether to
    /// stop; `None` where it did.
    pub fn of(
        project: &Project,
        effort: Effort,
        progress: &(dyn Fn(usize, usize) -> bool + Sync),
    ) -> Result<Option<Self>> {
        let tree = project.model.tree();
        if project.held_out.len() < FEWEST {
            return Err(RunError::TooFewHeldOut {
                rows: project.held_out.len(),
            }
            .into());
        }
        if tree.time_axis().is_some() {
            return Err(RunError::NoChangesOfChains.into());
        }
        let rows = [
            &project.training[..],
            &project.validation,
            &project.held_out,
        ];
        let around = Surroundings::new(
            &project.model,
            project.data.here(),
            rows,
            &project.train,
            effort,
        )?
        .linear(project.is_linear());
        let mut changes = tree.changes(REACH)?;
        for &latent in tree.latents() {
            changes.extend(split_candidates(&around, latent, SPLITS)?);
        }
        let tried = gains(tree, &around, changes, progress)?;
        Ok(tried.map(|changes| Diagnosis {
            rows: around.judged(),
            changes,
        }))
    }

    /// What the report lists.
    pub fn listed(&self) -> Result<Vec<ChangeGain>> {
        let changes = self.changes.iter();
        changes
            .map(|change| {
                Ok(ChangeGain {
                    sentence: change.sentence.clone(),
                    gain: change.gain,
                    standard_error: change.standard_error,
                    p_value: change.p_value,
                    newick: change.tree.to_newick()?,
                })
            })
            .collect()
    }

    /// Lists the changes in the report of the run that they are of; whether it had room for them.
    pub fn report(&self, run: &Run, folder: &Path) -> Result<bool> {
        let path = run.report()?;
        let page = std::fs::read_to_string(&path).map_err(|source| Error::File {
            action: "read",
            path,
            source,
        })?;
        let Some(page) = with_changes(&page, &self.listed()?) else {
            return Ok(false);
        };
        RunFolder::claim_finished(folder)?.replace_report(&page)?;
        Ok(true)
    }
}

/// Tries changes of a model's tree, the greatest gain first; `None` where `progress` said to stop.
pub(crate) fn gains(
    tree: &FactorTree,
    around: &Surroundings<'_>,
    changes: Vec<Change>,
    progress: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Result<Option<Vec<TriedChange>>> {
    let region = |change: &Change| around.region(change);
    let regions: BTreeSet<BTreeSet<VariableId>> = changes.iter().map(region).collect();
    let regions: Vec<BTreeSet<VariableId>> = regions.into_iter().collect();
    let (done, all) = (AtomicUsize::new(0), regions.len() + changes.len());
    let wished = AtomicBool::new(false);
    let stopped = || wished.load(Ordering::Relaxed);
    let step = |more: usize| {
        let done = done.fetch_add(more, Ordering::Relaxed) + more;
        if progress(done, all) {
            wished.store(true, Ordering::Relaxed);
        }
    };
    let ask = || {
        step(0);
        stopped()
    };
    let fit = |tree: &FactorTree, latents: &[VariableId]| -> Result<Option<Vec<f64>>> {
        if stopped() {
            return Ok(None);
        }
        let explained = around.explained(tree, latents, &ask)?;
        step(1);
        Ok(explained)
    };
    // As it is, with as much training as the changes get: what more training alone gains is no gain of theirs.
    let before = regions
        .par_iter()
        .map(|region| {
            let latents: Vec<VariableId> = region.iter().copied().collect();
            Ok(fit(tree, &latents)?.map(|explained| (region.clone(), explained)))
        })
        .collect::<Result<Option<HashMap<_, _>>>>()?;
    let Some(before) = before else {
        return Ok(None);
    };
    let tried = changes
        .into_par_iter()
        .map(|change| {
            let changed = tree.changed(&change)?;
            let known = region(&change);
            let mut latents: Vec<VariableId> = known
                .iter()
                .filter_map(|&l| changed.find(tree.name(l)).ok())
                .collect();
            if let Change::Split { name, .. } = &change {
                latents.push(changed.find(name)?);
            }
            let Some(explained) = fit(&changed, &latents)? else {
                return Ok(None);
            };
            let (gain, standard_error) = paired(&explained, &before[&known]);
            Ok(Some(TriedChange {
                sentence: change.sentence(tree),
                change,
                tree: changed,
                gain,
                standard_error,
                p_value: normal_tail(gain / standard_error.max(1e-12)),
            }))
        })
        .collect::<Result<Option<Vec<_>>>>()?;
    let Some(mut tried) = tried else {
        return Ok(None);
    };
    correct(&mut tried);
    tried.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    Ok(Some(tried))
}

/// Holm's correction for as many tests as there are.
fn correct(tried: &mut [TriedChange]) {
    tried.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
    let count = tried.len();
    let mut least: f64 = 0.0;
    for (i, one) in tried.iter_mut().enumerate() {
        least = least.max((one.p_value * (count - i) as f64).min(1.0));
        one.p_value = least;
    }
}

/// The chance that a standard normal exceeds `z` (Numerical Recipes' rational approximation of erfc, to 1.2e-7 of its value).
pub(crate) fn normal_tail(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let series = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let power = series.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let tail = 0.5 * t * (power - x * x).exp();
    if z >= 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_table() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.158_655),
            (1.96, 0.024_998),
            (4.0, 3.167e-5),
            (-1.0, 0.841_345),
        ] {
            assert!(
                (normal_tail(z) / p - 1.0).abs() < 1e-3,
                "{z}: {}",
                normal_tail(z)
            );
        }
    }
}
