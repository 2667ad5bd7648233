//! Beyond the paper: how the methods compare as the link and the share of noise change.

use super::clock::Clock;
use super::latents::{BBVI_COLOR, GAUSSIAN_COLOR, RAMP_COLOR, level_means, level_names};
use super::nonlinear_tree::NonlinearTreeRun;
use super::run::{
    Method, Outcome, PerMethod, Piece, Recipe, Scale, Watch, keep, kept, peak_rss_mb, write_json,
};
use crate::error::LabError;
use crate::figure::{Figure, Legend, Marker, PAGE_MM, Panel, Shape, Stroke};
use crate::metrics::mean;
use crate::nonlinear_data::{Link, NonlinearTree};
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
    /// The settings of a scale and a recipe.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let mut cell = NonlinearTreeRun::new(scale, recipe, seed);
        let (noises, seeds) = match scale {
            Scale::Paper => {
                // So many cells: a quarter of the Monte Carlo samples.
                cell.bbvi.learning.samples /= 4;
                cell.bbvi.inference.samples /= 4;
                (vec![0.05, 0.1, 0.2, 0.4, 0.7], 1)
            }
            Scale::Quick => {
                cell.n = 4000;
                cell.test = 4000;
                cell.hidden = vec![32, 32];
                cell.train.iterations = 240;
                cell.train.warmup = 80;
                cell.train.learning_rate = 3e-3;
                cell.train.batch = Some(500);
                cell.bbvi.n = 1000;
                cell.bbvi.learning.iterations = 500;
                cell.bbvi.learning.samples = 16;
                cell.bbvi.inference.iterations = 100;
                cell.bbvi.inference.samples = 8;
                (vec![0.1, 0.2, 0.5], 1)
            }
        };
        NonlinearSweepRun {
            links: Link::ALL.to_vec(),
            noises,
            seeds,
            cell,
        }
    }

    fn cells(&self) -> impl Iterator<Item = NonlinearTreeRun> + '_ {
        let seeds = 0..self.seeds as u64;
        self.links.iter().flat_map(move |&link| {
            let seeds = seeds.clone();
            self.noises.iter().flat_map(move |&noise| {
                seeds.clone().map(move |more| {
                    let seed = self.cell.seed + more;
                    let mut cell = self.cell.clone();
                    cell.tree = NonlinearTree {
                        link,
                        noise,
                        ..cell.tree
                    };
                    cell.seed = seed;
                    cell.train.seed = seed;
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
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: NonlinearSweepRun,
    /// The version of this software.
    pub version: String,
}

impl NonlinearSweepRun {
    /// Runs every cell and writes `results.json` and the summary figure; goes on from the cells that are there.
    pub fn run(
        &self,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Outcome<NonlinearSweepResults>, LabError> {
        let folder = out.join("checkpoint");
        let mut clock = Clock::new(watch, &folder, self);
        if self.links.is_empty() || self.noises.is_empty() || self.seeds == 0 {
            return Err(LabError::Invalid(
                "a sweep needs at least one link, one share of noise and one seed".into(),
            ));
        }
        let mut cells = vec![];
        for cell in self.cells() {
            let NonlinearTree { link, noise, .. } = cell.tree;
            let folder = folder.join(format!("{link}-{noise}-{}", cell.seed));
            let file = folder.join("cell.json");
            let stored: Option<SweepCell> = kept(&file, &cell);
            let done = match stored {
                Some(stored) => stored,
                None => {
                    let prefix = format!("{link} α={noise} · ");
                    match cell.measure(&folder, &prefix, &mut clock)? {
                        Piece::Interrupted(at) => return Ok(Outcome::Interrupted(at)),
                        Piece::Done((results, _)) => {
                            let done = SweepCell {
                                link,
                                noise,
                                seed: cell.seed,
                                spearman: results.spearman,
                                seconds: results.seconds,
                            };
                            keep(&file, &cell, &done)?;
                            done
                        }
                    }
                }
            };
            cells.push(done);
        }
        let results = NonlinearSweepResults {
            cells,
            depth_of_latent: self.cell.tree.depth_of_latent()?,
            seconds: clock.seconds(),
            peak_rss_mb: peak_rss_mb(),
            settings: self.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let figure = summary_figure(&results).write(out, "sweep")?;
        let json = out.join("results.json");
        write_json(&json, &results)?;
        Ok(Outcome::Done {
            results: Box::new(results),
            files: vec![json, figure.svg, figure.png],
        })
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

/// A row per level, a column per link: correlation against the share of noise for every method.
fn summary_figure(results: &NonlinearSweepResults) -> Figure {
    let links = &results.settings.links;
    let levels = level_names(&results.depth_of_latent);
    let mut figure = Figure::new(PAGE_MM, 42.0 * levels.len() as f64 + 8.0).columns(links.len());
    let methods: [(&str, Method, _, _); 3] = [
        ("RAMP", |m| &m.ramp, RAMP_COLOR, Shape::Disc),
        ("BBVI", |m| &m.bbvi, BBVI_COLOR, Shape::Square),
        ("Gaussian", |m| &m.gaussian, GAUSSIAN_COLOR, Shape::Triangle),
    ];
    let noises = &results.settings.noises;
    let least = noises.iter().copied().fold(f64::INFINITY, f64::min);
    let most = noises.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (level, (_, name)) in levels.iter().enumerate() {
        for (column, &link) in links.iter().enumerate() {
            let last = level + 1 == levels.len();
            let mut panel = Panel::new()
                .y_range(0.0, 1.0)
                .x_range(least - 0.04, most + 0.04)
                .legend(if level == 0 && column + 1 == links.len() {
                    Legend::Right
                } else {
                    Legend::Hidden
                });
            if level == 0 {
                panel = panel.title(link.formula());
            }
            if last {
                panel = panel.x_label("Noise α");
            }
            if column == 0 {
                panel = panel.y_label(format!("|Spearman|, {name}"));
            }
            for (method, pick, color, shape) in methods {
                let points: Vec<(f64, f64)> = noises
                    .iter()
                    .map(|&noise| (noise, results.level_means(link, noise, pick)[level]))
                    .collect();
                panel = panel
                    .line(points.iter().copied(), Stroke::new(color))
                    .named(method)
                    .points(points, Marker::new(shape, color).size(3.2))
                    .named(method);
            }
            figure = figure.panel(panel);
        }
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::{StopAfter, done};
    use super::*;

    fn small() -> NonlinearSweepRun {
        let mut run = NonlinearSweepRun::new(Scale::Quick, Recipe::Ours, 3);
        (run.links, run.noises, run.seeds) = (vec![Link::Cubic, Link::Step], vec![0.1, 0.5], 1);
        (run.cell.n, run.cell.test, run.cell.hidden) = (120, 100, vec![4]);
        run.cell.train.iterations = 6;
        run.cell.train.batch = Some(60);
        run.cell.bbvi.learning.iterations = 5;
        run.cell.bbvi.inference.iterations = 4;
        run
    }

    #[test]
    fn a_sweep_in_pieces_measures_what_a_whole_one_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = done(small().run(&folder.path().join("whole"), &mut ()).unwrap());
        assert_eq!(whole.cells.len(), 4);
        let out = folder.path().join("pieces");
        for steps in [3, 12, 25] {
            let stopped = small().run(&out, &mut StopAfter(steps)).unwrap();
            assert!(matches!(stopped, Outcome::Interrupted(_)));
        }
        let pieces = done(small().run(&out, &mut ()).unwrap());
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
