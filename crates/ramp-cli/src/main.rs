//! The command `ramp`: reads the words, runs the work, turns every outcome into a sentence and an exit code.

mod check;
mod fit;
mod fit_report;
mod impute;
mod infer;
mod init;
mod interrupt;
mod progress;
mod reproduce;
mod rows;
mod words;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Uncover the latent variables behind data whose dependencies form a tree.
#[derive(Parser)]
#[command(
    name = "ramp",
    version,
    arg_required_else_help = true,
    after_help = "Example:\n  ramp init answers.csv          write a model file to start from\n  \
                  ramp fit answers.toml          train, and see what was learned in out/answers/report.html\n  \
                  ramp infer out/answers --data answers.csv --out latents.csv\n\
                  The files are explained in the book, docs/."
)]
struct Words {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a model file to start from, out of a table's columns
    #[command(after_help = "Example:\n  ramp init answers.csv --out model.toml")]
    Init(init::Init),
    /// Check a model file and its data, and draw the tree
    #[command(after_help = "Example:\n  ramp check examples/questionnaire/model.toml")]
    Check(check::Check),
    /// Train a model, judge it on held-out rows, write the run and its report
    #[command(
        after_help = "Example:\n  ramp fit examples/questionnaire/model.toml --out out/first\n\
                      Ctrl-C stops after the current step; the same command with --resume goes on from there."
    )]
    Fit(fit::Fit),
    /// Write the posterior of every latent for every row
    #[command(
        after_help = "Example:\n  ramp infer out/questionnaire --data examples/questionnaire/answers.csv --out latents.csv --keep person"
    )]
    Infer(infer::Passing),
    /// Fill what is missing
    #[command(
        after_help = "Example:\n  ramp impute out/questionnaire --data examples/questionnaire/answers.csv --out filled.csv\n  \
                      ramp impute out/questionnaire --data examples/questionnaire/answers.csv --out draws.csv --draws 20"
    )]
    Impute(impute::Impute),
    /// Write how much every latent explains of every row, in nats; low values flag parts that do not belong together
    #[command(
        after_help = "Example:\n  ramp score out/questionnaire --data examples/questionnaire/answers.csv --out scores.csv --keep person"
    )]
    Score(infer::Passing),
    /// Build the report of a finished fit again
    #[command(after_help = "Example:\n  ramp report out/questionnaire")]
    Report(fit_report::Rebuild),
    /// Run an experiment of the paper and measure it against the exact answer
    #[command(
        subcommand,
        after_help = "Example:\n  ramp reproduce linear-tree --scale quick --seed 1"
    )]
    Reproduce(reproduce::Experiment),
}

/// How a command ended when it did not fail.
enum Ending {
    Done,
    /// Ctrl-C: a state to go on from was left.
    Interrupted,
}

/// A failure: its sentence and whether the user can mend it.
struct Failure {
    sentence: String,
    user: bool,
}

impl From<ramp::Error> for Failure {
    fn from(error: ramp::Error) -> Self {
        Failure {
            user: error.is_user_mistake(),
            sentence: error.to_string(),
        }
    }
}

impl From<ramp_io::Error> for Failure {
    fn from(error: ramp_io::Error) -> Self {
        fn is_user_mistake(error: &ramp_io::Error) -> bool {
            match error {
                ramp_io::Error::Engine(error) => error.is_user_mistake(),
                ramp_io::Error::InFile { source, .. } => is_user_mistake(source),
                ramp_io::Error::Invalid(_)
                | ramp_io::Error::Table(_)
                | ramp_io::Error::Array(_) => true,
                _ => false,
            }
        }
        let user = is_user_mistake(&error);
        Failure {
            user,
            sentence: error.to_string(),
        }
    }
}

impl From<ramp_lab::error::LabError> for Failure {
    fn from(error: ramp_lab::error::LabError) -> Self {
        Failure {
            user: error.is_user_mistake(),
            sentence: error.to_string(),
        }
    }
}

/// Room for a thread: without optimisation, one frame of the pairwise kernel takes more than a thread usually has.
const STACK: usize = 16 << 20;

fn main() -> ExitCode {
    hush_guarded_parsers();
    // Where threads cannot be had, the work itself will say so.
    let _ = rayon::ThreadPoolBuilder::new()
        .stack_size(STACK)
        .build_global();
    let outcome = match Words::parse().command {
        Command::Init(words) => words.run(),
        Command::Check(words) => words.run(),
        Command::Fit(words) => words.run(),
        Command::Infer(words) => words.infer(),
        Command::Impute(words) => words.run(),
        Command::Score(words) => words.score(),
        Command::Report(words) => words.run(),
        Command::Reproduce(experiment) => experiment.run(),
    };
    match outcome {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        // What shells give a process that Ctrl-C ended.
        Ok(Ending::Interrupted) => ExitCode::from(130),
        Err(failure) => {
            eprintln!("ramp: {}", failure.sentence);
            ExitCode::from(if failure.user { 2 } else { 1 })
        }
    }
}

/// Damaged files make a parser panic; the library catches that and returns a sentence, so the panic itself must not speak. Any
/// other is a fault of ours and is told as always.
fn hush_guarded_parsers() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !ramp_io::table::is_guarded() {
            tell(panic);
        }
    }));
}
