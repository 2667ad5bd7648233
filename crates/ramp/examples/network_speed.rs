//! How fast the networks run on one thread: forward and backward, the least of several repeats.
//!
//! `cargo run --release -p ramp-ml --example network_speed [mlp|chain|dense|conv]…`

use ramp::network::{Activation, Block, Conv, ConvLayer, Mlp, Network};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use std::time::Instant;

/// A network with its numbers.
struct Run<N> {
    network: N,
    parameters: Vec<f32>,
    gradient: Vec<f32>,
}

impl<N: Network> Run<N> {
    fn new(network: N, seed: u64) -> Self {
        let len = network.parameters().iter().map(|p| p.len()).sum();
        let mut parameters = vec![0.0; len];
        network.initialize(&mut ChaCha8Rng::seed_from_u64(seed), &mut parameters);
        Run {
            network,
            parameters,
            gradient: vec![0.0; len],
        }
    }
}

fn normals(len: usize) -> Aligned {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let values: Vec<f32> = (0..len).map(|_| StandardNormal.sample(&mut rng)).collect();
    Aligned::new(&values)
}

/// Numbers that begin on a cache line, as an arena's should: otherwise every load of a wide register straddles two.
struct Aligned(Vec<f32>, std::ops::Range<usize>);

impl Aligned {
    fn new(values: &[f32]) -> Self {
        let mut all = vec![0.0; values.len() + 16];
        let begin = all.as_ptr().align_offset(64);
        all[begin..][..values.len()].copy_from_slice(values);
        Aligned(all, begin..begin + values.len())
    }

    fn zeros(len: usize) -> Self {
        Aligned::new(&vec![0.0; len])
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.0[self.1.clone()]
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0[self.1.clone()]
    }
}

fn least(repeats: usize, mut work: impl FnMut()) -> f64 {
    work();
    let mut best = f64::INFINITY;
    for _ in 0..repeats {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    best
}

/// Twenty small perceptrons on 10,000 rows in blocks.
fn mlp() {
    for block in [128, 256, 272, 512] {
        let mut runs: Vec<_> = (0..20)
            .map(|i| Run::new(Mlp::new(2, &[32, 32], 2).unwrap(), i))
            .collect();
        let rows = 10_000_usize.div_ceil(block) * block;
        let input = normals(2 * rows);
        let grad = normals(2 * block);
        let network = &runs[0].network;
        let mut tape = Aligned::zeros(network.tape_len(block));
        let mut scratch = Aligned::zeros(network.scratch_len(block));
        let mut output = Aligned::zeros(2 * block);
        let mut grad_input = Aligned::zeros(2 * block);
        let mut parts = [f64::INFINITY; 2];
        for (backward, part) in [false, true].into_iter().zip(&mut parts) {
            *part = least(15, || {
                for input in input.chunks_exact(2 * block) {
                    for run in &mut runs {
                        let input = Block::feature_major(input, 2, block);
                        let (n, p) = (&run.network, &run.parameters);
                        n.forward(p, input, &mut output, &mut tape, &mut scratch);
                        if backward {
                            let (to, g) = (&mut run.gradient, Some(&mut grad_input[..]));
                            n.backward(p, input, &tape, &grad, g, to, &mut scratch);
                        }
                    }
                }
            });
        }
        println!(
            "20 × 2-32-32-2 tanh, {rows} rows in blocks of {block}: {:.2} ms, forward alone {:.2} ms",
            parts[1], parts[0]
        );
    }
}

/// One perceptron applied 100 times in a chain.
fn chain() {
    let rows = 208;
    let mut run = Run::new(Mlp::new(5, &[128], 5).unwrap(), 1);
    let steps = 100;
    let network = &run.network;
    let mut tapes = Aligned::zeros(steps * network.tape_len(rows));
    let mut scratch = Aligned::zeros(network.scratch_len(rows));
    let mut states = normals((steps + 1) * 5 * rows);
    let (mut grad, mut next) = (normals(5 * rows), Aligned::zeros(5 * rows));
    let tape_len = network.tape_len(rows);
    let time = least(15, || {
        for step in 0..steps {
            let (from, to) = states.split_at_mut((step + 1) * 5 * rows);
            let input = Block::feature_major(&from[step * 5 * rows..], 5, rows);
            let tape = &mut tapes[step * tape_len..][..tape_len];
            run.network.forward(
                &run.parameters,
                input,
                &mut to[..5 * rows],
                tape,
                &mut scratch,
            );
        }
        for step in (0..steps).rev() {
            let input = Block::feature_major(&states[step * 5 * rows..][..5 * rows], 5, rows);
            let tape = &tapes[step * tape_len..][..tape_len];
            run.network.backward(
                &run.parameters,
                input,
                tape,
                &grad,
                Some(&mut next),
                &mut run.gradient,
                &mut scratch,
            );
            std::mem::swap(&mut grad, &mut next);
        }
        grad.fill(0.1);
    });
    println!("5-128-5 tanh, 100 steps, {rows} rows: {time:.2} ms");
}

/// Layers of several sizes, to choose between tiles and `gemm`, and a wide one on images.
fn dense() {
    for (inputs, outputs, rows, row_major) in [
        (32, 32, 256, false),
        (5, 128, 208, false),
        (128, 5, 208, false),
        (64, 32, 256, false),
        (64, 64, 256, false),
        (128, 64, 256, false),
        (128, 128, 256, false),
        (256, 128, 256, false),
        (256, 256, 256, false),
        (512, 256, 256, false),
        (512, 512, 256, false),
        (2048, 32, 256, false),
        (32, 2048, 256, false),
        (2048, 27, 256, false),
        (16384, 128, 2000, true),
    ] {
        let mut run = Run::new(Mlp::new(inputs, &[], outputs).unwrap(), 1);
        let data = normals(inputs * rows);
        let grad = normals(outputs * rows);
        let mut output = Aligned::zeros(outputs * rows);
        let mut scratch = Aligned::zeros(run.network.scratch_len(rows));
        let input = if row_major {
            Block::row_major(&data, inputs, rows)
        } else {
            Block::feature_major(&data, inputs, rows)
        };
        let mut grad_input = Aligned::zeros(inputs * rows);
        let repeats = if inputs * outputs * rows > 1 << 28 {
            5
        } else {
            100
        };
        let mut times = [0.0; 3];
        times[0] = least(repeats, || {
            run.network
                .forward(&run.parameters, input, &mut output, &mut [], &mut scratch)
        });
        for (time, with_input) in times[1..].iter_mut().zip([false, true]) {
            let mut to = Some(&mut grad_input[..]);
            *time = least(repeats, || {
                let to = if with_input { to.as_deref_mut() } else { None };
                let g = &mut run.gradient;
                run.network
                    .backward(&run.parameters, input, &[], &grad, to, g, &mut scratch)
            });
        }
        let work = 2e-6 * (inputs * outputs * rows) as f64;
        println!(
            "{inputs}-{outputs} on {rows}{}: forward {:.0}, weights {:.0}, inputs {:.0} GFLOP/s ({:.3}, {:.3}, {:.3} ms)",
            if row_major { " row-major rows" } else { "" },
            work / times[0],
            work / times[1],
            work / (times[2] - times[1]),
            times[0],
            times[1],
            times[2] - times[1],
        );
    }
}

/// Three convolutions on 2,800 images.
fn conv() {
    let (rows, images) = (112, 2800);
    let layer = |channels, stride| ConvLayer {
        channels,
        kernel: 3,
        stride,
        padding: 1,
    };
    let layers = [layer(32, 1), layer(64, 2), layer(32, 2)];
    for activation in [Activation::Relu, Activation::Tanh, Activation::Silu] {
        let network = Conv::new([1, 32, 32], &layers, &[], 27).unwrap();
        let mut run = Run::new(network.with_activation(activation), 1);
        let n = &run.network;
        let data = normals(1024 * rows);
        let input = Block::row_major(&data, 1024, rows);
        let grad = normals(27 * rows);
        let mut output = Aligned::zeros(27 * rows);
        let mut tape = Aligned::zeros(n.tape_len(rows));
        let mut scratch = Aligned::zeros(n.scratch_len(rows));
        let mut times = [0.0; 2];
        for (backward, time) in [false, true].into_iter().zip(&mut times) {
            *time = least(3, || {
                for _ in 0..images / rows {
                    n.forward(&run.parameters, input, &mut output, &mut tape, &mut scratch);
                    if backward {
                        let to = &mut run.gradient;
                        n.backward(&run.parameters, input, &tape, &grad, None, to, &mut scratch);
                    }
                }
            });
        }
        println!(
            "3 convolutions {activation:?} on {images} 32×32 images: {:.0} ms, forward alone {:.0} ms; per block of {rows}: scratch {:.1} MB, tape {:.1} MB",
            times[1],
            times[0],
            scratch.len() as f64 * 4e-6,
            tape.len() as f64 * 4e-6,
        );
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let all: [(&str, fn()); 4] = [
        ("mlp", mlp),
        ("chain", chain),
        ("dense", dense),
        ("conv", conv),
    ];
    for (name, work) in all {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            work();
        }
    }
}
