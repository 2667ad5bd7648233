//! `ramp reproduce linear-tree`: its arguments and its table.

use super::args::{BbviArgs, Choice, Tuning};
use super::{cost, report, trained};
use crate::{Ending, Failure};
use clap::Args;
use ramp_lab::experiments::linear_tree::{LinearTreeResults, LinearTreeRun};
use std::path::PathBuf;

#[derive(Args)]
pub struct LinearTree {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, figures and the checkpoint
    #[arg(long, default_value = "out/linear-tree")]
    out: PathBuf,
    #[command(flatten)]
    tuning: Tuning,
    #[command(flatten)]
    bbvi: BbviArgs,
}

impl LinearTree {
    fn settings(&self) -> LinearTreeRun {
        let choice = &self.choice;
        let mut run = LinearTreeRun::new(choice.scale(), choice.recipe(), choice.seed);
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
fn table(results: &LinearTreeResults) -> String {
    let mut text = format!(
        "\n{:<8}{:>12}{:>10}{:>10}{:>10}   {:>12}{:>10}{:>12}\n{:<8}{:>12}{:>10}{:>10}{:>10}   {:>12}{:>10}{:>12}\n",
        "",
        "correlation",
        "",
        "",
        "",
        "posterior",
        "variance",
        "",
        "latent",
        "RAMP",
        "exact",
        "gap",
        "BBVI",
        "RAMP",
        "exact",
        "mean-field"
    );
    for k in 0..results.corr.ramp.len() {
        let (ramp, exact) = (results.corr.ramp[k], results.corr.exact[k]);
        text += &format!(
            "{:<8}{ramp:>12.4}{exact:>10.4}{:>10.4}{:>10.4}   {:>12.4}{:>10.4}{:>12.4}\n",
            format!("z{}", k + 1),
            exact - ramp,
            results.corr.bbvi[k],
            results.variance.ramp[k],
            results.variance.exact[k],
            results.variance.mean_field[k],
        );
    }
    text + &trained(&results.training, results.bbvi_seconds) + &cost(&results.info)
}
