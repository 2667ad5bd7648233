//! How fast the networks run: forward and backward, the least of several repeats, one line of JSON per measurement. On
//! one thread, but for `tree`.
//!
//! `cargo run --release -p ramp-ml --example network_speed -- [tree|mlp|chain|dense|conv]…`; `tree` takes
//! `tree=ROWS,THREADS,REPEATS`, and is the network part of the linear tree's step as
//! `bench/peers/tree_jax.py --network-only` measures it.

use ramp::network::{Activation, Block, Conv, ConvLayer, Mlp, Network, ROW_UNIT};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
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

/// What a thread needs for its share of the rows.
struct Share {
    rows: usize,
    gradients: Vec<Vec<f32>>,
    tape: Aligned,
    scratch: Aligned,
    output: Aligned,
    grad_input: Aligned,
}

/// The linear tree's twenty networks, the eight of one input from observations and the twelve of two from beliefs, on
/// several threads: blocks of rows in shards with gradients of their own, as in a model.
fn tree(numbers: &[usize]) {
    let number = |i: usize, default| numbers.get(i).copied().unwrap_or(default);
    let (rows, threads, repeats) = (number(0, 10_000), number(1, 2), number(2, 15));
    const BLOCK: usize = 256;
    const SHARDS: usize = 16;
    let mut runs: Vec<_> = (0..20)
        .map(|i| {
            let inputs = if i < 8 { 1 } else { 2 };
            Run::new(Mlp::new(inputs, &[32, 32], 2).unwrap(), i)
        })
        .collect();
    let input = normals(2 * BLOCK);
    let grad = normals(2 * BLOCK);
    let per_share = rows.div_ceil(SHARDS).next_multiple_of(BLOCK);
    let of_two = &runs[19].network;
    let mut shares: Vec<Share> = (0..rows)
        .step_by(per_share)
        .map(|start| Share {
            rows: per_share.min(rows - start),
            gradients: runs.iter().map(|r| vec![0.0; r.gradient.len()]).collect(),
            tape: Aligned::zeros(of_two.tape_len(BLOCK)),
            scratch: Aligned::zeros(of_two.scratch_len(BLOCK)),
            output: Aligned::zeros(2 * BLOCK),
            grad_input: Aligned::zeros(2 * BLOCK),
        })
        .collect();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("a pool of threads");
    let time = least(repeats, || {
        let networks = &runs;
        pool.install(|| {
            shares.par_iter_mut().for_each(|share| {
                let Share { tape, scratch, .. } = share;
                for gradient in &mut share.gradients {
                    gradient.fill(0.0);
                }
                for start in (0..share.rows).step_by(BLOCK) {
                    let len = BLOCK.min(share.rows - start).next_multiple_of(ROW_UNIT);
                    for (run, gradient) in networks.iter().zip(&mut share.gradients) {
                        let (n, p, inputs) = (&run.network, &run.parameters, run.network.inputs());
                        let x = Block::feature_major(&input[..inputs * len], inputs, len);
                        let tape = &mut tape[..n.tape_len(len)];
                        n.forward(p, x, &mut share.output[..2 * len], tape, scratch);
                        // Nobody asks for the gradient at an observation.
                        let to = (inputs > 1).then_some(&mut share.grad_input[..2 * len]);
                        n.backward(p, x, tape, &grad[..2 * len], to, gradient, scratch);
                    }
                }
            });
        });
        for (i, run) in runs.iter_mut().enumerate() {
            run.gradient.fill(0.0);
            for share in &shares {
                let parts = run.gradient.iter_mut().zip(&share.gradients[i]);
                parts.for_each(|(sum, g)| *sum += g);
            }
        }
    });
    println!(
        "{{\"work\":\"tree\",\"networks\":20,\"n\":{rows},\"threads\":{threads},\"isa\":\"{:?}\",\"ms\":{time:.4}}}",
        ramp::kernel::isa()
    );
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
            "{{\"work\":\"mlp\",\"networks\":20,\"sizes\":[2,32,32,2],\"n\":{rows},\"block\":{block},\"ms\":{:.4},\"ms_forward\":{:.4}}}",
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
    println!(
        "{{\"work\":\"chain\",\"sizes\":[5,128,5],\"steps\":{steps},\"n\":{rows},\"ms\":{time:.4}}}"
    );
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
            "{{\"work\":\"dense\",\"sizes\":[{inputs},{outputs}],\"n\":{rows},\"row_major\":{row_major},\"gflops\":[{:.0},{:.0},{:.0}],\"ms_forward\":{:.4},\"ms_weights\":{:.4},\"ms_inputs\":{:.4}}}",
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
            "{{\"work\":\"conv\",\"activation\":\"{activation:?}\",\"n\":{images},\"block\":{rows},\"ms\":{:.1},\"ms_forward\":{:.1},\"scratch_mb\":{:.1},\"tape_mb\":{:.1}}}",
            times[1],
            times[0],
            scratch.len() as f64 * 4e-6,
            tape.len() as f64 * 4e-6,
        );
    }
}

/// A measurement, given the numbers after its name.
type Work = fn(&[usize]);

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let all: [(&str, Work); 5] = [
        ("tree", tree),
        ("mlp", |_| mlp()),
        ("chain", |_| chain()),
        ("dense", |_| dense()),
        ("conv", |_| conv()),
    ];
    let whole = |n: &str| n.parse().expect("numbers after `=` are whole");
    for (name, work) in all {
        if wanted.is_empty() {
            work(&[]);
        }
        for wish in &wanted {
            let (kind, numbers) = wish.split_once('=').unwrap_or((wish, ""));
            if kind == name {
                let numbers = numbers.split(',').filter(|n| !n.is_empty());
                work(&numbers.map(whole).collect::<Vec<usize>>());
            }
        }
    }
}
