//! What every network must promise, checked by finite differences. For tests.

use super::{Block, Network};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardNormal};

pub(crate) fn normals(rng: &mut ChaCha8Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| StandardNormal.sample(rng)).collect()
}

/// A network at random parameters and inputs, and a linear loss of its outputs.
pub(crate) struct Trial<'a> {
    pub network: &'a dyn Network,
    pub rows: usize,
    pub row_major: bool,
    pub parameters: Vec<f32>,
    pub input: Vec<f32>,
    pub loss: Vec<f32>,
}

/// Gradients at parameters and inputs.
pub(crate) struct Gradients {
    pub parameters: Vec<f32>,
    pub input: Vec<f32>,
}

impl<'a> Trial<'a> {
    pub fn new(network: &'a dyn Network, rows: usize, row_major: bool, seed: u64) -> Self {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let len = network.parameters().iter().map(|p| p.len()).sum();
        let mut parameters = vec![f32::NAN; len];
        network.initialize(rng, &mut parameters);
        // Biases, gains and shifts start alike: move them.
        for (parameter, normal) in parameters.iter_mut().zip(normals(rng, len)) {
            *parameter += 0.1 * normal;
        }
        Trial {
            network,
            rows,
            row_major,
            parameters,
            input: normals(rng, network.inputs() * rows),
            loss: normals(rng, network.outputs() * rows),
        }
    }

    fn block<'b>(&self, input: &'b [f32]) -> Block<'b> {
        if self.row_major {
            Block::row_major(input, self.network.inputs(), self.rows)
        } else {
            Block::feature_major(input, self.network.inputs(), self.rows)
        }
    }

    /// Outputs and tape; working space starts as `NaN` so that anything read before it is written shows.
    pub fn forward(&self, parameters: &[f32], input: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let n = self.network;
        let mut output = vec![f32::NAN; n.outputs() * self.rows];
        let mut tape = vec![f32::NAN; n.tape_len(self.rows)];
        let mut scratch = vec![f32::NAN; n.scratch_len(self.rows)];
        n.forward(
            parameters,
            self.block(input),
            &mut output,
            &mut tape,
            &mut scratch,
        );
        (output, tape)
    }

    fn loss_at(&self, parameters: &[f32], input: &[f32]) -> f64 {
        let (output, _) = self.forward(parameters, input);
        let terms = output.iter().zip(&self.loss);
        terms.map(|(&y, &l)| f64::from(y) * f64::from(l)).sum()
    }

    /// The gradients of the loss; the input's feature-major whatever the input's layout.
    pub fn gradients(&self) -> Gradients {
        let n = self.network;
        let (_, tape) = self.forward(&self.parameters, &self.input);
        let mut scratch = vec![f32::NAN; n.scratch_len(self.rows)];
        let mut input = vec![f32::NAN; self.input.len()];
        let mut parameters = vec![0.0; self.parameters.len()];
        n.backward(
            &self.parameters,
            self.block(&self.input),
            &tape,
            &self.loss,
            Some(&mut input),
            &mut parameters,
            &mut scratch,
        );
        // Without the input's gradient, and on top of what is there.
        let mut again = vec![1.0; parameters.len()];
        scratch.fill(f32::NAN);
        let block = self.block(&self.input);
        let loss = &self.loss;
        n.backward(
            &self.parameters,
            block,
            &tape,
            loss,
            None,
            &mut again,
            &mut scratch,
        );
        for (again, once) in again.iter().zip(&parameters) {
            assert!(
                (again - 1.0 - once).abs() <= 1e-5 * (1.0 + once.abs()),
                "{again} - 1 is not {once}"
            );
        }
        Gradients { parameters, input }
    }

    /// Checks directional derivatives with respect to parameters and inputs by central differences.
    pub fn check_differences(&self, step: f64, what: &str) {
        let gradients = self.gradients();
        let mut slopes = gradients.input;
        if self.row_major {
            let features = self.network.inputs();
            let by_feature = slopes.clone();
            for r in 0..self.rows {
                for f in 0..features {
                    slopes[r * features + f] = by_feature[f * self.rows + r];
                }
            }
        }
        let rng = &mut ChaCha8Rng::seed_from_u64(99);
        for _ in 0..3 {
            self.check_direction(rng, &gradients.parameters, step, what, |by| {
                self.loss_at(&moved(&self.parameters, by), &self.input)
            });
            self.check_direction(rng, &slopes, step, &format!("{what}, input"), |by| {
                self.loss_at(&self.parameters, &moved(&self.input, by))
            });
        }
    }

    /// A direction half random, half along the gradient, so that the derivative is well above rounding.
    fn check_direction(
        &self,
        rng: &mut ChaCha8Rng,
        gradient: &[f32],
        step: f64,
        what: &str,
        loss: impl Fn(&[f64]) -> f64,
    ) {
        let unit = |v: Vec<f64>| {
            let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            v.into_iter().map(move |x| x / norm)
        };
        let random = unit(
            normals(rng, gradient.len())
                .into_iter()
                .map(f64::from)
                .collect(),
        );
        let along = unit(gradient.iter().map(|&g| f64::from(g)).collect());
        let direction: Vec<f64> = random.zip(along).map(|(r, a)| r + 0.5 * a).collect();
        let terms = gradient.iter().zip(&direction);
        let expected: f64 = terms.map(|(&g, d)| f64::from(g) * d).sum();
        let by = |sign: f64| {
            direction
                .iter()
                .map(|d| sign * step * d)
                .collect::<Vec<_>>()
        };
        let found = (loss(&by(1.0)) - loss(&by(-1.0))) / (2.0 * step);
        let error = (found - expected).abs() / expected.abs();
        assert!(
            error < 2e-3,
            "{what}: {expected} by backward, {found} by differences"
        );
    }

    /// What [`super::Layout`] promises, to the last bit.
    pub fn check_layout(&self, what: &str) {
        let layout = self
            .network
            .layout()
            .expect("this network says how it lies");
        let negated = |places: &mut dyn Iterator<Item = usize>| {
            let mut parameters = self.parameters.clone();
            places.for_each(|i| parameters[i] = -parameters[i]);
            parameters
        };
        let (plain, _) = self.forward(&self.parameters, &self.input);
        let opposite: Vec<f32> = self.input.iter().map(|x| -x).collect();
        let all = negated(&mut layout.input_weights.clone());
        assert_eq!(
            self.forward(&all, &self.input).0,
            self.forward(&self.parameters, &opposite).0,
            "{what}: all inputs"
        );
        let inputs = self.network.inputs();
        for input in [0, inputs / 2, inputs - 1] {
            let Some(first) = layout.first else { break };
            let mut changed = self.input.clone();
            for row in 0..self.rows {
                let at = match self.row_major {
                    true => row * inputs + input,
                    false => input * self.rows + row,
                };
                changed[at] = -changed[at];
            }
            assert_eq!(
                self.forward(&negated(&mut first.of_input(input)), &self.input)
                    .0,
                self.forward(&self.parameters, &changed).0,
                "{what}: input {input}"
            );
        }
        for output in 0..self.network.outputs() {
            let bias = layout.bias.start + output;
            let places = layout.last.of_output(output).chain([bias]);
            let (found, _) = self.forward(&negated(&mut { places }), &self.input);
            for (o, (found, plain)) in (found
                .chunks_exact(self.rows)
                .zip(plain.chunks_exact(self.rows)))
            .enumerate()
            {
                let sign = if o == output { -1.0 } else { 1.0 };
                let expected: Vec<f32> = plain.iter().map(|x| sign * x).collect();
                assert_eq!(found, expected, "{what}: output {o} of {output}");
            }
        }
        assert_eq!(layout.bias.len(), self.network.outputs());
    }

    /// Rows beyond `real` whose output gradients are zero must not touch the parameters' gradient, whatever they hold.
    pub fn check_padding(mut self, real: usize, what: &str) {
        assert!(!self.row_major);
        let rows = self.rows;
        for row in self.loss.chunks_exact_mut(rows) {
            row[real..].fill(0.0);
        }
        let with = self.gradients().parameters;
        for row in self.input.chunks_exact_mut(rows) {
            row[real..].fill(0.0);
        }
        let without = self.gradients().parameters;
        for (a, b) in with.iter().zip(&without) {
            assert!(
                (a - b).abs() <= 1e-5 * (1.0 + b.abs()),
                "{what}: {a} with padding, {b} without"
            );
        }
    }
}

fn moved(from: &[f32], by: &[f64]) -> Vec<f32> {
    from.iter()
        .zip(by)
        .map(|(&x, d)| (f64::from(x) + d) as f32)
        .collect()
}
