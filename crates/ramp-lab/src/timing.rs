//! How long training steps take: what `bench/run` sets beside its peers.

use crate::error::LabError;
use crate::metrics::median;
use ramp::data::Dataset;
use ramp::model::Model;
use ramp::train::{Control, Event, TrainSpec, Trainer};
use serde::Serialize;
use std::time::Instant;

/// The times of some training steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Steps taken.
    pub iterations: usize,
    /// Threads.
    pub threads: usize,
    /// The vector instructions in use.
    pub isa: String,
    /// The median of all steps but the first, in milliseconds.
    pub ms_per_iter: f64,
    /// The least of them.
    pub ms_least: f64,
    /// The free energy before the last, in nats.
    pub free_energy: f64,
    /// The most memory the process has held, in MB.
    pub peak_mb: Option<f64>,
}

/// Takes training steps and times them. The first lays out the memory and is not counted.
pub fn time_steps(
    model: &mut Model,
    data: &Dataset,
    spec: TrainSpec,
    threads: usize,
) -> Result<Timing, LabError> {
    if spec.iterations < 2 {
        return Err(LabError::Invalid(
            "at least 2 iterations are needed: the first is not counted".into(),
        ));
    }
    let iterations = spec.iterations;
    let (mut times, mut begin) = (vec![], Instant::now());
    let fit = Trainer::new(spec)?
        .threads(threads)
        .observer(|event: &Event<'_>| {
            match event {
                Event::Begin => begin = Instant::now(),
                Event::Step { .. } => times.push(begin.elapsed().as_secs_f64() * 1e3),
                _ => {}
            }
            Control::Continue
        })
        .fit(model, data)?;
    let counted = times.get(1..).unwrap_or_default();
    Ok(Timing {
        iterations,
        threads,
        isa: format!("{:?}", ramp::kernel::isa()),
        ms_per_iter: median(counted),
        ms_least: counted.iter().copied().fold(f64::INFINITY, f64::min),
        free_energy: fit.records.last().map_or(f64::NAN, |r| r.free_energy),
        peak_mb: crate::harness::peak_rss_mb(),
    })
}
