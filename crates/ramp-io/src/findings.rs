//! What was learned about each latent: how much it explains, the contribution of each neighbouring subtree, how sure it is.

use crate::Result;
use crate::answering_style::style_warning;
use crate::calibration::held_out_cells;
use crate::encode::Encoding;
use crate::items::{self, Item, items_of};
use crate::run::Project;
use crate::run::support_samples;
use crate::total::TreeTotal;
use ramp::data::Dataset;
use ramp::family::Belief;
use ramp::graph::{FactorTree, Place, TimeAxis};
use ramp::infer::{Calibration, Foresight, Scores, SupportSet};
use ramp::model::Model;

/// Samples that are scored for the findings; sequences count once for every step.
const SCORED: usize = 4000;
/// A posterior whose divergence from the prior is below this, in nats, says nothing.
const COLLAPSED: f64 = 0.05;
/// Beliefs of a chain that have less than this of what the steps around it add to the present observation are not a state. On the pendulum, the
/// double well and the bouncing ball, good fits have 0.78 or more.
const FOLDED: f64 = 0.75;

/// What was learned, latent by latent.
#[derive(Clone, Debug)]
pub struct Findings {
    /// What each item with an order does to its latent.
    pub items: Vec<Item>,
    /// Every latent of a tree, in its order; the one latent of a chain.
    pub latents: Vec<LatentFindings>,
    /// How much the whole tree explains of samples that were not learned from; `None` where there are none.
    pub total: Option<TreeTotal>,
    /// For chains, the mean free energies of each step on training and held-out samples; `NaN` where nothing is known.
    pub steps: Vec<(f64, f64)>,
    /// For chains, how much of what is observed some steps later beliefs foretell; `None` where there are too few steps to tell.
    pub foresight: Option<Foresight>,
    /// Whether held-out cells, hidden one at a time, rank evenly among what they may be; `None` where there are too few to tell.
    pub calibration: Option<Calibration>,
}

/// What was learned about one latent.
#[derive(Clone, Debug)]
pub struct LatentFindings {
    /// Its name; `z` for a chain.
    pub name: String,
    /// Its family.
    pub family: String,
    /// Mean free energy on training samples, in nats.
    pub train: f64,
    /// The same on held-out samples, if there are any.
    pub held_out: Option<f64>,
    /// By how much the free energy falls without the messages of each neighbouring subtree, in nats: on held-out samples
    /// if there are any. Of very many neighbours only some are measured.
    pub contributions: Vec<(String, f64)>,
    /// The posterior's width relative to the prior's, from 0 (certain) to 1 (nothing learned): a ratio of standard
    /// deviations for Gaussians, of effective volumes for others.
    pub spread: f64,
    /// What is wrong with it, in plain words.
    pub warnings: Vec<String>,
}

impl LatentFindings {
    /// Its free energy on samples that were not learned from, where there are any.
    pub fn free_energy(&self) -> f64 {
        self.held_out.unwrap_or(self.train)
    }
}

impl Findings {
    /// Looks at a trained project.
    pub fn of(project: &Project) -> Result<Self> {
        let model = &project.model;
        let kept = support_samples(project);
        let chain = project.encoder.chain;
        let steps = if chain {
            model.tree().latents().len()
        } else {
            1
        };
        let most = (SCORED / steps).max(100);
        // A chain is scored step by step; fewer sequences say as much.
        let stride = if chain {
            kept.len().div_ceil(most.max(300))
        } else {
            1
        };
        let kept: Vec<u32> = kept.into_iter().step_by(stride.max(1)).collect();
        let support = SupportSet::new(model, &project.observed(&kept)?, project.training.len())?;
        let fresh: Vec<u32> = project
            .training
            .iter()
            .copied()
            .filter(|n| kept.binary_search(n).is_err())
            .collect();
        // Those in the support set would be compared with themselves: others judge where there are enough, else each is left out in turn.
        let apart = fresh.len() >= 200;
        let training = project.observed(&if apart { some(&fresh, most) } else { kept })?;
        let held_out = match project.held_out.is_empty() {
            true => None,
            false => Some(project.observed(&some(&project.held_out, most))?),
        };
        let looked_at = held_out.as_ref().unwrap_or(&training);

        let scores = match apart {
            true => support.scores(model, &training)?,
            false => support.own_scores(model)?,
        };
        let count = model.tree().latents().len();
        let train_means = means(&scores, &training, count);
        // In a small sample every row judges in turn, not some alone.
        let held_means = match (&project.cross_validation, &held_out) {
            (Some(found), _) => Some(found.latents.clone()),
            (None, Some(h)) => Some(means(&support.scores(model, h)?, h, count)),
            (None, None) => None,
        };
        let contributions = support.contributions(model, looked_at)?;
        let (spread, divergence) = sureness(model, looked_at)?;
        let tree = model.tree();
        let beliefs: Vec<&Belief> = model.beliefs().collect();

        let mut latents: Vec<LatentFindings> = tree
            .latents()
            .iter()
            .enumerate()
            .map(|(k, &v)| LatentFindings {
                name: tree.name(v).to_string(),
                family: beliefs[k].to_string(),
                train: train_means[k],
                held_out: held_means.as_ref().map(|m| m[k]),
                contributions: match chain {
                    true => vec![],
                    false => tree
                        .messages_into(v)
                        .zip(&contributions[k])
                        .filter(|(_, nats)| nats.is_finite())
                        .map(|(m, &nats)| (subtree(tree, m), nats))
                        .collect(),
                },
                spread: spread[k],
                warnings: vec![],
            })
            .collect();
        let mut curve = vec![];
        if chain {
            curve = latents
                .iter()
                .map(|l| (l.train, l.held_out.unwrap_or(f64::NAN)))
                .collect();
            let live = live(looked_at, steps);
            let contributions = contributions_over_time(tree, &contributions, &live);
            latents = vec![over_time(&latents, contributions, &live)];
        }
        for (k, latent) in latents.iter_mut().enumerate() {
            let divergence = if chain {
                average(&divergence, &live(looked_at, steps))
            } else {
                divergence[k]
            };
            let linear = project.is_linear();
            let advice = match (linear, project.train.mask > 0.0) {
                // Nothing is smaller than a linear model.
                (true, _) => "more data helps",
                (false, true) => "more data, smaller networks help",
                (false, false) => "more data, smaller networks or `mask = 0.2` in [train] help",
            };
            latent.warnings = warnings(latent, divergence, advice);
        }
        let mut foresight = None;
        if chain {
            let all: Vec<u32> = (0..looked_at.rows() as u32).collect();
            foresight = model.foresight(looked_at, &all)?;
            if let (Some(seen), [latent]) = (foresight, &mut latents[..]) {
                latent.warnings.extend(folded(&latent.name, seen));
            }
        }
        let items = items_of(project)?;
        for latent in &mut latents {
            let more = items::warnings(&latent.name, &items);
            latent.warnings.extend(more);
            let ordered = ordered_items(project, latent);
            let more = style_warning(&latent.name, &ordered, &training);
            latent.warnings.extend(more);
        }
        Ok(Findings {
            total: TreeTotal::of(project)?,
            items,
            latents,
            steps: curve,
            foresight,
            calibration: held_out_cells(project)?,
        })
    }
}

/// At most so many of some samples, evenly spread.
fn some(samples: &[u32], most: usize) -> Vec<u32> {
    samples
        .iter()
        .copied()
        .step_by(samples.len().div_ceil(most).max(1))
        .collect()
}

/// How many samples reach each step.
fn live(data: &Dataset, steps: usize) -> Vec<f64> {
    (0..steps)
        .map(|t| match data.lengths() {
            None => data.rows() as f64,
            Some(lengths) => lengths.iter().filter(|&&l| l as usize > t).count() as f64,
        })
        .collect()
}

/// Mean free energies, over the samples that reach a step where they are sequences.
fn means(scores: &Scores, data: &Dataset, latents: usize) -> Vec<f64> {
    let live = live(data, latents);
    (0..latents)
        .map(|k| match live[k] {
            0.0 => f64::NAN,
            n => scores.latent(k).iter().sum::<f64>() / n,
        })
        .collect()
}

/// Mean relative width and mean divergence of posteriors from priors, latent by latent.
fn sureness(model: &Model, data: &Dataset) -> Result<(Vec<f64>, Vec<f64>)> {
    let posterior = model.posterior(data)?;
    let lengths = data.lengths();
    let latents = posterior.latents().iter();
    let each = latents.flat_map(|l| (0..l.steps().unwrap_or(1)).map(move |step| (l, step)));
    Ok(each
        .enumerate()
        .map(|(k, (latent, step))| {
            let (belief, prior) = (latent.belief(), model.prior(k));
            let (mut log_width, mut divergence, mut count) = (0.0, 0.0, 0.0);
            let before = belief.describe(prior).entropy;
            for row in 0..posterior.rows() {
                if lengths.is_some_and(|l| l[row] as usize <= k) {
                    continue;
                }
                let eta = latent.natural_at(row, step);
                log_width += (belief.describe(eta).entropy - before) / belief.freedom() as f64;
                divergence += belief.kl(eta, prior);
                count += 1.0;
            }
            ((log_width / count).exp(), divergence / count)
        })
        .unzip())
}

/// The subtree that a message summarises, by the neighbour it starts with.
fn subtree(tree: &FactorTree, message: ramp::graph::MessageId) -> String {
    tree.sources(message)
        .map(|v| tree.name(v))
        .collect::<Vec<_>>()
        .join("+")
}

fn average(values: &[f64], weights: &[f64]) -> f64 {
    let known = || {
        values
            .iter()
            .zip(weights)
            .filter(|(v, w)| v.is_finite() && **w > 0.0)
    };
    known().map(|(v, w)| v * w).sum::<f64>() / known().map(|(_, w)| w).sum::<f64>()
}

/// Where a message along a chain comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Series(usize),
    Past,
    Future,
}

/// The contributions of each series of a chain, of the past and of the future: means over the steps that samples reach.
fn contributions_over_time(
    tree: &FactorTree,
    contributions: &[Vec<f64>],
    live: &[f64],
) -> Vec<(String, f64)> {
    let Some(time) = tree.time_axis() else {
        return vec![];
    };
    let mut totals: Vec<(Side, f64)> = vec![];
    for (step, (&latent, nats)) in tree.latents().iter().zip(contributions).enumerate() {
        for (message, &nats) in tree.messages_into(latent).zip(nats) {
            let place = tree.sources(message).next().and_then(|v| tree.place(v));
            let side = match place {
                Some(Place::Observation { series, .. }) => Side::Series(series),
                Some(Place::Latent { step: from }) if from < step => Side::Past,
                _ => Side::Future,
            };
            if !nats.is_finite() {
                continue;
            }
            match totals.iter_mut().find(|(s, _)| *s == side) {
                Some((_, total)) => *total += nats,
                None => totals.push((side, nats)),
            }
        }
    }
    let all: f64 = live.iter().sum();
    let named = totals.into_iter().map(|(side, total)| {
        let name = match side {
            Side::Series(series) => time.series()[series].clone(),
            Side::Past => "past".into(),
            Side::Future => "future".into(),
        };
        // Means over all samples add up to means over those that reach a step.
        (name, total * live[0] / all)
    });
    named.collect()
}

/// The steps of a chain as one latent.
fn over_time(
    steps: &[LatentFindings],
    contributions: Vec<(String, f64)>,
    live: &[f64],
) -> LatentFindings {
    let over = |value: &dyn Fn(&LatentFindings) -> f64| {
        average(&steps.iter().map(value).collect::<Vec<_>>(), live)
    };
    LatentFindings {
        name: TimeAxis::LATENT.into(),
        family: steps[0].family.clone(),
        train: over(&|s| s.train),
        held_out: steps[0]
            .held_out
            .map(|_| over(&|s| s.held_out.unwrap_or(f64::NAN))),
        contributions,
        spread: over(&|s| s.spread),
        warnings: vec![],
    }
}

/// Says where beliefs of a chain leave out what the observations of a few steps tell: a velocity, or which side of a fold it is.
fn folded(name: &str, seen: Foresight) -> Option<String> {
    seen.share_of_motion().filter(|s| *s < FOLDED).map(|_| {
        format!(
            "`{name}` is folded or leaves out what moves it: it tells {:.0} % of what is observed 3 to 8 steps earlier and later, the present observation \
             alone {:.0} %, the five around it by themselves {:.0} %; fit with another seed, more iterations or a latent of more dimensions",
            100.0 * seen.beliefs.max(0.0),
            100.0 * seen.present.max(0.0),
            100.0 * seen.observations
        )
    })
}

/// The items with ordered levels that hang on a Gaussian latent of one dimension.
fn ordered_items<'a>(project: &'a Project, latent: &LatentFindings) -> Vec<&'a str> {
    let tree = project.model.tree();
    let here = |name: &str| {
        let found = tree.find(name).ok().and_then(|x| tree.latent_of(x));
        found.is_some_and(|z| tree.name(z) == latent.name)
    };
    let all = project.encoder.observations.iter();
    let ordered = all.filter(|o| matches!(o.encoding, Encoding::Ordinal { .. }));
    ordered
        .map(|o| &o.name[..])
        .filter(|name| latent.family == "gaussian(1)" && here(name))
        .collect()
}

fn warnings(latent: &LatentFindings, divergence: f64, advice: &str) -> Vec<String> {
    let name = &latent.name;
    let mut warnings = vec![];
    if divergence < COLLAPSED {
        warnings.push(format!(
            "`{name}` collapsed to its prior: the data says next to nothing about it ({divergence:.3} nats a sample); train \
             longer or with another seed, or leave it out of the tree"
        ));
        return warnings;
    }
    if let Some(held_out) = latent.held_out {
        if held_out <= 0.0 {
            warnings.push(format!(
                "`{name}` explains nothing of held-out samples ({held_out:.2} nats): what hangs on it may not belong together"
            ));
        }
        if latent.train - held_out > 0.05 + 0.15 * latent.train.abs() {
            warnings.push(format!(
                "`{name}` overfits: {:.2} nats on training samples but {held_out:.2} on held-out ones; {advice}",
                latent.train
            ));
        }
    }
    warnings
}
