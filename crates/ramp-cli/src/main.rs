//! The command `ramp`: reads the arguments, runs the work, turns every outcome into a sentence and an exit code.

// A closed stream makes these panic; `output` has what does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod compare;
mod diagnose;
mod failure;
mod fit;
mod fit_report;
mod forecast;
mod grow;
mod init;
mod interrupt;
mod memory;
mod output;
mod printing;
mod progress;
mod ranks;
mod reproduce;
mod stream;

use clap::{Parser, Subcommand};
use failure::{Ending, Failure};
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
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Threads [default: all]
    #[arg(long, global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
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
                      Ctrl-C stops after the current step; the same command with --resume goes on from there.\n\
                      With the feature `mpi`, `mpirun -n 4 ramp fit MODEL.toml` trains on four processes, to the same bits."
    )]
    Fit(fit::Fit),
    /// Write the posterior of every latent for every row
    #[command(
        after_help = "Example:\n  ramp infer out/questionnaire --data examples/questionnaire/answers.csv --out latents.csv --keep person\n  \
                      produce_arrow | ramp infer out/questionnaire - | consume_arrow     streams of any length, in constant memory"
    )]
    Infer(stream::About),
    /// Fill what is missing
    #[command(
        after_help = "Example:\n  ramp impute out/questionnaire --data examples/questionnaire/answers.csv --out filled.csv\n  \
                      ramp impute out/questionnaire --data examples/questionnaire/answers.csv --out draws.csv --draws 20"
    )]
    Impute(stream::Impute),
    /// Write how much every latent explains of every row, in nats; low values flag parts that do not belong together
    #[command(
        after_help = "Example:\n  ramp score out/questionnaire --data examples/questionnaire/answers.csv --out scores.csv --keep person\n  \
                      ramp score out/questionnaire --out total.csv --total     in all, against independent columns"
    )]
    Score(stream::Score),
    /// Write the next steps of every sequence, latents and observations, with intervals
    #[command(
        after_help = "Example:\n  ramp forecast out/diary --data examples/diary/diary.csv --steps 7 --out next_week.csv"
    )]
    Forecast(forecast::Forecast),
    /// Say which of some fits explains more of rows that none has learned from: trees, families, dimensions
    #[command(after_help = "Example:\n  ramp compare out/questionnaire out/one-factor")]
    Compare(compare::Compare),
    /// Try changes of a fit's tree: which would explain more of rows that were not learned from
    #[command(
        after_help = "Example:\n  ramp diagnose out/questionnaire\n  ramp diagnose out/questionnaire --out changes.csv"
    )]
    Diagnose(diagnose::Diagnose),
    /// Find a tree from a table, for when there is none to start from
    #[command(
        after_help = "Example:\n  ramp grow answers.csv --out model.toml      then: ramp fit model.toml\n  \
                      ramp grow answers.csv --out model.toml --keep '((q1,q2,q3)anxiety,(q4,q5)anger);'\n\
                      Ctrl-C stops; the same command with --resume goes on from the last round."
    )]
    Grow(grow::Grow),
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

/// Room for a thread: without optimisation, one frame of the pairwise kernel takes more than a thread usually has.
const STACK: usize = 16 << 20;

fn main() -> ExitCode {
    hush_guarded_parsers();
    let arguments = Arguments::parse();
    start_threads(arguments.threads);
    let outcome = match arguments.command {
        Command::Init(args) => args.run(),
        Command::Check(args) => args.run(),
        Command::Fit(args) => args.run(),
        Command::Infer(args) => args.infer(),
        Command::Impute(args) => args.run(),
        Command::Score(args) => args.run(),
        Command::Forecast(args) => args.run(),
        Command::Compare(args) => args.run(),
        Command::Diagnose(args) => args.run(),
        Command::Grow(args) => args.run(),
        Command::Report(args) => args.run(),
        Command::Reproduce(experiment) => experiment.run(),
    };
    let outcome = match (outcome, output::trouble()) {
        (Ok(Ending::Done), Some(error)) => Err(Failure {
            sentence: format!("cannot write to standard output: {error}"),
            user: false,
        }),
        (outcome, _) => outcome,
    };
    match outcome {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        // What shells give a process that Ctrl-C ended.
        Ok(Ending::Interrupted) => ExitCode::from(130),
        Err(failure) => {
            // Of several ranks, one has said it.
            if !failure.sentence.is_empty() {
                output::complain(&failure.sentence);
            }
            failure.exit_code()
        }
    }
}

/// Starts the threads that all work shares; as many as the machine has, unless told otherwise. Where the system gives none, this one does the work.
fn start_threads(count: Option<u16>) {
    let count = count.map_or(0, usize::from);
    let threads = || rayon::ThreadPoolBuilder::new().stack_size(STACK);
    // The common pool can be asked for once, so others are tried first.
    let _ = match threads().num_threads(count).build() {
        Ok(_) => threads().num_threads(count).build_global(),
        Err(_) => threads().num_threads(1).use_current_thread().build_global(),
    };
}

/// Damaged files make a parser panic; the library catches that and returns a sentence, so the panic itself must not speak. Any
/// other is a fault of ours and is reported as always.
fn hush_guarded_parsers() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !ramp_io::table::is_guarded() {
            report(panic);
        }
    }));
}
