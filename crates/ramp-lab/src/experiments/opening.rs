//! How the messages of films begin: on a circle.
//!
//! The start decides the topology: a latent plane that is folded early stays folded. From random weights a plane often takes
//! up one direction of a circle before the other. The two largest principal components of pictures of a pendulum on a grid
//! of few cells are its place, so a circle already; those of fine pictures are not, as frames that share no pixel are all
//! equally far apart.

use crate::error::LabError;
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use ramp::model::Model;
use std::ops::Range;

/// Cells on a side of a coarse picture.
const CELLS: usize = 4;
/// The penalty of the regression from hidden units to what is to be told.
const RIDGE: f64 = 1e-3;

/// A first message: for every raw output, its weight on each of two coordinates, and a constant.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub weights: Vec<[f32; 2]>,
    pub constants: Vec<f32>,
}

/// The observation network begins by telling the standardised principal components of coarse versions of these square
/// pictures.
pub(super) fn begin_on_a_circle(
    model: &mut Model,
    pictures: &[Vec<f32>],
    opening: &Opening,
) -> Result<(), LabError> {
    begin(
        model,
        "observation",
        pictures,
        &components(pictures)?,
        opening,
    )
}

/// Sets the last layer of a perceptron with one hidden layer of tanh so that it tells the targets of these inputs.
fn begin(
    model: &mut Model,
    network: &str,
    inputs: &[Vec<f32>],
    targets: &[[f64; 2]],
    opening: &Opening,
) -> Result<(), LabError> {
    let of = |name: &str| -> Result<(Vec<usize>, Range<usize>), LabError> {
        let name = format!("{network}/{name}");
        let mut named = model.named_parameters().into_iter();
        let found = named.find(|(n, _, _)| *n == name);
        found
            .map(|(_, shape, span)| (shape, span))
            .ok_or_else(|| LabError::Invalid(format!("the start of films needs the array {name}")))
    };
    let ((first_shape, first), (_, first_bias)) = (of("0.weight")?, of("0.bias")?);
    let ((last_shape, last), (_, last_bias)) = (of("1.weight")?, of("1.bias")?);
    let (outputs, hidden) = (last_shape[0], last_shape[1]);
    if opening.weights.len() != outputs || opening.constants.len() != outputs {
        return Err(LabError::Invalid(format!(
            "an opening for {} outputs does not fit a network with {outputs}",
            opening.weights.len()
        )));
    }
    let parameters = model.parameters();
    let (weights, biases) = (&parameters[first], &parameters[first_bias]);
    // Wide first layers lie input by input.
    let (unit, input) = match first_shape[0] == hidden {
        true => (weights.len() / hidden, 1),
        false => (1, hidden),
    };
    let units: Vec<Vec<f64>> = inputs
        .iter()
        .map(|x| {
            let mut sums: Vec<f64> = biases.iter().map(|&b| f64::from(b)).collect();
            for (i, &x) in x.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                for (h, sum) in sums.iter_mut().enumerate() {
                    *sum += f64::from(x) * f64::from(weights[h * unit + i * input]);
                }
            }
            sums.iter().map(|s| s.tanh()).collect()
        })
        .collect();
    let design = Mat::from_fn(units.len(), hidden + 1, |r, h| match h == hidden {
        true => 1.0,
        false => units[r][h],
    });
    let targets = Mat::from_fn(units.len(), 2, |r, k| targets[r][k]);
    let count = units.len() as f64;
    let mut normal = design.transpose() * &design;
    for h in 0..hidden {
        normal[(h, h)] += RIDGE * count;
    }
    let singular = |_| LabError::Singular {
        what: "hidden units",
    };
    let factor = normal.llt(Side::Lower).map_err(singular)?;
    let solution = factor.solve(design.transpose() * &targets);
    let parameters = model.parameters_mut();
    for (o, weights) in opening.weights.iter().enumerate() {
        let told = |h: usize| -> f64 {
            let each = weights.iter().enumerate();
            each.map(|(k, &by)| f64::from(by) * solution[(h, k)]).sum()
        };
        for h in 0..hidden {
            parameters[last.start + o * hidden + h] = told(h) as f32;
        }
        parameters[last_bias.start + o] = opening.constants[o] + told(hidden) as f32;
    }
    Ok(())
}

/// The two largest principal components of coarse pictures, standardised.
fn components(pictures: &[Vec<f32>]) -> Result<Vec<[f64; 2]>, LabError> {
    let coarse: Vec<Vec<f64>> = pictures.iter().map(|p| coarse(p)).collect();
    let (count, cells) = (coarse.len().max(1) as f64, CELLS * CELLS);
    let mean: Vec<f64> = (0..cells)
        .map(|i| coarse.iter().map(|c| c[i]).sum::<f64>() / count)
        .collect();
    let covariance = Mat::from_fn(cells, cells, |i, j| {
        let products = coarse.iter().map(|c| (c[i] - mean[i]) * (c[j] - mean[j]));
        products.sum::<f64>() / count
    });
    let eigen = covariance
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| LabError::Singular {
            what: "coarse pictures",
        })?;
    // Eigenvalues come in rising order.
    let component = |c: &Vec<f64>, k: usize| {
        let column = cells - 1 - k;
        let spread = eigen.S().column_vector()[column].max(1e-12).sqrt();
        let along = (0..cells).map(|i| (c[i] - mean[i]) * eigen.U()[(i, column)]);
        along.sum::<f64>() / spread
    };
    Ok(coarse
        .iter()
        .map(|c| [component(c, 0), component(c, 1)])
        .collect())
}

/// Sums over the cells of a coarse grid.
fn coarse(picture: &[f32]) -> Vec<f64> {
    let side = picture.len().isqrt().max(1);
    let mut sums = vec![0.0; CELLS * CELLS];
    for (i, &v) in picture.iter().enumerate() {
        let cell = |at: usize| (at * CELLS / side).min(CELLS - 1);
        sums[cell(i / side) * CELLS + cell(i % side)] += f64::from(v);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pendulum::Pendulum;
    use ramp::graph::{FactorTree, Tying};
    use ramp::network::{MlpSpec, NetworkSpec};

    #[test]
    fn pictures_of_a_pendulum_start_as_a_circle() {
        // 12 by 12 pixels are few, 20 by 20 many: the first layer lies either way.
        for size in [12, 20] {
            let films = Pendulum {
                size,
                sequences: 100,
                steps: 5,
            };
            let films = films.films(1, 0).unwrap();
            let frames: Vec<Vec<f32>> = (0..500)
                .map(|i| {
                    films
                        .frame(i / 5, i % 5)
                        .iter()
                        .map(|&v| f32::from(v) / 255.0)
                        .collect()
                })
                .collect();
            let theta = films.theta.clone();
            let data = films.into_dataset().unwrap();
            let network = NetworkSpec::Mlp(MlpSpec {
                hidden: vec![32],
                ..MlpSpec::default()
            });
            let mut model = Model::builder(FactorTree::chain(5).unwrap())
                .families("gaussian(2)")
                .unwrap()
                .tying(Tying::Role)
                .observation_network(network)
                .build(&data)
                .unwrap();
            let opening = Opening {
                weights: vec![[1.0, 0.0], [0.0, 1.0], [0.0; 2], [0.0; 2], [0.0; 2]],
                constants: vec![0.0, 0.0, 1.0, 0.0, 1.0],
            };
            begin_on_a_circle(&mut model, &frames, &opening).unwrap();
            // What each frame says by itself: the first step has no past, and its future is hidden.
            let mut filter = ramp::infer::Filter::new(&model).unwrap();
            let mut turned: Vec<(f64, f64)> = frames
                .iter()
                .zip(&theta)
                .map(|(frame, &theta)| {
                    filter.reset();
                    let mean = filter.step(&[Some(frame)]).unwrap().describe().mean;
                    (theta, mean[1].atan2(mean[0]))
                })
                .collect();
            // Around the circle once, in one sense.
            turned.sort_by(|a, b| a.0.total_cmp(&b.0));
            let steps = turned
                .windows(2)
                .map(|w| crate::pendulum::wrapped(w[1].1 - w[0].1));
            let around: f64 = steps.sum();
            assert!(
                (around.abs() - std::f64::consts::TAU).abs() < 0.3,
                "{size}: {around}"
            );
        }
    }
}
