//! Beyond the paper: a tree from data alone, beside neighbour joining and hierarchical clustering, over shapes, links, rows, gaps and sizes.

mod baselines;
pub mod data;

use crate::error::LabError;
use crate::experiments::nonlinear_tree::data::Link;
use crate::harness::{Clock, Experiment, Figures, RunInfo, Scale, Step, Watch, keep, kept};
use data::Shape;
use ramp::graph::FactorTree;
use ramp::train::Control;
use ramp_io::Origin;
use ramp_io::grow::{GrowSettings, Sketch, grow};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Mutex;

/// The settings of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowRun {
    /// What trees look like.
    pub shapes: Vec<Shape>,
    /// How parents act on children; none is a straight line.
    pub links: Vec<Option<Link>>,
    /// Rows of the data.
    pub rows: Vec<usize>,
    /// Shares of missing values.
    pub missing: Vec<f64>,
    /// Observations of a tree.
    pub leaves: Vec<usize>,
    /// Repetitions, each with data of its own.
    pub seeds: usize,
    /// The first seed.
    pub seed: u64,
    /// Rounds of changes by the yardstick; none is neighbour joining with short edges contracted.
    pub rounds: usize,
    /// Trees of the bootstrap.
    pub bootstraps: usize,
    /// Whether every data set stays beside the results, with its true tree in Newick's notation, for other programs to try.
    #[serde(default)]
    pub keep_tables: bool,
}

impl GrowRun {
    /// The settings of a scale.
    pub fn new(scale: Scale, seed: u64) -> Self {
        match scale {
            Scale::Quick => GrowRun {
                shapes: Shape::ALL.to_vec(),
                links: vec![None, Some(Link::Step)],
                rows: vec![1000],
                missing: vec![0.0, 0.15],
                leaves: vec![8, 16],
                seeds: 2,
                seed,
                rounds: 0,
                bootstraps: 50,
                keep_tables: false,
            },
            Scale::Paper => GrowRun {
                shapes: Shape::ALL.to_vec(),
                links: vec![None, Some(Link::Reciprocal), Some(Link::Step)],
                rows: vec![1000, 10_000, 20_000],
                missing: vec![0.0, 0.15],
                leaves: vec![8, 16, 40],
                seeds: 10,
                seed,
                rounds: 3,
                bootstraps: 100,
                keep_tables: false,
            },
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![];
        for &shape in &self.shapes {
            for &link in &self.links {
                for &rows in &self.rows {
                    for &missing in &self.missing {
                        for &leaves in &self.leaves {
                            cells.extend((0..self.seeds as u64).map(|more| Cell {
                                shape,
                                link,
                                rows,
                                missing,
                                leaves,
                                seed: self.seed + more,
                                rounds: self.rounds,
                                bootstraps: self.bootstraps,
                            }));
                        }
                    }
                }
            }
        }
        cells
    }
}

/// One data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What the tree looks like.
    pub shape: Shape,
    /// How parents act on children.
    pub link: Option<Link>,
    /// Rows.
    pub rows: usize,
    /// The share of missing values.
    pub missing: f64,
    /// Observations.
    pub leaves: usize,
    /// The seed.
    pub seed: u64,
    rounds: usize,
    bootstraps: usize,
}

/// How far the tree of each method is from the truth, as Robinson and Foulds count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowCell {
    /// The data set.
    pub cell: Cell,
    /// The grown tree.
    pub grown: usize,
    /// Where its search began: neighbour joining with short edges contracted.
    pub start: usize,
    /// Neighbour joining alone.
    pub joined: usize,
    /// Average linkage.
    pub clustered: usize,
    /// Inner edges of the true tree.
    pub inner: usize,
    /// Seconds of growing.
    pub seconds: f64,
}

/// Everything the experiment measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrowResults {
    /// The cells.
    pub cells: Vec<GrowCell>,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<GrowRun>,
}

impl Experiment for GrowRun {
    type Results = GrowResults;

    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(GrowResults, Figures), LabError> {
        let all = self.cells();
        if all.is_empty() {
            return Err(LabError::Invalid(
                "growing trees needs at least one shape, link, number of rows, share of missing values, number of leaves and seed"
                    .into(),
            ));
        }
        let mut cells = vec![];
        clock.start("growing trees", 0, all.len());
        for (i, cell) in all.iter().enumerate() {
            let file = folder.join(format!("{}.json", cell.name()));
            let done = match kept(&file, cell) {
                Some(done) => done,
                None => {
                    let done = cell.measure(folder, self.keep_tables, (i, all.len()), clock)?;
                    keep(&file, cell, &done)?;
                    done
                }
            };
            let step = Step {
                iteration: i + 1,
                // There is none of a tree.
                free_energy: f64::NAN,
                held_out: None,
            };
            cells.push(done);
            if clock.step(step) == Control::Stop && i + 1 < all.len() {
                return Err(stopped(i + 1, all.len()));
            }
        }
        let results = GrowResults {
            cells,
            info: RunInfo::new(self, clock),
        };
        Ok((results, vec![]))
    }
}

fn stopped(iteration: usize, iterations: usize) -> LabError {
    LabError::Interrupted {
        what: "growing trees".into(),
        iteration,
        iterations,
    }
}

impl Cell {
    fn name(&self) -> String {
        let link = self.link.map_or("linear".into(), |l| l.to_string());
        format!(
            "{}-{link}-{}-{}-{}-{}",
            self.shape, self.rows, self.missing, self.leaves, self.seed
        )
    }

    fn measure(
        &self,
        folder: &Path,
        keep_table: bool,
        (at, all): (usize, usize),
        clock: &mut Clock<'_, GrowRun>,
    ) -> Result<GrowCell, LabError> {
        let truth = self.shape.tree(self.leaves)?;
        let columns = data::draw(&truth, self.link, self.rows, self.missing, self.seed);
        let names: Vec<String> = truth
            .observations()
            .iter()
            .map(|&o| truth.name(o).to_owned())
            .collect();
        let file = folder.join(format!("{}.csv", self.name()));
        std::fs::create_dir_all(folder).map_err(|e| LabError::Invalid(e.to_string()))?;
        ramp::storage::write_atomically(&file, table(&names, &columns).as_bytes())?;
        let settings = GrowSettings {
            rounds: self.rounds,
            bootstraps: self.bootstraps,
            seed: self.seed,
            ..GrowSettings::default()
        };
        let begun = std::time::Instant::now();
        let watch = Mutex::new(clock);
        let progress = |_| {
            let step = Step {
                iteration: at,
                free_energy: f64::NAN,
                held_out: None,
            };
            // Whoever panicked while watching does not stop the others.
            let mut watch = watch.lock().unwrap_or_else(|e| e.into_inner());
            watch.step(step) == Control::Stop
        };
        let data = Origin::file(&file);
        let grown = grow(&data, &settings, None, &mut |_| Ok(()), &progress)
            .map_err(|e| LabError::Invalid(e.to_string()))?;
        let seconds = begun.elapsed().as_secs_f64();
        if keep_table {
            let tree = truth.to_newick().map_err(ramp::Error::from)? + "\n";
            ramp::storage::write_atomically(&file.with_extension("nwk"), tree.as_bytes())?;
        } else {
            // The data are drawn again where they are needed.
            let _ = std::fs::remove_file(&file);
        }
        let Some(grown) = grown else {
            return Err(stopped(at, all));
        };
        let far = |tree: &FactorTree| truth.robinson_foulds(tree).map_err(ramp::Error::from);
        let of = |sketch: Sketch| -> Result<usize, LabError> {
            let latents: Vec<(usize, String)> = sketch
                .inner()
                .into_iter()
                .map(|node| (node, format!("z{node}")))
                .collect();
            let tree = sketch.tree(&names, &latents).map_err(ramp::Error::from)?;
            Ok(far(&tree)?)
        };
        Ok(GrowCell {
            cell: self.clone(),
            grown: far(&grown.tree)?,
            start: far(&grown.start)?,
            joined: of(baselines::joined(&columns))?,
            clustered: of(baselines::clustered(&columns))?,
            inner: truth.splits().len(),
            seconds,
        })
    }
}

/// Columns as text.
fn table(names: &[String], columns: &[Vec<f32>]) -> String {
    let mut text = names.join(",") + "\n";
    for row in 0..columns[0].len() {
        let cells: Vec<String> = columns
            .iter()
            .map(|c| match c[row].is_nan() {
                true => String::new(),
                false => c[row].to_string(),
            })
            .collect();
        text += &cells.join(",");
        text.push('\n');
    }
    text
}
