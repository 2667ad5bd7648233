//! Last layers set by regression: a network begins by saying something definite, its other layers stay random.

use super::linalg::ridge;
use crate::network::{Block, Network, ROW_UNIT};
use rayon::prelude::*;

/// Where a network's last linear layer lies among its parameters.
struct Last {
    weight: usize,
    bias: usize,
    inputs: usize,
    /// Distances between weights of one output, and between outputs.
    input_stride: usize,
    output_stride: usize,
}

impl Last {
    fn of(network: &dyn Network) -> Option<Last> {
        let arrays = network.parameters();
        let outputs = network.outputs();
        let mut start = 0;
        let mut found = None;
        for pair in arrays.windows(2) {
            let [weight, bias] = pair else { continue };
            if weight.shape.len() == 2 && bias.len() == outputs && weight.len() % outputs == 0 {
                let inputs = weight.len() / outputs;
                let by_output = weight.shape[0] == outputs;
                found = Some(Last {
                    weight: start,
                    bias: start + weight.len(),
                    inputs,
                    input_stride: if by_output { 1 } else { outputs },
                    output_stride: if by_output { inputs } else { 1 },
                });
            }
            start += weight.len();
        }
        found
    }
}

/// Sets the last layer so that the raw outputs for `targets.len()` inputs, written row by row, come as near as they can to the
/// targets; false where the network has no last linear layer to set.
pub fn set_last_layer(
    network: &dyn Network,
    parameters: &mut [f32],
    write: &(dyn Fn(usize, &mut [f32]) + Sync),
    targets: &[Vec<f64>],
    penalty: f64,
) -> bool {
    let Some(last) = Last::of(network) else {
        return false;
    };
    let units = units(network, parameters, &last, write, targets.len());
    let Some(fit) = ridge(&units, last.inputs, targets, penalty) else {
        return false;
    };
    for (o, weights) in fit.iter().enumerate() {
        for i in 0..last.inputs {
            parameters[last.weight + o * last.output_stride + i * last.input_stride] =
                weights[i] as f32;
        }
        parameters[last.bias + o] = weights[last.inputs] as f32;
    }
    true
}

/// What the last layer sees of every row: read off its outputs, some units at a time.
fn units(
    network: &dyn Network,
    parameters: &[f32],
    last: &Last,
    write: &(dyn Fn(usize, &mut [f32]) + Sync),
    count: usize,
) -> Vec<f64> {
    let (inputs, outputs, rows) = (network.inputs(), network.outputs(), 8 * ROW_UNIT);
    let all: Vec<usize> = (0..count).collect();
    let parts: Vec<Vec<f64>> = all
        .par_chunks(rows)
        .map(|some| {
            let mut own = parameters.to_vec();
            let mut input = vec![0.0; rows * inputs];
            for (row, &i) in input.chunks_exact_mut(inputs).zip(some) {
                write(i, row);
            }
            let mut output = vec![0.0; rows * outputs];
            let mut tape = vec![0.0; network.tape_len(rows)];
            let mut scratch = vec![0.0; network.scratch_len(rows)];
            let mut units = vec![0.0; some.len() * last.inputs];
            for first in (0..last.inputs).step_by(outputs) {
                let end = (first + outputs).min(last.inputs);
                own[last.weight..][..last.inputs * outputs].fill(0.0);
                own[last.bias..][..outputs].fill(0.0);
                for (o, i) in (first..end).enumerate() {
                    own[last.weight + o * last.output_stride + i * last.input_stride] = 1.0;
                }
                let block = Block::row_major(&input, inputs, rows);
                network.forward(&own, block, &mut output, &mut tape, &mut scratch);
                for (o, i) in (first..end).enumerate() {
                    for r in 0..some.len() {
                        units[r * last.inputs + i] = f64::from(output[o * rows + r]);
                    }
                }
            }
            units
        })
        .collect();
    parts.concat()
}
