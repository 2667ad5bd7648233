//! Both routes, on every instruction set, against triple loops in `f64`.

use super::*;
use crate::kernel::activation::Activation;
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardNormal};

const ROUTES: [Route; 4] = [
    Route::Lanes(Isa::Portable),
    Route::Lanes(Isa::Avx2),
    Route::Lanes(Isa::Avx512),
    Route::Gemm,
];

const ACTIVATIONS: [Activation; 4] = [
    Activation::Tanh,
    Activation::Relu,
    Activation::Gelu,
    Activation::Silu,
];

fn normals(rng: &mut ChaCha8Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| StandardNormal.sample(rng)).collect()
}

/// Compares with a tolerance for sums of `terms` products of order one.
fn assert_close(found: &[f32], exact: &[f64], terms: usize, what: &str) {
    assert_eq!(found.len(), exact.len());
    let tolerance = 2e-6 * (1.0 + terms as f64).sqrt();
    for (i, (&y, &e)) in found.iter().zip(exact).enumerate() {
        let error = (f64::from(y) - e).abs();
        assert!(
            error <= tolerance * (1.0 + e.abs()),
            "{what}, entry {i}: {y}, not {e}"
        );
    }
}

struct Case {
    inputs: usize,
    outputs: usize,
    rows: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
    data: Vec<f32>,
    grad: Vec<f32>,
    kept: Vec<f32>,
}

impl Case {
    fn new(inputs: usize, outputs: usize, rows: usize, seed: u64) -> Self {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        Case {
            inputs,
            outputs,
            rows,
            weights: normals(rng, inputs * outputs),
            bias: normals(rng, outputs),
            data: normals(rng, inputs * rows),
            grad: normals(rng, outputs * rows),
            kept: normals(rng, inputs * rows),
        }
    }

    /// The sum of a layer before its activation.
    fn sum(&self, input: &Block<'_>, output: usize, row: usize) -> f64 {
        let terms = (0..self.inputs).map(|i| {
            f64::from(self.weights[output * self.inputs + i]) * f64::from(input.get(i, row))
        });
        f64::from(self.bias[output]) + terms.sum::<f64>()
    }

    fn every_place(&self, of: usize, f: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        (0..of)
            .flat_map(|i| (0..self.rows).map(move |r| (i, r)))
            .map(|(i, r)| f(i, r))
            .collect()
    }

    fn check(&self) {
        let Case {
            inputs,
            outputs,
            rows,
            ..
        } = *self;
        for row_major in [false, true] {
            let input = if row_major {
                Block::row_major(&self.data, inputs, rows)
            } else {
                Block::feature_major(&self.data, inputs, rows)
            };
            for route in ROUTES {
                if row_major && route != Route::Gemm {
                    continue;
                }
                let what = format!("{inputs}-{outputs} on {rows} by {route:?}");
                self.check_forward(route, input, &what);
                self.check_weights(route, input, &what);
            }
        }
        for route in ROUTES {
            self.check_input(route, &format!("{inputs}-{outputs} on {rows} by {route:?}"));
        }
    }

    fn check_forward(&self, route: Route, input: Block<'_>, what: &str) {
        let (w, b) = (&self.weights[..], &self.bias[..]);
        let mut output = vec![f32::NAN; self.outputs * self.rows];
        forward_on(route, w, b, input, &mut output, Finish::Keep);
        let exact = self.every_place(self.outputs, |o, r| self.sum(&input, o, r));
        assert_close(&output, &exact, self.inputs, &format!("forward {what}"));
        for activation in ACTIVATIONS {
            let mut slopes = vec![f32::NAN; output.len()];
            let finish = Finish::Activate(activation, Some(&mut slopes));
            forward_on(route, w, b, input, &mut output, finish);
            let value = self.every_place(self.outputs, |o, r| {
                activation.value(self.sum(&input, o, r))
            });
            assert_close(
                &output,
                &value,
                self.inputs,
                &format!("{activation:?} {what}"),
            );
            // A sum within rounding of relu's kink may fall on either side.
            if activation != Activation::Relu {
                let slope = self.every_place(self.outputs, |o, r| {
                    activation.value_and_slope(self.sum(&input, o, r)).1
                });
                assert_close(
                    &slopes,
                    &slope,
                    self.inputs,
                    &format!("slope of {activation:?} {what}"),
                );
            }
            let with_slopes = output.clone();
            forward_on(
                route,
                w,
                b,
                input,
                &mut output,
                Finish::Activate(activation, None),
            );
            assert_eq!(output, with_slopes);
        }
    }

    fn check_input(&self, route: Route, what: &str) {
        let exact = |i: usize, r: usize| -> f64 {
            let term = |o: usize| {
                f64::from(self.weights[o * self.inputs + i])
                    * f64::from(self.grad[o * self.rows + r])
            };
            (0..self.outputs).map(term).sum()
        };
        let (w, g, rows) = (&self.weights[..], &self.grad[..], self.rows);
        let mut found = vec![f32::NAN; self.inputs * rows];
        backward_input_on(route, w, g, rows, &mut found, Finish::Keep);
        let plain = self.every_place(self.inputs, exact);
        assert_close(
            &found,
            &plain,
            self.outputs,
            &format!("input gradient {what}"),
        );
        for activation in ACTIVATIONS {
            let finish = Finish::Chain(activation, &self.kept);
            backward_input_on(route, w, g, rows, &mut found, finish);
            let chained = self.every_place(self.inputs, |i, r| {
                exact(i, r) * activation.slope_from_kept(f64::from(self.kept[i * rows + r]))
            });
            // Slopes reach 10 where tanh's "value" is an arbitrary normal number.
            assert_close(
                &found,
                &chained,
                100 * self.outputs,
                &format!("chain {what}"),
            );
        }
    }

    fn check_weights(&self, route: Route, input: Block<'_>, what: &str) {
        let mut weights = vec![1.0; self.inputs * self.outputs];
        let mut bias = vec![1.0; self.outputs];
        backward_weights_on(route, input, &self.grad, &mut weights, &mut bias);
        let grad = |o: usize, r: usize| f64::from(self.grad[o * self.rows + r]);
        let mut exact = Vec::new();
        for o in 0..self.outputs {
            for i in 0..self.inputs {
                let terms = (0..self.rows).map(|r| grad(o, r) * f64::from(input.get(i, r)));
                exact.push(1.0 + terms.sum::<f64>());
            }
        }
        assert_close(
            &weights,
            &exact,
            self.rows,
            &format!("weight gradient {what}"),
        );
        let exact: Vec<f64> = (0..self.outputs)
            .map(|o| 1.0 + (0..self.rows).map(|r| grad(o, r)).sum::<f64>())
            .collect();
        assert_close(&bias, &exact, self.rows, &format!("bias gradient {what}"));
    }
}

#[test]
fn layers_of_the_models_match_triple_loops() {
    for rows in [16, 48, 512] {
        for (inputs, outputs) in [
            (2, 32),
            (32, 32),
            (32, 2),
            (5, 128),
            (128, 5),
            (1, 1),
            (300, 70),
        ] {
            Case::new(inputs, outputs, rows, 3).check();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_layer_matches_triple_loops(
        inputs in 1_usize..40,
        outputs in 1_usize..40,
        units in 1_usize..9,
        seed in 0_u64..1000,
    ) {
        Case::new(inputs, outputs, 16 * units, seed).check();
    }
}

#[test]
fn a_block_within_a_wider_one_is_read_by_its_strides() {
    // Features 1 and 2 of three, rows 16..48 of 64.
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let data = normals(rng, 3 * 64);
    let input = Block::strided(&data[64 + 16..], 2, 32, 64, 1).unwrap();
    let case = Case::new(2, 9, 32, 1);
    for route in ROUTES {
        case.check_forward(route, input, "within a wider block");
        case.check_weights(route, input, "within a wider block");
    }
}
