//! Initialisation of networks by regression: the last layer is fitted to what they should say, the others stay random.

use crate::error::LabError;
use crate::least_squares::LeastSquares;
use ramp::model::Model;
use ramp::network::{Block, MlpSpec, NetworkSpec, ROW_UNIT};
use rayon::prelude::*;

/// Sets the last layer of a perceptron with one hidden layer of tanh so that its raw outputs for these inputs come as near
/// as they can to the targets.
pub(crate) fn fit_network(
    model: &mut Model,
    network: &str,
    inputs: &[Vec<f32>],
    targets: &[Vec<f64>],
    ridge: f64,
) -> Result<(), LabError> {
    let same = NetworkSpec::Mlp(MlpSpec {
        hidden: vec![model.layout(network)?.last.inputs()],
        ..MlpSpec::default()
    });
    let width = inputs.first().map_or(0, Vec::len);
    let units = before_last(model, network, (&same, width), inputs.len(), |i, to| {
        to.copy_from_slice(&inputs[i]);
    })?;
    fit_last(model, network, &units, targets, ridge)
}

/// The inputs of a network's last layer, row after row, for inputs that are written row by row; also given are the network's
/// description and how many numbers an input has.
pub(crate) fn before_last(
    model: &Model,
    name: &str,
    (spec, inputs): (&NetworkSpec, usize),
    count: usize,
    write: impl Fn(usize, &mut [f32]) + Sync,
) -> Result<Vec<f64>, LabError> {
    let (own, layout) = (model.span(name)?, model.layout(name)?);
    let width = layout.last.inputs();
    // The same network, whose last layer hands on its inputs.
    let network = spec.build(inputs, width)?;
    let unfit = || {
        LabError::Invalid(format!(
            "network {name} is not of the kind that was described"
        ))
    };
    let handing_on = network.layout().ok_or_else(unfit)?;
    let before = handing_on.last.span().start;
    if handing_on.last.inputs() != width || before != layout.last.span().start - own.start {
        return Err(unfit());
    }
    let len = network.parameters().iter().map(|p| p.len()).sum();
    let mut parameters: Vec<f32> = vec![0.0; len];
    parameters[..before].copy_from_slice(&model.parameters()[own][..before]);
    for unit in 0..width {
        parameters[handing_on.last.at(unit, unit)] = 1.0;
    }
    let rows = 4 * ROW_UNIT;
    let all: Vec<usize> = (0..count).collect();
    let seen = all.par_chunks(rows).flat_map_iter(|some| {
        let mut input = vec![0.0; rows * inputs];
        for (row, &i) in input.chunks_exact_mut(inputs).zip(some) {
            write(i, row);
        }
        let mut output = vec![0.0; rows * width];
        let mut tape = vec![0.0; network.tape_len(rows)];
        let mut scratch = vec![0.0; network.scratch_len(rows)];
        let block = Block::row_major(&input, inputs, rows);
        network.forward(&parameters, block, &mut output, &mut tape, &mut scratch);
        let places = (0..some.len()).flat_map(move |row| (0..width).map(move |k| k * rows + row));
        places.map(move |at| f64::from(output[at]))
    });
    Ok(seen.collect())
}

/// Sets the last layer of a network so that its outputs for these units, row after row, come as near as they can to the
/// targets.
pub(crate) fn fit_last(
    model: &mut Model,
    network: &str,
    units: &[f64],
    targets: &[Vec<f64>],
    ridge: f64,
) -> Result<(), LabError> {
    let layout = model.layout(network)?;
    let (outputs, inputs) = (layout.last.outputs(), layout.last.inputs());
    if let Some(odd) = targets.iter().find(|t| t.len() != outputs) {
        return Err(LabError::Invalid(format!(
            "a start with {} outputs does not fit a network with {outputs}",
            odd.len()
        )));
    }
    let targets: Vec<Vec<f64>> = (0..outputs)
        .map(|o| targets.iter().map(|t| t[o]).collect())
        .collect();
    let fit = LeastSquares::penalised(units, inputs, &targets, ridge)?;
    let parameters = model.parameters_mut();
    for o in 0..outputs {
        for (i, weight) in fit.direction(o).into_iter().enumerate() {
            parameters[layout.last.at(o, i)] = weight as f32;
        }
        parameters[layout.bias.start + o] = fit.intercept(o) as f32;
    }
    Ok(())
}
