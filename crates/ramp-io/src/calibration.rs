//! Whether what a fit says of missing cells is as sure as it should be: cells of held-out samples are hidden one at a time, and ranked among
//! what they may be.

use crate::Result;
use crate::encode::Encoding;
use crate::readout::has_numbers;
use crate::run::{Project, support_samples};
use ramp::data::{Dataset, Observation};
use ramp::infer::{Calibration, Imputer, SeriesSupport, SupportSet, rank_among};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Cells that are ranked, and samples that they are of.
const CELLS: usize = 4000;
const SAMPLES: usize = 2000;
/// Observations of a series that a cell is compared with.
const CANDIDATES: usize = 4000;

/// A cell: its sample, its observation in the tree, and for a chain its step and series.
struct Cell {
    sample: usize,
    observation: usize,
    step: usize,
    series: usize,
}

/// Ranks cells of held-out samples; nothing where there are too few, or none that can be ordered.
pub(crate) fn held_out_cells(project: &Project) -> Result<Option<Calibration>> {
    let model = &project.model;
    let all = &project.held_out;
    let stride = all.len().div_ceil(SAMPLES).max(1);
    let held_out: Vec<u32> = all.iter().copied().step_by(stride).collect();
    if held_out.is_empty() {
        return Ok(None);
    }
    let fresh = project.observed(&held_out)?;
    let kept = project.observed(&support_samples(project))?;
    let tree = model.tree();
    let time = tree.time_axis();
    let names: Vec<&str> = match time {
        Some(time) => time.series().iter().map(String::as_str).collect(),
        None => tree.observations().iter().map(|&v| tree.name(v)).collect(),
    };
    let ordered: Vec<bool> = names
        .iter()
        .map(|&name| {
            project
                .encoder
                .observations
                .iter()
                .any(|o| o.name == name && is_ordered(&o.encoding))
        })
        .collect();
    let levels: Vec<bool> = names
        .iter()
        .map(|&name| {
            let mut all = project.encoder.observations.iter();
            all.any(|o| o.name == name && !has_numbers(o))
        })
        .collect();
    let support = SupportSet::new(model, &kept, project.training.len())?;
    let imputer = Imputer::new(model, &support, &kept)?;
    let conditionals = imputer.conditionals(model, &fresh)?;
    // As they are imputed: levels at the temperature that was learned.
    let mut tempered = imputer.clone();
    tempered.set_temperature(project.temperature.unwrap_or(1.0));
    let alone = conditionals.by(&tempered);
    let along = match time {
        None => None,
        Some(_) => Some(SeriesSupport::new(model, &kept, CANDIDATES)?),
    };

    let series_of = |observation: usize| observation % names.len();
    let step_of = |observation: usize| observation / names.len();
    let count = tree.observations().len();
    let per_sample = CELLS.div_ceil(held_out.len()).min(count);
    let mut cells = vec![];
    for sample in 0..fresh.rows() {
        // In turn, so that few cells of each sample are still cells of all columns.
        let turn = (0..count).map(|i| (sample * 7 + i * stride_over(count)) % count);
        let there = turn.filter(|&o| {
            let (series, step) = (series_of(o), step_of(o));
            ordered[series] && is_present(&fresh, names[series], sample, step)
        });
        cells.extend(there.take(per_sample).map(|observation| Cell {
            sample,
            observation,
            step: step_of(observation),
            series: series_of(observation),
        }));
    }
    let mut random = ChaCha8Rng::seed_from_u64(project.train.seed);
    let chances: Vec<f64> = cells
        .iter()
        .map(|_| random.random_range(0.0..1.0))
        .collect();
    let ranks: Vec<f64> = cells
        .par_iter()
        .zip(&chances)
        .map(|(cell, &chance)| -> Result<Option<f64>> {
            let name = names[cell.series];
            let truth = place(fresh.observation(name)?, cell.sample, cell.step);
            let own = kept.observation(name)?;
            let (values, weights): (Vec<f64>, Vec<f64>) = match &along {
                None => {
                    let candidates = imputer.candidates(cell.observation).iter();
                    let values = candidates.map(|&n| place(own, n as usize, 0));
                    let by = match levels[cell.series] {
                        true => &alone,
                        false => &conditionals,
                    };
                    (values.collect(), by.weights(cell.observation, cell.sample))
                }
                Some(along) => {
                    let belief = conditionals.belief_without(cell.observation, cell.sample);
                    let places = along.places(cell.series).iter();
                    let values = places.map(|&(n, t)| place(own, n as usize, t as usize));
                    (values.collect(), along.weights(cell.series, &belief))
                }
            };
            Ok((!weights.is_empty())
                .then(|| rank_among(truth, values.into_iter().zip(weights), chance)))
        })
        .filter_map(Result::transpose)
        .collect::<Result<_>>()?;
    let mut samples: Vec<usize> = cells.iter().map(|cell| cell.sample).collect();
    samples.dedup();
    Ok(Calibration::of_groups(
        &ranks,
        samples.len(),
        Some(kept.rows()),
    ))
}

/// A step through all observations that visits each of them: one that shares no factor with their number.
fn stride_over(count: usize) -> usize {
    let shares = |a: usize, b: usize| (2..=b).any(|k| a.is_multiple_of(k) && b.is_multiple_of(k));
    [5, 3, 2]
        .into_iter()
        .find(|&k| !shares(count, k))
        .unwrap_or(1)
}

/// Whether its values can be ranked: numbers, and levels with ties broken at random.
fn is_ordered(encoding: &Encoding) -> bool {
    matches!(
        encoding,
        Encoding::Number { .. } | Encoding::Categorical { .. } | Encoding::Ordinal { .. }
    )
}

fn is_present(data: &Dataset, name: &str, sample: usize, step: usize) -> bool {
    let reached = data.lengths().is_none_or(|l| step < l[sample] as usize);
    let there = |o: &Observation| match o.steps() {
        Some(steps) => step < steps && o.step(step).is_present(sample),
        None => o.is_present(sample),
    };
    reached && data.observation(name).is_ok_and(there)
}

/// A number as it was encoded, or the place of a level.
fn place(observation: &Observation, sample: usize, step: usize) -> f64 {
    let numbers = match observation.steps() {
        Some(_) => observation.step(step).numbers(sample),
        None => observation.numbers(sample),
    };
    match &numbers[..] {
        [number] => f64::from(*number),
        levels => levels.iter().position(|&x| x > 0.5).unwrap_or(0) as f64,
    }
}
