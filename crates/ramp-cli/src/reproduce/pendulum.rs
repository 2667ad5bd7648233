//! `ramp reproduce pendulum`: its arguments and its table.

use super::args::{Choice, Sequences, Tuning, renamed};
use super::{cost, report};
use crate::{Ending, Failure};
use clap::{Args, ValueEnum};
use ramp::network::Activation;
use ramp_lab::experiments::pendulum::data::Pendulum as Videos;
use ramp_lab::experiments::pendulum::{Init, PendulumResults, PendulumRun, STATED, Shape};
use std::path::PathBuf;

#[derive(Clone, Copy, ValueEnum)]
enum FamilyName {
    /// A plane: two-dimensional, full covariance; the paper's
    Gaussian,
    /// A square: two Betas
    Beta,
    /// A cylinder: von Mises times Gaussian, the true shape of the phase space
    Circle,
}

#[derive(Clone, Copy, ValueEnum)]
enum InitName {
    /// Random weights; the paper's
    Random,
    /// What the videos show, by the start that any chain gets
    Dynamics,
}

/// Sizes of videos in place of the scale's.
#[derive(Args)]
pub struct VideoArgs {
    /// Pixels on a side of a frame, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(8..=512))]
    size: Option<u16>,
    /// Frames in a video, in place of the scale's
    #[arg(long, value_parser = clap::value_parser!(u16).range(3..))]
    steps: Option<u16>,
}

impl VideoArgs {
    pub fn apply(&self, videos: &mut Videos) {
        videos.size = self.size.map_or(videos.size, usize::from);
        videos.steps = self.steps.map_or(videos.steps, usize::from);
    }
}

#[derive(Args)]
pub struct Pendulum {
    #[command(flatten)]
    choice: Choice,
    /// Folder for results.json, figures and the checkpoint
    #[arg(long, default_value = "out/pendulum")]
    out: PathBuf,
    #[command(flatten)]
    videos: VideoArgs,
    /// Frames at the end of test videos to be predicted from those before [default: a fifth of the video]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    ahead: Option<u16>,
    /// What every latent is
    #[arg(long, value_enum, default_value = "gaussian")]
    family: FamilyName,
    /// How the networks begin; by default what suits recipe and latents
    #[arg(long, value_enum)]
    init: Option<InitName>,
    #[arg(long, hide = true, value_parser = renamed("--init"))]
    beginning: Option<String>,
    /// Hidden units of every network, in place of the recipe's
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    hidden: Option<u16>,
    /// The function of hidden units, which the paper leaves open: tanh, relu, gelu or silu
    #[arg(long)]
    activation: Option<Activation>,
    /// What random weights of last layers are multiplied with, which the paper leaves open [default: 1]
    #[arg(long, value_parser = positive)]
    output_scale: Option<f32>,
    /// Leave out SVAE and CPC
    #[arg(long)]
    without_baselines: bool,
    #[arg(long, hide = true)]
    without_rivals: bool,
    #[command(flatten)]
    tuning: Tuning<Sequences>,
}

fn positive(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(x) if x.is_finite() && x > 0.0 => Ok(x),
        _ => Err("it must be a number above zero".into()),
    }
}

impl Pendulum {
    fn settings(&self) -> PendulumRun {
        let choice = &self.choice;
        let mut run = PendulumRun::new(choice.scale(), choice.recipe(), choice.seed);
        self.videos.apply(&mut run.videos);
        run.ahead = self
            .ahead
            .map_or((run.videos.steps / 5).max(1), usize::from);
        run.hidden = self.hidden.map_or(run.hidden, usize::from);
        run.activation = self.activation.unwrap_or(run.activation);
        run.output_scale = self.output_scale.unwrap_or(run.output_scale);
        run = run.with_shape(match self.family {
            FamilyName::Gaussian => Shape::Gaussian,
            FamilyName::Beta => Shape::Beta,
            FamilyName::Circle => Shape::Circle,
        });
        run.init = self.init.map(|init| match init {
            InitName::Random => Init::Random,
            InitName::Dynamics => Init::Dynamics,
        });
        self.tuning.apply(&mut run.videos.sequences, &mut run.core);
        if self.without_baselines {
            run.baselines = None;
        }
        run
    }

    pub fn run(self) -> Result<Ending, Failure> {
        if self.without_rivals {
            return Err(Failure::user(
                "the option `--without-rivals` is called `--without-baselines` now",
            ));
        }
        let settings = self.settings();
        report(&settings, &self.out, table)
    }
}

/// The results as a person reads them.
fn table(results: &PendulumResults) -> String {
    let mut text = format!("\n{:<22}{:>10}{:>10}{:>10}\n", "R²", "cos θ", "sin θ", "ω");
    let methods = [
        ("RAMP", Some(results.r2.ramp)),
        ("SVAE", results.r2.svae),
        ("CPC", results.r2.cpc),
    ];
    for (method, r2) in methods {
        let Some(r2) = r2 else { continue };
        let rows = [
            ("training", r2.usual.train),
            ("test", r2.usual.test),
            ("test, tuned", r2.tuned),
        ];
        for (who, r2) in rows {
            text += &format!(
                "{:<22}{:>10.4}{:>10.4}{:>10.4}\n",
                format!("{method}, {who}"),
                r2[0],
                r2[1],
                r2[2]
            );
        }
    }
    let prediction = &results.prediction;
    for ahead in [5, 10, prediction.ramp.len()] {
        let Some(k) = ahead.checked_sub(1).filter(|&k| k < prediction.ramp.len()) else {
            continue;
        };
        text += &format!(
            "{ahead} frames ahead: angle off by {:.1}°, {:.1}° if it went on at the last speed; {:.0} % intervals of {:.0}° hold {:.0} %\n",
            prediction.ramp[k].to_degrees(),
            prediction.go_on[k].to_degrees(),
            100.0 * STATED,
            prediction.width[k].to_degrees(),
            100.0 * prediction.covered[k],
        );
    }
    text + &cost(&results.info)
}
