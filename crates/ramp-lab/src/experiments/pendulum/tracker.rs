//! How the messages of videos begin when a latent is a plane: as a tracker of something that goes around a circle.
//!
//! A frame tells a place on the circle and nothing of the velocity. If the networks are left to find velocities on their own,
//! they begin to write them outwards in one part of the circle and inwards in another, and the seam between stays. So the
//! first messages are those of a Kalman filter, linearised around each belief, for a point that keeps its angular velocity:
//! the radius stands for the velocity, everywhere outwards. How fast the point goes around is taken from the videos. Learning
//! does the rest: what is true of the motion, and what frames and neighbours really tell.

use super::circle::Shown;
use super::data::{Videos, wrapped};
use crate::error::LabError;
use crate::harness::last_layer::fit_network;
use ramp::model::Model;

/// The mean and the spread of the radius under the prior, a standard normal in the plane.
const RADIUS: f64 = 1.25;
const RADIUS_SPREAD: f64 = 0.65;
/// How far off the place in a frame is, and what else may happen to a point from frame to frame.
const PLACE_SPREAD: f64 = 0.5;
const STEP_SPREAD: f64 = 0.4;
/// The penalty of the regressions: weights stay small, so that learning moves on gently.
const RIDGE: f64 = 1e-3;
/// Frames that are seen, and then not seen, in videos with gaps.
const SEEN: usize = 12;
const GAP: usize = 8;

/// A symmetric matrix of two rows: top left, beside the diagonal, bottom right.
type Square = [f64; 3];

fn inverse([a, b, c]: Square) -> Square {
    let det = a * c - b * b;
    [c / det, -b / det, a / det]
}

fn times([a, b, c]: Square, [x, y]: [f64; 2]) -> [f64; 2] {
    [a * x + b * y, b * x + c * y]
}

/// A matrix with these variances along a direction and across it, and what they have in common.
fn turned([along, both, across]: Square, angle: f64) -> Square {
    let (s, c) = angle.sin_cos();
    [
        along * c * c - 2.0 * both * s * c + across * s * s,
        (along - across) * s * c + both * (c * c - s * s),
        along * s * s + 2.0 * both * s * c + across * c * c,
    ]
}

/// A Gaussian in the plane by `precision · mean` and precision.
#[derive(Clone, Copy, Debug)]
struct Plane {
    shift: [f64; 2],
    precision: Square,
}

const PRIOR: Plane = Plane {
    shift: [0.0; 2],
    precision: [1.0, 0.0, 1.0],
};

impl Plane {
    fn new(mean: [f64; 2], covariance: Square) -> Self {
        let precision = inverse(covariance);
        Plane {
            shift: times(precision, mean),
            precision,
        }
    }

    fn mean(&self) -> [f64; 2] {
        times(inverse(self.precision), self.shift)
    }

    /// Both together, where the prior counts once.
    fn with(self, other: Plane) -> Plane {
        let [p, q, r] =
            [0, 1, 2].map(|i| self.precision[i] + other.precision[i] - PRIOR.precision[i]);
        Plane {
            shift: [0, 1].map(|i| self.shift[i] + other.shift[i]),
            precision: [p, q, r],
        }
    }

    /// What a network sees of it.
    fn seen(&self) -> Vec<f32> {
        let ([x, y], [p, q, r]) = (self.mean(), self.precision);
        [x, y, p.ln(), q / (p * r).sqrt(), r.ln()]
            .map(|v| v as f32)
            .to_vec()
    }

    /// The raw outputs that say it, as a ratio to the prior.
    fn raw(&self) -> Vec<f64> {
        // The least that a message may say along any direction.
        const LEAST: f64 = 0.01;
        let [p, q, r] = self.precision;
        let (middle, half) = ((p + r) / 2.0, ((p - r) / 2.0).hypot(q));
        let angle = 0.5 * (2.0 * q).atan2(p - r);
        let [p, q, r] = turned(
            [
                (middle + half - 1.0).max(LEAST),
                0.0,
                (middle - half - 1.0).max(LEAST),
            ],
            angle,
        );
        let first = p.sqrt();
        let below = q / first;
        let last = (r - below * below).max(0.0).sqrt();
        vec![self.shift[0], self.shift[1], first, below, last]
    }

    /// The belief about a point one step on, whose angle grows by so much for a unit of radius above the usual.
    fn moved(&self, turn: f64) -> Plane {
        let [x, y] = self.mean();
        let (radius, angle) = (x.hypot(y), y.atan2(x));
        let to = angle + turn * (radius - RADIUS);
        let [along, both, across] = turned(inverse(self.precision), -angle);
        // Further out is further on.
        let shear = radius * turn;
        let noise = STEP_SPREAD * STEP_SPREAD;
        let moved = [
            along + noise,
            both + shear * along,
            across + 2.0 * shear * both + shear * shear * along + noise,
        ];
        Plane::new([radius * to.cos(), radius * to.sin()], turned(moved, to))
    }
}

/// What a frame tells of a point at an angle.
fn place(angle: f64) -> Plane {
    let spread = [
        RADIUS_SPREAD * RADIUS_SPREAD,
        0.0,
        PLACE_SPREAD * PLACE_SPREAD,
    ];
    Plane::new(
        [RADIUS * angle.cos(), RADIUS * angle.sin()],
        turned(spread, angle),
    )
}

/// The networks of a chain of planes begin as a tracker of what goes around in these videos.
pub(super) fn init_tracking(model: &mut Model, videos: &Videos) -> Result<(), LabError> {
    let shown = Shown::of(videos)?;
    let angle = |[x, y]: [f64; 2]| y.atan2(x);
    shown.init(model, |at| place(angle(at)).raw())?;
    let angles: Vec<Vec<f64>> = shown
        .places
        .iter()
        .map(|video| video.iter().map(|&at| angle(at)).collect())
        .collect();
    let strides = || {
        angles
            .iter()
            .flat_map(|video| video.windows(2).map(|w| wrapped(w[1] - w[0])))
    };
    let mean_square = strides().map(|d| d * d).sum::<f64>() / strides().count().max(1) as f64;
    let turn = mean_square.sqrt() / RADIUS_SPREAD;
    for (network, turn) in [("forward", turn), ("backward", -turn)] {
        let (mut seen, mut told) = (vec![], vec![]);
        for (gap, video) in [0, GAP]
            .iter()
            .flat_map(|gap| angles.iter().map(move |video| (gap, video)))
        {
            let mut heard = PRIOR;
            for step in 0..video.len() {
                let seen_here = step % (SEEN + gap) < SEEN;
                let belief = match (seen_here, turn > 0.0) {
                    (false, _) => heard,
                    (_, true) => heard.with(place(video[step])),
                    (_, false) => heard.with(place(video[video.len() - 1 - step])),
                };
                heard = belief.moved(turn);
                seen.push(belief.seen());
                told.push(heard.raw());
            }
        }
        fit_network(model, network, &seen, &told, RIDGE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::probe::{embed, probe};
    use super::*;
    use crate::experiments::pendulum::data::Pendulum;
    use ramp::graph::{FactorTree, Tying};
    use ramp::network::{MlpSpec, NetworkSpec};

    /// The belief about the last of so many places of a point that goes around evenly.
    fn followed(start: f64, stride: f64, turn: f64) -> Plane {
        let mut heard = PRIOR;
        for step in 0..12 {
            heard = heard
                .with(place(start + stride * f64::from(step)))
                .moved(turn);
        }
        heard
    }

    #[test]
    fn a_tracker_writes_velocity_outwards_all_around() {
        let turn = 0.3;
        for start in [0.0, 1.0, 2.5, 4.0, 5.5] {
            let radii: Vec<f64> = [-0.1, -0.05, 0.0, 0.05, 0.1]
                .iter()
                .map(|&stride| {
                    let [x, y] = followed(start, stride, turn).mean();
                    // It is about where the point will be next.
                    let off = wrapped(y.atan2(x) - start - 12.0 * stride);
                    assert!(off.abs() < 0.6, "{start} {stride}: {off}");
                    // Backwards in time the same video gives the same radius.
                    let [u, v] = followed(start, -stride, -turn).mean();
                    assert!((u.hypot(v) - x.hypot(y)).abs() < 1e-9);
                    x.hypot(y)
                })
                .collect();
            assert!(
                radii.windows(2).all(|w| w[1] > w[0] + 0.05),
                "{start}: {radii:?}"
            );
        }
    }

    #[test]
    fn raw_outputs_say_the_belief() {
        let belief = place(0.7).moved(0.3).with(place(0.9));
        let raw = belief.raw();
        let [a, b, c] = [raw[2], raw[3], raw[4]];
        let said = [a * a + 1.0, a * b, b * b + c * c + 1.0];
        for (said, meant) in said.iter().zip(belief.precision) {
            assert!((said - meant).abs() < 1e-9, "{said} {meant}");
        }
        assert_eq!(raw[..2], belief.shift);
    }

    #[test]
    fn networks_that_begin_as_trackers_know_velocities() {
        let sizes = Pendulum {
            size: 16,
            sequences: 100,
            steps: 30,
        };
        let videos = sizes.videos(3, 0).unwrap();
        let data = videos.clone().into_dataset().unwrap();
        let network = NetworkSpec::Mlp(MlpSpec {
            hidden: vec![64],
            ..MlpSpec::default()
        });
        let mut model = Model::builder(FactorTree::chain(30).unwrap())
            .families("gaussian(2)")
            .unwrap()
            .tying(Tying::Role)
            .message_network(network.clone())
            .observation_network(network)
            .build(&data)
            .unwrap();
        init_tracking(&mut model, &videos).unwrap();
        let (seen, truth) = (embed(&model, &data).unwrap(), videos.targets());
        let r2 = probe((&seen, &truth), (&seen, &truth), 1000).unwrap();
        let [cos, sin, omega] = r2.test;
        assert!(cos > 0.95 && sin > 0.95 && omega > 0.4, "{:?}", r2.test);
    }
}
