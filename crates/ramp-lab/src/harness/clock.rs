//! How long an experiment takes, over all of its sessions.

use super::{Settings, Step, Watch, keep, kept};
use ramp::train::Control;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// The file's name within the folder.
const FILE: &str = "seconds.json";
/// How often times are put on the disk.
const OFTEN: Duration = Duration::from_secs(10);

/// Sits between an experiment and the person who watches it, and adds up the time that each piece of work takes. Times are
/// kept beside the checkpoints, so that a run that was stopped and goes on tells what it took in all.
pub struct Clock<'a, S> {
    watch: &'a mut dyn Watch,
    folder: &'a Path,
    settings: &'a S,
    /// Seconds by piece.
    spent: BTreeMap<String, f64>,
    piece: String,
    since: Instant,
    written: Instant,
}

impl<'a, S: Settings> Clock<'a, S> {
    /// A clock that goes on from the times in the folder that belong to these settings.
    pub(crate) fn new(watch: &'a mut dyn Watch, folder: &'a Path, settings: &'a S) -> Self {
        let now = Instant::now();
        Clock {
            watch,
            folder,
            settings,
            spent: kept(&folder.join(FILE), settings).unwrap_or_default(),
            piece: "preparation".into(),
            since: now,
            written: now,
        }
    }

    /// Seconds in all.
    pub(crate) fn seconds(&mut self) -> f64 {
        self.spent_on("")
    }

    /// Seconds for the pieces whose names contain this.
    pub(crate) fn spent_on(&mut self, what: &str) -> f64 {
        self.lap();
        let of_it = self.spent.iter().filter(|(piece, _)| piece.contains(what));
        of_it.fold(0.0, |all, (_, seconds)| all + seconds)
    }

    fn lap(&mut self) {
        let now = Instant::now();
        let spent = self.spent.entry(self.piece.clone()).or_default();
        *spent += (now - self.since).as_secs_f64();
        self.since = now;
    }

    fn write(&mut self) {
        self.lap();
        self.written = self.since;
        // Nobody wants a training to end because its time could not be written; the checkpoint beside it will complain.
        let _ = keep(&self.folder.join(FILE), self.settings, &self.spent);
    }
}

impl<S: Settings + Sync> Watch for Clock<'_, S> {
    fn start(&mut self, what: &str, iteration: usize, iterations: usize) {
        self.lap();
        self.piece = what.into();
        self.watch.start(what, iteration, iterations);
    }

    fn say(&mut self, what: &str) {
        self.watch.say(what);
    }

    fn step(&mut self, step: Step) -> Control {
        let control = self.watch.step(step);
        if control == Control::Stop || self.written.elapsed() > OFTEN {
            self.write();
        }
        control
    }
}

#[cfg(test)]
mod tests {
    use super::super::StopAfter;
    use super::*;

    const STEP: Step = Step {
        iteration: 1,
        free_energy: 0.0,
        held_out: None,
    };

    #[test]
    fn time_adds_up_over_sessions_under_the_same_settings_only() {
        let folder = tempfile::tempdir().unwrap();
        let pause = || std::thread::sleep(Duration::from_millis(20));
        for session in 1..=2 {
            let mut button = StopAfter(1);
            let mut clock = Clock::new(&mut button, folder.path(), &7);
            clock.start("baseline, first", 0, 2);
            pause();
            clock.start("ours", 0, 2);
            pause();
            assert_eq!(clock.step(STEP), Control::Stop);
            let least = 0.02 * f64::from(session);
            assert!(clock.spent_on("baseline") >= least);
            assert!(clock.seconds() >= 2.0 * least);
        }
        let mut nobody = ();
        let mut other = Clock::new(&mut nobody, folder.path(), &8);
        assert!(other.spent_on("baseline") == 0.0);
    }
}
