//! How long one training step of the linear tree takes: seven latents, eight observations, full batch, the same work as
//! `bench/peers/tree_jax.py`. Prints one line of JSON with the median step and the peak memory of the process.
//!
//! `cargo run --release -p ramp-lab --example tree_step -- [N] [ITERATIONS] [THREADS] [MIXTURE] [RANKS]`; a MIXTURE of 1 sample in
//! place of all leaves the pairwise term out, and so times the network part of the step. RANKS within the process have THREADS each.

use ramp::data::Dataset;
use ramp::family::Inputs;
use ramp::graph::FactorTree;
use ramp::model::Model;
use ramp::train::TrainSpec;
use ramp_lab::timing::time_ranks;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardNormal};

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |n| n.parse());
    let (rows, iterations, threads) = (number(10_000)?, number(20)?, number(2)?);
    let (mixture, ranks) = (number(rows)?, number(1)?);
    let data = linear(rows)?;
    let model = Model::builder(FactorTree::balanced(4, 2)?)
        .inputs(Inputs::Natural) // what the peer's networks see
        .build(&data)?;
    let spec = TrainSpec {
        iterations,
        mixture: Some(mixture),
        ..TrainSpec::default()
    };
    let timing = time_ranks(&model, &data, spec, threads, ranks)?;
    println!("{}", serde_json::to_string(&timing)?);
    Ok(())
}
