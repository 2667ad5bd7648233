//! How long one training step of the pendulum's chain takes: 100 frames, batches of 200 videos, the same work as
//! `bench/peers/pendulum_jax.py --view moments`. Prints one line of JSON.
//!
//! `cargo run --release -p ramp-lab --example video_step -- [SIZE] [ITERATIONS] [THREADS] [RANKS]`; RANKS within the process have THREADS each

use ramp::graph::{FactorTree, Tying};
use ramp::model::Model;
use ramp::network::{MlpSpec, NetworkSpec};
use ramp::train::TrainSpec;
use ramp_lab::experiments::pendulum::data::Pendulum;
use ramp_lab::timing::time_ranks;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |n| n.parse());
    let (size, iterations, threads) = (number(32)?, number(10)?, number(2)?);
    let ranks = number(1)?;
    let videos = Pendulum {
        size,
        sequences: 250,
        steps: 100,
    };
    let data = videos.videos(0, 0)?.into_dataset()?;
    let network = NetworkSpec::Mlp(MlpSpec {
        hidden: vec![128],
        ..MlpSpec::default()
    });
    let model = Model::builder(FactorTree::chain(100)?)
        .families("gaussian(2)")?
        .tying(Tying::Role)
        .message_network(network.clone())
        .observation_network(network)
        .build(&data)?;
    let spec = TrainSpec {
        iterations,
        batch: Some(200),
        ..TrainSpec::default()
    };
    let timing = time_ranks(&model, &data, spec, threads, ranks)?;
    println!("{}", serde_json::to_string(&timing)?);
    Ok(())
}
