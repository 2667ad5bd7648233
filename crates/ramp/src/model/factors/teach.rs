//! Networks are taught what to say: the last layer by regression where it can be told apart, and the whole by gradient descent where that is not enough.
//!
//! The regression leaves weights small, though it then says too little. With hardly any penalty it says all, but by large weights of units that are nearly alike and cancel: a first step
//! of training then changes such units a little and messages by nats, and a default fit of plain linear data diverged.

use super::super::dynamics::set_last_layer;
use crate::network::{Block, Network, ROW_UNIT};

/// Penalty of the regression, per row.
const PENALTY: f64 = 1.0;
/// The share of the targets' variance that may be missed before gradients are asked.
const MISSED: f64 = 0.01;
/// Steps of gradient descent, and their size, which falls to nothing.
const STEPS: usize = 300;
const RATE: f32 = 0.03;

/// Sets parameters so that the raw outputs for rows of inputs come near to targets.
pub fn teach(network: &dyn Network, parameters: &mut [f32], inputs: &[f32], targets: &[Vec<f64>]) {
    let width = network.inputs();
    let write = |i: usize, row: &mut [f32]| row.copy_from_slice(&inputs[i * width..][..width]);
    let before = parameters.to_vec();
    if set_last_layer(network, parameters, &write, targets, PENALTY)
        && missed(network, parameters, inputs, targets) <= MISSED
    {
        return;
    }
    descend(network, parameters, inputs, targets);
    if !parameters.iter().all(|x| x.is_finite()) {
        parameters.copy_from_slice(&before);
    }
}

/// A block of all rows, padded, with its outputs.
struct Pass {
    rows: usize,
    input: Vec<f32>,
    output: Vec<f32>,
    tape: Vec<f32>,
    scratch: Vec<f32>,
}

impl Pass {
    fn new(network: &dyn Network, inputs: &[f32], count: usize) -> Self {
        let rows = count.next_multiple_of(ROW_UNIT);
        let mut input = inputs.to_vec();
        input.resize(rows * network.inputs(), 0.0);
        Pass {
            rows,
            input,
            output: vec![0.0; rows * network.outputs()],
            tape: vec![0.0; network.tape_len(rows)],
            scratch: vec![0.0; network.scratch_len(rows)],
        }
    }

    fn forward(&mut self, network: &dyn Network, parameters: &[f32]) {
        let block = Block::row_major(&self.input, network.inputs(), self.rows);
        network.forward(
            parameters,
            block,
            &mut self.output,
            &mut self.tape,
            &mut self.scratch,
        );
    }
}

/// The share of the targets' size that is missed.
fn missed(network: &dyn Network, parameters: &[f32], inputs: &[f32], targets: &[Vec<f64>]) -> f64 {
    let mut pass = Pass::new(network, inputs, targets.len());
    pass.forward(network, parameters);
    let (mut wrong, mut all) = (0.0, 1e-12);
    for (n, target) in targets.iter().enumerate() {
        for (o, y) in target.iter().enumerate() {
            wrong += (f64::from(pass.output[o * pass.rows + n]) - y).powi(2);
            all += y * y;
        }
    }
    wrong / all
}

/// Adam on the squared distance.
fn descend(network: &dyn Network, parameters: &mut [f32], inputs: &[f32], targets: &[Vec<f64>]) {
    let mut pass = Pass::new(network, inputs, targets.len());
    let mut at_output = vec![0.0; pass.output.len()];
    let mut gradient = vec![0.0; parameters.len()];
    let (mut first, mut second) = (gradient.clone(), gradient.clone());
    for step in 0..STEPS {
        pass.forward(network, parameters);
        for (n, target) in targets.iter().enumerate() {
            for (o, &y) in target.iter().enumerate() {
                let place = o * pass.rows + n;
                at_output[place] = (pass.output[place] - y as f32) / targets.len() as f32;
            }
        }
        gradient.fill(0.0);
        let block = Block::row_major(&pass.input, network.inputs(), pass.rows);
        network.backward(
            parameters,
            block,
            &pass.tape,
            &at_output,
            None,
            &mut gradient,
            &mut pass.scratch,
        );
        let rate = RATE * (1.0 - step as f32 / STEPS as f32);
        let (a, b) = (
            1.0 - 0.9_f32.powi(step as i32 + 1),
            1.0 - 0.99_f32.powi(step as i32 + 1),
        );
        for ((p, &g), (m, v)) in parameters
            .iter_mut()
            .zip(&gradient)
            .zip(first.iter_mut().zip(&mut second))
        {
            *m = 0.9 * *m + 0.1 * g;
            *v = 0.99 * *v + 0.01 * g * g;
            *p -= rate * (*m / a) / ((*v / b).sqrt() + 1e-8);
        }
    }
}
