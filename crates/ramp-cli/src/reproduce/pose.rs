//! `ramp reproduce pose`: its arguments and its table.

use super::args::{Choice, Tuning, renamed};
use super::{cost, report};
use crate::{Ending, Failure};
use clap::{Args, ValueEnum};
use ramp_lab::experiments::pose::{PoseInit, PoseResults, PoseRun};
use std::path::PathBuf;

#[derive(Clone, Copy, ValueEnum)]
enum InitName {
    /// Random weights; the paper's
    Random,
    /// What patches of neighbouring joints have in common: factors of the edges of the tree
    Shared,
    /// Informed: limbs are told apart from the tips inwards, by linear maps that know that limbs are straight
    Limbs,
}

#[derive(Args)]
pub struct Pose {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, figures and the checkpoint
    #[arg(long, default_value = "out/pose")]
    out: PathBuf,
    /// The joints.mat of the Leeds Sports Poses or their extension; poses are made up without one
    #[arg(long, value_name = "FILE")]
    joints: Option<PathBuf>,
    /// Held-out images, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..))]
    test: Option<u32>,
    /// How the networks begin, in place of the recipe's
    #[arg(long, value_enum)]
    init: Option<InitName>,
    #[arg(long, hide = true, value_parser = renamed("--init"))]
    beginning: Option<String>,
    /// Variants of each training image to learn from (augmentation), itself included, in place of the recipe's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=20))]
    variations: Option<u32>,
    #[command(flatten)]
    tuning: Tuning,
}

impl Pose {
    fn settings(&self) -> PoseRun {
        let choice = &self.choice;
        let mut run = PoseRun::new(choice.scale(), choice.recipe(), choice.seed);
        run.joints.clone_from(&self.joints);
        run.test = self.test.map_or(run.test, |n| n as usize);
        if let Some(init) = self.init {
            run.init = match init {
                InitName::Random => PoseInit::Random,
                InitName::Shared => PoseInit::Shared,
                InitName::Limbs => PoseInit::Limbs,
            };
        }
        let of_each = &mut run.augmentation.of_each;
        *of_each = self.variations.map_or(*of_each, |n| n as usize);
        self.tuning.apply(&mut run.n, &mut run.core);
        run
    }

    pub fn run(self) -> Result<Ending, Failure> {
        let settings = self.settings();
        report(&settings, &self.out, table)
    }
}

/// The results as a person reads them.
fn table(results: &PoseResults) -> String {
    let mut text = format!(
        "\n{:<16}{:<16}{:>10}{:>10}{:>10}\n",
        "R² at", "of the limb to", "training", "held out", "paper"
    );
    for (joint, limbs) in &results.r2 {
        for (neighbour, r2) in limbs {
            text += &format!(
                "{joint:<16}{neighbour:<16}{:>10.3}{:>10.3}{:>10.2}\n",
                r2.train, r2.test, r2.paper
            );
        }
    }
    let mean = &results.mean;
    text += &format!(
        "{:<32}{:>10.3}{:>10.3}{:>10.3}\n{:<32}{:>10.3}{:>10.3}\n",
        "mean",
        mean.kernel.train,
        mean.kernel.test,
        mean.paper,
        "by linear regression",
        mean.linear.train,
        mean.linear.test
    );
    let limbs = results.occlusion.len().max(1) as f64;
    let off = |of: fn(&ramp_lab::experiments::pose::Occluded) -> f64| {
        results.occlusion.iter().map(of).sum::<f64>().to_degrees() / limbs
    };
    text += &format!(
        "a limb whose joint is occluded: {:.1}° off through the tree, {:.1}° by neighbours alone, {:.1}° by its mean direction\n",
        off(|o| o.tree),
        off(|o| o.neighbours),
        off(|o| o.mean)
    );
    text + &cost(&results.info)
}
