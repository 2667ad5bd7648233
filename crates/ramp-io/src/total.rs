//! How much a whole tree explains of samples that were not learned from, in nats a sample against independent columns: the same scale
//! for every tree, family and dimension.

use crate::Result;
use crate::run::{Project, SUPPORT_NUMBERS};
use ramp::graph::VariableId;
use ramp::infer::{SupportSet, Total};

/// Training samples that stand for the mixture. Fewer lift the mean where samples are rare among them.
const SUPPORT: usize = 4000;
/// Samples that are scored.
const SCORED: usize = 4000;
/// Trees of more latents are looked at from one root.
const MOST_ROOTS: usize = 60;

/// How much a whole tree explains.
#[derive(Clone, Debug)]
pub struct TreeTotal {
    /// Nats a sample, from the tree's own root.
    pub mean: f64,
    /// The standard error of that.
    pub standard_error: f64,
    /// How many samples were scored.
    pub rows: usize,
    /// What each latent adds, by name, as seen from the tree's root; empty for chains.
    pub latents: Vec<(String, f64)>,
    /// The least and the most from any root; `None` where there is one root, or too many.
    pub roots: Option<(f64, f64)>,
    /// Whether samples are sequences.
    pub chain: bool,
    /// Into how many parts the samples of a small set were divided, each judged by a fit to the others; 0 where samples were held out.
    pub folds: usize,
}

impl TreeTotal {
    /// Looks at a trained project; `None` where no samples were held out.
    pub fn of(project: &Project) -> Result<Option<Self>> {
        let chain = project.encoder.chain;
        let tree = project.model.tree();
        if let Some(found) = &project.cross_validation {
            let latents = tree.latents().iter().zip(&found.adds);
            return Ok(Some(TreeTotal {
                mean: found.total.0,
                standard_error: found.total.1,
                rows: found.rows,
                latents: latents
                    .map(|(&v, &nats)| (tree.name(v).to_owned(), nats))
                    .collect(),
                roots: None,
                chain,
                folds: found.folds,
            }));
        }
        if project.held_out.is_empty() {
            return Ok(None);
        }
        let mut roots = vec![tree.root()];
        if !chain && tree.latents().len() <= MOST_ROOTS {
            roots.extend(tree.latents().iter().filter(|&&l| l != tree.root()));
        }
        let rows = some(&project.held_out, most(project, SCORED));
        let totals = totals(project, &rows, &roots)?;
        let means: Vec<f64> = totals.iter().map(Total::mean).collect();
        let latents = tree.latents().iter().zip(totals[0].means());
        Ok(Some(TreeTotal {
            mean: means[0],
            standard_error: totals[0].standard_error(),
            rows: rows.len(),
            latents: match chain {
                true => vec![],
                false => latents
                    .map(|(&v, nats)| (tree.name(v).to_owned(), nats))
                    .collect(),
            },
            roots: (means.len() > 1).then(|| {
                let least = means.iter().copied().fold(f64::INFINITY, f64::min);
                (
                    least,
                    means.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                )
            }),
            chain,
            folds: 0,
        }))
    }

    /// The finding in words.
    pub fn sentence(&self) -> String {
        let what = if self.chain { "sequence" } else { "row" };
        let roots = match self.roots {
            Some((least, most)) => format!("; from any root {least:.3} to {most:.3}"),
            None => String::new(),
        };
        let rows = match self.folds {
            0 => format!("on {} held-out {what}s", self.rows),
            folds => format!(
                "on {} {what}s, each judged by one of {folds} fits that did not learn from it",
                self.rows
            ),
        };
        format!(
            "in all {:.3} ± {:.3} nats a {what} more than independent columns, {rows}{roots}",
            self.mean, self.standard_error
        )
    }
}

/// The totals of some samples of a project from each of some roots, beside its training samples.
pub(crate) fn totals(
    project: &Project,
    rows: &[u32],
    roots: &[VariableId],
) -> ramp::Result<Vec<Total>> {
    let model = &project.model;
    let support = project.observed(&some(&project.training, most(project, SUPPORT)))?;
    let support = SupportSet::new(model, &support, project.training.len())?;
    model.totals(&support, &project.observed(rows)?, roots)
}

/// How many samples there is time and memory for.
pub(crate) fn most(project: &Project, most: usize) -> usize {
    let observations = project.encoder.observations.iter();
    let width: usize = observations.map(|o| o.encoding.features()).sum();
    let steps = project.steps().1.max(1);
    let fit = SUPPORT_NUMBERS / (width * steps).max(1);
    (most / steps).max(200).min(fit.max(50))
}

/// At most so many of some samples, evenly spread.
pub(crate) fn some(samples: &[u32], most: usize) -> Vec<u32> {
    let stride = samples.len().div_ceil(most.max(1)).max(1);
    samples.iter().copied().step_by(stride).collect()
}
