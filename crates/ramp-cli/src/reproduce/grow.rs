//! `ramp reproduce grow`: its arguments and its table.

use super::args::{LinkName, ScaleName};
use super::{cost, report};
use crate::{Ending, Failure};
use clap::{Args, ValueEnum};
use ramp_lab::experiments::grow::data::Shape;
use ramp_lab::experiments::grow::{GrowCell, GrowResults, GrowRun};
use std::path::PathBuf;

#[derive(Clone, Copy, ValueEnum)]
enum ShapeName {
    /// Latents with four observations each, joined two by two
    Balanced,
    /// Every branch half as large as the one before
    Unbalanced,
    /// One latent
    Star,
    /// Latents in a line
    Chain,
}

impl From<ShapeName> for Shape {
    fn from(name: ShapeName) -> Self {
        match name {
            ShapeName::Balanced => Shape::Balanced,
            ShapeName::Unbalanced => Shape::Unbalanced,
            ShapeName::Star => Shape::Star,
            ShapeName::Chain => Shape::Chain,
        }
    }
}

#[derive(Args)]
pub struct Grow {
    /// How large
    #[arg(long, value_enum, default_value = "quick")]
    scale: ScaleName,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for results.json and what is done so far
    #[arg(long, default_value = "out/grow")]
    out: PathBuf,
    /// A shape of trees, may be given several times [default: all]
    #[arg(long, value_enum)]
    shape: Vec<ShapeName>,
    /// A link, may be given several times [default: a straight line and the scale's]
    #[arg(long, value_enum)]
    link: Vec<LinkName>,
    /// Straight lines alone
    #[arg(long, conflicts_with = "link")]
    linear: bool,
    /// Rows, may be given several times [default: the scale's]
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..))]
    rows: Vec<u32>,
    /// Observations of a tree, may be given several times [default: the scale's]
    #[arg(long, value_parser = clap::value_parser!(u16).range(8..=1000))]
    leaves: Vec<u16>,
    /// A share of missing values, may be given several times [default: the scale's]
    #[arg(long)]
    missing: Vec<f64>,
    /// Repetitions, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: Option<u16>,
    /// Rounds of changes, in place of the scale's
    #[arg(long)]
    rounds: Option<u16>,
    /// Keep every data set as .csv beside the results, its true tree as .nwk, for other programs to try
    #[arg(long)]
    keep_tables: bool,
}

impl Grow {
    pub fn run(self) -> Result<Ending, Failure> {
        let mut run = GrowRun::new(self.scale.into(), self.seed);
        if !self.shape.is_empty() {
            run.shapes = self.shape.iter().map(|&s| s.into()).collect();
        }
        if !self.link.is_empty() {
            run.links = self.link.iter().map(|&l| Some(l.into())).collect();
        }
        if self.linear {
            run.links = vec![None];
        }
        if !self.rows.is_empty() {
            run.rows = self.rows.iter().map(|&n| n as usize).collect();
        }
        if !self.leaves.is_empty() {
            run.leaves = self.leaves.iter().map(|&n| usize::from(n)).collect();
        }
        if let Some(wrong) = self.missing.iter().find(|m| !(0.0..0.9).contains(*m)) {
            return Err(Failure::user(format!(
                "--missing takes a share from 0 up to 0.9, not {wrong}"
            )));
        }
        if !self.missing.is_empty() {
            run.missing = self.missing.clone();
        }
        run.seeds = self.seeds.map_or(run.seeds, usize::from);
        run.rounds = self.rounds.map_or(run.rounds, usize::from);
        run.keep_tables = self.keep_tables;
        report(&run, &self.out, table)
    }
}

/// The results as a person reads them: every kind of data once, means over seeds.
fn table(results: &GrowResults) -> String {
    let mut text = format!(
        "\nRobinson–Foulds distance to the true tree (exactly right, of the seeds)\n{:<12}{:<12}{:>7}{:>9}{:>8}   {:<14}{:<14}{:<14}{:<14}\n",
        "shape", "link", "rows", "missing", "leaves", "grown", "start", "joined", "clustered"
    );
    let kinds = results.cells.chunk_by(|a, b| {
        let key = |c: &GrowCell| {
            let c = &c.cell;
            (c.shape, c.link, c.rows, c.missing.to_bits(), c.leaves)
        };
        key(a) == key(b)
    });
    for cells in kinds {
        let first = &cells[0].cell;
        let of = |far: fn(&GrowCell) -> usize| {
            let mean = cells.iter().map(far).sum::<usize>() as f64 / cells.len() as f64;
            let right = cells.iter().filter(|c| far(c) == 0).count();
            format!("{mean:.1} ({right}/{})", cells.len())
        };
        text += &format!(
            "{:<12}{:<12}{:>7}{:>9}{:>8}   {:<14}{:<14}{:<14}{:<14}\n",
            first.shape.to_string(),
            first.link.map_or("linear".into(), |l| l.to_string()),
            first.rows,
            first.missing,
            first.leaves,
            of(|c| c.grown),
            of(|c| c.start),
            of(|c| c.joined),
            of(|c| c.clustered),
        );
    }
    text + &cost(&results.info)
}
