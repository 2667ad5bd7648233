//! `ramp reproduce`: the experiments by name, and how their ends are told.

mod linear_tree;
mod misspecified_tree;
mod nonlinear_sweep;
mod nonlinear_tree;
mod pendulum;
mod pendulum_sweep;
mod pose;
mod words;

use crate::progress::Bar;
use crate::{Ending, Failure};
use clap::Subcommand;
use ramp_lab::error::LabError;
use ramp_lab::experiments::{Outcome, Watch};

#[derive(Subcommand)]
pub enum Experiment {
    /// A linear Gaussian tree: posteriors against exact inference, mean-field and BBVI
    #[command(
        after_help = "Example:\n  ramp reproduce linear-tree --scale quick --seed 1 --out out/first\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    LinearTree(linear_tree::LinearTree),
    /// Wrong trees over the same data: how each latent fares as its place is perturbed
    #[command(
        after_help = "Example:\n  ramp reproduce misspecified-tree --scale quick --trees 2\n\
                            trains on the true tree and on 2 trees at each of 1 to 4 random interchanges from it.\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    MisspecifiedTree(misspecified_tree::MisspecifiedTree),
    /// A tree of clipped reciprocals: RAMP against BBVI and a supervised Gaussian approximation
    #[command(
        after_help = "Example:\n  ramp reproduce nonlinear-tree --scale quick --link sine --noise 0.1\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    NonlinearTree(nonlinear_tree::NonlinearTree),
    /// The nonlinear tree over links and shares of noise: where RAMP wins and where it does not
    #[command(
        after_help = "Example:\n  ramp reproduce nonlinear-sweep --link cubic --link step --noise 0.1 --noise 0.5\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    NonlinearSweep(nonlinear_sweep::NonlinearSweep),
    /// Films of a pendulum: its angle and angular velocity as a chain of two-dimensional latents
    #[command(
        after_help = "Example:\n  ramp reproduce pendulum --scale quick --size 32 --seed 1\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    Pendulum(pendulum::Pendulum),
    /// The pendulum over widths of networks and learning rates: latent spaces by free energy
    #[command(
        after_help = "Example:\n  ramp reproduce pendulum-sweep --hidden 64 --hidden 128 --rate 0.0005 --rate 0.001\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    PendulumSweep(pendulum_sweep::PendulumSweep),
    /// Stick figures: the directions of limbs as a tree of six-dimensional latents, one at each joint of a body
    #[command(
        after_help = "Example:\n  ramp reproduce pose --scale quick --joints lspet/joints.mat\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    Pose(pose::Pose),
}

impl Experiment {
    pub fn run(self) -> Result<Ending, Failure> {
        match self {
            Experiment::LinearTree(words) => words.run(),
            Experiment::MisspecifiedTree(words) => words.run(),
            Experiment::NonlinearTree(words) => words.run(),
            Experiment::NonlinearSweep(words) => words.run(),
            Experiment::Pendulum(words) => words.run(),
            Experiment::PendulumSweep(words) => words.run(),
            Experiment::Pose(words) => words.run(),
        }
    }
}

/// Runs an experiment with a progress bar and tells its end: a table and the files, or where it stopped.
fn tell<R>(
    run: impl FnOnce(&mut dyn Watch) -> Result<Outcome<R>, LabError>,
    table: fn(&R) -> String,
) -> Result<Ending, Failure> {
    let outcome = {
        // The bar is gone before anything is printed.
        let mut bar = Bar::new();
        run(&mut bar)?
    };
    match outcome {
        Outcome::Done { results, files } => {
            print!("{}", table(&results));
            for file in files {
                println!("wrote {}", file.display());
            }
            Ok(Ending::Done)
        }
        Outcome::Interrupted(at) => {
            eprintln!(
                "stopped {} after iteration {} of {}; the same command goes on from there",
                at.what, at.iteration, at.iterations
            );
            Ok(Ending::Interrupted)
        }
    }
}

/// How RAMP and BBVI were trained, as the beginning of a table's last line.
fn courses(iterations: usize, ms_per_iteration: Option<f64>, bbvi_seconds: f64) -> String {
    let step = ms_per_iteration.map_or(String::new(), |ms| format!(", {ms:.1} ms each"));
    format!("{iterations} iterations{step}, BBVI {bbvi_seconds:.1} s, ")
}

/// Time and memory as the end of the last line of a table.
fn cost(seconds: f64, peak_rss_mb: Option<f64>) -> String {
    let memory = peak_rss_mb.map_or(String::new(), |mb| format!(", {mb:.0} MB"));
    format!("{seconds:.1} s in all{memory}\n")
}
