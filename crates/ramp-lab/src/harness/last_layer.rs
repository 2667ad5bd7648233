//! Initialisation of networks by regression: the last layer is fitted to what they should say, the others stay random.

use crate::error::LabError;
use crate::least_squares::LeastSquares;
use ramp::model::Model;
use ramp::network::{Block, MlpSpec, NetworkSpec, ROW_UNIT};
use rayon::prelude::*;
use std::ops::Range;

/// Sets the last layer of a perceptron with one hidden layer of tanh so that its raw outputs for these inputs come as near
/// as they can to the targets.
pub(crate) fn fit_network(
    model: &mut Model,
    network: &str,
    inputs: &[Vec<f32>],
    targets: &[Vec<f64>],
    ridge: f64,
) -> Result<(), LabError> {
    let (_, hidden) = array(model, &format!("{network}/0.bias"))?;
    let same = NetworkSpec::Mlp(MlpSpec {
        hidden: vec![hidden.len()],
        ..MlpSpec::default()
    });
    let width = inputs.first().map_or(0, Vec::len);
    let units = before_last(
        model,
        network,
        "1",
        (&same, width),
        inputs.len(),
        |i, to| {
            to.copy_from_slice(&inputs[i]);
        },
    )?;
    fit_last(model, &format!("{network}/1"), &units, targets, ridge)
}

/// What the last layer of a network sees, row after row, of inputs that are written row by row; also given are the network's
/// description and how many numbers an input has.
pub(crate) fn before_last(
    model: &Model,
    name: &str,
    last: &str,
    (spec, inputs): (&NetworkSpec, usize),
    count: usize,
    write: impl Fn(usize, &mut [f32]) + Sync,
) -> Result<Vec<f64>, LabError> {
    let own = |part: &str| {
        let (_, span) = array(model, &format!("{name}/{part}"))?;
        Ok::<_, LabError>(&model.parameters()[span])
    };
    let [weight, bias] = ["weight", "bias"].map(|part| format!("{last}.{part}"));
    let width = own(&weight)?.len() / own(&bias)?.len();
    // The same network, whose last layer hands on what it sees.
    let network = spec.build(inputs, width)?;
    let mut parameters: Vec<f32> = vec![];
    for array in network.parameters() {
        if array.name == weight {
            let one = |i: usize| f32::from(u8::from(i / width == i % width));
            parameters.extend((0..array.len()).map(one));
        } else if array.name == bias {
            parameters.extend(vec![0.0; array.len()]);
        } else {
            parameters.extend_from_slice(own(&array.name)?);
        }
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

/// Where an array of a model lies, and its shape.
fn array(model: &Model, name: &str) -> Result<(Vec<usize>, Range<usize>), LabError> {
    let mut named = model.named_parameters().into_iter();
    let found = named.find(|(n, _, _)| n == name);
    found
        .map(|(_, shape, span)| (shape, span))
        .ok_or_else(|| LabError::Invalid(format!("this start needs the array {name}")))
}

/// Sets a linear layer so that its outputs for these units, row after row, come as near as they can to the targets.
pub(crate) fn fit_last(
    model: &mut Model,
    layer: &str,
    units: &[f64],
    targets: &[Vec<f64>],
    ridge: f64,
) -> Result<(), LabError> {
    let (shape, weights) = array(model, &format!("{layer}.weight"))?;
    let (_, biases) = array(model, &format!("{layer}.bias"))?;
    let (outputs, inputs) = (biases.len(), weights.len() / biases.len());
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
    // Wide layers lie input by input.
    let (output, input) = match shape[0] == outputs {
        true => (inputs, 1),
        false => (1, outputs),
    };
    let parameters = model.parameters_mut();
    for o in 0..outputs {
        for (i, weight) in fit.direction(o).into_iter().enumerate() {
            parameters[weights.start + o * output + i * input] = weight as f32;
        }
        parameters[biases.start + o] = fit.intercept(o) as f32;
    }
    Ok(())
}
