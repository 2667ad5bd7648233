//! `ramp reproduce misspecified-tree`: its arguments and its table.

use super::args::{Choice, Tuning};
use super::{cost, report};
use crate::{Ending, Failure};
use clap::Args;
use ramp_lab::experiments::misspecified_tree::{MisspecifiedTreeResults, MisspecifiedTreeRun};
use std::path::PathBuf;

#[derive(Args)]
pub struct MisspecifiedTree {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, figures and the checkpoints
    #[arg(long, default_value = "out/misspecified-tree")]
    out: PathBuf,
    /// Perturbed trees for every number of interchanges, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    trees: Option<u16>,
    /// The most interchanges between a perturbed tree and the true one
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(0..=100))]
    most_moves: u16,
    #[command(flatten)]
    tuning: Tuning,
}

impl MisspecifiedTree {
    fn settings(&self) -> MisspecifiedTreeRun {
        let choice = &self.choice;
        let mut run = MisspecifiedTreeRun::new(choice.scale(), choice.recipe(), choice.seed);
        run.trees = self.trees.map_or(run.trees, usize::from);
        run.most_moves = usize::from(self.most_moves);
        self.tuning.apply(&mut run.n, &mut run.core);
        run
    }

    pub fn run(self) -> Result<Ending, Failure> {
        let settings = self.settings();
        report(&settings, &self.out, table)
    }
}

/// The results as a person reads them.
fn table(results: &MisspecifiedTreeResults) -> String {
    let widest = results.largest_mismatch();
    let depths = results.latents.iter().map(|l| l.depth).max().unwrap_or(0);
    let mut text = format!(
        "\nmedian correlation with the matched latent (and how many)\n{:<8}{:>10}",
        "level", "true tree"
    );
    for mismatch in 0..=widest {
        text += &format!("{:>14}", format!("mismatch {mismatch}"));
    }
    text.push('\n');
    for depth in 0..=depths {
        text += &format!("{depth:<8}{:>10.4}", results.unperturbed(depth));
        for mismatch in 0..=widest {
            let (median, count) = results.perturbed_median(depth, mismatch);
            let cell = if count > 0 {
                format!("{median:.4} ({count})")
            } else {
                "–".into()
            };
            text += &format!("{cell:>14}");
        }
        text.push('\n');
    }
    text + &format!("{} trees, {}", results.trees.len(), cost(&results.info))
}
