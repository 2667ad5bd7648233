//! How long training steps take: what `bench/run` sets beside its peers.

use crate::error::LabError;
use crate::metrics::median;
use ramp::collective::{Collective, CollectiveError, Single, Threads};
use ramp::data::Dataset;
use ramp::model::Model;
use ramp::train::{Control, Event, TrainSpec, Trainer};
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
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
    /// What a rank got from others in a step, where there were others.
    pub traffic: Option<Traffic>,
}

/// What one rank got from the others, a step on average: waiting for a slower rank counts as time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// Ranks.
    pub ranks: usize,
    /// Parts of buffers that all ranks get (messages, values, summed gradients), in MB.
    pub gather_mb: f64,
    /// How long that took, in milliseconds.
    pub gather_ms: f64,
    /// What goes to one rank alone (sums over pairs, gradients of shards), in MB.
    pub exchange_mb: f64,
    /// How long that took, in milliseconds.
    pub exchange_ms: f64,
}

/// Takes training steps and times them. The first lays out the memory and is not counted.
pub fn time_steps(
    model: &mut Model,
    data: &Dataset,
    spec: TrainSpec,
    threads: usize,
) -> Result<Timing, LabError> {
    time_rank(model, data, spec, threads, &Single)
}

/// [`time_steps`] of several ranks within this process, each with so many threads: the times are those of rank 0.
pub fn time_ranks(
    model: &Model,
    data: &Dataset,
    spec: TrainSpec,
    threads: usize,
    ranks: usize,
) -> Result<Timing, LabError> {
    if ranks < 2 {
        return time_steps(&mut model.clone(), data, spec, threads);
    }
    let of_rank = |rank: Threads| {
        let measured = Measured::new(rank);
        let iterations = spec.iterations;
        let mut timing = time_rank(&mut model.clone(), data, spec.clone(), threads, &measured)?;
        timing.traffic = Some(measured.traffic(iterations));
        Ok(timing)
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (Threads::group(ranks).into_iter())
            .map(|rank| scope.spawn(|| of_rank(rank)))
            .collect();
        let mut timings = all.into_iter().map(|rank| match rank.join() {
            Ok(timing) => timing,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let first = timings
            .next()
            .unwrap_or_else(|| Err(LabError::Invalid("there is no rank to time".into())));
        timings.try_for_each(|timing| timing.map(drop))?;
        first
    })
}

/// A rank that notes what it gets and how long that takes.
struct Measured {
    rank: Threads,
    traffic: Mutex<Traffic>,
}

impl Measured {
    fn new(rank: Threads) -> Self {
        Measured {
            rank,
            traffic: Mutex::default(),
        }
    }

    /// The traffic of a step.
    fn traffic(&self, steps: usize) -> Traffic {
        let all = *self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        let each = |sum: f64| sum / steps as f64;
        Traffic {
            ranks: self.rank.ranks(),
            gather_mb: each(all.gather_mb),
            gather_ms: each(all.gather_ms),
            exchange_mb: each(all.exchange_mb),
            exchange_ms: each(all.exchange_ms),
        }
    }

    /// What others send of a buffer in parts, in MB.
    fn others_share(&self, ends: &[usize]) -> f64 {
        let own = self.rank.rank();
        let start = own.checked_sub(1).map_or(0, |before| ends[before]);
        (ends.last().unwrap_or(&0) - (ends[own] - start)) as f64 / 1e6
    }

    fn note(&self, note: impl FnOnce(&mut Traffic)) {
        note(&mut self.traffic.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Collective for Measured {
    fn rank(&self) -> usize {
        self.rank.rank()
    }

    fn ranks(&self) -> usize {
        self.rank.ranks()
    }

    fn all_gather(&self, buffer: &mut [u8], ends: &[usize]) -> Result<(), CollectiveError> {
        let begun = Instant::now();
        self.rank.all_gather(buffer, ends)?;
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        self.note(|traffic| {
            traffic.gather_mb += self.others_share(ends);
            traffic.gather_ms += ms;
        });
        Ok(())
    }

    fn all_to_all(
        &self,
        send: &[u8],
        send_ends: &[usize],
        receive: &mut [u8],
        receive_ends: &[usize],
    ) -> Result<(), CollectiveError> {
        let begun = Instant::now();
        self.rank
            .all_to_all(send, send_ends, receive, receive_ends)?;
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        self.note(|traffic| {
            traffic.exchange_mb += self.others_share(receive_ends);
            traffic.exchange_ms += ms;
        });
        Ok(())
    }

    fn broadcast(&self, buffer: &mut [u8]) -> Result<(), CollectiveError> {
        self.rank.broadcast(buffer)
    }

    fn maximum(&self, value: u64) -> Result<u64, CollectiveError> {
        self.rank.maximum(value)
    }
}

fn time_rank(
    model: &mut Model,
    data: &Dataset,
    spec: TrainSpec,
    threads: usize,
    rank: &dyn Collective,
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
        .ranks(rank)
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
        traffic: None,
    })
}
