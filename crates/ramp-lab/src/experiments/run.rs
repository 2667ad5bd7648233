//! What all experiments share: their scale, the person who watches, the machine they ran on.

use ramp::train::{Control, Record};
use serde::{Deserialize, Serialize};

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds: enough to see the effect.
    Quick,
    /// The paper's sizes.
    Paper,
}

/// Someone who follows an experiment: a progress bar, a stop button.
pub trait Watch {
    /// Training begins at an iteration, of so many.
    fn start(&mut self, iteration: usize, iterations: usize);
    /// A step was taken; whether to go on.
    fn step(&mut self, record: &Record) -> Control;
}

/// Nobody watches.
impl Watch for () {
    fn start(&mut self, _: usize, _: usize) {}
    fn step(&mut self, _: &Record) -> Control {
        Control::Continue
    }
}

/// The most memory this process has held so far, in MB, where the system tells.
pub fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
