//! `ramp reproduce`: the experiments by name.

use crate::progress::Bar;
use crate::{Ending, Failure};
use clap::{Args, Subcommand, ValueEnum};
use ramp::family::View;
use ramp_lab::experiments::Scale;
use ramp_lab::experiments::linear_tree::{LinearTreeResults, LinearTreeRun, Outcome, Recipe};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Experiment {
    /// A linear Gaussian tree: posteriors against exact inference and mean-field
    #[command(
        after_help = "Example:\n  ramp reproduce linear-tree --scale quick --seed 1 --out out/first\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    LinearTree(LinearTree),
}

impl Experiment {
    pub fn run(self) -> Result<Ending, Failure> {
        match self {
            Experiment::LinearTree(words) => words.run(),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum ScaleName {
    /// Seconds, and the effect is there
    Quick,
    /// The paper's sizes: minutes
    Paper,
}

#[derive(Clone, Copy, ValueEnum)]
enum RecipeName {
    /// What reaches exact inference
    Ours,
    /// The settings of the paper's table
    Paper,
}

#[derive(Clone, Copy, ValueEnum)]
enum ViewName {
    /// Mean, correlations and log-precisions
    Moments,
    /// The sum of messages as it is
    Natural,
}

#[derive(Args)]
pub struct LinearTree {
    /// How large
    #[arg(long, value_enum, default_value = "quick")]
    scale: ScaleName,
    /// How to train
    #[arg(long, value_enum, default_value = "ours")]
    recipe: RecipeName,
    /// Seed of data, weights and batches
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for results.json, figures and the checkpoint
    #[arg(long, default_value = "out/linear-tree")]
    out: PathBuf,
    /// Training samples, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    n: Option<u32>,
    /// Samples per step, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Samples in the mixture, redrawn each step, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    mixture: Option<u32>,
    /// Steps, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// Step size, in place of the scale's
    #[arg(long, allow_negative_numbers = true)]
    learning_rate: Option<f64>,
    /// What networks see of beliefs, in place of the recipe's
    #[arg(long, value_enum)]
    view: Option<ViewName>,
    /// Threads [default: all]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl LinearTree {
    fn settings(&self) -> LinearTreeRun {
        let scale = match self.scale {
            ScaleName::Quick => Scale::Quick,
            ScaleName::Paper => Scale::Paper,
        };
        let recipe = match self.recipe {
            RecipeName::Ours => Recipe::Ours,
            RecipeName::Paper => Recipe::Paper,
        };
        let mut run = LinearTreeRun::new(scale, recipe, self.seed);
        let given = |asked: Option<u32>| asked.map(|n| n as usize);
        run.n = given(self.n).unwrap_or(run.n);
        run.train.batch = given(self.batch).or(run.train.batch);
        run.train.mixture = given(self.mixture).or(run.train.mixture);
        if let Some(iterations) = given(self.iterations) {
            // The warm-up keeps its share of a shorter or longer run.
            run.train.warmup = run.train.warmup * iterations / run.train.iterations;
            run.train.iterations = iterations;
        }
        run.train.learning_rate = self.learning_rate.unwrap_or(run.train.learning_rate);
        run.view = match self.view {
            None => run.view,
            Some(ViewName::Moments) => View::Moments,
            Some(ViewName::Natural) => View::Natural,
        };
        run.threads = self.threads.map(usize::from);
        if self.batch.is_none() && run.train.batch.is_some_and(|b| b > run.n) {
            // Fewer samples than the scale's batch: all of them.
            run.train.batch = None;
        }
        run
    }

    fn run(self) -> Result<Ending, Failure> {
        let settings = self.settings();
        let outcome = settings.run(&self.out, &mut Bar::new())?;
        match outcome {
            Outcome::Done { results, files } => {
                print!("{}", table(&results));
                for file in files {
                    println!("wrote {}", file.display());
                }
                Ok(Ending::Done)
            }
            Outcome::Interrupted(iteration) => {
                eprintln!(
                    "stopped after iteration {iteration} of {}; the same command goes on from there",
                    settings.train.iterations
                );
                Ok(Ending::Interrupted)
            }
        }
    }
}

/// The results as a person reads them.
fn table(results: &LinearTreeResults) -> String {
    let mut text = format!(
        "\n{:<8}{:>12}{:>10}{:>10}   {:>12}{:>10}{:>12}\n{:<8}{:>12}{:>10}{:>10}   {:>12}{:>10}{:>12}\n",
        "",
        "correlation",
        "",
        "",
        "posterior",
        "variance",
        "",
        "latent",
        "RAMP",
        "exact",
        "gap",
        "RAMP",
        "exact",
        "mean-field"
    );
    for k in 0..results.corr.ramp.len() {
        let (ramp, exact) = (results.corr.ramp[k], results.corr.exact[k]);
        text += &format!(
            "{:<8}{ramp:>12.4}{exact:>10.4}{:>10.4}   {:>12.4}{:>10.4}{:>12.4}\n",
            format!("z{}", k + 1),
            exact - ramp,
            results.variance.ramp[k],
            results.variance.exact[k],
            results.variance.mean_field[k],
        );
    }
    let step = results
        .ms_per_iteration
        .map_or(String::new(), |ms| format!(", {ms:.1} ms each"));
    let memory = results
        .peak_rss_mb
        .map_or(String::new(), |mb| format!(", {mb:.0} MB"));
    text + &format!(
        "{} iterations{step}, {:.1} s in all{memory}\n",
        results.iterations, results.seconds
    )
}
