//! `ramp reproduce pendulum-sweep`: its arguments and its table.

use super::args::{Choice, Sequences, Tuning};
use super::pendulum::VideoArgs;
use super::{cost, report};
use crate::{Ending, Failure};
use clap::Args;
use ramp_lab::experiments::pendulum_sweep::{PendulumSweepResults, PendulumSweepRun};
use std::path::PathBuf;

#[derive(Args)]
pub struct PendulumSweep {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, the figure and the checkpoints
    #[arg(long, default_value = "out/pendulum-sweep")]
    out: PathBuf,
    /// Hidden units of every network, may be given several times [default: the scale's]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    hidden: Vec<u16>,
    /// A learning rate, may be given several times [default: the scale's]
    #[arg(long = "rate", allow_negative_numbers = true)]
    rates: Vec<f64>,
    #[command(flatten)]
    videos: VideoArgs,
    #[command(flatten)]
    tuning: Tuning<Sequences>,
}

impl PendulumSweep {
    fn settings(&self) -> PendulumSweepRun {
        let choice = &self.choice;
        let mut run = PendulumSweepRun::new(choice.scale(), choice.recipe(), choice.seed);
        if !self.hidden.is_empty() {
            run.widths = self.hidden.iter().map(|&n| n.into()).collect();
        }
        let rates = self.rates.iter().copied();
        let rates: Vec<f64> = rates.chain(self.tuning.learning_rate).collect();
        if !rates.is_empty() {
            run.rates = rates;
        }
        let cell = &mut run.cell;
        self.videos.apply(&mut cell.videos);
        self.tuning
            .apply(&mut cell.videos.sequences, &mut cell.core);
        run
    }

    pub fn run(self) -> Result<Ending, Failure> {
        let settings = self.settings();
        report(&settings, &self.out, table)
    }
}

/// The results as a person reads them.
fn table(results: &PendulumSweepResults) -> String {
    let mut text = format!(
        "\n{:>6}{:>8}{:>14}{:>10}{:>10}{:>10}\n",
        "units", "rate", "free energy", "cos θ", "sin θ", "ω"
    );
    for cell in &results.cells {
        let r2 = cell.r2.test;
        text += &format!(
            "{:>6}{:>8}{:>14.3}{:>10.4}{:>10.4}{:>10.4}\n",
            cell.hidden, cell.learning_rate, cell.free_energy, r2[0], r2[1], r2[2]
        );
    }
    text + "free energy in nats per frame, R² on test videos; " + &cost(&results.info)
}
