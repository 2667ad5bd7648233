//! How much messages count where the tree alone fills missing cells: learned from the samples that chose the weights.
//!
//! Numbers are read off the tree and the rest of a row by regressions that have their own shares of both and their own widths
//! ([`Readout`](crate::readout::Readout)), so they take messages at their word. What has no such regression, levels above all, is drawn with the
//! tree's own chances, and those are only as sure as messages are.

use super::{Project, support_samples};
use crate::Result;
use crate::readout::has_numbers;
use ramp::infer::{Imputer, SupportSet};

/// The most samples that it is learned from.
const MOST_FRESH: usize = 2000;

/// The temperature of a trained project; `None` where the tree fills nothing alone, or no samples chose the weights.
pub(super) fn learn(project: &Project) -> Result<Option<f64>> {
    let encoder = &project.encoder;
    let alone = |o: usize| !has_numbers(&encoder.observations[o]);
    let none = !(0..encoder.observations.len()).any(alone);
    if encoder.chain || project.samples.table().is_none() || project.validation.is_empty() || none {
        return Ok(None);
    }
    let model = &project.model;
    let kept = project.observed(&support_samples(project))?;
    let support = SupportSet::new(model, &kept, project.training.len())?;
    let mut imputer = Imputer::new(model, &support, &kept)?;
    let stride = project.validation.len().div_ceil(MOST_FRESH);
    let rows: Vec<u32> = project.validation.iter().copied().step_by(stride).collect();
    let fresh = project.observed(&rows)?;
    Ok(Some(imputer.fit_temperature_of(model, &fresh, alone)?))
}

#[cfg(test)]
mod tests {
    use crate::run::{Intent, RunFolder};
    use crate::stream::Draws;
    use crate::table::{column, concat_rows};
    use crate::{ModelFile, Project, Run};
    use arrow_array::RecordBatch;
    use ramp::infer::{Imputer, SupportSet};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::path::Path;

    const LEVELS: [&str; 3] = ["low", "mid", "top"];

    /// Two numbers and two columns of levels that share a cause, with gaps.
    fn prepared(folder: &Path) -> Project {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let mut text = String::from("a,b,u,v\n");
        for _ in 0..600 {
            let cause: f64 = rng.random_range(-1.0..1.0);
            let mut cell = |spread: f64, levels: bool| {
                let value = cause + rng.random_range(-spread..spread);
                let place = ((value + 1.0) * 1.5).clamp(0.0, 2.0) as usize;
                match (rng.random_bool(0.1), levels) {
                    (true, _) => String::new(),
                    (false, true) => LEVELS[place].into(),
                    (false, false) => format!("{value:.3}"),
                }
            };
            let row = [
                cell(0.5, false),
                cell(0.7, false),
                cell(0.6, true),
                cell(0.8, true),
            ];
            text += &(row.join(",") + "\n");
        }
        let data = folder.join("data.csv");
        std::fs::write(&data, text).unwrap();
        let mut file = ModelFile::parse(
            "[tree]\nnewick = \"(a,b,u,v)z;\"\n[data]\nholdout = 0.0\nvalidation = 0.3\n",
        )
        .unwrap();
        file.data.file = Some(data);
        Project::prepare(file).unwrap()
    }

    fn imputed(run: &Run, data: &Path, draws: Option<Draws>) -> RecordBatch {
        let answers = run.impute(run.read(data, true).unwrap(), draws).unwrap();
        let parts: Vec<RecordBatch> = answers.map(Result::unwrap).collect();
        concat_rows(&parts).unwrap()
    }

    /// Of weights that are not trained the temperature is far from 1. Levels are drawn at it, as the naive formula says, and numbers as without it.
    #[test]
    fn levels_are_drawn_at_the_temperature_of_the_run_and_numbers_as_ever() {
        let folder = tempfile::tempdir().unwrap();
        let mut project = prepared(folder.path());
        project.learn_readout().unwrap();
        let temperature = project.temperature.unwrap();
        assert!((temperature.ln()).abs() > 0.2, "{temperature}");
        let out = folder.path().join("run");
        let place = RunFolder::claim(&out, Intent::New, &[]).unwrap();
        place.finish(&project, "").unwrap();
        drop(place);
        let mut run = Run::open(&out).unwrap();
        assert_eq!(run.temperature, Some(temperature));

        // The chances of levels in one row without `u`, from the support set by hand.
        let missing = folder.path().join("missing.csv");
        std::fs::write(&missing, "a,b,u,v\n0.4,,,top\n").unwrap();
        let samples = run.read(&missing, true).unwrap().rest().unwrap();
        let (row, _) = run.encode(&samples).unwrap();
        let support = run.support_series().unwrap();
        let (data, _) = run.encode(&support).unwrap();
        let set = SupportSet::new(&run.model, &data, run.population).unwrap();
        let mut imputer = Imputer::new(&run.model, &set, &data).unwrap();
        let texts = column(support.table().unwrap(), "u").unwrap().texts();
        let mut chances = |temperature: f64| {
            imputer.set_temperature(temperature);
            let conditionals = imputer.conditionals(&run.model, &row).unwrap();
            let weights = conditionals.weights(2, 0);
            let mut chances = [0.0; 3];
            for (n, weight) in imputer.candidates(2).iter().zip(weights) {
                let text = texts[*n as usize].as_deref().unwrap();
                chances[LEVELS.iter().position(|&l| l == text).unwrap()] += weight;
            }
            chances
        };
        let (tempered, plain) = (chances(temperature), chances(1.0));

        const DRAWS: u16 = 4000;
        let draws = Draws {
            count: DRAWS,
            seed: 1,
        };
        let shares = |table: &RecordBatch| {
            let texts = column(table, "u").unwrap().texts();
            LEVELS.map(|level| {
                let drawn = texts.iter().filter(|t| t.as_deref() == Some(level));
                drawn.count() as f64 / f64::from(DRAWS)
            })
        };
        let numbers = |table: &RecordBatch| column(table, "b").unwrap().texts();
        let apart = |a: [f64; 3], b: [f64; 3]| {
            let each = a.iter().zip(b).map(|(a, b)| (a - b).abs());
            each.fold(0.0, f64::max)
        };
        let with = imputed(&run, &missing, Some(draws));
        let mean = numbers(&imputed(&run, &missing, None));
        // An old run has none, and is imputed as it was.
        run.temperature = None;
        let without = imputed(&run, &missing, Some(draws));
        assert_eq!(numbers(&with), numbers(&without));
        assert_eq!(mean, numbers(&imputed(&run, &missing, None)));
        // Four standard errors of a share.
        let error = 4.0 * (0.25 / f64::from(DRAWS)).sqrt();
        assert!(
            apart(plain, tempered) > 2.0 * error,
            "{plain:?} {tempered:?}"
        );
        assert!(
            apart(shares(&with), tempered) < error,
            "{tempered:?} {:?}",
            shares(&with)
        );
        assert!(
            apart(shares(&without), plain) < error,
            "{plain:?} {:?}",
            shares(&without)
        );
    }
}
