//! The probe of the pendulum: posterior means as points, and kernel ridge regression from them to the state.

use crate::error::LabError;
use crate::kernel_ridge::KernelRidge;
use crate::metrics::r_squared;
use ramp::data::Dataset;
use ramp::family::Belief;
use ramp::graph::TimeAxis;
use ramp::model::Model;
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Frames on which the regression is judged, at most.
const JUDGED: usize = 20_000;
/// Videos whose posteriors are held at a time.
const VIDEOS: usize = 100;

/// R² of cos θ, sin θ and ω by a probe, on training and test videos.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateR2 {
    /// R² on the frames that the regression was fitted to.
    pub train: [f64; 3],
    /// R² on frames of test videos.
    pub test: [f64; 3],
}

/// A point for every frame, video by video.
#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    /// Coordinates of a point.
    pub features: usize,
    /// All coordinates, point by point.
    pub points: Vec<f64>,
    /// Where to draw each frame in a plane.
    pub plane: Vec<(f64, f64)>,
}

/// Posterior means of all frames. An angle stands for its cosine and sine, except where it is drawn.
pub(crate) fn embed(model: &Model, data: &Dataset) -> Result<Embedding, LabError> {
    let circles = model.beliefs().next().map_or(0, circles);
    let mut embedding = Embedding {
        features: 0,
        points: vec![],
        plane: vec![],
    };
    model.for_each_posterior(data, VIDEOS, |part| {
        let means = part.latent(TimeAxis::LATENT)?.mean_array();
        let width = means.shape()[2];
        embedding.features = width + circles;
        for mean in means.values().chunks_exact(width) {
            let second = mean.get(1).copied().unwrap_or(0.0);
            embedding.plane.push((mean[0], second));
            let (angles, rest) = mean.split_at(circles);
            let turned = angles.iter().flat_map(|a| [a.cos(), a.sin()]);
            embedding.points.extend(turned.chain(rest.iter().copied()));
        }
        Ok(())
    })?;
    Ok(embedding)
}

/// How many of a belief's first coordinates are angles.
fn circles(belief: &Belief) -> usize {
    let name = belief.to_string();
    usize::from(name.starts_with("von_mises"))
}

/// Probes cos θ, sin θ and ω by a regression from so many training frames, chosen at random.
pub(crate) fn probe(
    (train, train_truth): (&Embedding, &[Vec<f64>; 3]),
    (test, test_truth): (&Embedding, &[Vec<f64>; 3]),
    regressed: usize,
) -> Result<StateR2, LabError> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut choose = |of: &Embedding, truth: &[Vec<f64>; 3], most: usize| {
        let count = truth[0].len();
        let chosen = sample(&mut rng, count, most.min(count)).into_vec();
        let points: Vec<f64> = chosen
            .iter()
            .flat_map(|&i| &of.points[i * of.features..][..of.features])
            .copied()
            .collect();
        let pick = |t: &Vec<f64>| chosen.iter().map(|&i| t[i]).collect();
        let values: Vec<Vec<f64>> = truth.iter().map(pick).collect();
        (points, values)
    };
    let (points, values) = choose(train, train_truth, regressed);
    let (others, other_values) = choose(test, test_truth, JUDGED);
    let ridge = KernelRidge::fit(points.clone(), train.features, &values)?;
    let r2 = |points: &[f64], values: &[Vec<f64>]| {
        let predicted = ridge.predict(points);
        [0, 1, 2].map(|k| r_squared(&values[k], &predicted[k]))
    };
    Ok(StateR2 {
        train: r2(&points, &values),
        test: r2(&others, &other_values),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::pendulum::data::Pendulum;

    #[test]
    fn the_true_state_is_read_off_its_own_cylinder() {
        let videos = Pendulum {
            size: 8,
            sequences: 40,
            steps: 20,
        };
        let of = |stream| {
            let videos = videos.videos(3, stream).unwrap();
            let plane: Vec<(f64, f64)> = videos
                .theta
                .iter()
                .copied()
                .zip(videos.omega.iter().copied())
                .collect();
            let point = |&(theta, omega): &(f64, f64)| [theta.cos(), theta.sin(), omega];
            let embedding = Embedding {
                features: 3,
                points: plane.iter().flat_map(point).collect(),
                plane,
            };
            (embedding, videos.targets())
        };
        let ((train, truth), (test, test_truth)) = (of(0), of(1));
        let r2 = probe((&train, &truth), (&test, &test_truth), 500).unwrap();
        assert!(r2.train.iter().chain(&r2.test).all(|&r| r > 0.98), "{r2:?}");
        // And nothing is read off points that know nothing.
        let blind = |e: &Embedding| Embedding {
            points: e.points.iter().map(|_| 0.5).collect(),
            ..e.clone()
        };
        let r2 = probe((&blind(&train), &truth), (&blind(&test), &test_truth), 500).unwrap();
        assert!(r2.test.iter().all(|&r| r < 0.1), "{r2:?}");
    }
}
