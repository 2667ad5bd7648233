//! The command `ramp`: reads the words, runs the work, turns every outcome into a sentence and an exit code.

mod interrupt;
mod progress;
mod reproduce;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Uncover the latent variables behind data whose dependencies form a tree.
#[derive(Parser)]
#[command(
    name = "ramp",
    version,
    arg_required_else_help = true,
    after_help = "Example:\n  ramp reproduce linear-tree --scale quick\n\
                  trains on a tree of 7 latents and 8 observations for a few seconds, compares every latent's posterior\n\
                  with exact inference, and writes results.json and two figures into out/linear-tree."
)]
struct Words {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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

impl From<ramp_lab::error::LabError> for Failure {
    fn from(error: ramp_lab::error::LabError) -> Self {
        Failure {
            user: error.is_user_mistake(),
            sentence: error.to_string(),
        }
    }
}

fn main() -> ExitCode {
    let outcome = match Words::parse().command {
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
