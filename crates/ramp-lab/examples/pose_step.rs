//! How long one training step of poses takes at the paper's settings: 14 joints, batches of 200, the same work as
//! `bench/peers/pose_torch.py`. Prints one line of JSON.
//!
//! `cargo run --release -p ramp-lab --example pose_step -- [ITERATIONS] [THREADS] [RANKS]`; RANKS within the process have THREADS each

use ramp_lab::experiments::pose::PoseRun;
use ramp_lab::experiments::pose::data::Body;
use ramp_lab::harness::{Recipe, Scale};
use ramp_lab::timing::time_ranks;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |n| n.parse());
    let (iterations, threads, ranks) = (number(10)?, number(2)?, number(1)?);
    let run = PoseRun::new(Scale::Paper, Recipe::Paper, 0);
    let data = Body::default().poses(1000, 0).dataset()?;
    let model = run.model(&data)?;
    let mut spec = run.core.train;
    spec.iterations = iterations;
    let timing = time_ranks(&model, &data, spec, threads, ranks)?;
    println!("{}", serde_json::to_string(&timing)?);
    Ok(())
}
