//! What can be read off points of states: kernel ridge regression with the usual settings, and with settings found by
//! cross-validation on training sequences.

use crate::error::LabError;
use crate::kernel_ridge::KernelRidge;
use crate::metrics::r_squared;
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

/// Points in a space of some dimension, step by step, sequence by sequence.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    /// Coordinates of a point.
    pub features: usize,
    /// All coordinates, point by point.
    pub values: Vec<f64>,
}

/// Points with the variables to be read off them.
type Labelled<'a> = (&'a Points, &'a [Vec<f64>]);

/// Some training points that a regression is fitted to, and some test points that it is judged on.
pub(crate) struct Probe {
    features: usize,
    points: Vec<f64>,
    values: Vec<Vec<f64>>,
    others: Vec<f64>,
    truth: Vec<Vec<f64>>,
}

impl Probe {
    /// So many training and test points at most, chosen at random.
    pub fn new(train: Labelled<'_>, test: Labelled<'_>, fitted: usize, judged: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut choose = |(of, truth): Labelled<'_>, most: usize| {
            let count = truth[0].len();
            let chosen = sample(&mut rng, count, most.min(count)).into_vec();
            let points: Vec<f64> = chosen
                .iter()
                .flat_map(|&i| &of.values[i * of.features..][..of.features])
                .copied()
                .collect();
            let pick = |t: &Vec<f64>| chosen.iter().map(|&i| t[i]).collect();
            (points, truth.iter().map(pick).collect())
        };
        let (points, values) = choose(train, fitted);
        let (others, truth) = choose(test, judged);
        Probe {
            features: train.0.features,
            points,
            values,
            others,
            truth,
        }
    }

    /// R² of every variable with scikit-learn's default settings, on the points that the regression was fitted to and on test points.
    pub fn usual(&self) -> Result<[Vec<f64>; 2], LabError> {
        let ridge = KernelRidge::fit(self.points.clone(), self.features, &self.values)?;
        Ok([
            r2(&ridge, &self.points, &self.values),
            r2(&ridge, &self.others, &self.truth),
        ])
    }

    /// R² of every variable on test points with a width of the kernel and a penalty found by cross-validation: how much is there at all.
    pub fn tuned(&self) -> Result<Vec<f64>, LabError> {
        let ridge = KernelRidge::tuned(self.points.clone(), self.features, &self.values)?;
        Ok(r2(&ridge, &self.others, &self.truth))
    }
}

fn r2(ridge: &KernelRidge, points: &[f64], values: &[Vec<f64>]) -> Vec<f64> {
    let predicted = ridge.predict(points);
    let pairs = values.iter().zip(&predicted);
    pairs.map(|(t, p)| r_squared(t, p)).collect()
}
