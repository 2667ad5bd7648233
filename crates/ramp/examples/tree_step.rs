//! How long one training step of the linear tree takes: seven latents, eight observations, full batch, the same work as
//! `bench/peers/tree_jax.py`. Prints one line of JSON with the median step and the peak memory of the process.
//!
//! `cargo run --release -p ramp-ml --example tree_step -- [N] [ITERATIONS] [THREADS] [MIXTURE]`; a MIXTURE of 1 sample in
//! place of all leaves the pairwise term out, and so times the network part of the step.

use ramp::data::Dataset;
use ramp::family::View;
use ramp::graph::FactorTree;
use ramp::kernel::isa;
use ramp::model::Model;
use ramp::train::{Control, Event, TrainSpec, Trainer};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use std::time::Instant;

const LATENTS: usize = 7;
const OBSERVATIONS: usize = 8;

/// Every variable is its parent plus a standard normal; the leaves are observed.
fn linear(rows: usize) -> ramp::Result<Dataset> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut values = vec![vec![]; OBSERVATIONS];
    for _ in 0..rows {
        let mut sample = [0.0; LATENTS + OBSERVATIONS];
        for i in 0..sample.len() {
            let noise: f32 = StandardNormal.sample(&mut rng);
            // In level order the parent of node i is (i − 1) / 2.
            sample[i] = noise + if i == 0 { 0.0 } else { sample[(i - 1) / 2] };
        }
        for (column, &x) in values.iter_mut().zip(&sample[LATENTS..]) {
            column.push(x);
        }
    }
    let mut data = Dataset::new();
    for (i, column) in values.into_iter().enumerate() {
        data = data.observe(format!("x{}", i + 1), 1, column)?;
    }
    Ok(data)
}

/// The most memory the process has held, in megabytes of 10⁶ bytes, where the system tells.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024e-6)
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        0.5 * (sorted[middle - 1] + sorted[middle])
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |n| n.parse());
    let (rows, iterations, threads) = (number(10_000)?, number(20)?, number(2)?);
    let mixture = number(rows)?;
    if iterations < 2 {
        return Err("at least 2 ITERATIONS are needed: the first is not counted".into());
    }

    let data = linear(rows)?;
    let mut model = Model::builder(FactorTree::balanced(4, 2)?)
        .view(View::Natural) // what the peer's networks see
        .build(&data)?;
    let mut times = vec![];
    let mut begin = Instant::now();
    let spec = TrainSpec {
        iterations,
        mixture: Some(mixture),
        ..Default::default()
    };
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
        .fit(&mut model, &data)?;

    // The first step lays out the memory, as the peer's first compiles.
    let mut times = times.split_off(1);
    times.sort_by(f64::total_cmp);
    let free_energy = fit.records.last().map_or(f64::NAN, |r| r.free_energy);
    println!(
        "{{\"n\":{rows},\"threads\":{threads},\"mixture\":{mixture},\"isa\":\"{:?}\",\"iterations\":{iterations},\"ms_per_iter\":{:.4},\"ms_least\":{:.4},\"free_energy\":{free_energy:.6},\"peak_mb\":{}}}",
        isa(),
        median(&times),
        times[0],
        peak_memory().map_or("null".into(), |mb| format!("{mb:.1}")),
    );
    Ok(())
}
