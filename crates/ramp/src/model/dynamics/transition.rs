//! First messages along a chain: a belief is handed on nearly as it is, a little less sure, and moved one way forwards in time and
//! the other way backwards.
//!
//! If forward and backward networks begin alike, and the data look alike when played backwards, then their expected gradients
//! are equal and they stay alike: no belief can ever tell a sequence from its reversal, and no velocity can be represented. Two
//! movements break this symmetry without knowing the system; neither suits every one ([`Transition`]):
//!
//! - A **twist** turns planes by an angle that grows with the distance from their origin, `z → exp(κ(‖z‖ − r₀)J) z`, forwards with
//!   `κ`, backwards with `−κ`, where `r₀ = E‖z‖` under the prior. Seen from a latent the past lags and the future leads by the same
//!   angle; their sum is even in the velocity, but with opposite twists it is odd in it to first order, everywhere in the same
//!   sense and without a preferred speed. Observations tell of all coordinates; a velocity is written across the curve that
//!   they trace. In more than two dimensions random planes turn, each by itself: one twist of all would tell one velocity only.
//! - A **drift** keeps half of the coordinates for rates of change of the others: `x → x ± κ v`. It suits places that fill half of
//!   the dimensions without bending back on themselves, such as a ball in a box, and fails where they need them all (a circle).
//!
//! Families other than Gaussians move in a chart: Betas by the log-odds of their means, Gammas by their logarithms; an angle is
//! shifted by the first coordinate on a line beside it (or, alone, by a constant); probabilities go to the next level.

use super::chart::{State, identity, normal};
use super::linalg::product;
use super::states::Layout;
use rand_chacha::ChaCha8Rng;

/// How first messages move a belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transition {
    /// Planes turn by an angle that grows with the distance from their origin.
    Twist,
    /// The second half of the coordinates are rates of change of the first.
    Drift,
}

/// How the networks of a chain begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicsInit {
    /// How first messages move a belief.
    pub transition: Transition,
    /// The angle of a twist, in radians a step, at one standard deviation of the distance from the origin.
    pub angle: f64,
    /// How many times the speed of what observations show goes with one standard deviation of a drift's rate.
    pub speed: f64,
    /// The variance that a step adds, where the prior's is one.
    pub noise: f64,
}

impl DynamicsInit {
    /// A twist of moderate strength: from half to twice as much makes little difference.
    pub fn twist() -> Self {
        DynamicsInit {
            transition: Transition::Twist,
            angle: 0.1,
            speed: 2.0,
            noise: 0.16,
        }
    }

    /// A drift at twice the usual speed.
    pub fn drift() -> Self {
        DynamicsInit {
            transition: Transition::Drift,
            ..Self::twist()
        }
    }
}

/// The mean and the standard deviation of the distance from the origin under a standard normal in the plane.
const USUAL_DISTANCE: f64 = 1.2533;
const DISTANCE_SPREAD: f64 = 0.655;

/// The movement of one latent's beliefs in their chart.
#[derive(Clone, Debug)]
pub struct Movement {
    /// The planes that are twisted, each by two axes.
    planes: Vec<[Vec<f64>; 2]>,
    /// Which coordinate goes on by which other, and how far for one of it.
    drifts: Vec<(usize, usize, f64)>,
    /// Coordinates on lines that observations tell of.
    pub told: usize,
    init: DynamicsInit,
}

impl Movement {
    /// That of so many coordinates on lines; `lagged` is how each component that observations show goes with itself one step later.
    pub fn new(lines: usize, init: DynamicsInit, lagged: &[f64], rng: &mut ChaCha8Rng) -> Self {
        let (planes, told) = match init.transition {
            Transition::Twist => (planes(lines, rng), lines),
            Transition::Drift => (vec![], lines.div_ceil(2)),
        };
        // The usual distance from step to step of something of unit variance.
        let speed = |to: usize| {
            (2.0 * (1.0 - lagged.get(to).copied().unwrap_or(1.0)))
                .max(0.0)
                .sqrt()
        };
        let drifts = (told..lines).map(|by| (by - told, by, init.speed * speed(by - told)));
        Movement {
            planes,
            drifts: drifts.collect(),
            told,
            init,
        }
    }

    /// That of estimated states: rings turn, each in the plane of its own two coordinates, and places drift by their rates; `paces` is how far each
    /// coordinate that is shown goes in a step.
    pub fn of_layout(lines: usize, layout: Layout, paces: &[f64]) -> Self {
        let Layout { rings, places } = layout;
        let axis =
            |k: usize| -> Vec<f64> { (0..lines).map(|i| f64::from(u8::from(i == k))).collect() };
        let planes = (0..rings).map(|r| [axis(2 * r), axis(2 * r + 1)]);
        let told = 2 * rings + places;
        let drift = |by: usize| {
            let to = by - places;
            (to, by, paces.get(to).copied().unwrap_or(0.0))
        };
        Movement {
            planes: planes.collect(),
            drifts: (told..lines).map(drift).collect(),
            told,
            init: DynamicsInit::twist(),
        }
    }

    /// The belief one step on, forwards or backwards in time.
    pub fn moved(&self, state: &State, forward: bool) -> State {
        let sign = if forward { 1.0 } else { -1.0 };
        let rate = sign * self.init.angle / DISTANCE_SPREAD;
        let d = state.lines.len();
        // Each plane turns by an angle that grows with the distance from its origin. The map's derivative, the turn and what is
        // further out going further on, carries the covariance along.
        let mut lines = state.lines.clone();
        let mut slope = identity(d);
        for [across, up] in &self.planes {
            let along = |axis: &[f64]| {
                axis.iter()
                    .zip(&state.lines)
                    .map(|(a, x)| a * x)
                    .sum::<f64>()
            };
            let (x, y) = (along(across), along(up));
            let distance = x.hypot(y);
            let angle = rate * (distance - USUAL_DISTANCE);
            let (sin, cos) = angle.sin_cos();
            let (to_x, to_y) = (cos * x - sin * y, sin * x + cos * y);
            let further = rate / distance.max(1e-9);
            // Rows: where the plane's axes go; columns: what they depend on.
            let derivative = [
                [cos - further * to_y * x - 1.0, -sin - further * to_y * y],
                [sin + further * to_x * x, cos + further * to_x * y - 1.0],
            ];
            for i in 0..d {
                lines[i] += across[i] * (to_x - x) + up[i] * (to_y - y);
                for j in 0..d {
                    let [[a, b], [c, e]] = derivative;
                    slope[i * d + j] += across[i] * (a * across[j] + b * up[j])
                        + up[i] * (c * across[j] + e * up[j]);
                }
            }
        }
        for &(to, by, strength) in &self.drifts {
            lines[to] += sign * strength * state.lines[by];
            slope[to * d + by] += sign * strength;
        }
        let half = product(d, &slope, &state.covariance);
        let mut covariance = product(d, &half, &transposed(d, &slope));
        for i in 0..d {
            covariance[i * d + i] += self.init.noise;
        }
        // An angle goes on by the first coordinate beside it; without one, by a constant.
        let (shift, doubt) = match state.lines.first() {
            Some(x) => (rate * x, rate * rate * state.covariance[0]),
            None => (sign * self.init.angle, 0.0),
        };
        let circle =
            |&(angle, variance): &(f64, f64)| (angle + shift, variance + doubt + self.init.noise);
        let simplex = |(p, concentration): &(Vec<f64>, f64)| {
            let levels = p.len();
            let before = |l: usize| match forward {
                true => p[(l + levels - 1) % levels],
                false => p[(l + 1) % levels],
            };
            let kept = 1.0 - self.init.angle - self.init.noise;
            let mixed =
                |l| kept * p[l] + self.init.angle * before(l) + self.init.noise / levels as f64;
            (
                (0..levels).map(mixed).collect(),
                concentration / (1.0 + self.init.noise * concentration),
            )
        };
        State {
            lines,
            covariance,
            circles: state.circles.iter().map(circle).collect(),
            simplices: state.simplices.iter().map(simplex).collect(),
        }
    }
}

fn transposed(n: usize, a: &[f64]) -> Vec<f64> {
    (0..n * n).map(|k| a[k % n * n + k / n]).collect()
}

/// Random planes at right angles to each other, each by two axes; in odd dimensions one direction is left over.
fn planes(n: usize, rng: &mut ChaCha8Rng) -> Vec<[Vec<f64>; 2]> {
    let mut axes: Vec<Vec<f64>> = vec![];
    while axes.len() < n / 2 * 2 {
        let mut axis: Vec<f64> = (0..n).map(|_| normal(rng)).collect();
        for _ in 0..2 {
            for other in &axes {
                let dot: f64 = axis.iter().zip(other).map(|(a, b)| a * b).sum();
                axis.iter_mut().zip(other).for_each(|(a, b)| *a -= dot * b);
            }
        }
        let size = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
        axes.push(axis.iter().map(|x| x / size).collect());
    }
    let mut planes = vec![];
    let mut axes = axes.into_iter();
    while let (Some(across), Some(up)) = (axes.next(), axes.next()) {
        planes.push([across, up]);
    }
    planes
}
