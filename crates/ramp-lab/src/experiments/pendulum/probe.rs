//! The probe of the pendulum: posterior means as points, and kernel ridge regression from them to the state.

use crate::error::LabError;
use crate::experiments::state_probe::{Points, Probe};
use crate::harness::Embedded;
use ramp::data::Dataset;
use ramp::family::Description;
use ramp::graph::TimeAxis;
use ramp::model::Model;
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

/// R² by both probes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BothR2 {
    /// By the usual settings.
    #[serde(flatten)]
    pub usual: StateR2,
    /// On frames of test videos, by settings found by cross-validation on training videos: how much is there at all.
    pub tuned: [f64; 3],
}

/// A point for every frame, video by video.
#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    /// What is regressed from.
    pub points: Points,
    /// Where to draw each frame in a plane.
    pub plane: Vec<(f64, f64)>,
}

impl Embedding {
    /// Those of training and test videos by a baseline.
    pub fn pair(found: Embedded) -> [Embedding; 2] {
        let features = found.dim;
        [found.train, found.test].map(|values| {
            let second = |p: &[f64]| p.get(1).copied().unwrap_or(0.0);
            let plane = values.chunks_exact(features);
            Embedding {
                plane: plane.map(|p| (p[0], second(p))).collect(),
                points: Points { features, values },
            }
        })
    }
}

/// Posterior means of all frames, as [`Units`] have them, except where they are drawn.
pub(crate) fn embed(model: &Model, data: &Dataset) -> Result<Embedding, LabError> {
    let units = Units::of(model);
    let mut embedding = Embedding {
        points: Points {
            features: 0,
            values: vec![],
        },
        plane: vec![],
    };
    model.for_each_posterior(data, VIDEOS, |part| {
        let means = part.latent(TimeAxis::LATENT)?.mean_array();
        let width = means.shape()[2];
        embedding.points.features = width + units.circles;
        for mean in means.values().chunks_exact(width) {
            let second = mean.get(1).copied().unwrap_or(0.0);
            embedding.plane.push((mean[0], second));
            embedding.points.values.extend(units.point(mean));
        }
        Ok(())
    })?;
    Ok(embedding)
}

/// Means of all frames given those before them only, as points.
pub(super) fn filtered(model: &Model, data: &Dataset) -> Result<Points, LabError> {
    let units = Units::of(model);
    let posterior = model.filtered(data)?;
    let means = posterior.latent(TimeAxis::LATENT)?.mean_array();
    let width = means.shape()[2];
    let each = means.values().chunks_exact(width);
    Ok(Points {
        features: width + units.circles,
        values: each.flat_map(|mean| units.point(mean)).collect(),
    })
}

/// How a mean becomes a point. A kernel of a fixed width sees points of every family on the same scale: an angle stands for its cosine and sine, all
/// else is taken from the prior's mean in standard deviations of the prior, which leaves a standard Gaussian as it is.
struct Units {
    /// How many of a belief's first coordinates are angles.
    circles: usize,
    prior: Description,
}

impl Units {
    /// Those of a chain's beliefs.
    fn of(model: &Model) -> Self {
        let belief = model.beliefs().next().expect("a chain has latents");
        Units {
            circles: usize::from(belief.to_string().starts_with("von_mises")),
            prior: belief.describe(model.prior(0)),
        }
    }

    fn point(&self, mean: &[f64]) -> impl Iterator<Item = f64> {
        let (angles, rest) = mean.split_at(self.circles);
        let turned = angles.iter().flat_map(|a| [a.cos(), a.sin()]);
        let prior = self
            .prior
            .mean
            .iter()
            .zip(&self.prior.sd)
            .skip(self.circles);
        turned.chain(
            rest.iter()
                .zip(prior)
                .map(|(x, (mean, sd))| (x - mean) / sd),
        )
    }
}

/// An embedding with the state behind every frame.
type Known<'a> = (&'a Embedding, &'a [Vec<f64>; 3]);

/// Probes cos θ, sin θ and ω by a regression from so many training frames, chosen at random.
pub(crate) fn probe(train: Known<'_>, test: Known<'_>, fitted: usize) -> Result<StateR2, LabError> {
    usual(&chosen(train, test, fitted))
}

/// The same by both probes.
pub(crate) fn probe_both(
    train: Known<'_>,
    test: Known<'_>,
    fitted: usize,
) -> Result<BothR2, LabError> {
    let probe = chosen(train, test, fitted);
    Ok(BothR2 {
        usual: usual(&probe)?,
        tuned: three(&probe.tuned()?),
    })
}

fn chosen((train, known): Known<'_>, (test, truth): Known<'_>, fitted: usize) -> Probe {
    Probe::new(
        (&train.points, known),
        (&test.points, truth),
        fitted,
        JUDGED,
    )
}

fn usual(probe: &Probe) -> Result<StateR2, LabError> {
    let [train, test] = probe.usual()?;
    Ok(StateR2 {
        train: three(&train),
        test: three(&test),
    })
}

fn three(of: &[f64]) -> [f64; 3] {
    [0, 1, 2].map(|k| of[k])
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
                points: Points {
                    features: 3,
                    values: plane.iter().flat_map(point).collect(),
                },
                plane,
            };
            (embedding, videos.targets())
        };
        let ((train, truth), (test, test_truth)) = (of(0), of(1));
        let r2 = probe_both((&train, &truth), (&test, &test_truth), 500).unwrap();
        let BothR2 { usual, tuned } = r2;
        let all = usual.train.iter().chain(&usual.test).chain(&tuned);
        assert!(all.into_iter().all(|&r| r > 0.98), "{r2:?}");
        assert!(tuned[2] > usual.test[2], "{r2:?}");
        // And nothing is read off points that know nothing.
        let blind = |e: &Embedding| Embedding {
            points: Points {
                features: 3,
                values: e.points.values.iter().map(|_| 0.5).collect(),
            },
            ..e.clone()
        };
        let r2 = probe((&blind(&train), &truth), (&blind(&test), &test_truth), 500).unwrap();
        assert!(r2.test.iter().all(|&r| r < 0.1), "{r2:?}");
    }
}
