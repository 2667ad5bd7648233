//! Wide layers against the plain sums, number by number, on every route.

use super::*;
use crate::kernel::activation::Activation;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ROUTES: [Route; 4] = [
    Route::Sparse(Isa::Portable),
    Route::Sparse(Isa::Avx2),
    Route::Sparse(Isa::Avx512),
    Route::Gemm,
];

fn numbers(rng: &mut ChaCha8Rng, len: usize, filled: f64) -> Vec<f32> {
    (0..len)
        .map(|_| match rng.random_bool(filled) {
            true => rng.random_range(-1.0..1.0),
            false => 0.0,
        })
        .collect()
}

fn assert_close(found: &[f32], exact: impl Iterator<Item = f64>, what: &str) {
    for (i, (&y, e)) in found.iter().zip(exact).enumerate() {
        let off = (f64::from(y) - e).abs();
        assert!(
            off < 3e-5 * (1.0 + e.abs()),
            "{what}, entry {i}: {y}, not {e}"
        );
    }
}

fn check(inputs: usize, outputs: usize, rows: usize, filled: f64, seed: u64) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let weights = numbers(rng, inputs * outputs, 1.0);
    let bias = numbers(rng, outputs, 1.0);
    let data = numbers(rng, inputs * rows, filled);
    let grad = numbers(rng, outputs * rows, 1.0);
    let mut scratch = vec![f32::NAN; outputs * rows];
    let product = |a: f32, b: f32| f64::from(a) * f64::from(b);
    for route in ROUTES {
        for row_major in [true, false] {
            let input = match row_major {
                true => Block::row_major(&data, inputs, rows),
                false => Block::feature_major(&data, inputs, rows),
            };
            if !row_major && route != Route::Gemm {
                continue;
            }
            let what = format!("{inputs}-{outputs} on {rows}, {filled} filled, by {route:?}");
            let sum = |o: usize, r: usize| {
                let terms = (0..inputs).map(|i| product(weights[i * outputs + o], input.get(i, r)));
                f64::from(bias[o]) + terms.sum::<f64>()
            };
            let places = || (0..outputs).flat_map(|o| (0..rows).map(move |r| (o, r)));
            let mut forward = |finish| {
                let mut output = vec![f32::NAN; outputs * rows];
                forward_on(
                    route,
                    &weights,
                    &bias,
                    input,
                    &mut output,
                    finish,
                    &mut scratch,
                );
                output
            };
            let kept = forward(Finish::Keep);
            assert_close(&kept, places().map(|(o, r)| sum(o, r)), &what);
            let activated = forward(Finish::Activate(Activation::Tanh, None));
            assert_close(&activated, places().map(|(o, r)| sum(o, r).tanh()), &what);

            let mut grad_weights = vec![1.0; inputs * outputs];
            let mut grad_bias = vec![1.0; outputs];
            backward_weights_on(
                route,
                input,
                &grad,
                &mut grad_weights,
                &mut grad_bias,
                &mut scratch,
            );
            let exact = (0..inputs * outputs).map(|at| {
                let (i, o) = (at / outputs, at % outputs);
                let terms = (0..rows).map(|r| product(grad[o * rows + r], input.get(i, r)));
                1.0 + terms.sum::<f64>()
            });
            assert_close(&grad_weights, exact, &what);
            let exact = grad
                .chunks_exact(rows)
                .map(|g| 1.0 + g.iter().map(|&x| f64::from(x)).sum::<f64>());
            assert_close(&grad_bias, exact, &what);
        }
    }
    let mut grad_input = vec![f32::NAN; inputs * rows];
    backward_input(&weights, &grad, rows, &mut grad_input);
    let exact = (0..inputs * rows).map(|at| {
        let (i, r) = (at / rows, at % rows);
        (0..outputs)
            .map(|o| product(weights[i * outputs + o], grad[o * rows + r]))
            .sum()
    });
    assert_close(&grad_input, exact, "input gradient");
}

#[test]
fn pictures_match_triple_loops() {
    for filled in [0.0, 0.05, 0.5, 1.0] {
        check(300, 128, 48, filled, 1);
        check(1024, 37, 16, filled, 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_wide_layer_matches_triple_loops(
        inputs in 1_usize..600,
        outputs in 1_usize..70,
        units in 1_usize..4,
        filled in 0.0..1.0,
        seed in 0_u64..1000,
    ) {
        check(inputs, outputs, 16 * units, filled, seed);
    }
}

#[test]
fn the_route_goes_by_what_is_filled() {
    let empty = vec![0.0; 256 * 16];
    let full = vec![0.5; 256 * 16];
    assert_ne!(Route::of(&Block::row_major(&empty, 256, 16)), Route::Gemm);
    assert_eq!(Route::of(&Block::row_major(&full, 256, 16)), Route::Gemm);
    assert_eq!(
        Route::of(&Block::feature_major(&empty, 256, 16)),
        Route::Gemm
    );
}
