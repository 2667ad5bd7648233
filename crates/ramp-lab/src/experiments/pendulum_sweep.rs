//! The pendulum over widths of networks and learning rates (paper, "Pendulum", hyperparameter sweep).

use super::clock::Clock;
use super::many::{Board, Many};
use super::pendulum::{PendulumRun, TEST, TRAIN};
use super::pendulum_figures::Drawn;
use super::pendulum_reading::{Explained, embed, explained};
use super::run::{Outcome, Recipe, Scale, Watch, peak_rss_mb, write_json};
use crate::error::LabError;
use crate::figure::{Figure, PAGE_MM};
use crate::pendulum::Pendulum;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// Frames that the regressions are fitted on.
const REGRESSED: usize = 2000;
/// Iterations at the end whose free energies are averaged.
const LAST: usize = 50;
/// Films that the models begin with.
const BEGUN_WITH: usize = 200;
/// Panels in a row of the figure.
const ROW: usize = 4;

/// The settings of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendulumSweepRun {
    /// Hidden units of every network.
    pub widths: Vec<usize>,
    /// Learning rates.
    pub rates: Vec<f64>,
    /// The settings of every model, whose width and rate are replaced.
    pub cell: PendulumRun,
    /// Models that train at the same time; one per processor by default.
    pub threads: Option<usize>,
}

impl PendulumSweepRun {
    /// The settings of a scale and a recipe.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let mut cell = PendulumRun::new(scale, recipe, seed);
        let (widths, rates) = match scale {
            Scale::Paper => {
                // Small frames show what large ones do, and many models fit into memory and time.
                cell.films.size = 32;
                (vec![32, 64, 128, 256], vec![2e-4, 5e-4, 1e-3, 2e-3])
            }
            Scale::Quick => {
                cell.films.size = 16;
                (cell.films.sequences, cell.films.steps) = (400, 50);
                cell.train = cell.train.lasting(400);
                (vec![32, 128], vec![5e-4, 2e-3])
            }
        };
        PendulumSweepRun {
            widths,
            rates,
            cell,
            threads: None,
        }
    }

    fn cells(&self) -> Vec<PendulumRun> {
        let each = self.widths.iter().flat_map(|&hidden| {
            self.rates.iter().map(move |&rate| {
                let mut cell = PendulumRun {
                    hidden,
                    ..self.cell.clone()
                };
                cell.train.learning_rate = rate;
                cell
            })
        });
        each.collect()
    }
}

/// One width and one learning rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendulumCell {
    /// Hidden units of every network.
    pub hidden: usize,
    /// The learning rate.
    pub learning_rate: f64,
    /// The mean free energy of the last iterations, in nats per frame.
    pub free_energy: f64,
    /// What can be read off.
    pub r2: Explained,
    /// Wall time in the session that ended it, in seconds.
    pub seconds: f64,
    /// Where each frame of the test films lies.
    pub plane: Vec<(f64, f64)>,
}

/// Everything a sweep measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendulumSweepResults {
    /// The models, by increasing free energy.
    pub cells: Vec<PendulumCell>,
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: PendulumSweepRun,
    /// The version of this software.
    pub version: String,
}

impl PendulumSweepRun {
    /// Trains a model for every width and rate, several at a time, and writes `results.json` and the grid of latent spaces;
    /// goes on from what is there.
    pub fn run(
        &self,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Outcome<PendulumSweepResults>, LabError> {
        let folder = out.join("checkpoint");
        let mut clock = Clock::new(watch, &folder, self);
        let cells = self.cells();
        if cells.is_empty() {
            return Err(LabError::Invalid(
                "a sweep needs at least one width and one learning rate".into(),
            ));
        }
        for cell in &cells {
            cell.check_learning()?;
        }
        let train = self.cell.films.films(self.cell.seed, TRAIN)?;
        let sizes = Pendulum {
            sequences: self.cell.test,
            ..self.cell.films
        };
        let test = sizes.films(self.cell.seed, TEST)?;
        let (truth, test_truth) = (train.targets(), test.targets());
        let some = train.first(BEGUN_WITH);
        let (data, test_data) = (train.into_dataset()?, test.clone().into_dataset()?);
        let many = Many {
            what: format!("{} models", cells.len()),
            folder: &folder,
            names: cells
                .iter()
                .map(|c| format!("{}-{}", c.hidden, c.train.learning_rate))
                .collect(),
            settings: self,
            iterations: self.cell.train.iterations,
            threads: self.threads,
        };
        let work = |index: usize, board: &Board<'_>| {
            let (cell, start) = (&cells[index], Instant::now());
            let mut model = cell.model(&data)?;
            if !many.goes_on(index) {
                cell.begin(&mut model, &some)?;
            }
            let Some(fit) = many.train(index, &mut model, &data, &cell.train, board)? else {
                return Ok(None);
            };
            let (known, fresh) = (embed(&model, &data)?, embed(&model, &test_data)?);
            let last = &fit.records[fit.records.len().saturating_sub(LAST)..];
            Ok(Some(PendulumCell {
                hidden: cell.hidden,
                learning_rate: cell.train.learning_rate,
                free_energy: last.iter().map(|r| r.free_energy).sum::<f64>() / last.len() as f64,
                r2: explained((&known, &truth), (&fresh, &test_truth), REGRESSED)?,
                seconds: start.elapsed().as_secs_f64(),
                plane: fresh.plane,
            }))
        };
        let mut done: Vec<PendulumCell> = match many.run(&mut clock, &work)? {
            Ok(done) => done,
            Err(at) => return Ok(Outcome::Interrupted(at)),
        };
        done.sort_by(|a, b| a.free_energy.total_cmp(&b.free_energy));
        let rows = done.len().div_ceil(ROW);
        let mut figure = Figure::new(PAGE_MM, 50.0 * rows as f64).columns(ROW);
        for cell in &done {
            let drawn = Drawn {
                films: &test,
                plane: &cell.plane,
                shape: self.cell.shape,
            };
            figure = figure.panel(drawn.thumbnail()?.title(format!(
                "{} units, rate {}: {:.2} nats",
                cell.hidden, cell.learning_rate, cell.free_energy
            )));
        }
        let results = PendulumSweepResults {
            cells: done,
            seconds: clock.seconds(),
            peak_rss_mb: peak_rss_mb(),
            settings: self.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let written = figure.write(out, "sweep")?;
        let json = out.join("results.json");
        // Last: whoever sees results finds the figure too.
        write_json(&json, &results)?;
        Ok(Outcome::Done {
            results: Box::new(results),
            files: vec![json, written.svg, written.png],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::{StopAfter, done};
    use super::*;

    fn small() -> PendulumSweepRun {
        let mut run = PendulumSweepRun::new(Scale::Quick, Recipe::Ours, 2);
        (run.widths, run.rates) = (vec![4, 8], vec![1e-3, 2e-3]);
        run.cell.films = Pendulum {
            size: 10,
            sequences: 30,
            steps: 6,
        };
        run.cell.test = 10;
        run.cell.train.iterations = 12;
        run.cell.train.batch = Some(15);
        run
    }

    #[test]
    fn a_sweep_in_pieces_measures_what_a_whole_one_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = done(small().run(&folder.path().join("whole"), &mut ()).unwrap());
        assert_eq!(whole.cells.len(), 4);
        let rising = whole.cells.windows(2);
        assert!(
            rising
                .into_iter()
                .all(|w| w[0].free_energy <= w[1].free_energy)
        );
        let out = folder.path().join("pieces");
        for steps in [5, 20] {
            let stopped = small().run(&out, &mut StopAfter(steps)).unwrap();
            assert!(matches!(stopped, Outcome::Interrupted(_)));
        }
        let pieces = done(small().run(&out, &mut ()).unwrap());
        for (a, b) in whole.cells.iter().zip(&pieces.cells) {
            assert_eq!(
                (a.hidden, a.free_energy, a.r2),
                (b.hidden, b.free_energy, b.r2)
            );
        }
    }
}
