//! Changes by the yardstick: the whole tree is fitted, changes are tried around it, those that gain more than their error are made, and
//! again.

use super::{GrowError, GrowSettings, Progress, model_file};
use crate::change::{Surroundings, split_candidates};
use crate::diagnose::{TriedChange, gains};
use crate::run::Project;
use crate::total::TreeTotal;
use crate::{Origin, Result};
use ramp::data::Gather;
use ramp::graph::{Change, FactorTree, VariableId};
use ramp::model::Model;
use ramp::storage::write_atomically;
use ramp::train::{Control, Event, TrainError, Trainer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A change is made if it gains this many of its standard errors.
const ERRORS: f64 = 2.0;
/// And this much, in nats a row.
const LEAST: f64 = 0.002;
/// Latents that an observation is tried on: the nearest.
const NEAREST: usize = 3;
/// Splits of a latent that are tried.
const SPLITS: usize = 3;
/// Latents that a move may cross.
const REACH: usize = 4;

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// In which round, from 1.
    pub round: usize,
    /// What was done, in words.
    pub sentence: String,
    /// Nats a row that it gained.
    pub gain: f64,
    /// The standard error of that.
    pub standard_error: f64,
}

/// Where a growth stands, to go on from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What it belongs to.
    pub key: String,
    /// The tree so far.
    pub newick: String,
    /// Rounds that are done.
    pub rounds: usize,
    /// What was changed so far.
    pub accepted: Vec<Accepted>,
}

impl State {
    /// Reads what was kept.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| GrowError::NoState {
            path: path.into(),
            source,
        })?;
        Ok(
            serde_json::from_str(&text).map_err(|source| GrowError::DamagedState {
                path: path.into(),
                source,
            })?,
        )
    }

    /// Keeps it in a file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).unwrap_or_default();
        Ok(write_atomically(path, text.as_bytes())?)
    }
}

/// A tree, what was changed on the way to it, and what it explains.
pub(super) type Found = (FactorTree, Vec<Accepted>, Option<TreeTotal>);

pub(super) struct Search<'a> {
    pub origin: &'a Origin,
    pub settings: &'a GrowSettings,
    pub key: String,
    /// Divisions that must stay.
    pub kept: Vec<Vec<String>>,
    /// Distances between columns.
    pub near: BTreeMap<(String, String), f64>,
    pub save: &'a mut dyn FnMut(&State) -> Result<()>,
    pub progress: &'a (dyn Fn(Progress) -> bool + Sync),
}

impl Search<'_> {
    /// Changes a tree until nothing gains more than its error; `None` where the wish to stop came first.
    pub fn run(self, resume: Option<State>, first: FactorTree) -> Result<Option<Found>> {
        let mut state = match resume {
            Some(state) => state,
            None => State {
                key: self.key.clone(),
                newick: first.to_newick()?,
                rounds: 0,
                accepted: vec![],
            },
        };
        let mut before: Option<Project> = None;
        loop {
            (self.save)(&state)?;
            let round = state.rounds + 1;
            let tree = FactorTree::from_newick(&state.newick)?;
            let file = model_file(&tree, self.settings.seed)?;
            let mut project = self.origin.prepare(file)?;
            if !self.fit(&mut project, round, before.as_ref())? {
                return Ok(None);
            }
            let last = state.rounds >= self.settings.rounds;
            let made = match last {
                true => vec![],
                false => match self.round(&project, round)? {
                    None => return Ok(None),
                    Some(made) => made,
                },
            };
            if made.is_empty() {
                project.align_signs()?;
                let total = TreeTotal::of(&project)?;
                return Ok(Some((tree, state.accepted, total)));
            }
            let mut tree = tree;
            for change in made {
                // Changes of one round lie apart, so each finds its variables by name in the tree that the others left.
                let Some(next) = translated(&change, project.model.tree(), &tree)
                    .and_then(|change| tree.changed(&change).ok())
                else {
                    continue;
                };
                tree = next;
                state.accepted.push(Accepted {
                    round,
                    sentence: change.sentence,
                    gain: change.gain,
                    standard_error: change.standard_error,
                });
            }
            state.newick = tree.to_newick()?;
            state.rounds += 1;
            before = Some(project);
        }
    }

    /// Fits the whole tree as `ramp fit` does, or goes on from the round before; whether it came to an end.
    fn fit(&self, project: &mut Project, round: usize, before: Option<&Project>) -> Result<bool> {
        let start = match before {
            // What was a linear factor model before a change of its tree is one after it.
            Some(before) if before.is_linear() && project.init_factors()? => {
                project.beyond_linear = before.beyond_linear;
                return Ok(true);
            }
            Some(before) => {
                carry_over(&before.model, &mut project.model);
                None
            }
            None => project
                .init_factors()?
                .then(|| project.model.parameters().to_vec()),
        };
        let all = match before {
            Some(_) => self.settings.iterations / 2,
            None => self.settings.iterations,
        };
        let mut spec = project.train.clone().lasting(all.max(20));
        spec.seed = self.settings.seed;
        let progress = self.progress;
        let fitted = Trainer::new(spec)?
            .observer(|event: &Event<'_>| match event {
                Event::Step { record, .. } => {
                    let done = record.iteration;
                    match progress(Progress::Fit { round, done, all }) {
                        true => Control::Stop,
                        false => Control::Continue,
                    }
                }
                _ => Control::Continue,
            })
            .fit(&mut project.model, &project.data);
        match fitted {
            Ok(_) => {}
            Err(ramp::Error::Train(TrainError::Interrupted { .. })) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if let Some(start) = start {
            project.judge_beyond_linear(&start)?;
        }
        Ok(true)
    }

    /// The changes to make in a round: those that gain, as far as they lie apart.
    fn round(&self, project: &Project, round: usize) -> Result<Option<Vec<TriedChange>>> {
        let tree = project.model.tree();
        // A part of the rows that are not learned from chooses weights, the rest judges.
        let chosen: Vec<u32> = project.validation.iter().copied().step_by(3).collect();
        let judged = project.validation.iter().copied();
        let judged: Vec<u32> = judged
            .filter(|n| chosen.binary_search(n).is_err())
            .collect();
        let around = Surroundings::new(
            &project.model,
            project.data.here(),
            [&project.training, &chosen, &judged],
            &project.train,
            self.settings.effort.clone(),
        )?
        .linear(project.is_linear());
        let mut changes = tree.changes(REACH)?;
        for &latent in tree.latents() {
            changes.extend(split_candidates(&around, latent, SPLITS)?);
        }
        changes.retain(|change| {
            let keeps = || {
                let splits = tree.changed(change).map(|t| t.splits());
                splits
                    .is_ok_and(|splits| self.kept.iter().all(|k| k.len() < 2 || splits.contains(k)))
            };
            self.is_near(tree, change) && keeps()
        });
        if changes.is_empty() {
            return Ok(Some(vec![]));
        }
        let progress = |done, all| (self.progress)(Progress::Changes { round, done, all });
        let Some(tried) = gains(tree, &around, changes, &progress)? else {
            return Ok(None);
        };
        let mut touched: BTreeSet<VariableId> = BTreeSet::new();
        let mut made = vec![];
        for change in tried {
            let clear = change.gain > LEAST && change.gain > ERRORS * change.standard_error;
            let region = change.change.region(tree);
            if clear && region.iter().all(|latent| !touched.contains(latent)) {
                // Neighbours too: what is fitted beside a change has not seen it.
                touched.extend(region.iter().flat_map(|&l| tree.neighbours(l)));
                touched.extend(region);
                made.push(change);
            }
        }
        Ok(Some(made))
    }

    /// Whether an observation that moves goes to one of the latents that are nearest to it.
    fn is_near(&self, tree: &FactorTree, change: &Change) -> bool {
        let Change::Move { observation, to } = change else {
            return true;
        };
        let own = tree.name(*observation);
        let far = |latent: VariableId| -> f64 {
            let nearest = tree
                .partition(latent)
                .into_iter()
                .filter_map(|group| {
                    let others = group.iter().filter(|&&o| o != *observation);
                    let far =
                        others.map(|&o| self.near[&(own.to_owned(), tree.name(o).to_owned())]);
                    far.min_by(f64::total_cmp)
                })
                .collect::<Vec<f64>>();
            let mut nearest = nearest;
            nearest.sort_by(f64::total_cmp);
            // The two nearest branches: one alone may be a neighbour by chance.
            nearest.iter().take(2).sum()
        };
        let from = tree.latent_of(*observation);
        let others = tree.latents().iter().filter(|&&l| Some(l) != from);
        let reach = far(*to);
        others.filter(|&&l| far(l) < reach).count() < NEAREST
    }
}

/// A change of one tree as a change of another that has the same variables around it.
fn translated(change: &TriedChange, from: &FactorTree, to: &FactorTree) -> Option<Change> {
    let find = |variable: VariableId| to.find(from.name(variable)).ok();
    Some(match &change.change {
        Change::Move { observation, to } => Change::Move {
            observation: find(*observation)?,
            to: find(*to)?,
        },
        Change::Merge { kept, gone } => Change::Merge {
            kept: find(*kept)?,
            gone: find(*gone)?,
        },
        Change::Split {
            latent,
            branches,
            name,
        } => Change::Split {
            latent: find(*latent)?,
            branches: branches.iter().map(|&b| find(b)).collect::<Option<_>>()?,
            name: name.clone(),
        },
        Change::Interchange(step) => {
            let factor = |f: ramp::graph::FactorId| {
                let ends: Option<Vec<VariableId>> =
                    from.variables_of(f).iter().map(|&v| find(v)).collect();
                let ends = ends?;
                to.factors()
                    .find(|&f| to.variables_of(f).iter().all(|v| ends.contains(v)))
            };
            Change::Interchange(ramp::graph::Interchange {
                across: factor(step.across)?,
                first: factor(step.first)?,
                second: factor(step.second)?,
            })
        }
    })
}

/// Networks of messages that both models have begin where they were.
fn carry_over(before: &Model, after: &mut Model) {
    let known: BTreeMap<String, std::ops::Range<usize>> = before
        .named_parameters()
        .into_iter()
        .map(|(name, _, span)| (name, span))
        .collect();
    for (name, _, span) in after.named_parameters() {
        if let Some(old) = known.get(&name)
            && old.len() == span.len()
        {
            after.parameters_mut()[span].copy_from_slice(&before.parameters()[old.clone()]);
        }
    }
}
