//! Beyond the paper: how the methods compare as the link and the share of noise change.

mod figures;

use crate::error::LabError;
use crate::experiments::nonlinear_tree::data::{Link, NonlinearTree};
use crate::experiments::nonlinear_tree::{Method, NonlinearTreeRun, PerMethod};
use crate::harness::style::level_means;
use crate::harness::{Clock, Experiment, Figures, RunInfo, keep, kept};
use crate::metrics::mean;
use figures::summary_figure;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The settings of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NonlinearSweepRun {
    /// The links.
    pub links: Vec<Link>,
    /// The shares of noise.
    pub noises: Vec<f64>,
    /// Repetitions of every cell, each with data and weights of its own.
    pub seeds: usize,
    /// The settings of every cell, whose link, noise and seed are replaced.
    pub cell: NonlinearTreeRun,
}

impl NonlinearSweepRun {
    fn cells(&self) -> impl Iterator<Item = NonlinearTreeRun> + '_ {
        let seeds = 0..self.seeds as u64;
        self.links.iter().flat_map(move |&link| {
            let seeds = seeds.clone();
            self.noises.iter().flat_map(move |&noise| {
                seeds.clone().map(move |more| {
                    let seed = self.cell.core.seed + more;
                    let mut cell = self.cell.clone();
                    cell.tree = NonlinearTree {
                        link,
                        noise,
                        ..cell.tree
                    };
                    cell.core.seed = seed;
                    cell.core.train.seed = seed;
                    cell.bbvi.learning.seed = seed;
                    cell.bbvi.inference.seed = seed;
                    cell
                })
            })
        })
    }
}

/// One link, one share of noise, one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepCell {
    /// The link.
    pub link: Link,
    /// The share of noise.
    pub noise: f64,
    /// The seed.
    pub seed: u64,
    /// Absolute Spearman correlations of posterior means with true latents, on fresh samples.
    pub spearman: PerMethod,
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
}

/// Everything a sweep measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NonlinearSweepResults {
    /// The cells, link by link.
    pub cells: Vec<SweepCell>,
    /// The level of every latent, 0 for the root.
    pub depth_of_latent: Vec<usize>,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<NonlinearSweepRun>,
}

impl Experiment for NonlinearSweepRun {
    type Results = NonlinearSweepResults;

    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(NonlinearSweepResults, Figures), LabError> {
        if self.links.is_empty() || self.noises.is_empty() || self.seeds == 0 {
            return Err(LabError::Invalid(
                "a sweep needs at least one link, one share of noise and one seed".into(),
            ));
        }
        let mut cells = vec![];
        for run in self.cells() {
            let NonlinearTree { link, noise, .. } = run.tree;
            let folder = folder.join(format!("{link}-{noise}-{}", run.core.seed));
            let file = folder.join("cell.json");
            let cell = match kept(&file, &run) {
                Some(cell) => cell,
                None => {
                    let prefix = format!("{link} α={noise} · ");
                    let mut own = Clock::new(clock, &folder, &run);
                    let (results, _) = run.compare(&folder, &prefix, &mut own)?;
                    let cell = SweepCell {
                        link,
                        noise,
                        seed: run.core.seed,
                        spearman: results.spearman,
                        seconds: results.info.seconds,
                    };
                    keep(&file, &run, &cell)?;
                    cell
                }
            };
            cells.push(cell);
        }
        let results = NonlinearSweepResults {
            cells,
            depth_of_latent: self.cell.tree.depth_of_latent()?,
            info: RunInfo::new(self, clock),
        };
        let figures = vec![("sweep", summary_figure(&results))];
        Ok((results, figures))
    }
}

impl NonlinearSweepResults {
    /// The correlation of a link and a share of noise: the mean over seeds and the latents of each level.
    pub fn level_means(&self, link: Link, noise: f64, method: Method) -> Vec<f64> {
        let cells = self
            .cells
            .iter()
            .filter(|c| c.link == link && c.noise == noise);
        let per_seed: Vec<Vec<f64>> = cells
            .map(|c| level_means(method(&c.spearman), &self.depth_of_latent))
            .collect();
        let levels = per_seed.first().map_or(0, Vec::len);
        (0..levels)
            .map(|level| mean(&per_seed.iter().map(|s| s[level]).collect::<Vec<_>>()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Recipe, Scale, StopAfter};

    fn small() -> NonlinearSweepRun {
        let mut run = NonlinearSweepRun::new(Scale::Quick, Recipe::Ours, 3);
        (run.links, run.noises, run.seeds) = (vec![Link::Cubic, Link::Step], vec![0.1, 0.5], 1);
        (run.cell.n, run.cell.test, run.cell.hidden) = (120, 100, vec![4]);
        run.cell.core.train.iterations = 6;
        run.cell.core.train.batch = Some(60);
        run.cell.bbvi.learning.iterations = 5;
        run.cell.bbvi.inference.iterations = 4;
        run
    }

    #[test]
    fn a_sweep_in_pieces_measures_what_a_whole_one_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = small().run(&folder.path().join("whole"), &mut ()).unwrap();
        let whole = whole.results;
        assert_eq!(whole.cells.len(), 4);
        let out = folder.path().join("pieces");
        for steps in [3, 12, 25] {
            let stopped = small().run(&out, &mut StopAfter(steps));
            assert!(matches!(stopped, Err(LabError::Interrupted { .. })));
        }
        let pieces = small().run(&out, &mut ()).unwrap().results;
        for (a, b) in whole.cells.iter().zip(&pieces.cells) {
            assert_eq!(
                (a.link, a.noise, &a.spearman),
                (b.link, b.noise, &b.spearman)
            );
        }
    }

    #[test]
    fn an_empty_sweep_is_refused() {
        let empty = NonlinearSweepRun {
            noises: vec![],
            ..small()
        };
        assert!(empty.run(Path::new("nowhere"), &mut ()).is_err());
    }
}
