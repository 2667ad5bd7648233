//! `ramp reproduce pendulum`: its words and its table.

use super::words::{Choice, Tuning};
use super::{cost, tell};
use crate::{Ending, Failure};
use clap::Args;
use ramp_lab::experiments::pendulum::{PendulumResults, PendulumRun};
use std::path::PathBuf;

#[derive(Args)]
pub struct Pendulum {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, figures and the checkpoint
    #[arg(long, default_value = "out/pendulum")]
    out: PathBuf,
    /// Pixels on a side of a frame, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(8..=512))]
    size: Option<u16>,
    /// Frames in a film, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..))]
    steps: Option<u16>,
    /// Hidden units of every network, in place of the recipe's
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    hidden: Option<u16>,
    #[command(flatten)]
    tuning: Tuning,
}

impl Pendulum {
    fn settings(&self) -> PendulumRun {
        let choice = &self.choice;
        let mut run = PendulumRun::new(choice.scale(), choice.recipe(), choice.seed);
        run.films.size = self.size.map_or(run.films.size, usize::from);
        run.films.steps = self.steps.map_or(run.films.steps, usize::from);
        if let Some(width) = self.hidden {
            run.hidden = vec![width.into()];
        }
        self.tuning
            .apply(&mut run.films.sequences, &mut run.view, &mut run.train);
        run.threads = choice.threads();
        run
    }

    pub fn run(self) -> Result<Ending, Failure> {
        let settings = self.settings();
        tell(|watch| settings.run(&self.out, watch), table)
    }
}

/// The results as a person reads them.
fn table(results: &PendulumResults) -> String {
    let mut text = format!("\n{:<10}{:>10}{:>10}{:>10}\n", "R²", "cos θ", "sin θ", "ω");
    for (who, r2) in [("training", results.r2.train), ("test", results.r2.test)] {
        text += &format!("{who:<10}{:>10.4}{:>10.4}{:>10.4}\n", r2[0], r2[1], r2[2]);
    }
    text + &cost(results.seconds, results.peak_rss_mb)
}
