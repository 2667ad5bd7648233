//! `ramp reproduce dynamics`: its arguments and its table.

use super::args::{Choice, Sequences, Tuning};
use super::{cost, report};
use crate::{Ending, Failure};
use clap::{Args, ValueEnum};
use ramp_lab::experiments::dynamics::data::{SYSTEMS, System};
use ramp_lab::experiments::dynamics::{DynamicsResults, DynamicsRun, ProbeR2, SystemResults};
use std::path::PathBuf;

#[derive(Clone, Copy, ValueEnum)]
enum SystemName {
    /// θ″ = −sin θ: a rod and a bob
    Pendulum,
    /// x″ = x − x³: a dot on a line
    DoubleWell,
    /// x″ = (1 − x²)x′ − x: a dot on a line
    VanDerPol,
    /// Prey and predators; the prey is a dot on a line
    LotkaVolterra,
    /// A ball in a box
    BouncingBall,
    /// Two rods, one at the other's end
    DoublePendulum,
    /// Eight noisy readings of Lorenz's attractor
    Lorenz,
    /// x″ = 1 − eˣ: a dot on a line, made up to tune on
    Toda,
    /// A dot in a curved valley, made up to tune on
    Valley,
    /// Two pendulums side by side, made up to tune on
    TwoPendulums,
    /// A pendulum beside a dot on a spring, made up to tune on
    PendulumAndSpring,
    /// Two rods, one at the other's end, each on a spring, made up to tune on
    Arm,
}

impl From<SystemName> for System {
    fn from(name: SystemName) -> Self {
        match name {
            SystemName::Pendulum => System::Pendulum,
            SystemName::DoubleWell => System::DoubleWell,
            SystemName::VanDerPol => System::VanDerPol,
            SystemName::LotkaVolterra => System::LotkaVolterra,
            SystemName::BouncingBall => System::BouncingBall,
            SystemName::DoublePendulum => System::DoublePendulum,
            SystemName::Lorenz => System::Lorenz,
            SystemName::Toda => System::Toda,
            SystemName::Valley => System::Valley,
            SystemName::TwoPendulums => System::TwoPendulums,
            SystemName::PendulumAndSpring => System::PendulumAndSpring,
            SystemName::Arm => System::Arm,
        }
    }
}

#[derive(Args)]
pub struct Dynamics {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, the figure and checkpoints
    #[arg(long, default_value = "out/dynamics")]
    out: PathBuf,
    /// A system, may be given several times [default: all but those made up to tune on]
    #[arg(long, value_enum)]
    system: Vec<SystemName>,
    /// Pixels on a side of a frame, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(8..=512))]
    size: Option<u16>,
    /// Observations in a sequence, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(10..))]
    steps: Option<u16>,
    /// Hidden units of every network, in place of the recipe's
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    hidden: Option<u16>,
    /// Leave out SVAE and CPC
    #[arg(long)]
    without_baselines: bool,
    #[command(flatten)]
    tuning: Tuning<Sequences>,
}

impl Dynamics {
    pub fn run(self) -> Result<Ending, Failure> {
        let systems = match self.system.is_empty() {
            true => SYSTEMS.to_vec(),
            false => self.system.iter().map(|&s| s.into()).collect(),
        };
        let choice = &self.choice;
        let mut run = DynamicsRun::new(choice.scale(), systems, choice.seed);
        run.size = self.size.map_or(run.size, usize::from);
        run.steps = self.steps.map_or(run.steps, usize::from);
        run.hidden = self.hidden.map_or(run.hidden, usize::from);
        self.tuning.apply(&mut run.sequences, &mut run.core);
        if self.without_baselines {
            run.baselines = None;
        }
        report(&run, &self.out, table)
    }
}

/// The results as a person reads them: R² on test sequences by both probes, the usual one and the one tuned by cross-validation.
fn table(results: &DynamicsResults) -> String {
    let mut text = format!("\n{:<32}", "R², test: usual / tuned probe");
    for method in ["RAMP", "SVAE", "CPC", "Kalman", "windows"] {
        text += &format!("{method:>15}");
    }
    text += &format!("{:>20}{:>20}\n", "wide Kalman", "wide windows");
    for system in &results.systems {
        for k in 0..system.variables.len() {
            text += &row(system, k);
        }
    }
    for system in &results.systems {
        if let Some((beliefs, observations, present)) = system.foretold {
            text += &format!(
                "{}: beliefs tell {:.0} % of what is observed 3 to 8 steps earlier and later, the five observations around {:.0} %, the present one {:.0} %\n",
                system.system.name(),
                100.0 * beliefs,
                100.0 * observations,
                100.0 * present
            );
        }
    }
    text += "Wide baselines have more numbers than the state, as said in brackets; all others have as many.\n";
    text + &cost(&results.info)
}

fn row(system: &SystemResults, k: usize) -> String {
    let name = if k == 0 { system.system.name() } else { "" };
    let hidden = if system.shown[k] { "" } else { " (hidden)" };
    let variable = format!("{}{hidden}", system.variables[k]);
    let mut row = format!("{name:<16}{variable:<16}");
    let both = |r2: &ProbeR2| format!("{:.3}/{:.3}", r2.usual[k], r2.tuned[k]);
    let methods = [
        Some(&system.ramp),
        system.svae.as_ref(),
        system.cpc.as_ref(),
        Some(&system.kalman),
        Some(&system.windows),
    ];
    for r2 in methods {
        row += &format!("{:>15}", r2.map_or("–".into(), both));
    }
    for wide in [&system.kalman_wide, &system.windows_wide] {
        row += &format!("{:>20}", format!("{} ({})", both(&wide.r2), wide.dim));
    }
    row + "\n"
}
