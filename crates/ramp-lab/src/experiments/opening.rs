//! How the messages of films begin: on a circle.
//!
//! The start decides the topology: a latent plane that is folded early stays folded. From random weights a plane often takes
//! up one direction of a circle before the other. The two largest principal components of pictures of a pendulum on a grid
//! of few cells are its place, so a circle already; those of fine pictures are not, as frames that share no pixel are all
//! equally far apart.

use super::last_layer::begin;
use crate::error::LabError;
use crate::pendulum::Films;
use faer::{Mat, Side};
use ramp::model::Model;

/// Cells on a side of a coarse picture.
const CELLS: usize = 4;
/// The penalty of the regression from hidden units to what is to be told.
const RIDGE: f64 = 1e-3;
/// Films that a start looks at, and frames that an observation network begins with, at most.
const FILMS: usize = 200;
const FRAMES: usize = 2000;

/// A first message: for every raw output, its weight on each of two coordinates, and a constant.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub weights: Vec<[f64; 2]>,
    pub constants: Vec<f64>,
}

/// The observation network begins by telling the principal components of these films' coarse frames.
pub(super) fn begin_on_a_circle(
    model: &mut Model,
    films: &Films,
    opening: &Opening,
) -> Result<(), LabError> {
    let shown = Shown::of(films)?;
    let outputs = opening.weights.iter().zip(&opening.constants);
    shown.begin(model, |[x, y]| {
        let told = outputs.clone().map(|(w, c)| c + w[0] * x + w[1] * y);
        told.collect()
    })
}

/// The frames that a start looks at.
pub(super) struct Shown {
    films: Films,
    /// The place in every frame of every film.
    pub places: Vec<Vec<[f64; 2]>>,
}

impl Shown {
    /// Some of these films.
    pub fn of(films: &Films) -> Result<Self, LabError> {
        let films = films.first(FILMS);
        let steps = films.sizes.steps;
        let film = |film: usize| (0..steps).map(move |step| (film, step));
        let frames = (0..films.sizes.sequences).flat_map(film);
        let components = Components::of(frames.map(|(film, step)| films.frame(film, step)))?;
        let place = |(film, step)| components.tell(films.frame(film, step));
        let places = (0..films.sizes.sequences)
            .map(|f| film(f).map(place).collect())
            .collect();
        Ok(Shown { films, places })
    }

    /// The observation network begins by telling this of the place in a frame.
    pub fn begin(
        &self,
        model: &mut Model,
        tell: impl Fn([f64; 2]) -> Vec<f64>,
    ) -> Result<(), LabError> {
        let steps = self.films.sizes.steps;
        let frames = self.films.sizes.sequences * steps;
        let (pictures, told): (Vec<_>, Vec<_>) = (0..frames)
            .step_by(frames.div_ceil(FRAMES).max(1))
            .map(|at| {
                let (film, step) = (at / steps, at % steps);
                let picture = self.films.frame(film, step).iter();
                let picture = picture.map(|&v| f32::from(v) / 255.0).collect();
                (picture, tell(self.places[film][step]))
            })
            .unzip();
        begin(model, "observation", &pictures, &told, RIDGE)
    }
}

/// The two largest principal components of coarse pictures, standardised.
struct Components {
    mean: Vec<f64>,
    /// A weight for every cell.
    along: [Vec<f64>; 2],
}

impl Components {
    /// Those of these square pictures.
    fn of<'a>(pictures: impl Iterator<Item = &'a [u8]>) -> Result<Self, LabError> {
        let coarse: Vec<Vec<f64>> = pictures.map(|p| coarse(p, CELLS)).collect();
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
        let along = [1, 2].map(|k| {
            let column = cells - k;
            let spread = eigen.S().column_vector()[column].max(1e-12).sqrt();
            (0..cells)
                .map(|i| eigen.U()[(i, column)] / spread)
                .collect()
        });
        Ok(Components { mean, along })
    }

    /// Those of one picture.
    fn tell(&self, picture: &[u8]) -> [f64; 2] {
        let coarse = coarse(picture, CELLS);
        let part = |along: &Vec<f64>| {
            let cells = coarse.iter().zip(&self.mean).zip(along);
            cells.map(|((c, m), a)| (c - m) * a).sum()
        };
        [part(&self.along[0]), part(&self.along[1])]
    }
}

/// Sums over the cells of a coarse grid, so many on a side.
pub(super) fn coarse(picture: &[u8], cells: usize) -> Vec<f64> {
    let side = picture.len().isqrt().max(1);
    let mut sums = vec![0.0; cells * cells];
    for (i, &v) in picture.iter().enumerate().filter(|(_, v)| **v != 0) {
        let cell = |at: usize| (at * cells / side).min(cells - 1);
        sums[cell(i / side) * cells + cell(i % side)] += f64::from(v) / 255.0;
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
        // 12 by 12 pixels are few, 20 by 20 many: the first layer lies either way, and 16 by 16 are as many as hidden units.
        for (size, hidden) in [(12, 32), (20, 32), (16, 256)] {
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
            let data = films.clone().into_dataset().unwrap();
            let network = NetworkSpec::Mlp(MlpSpec {
                hidden: vec![hidden],
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
            begin_on_a_circle(&mut model, &films, &opening).unwrap();
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
