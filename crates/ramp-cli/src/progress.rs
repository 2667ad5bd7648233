//! A progress bar for training: free energy, rate and time left; silent when nobody looks at a terminal.

use crate::interrupt;
use crate::output::say;
use indicatif::{ProgressBar, ProgressStyle};
use ramp::train::{Control, Event, Observer};

/// The bar, what it last said of held-out samples, and what a training is called.
pub struct Bar(ProgressBar, String, &'static str);

impl Bar {
    pub fn new() -> Self {
        Self::of("training")
    }

    /// One for a training of another name.
    pub fn of(what: &'static str) -> Self {
        interrupt::listen();
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template(
            "{prefix} {bar:32.cyan/blue} {pos}/{len} · {msg} · {per_sec} · {eta} left",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Bar(bar, String::new(), what)
    }
}

impl Bar {
    /// A piece of work begins at an iteration, of so many.
    pub fn start(&mut self, what: &str, iteration: usize, iterations: usize) {
        self.0.set_prefix(what.to_owned());
        self.0.set_length(iterations as u64);
        self.0.set_position(iteration as u64);
        // Steps of an earlier session say nothing about the speed of this one.
        self.0.reset_eta();
        if iteration > 0 && iteration < iterations {
            self.0.println(format!(
                "{what}: going on from iteration {iteration} of {iterations}"
            ));
        }
    }

    /// Prints a line above the bar.
    pub fn say(&mut self, what: &str) {
        self.0.suspend(|| say!("{what}\n"));
    }

    /// A step was taken; whether to go on.
    pub fn step(&mut self, iteration: usize, free_energy: f64, held_out: Option<f64>) -> Control {
        if let Some(held_out) = held_out {
            self.1 = format!(", validation {held_out:.4}");
        }
        let message = format!("free energy {free_energy:.4} nats{}", self.1);
        self.0.set_message(message);
        self.0.set_position(iteration as u64);
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
            } => self.start(self.2, *iteration, *iterations),
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
        self.0.finish_and_clear();
    }
}

/// A progress bar for a passage through a file: rows, rate and time left.
pub struct Passing(ProgressBar);

impl Passing {
    pub fn new() -> Self {
        interrupt::listen();
        let bar = ProgressBar::new(1000);
        let style =
            ProgressStyle::with_template("{bar:32.cyan/blue} {percent} % · {msg} · {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Passing(bar)
    }

    /// So many rows are done, which is this fraction of the file.
    pub fn at(&self, rows: u64, fraction: Option<f64>) {
        let rate = rows as f64 / self.0.elapsed().as_secs_f64().max(1e-3);
        self.0.set_message(format!("{rows} rows · {rate:.0}/s"));
        if let Some(fraction) = fraction {
            self.0.set_position((1000.0 * fraction) as u64);
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
