//! `ramp reproduce nonlinear-sweep`: its arguments and its table.

use super::args::{BbviArgs, Choice, LinkName, Tuning};
use super::{cost, report};
use crate::{Ending, Failure};
use clap::Args;
use ramp_lab::experiments::nonlinear_sweep::{NonlinearSweepResults, NonlinearSweepRun};
use ramp_lab::experiments::nonlinear_tree::Method;
use std::path::PathBuf;

#[derive(Args)]
pub struct NonlinearSweep {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, the figure and the checkpoints
    #[arg(long, default_value = "out/nonlinear-sweep")]
    out: PathBuf,
    /// A link, may be given several times [default: all]
    #[arg(long, value_enum)]
    link: Vec<LinkName>,
    /// A share α of noise, may be given several times [default: the scale's]
    #[arg(long, allow_negative_numbers = true)]
    noise: Vec<f64>,
    /// Repetitions of every cell, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: Option<u16>,
    #[command(flatten)]
    tuning: Tuning,
    #[command(flatten)]
    bbvi: BbviArgs,
}

impl NonlinearSweep {
    fn settings(&self) -> NonlinearSweepRun {
        let choice = &self.choice;
        let mut run = NonlinearSweepRun::new(choice.scale(), choice.recipe(), choice.seed);
        if !self.link.is_empty() {
            run.links = self.link.iter().map(|&link| link.into()).collect();
        }
        if !self.noise.is_empty() {
            run.noises = self.noise.clone();
        }
        run.seeds = self.seeds.map_or(run.seeds, usize::from);
        let cell = &mut run.cell;
        self.tuning.apply(&mut cell.n, &mut cell.core);
        self.bbvi.apply(&mut cell.bbvi);
        run
    }

    pub fn run(self) -> Result<Ending, Failure> {
        let settings = self.settings();
        report(&settings, &self.out, table)
    }
}

/// The results as a person reads them.
fn table(results: &NonlinearSweepResults) -> String {
    let mut text = format!(
        "\nSpearman with z, mean of each level from the root down\n{:<16}{:>6}   {:<22}{:<22}{:<22}\n",
        "link", "α", "RAMP", "Gaussian", "BBVI"
    );
    let levels = |values: Vec<f64>| {
        let numbers: Vec<String> = values.iter().map(|v| format!("{v:.3}")).collect();
        numbers.join("  ")
    };
    for &link in &results.info.settings.links {
        for &noise in &results.info.settings.noises {
            let of = |method: Method| levels(results.level_means(link, noise, method));
            text += &format!(
                "{:<16}{noise:>6}   {:<22}{:<22}{:<22}\n",
                link.to_string(),
                of(|m| &m.ramp),
                of(|m| &m.gaussian),
                of(|m| &m.bbvi),
            );
        }
    }
    text + &cost(&results.info)
}
