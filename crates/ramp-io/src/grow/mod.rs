//! A tree from data: joined by distances that gaps and monotone distortions do not disturb, short edges contracted, then changed as
//! long as a change explains more of rows that were not learned from.

mod association;
mod drawing;
mod joining;
mod moments;
mod naming;
mod search;
mod sketch;
mod start;
#[cfg(test)]
mod tests;

pub use association::{Associations, ColumnScores};
pub use drawing::drawing;
pub use joining::neighbour_joining;
pub use search::{Accepted, State};
pub use sketch::{Sketch, Split};
pub use start::Start;

use crate::change::Effort;
use crate::encode::Encoding;
use crate::model_file::{ModelFile, TreeSettings};
use crate::run::Project;
use crate::table::{Use, summarize};
use crate::total::{TreeTotal, some};
use crate::{Error, Origin, Result};
use ramp::data::Gather;
use ramp::graph::FactorTree;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rows that distances are taken from, at most.
const MOST_ROWS: usize = 20_000;
/// The part of rows that chooses weights and judges changes. Those that judge the tree that comes out are others.
const VALIDATION: f64 = 0.3;

/// Why no tree can be grown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrowError {
    /// Too few columns for a tree.
    #[error("`{}` has {columns} columns that can be observed; a tree is grown from four and more", path.display())]
    TooFewColumns {
        /// The data.
        path: PathBuf,
        /// How many.
        columns: usize,
    },
    /// The known part names what the data lack.
    #[error("the tree to keep names `{name}`, which is no column of `{}` that can be observed: {}", path.display(), ramp::names::hint(name, known.iter().map(|k| &k[..])))]
    UnknownColumn {
        /// The name.
        name: String,
        /// The data.
        path: PathBuf,
        /// The columns that there are.
        known: Vec<String>,
    },
    /// The known part is no tree.
    #[error(
        "what to keep is not a tree in Newick's notation such as \"((q1,q2)calm,(q3,q4)kind);\": {source}"
    )]
    Keep {
        /// What is wrong.
        source: ramp::graph::GraphError,
    },
    /// There is no state to go on from.
    #[error("there is nothing to go on from: `{}` cannot be read ({source}); begin anew without resuming", path.display())]
    NoState {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The state to go on from is not as it was written.
    #[error("`{}` is damaged ({source}); take it away, or begin anew without resuming", path.display())]
    DamagedState {
        /// The file.
        path: PathBuf,
        /// Where.
        source: serde_json::Error,
    },
    /// What was left of an earlier growth does not belong here.
    #[error("what there is to go on from is not of `{}`, of this seed and of this tree to keep; begin anew without resuming", path.display())]
    OtherState {
        /// The data.
        path: PathBuf,
    },
}

/// How a tree is grown.
#[derive(Clone, Debug)]
pub struct GrowSettings {
    /// Parts that are known, in Newick's notation: every group with a name stays.
    pub keep: Option<String>,
    /// Trees of the bootstrap.
    pub bootstraps: usize,
    /// Rounds of changes by the yardstick, at most; none leaves the tree of distances.
    pub rounds: usize,
    /// Steps of the fit of the whole tree in each round.
    pub iterations: usize,
    /// What a trial of a change costs.
    pub effort: Effort,
    /// The seed of everything.
    pub seed: u64,
}

impl Default for GrowSettings {
    fn default() -> Self {
        GrowSettings {
            keep: None,
            bootstraps: 100,
            rounds: 5,
            iterations: 400,
            // Many more changes than in a diagnosis, and what is made is fitted whole in the next round: a quarter of the cost is enough.
            effort: Effort {
                around: 0,
                anew: false,
                iterations: 150,
                learning_rate: 0.02,
                ..Effort::default()
            },
            seed: 0,
        }
    }
}

/// How far a growth has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Trees of the bootstrap.
    Bootstrap {
        /// Done.
        done: usize,
        /// Of so many.
        all: usize,
    },
    /// Steps of a fit of the whole tree.
    Fit {
        /// The round, from 1.
        round: usize,
        /// Done.
        done: usize,
        /// Of so many.
        all: usize,
    },
    /// Changes that were tried.
    Changes {
        /// The round, from 1.
        round: usize,
        /// Done.
        done: usize,
        /// Of so many.
        all: usize,
    },
}

impl Progress {
    /// What is being done, in words.
    pub fn stage(&self) -> String {
        match self {
            Progress::Bootstrap { .. } => "joining".into(),
            Progress::Fit { round, .. } => format!("round {round}: fitting the tree"),
            Progress::Changes { round, .. } => format!("round {round}: trying changes"),
        }
    }

    /// How much of it is done, and of how much.
    pub fn share(&self) -> (usize, usize) {
        match *self {
            Progress::Bootstrap { done, all }
            | Progress::Fit { done, all, .. }
            | Progress::Changes { done, all, .. } => (done, all),
        }
    }
}

/// A tree that was grown.
#[derive(Clone, Debug)]
pub struct Grown {
    /// The tree; its latents are named after their items.
    pub tree: FactorTree,
    /// The tree of distances that the search began with.
    pub start: FactorTree,
    /// For every latent but the root, in which part of the bootstrap's trees its edge towards the root is.
    pub support: BTreeMap<String, f64>,
    /// What was changed by the yardstick.
    pub accepted: Vec<Accepted>,
    /// What the last fit of the tree explains of rows that had no part in any of it; `None` without rounds.
    pub total: Option<TreeTotal>,
    /// Columns that were left out, and why.
    pub left_out: Vec<(String, String)>,
}

impl Grown {
    /// The drawing, with supports in per cent.
    pub fn drawing(&self) -> String {
        drawing(&self.tree, &|v| {
            self.support.get(self.tree.name(v)).copied()
        })
    }
}

/// Grows a tree from a table. `progress` hears how far it is and says whether to stop; then the result is `None`, and `resume` with the state
/// that `save` was given last goes on from there.
pub fn grow(
    origin: &Origin,
    settings: &GrowSettings,
    resume: Option<State>,
    save: &mut dyn FnMut(&State) -> Result<()>,
    progress: &(dyn Fn(Progress) -> bool + Sync),
) -> Result<Option<Grown>> {
    let path = origin.name();
    let mut reader = origin.table()?;
    let summaries = summarize(reader.as_mut())?;
    let mut left_out = vec![];
    let mut columns = vec![];
    for summary in &summaries {
        match Use::of(summary) {
            Use::Observe(_) => columns.push(summary.name.clone()),
            Use::Leave(why) => left_out.push((summary.name.clone(), why)),
        }
    }
    if columns.len() < 4 {
        return Err(GrowError::TooFewColumns {
            path: path.into(),
            columns: columns.len(),
        }
        .into());
    }
    let taken: Vec<String> = summaries.iter().map(|s| s.name.clone()).collect();
    let groups = kept_groups(settings.keep.as_deref(), &columns, path)?;
    let clades: Vec<Split> = groups.iter().map(|(clade, _)| clade.clone()).collect();
    let star = Sketch::star(columns.len());
    let star = star.tree(&columns, &naming::names(&star, &columns, &taken))?;
    let project = origin.prepare(model_file(&star, settings.seed)?)?;
    let state_key = format!(
        "{:?}",
        (project.data.fingerprint(), &settings.keep, settings.seed)
    );
    if let Some(state) = &resume
        && state.key != state_key
    {
        return Err(GrowError::OtherState { path: path.into() }.into());
    }

    let scores = associations(&project);
    let bootstrap = |done| {
        progress(Progress::Bootstrap {
            done,
            all: settings.bootstraps,
        })
    };
    let Some(start) = Start::new(
        &scores,
        &clades,
        settings.bootstraps,
        settings.seed,
        &bootstrap,
    ) else {
        return Ok(None);
    };
    let named = |sketch: &Sketch| -> Result<FactorTree> {
        let mut names = naming::names(sketch, &columns, &taken);
        for (clade, name) in &groups {
            rename(sketch, &mut names, clade, name);
        }
        Ok(sketch.tree(&columns, &names)?)
    };
    let first = named(&start.sketch)?;
    let (tree, accepted, total) = if settings.rounds == 0 {
        (first.clone(), vec![], None)
    } else {
        let searched = search::Search {
            origin,
            settings,
            key: state_key,
            kept: groups
                .iter()
                .map(|(clade, _)| names_of(clade, &columns))
                .collect(),
            near: near(&start.distances, &columns),
            save,
            progress,
        };
        match searched.run(resume, first.clone())? {
            None => return Ok(None),
            Some(found) => found,
        }
    };
    let sketch = Sketch::of(&tree, &columns);
    let tree = named(&sketch)?;
    let sketch = Sketch::of(&tree, &columns);
    let mut support = BTreeMap::new();
    let rooted = ramp::graph::Rooted::new(&tree);
    for &latent in tree.latents() {
        let Some(factor) = rooted.entrance[latent.index()] else {
            continue;
        };
        let split = sketch.split(factor.index());
        support.insert(tree.name(latent).to_owned(), start.support(&split));
    }
    Ok(Some(Grown {
        start: first,
        tree,
        support,
        accepted,
        total,
        left_out,
    }))
}

/// A model file for a tree over the columns of a table.
pub(crate) fn model_file(tree: &FactorTree, seed: u64) -> Result<ModelFile> {
    let mut file = ModelFile {
        tree: TreeSettings::Newick(tree.to_newick()?),
        ..ModelFile::default()
    };
    file.data.validation = VALIDATION;
    file.train
        .insert("seed".into(), i64::try_from(seed).unwrap_or(0).into());
    Ok(file)
}

/// The columns of a project as scores, over the rows that may be learned from.
fn associations(project: &Project) -> Associations {
    let mut rows: Vec<u32> = [&project.training[..], &project.validation].concat();
    rows.sort_unstable();
    let data = project.data.here().select(&some(&rows, MOST_ROWS));
    let observations = project.encoder.observations.iter();
    let columns = observations.map(|encoded| {
        let found = data.observation(&encoded.name);
        let ordered = encoded.encoding.is_ordered();
        // Of levels without order all but the last: the last follows from the others.
        let width = match ordered {
            true => 1,
            false => encoded.encoding.features().saturating_sub(1).max(1),
        };
        let mut values = Vec::with_capacity(width * data.rows());
        for row in 0..data.rows() {
            match &found {
                Ok(column) if column.is_present(row) => {
                    let numbers = column.numbers(row);
                    match ordered {
                        true => values.push(Encoding::place(&numbers) as f32),
                        false => values.extend(&numbers[..width.min(numbers.len())]),
                    }
                }
                _ => values.extend(std::iter::repeat_n(f32::NAN, width)),
            }
        }
        ColumnScores { width, values }
    });
    Associations::new(columns.collect())
}

/// Distances by the names of columns.
fn near(distances: &[f64], columns: &[String]) -> BTreeMap<(String, String), f64> {
    let count = columns.len();
    let mut near = BTreeMap::new();
    for i in 0..count {
        for j in 0..count {
            near.insert(
                (columns[i].clone(), columns[j].clone()),
                distances[i * count + j],
            );
        }
    }
    near
}

/// The groups of `--keep`, each with its name; groups come before those that hold them.
fn kept_groups(
    keep: Option<&str>,
    columns: &[String],
    path: &Path,
) -> Result<Vec<(Vec<usize>, String)>> {
    let Some(text) = keep else {
        return Ok(vec![]);
    };
    let text = text.trim();
    let text = match text.ends_with(';') {
        true => text.to_owned(),
        false => format!("{text};"),
    };
    let tree = FactorTree::from_newick(&text).map_err(|source| GrowError::Keep { source })?;
    // A list of groups has no name behind its last bracket, and is itself no group.
    let list = text.trim_end_matches(';').trim_end().ends_with(')');
    let rooted = ramp::graph::Rooted::new(&tree);
    let mut groups = vec![];
    for &latent in rooted.order.iter().rev().filter(|&&v| tree.is_latent(v)) {
        if latent == tree.root() && list {
            continue;
        }
        let entrance = rooted.entrance[latent.index()];
        let factors = tree.factors_of(latent).iter().zip(tree.partition(latent));
        let behind = factors
            .filter(|(f, _)| Some(**f) != entrance)
            .flat_map(|(_, g)| g);
        let mut clade = vec![];
        for observation in behind {
            let name = tree.name(observation);
            let place = columns.iter().position(|c| c == name);
            clade.push(place.ok_or_else(|| {
                Error::from(GrowError::UnknownColumn {
                    name: name.into(),
                    path: path.into(),
                    known: columns.to_vec(),
                })
            })?);
        }
        clade.sort_unstable();
        groups.push((clade, tree.name(latent).to_owned()));
    }
    groups.sort_by_key(|(clade, _)| clade.len());
    Ok(groups)
}

/// The side of a division without the first name, as [`FactorTree::splits`] has it.
fn names_of(clade: &[usize], columns: &[String]) -> Vec<String> {
    let mut sorted: Vec<&String> = columns.iter().collect();
    sorted.sort_unstable();
    let mut side: Vec<String> = clade.iter().map(|&c| columns[c].clone()).collect();
    if side.contains(sorted[0]) {
        let other = (0..columns.len()).filter(|c| !clade.contains(c));
        side = other.map(|c| columns[c].clone()).collect();
    }
    side.sort_unstable();
    side
}

/// Gives the inner node above a kept group the group's name.
fn rename(sketch: &Sketch, names: &mut [(usize, String)], clade: &[usize], name: &str) {
    for (edge, &(a, b, _)) in sketch.edges.iter().enumerate() {
        for node in [a, b] {
            let mut behind: Vec<usize> = sketch
                .behind(node, edge)
                .into_iter()
                .map(|(c, _)| c)
                .collect();
            behind.sort_unstable();
            if behind == clade
                && let Some(found) = names.iter_mut().find(|(n, _)| *n == node)
            {
                found.1 = name.to_owned();
            }
        }
    }
}
