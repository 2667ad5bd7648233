//! One sequence over time, for pictures: what is believed of its latent at every step, what was observed, and what is foretold.

use super::forecast::{Foretold, Horizon, Outlook};
use super::posterior_columns::{posterior_columns, posterior_values};
use crate::Result;
use crate::run::Project;
use crate::source::{Samples, Sequence, spelled};
use crate::table::column;

/// A sequence with its latent over time and the steps to come.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OverTime {
    /// Which sequence it is; empty where there is one.
    pub name: String,
    /// Its steps that are shown, which come first everywhere, and those to come.
    pub steps: usize,
    /// The time of every step, as its column spells it, or the number of the step.
    pub times: Vec<String>,
    /// The chance that a value lies within its interval.
    pub interval: f64,
    /// Coordinates of the latent, at every step.
    pub latents: Vec<LatentBand>,
    /// Columns of numbers, at every step.
    pub columns: Vec<ColumnBand>,
}

/// What is believed of one coordinate of the latent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LatentBand {
    /// Its name after the latent's, such as `mean2`.
    pub suffix: String,
    /// Its mean at every step.
    pub mean: Vec<f64>,
    /// Its standard deviation; empty for the probability of a level.
    pub sd: Vec<f64>,
}

/// One column of numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnBand {
    /// The column.
    pub name: String,
    /// What was observed at the steps shown; `NaN` where nothing was.
    pub observed: Vec<f64>,
    /// What is foretold of every step to come: the mean and the ends of the interval.
    pub foretold: Vec<[f64; 3]>,
}

impl OverTime {
    /// Looks at the longest sequence of a project over a table, at the last steps of it and at those to come; `None` where samples
    /// are no sequences of a table.
    pub fn of(project: &Project, steps: usize, horizon: Horizon) -> Result<Option<Self>> {
        let (Some(chain), Some(table)) = (project.file.chain(), project.samples.table()) else {
            return Ok(None);
        };
        // The first of the longest, so that it is the same one every time.
        let longest = project
            .series
            .iter()
            .max_by_key(|s| (s.length, std::cmp::Reverse(s.items[0])));
        let Some(whole) = longest else {
            return Ok(None);
        };
        let from = whole.length.saturating_sub(steps as u32);
        let first = whole.steps.partition_point(|&s| s < from);
        let shown = Sequence {
            items: whole.items[first..].to_vec(),
            steps: whole.steps[first..].iter().map(|s| s - from).collect(),
            length: whole.length - from,
            start: whole.start,
            offset: whole.offset + from,
        };
        let alone = |sequence: &Sequence| Samples {
            content: project.samples.content.clone(),
            sequences: Some(vec![sequence.clone()]),
            first_row: 0,
        };
        let all = Samples {
            content: project.samples.content.clone(),
            sequences: Some(known(project)),
            first_row: 0,
        };
        let outlook = Outlook::new(&project.encoder, &project.model, chain, &all, horizon)?;
        let (data, _) = project.encoder.encode(&alone(&shown))?;
        let ahead = outlook.steps(&alone(&shown), &data)?.remove(0);

        let count = shown.length as usize;
        let model = match project.model.tree().latents().len() {
            n if n < count => Some(project.model.unrolled(count)?),
            _ => None,
        };
        let posterior = model.as_ref().unwrap_or(&project.model).posterior(&data)?;
        let latent = &posterior.latents()[0];
        let described = posterior_columns(latent.belief());
        let values = posterior_values(&described, latent);
        let coordinate = |at: usize, sd: bool| -> Vec<f64> {
            let next = ahead.iter().map(|step| {
                let says = step.belief.describe();
                if sd { says.sd[at] } else { says.mean[at] }
            });
            let own = described
                .iter()
                .position(|c| c.coordinate == at && c.sd == sd);
            let past = own.map_or(&[][..], |c| &values[c][..count]);
            past.iter().copied().chain(next).collect()
        };
        let latents = described
            .iter()
            .filter(|c| !c.sd)
            .map(|c| LatentBand {
                suffix: c.suffix.clone(),
                mean: coordinate(c.coordinate, false),
                sd: match c.probability {
                    true => vec![],
                    false => coordinate(c.coordinate, true),
                },
            })
            .collect();

        let mut columns = vec![];
        for (o, observation) in project.encoder.observations.iter().enumerate() {
            for (c, name) in observation.columns.iter().enumerate() {
                let foretold: Option<Vec<[f64; 3]>> = ahead
                    .iter()
                    .map(|step| match &step.foretold[o] {
                        Foretold::Numbers(numbers) => numbers.get(c).copied(),
                        Foretold::Levels(_) => None,
                    })
                    .collect();
                let Some(foretold) = foretold else { continue };
                let numbers = column(table, name)?.numbers(0)?;
                let mut observed = vec![f64::NAN; count];
                for (&item, &step) in shown.items.iter().zip(&shown.steps) {
                    observed[step as usize] = numbers[item as usize];
                }
                columns.push(ColumnBand {
                    name: name.clone(),
                    observed,
                    foretold,
                });
            }
        }
        let name = match &chain.sequence {
            Some(id) => column(table, id)?.texts()[shown.items[0] as usize].clone(),
            None => None,
        };
        let time = |t: u32| match (chain.step, shown.start) {
            (Some(step), Some(start)) => spelled(
                step.after(start, f64::from(shown.offset) + f64::from(t)),
                step,
            ),
            _ => (shown.offset + t + 1).to_string(),
        };
        Ok(Some(OverTime {
            name: name.unwrap_or_default(),
            steps: count,
            times: (0..shown.length + horizon.steps).map(time).collect(),
            interval: horizon.interval,
            latents,
            columns,
        }))
    }
}

/// The sequences that a forecast learns from: series that were cut are known to their end, as a run keeps them; of others, those that the networks learned from.
fn known(project: &Project) -> Vec<Sequence> {
    match (&project.windows, &project.samples.sequences) {
        (Some(_), _) => project.series.clone(),
        (None, Some(sequences)) => {
            let all = project.training.iter();
            all.map(|&n| sequences[n as usize].clone()).collect()
        }
        (None, None) => vec![],
    }
}
