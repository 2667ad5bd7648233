//! What all experiments share: scale, recipe, the person who watches, how they end, what they leave on the disk.

use crate::error::LabError;
use ramp::model::Initialisation;
use ramp::storage::write_atomically;
use ramp::train::{Control, Record, TrainSpec};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::{Path, PathBuf};

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds: enough to see the effect.
    Quick,
    /// The paper's sizes.
    Paper,
}

/// How a model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recipe {
    /// What works best.
    Ours,
    /// The settings of the paper's tables, networks that see natural parameters.
    Paper,
}

impl Recipe {
    /// How the networks of a tree begin.
    pub(super) fn init(self) -> Initialisation {
        match self {
            Recipe::Ours => Initialisation::ScaledDown,
            Recipe::Paper => Initialisation::Independent,
        }
    }
}

/// The training of the paper's table; a quick run takes it in batches.
pub(super) fn paper_training(scale: Scale, seed: u64) -> TrainSpec {
    TrainSpec {
        iterations: 500,
        batch: match scale {
            Scale::Paper => None,
            Scale::Quick => Some(1000),
        },
        learning_rate: 1e-3,
        seed,
        ..TrainSpec::default()
    }
}

/// Someone who follows an experiment: a progress bar, a stop button.
pub trait Watch: Send {
    /// A piece of work begins at an iteration, of so many.
    fn start(&mut self, what: &str, iteration: usize, iterations: usize);
    /// Something a person should know before the work begins.
    fn say(&mut self, _what: &str) {}
    /// A step was taken; whether to go on.
    fn step(&mut self, step: Step) -> Control;
}

/// What someone who watches learns of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Steps taken, this one included.
    pub iteration: usize,
    /// The free energy before it, in nats.
    pub free_energy: f64,
    /// That of held-out samples after it, when it was measured.
    pub held_out: Option<f64>,
}

impl From<&Record> for Step {
    fn from(record: &Record) -> Self {
        Step {
            iteration: record.iteration,
            free_energy: record.free_energy,
            held_out: record.held_out,
        }
    }
}

/// Nobody watches.
impl Watch for () {
    fn start(&mut self, _: &str, _: usize, _: usize) {}
    fn step(&mut self, _: Step) -> Control {
        Control::Continue
    }
}

/// How far a piece of work got before it was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Which piece.
    pub what: String,
    /// Steps taken.
    pub iteration: usize,
    /// Steps in all.
    pub iterations: usize,
}

/// The outcome of an experiment: results and files, or a state to go on from.
#[derive(Debug)]
pub enum Outcome<R> {
    /// Done; the files are written.
    Done {
        /// What was measured.
        results: Box<R>,
        /// What was written.
        files: Vec<PathBuf>,
    },
    /// Stopped here; the same command goes on from there.
    Interrupted(Interrupted),
}

/// A piece of work that someone may stop before it is done.
pub(super) enum Piece<T> {
    Done(T),
    Interrupted(Interrupted),
}

/// One number per latent, root first in level order, for each method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerMethod {
    /// RAMP.
    pub ramp: Vec<f64>,
    /// The supervised Gaussian approximation.
    pub gaussian: Vec<f64>,
    /// Black-box variational inference.
    pub bbvi: Vec<f64>,
}

/// Which method's numbers to look at.
pub type Method = fn(&PerMethod) -> &Vec<f64>;

/// The most memory this process has held so far, in MB, where the system tells.
pub fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// Writes a value as JSON, whole or not at all.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let text = serde_json::to_vec_pretty(value).map_err(|e| {
        LabError::Invalid(format!("{} cannot be written as JSON: {e}", path.display()))
    })?;
    Ok(write_atomically(path, &text)?)
}

/// What an earlier session left under the same settings.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    settings: serde_json::Value,
    value: T,
}

/// Writes a value beside the settings it belongs to.
pub(super) fn keep<T: Serialize>(
    path: &Path,
    settings: &impl Serialize,
    value: &T,
) -> Result<(), LabError> {
    let settings = settings_value(settings)?;
    write_json(path, &Kept { settings, value })
}

/// The value that was kept under the same settings; `None` where there is none or it cannot be read.
pub(super) fn kept<T: DeserializeOwned, S: Settings>(path: &Path, settings: &S) -> Option<T> {
    let bytes = std::fs::read(path).ok()?;
    let kept: Kept<T> = serde_json::from_slice(&bytes).ok()?;
    same(kept.settings, settings).then_some(kept.value)
}

/// Whether there is a value that was kept under other settings.
pub(super) fn belongs_to_others<S: Settings>(path: &Path, settings: &S) -> bool {
    let stored = std::fs::read(path).ok();
    let stored = stored.and_then(|b| serde_json::from_slice::<Kept<serde_json::Value>>(&b).ok());
    stored.is_some_and(|kept| !same(kept.settings, settings))
}

/// Whether settings from a file are these. A setting that the file does not know yet has its default there.
fn same<S: Settings>(stored: serde_json::Value, settings: &S) -> bool {
    let stored: Option<S> = serde_json::from_value(stored).ok();
    let stored = stored.and_then(|stored| settings_value(&stored).ok());
    stored.is_some() && stored == settings_value(settings).ok()
}

/// Settings that can be put on the disk and read again.
pub(super) trait Settings: Serialize + DeserializeOwned {}

impl<S: Serialize + DeserializeOwned> Settings for S {}

/// Settings as they come back from a file: compared in this form, numbers that JSON cannot tell apart are the same. Threads are
/// left out, as they do not change results.
fn settings_value(settings: &impl Serialize) -> Result<serde_json::Value, LabError> {
    let text = serde_json::to_string(settings);
    text.and_then(|text| serde_json::from_str(&text))
        .map(without_threads)
        .map_err(|e| LabError::Invalid(format!("settings cannot be written as JSON: {e}")))
}

fn without_threads(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, _)| name != "threads")
            .map(|(name, value)| (name, without_threads(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Stops after a number of steps, whatever they belong to.
    pub struct StopAfter(pub usize);

    impl Watch for StopAfter {
        fn start(&mut self, _: &str, _: usize, _: usize) {}
        fn step(&mut self, _: Step) -> Control {
            self.0 = self.0.saturating_sub(1);
            if self.0 == 0 {
                Control::Stop
            } else {
                Control::Continue
            }
        }
    }

    /// The results of a run that nobody stopped, whose files are there.
    pub fn done<R>(outcome: Outcome<R>) -> R {
        match outcome {
            Outcome::Done { results, files } => {
                assert!(files.iter().all(|f| f.is_file()), "{files:?}");
                *results
            }
            Outcome::Interrupted(at) => panic!("stopped at {at:?}"),
        }
    }

    #[test]
    fn what_was_kept_comes_back_under_the_same_settings_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kept.json");
        assert_eq!(kept::<Vec<f64>, _>(&file, &1), None);
        keep(&file, &1, &vec![0.1, 0.2]).unwrap();
        assert_eq!(kept(&file, &1), Some(vec![0.1, 0.2]));
        assert_eq!(kept::<Vec<f64>, _>(&file, &2), None);
        assert!(belongs_to_others(&file, &2) && !belongs_to_others(&file, &1));
        let settings =
            |threads: usize| serde_json::json!({ "seed": 1, "cell": { "threads": threads } });
        keep(&file, &settings(1), &vec![0.3]).unwrap();
        assert_eq!(kept(&file, &settings(2)), Some(vec![0.3]));
        std::fs::write(&file, "{ half").unwrap();
        assert!(!belongs_to_others(&file, &2));
        assert_eq!(kept::<Vec<f64>, _>(&file, &1), None);
    }
}
