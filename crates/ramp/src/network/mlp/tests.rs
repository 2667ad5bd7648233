//! Perceptrons against finite differences and against a plain `f64` perceptron, row by row.

use super::*;
use crate::network::check::Trial;
use rand_chacha::rand_core::SeedableRng;

const ACTIVATIONS: [Activation; 4] = [
    Activation::Tanh,
    Activation::Relu,
    Activation::Gelu,
    Activation::Silu,
];

/// Every kind: depth 0 to 3, each activation, with and without layer norm.
fn every_kind(inputs: usize) -> Vec<(String, Mlp)> {
    let mut all = Vec::new();
    for hidden in [&[][..], &[9], &[32, 32], &[7, 12, 5]] {
        for activation in ACTIVATIONS {
            for layer_norm in [false, true] {
                let mlp = Mlp::new(inputs, hidden, 3).unwrap();
                let mlp = mlp.with_activation(activation).with_layer_norm(layer_norm);
                let what = format!("{inputs} {hidden:?} {activation:?} norm {layer_norm}");
                all.push((what, mlp));
            }
        }
    }
    all
}

/// Loss and gradients of one row in `f64`, by the textbook.
struct Plain<'a> {
    mlp: &'a Mlp,
    parameters: Vec<f64>,
}

impl Layer {
    /// Where a weight lies.
    fn place(&self, output: usize, input: usize) -> usize {
        self.matrix().at(output, input) - self.parameters
    }
}

struct PlainLayer {
    input: Vec<f64>,
    normalized: Vec<f64>,
    scale: f64,
    slope: Vec<f64>,
}

impl Plain<'_> {
    fn row(&self, x: Vec<f64>, loss: &[f64], grad: &mut [f64]) -> (Vec<f64>, Vec<f64>) {
        let p = &self.parameters;
        let last = self.mlp.layers.len() - 1;
        let mut kept = Vec::new();
        let mut x = x;
        for (l, layer) in self.mlp.layers.iter().enumerate() {
            let [weight, bias, gain, shift, _] = layer.begins();
            let mut sums: Vec<f64> = (0..layer.outputs)
                .map(|o| {
                    let terms = x
                        .iter()
                        .enumerate()
                        .map(|(i, x)| p[weight + layer.place(o, i)] * x);
                    p[bias + o] + terms.sum::<f64>()
                })
                .collect();
            let (mut normalized, mut scale) = (Vec::new(), 1.0);
            let mut slope = vec![1.0; layer.outputs];
            if l < last {
                if self.mlp.layer_norm {
                    let n = sums.len() as f64;
                    let mean = sums.iter().sum::<f64>() / n;
                    let variance = sums.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / n;
                    scale = 1.0 / (variance + 1e-5).sqrt();
                    normalized = sums.iter().map(|s| (s - mean) * scale).collect();
                    for (o, sum) in sums.iter_mut().enumerate() {
                        *sum = p[gain + o] * normalized[o] + p[shift + o];
                    }
                }
                for (sum, slope) in sums.iter_mut().zip(&mut slope) {
                    (*sum, *slope) = self.mlp.activation.value_and_slope(*sum);
                }
            }
            kept.push(PlainLayer {
                input: std::mem::replace(&mut x, sums),
                normalized,
                scale,
                slope,
            });
        }
        let output = x;
        let mut g = loss.to_vec();
        for (layer, kept) in self.mlp.layers.iter().zip(&kept).rev() {
            let [weight, bias, gain, shift, _] = layer.begins();
            for (g, slope) in g.iter_mut().zip(&kept.slope) {
                *g *= slope;
            }
            if !kept.normalized.is_empty() {
                let n = g.len() as f64;
                for (o, g) in g.iter_mut().enumerate() {
                    grad[gain + o] += *g * kept.normalized[o];
                    grad[shift + o] += *g;
                    *g *= p[gain + o];
                }
                let mean = g.iter().sum::<f64>() / n;
                let along = g
                    .iter()
                    .zip(&kept.normalized)
                    .map(|(g, x)| g * x)
                    .sum::<f64>()
                    / n;
                for (g, x) in g.iter_mut().zip(&kept.normalized) {
                    *g = kept.scale * (*g - mean - along * x);
                }
            }
            let mut back = vec![0.0; layer.inputs];
            for (o, g) in g.iter().enumerate() {
                grad[bias + o] += g;
                for (i, (back, input)) in back.iter_mut().zip(&kept.input).enumerate() {
                    let at = weight + layer.place(o, i);
                    grad[at] += g * input;
                    *back += g * p[at];
                }
            }
            g = back;
        }
        (output, g)
    }
}

fn assert_near(found: f32, exact: f64, what: &str) {
    let error = (f64::from(found) - exact).abs();
    assert!(
        error <= 1e-4 * (1.0 + exact.abs()),
        "{what}: {found}, not {exact}"
    );
}

#[test]
fn outputs_and_gradients_match_a_plain_perceptron() {
    for (what, mlp) in [every_kind(5), every_kind(260)].concat() {
        for (row_major, empty) in [(false, false), (true, false), (true, true)] {
            let rows = 48;
            let inputs = mlp.inputs();
            let mut trial = Trial::new(&mlp, rows, row_major, 11);
            if empty {
                // Mostly background.
                let rest = trial.input.iter_mut().enumerate();
                rest.filter(|(i, _)| i % 7 > 0).for_each(|(_, x)| *x = 0.0);
            }
            let plain = Plain {
                mlp: &mlp,
                parameters: trial.parameters.iter().map(|&p| f64::from(p)).collect(),
            };
            let (output, _) = trial.forward(&trial.parameters, &trial.input);
            let gradients = trial.gradients();
            let mut exact = vec![0.0; trial.parameters.len()];
            for r in 0..rows {
                let x = (0..inputs).map(|f| {
                    let at = if row_major {
                        r * inputs + f
                    } else {
                        f * rows + r
                    };
                    f64::from(trial.input[at])
                });
                let loss: Vec<f64> = (0..3)
                    .map(|o| f64::from(trial.loss[o * rows + r]))
                    .collect();
                let (y, back) = plain.row(x.collect(), &loss, &mut exact);
                for (o, &y) in y.iter().enumerate() {
                    assert_near(output[o * rows + r], y, &what);
                }
                for (f, &g) in back.iter().enumerate() {
                    assert_near(gradients.input[f * rows + r], g, &format!("{what}, input"));
                }
            }
            for (&found, &exact) in gradients.parameters.iter().zip(&exact) {
                assert_near(found, exact, &format!("{what}, parameters"));
            }
        }
    }
}

#[test]
fn gradients_match_finite_differences() {
    for (what, mlp) in every_kind(5) {
        Trial::new(&mlp, 32, false, 5).check_differences(1e-3, &what);
    }
}

#[test]
fn a_layer_large_enough_for_gemm_matches_finite_differences() {
    for activation in ACTIVATIONS {
        let mlp = Mlp::new(700, &[40], 6).unwrap().with_activation(activation);
        Trial::new(&mlp, 16, true, 5).check_differences(1e-3, &format!("large {activation:?}"));
    }
}

#[test]
fn arrays_lie_as_the_layout_says() {
    for inputs in [1, 5, 300] {
        for (what, mlp) in every_kind(inputs) {
            for row_major in [false, true] {
                Trial::new(&mlp, 16, row_major, 4).check_layout(&what);
            }
        }
    }
    // Square and wide at once: the shape alone does not tell.
    let square = Mlp::new(256, &[], 256).unwrap();
    Trial::new(&square, 16, true, 4).check_layout("256 by 256");
}

#[test]
fn padding_rows_do_not_change_parameter_gradients() {
    for (what, mlp) in every_kind(5) {
        Trial::new(&mlp, 48, false, 8).check_padding(37, &what);
    }
}

#[test]
fn parameters_are_named_and_start_with_the_right_spread() {
    let mlp = Mlp::new(100, &[200], 4).unwrap().with_layer_norm(true);
    let names: Vec<_> = mlp.parameters().into_iter().map(|p| p.name).collect();
    assert_eq!(
        names,
        [
            "0.weight",
            "0.bias",
            "0.norm.gain",
            "0.norm.shift",
            "1.weight",
            "1.bias"
        ]
    );
    for (initialization, variance) in [
        (Initialization::FanIn, 1.0 / 100.0),
        (Initialization::Glorot, 2.0 / 300.0),
        (Initialization::He, 2.0 / 100.0),
    ] {
        let mlp = mlp.clone().with_initialization(initialization);
        let mut parameters = vec![f32::NAN; mlp.parameters_len()];
        mlp.initialize(&mut ChaCha8Rng::seed_from_u64(2), &mut parameters);
        let weights = &parameters[..20_000];
        let found = weights.iter().map(|w| f64::from(w * w)).sum::<f64>() / 20_000.0;
        assert!(
            (found / variance - 1.0).abs() < 0.05,
            "{initialization:?}: {found}, not {variance}"
        );
        assert!(parameters[20_000..20_200].iter().all(|&b| b == 0.0));
        assert!(parameters[20_200..20_400].iter().all(|&g| g == 1.0));
    }
}

#[test]
fn impossible_widths_are_explained() {
    let message = Mlp::new(2, &[3, 0], 1).unwrap_err().to_string();
    assert!(message.contains("hidden layer 2"), "{message}");
    assert!(Mlp::new(0, &[], 1).is_err() && Mlp::new(1, &[], 0).is_err());
    assert!(Mlp::new(usize::MAX, &[usize::MAX], usize::MAX).is_err());
    let message = Mlp::new(1, &[1_000_000_000], 2).unwrap_err().to_string();
    assert!(message.contains("3000000000 weights"), "{message}");
}

#[test]
fn no_rows_are_no_work() {
    let mlp = Mlp::new(2, &[3], 1).unwrap();
    let parameters = vec![0.0; mlp.parameters_len()];
    let input = Block::feature_major(&[], 2, 0);
    mlp.forward(&parameters, input, &mut [], &mut [], &mut []);
    let mut gradient = vec![0.0; parameters.len()];
    mlp.backward(&parameters, input, &[], &[], None, &mut gradient, &mut []);
    assert!(gradient.iter().all(|&g| g == 0.0));
}
