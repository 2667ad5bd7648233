//! What every experiment stands on: settings by scale and recipe, someone who watches, training that can be stopped and goes
//! on, times over all sessions, results and figures on the disk.

mod bbvi;
mod clock;
mod experiment;
mod keep;
pub(crate) mod last_layer;
mod recipe;
mod results;
mod sequence_baselines;
pub(crate) mod style;
mod sweep;
mod training;
mod watch;

pub use bbvi::BbviSettings;
pub(crate) use bbvi::BbviTask;
pub use clock::Clock;
pub use experiment::{Experiment, Figures, Finished};
pub use keep::Settings;
pub(crate) use keep::{keep, kept};
pub use recipe::{Core, Recipe, Scale};
pub use results::{RunInfo, TrainingRun, peak_rss_mb};
pub use sequence_baselines::BaselineSettings;
pub(crate) use sequence_baselines::{BaselineTask, Embedded};
pub(crate) use sweep::{Progress, Sweep};
pub(crate) use training::{Point, Training, start};
pub use watch::{Step, Watch};

#[cfg(test)]
pub(crate) use watch::StopAfter;
