//! `ramp reproduce nonlinear-tree`: its arguments and its table.

use super::args::{BbviArgs, Choice, LinkName, Tuning};
use super::{cost, report, trained};
use crate::{Ending, Failure};
use clap::Args;
use ramp_lab::experiments::nonlinear_tree::{NonlinearTreeResults, NonlinearTreeRun};
use std::path::PathBuf;

#[derive(Args)]
pub struct NonlinearTree {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, figures and the checkpoint
    #[arg(long, default_value = "out/nonlinear-tree")]
    out: PathBuf,
    /// How a parent acts on its children
    #[arg(long, value_enum, default_value = "reciprocal")]
    link: LinkName,
    /// The share α of noise in the variance of every node
    #[arg(long, default_value_t = 0.2, allow_negative_numbers = true)]
    noise: f64,
    #[command(flatten)]
    tuning: Tuning,
    #[command(flatten)]
    bbvi: BbviArgs,
}

impl NonlinearTree {
    fn settings(&self) -> NonlinearTreeRun {
        let choice = &self.choice;
        let mut run = NonlinearTreeRun::new(choice.scale(), choice.recipe(), choice.seed);
        run.tree.link = self.link.into();
        run.tree.noise = self.noise;
        self.tuning.apply(&mut run.n, &mut run.core);
        self.bbvi.apply(&mut run.bbvi);
        run
    }

    pub fn run(self) -> Result<Ending, Failure> {
        let settings = self.settings();
        report(&settings, &self.out, table)
    }
}

/// The results as a person reads them.
fn table(results: &NonlinearTreeResults) -> String {
    let mut text = format!(
        "\n{:<8}{:>10}{:>10}{:>10}   {:>10}{:>10}{:>10}\n{:<8}{:>10}{:>10}{:>10}   {:>10}{:>10}{:>10}\n",
        "",
        "Spearman",
        "with z",
        "",
        "Pearson",
        "with 1/z",
        "",
        "latent",
        "RAMP",
        "Gaussian",
        "BBVI",
        "RAMP",
        "Gaussian",
        "BBVI"
    );
    let (rank, reciprocal) = (&results.spearman, &results.pearson_reciprocal);
    for k in 0..rank.ramp.len() {
        text += &format!(
            "{:<8}{:>10.4}{:>10.4}{:>10.4}   {:>10.4}{:>10.4}{:>10.4}\n",
            format!("z{}", k + 1),
            rank.ramp[k],
            rank.gaussian[k],
            rank.bbvi[k],
            reciprocal.ramp[k],
            reciprocal.gaussian[k],
            reciprocal.bbvi[k],
        );
    }
    text + &trained(&results.training, results.bbvi_seconds) + &cost(&results.info)
}
