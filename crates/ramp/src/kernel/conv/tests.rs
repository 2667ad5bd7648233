//! Convolutions on every instruction set against loops over every pixel in `f64`.

use super::*;
use crate::kernel::activation::Activation;
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardNormal};

const ISAS: [Isa; 3] = [Isa::Portable, Isa::Avx2, Isa::Avx512];

fn normals(rng: &mut ChaCha8Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| StandardNormal.sample(rng)).collect()
}

/// A sum of `terms` products in `f32`: its rounding grows with the root of their number, also where they cancel.
fn assert_close(found: f32, exact: f64, terms: usize, what: &str) {
    let error = (f64::from(found) - exact).abs();
    let tolerance = 4e-6 * (4.0 + terms as f64).sqrt();
    assert!(
        error <= tolerance * (1.0 + exact.abs()),
        "{what}: {found}, not {exact}"
    );
}

/// Pixels `[c][y][x][image]`, copied into a buffer whose other numbers are `other`.
fn spread(pixels: &[f32], shape: [usize; 3], place: Place, len: usize, other: f32) -> Vec<f32> {
    let mut buffer = vec![other; len];
    let plain = Place::plain(shape, GROUP);
    visit(shape, |c, y, x, i| {
        buffer[index(place, c, y, x) + i] = pixels[index(plain, c, y, x) + i];
    });
    buffer
}

fn index(place: Place, c: usize, y: usize, x: usize) -> usize {
    place.start + c * place.channel + y * place.row + x * place.column
}

fn visit([channels, height, width]: [usize; 3], mut f: impl FnMut(usize, usize, usize, usize)) {
    for c in 0..channels {
        for y in 0..height {
            for x in 0..width {
                (0..GROUP).for_each(|i| f(c, y, x, i));
            }
        }
    }
}

fn check(
    input: [usize; 3],
    outputs: usize,
    window: usize,
    stride: usize,
    padding: usize,
    seed: u64,
) {
    let conv = Convolution::new(input, outputs, window, stride, padding);
    let what =
        format!("{input:?} to {outputs}, {window}×{window} stride {stride} padding {padding}");
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let output = conv.output();
    let size = |shape: [usize; 3]| shape.iter().product::<usize>() * GROUP;
    let weights = normals(rng, conv.weights_len());
    let bias = normals(rng, outputs);
    let pixels = normals(rng, size(input));
    let grads = normals(rng, size(output));
    let forward_terms = 1 + input[0] * window * window;
    let input_terms = outputs * window * window;
    let weight_terms = 1 + output[1] * output[2] * GROUP;
    let (plain_in, plain_out) = (Place::plain(input, GROUP), Place::plain(output, GROUP));

    let mut sums: Vec<f64> = vec![0.0; size(output)];
    let mut to_input: Vec<f64> = vec![0.0; size(input)];
    let mut to_weights: Vec<f64> = vec![0.0; weights.len()];
    let mut to_bias: Vec<f64> = vec![0.0; outputs];
    visit(output, |o, y, x, i| {
        let at = index(plain_out, o, y, x) + i;
        let grad = f64::from(grads[at]);
        sums[at] = f64::from(bias[o]);
        to_bias[o] += grad;
        for c in 0..input[0] {
            for ty in 0..window {
                for tx in 0..window {
                    let (Some(py), Some(px)) = (
                        (y * stride + ty).checked_sub(padding),
                        (x * stride + tx).checked_sub(padding),
                    ) else {
                        continue;
                    };
                    if py >= input[1] || px >= input[2] {
                        continue;
                    }
                    let w = ((o * input[0] + c) * window + ty) * window + tx;
                    let from = index(plain_in, c, py, px) + i;
                    sums[at] += f64::from(weights[w]) * f64::from(pixels[from]);
                    to_input[from] += f64::from(weights[w]) * grad;
                    to_weights[w] += grad * f64::from(pixels[from]);
                }
            }
        }
    });

    let place = conv.input_place();
    let mut buffer = spread(&pixels, input, place, conv.input_len(), f32::NAN);
    conv.clear_input_border(&mut buffer);
    let mut grad_buffer = spread(&grads, output, conv.grad_place(), conv.grad_len(), f32::NAN);
    conv.clear_grad_border(&mut grad_buffer);
    let [mut forward, mut backward] = conv.packed_lens().map(|len| vec![f32::NAN; len]);
    conv.pack_forward(&weights, &mut forward);
    conv.pack_backward(&weights, &mut backward);
    for isa in ISAS {
        let what = format!("{what} on {isa:?}");
        let mut found = vec![f32::NAN; size(output)];
        conv.forward_on(
            isa,
            &forward,
            &bias,
            &buffer,
            (&mut found, plain_out),
            Finish::Keep,
        );
        found
            .iter()
            .zip(&sums)
            .for_each(|(&y, &e)| assert_close(y, e, forward_terms, &what));
        let mut slopes = vec![f32::NAN; size(output)];
        let finish = Finish::Activate(Activation::Silu, Some(&mut slopes));
        conv.forward_on(
            isa,
            &forward,
            &bias,
            &buffer,
            (&mut found, plain_out),
            finish,
        );
        for ((&y, &slope), &sum) in found.iter().zip(&slopes).zip(&sums) {
            let (value, exact) = Activation::Silu.value_and_slope(sum);
            assert_close(y, value, forward_terms, &what);
            assert_close(slope, exact, forward_terms, &what);
        }

        let mut found = vec![f32::NAN; size(input)];
        conv.backward_input_on(isa, &backward, &grad_buffer, (&mut found, plain_in), None);
        found
            .iter()
            .zip(&to_input)
            .for_each(|(&g, &e)| assert_close(g, e, input_terms, &what));
        // Slopes taken from the bordered input itself, as in a network.
        let chain = Some((Activation::Relu, &buffer[..]));
        conv.backward_input_on(isa, &backward, &grad_buffer, (&mut found, plain_in), chain);
        for ((&g, &e), &x) in found.iter().zip(&to_input).zip(&pixels) {
            assert_close(g, if x > 0.0 { e } else { 0.0 }, input_terms, &what);
        }

        let mut found = vec![1.0; weights.len()];
        let mut found_bias = vec![1.0; outputs];
        conv.backward_weights_on(isa, &buffer, &grad_buffer, &mut found, &mut found_bias);
        found
            .iter()
            .zip(&to_weights)
            .for_each(|(&g, &e)| assert_close(g, 1.0 + e, weight_terms, &what));
        found_bias
            .iter()
            .zip(&to_bias)
            .for_each(|(&g, &e)| assert_close(g, 1.0 + e, weight_terms, &what));
    }
}

#[test]
fn usual_layers_match_loops_over_pixels() {
    check([1, 9, 8], 10, 3, 1, 1, 1);
    check([4, 8, 8], 7, 3, 2, 1, 2);
    check([3, 7, 9], 4, 5, 2, 2, 3);
    check([2, 6, 6], 13, 1, 1, 0, 4);
    // A stride wider than the window leaves pixels without a gradient; padding wider than it, windows without pixels.
    check([2, 7, 5], 3, 2, 3, 0, 5);
    check([1, 2, 3], 2, 2, 1, 3, 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_layer_matches_loops_over_pixels(
        channels in 1_usize..4,
        height in 1_usize..9,
        width in 1_usize..9,
        outputs in 1_usize..14,
        window in 1_usize..5,
        stride in 1_usize..4,
        padding in 0_usize..3,
        seed in 0_u64..1000,
    ) {
        prop_assume!(window <= height.min(width) + 2 * padding);
        check([channels, height, width], outputs, window, stride, padding, seed);
    }
}
