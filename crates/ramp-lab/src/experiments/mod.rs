//! The experiments: each trains, measures, writes `results.json` and its figures into one folder.

mod bbvi_course;
mod clock;
pub mod dynamics;
mod fitting;
mod keys;
mod last_layer;
mod latents;
pub mod linear_tree;
pub mod linear_tree_figures;
mod many;
pub mod misspecified_tree;
mod misspecified_tree_figures;
pub mod nonlinear_sweep;
pub mod nonlinear_tree;
mod nonlinear_tree_figures;
mod opening;
pub mod pendulum;
mod pendulum_figures;
mod pendulum_prediction;
mod pendulum_reading;
pub mod pendulum_sweep;
pub mod pose;
mod pose_figures;
mod pose_occlusion;
mod pose_reading;
mod pose_start;
mod rival_course;
mod run;
mod session;
mod tracker;

pub use bbvi_course::BbviSettings;
pub use rival_course::RivalSettings;
pub use run::{Interrupted, Method, Outcome, PerMethod, Recipe, Scale, Step, Watch, peak_rss_mb};
