//! A progress bar for training: free energy, rate and time left; silent when nobody looks at a terminal.

use crate::interrupt;
use indicatif::{ProgressBar, ProgressStyle};
use ramp::train::Control;
use ramp_lab::experiments::Watch;

pub struct Bar(ProgressBar);

impl Bar {
    pub fn new() -> Self {
        interrupt::listen();
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template(
            "{prefix} {bar:32.cyan/blue} {pos}/{len} · {msg} · {per_sec} · {eta} left",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Bar(bar)
    }
}

impl Watch for Bar {
    fn start(&mut self, what: &str, iteration: usize, iterations: usize) {
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

    fn step(&mut self, iteration: usize, free_energy: f64) -> Control {
        self.0
            .set_message(format!("free energy {free_energy:.4} nats"));
        self.0.set_position(iteration as u64);
        if interrupt::wished() {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
