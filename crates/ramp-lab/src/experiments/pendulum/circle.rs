//! An initialisation that knows of the circle: frames say where on it the pendulum is.
//!
//! The start decides the topology: a latent plane that is folded early stays folded. From random weights a plane often takes
//! up one direction of a circle before the other. The two largest principal components of pictures of a pendulum on a grid
//! of few cells are its place, so a circle already; those of fine pictures are not, as frames that share no pixel are all
//! equally far apart.

use super::Shape;
use super::data::Videos;
use crate::error::LabError;
use crate::harness::last_layer::fit_network;
use faer::{Mat, Side};
use ramp::model::Model;

/// Cells on a side of a coarse picture.
const CELLS: usize = 4;
/// The penalty of the regression from hidden units to what is to be told.
const RIDGE: f64 = 1e-3;
/// Videos that a start looks at, and frames that an observation network begins with, at most.
const FILMS: usize = 200;
const FRAMES: usize = 2000;

/// A first message: for every raw output, its weight on each of two coordinates, and a constant.
#[derive(Clone, Debug)]
pub(super) struct FirstMessage {
    pub weights: Vec<[f64; 2]>,
    pub constants: Vec<f64>,
}

impl Shape {
    /// The first messages of frames, from two components that go around a circle.
    pub(super) fn first_message(self) -> FirstMessage {
        let (weights, constants) = match self {
            // A broad belief around the place.
            Shape::Gaussian => (
                vec![[1.0, 0.0], [0.0, 1.0], [0.0; 2], [0.0; 2], [0.0; 2]],
                vec![0.0, 0.0, 1.0, 0.0, 1.0],
            ),
            // Counts for and against each coordinate.
            Shape::Beta => (
                vec![[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]],
                vec![0.0; 4],
            ),
            // A direction, and nothing about the height.
            Shape::Circle => (
                vec![[1.0, 0.0], [0.0, 1.0], [0.0; 2], [0.0; 2]],
                vec![0.0, 0.0, 0.0, 0.3],
            ),
        };
        FirstMessage { weights, constants }
    }
}

/// The observation network begins by telling the principal components of these videos' coarse frames.
pub(super) fn init_on_a_circle(
    model: &mut Model,
    videos: &Videos,
    message: &FirstMessage,
) -> Result<(), LabError> {
    let shown = Shown::of(videos)?;
    let outputs = message.weights.iter().zip(&message.constants);
    shown.init(model, |[x, y]| {
        let told = outputs.clone().map(|(w, c)| c + w[0] * x + w[1] * y);
        told.collect()
    })
}

/// The frames that a start looks at.
pub(super) struct Shown {
    videos: Videos,
    /// The place in every frame of every video.
    pub places: Vec<Vec<[f64; 2]>>,
}

impl Shown {
    /// Some of these videos.
    pub fn of(videos: &Videos) -> Result<Self, LabError> {
        let videos = videos.first(FILMS);
        let steps = videos.sizes.steps;
        let video = |video: usize| (0..steps).map(move |step| (video, step));
        let frames = (0..videos.sizes.sequences).flat_map(video);
        let components = Components::of(frames.map(|(video, step)| videos.frame(video, step)))?;
        let place = |(video, step)| components.tell(videos.frame(video, step));
        let places = (0..videos.sizes.sequences)
            .map(|f| video(f).map(place).collect())
            .collect();
        Ok(Shown { videos, places })
    }

    /// The observation network begins by telling this of the place in a frame.
    pub fn init(
        &self,
        model: &mut Model,
        tell: impl Fn([f64; 2]) -> Vec<f64>,
    ) -> Result<(), LabError> {
        let steps = self.videos.sizes.steps;
        let frames = self.videos.sizes.sequences * steps;
        let (pictures, told): (Vec<_>, Vec<_>) = (0..frames)
            .step_by(frames.div_ceil(FRAMES).max(1))
            .map(|at| {
                let (video, step) = (at / steps, at % steps);
                let picture = self.videos.frame(video, step).iter();
                let picture = picture.map(|&v| f32::from(v) / 255.0).collect();
                (picture, tell(self.places[video][step]))
            })
            .unzip();
        fit_network(model, "observation", &pictures, &told, RIDGE)
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
pub(in crate::experiments) fn coarse(picture: &[u8], cells: usize) -> Vec<f64> {
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
    use crate::experiments::pendulum::data::Pendulum;
    use ramp::graph::{FactorTree, Tying};
    use ramp::network::{MlpSpec, NetworkSpec};

    #[test]
    fn pictures_of_a_pendulum_start_as_a_circle() {
        // 12 by 12 pixels are few, 20 by 20 many: the first layer lies either way, and 16 by 16 are as many as hidden units.
        for (size, hidden) in [(12, 32), (20, 32), (16, 256)] {
            let videos = Pendulum {
                size,
                sequences: 100,
                steps: 5,
            };
            let videos = videos.videos(1, 0).unwrap();
            let frames: Vec<Vec<f32>> = (0..500)
                .map(|i| {
                    videos
                        .frame(i / 5, i % 5)
                        .iter()
                        .map(|&v| f32::from(v) / 255.0)
                        .collect()
                })
                .collect();
            let theta = videos.theta.clone();
            let data = videos.clone().into_dataset().unwrap();
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
            let message = Shape::Gaussian.first_message();
            init_on_a_circle(&mut model, &videos, &message).unwrap();
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
                .map(|w| crate::experiments::pendulum::data::wrapped(w[1].1 - w[0].1));
            let around: f64 = steps.sum();
            assert!(
                (around.abs() - std::f64::consts::TAU).abs() < 0.3,
                "{size}: {around}"
            );
        }
    }
}
