//! A network of one's own: linear in a number and its square. The book's chapter on extending RAMP shows this file.

use ramp::data::Dataset;
use ramp::graph::FactorTree;
use ramp::model::Model;
use ramp::network::{Block, Network, Parameter};
use ramp::train::{TrainSpec, Trainer};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// `output = bias + slope · x + bend · x²`, from one number to `outputs` numbers.
struct Quadratic {
    outputs: usize,
}

impl Network for Quadratic {
    fn inputs(&self) -> usize {
        1
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn parameters(&self) -> Vec<Parameter> {
        ["bias", "slope", "bend"]
            .map(|name| Parameter::new(name, &[self.outputs]))
            .to_vec()
    }

    fn initialize(&self, rng: &mut ChaCha8Rng, parameters: &mut [f32]) {
        for p in parameters {
            let normal: f32 = StandardNormal.sample(rng);
            *p = 0.3 * normal;
        }
    }

    /// The backward pass needs the inputs only, which it gets anyway.
    fn tape_len(&self, _rows: usize) -> usize {
        0
    }

    fn scratch_len(&self, _rows: usize) -> usize {
        0
    }

    fn forward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        output: &mut [f32],
        _tape: &mut [f32],
        _scratch: &mut [f32],
    ) {
        let (bias, rest) = parameters.split_at(self.outputs);
        let (slope, bend) = rest.split_at(self.outputs);
        for (i, out) in output.chunks_exact_mut(input.rows()).enumerate() {
            for (row, y) in out.iter_mut().enumerate() {
                let x = input.get(0, row);
                *y = bias[i] + x * (slope[i] + x * bend[i]);
            }
        }
    }

    fn backward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        _tape: &[f32],
        grad_output: &[f32],
        mut grad_input: Option<&mut [f32]>,
        grad_parameters: &mut [f32],
        _scratch: &mut [f32],
    ) {
        let slope = &parameters[self.outputs..2 * self.outputs];
        let bend = &parameters[2 * self.outputs..];
        if let Some(grad) = &mut grad_input {
            grad.fill(0.0);
        }
        for (i, grads) in grad_output.chunks_exact(input.rows()).enumerate() {
            for (row, &g) in grads.iter().enumerate() {
                let x = input.get(0, row);
                grad_parameters[i] += g;
                grad_parameters[self.outputs + i] += g * x;
                grad_parameters[2 * self.outputs + i] += g * x * x;
                if let Some(grad) = &mut grad_input {
                    grad[row] += g * (slope[i] + 2.0 * x * bend[i]);
                }
            }
        }
    }
}

fn main() -> ramp::Result<()> {
    // A hidden quantity, read twice with noise and once as its square.
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut normal = || -> f32 { StandardNormal.sample(&mut rng) };
    let z: Vec<f32> = (0..1000).map(|_| normal()).collect();
    let mut read =
        |f: fn(f32) -> f32| -> Vec<f32> { z.iter().map(|&z| f(z) + 0.5 * normal()).collect() };
    let data = Dataset::new()
        .observe("first", 1, read(|z| z))?
        .observe("second", 1, read(|z| z))?
        .observe("square", 1, read(|z| z * z))?;

    let tree = FactorTree::from_newick("(first,second,square)z;")?;
    // The message from `first` into `z` is two natural parameters of a Gaussian.
    let mut model = Model::builder(tree)
        .own_network("first>z", Box::new(Quadratic { outputs: 2 }))
        .build(&data)?;
    let settings = TrainSpec {
        iterations: 100,
        batch: Some(250),
        learning_rate: 0.02,
        ..Default::default()
    };
    let fit = Trainer::new(settings)?.fit(&mut model, &data)?;
    let last = fit.records.last().map_or(f64::NAN, |r| r.free_energy);
    println!("free energy {last:.2} nats");
    Ok(())
}
