//! `ramp reproduce calibration`: its arguments and its table.

use super::args::{Choice, Tuning};
use super::{cost, report};
use crate::{Ending, Failure};
use clap::{Args, ValueEnum};
use ramp_lab::experiments::calibration::data::Case;
use ramp_lab::experiments::calibration::{CalibrationResults, CalibrationRun, Of};
use std::path::PathBuf;

/// A case as people choose it.
#[derive(Clone, Copy)]
struct CaseName(Case);

impl ValueEnum for CaseName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [CaseName; Case::ALL.len()] = {
            let mut all = [CaseName(Case::LinearTree); Case::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = CaseName(Case::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

#[derive(Args)]
pub struct Calibration {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, the figure and checkpoints
    #[arg(long, default_value = "out/calibration")]
    out: PathBuf,
    /// A tree, chain or family, may be given several times [default: all]
    #[arg(long, value_enum)]
    case: Vec<CaseName>,
    /// Fresh samples, in place of the scale's: each gives a rank of every kind
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..))]
    test: Option<u32>,
    #[command(flatten)]
    tuning: Tuning,
}

impl Calibration {
    pub fn run(self) -> Result<Ending, Failure> {
        let choice = &self.choice;
        let mut run = CalibrationRun::new(choice.scale(), choice.seed);
        if !self.case.is_empty() {
            run.cases = self.case.iter().map(|name| name.0).collect();
        }
        run.test = self.test.map_or(run.test, |test| test as usize);
        self.tuning.apply(&mut run.n, &mut run.core);
        report(&run, &self.out, table)
    }
}

/// The results as a person reads them.
fn table(results: &CalibrationResults) -> String {
    let mut text = format!(
        "\n{:<19}{:<14}{:>7}{:>18}{:>18}{:>9}   {}\n",
        "case", "rank of", "ranks", "shift", "spread", "p", "spreads x 0.9 and x 1.1"
    );
    for case in &results.cases {
        for (i, ranks) in case.ranks.iter().enumerate() {
            let found = &ranks.calibration;
            let of = match ranks.of {
                Of::Latents => "latents",
                Of::HiddenCells => "hidden cells",
                Of::Forecasts => "forecasts",
            };
            let noticed = |p: f64| if p < 0.001 { "noticed" } else { "not noticed" };
            text += &format!(
                "{:<19}{of:<14}{:>7}{:>18}{:>18}{:>9.3}   {}, {}\n",
                if i == 0 { case.case.name() } else { "" },
                found.ranks,
                format!("{:.3} ± {:.3}", found.shift, found.shift_error),
                format!("{:.3} ± {:.3}", found.spread, found.spread_error),
                found.p,
                noticed(ranks.p_narrow),
                noticed(ranks.p_wide),
            );
            if let Some(exact) = &ranks.exact {
                text += &format!(
                    "{:<19}{:<14}{:>7}{:>18}{:>18}{:>9.3}\n",
                    "",
                    "  exactly",
                    exact.ranks,
                    format!("{:.3} ± {:.3}", exact.shift, exact.shift_error),
                    format!("{:.3} ± {:.3}", exact.spread, exact.spread_error),
                    exact.p,
                );
            }
        }
    }
    text += "Shift: how far truths lie above beliefs, in standard deviations; spread: how wide beliefs are against how wide they should be; p: the chance \
             that ranks of right beliefs look as uneven; exactly: ranks of the same truths in exact posteriors, which have the sample's luck alone.\n";
    text + &cost(&results.info)
}
