//! `ramp reproduce`: the experiments by name, and how their ends are reported.

mod args;
mod calibration;
mod dynamics;
mod grow;
mod linear_tree;
mod misspecified_tree;
mod nonlinear_sweep;
mod nonlinear_tree;
mod pendulum;
mod pendulum_sweep;
mod pose;

use crate::output::{note, say};
use crate::progress::Bar;
use crate::{Ending, Failure};
use clap::Subcommand;
use ramp::train::Control;
use ramp_io::run::FolderLock;
use ramp_lab::error::LabError;
use ramp_lab::harness::{Experiment as Settings, Finished, RunInfo, Step, TrainingRun, Watch};
use std::path::Path;

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
    /// Videos of a pendulum: its angle and angular velocity as a chain of two-dimensional latents
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
    /// Several systems by one recipe that knows none of them: their state from videos or readings
    #[command(
        after_help = "Example:\n  ramp reproduce dynamics --system double-well --system bouncing-ball --seed 1\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    Dynamics(dynamics::Dynamics),
    /// Whether posteriors, imputations and forecasts are as sure as they should be: ranks of what is true
    #[command(
        after_help = "Example:\n  ramp reproduce calibration --case linear-tree --case von-mises --seed 1\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    Calibration(calibration::Calibration),
    /// Trees from data alone: how near they come to the true one, beside neighbour joining and clustering
    #[command(
        after_help = "Example:\n  ramp reproduce grow --shape balanced --linear --rows 10000 --leaves 16 --seeds 10\n\
                            Ctrl-C stops after the current step; the same command then goes on from there."
    )]
    Grow(grow::Grow),
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
            Experiment::LinearTree(args) => args.run(),
            Experiment::MisspecifiedTree(args) => args.run(),
            Experiment::NonlinearTree(args) => args.run(),
            Experiment::NonlinearSweep(args) => args.run(),
            Experiment::Pendulum(args) => args.run(),
            Experiment::PendulumSweep(args) => args.run(),
            Experiment::Dynamics(args) => args.run(),
            Experiment::Calibration(args) => args.run(),
            Experiment::Grow(args) => args.run(),
            Experiment::Pose(args) => args.run(),
        }
    }
}

impl Watch for Bar {
    fn start(&mut self, what: &str, iteration: usize, iterations: usize) {
        Bar::start(self, what, iteration, iterations);
    }

    fn say(&mut self, what: &str) {
        Bar::say(self, what);
    }

    fn step(&mut self, step: Step) -> Control {
        Bar::step(self, step.iteration, step.free_energy, step.held_out)
    }
}

/// Runs an experiment with a progress bar and reports its end: a table and the files, or where it stopped.
fn report<E: Settings>(
    settings: &E,
    out: &Path,
    table: fn(&E::Results) -> String,
) -> Result<Ending, Failure> {
    let _lock = FolderLock::take(out)?;
    let outcome = {
        // The bar is gone before anything is printed.
        let mut bar = Bar::new();
        settings.run(out, &mut bar)
    };
    match outcome {
        Ok(Finished { results, files, .. }) => {
            say!("{}", table(&results));
            for file in files {
                say!("wrote {}\n", file.display());
            }
            Ok(Ending::Done)
        }
        Err(LabError::Interrupted {
            what,
            iteration,
            iterations,
        }) => {
            note!(
                "stopped {what} after iteration {iteration} of {iterations}; the same command goes on from there"
            );
            Ok(Ending::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}

/// How RAMP and BBVI were trained, as the beginning of a table's last line.
fn trained(run: &TrainingRun, bbvi_seconds: f64) -> String {
    let step = run
        .ms_per_iteration
        .map_or(String::new(), |ms| format!(", {ms:.1} ms each"));
    format!(
        "{} iterations{step}, BBVI {bbvi_seconds:.1} s, ",
        run.iterations
    )
}

/// Time and memory as the end of the last line of a table.
fn cost<S>(info: &RunInfo<S>) -> String {
    let memory = info
        .peak_rss_mb
        .map_or(String::new(), |mb| format!(", {mb:.0} MB"));
    format!("{:.1} s in all{memory}\n", info.seconds)
}
