//! From a finished fit to what its page shows.

use super::gaps::{Gaps, shown_columns};
use super::page::{
    Band, Contribution, Coordinate, DataColumn, FreeEnergy, HeldOutRanks, ItemCurve, Latent,
    OverTime, Prior, Report, Sequence, StepCurve, TrainingPoint, Values, Variable,
};
use crate::encode::Encoding;
use crate::items;
use crate::ranks::together;
use crate::source::Samples;
use crate::stream::{Horizon, posterior_columns, posterior_values};
use crate::{Findings, Project, Result};
use ramp::family::Belief;
use ramp::infer::Calibration;
use ramp::train::Record;
use std::collections::HashMap;
use std::path::Path;

/// Rows whose posteriors the page shows.
const SHOWN_ROWS: usize = 2000;
/// Wider files are shown by the model's columns alone.
const MOST_COLUMNS: usize = 400;
/// Points on the training curve.
const CURVE_POINTS: usize = 600;
/// Steps of a sequence that the page shows over time, and those to come.
const SHOWN_STEPS: usize = 200;
const FORETOLD_STEPS: u32 = 20;

/// Gathers what the page shows of a fit; `facts` are what it takes to run it again.
pub fn build(
    name: &str,
    project: &Project,
    shown: &Shown,
    records: &[Record],
    findings: &Findings,
    mut facts: Vec<(String, String)>,
) -> Result<Report> {
    let total = findings.total.as_ref().map(|total| total.sentence());
    facts.extend(total.map(|sentence| ("the tree as a whole".into(), sentence)));
    let linear = project.beyond_linear.map(|found| found.sentence());
    facts.extend(linear.map(|sentence| ("beside a linear model".into(), sentence)));
    let judged = project.cross_validation.as_ref();
    let chosen = chosen(project);
    let samples = &shown.samples;
    let items = items(samples);
    let model = &project.model;
    let posterior = model.posterior(&project.observed(&chosen)?)?;
    let chain = project.file.chain();

    let tree = model.tree();
    let (variables, factors, root) = match chain {
        None => (
            tree.variables()
                .map(|v| Variable {
                    name: tree.name(v).into(),
                    latent: tree.is_latent(v),
                })
                .collect(),
            tree.factors()
                .map(|f| tree.variables_of(f).iter().map(|v| v.index()).collect())
                .collect(),
            Some(tree.root().index()),
        ),
        Some(chain) => {
            let mut variables = vec![Variable {
                name: "z".into(),
                latent: true,
            }];
            variables.extend(chain.observe.iter().map(|name| Variable {
                name: name.clone(),
                latent: false,
            }));
            let factors = (1..variables.len()).map(|i| vec![0, i]).collect();
            (variables, factors, Some(0))
        }
    };

    let mut latents = vec![];
    for (k, found) in findings.latents.iter().enumerate() {
        let belief = posterior.latents()[k].belief();
        let columns = posterior_columns(belief);
        let mut values = posterior_values(&columns, &posterior.latents()[k]);
        if let Some(steps) = posterior.latents()[k].steps() {
            // The shown rows go through the sequences one after the other.
            for column in &mut values {
                *column = items
                    .iter()
                    .map(|i| column[i.sample * steps + i.step])
                    .collect();
            }
        }
        latents.push(Latent {
            variable: match chain {
                None => tree.latents()[k].index(),
                Some(_) => 0,
            },
            family: found.family.clone(),
            free_energy: FreeEnergy {
                train: found.train,
                held_out: found.held_out,
            },
            contributions: found
                .contributions
                .iter()
                .map(|(from, nats)| Contribution {
                    from: from.clone(),
                    nats: *nats,
                })
                .collect(),
            spread: found.spread,
            warnings: found.warnings.clone(),
            coordinates: coordinates(&found.name, belief, model.prior(k), &values),
        });
    }

    let columns = columns(project, shown, &items);
    Ok(Report {
        title: name.into(),
        data: project
            .file
            .data
            .file
            .as_deref()
            .and_then(Path::file_name)
            .map_or("data in memory".into(), |f| {
                f.to_string_lossy().into_owned()
            }),
        rows: project.rows(),
        held_out_rows: project.held_out.len(),
        validation_rows: project.validation.len(),
        items: findings.items.iter().map(item_curve).collect(),
        variables,
        factors,
        root,
        latents,
        folds: judged.map_or(0, |found| found.folds),
        training: match judged {
            Some(found) => cross_validated(training(records), &found.curve),
            None => training(records),
        },
        sampled_rows: items.len(),
        missing_patterns: shown.gaps.patterns.clone(),
        observed_columns: project.encoder.columns().len(),
        missing_cells: shown.gaps.cells,
        columns,
        settings: project.settings.clone(),
        facts,
        sequence: chain.map(|chain| Sequence {
            id: chain.sequence.clone().unwrap_or_else(|| "sample".into()),
            time: chain.time.clone().unwrap_or_else(|| "step".into()),
            steps: project.steps().1,
            links: vec![(0, 0)],
            of: items.iter().map(|i| i.sample as u32).collect(),
            step: items.iter().map(|i| i.step as u32 + 1).collect(),
            curves: vec![StepCurve {
                variable: 0,
                train: findings.steps.iter().map(|s| s.0).collect(),
                held_out: findings.steps.iter().map(|s| s.1).collect(),
            }],
        }),
        ranks: findings.calibration.as_ref().map(held_out_ranks),
        over_time: over_time(project)?,
        changes: vec![],
    })
}

/// One sequence of a chain over time, and what is foretold of it.
fn over_time(project: &Project) -> Result<Option<OverTime>> {
    let horizon = Horizon::new(FORETOLD_STEPS);
    let Some(found) = crate::stream::OverTime::of(project, SHOWN_STEPS, horizon)? else {
        return Ok(None);
    };
    let all = found.times.len();
    let short = |x: &f64| *x as f32;
    let latents = found.latents.iter().map(|latent| {
        let side = |sign: f64| -> Vec<f32> {
            let sd = latent.mean.iter().zip(&latent.sd);
            sd.map(|(mean, sd)| (mean + sign * sd) as f32).collect()
        };
        Band {
            label: match found.latents.len() {
                1 => "z".into(),
                _ => format!("z.{}", latent.suffix),
            },
            observed: vec![],
            middle: latent.mean.iter().map(short).collect(),
            low: side(-1.0),
            high: side(1.0),
        }
    });
    let columns = found.columns.iter().map(|column| {
        let ahead = |i: usize| {
            let mut values = vec![f32::NAN; found.steps];
            values.extend(column.foretold.iter().map(|x| x[i] as f32));
            values
        };
        let mut observed: Vec<f32> = column.observed.iter().map(short).collect();
        observed.resize(all, f32::NAN);
        Band {
            label: column.name.clone(),
            observed,
            middle: ahead(0),
            low: ahead(1),
            high: ahead(2),
        }
    });
    Ok(Some(OverTime {
        bands: latents.chain(columns).collect(),
        name: found.name.clone(),
        steps: found.steps,
        times: found.times.clone(),
        interval: found.interval,
    }))
}

/// The samples that are shown: evenly spread, and few where each has many steps.
fn chosen(project: &Project) -> Vec<u32> {
    let count = project.rows();
    let most = match &project.samples.sequences {
        None => SHOWN_ROWS,
        Some(_) => (SHOWN_ROWS * count / project.items().max(1)).max(5),
    };
    (0..count as u32)
        .step_by(count.div_ceil(most).max(1))
        .collect()
}

/// What the page shows of the data. It is read before training: what happens to the file later is nothing to the fit.
pub struct Shown {
    /// Some samples with all columns of their file, so that they can be coloured by what the model has not seen.
    samples: Samples,
    gaps: Gaps,
}

impl Shown {
    /// Reads what will be shown of a project's data. Ranks that hold it together call this together.
    pub fn of(project: &Project) -> Result<Self> {
        let whole = project.with_all_columns(MOST_COLUMNS);
        let Some(parts) = project.parts() else {
            let whole = whole?;
            return Ok(Shown {
                samples: whole.select(&chosen(project))?,
                gaps: Gaps::of(project, &whole),
            });
        };
        let whole = together(&*parts.ranks, whole)?;
        Ok(Shown {
            samples: parts.gather(&whole, &chosen(project))?,
            gaps: Gaps::among(project, &whole, &*parts.ranks)?,
        })
    }
}

/// A shown row: a sample, or one step of a sequence.
struct Item {
    sample: usize,
    step: usize,
    row: usize,
}

fn items(samples: &Samples) -> Vec<Item> {
    match &samples.sequences {
        None => (0..samples.len())
            .map(|n| Item {
                sample: n,
                step: 0,
                row: n,
            })
            .collect(),
        Some(sequences) => sequences
            .iter()
            .enumerate()
            .flat_map(|(n, s)| {
                s.items.iter().zip(&s.steps).map(move |(&row, &step)| Item {
                    sample: n,
                    step: step as usize,
                    row: row as usize,
                })
            })
            .collect(),
    }
}

fn coordinates(name: &str, belief: &Belief, prior: &[f64], values: &[Vec<f64>]) -> Vec<Coordinate> {
    let columns = posterior_columns(belief);
    let before = belief.describe(prior);
    let gaussian = belief.parts().iter().all(|p| p.name().contains("gaussian"));
    let single = columns.iter().filter(|c| !c.sd).count() == 1;
    let short = |x: &f64| *x as f32;
    columns
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.sd)
        .map(|(at, column)| {
            let i = column.coordinate;
            let spread = columns
                .iter()
                .position(|c| c.sd && c.coordinate == i)
                .map(|at| values[at].iter().map(short).collect());
            let tau = std::f32::consts::PI;
            Coordinate {
                label: match (single, column.probability) {
                    (true, _) => name.into(),
                    (_, true) => format!("{name}.{}", column.suffix),
                    (_, false) => format!("{name}.{}", i + 1),
                },
                circular: column.circular,
                range: match (column.circular, column.probability) {
                    (true, _) => Some((-tau, tau)),
                    (_, true) => Some((0.0, 1.0)),
                    _ => None,
                },
                prior: match (gaussian, column.circular) {
                    (true, _) => Some(Prior::Normal {
                        mean: before.mean[i] as f32,
                        sd: before.sd[i] as f32,
                    }),
                    (_, true) => Some(Prior::Uniform {
                        low: -tau,
                        high: tau,
                    }),
                    _ => None,
                },
                mean: values[at].iter().map(short).collect(),
                sd: spread.unwrap_or_else(|| {
                    values[at]
                        .iter()
                        .map(|p| (p * (1.0 - p)).max(0.0).sqrt() as f32)
                        .collect()
                }),
            }
        })
        .collect()
}

/// Ranks of held-out cells, and what they say.
fn held_out_ranks(found: &Calibration) -> HeldOutRanks {
    let spread = format!("{:.2} ± {:.2}", found.spread, found.spread_error);
    let aside = format!("Spreads are {spread} times what they should be.");
    let verdict = match (found.is_uniform(), found.spread) {
        (true, _) => format!(
            "Even, as far as {} cells can tell: imputations and their spreads can be taken at their word. {aside}",
            found.ranks
        ),
        (false, spread) if (0.95..=1.05).contains(&spread) => format!(
            "Not even, though not for their spreads: values lie {:+.2} standard deviations from where they are expected on average, or are spread in another shape. {aside}",
            found.shift
        ),
        (false, spread) if spread < 1.0 => format!(
            "Not even: imputations are too sure of themselves. More rows, smaller networks or `mask` in [train] help. {aside}"
        ),
        (false, _) => format!(
            "Not even: imputations are less sure than they could be. More iterations may help. {aside}"
        ),
    };
    HeldOutRanks {
        histogram: found.histogram.clone(),
        verdict,
    }
}

fn item_curve(item: &items::Item) -> ItemCurve {
    ItemCurve {
        name: item.name.clone(),
        latent: item.latent.clone(),
        direction: item.direction().sign().into(),
        answers: item
            .curve
            .iter()
            .map(|(answer, _)| answer.clone())
            .collect(),
        means: item.curve.iter().map(|(_, mean)| *mean).collect(),
    }
}

/// Training over its iterations: means over a few iterations each, so that a long one stays readable.
fn training(records: &[Record]) -> Vec<TrainingPoint> {
    let each = records.len().div_ceil(CURVE_POINTS).max(1);
    records
        .chunks(each)
        .map(|part| TrainingPoint {
            iteration: part[part.len() - 1].iteration,
            free_energy: part.iter().map(|r| r.free_energy).sum::<f64>() / part.len() as f64,
            held_out: part.iter().rev().find_map(|r| r.held_out),
        })
        .collect()
}

/// The same with the values of cross-validation, which the tables have, also beyond where training ended.
fn cross_validated(training: Vec<TrainingPoint>, curve: &[(usize, f64)]) -> Vec<TrainingPoint> {
    let own = training.into_iter().map(|point| TrainingPoint {
        held_out: None,
        ..point
    });
    let mut points: Vec<TrainingPoint> = own.collect();
    for &(iteration, value) in curve {
        match points.iter_mut().find(|p| p.iteration == iteration) {
            Some(point) => point.held_out = Some(value),
            None => points.push(TrainingPoint {
                iteration,
                free_energy: f64::NAN,
                held_out: Some(value),
            }),
        }
    }
    points.sort_by_key(|p| p.iteration);
    points
}

fn columns(project: &Project, shown: &Shown, items: &[Item]) -> Vec<DataColumn> {
    let used = project.encoder.columns();
    shown_columns(project, &shown.samples)
        .into_iter()
        .zip(&shown.gaps.columns)
        .map(|(column, &missing)| {
            let categorical = project.encoder.observations.iter().any(|o| {
                o.columns.iter().any(|name| name == column.name())
                    && matches!(o.encoding, Encoding::Categorical { .. })
            });
            let numbers = if categorical {
                None
            } else {
                column.numbers(0).ok()
            };
            let values = match numbers {
                Some(numbers) => Values::Numbers(
                    items
                        .iter()
                        .map(|i| Some(numbers[i.row] as f32).filter(|x| x.is_finite()))
                        .collect(),
                ),
                None => {
                    let texts = column.texts();
                    let mut place: HashMap<&str, u32> = HashMap::new();
                    let mut levels = vec![];
                    let codes = items
                        .iter()
                        .map(|i| {
                            texts[i.row].as_deref().map(|text| {
                                *place.entry(text).or_insert_with(|| {
                                    levels.push(text.to_string());
                                    levels.len() as u32 - 1
                                })
                            })
                        })
                        .collect();
                    Values::Levels { levels, codes }
                }
            };
            DataColumn {
                name: column.name().to_owned(),
                observed: used.iter().any(|name| name == column.name()),
                missing,
                values,
            }
        })
        .collect()
}
