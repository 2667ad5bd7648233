//! How long the free energy of one latent takes, in nanoseconds per pair of samples, value and gradient.
//!
//! `cargo run --release -p ramp-ml --example pairwise_speed -- [N] [FAMILY] [THREADS] [SECONDS]`; `RAMP_ISA=avx2` narrows the
//! lanes.

use ramp::family::Belief;
use ramp::message::{Messages, Node, Presence};
use ramp::objective::{Mixture, free_energy};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows: usize = arguments
        .first()
        .map_or(10_000, |n| n.parse().expect("N is a whole number"));
    let belief: Belief = arguments
        .get(1)
        .map_or("gaussian(1)", |f| f)
        .parse()
        .expect("a family such as gaussian(2)");
    let threads = arguments
        .get(2)
        .map_or(2, |n| n.parse().expect("THREADS is a whole number"));
    let seconds: f64 = arguments
        .get(3)
        .map_or(3.0, |n| n.parse().expect("SECONDS is a number"));
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .expect("the first pool");

    let (dim, prior) = (belief.dim(), belief.prior());
    let factors = 3;
    let mut messages = Messages::<f32>::zeros(rows, [dim; 3]);
    let mut state = 1u64;
    for m in 0..factors {
        for n in 0..rows {
            let raw: Vec<f32> = (0..dim)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (state >> 40) as f32 / (1 << 23) as f32 - 1.0
                })
                .collect();
            let raw: Vec<f64> = raw.into_iter().map(f64::from).collect();
            let mut message = vec![0.0; dim];
            belief.constrain(&raw, &mut message);
            let stride = messages.stride();
            for (d, &value) in message.iter().enumerate() {
                messages.message_mut(m)[d * stride + n] = value as f32;
            }
        }
    }
    let nodes = [Node {
        belief: belief.clone(),
        prior,
        messages: 0..factors,
    }];
    let presence = Presence::complete(factors);
    let mut gradient = messages.clone();
    let pairs = (factors * rows * rows) as f64;
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds || best.is_infinite() {
        let begin = Instant::now();
        free_energy(
            &nodes,
            &messages,
            &presence,
            Mixture::default(),
            Some(&mut gradient),
        );
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!(
        "{{\"family\":\"{belief}\",\"n\":{rows},\"threads\":{threads},\"isa\":\"{:?}\",\"ns_per_pair\":{:.4}}}",
        ramp::kernel::isa(),
        best * 1e9 / pairs
    );
}
