//! The pendulum over widths of networks and learning rates (paper, "Pendulum", hyperparameter sweep).

use crate::error::LabError;
use crate::experiments::pendulum::PendulumRun;
use crate::experiments::pendulum::figures::Drawn;
use crate::experiments::pendulum::probe::{StateR2, embed, probe};
use crate::figure::{Figure, PAGE_MM};
use crate::harness::{Clock, Experiment, Figures, Progress, RunInfo, Sweep};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// Frames that the probes are fitted to.
const PROBED: usize = 2000;
/// Iterations at the end whose free energies are averaged.
const LAST: usize = 50;
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
    fn cells(&self) -> Vec<PendulumRun> {
        let each = self.widths.iter().flat_map(|&hidden| {
            self.rates.iter().map(move |&rate| {
                let mut cell = PendulumRun {
                    hidden,
                    ..self.cell.clone()
                };
                cell.core.train.learning_rate = rate;
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
    /// R² of the probe.
    pub r2: StateR2,
    /// Wall time in the session that ended it, in seconds.
    pub seconds: f64,
    /// Where each frame of the test videos lies.
    pub plane: Vec<(f64, f64)>,
}

/// Everything a sweep measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendulumSweepResults {
    /// The models, by increasing free energy.
    pub cells: Vec<PendulumCell>,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<PendulumSweepRun>,
}

impl Experiment for PendulumSweepRun {
    type Results = PendulumSweepResults;

    /// Trains a model for every width and rate, several at a time.
    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(PendulumSweepResults, Figures), LabError> {
        let cells = self.cells();
        if cells.is_empty() {
            return Err(LabError::Invalid(
                "a sweep needs at least one width and one learning rate".into(),
            ));
        }
        for cell in &cells {
            cell.check_learning()?;
        }
        let (train, test) = self.cell.draw_videos()?;
        let (truth, test_truth) = (train.targets(), test.targets());
        let (data, test_data) = (train.into_dataset()?, test.clone().into_dataset()?);
        let sweep = Sweep {
            what: format!("{} models", cells.len()),
            folder,
            names: cells
                .iter()
                .map(|c| format!("{}-{}", c.hidden, c.core.train.learning_rate))
                .collect(),
            settings: self,
            iterations: self.cell.core.train.iterations,
            threads: self.threads,
        };
        let work = |index: usize, progress: &Progress<'_>| {
            let (cell, start) = (&cells[index], Instant::now());
            let mut model = cell.model(&data)?;
            if !sweep.goes_on(index) {
                cell.initialise(&mut model, &data, &mut ())?;
            }
            let fit = sweep.train(index, &mut model, &data, &cell.core.train, progress)?;
            let (known, fresh) = (embed(&model, &data)?, embed(&model, &test_data)?);
            let last = &fit.records[fit.records.len().saturating_sub(LAST)..];
            Ok(PendulumCell {
                hidden: cell.hidden,
                learning_rate: cell.core.train.learning_rate,
                free_energy: last.iter().map(|r| r.free_energy).sum::<f64>() / last.len() as f64,
                r2: probe((&known, &truth), (&fresh, &test_truth), PROBED)?,
                seconds: start.elapsed().as_secs_f64(),
                plane: fresh.plane,
            })
        };
        let mut cells: Vec<PendulumCell> = sweep.run(clock, &work)?;
        cells.sort_by(|a, b| a.free_energy.total_cmp(&b.free_energy));
        let rows = cells.len().div_ceil(ROW);
        let mut figure = Figure::new(PAGE_MM, 50.0 * rows as f64).columns(ROW);
        for cell in &cells {
            let drawn = Drawn {
                videos: &test,
                plane: &cell.plane,
                shape: self.cell.shape,
            };
            figure = figure.panel(drawn.thumbnail()?.title(format!(
                "{} units, rate {}: {:.2} nats",
                cell.hidden, cell.learning_rate, cell.free_energy
            )));
        }
        let results = PendulumSweepResults {
            cells,
            info: RunInfo::new(self, clock),
        };
        Ok((results, vec![("sweep", figure)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::pendulum::data::Pendulum;
    use crate::harness::{Recipe, Scale, StopAfter};

    fn small() -> PendulumSweepRun {
        let mut run = PendulumSweepRun::new(Scale::Quick, Recipe::Ours, 2);
        (run.widths, run.rates) = (vec![4, 8], vec![1e-3, 2e-3]);
        run.cell.videos = Pendulum {
            size: 10,
            sequences: 30,
            steps: 6,
        };
        run.cell.test = 10;
        run.cell.core.train.iterations = 12;
        run.cell.core.train.batch = Some(15);
        run
    }

    #[test]
    fn a_sweep_in_pieces_measures_what_a_whole_one_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = small().run(&folder.path().join("whole"), &mut ()).unwrap();
        let whole = whole.results;
        assert_eq!(whole.cells.len(), 4);
        let rising = whole.cells.windows(2);
        assert!(
            rising
                .into_iter()
                .all(|w| w[0].free_energy <= w[1].free_energy)
        );
        let out = folder.path().join("pieces");
        for steps in [5, 20] {
            let stopped = small().run(&out, &mut StopAfter(steps));
            assert!(matches!(stopped, Err(LabError::Interrupted { .. })));
        }
        let pieces = small().run(&out, &mut ()).unwrap().results;
        for (a, b) in whole.cells.iter().zip(&pieces.cells) {
            assert_eq!(
                (a.hidden, a.free_energy, a.r2),
                (b.hidden, b.free_energy, b.r2)
            );
        }
    }
}
