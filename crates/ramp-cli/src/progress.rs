//! How far the work has come: a bar on a terminal, and lines now and then where the output goes into a log.

use crate::interrupt;
use crate::output::{self, note, say};
use indicatif::{ProgressBar, ProgressStyle};
use ramp::train::{Control, Event, Observer};
use std::time::{Duration, Instant};

/// A progress bar for training: free energy, rate and time left.
pub struct Bar {
    bar: ProgressBar,
    /// What was last said of held-out samples.
    held_out: String,
    /// What a training is called.
    what: &'static str,
    log: Log,
}

/// Lines in a log: at every tenth of the way, but not every moment, and none of what is done in a moment.
struct Log {
    what: String,
    iterations: usize,
    /// Where this session began, and when.
    from: (usize, Instant),
    tenth: usize,
    last: Instant,
    silent: bool,
}

impl Log {
    /// Lines are never closer than this, but for the last.
    const APART: Duration = Duration::from_secs(2);

    fn new(what: &str, iteration: usize, iterations: usize) -> Self {
        let now = Instant::now();
        Log {
            what: what.into(),
            iterations,
            from: (iteration, now),
            tenth: 10 * iteration / iterations.max(1),
            last: now,
            silent: true,
        }
    }

    /// The line of a step, if it is time for one.
    fn line(&mut self, iteration: usize, message: &str) -> Option<String> {
        let tenth = 10 * iteration / self.iterations.max(1);
        let last = iteration == self.iterations;
        let soon = self.last.elapsed() < Self::APART;
        if tenth == self.tenth || soon && (self.silent || !last) {
            return None;
        }
        (self.tenth, self.last, self.silent) = (tenth, Instant::now(), false);
        let done = iteration.saturating_sub(self.from.0).max(1);
        let left = self.iterations.saturating_sub(iteration);
        let seconds = self.from.1.elapsed().as_secs_f64() / done as f64 * left as f64;
        let left = match last {
            true => String::new(),
            false => format!(" · {seconds:.0} s left"),
        };
        Some(format!(
            "{}: {iteration} of {} iterations · {message}{left}",
            self.what, self.iterations
        ))
    }
}

impl Bar {
    pub fn new() -> Self {
        Self::of("training")
    }

    /// One for a training of another name.
    pub fn of(what: &'static str) -> Self {
        interrupt::listen();
        let bar = match output::is_muted() {
            true => ProgressBar::hidden(),
            false => ProgressBar::new(0),
        };
        let style = ProgressStyle::with_template(
            "{prefix} {bar:32.cyan/blue} {pos}/{len} · {msg} · {per_sec} · {eta} left",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Bar {
            bar,
            held_out: String::new(),
            what,
            log: Log::new(what, 0, 0),
        }
    }
}

impl Bar {
    /// A piece of work begins at an iteration, of so many.
    pub fn start(&mut self, what: &str, iteration: usize, iterations: usize) {
        self.bar.set_prefix(what.to_owned());
        self.bar.set_length(iterations as u64);
        self.bar.set_position(iteration as u64);
        // Steps of an earlier session say nothing about the speed of this one.
        self.bar.reset_eta();
        self.log = Log::new(what, iteration, iterations);
        if iteration > 0 && iteration < iterations {
            self.bar
                .suspend(|| note!("{what}: going on from iteration {iteration} of {iterations}"));
        }
    }

    /// Prints a line above the bar.
    pub fn say(&mut self, what: &str) {
        self.bar.suspend(|| say!("{what}\n"));
    }

    /// A step was taken; whether to go on.
    pub fn step(&mut self, iteration: usize, free_energy: f64, held_out: Option<f64>) -> Control {
        if let Some(held_out) = held_out {
            self.held_out = format!(", validation {held_out:.4}");
        }
        // Some experiments count other things than steps of a training.
        let message = match free_energy.is_nan() {
            true => "done".into(),
            false => format!("free energy {free_energy:.4} nats{}", self.held_out),
        };
        match self.bar.is_hidden() {
            true => {
                if let Some(line) = self.log.line(iteration, &message) {
                    note!("{line}");
                }
            }
            false => {
                self.bar.set_message(message);
                self.bar.set_position(iteration as u64);
            }
        }
        match interrupt::wished() {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}

impl Observer for Bar {
    fn observe(&mut self, event: &Event<'_>) -> Control {
        match event {
            Event::Start {
                iteration,
                iterations,
                ..
            } => self.start(self.what, *iteration, *iterations),
            Event::Step { record, .. } => {
                return self.step(record.iteration, record.free_energy, record.held_out);
            }
            _ => {}
        }
        Control::Continue
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A progress bar for a passage through a file: rows, rate and time left.
pub struct Passing {
    bar: ProgressBar,
    last: Instant,
}

impl Passing {
    /// Lines of a log are so far apart.
    const APART: Duration = Duration::from_secs(10);

    pub fn new() -> Self {
        interrupt::listen();
        let bar = ProgressBar::new(1000);
        let style =
            ProgressStyle::with_template("{bar:32.cyan/blue} {percent} % · {msg} · {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Passing {
            bar,
            last: Instant::now(),
        }
    }

    /// So many rows are done, which is this fraction of the file.
    pub fn at(&mut self, rows: u64, fraction: Option<f64>) {
        let rate = rows as f64 / self.bar.elapsed().as_secs_f64().max(1e-3);
        let message = format!("{rows} rows · {rate:.0}/s");
        if self.bar.is_hidden() {
            if self.last.elapsed() >= Self::APART {
                self.last = Instant::now();
                let part = fraction.map_or(String::new(), |f| format!("{:.0} % · ", 100.0 * f));
                note!("{part}{message}");
            }
            return;
        }
        self.bar.set_message(message);
        if let Some(fraction) = fraction {
            self.bar.set_position((1000.0 * fraction) as u64);
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A progress bar for a count of things that several threads do.
pub struct Counting {
    bar: ProgressBar,
    last: std::sync::Mutex<Instant>,
}

impl Counting {
    /// Lines of a log are so far apart.
    const APART: Duration = Duration::from_secs(10);

    pub fn new() -> Self {
        interrupt::listen();
        let bar = ProgressBar::new(0);
        let style =
            ProgressStyle::with_template("{msg} {bar:32.cyan/blue} {pos}/{len} · {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Counting {
            bar,
            last: std::sync::Mutex::new(Instant::now()),
        }
    }

    /// So many of so many are done; whether someone wishes to stop.
    pub fn at(&self, what: &str, done: usize, all: usize) -> bool {
        if self.bar.is_hidden() {
            if let Ok(mut last) = self.last.lock()
                && last.elapsed() >= Self::APART
            {
                *last = Instant::now();
                note!("{what}: {done} of {all}");
            }
        } else {
            if self.bar.message() != what {
                self.bar.set_message(what.to_owned());
                self.bar.reset_eta();
            }
            self.bar.set_length(all as u64);
            self.bar.set_position(done as u64);
        }
        interrupt::wished()
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_line_at_every_tenth_and_none_of_a_moment() {
        let mut log = Log::new("training", 0, 100);
        assert_eq!(log.line(50, "m"), None);
        assert_eq!(log.line(100, "m"), None);
        let mut log = Log::new("training", 0, 100);
        log.last -= Log::APART;
        assert_eq!(log.line(5, "m"), None, "no tenth yet");
        let line = log.line(10, "m").unwrap();
        assert!(
            line.starts_with("training: 10 of 100 iterations · m · "),
            "{line}"
        );
        assert_eq!(log.line(20, "m"), None, "too soon");
        assert_eq!(
            log.line(100, "m").unwrap(),
            "training: 100 of 100 iterations · m"
        );
    }
}
