//! Which of some runs explains more of rows that none of them learned from: trees, families and dimensions on one scale.

use crate::run::{Project, Run, RunError};
use crate::table::{Column, columns};
use crate::total::totals;
use crate::{Error, Result};
use ramp::data::Gather;
use ramp::graph::VariableId;
use ramp::infer::Total;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Fewer rows than these say nothing.
const FEWEST: usize = 20;

/// Some runs over the same rows.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// How many rows all runs have held out.
    pub rows: usize,
    /// Whether they are sequences.
    pub chain: bool,
    /// The runs, in the order in which they were given.
    pub runs: Vec<ComparedRun>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    /// Its folder.
    pub folder: PathBuf,
    /// How many latents its tree has; of a chain, one.
    pub latents: usize,
    /// Nats a row more than independent columns.
    pub mean: f64,
    /// The standard error of that.
    pub standard_error: f64,
    /// How it differs from the first run; `None` for that itself.
    pub difference: Option<Difference>,
}

/// How one run differs from another, row by row.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Nats a row more than the other.
    pub mean: f64,
    /// The standard error of that: rows are paired, so it is far smaller than that of either.
    pub standard_error: f64,
    /// The same of every latent that divides the columns as one of the other tree does: its name here, the mean and its standard error.
    pub latents: Vec<(String, f64, f64)>,
}

impl Difference {
    /// Whether it is more than chance: more than two standard errors.
    pub fn is_clear(&self) -> bool {
        self.mean.abs() > 2.0 * self.standard_error
    }
}

impl Comparison {
    /// Compares runs with the first of them.
    pub fn of(folders: &[PathBuf], data: Option<&Path>) -> Result<Self> {
        let projects = folders
            .iter()
            .map(|folder| {
                let run = Run::open(folder)?;
                Project::reopen(&run, folder, data.map(Path::to_path_buf))
            })
            .collect::<Result<Vec<_>>>()?;
        Self::of_projects(folders, &projects)
    }

    /// Compares trained projects, each with what it is called, with the first of them: two at least.
    pub fn of_projects(folders: &[PathBuf], projects: &[Project]) -> Result<Self> {
        for (other, folder) in projects.iter().zip(folders).skip(1) {
            same_data(&projects[0], &folders[0], other, folder)?;
        }
        let mut shared: BTreeSet<u32> = projects[0].held_out.iter().copied().collect();
        for project in &projects[1..] {
            shared = project
                .held_out
                .iter()
                .copied()
                .filter(|n| shared.contains(n))
                .collect();
        }
        let rows: Vec<u32> = shared.into_iter().collect();
        if rows.len() < FEWEST {
            return Err(RunError::NoSharedRows { shared: rows.len() }.into());
        }
        let chain = projects[0].encoder.chain;
        let mut runs = vec![];
        let mut first: Option<Total> = None;
        for (project, folder) in projects.iter().zip(folders) {
            let tree = project.model.tree();
            let alike = match chain {
                true => vec![],
                false => alike(&projects[0], project)?,
            };
            // Both are seen from the same latent, where they have one in common.
            let root = projects[0].model.tree().root();
            let root = match &first {
                None => root,
                Some(_) => alike
                    .iter()
                    .find(|(theirs, _)| *theirs == root)
                    .map_or(tree.root(), |(_, own)| *own),
            };
            let total = totals(project, &rows, &[root])?.remove(0);
            let difference = first.as_ref().map(|first| {
                let (mean, standard_error) = paired(&total.samples(), &first.samples());
                let place = |tree: &ramp::graph::FactorTree, latent: VariableId| {
                    tree.latents().iter().position(|&l| l == latent)
                };
                let latents = alike.iter().filter_map(|&(theirs, own)| {
                    let (a, b) = (place(tree, own)?, place(projects[0].model.tree(), theirs)?);
                    let (mean, error) = paired(total.latent(a), first.latent(b));
                    Some((tree.name(own).to_owned(), mean, error))
                });
                Difference {
                    mean,
                    standard_error,
                    latents: latents.collect(),
                }
            });
            runs.push(ComparedRun {
                folder: folder.clone(),
                latents: if chain { 1 } else { tree.latents().len() },
                mean: total.mean(),
                standard_error: total.standard_error(),
                difference,
            });
            if first.is_none() {
                first = Some(total);
            }
        }
        Ok(Comparison {
            rows: rows.len(),
            chain,
            runs,
        })
    }

    /// The finding of every run but the first, in words.
    pub fn sentences(&self) -> Vec<String> {
        let first = name(&self.runs[0].folder);
        let what = if self.chain { "sequence" } else { "row" };
        let others = self
            .runs
            .iter()
            .filter_map(|run| Some((run, run.difference.as_ref()?)));
        others
            .map(|(run, difference)| {
                let own = name(&run.folder);
                let (nats, error) = (difference.mean, difference.standard_error);
                if !difference.is_clear() {
                    return format!(
                        "{own} and {first} explain as much as far as {} {what}s can tell ({nats:+.3} ± {error:.3} nats per {what})",
                        self.rows
                    );
                }
                let more = if nats > 0.0 { "more" } else { "less" };
                // Where half of it comes from, if there is such a latent.
                let under = difference
                    .latents
                    .iter()
                    .filter(|(_, mean, _)| mean / nats > 0.5)
                    .max_by(|a, b| (a.1 / nats).total_cmp(&(b.1 / nats)))
                    .map_or(String::new(), |(name, ..)| format!(", mostly under {name}"));
                format!(
                    "{own} explains {:.3} ± {error:.3} nats {more} per {what} than {first}{under}",
                    nats.abs()
                )
            })
            .collect()
    }
}

/// What a run is called in a sentence: its folder's name.
fn name(folder: &Path) -> String {
    let last = folder.file_name();
    last.map_or_else(
        || folder.display().to_string(),
        |n| n.to_string_lossy().into_owned(),
    )
}

/// The mean of paired differences and its standard error.
pub(crate) fn paired(a: &[f64], b: &[f64]) -> (f64, f64) {
    let count = a.len() as f64;
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

/// The latents of two trees that divide the observations in the same way.
fn alike(one: &Project, other: &Project) -> Result<Vec<(VariableId, VariableId)>> {
    let (one, other) = (one.model.tree(), other.model.tree());
    let matches = one.matches(other).map_err(Error::from)?;
    let pairs = one.latents().iter().zip(matches);
    Ok(pairs
        .filter(|(_, found)| found.mismatch == 0)
        .filter(|(own, found)| one.factors_of(**own).len() == other.factors_of(found.latent).len())
        .map(|(&own, found)| (own, found.latent))
        .collect())
}

/// Whether two runs have the same rows and observe the same columns of them.
fn same_data(one: &Project, folder: &Path, other: &Project, other_folder: &Path) -> Result<()> {
    let names = |project: &Project| -> BTreeSet<String> {
        project
            .encoder
            .columns()
            .iter()
            .map(|c| c.to_string())
            .collect()
    };
    let (ours, theirs) = (names(one), names(other));
    let sides = [
        (&ours, &theirs, folder, other_folder),
        (&theirs, &ours, other_folder, folder),
    ];
    for (have, lack, with, without) in sides {
        if let Some(name) = have.iter().find(|name| !lack.contains(*name)) {
            return Err(RunError::OtherColumns {
                name: name.clone(),
                with: with.into(),
                without: without.into(),
            }
            .into());
        }
    }
    let differ = |what: String| {
        Err(RunError::OtherRows {
            one: folder.into(),
            other: other_folder.into(),
            what,
        }
        .into())
    };
    let (a, b) = (one.samples.len(), other.samples.len());
    if a != b || one.encoder.chain != other.encoder.chain {
        let what = if one.encoder.chain {
            "sequences or windows"
        } else {
            "rows"
        };
        return differ(format!("{a} and {b} {what}"));
    }
    match (one.samples.table(), other.samples.table()) {
        (Some(ours), Some(theirs)) => {
            for column in columns(ours) {
                let same = |other: Column<'_>| {
                    other.name() == column.name() && other.cells == column.cells
                };
                if ours_only(one, column.name()) && !columns(theirs).any(same) {
                    return differ(format!("column `{}` is not the same", column.name()));
                }
            }
            Ok(())
        }
        _ if one.data.fingerprint() == other.data.fingerprint() => Ok(()),
        _ => differ("the arrays are not the same".into()),
    }
}

/// Whether a column is observed, and so must be the same in both.
fn ours_only(project: &Project, name: &str) -> bool {
    project.encoder.columns().iter().any(|c| *c == name)
}
