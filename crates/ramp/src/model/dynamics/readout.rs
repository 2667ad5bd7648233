//! Last layers set by regression: a network begins by saying something definite, its other layers stay random.

use super::linalg::ridge;
use crate::network::{Block, Layout, Network, ROW_UNIT};
use rayon::prelude::*;

/// Sets the last layer so that the raw outputs for `targets.len()` inputs, written row by row, come as near as they can to the
/// targets; false where the network has no last linear layer to set.
pub fn set_last_layer(
    network: &dyn Network,
    parameters: &mut [f32],
    write: &(dyn Fn(usize, &mut [f32]) + Sync),
    targets: &[Vec<f64>],
    penalty: f64,
) -> bool {
    let Some(layout) = network.layout() else {
        return false;
    };
    let inputs = layout.last.inputs();
    let units = units(network, parameters, &layout, write, targets.len());
    let Some(fit) = ridge(&units, inputs, targets, penalty) else {
        return false;
    };
    for (o, weights) in fit.iter().enumerate() {
        for (i, &weight) in weights[..inputs].iter().enumerate() {
            parameters[layout.last.at(o, i)] = weight as f32;
        }
        parameters[layout.bias.start + o] = weights[inputs] as f32;
    }
    true
}

/// What the last layer sees of every row: read off its outputs, some units at a time.
fn units(
    network: &dyn Network,
    parameters: &[f32],
    layout: &Layout,
    write: &(dyn Fn(usize, &mut [f32]) + Sync),
    count: usize,
) -> Vec<f64> {
    let (inputs, outputs, rows) = (network.inputs(), network.outputs(), 8 * ROW_UNIT);
    let last = layout.last;
    let width = last.inputs();
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
            let mut units = vec![0.0; some.len() * width];
            for first in (0..width).step_by(outputs) {
                let end = (first + outputs).min(width);
                own[last.span()].fill(0.0);
                own[layout.bias.clone()].fill(0.0);
                for (o, i) in (first..end).enumerate() {
                    own[last.at(o, i)] = 1.0;
                }
                let block = Block::row_major(&input, inputs, rows);
                network.forward(&own, block, &mut output, &mut tape, &mut scratch);
                for (o, i) in (first..end).enumerate() {
                    for r in 0..some.len() {
                        units[r * width + i] = f64::from(output[o * rows + r]);
                    }
                }
            }
            units
        })
        .collect();
    parts.concat()
}
