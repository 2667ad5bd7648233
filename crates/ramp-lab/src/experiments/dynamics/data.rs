//! Systems whose state a chain is to find: their laws, where they start, and what is shown of them.

use crate::baselines::Sequences;
use crate::error::LabError;
use ramp::data::Dataset;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A system with a state that moves by a law and is seen in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// θ″ = −sin θ: a rod and a bob.
    Pendulum,
    /// x″ = x − x³: a dot on a line.
    DoubleWell,
    /// x″ = (1 − x²) x′ − x: a dot on a line, drawn to a cycle from inside and outside.
    VanDerPol,
    /// Prey and predators, of which the logarithm of the prey is a dot on a line.
    LotkaVolterra,
    /// A ball that bounces in a box without loss.
    BouncingBall,
    /// Two rods of equal length and mass, one at the other's end.
    DoublePendulum,
    /// Lorenz's attractor by eight noisy readings, each a squashed mixture of its three coordinates.
    Lorenz,
    /// x″ = 1 − eˣ: a dot on a line, made up to tune on: slow on one side of its rest and fast on the other.
    Toda,
    /// A dot in a curved valley, slow along it and fast across, made up to tune on.
    Valley,
    /// Two pendulums side by side, made up to tune on: two circles.
    TwoPendulums,
    /// A pendulum that can turn over beside a dot on a spring, made up to tune on: a circle beside a line.
    PendulumAndSpring,
    /// Two rods, one at the other's end, each on a spring of its own, made up to tune on: drawn as the double pendulum is, and moved by other laws.
    Arm,
}

/// Those that are reported on.
pub const SYSTEMS: [System; 7] = [
    System::Pendulum,
    System::DoubleWell,
    System::VanDerPol,
    System::LotkaVolterra,
    System::BouncingBall,
    System::DoublePendulum,
    System::Lorenz,
];

/// The noise of Lorenz's readings, which lie between −1 and 1.
const READING_NOISE: f64 = 0.1;
/// What tells the seed of readings from that of states.
const READING_SEED: u64 = 1000;
/// How many readings there are of it.
const READINGS: usize = 8;
/// The integrator's steps from one observation to the next.
const SUBSTEPS: usize = 20;

impl System {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            System::Pendulum => "pendulum",
            System::DoubleWell => "double-well",
            System::VanDerPol => "van-der-pol",
            System::LotkaVolterra => "lotka-volterra",
            System::BouncingBall => "bouncing-ball",
            System::DoublePendulum => "double-pendulum",
            System::Lorenz => "lorenz",
            System::Toda => "toda",
            System::Valley => "valley",
            System::TwoPendulums => "two-pendulums",
            System::PendulumAndSpring => "pendulum-and-spring",
            System::Arm => "arm",
        }
    }

    /// How many numbers a state has: the dimension of its latents.
    pub fn dimension(self) -> usize {
        match self {
            System::BouncingBall
            | System::DoublePendulum
            | System::Valley
            | System::TwoPendulums
            | System::PendulumAndSpring
            | System::Arm => 4,
            System::Lorenz => 3,
            _ => 2,
        }
    }

    /// Whether observations are pictures.
    pub fn is_video(self) -> bool {
        self != System::Lorenz
    }

    /// What is read off latents, and whether a single observation shows it.
    pub fn variables(self) -> &'static [(&'static str, bool)] {
        match self {
            System::Pendulum => &[("cos θ", true), ("sin θ", true), ("ω", false)],
            System::DoubleWell | System::VanDerPol | System::Toda => &[("x", true), ("v", false)],
            System::LotkaVolterra => &[("log prey", true), ("log predators", false)],
            System::BouncingBall | System::Valley => {
                &[("x", true), ("y", true), ("v_x", false), ("v_y", false)]
            }
            System::DoublePendulum | System::TwoPendulums | System::Arm => &[
                ("cos θ₁", true),
                ("sin θ₁", true),
                ("cos θ₂", true),
                ("sin θ₂", true),
                ("ω₁", false),
                ("ω₂", false),
            ],
            System::PendulumAndSpring => &[
                ("cos θ", true),
                ("sin θ", true),
                ("x", true),
                ("ω", false),
                ("v", false),
            ],
            System::Lorenz => &[("x", true), ("y", true), ("z", true)],
        }
    }

    /// These variables of a state.
    pub fn measured(self, state: &[f64]) -> Vec<f64> {
        match self {
            System::Pendulum => vec![state[0].cos(), state[0].sin(), state[1]],
            System::DoublePendulum | System::TwoPendulums | System::Arm => vec![
                state[0].cos(),
                state[0].sin(),
                state[1].cos(),
                state[1].sin(),
                state[2],
                state[3],
            ],
            System::PendulumAndSpring => {
                vec![state[0].cos(), state[0].sin(), state[1], state[2], state[3]]
            }
            _ => state.to_vec(),
        }
    }

    /// Time from one observation to the next.
    fn interval(self) -> f64 {
        match self {
            System::Pendulum | System::DoublePendulum | System::TwoPendulums | System::Arm => 0.1,
            System::DoubleWell => 0.15,
            System::VanDerPol => 0.15,
            System::LotkaVolterra | System::Toda => 0.15,
            System::BouncingBall | System::Valley | System::PendulumAndSpring => 0.1,
            System::Lorenz => 0.05,
        }
    }

    /// A state to start from.
    fn start(self, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut uniform = |low: f64, high: f64| rng.random_range(low..high);
        match self {
            System::Pendulum => vec![uniform(-PI, PI), uniform(-3.0, 3.0)],
            System::DoubleWell => vec![uniform(-1.6, 1.6), uniform(-1.0, 1.0)],
            System::VanDerPol => vec![uniform(-2.5, 2.5), uniform(-3.0, 3.0)],
            System::LotkaVolterra => vec![uniform(-1.2, 1.2), uniform(-1.2, 1.2)],
            System::BouncingBall => vec![
                uniform(-1.0, 1.0),
                uniform(-1.0, 1.0),
                uniform(-1.5, 1.5),
                uniform(-1.5, 1.5),
            ],
            System::DoublePendulum => vec![
                uniform(-1.0, 1.0),
                uniform(-1.0, 1.0),
                uniform(-1.0, 1.0),
                uniform(-1.0, 1.0),
            ],
            System::Toda => vec![uniform(-1.2, 1.2), uniform(-1.2, 1.2)],
            System::Valley => vec![
                uniform(-1.0, 1.0),
                uniform(-0.6, 0.6),
                uniform(-0.8, 0.8),
                uniform(-1.0, 1.0),
            ],
            System::TwoPendulums => vec![
                uniform(-PI, PI),
                uniform(-PI, PI),
                uniform(-2.0, 2.0),
                uniform(-2.0, 2.0),
            ],
            System::Arm => vec![
                uniform(-0.9, 0.9),
                uniform(-1.5, 1.5),
                uniform(-0.7, 0.7),
                uniform(-1.8, 1.8),
            ],
            System::PendulumAndSpring => vec![
                uniform(-PI, PI),
                uniform(-0.8, 0.8),
                uniform(-2.0, 2.0),
                uniform(-1.0, 1.0),
            ],
            System::Lorenz => {
                let start = vec![
                    uniform(-10.0, 10.0),
                    uniform(-10.0, 10.0),
                    uniform(15.0, 35.0),
                ];
                // Onto the attractor.
                (0..60).fold(start, |state, _| self.advanced(state))
            }
        }
    }

    /// How fast a state changes.
    fn slope(self, s: &[f64]) -> Vec<f64> {
        match self {
            System::Pendulum => vec![s[1], -s[0].sin()],
            System::DoubleWell => vec![s[1], s[0] - s[0].powi(3)],
            System::VanDerPol => vec![s[1], (1.0 - s[0] * s[0]) * s[1] - s[0]],
            // In logarithms, around the point of rest.
            System::LotkaVolterra => vec![1.0 - s[1].exp(), s[0].exp() - 1.0],
            System::BouncingBall => vec![s[2], s[3], 0.0, 0.0],
            System::Toda => vec![s[1], 1.0 - s[0].exp()],
            System::Valley => vec![
                s[2],
                s[3],
                -0.6 * s[0] - 0.4 * s[0] * s[1],
                -3.4 * s[1] - 0.2 * s[0] * s[0],
            ],
            System::TwoPendulums => vec![s[2], s[3], -s[0].sin(), -s[1].sin()],
            System::PendulumAndSpring => vec![s[2], s[3], -s[0].sin(), -1.5 * s[1]],
            System::Arm => vec![s[2], s[3], -0.8 * s[0], -2.2 * s[1]],
            System::DoublePendulum => {
                let (difference, [w1, w2]) = (s[0] - s[1], [s[2], s[3]]);
                let (sin, cos) = difference.sin_cos();
                let gravity = 1.0;
                let share = 2.0 - cos * cos;
                let a1 = (-w1 * w1 * sin * cos - w2 * w2 * sin - 2.0 * gravity * s[0].sin()
                    + gravity * s[1].sin() * cos)
                    / share;
                let a2 =
                    (w2 * w2 * sin * cos + 2.0 * w1 * w1 * sin + 2.0 * gravity * s[0].sin() * cos
                        - 2.0 * gravity * s[1].sin())
                        / share;
                vec![w1, w2, a1, a2]
            }
            System::Lorenz => vec![
                10.0 * (s[1] - s[0]),
                s[0] * (28.0 - s[2]) - s[1],
                s[0] * s[1] - 8.0 / 3.0 * s[2],
            ],
        }
    }

    /// The state at the next observation, by the classical Runge–Kutta method.
    fn advanced(self, mut state: Vec<f64>) -> Vec<f64> {
        let step = self.interval() / SUBSTEPS as f64;
        let along = |s: &[f64], d: &[f64], by: f64| -> Vec<f64> {
            s.iter().zip(d).map(|(s, d)| s + by * d).collect()
        };
        for _ in 0..SUBSTEPS {
            let first = self.slope(&state);
            let second = self.slope(&along(&state, &first, step / 2.0));
            let third = self.slope(&along(&state, &second, step / 2.0));
            let fourth = self.slope(&along(&state, &third, step));
            for k in 0..state.len() {
                state[k] += step / 6.0 * (first[k] + 2.0 * (second[k] + third[k]) + fourth[k]);
            }
            if self == System::BouncingBall {
                for k in 0..2 {
                    if state[k].abs() > 1.0 {
                        state[k] = 2.0 * state[k].signum() - state[k];
                        state[k + 2] = -state[k + 2];
                    }
                }
            }
        }
        match self {
            System::Pendulum | System::PendulumAndSpring => state[0] = wrapped(state[0]),
            System::DoublePendulum | System::TwoPendulums => {
                (0..2).for_each(|k| state[k] = wrapped(state[k]))
            }
            _ => {}
        }
        state
    }

    /// The states of one sequence.
    fn trajectory(self, steps: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
        let mut state = self.start(rng);
        let mut states = Vec::with_capacity(steps);
        for _ in 0..steps {
            let next = self.advanced(state.clone());
            states.push(std::mem::replace(&mut state, next));
        }
        states
    }

    /// A picture of a state, white on black, row by row from the top.
    fn draw(self, state: &[f64], size: usize, frame: &mut [u8]) {
        let side = size as f64;
        let (centre, bob) = ((side - 1.0) / 2.0, 0.1 * side);
        // From −1 … 1 to pixels, with room for the bob.
        let place = |x: f64| centre + x.clamp(-1.3, 1.3) * 0.38 * side;
        match self {
            System::Pendulum => {
                let tip = (place(state[0].sin()), place(state[0].cos()));
                rod(size, (centre, centre), tip, 0.035 * side, frame);
                rod(size, tip, tip, bob, frame);
            }
            System::DoublePendulum | System::Arm => {
                let (x, y) = (0.5 * state[0].sin(), 0.5 * state[0].cos());
                let middle = (place(x), place(y));
                let tip = (
                    place(x + 0.5 * state[1].sin()),
                    place(y + 0.5 * state[1].cos()),
                );
                rod(size, (centre, centre), middle, 0.035 * side, frame);
                rod(size, middle, tip, 0.035 * side, frame);
                rod(size, middle, middle, 0.06 * side, frame);
                rod(size, tip, tip, 0.09 * side, frame);
            }
            System::TwoPendulums => {
                for k in 0..2 {
                    let side = if k == 0 { -0.6 } else { 0.6 };
                    let from = (place(side), centre);
                    let tip = (
                        place(side + 0.45 * state[k].sin()),
                        place(0.45 * state[k].cos()),
                    );
                    rod(size, from, tip, 0.035 * size as f64, frame);
                    rod(size, tip, tip, 0.08 * size as f64, frame);
                }
            }
            System::PendulumAndSpring => {
                let from = (place(-0.5), centre);
                let tip = (
                    place(-0.5 + 0.6 * state[0].sin()),
                    place(0.6 * state[0].cos()),
                );
                rod(size, from, tip, 0.035 * side, frame);
                rod(size, tip, tip, 0.08 * side, frame);
                let dot = (place(0.8), place(0.8 * state[1]));
                rod(size, dot, dot, 0.09 * side, frame);
            }
            System::BouncingBall | System::Valley => {
                let at = (place(state[0]), place(state[1]));
                rod(size, at, at, bob, frame);
            }
            System::DoubleWell | System::VanDerPol | System::LotkaVolterra | System::Toda => {
                let widest = match self {
                    System::DoubleWell => 2.0,
                    System::VanDerPol => 2.6,
                    _ => 2.6,
                };
                let at = (place(state[0] / widest), centre);
                rod(size, at, at, bob, frame);
            }
            System::Lorenz => {}
        }
    }
}

/// Sequences of a system: what is shown, and the states behind it.
pub struct Recorded {
    /// Observations in a sequence.
    pub steps: usize,
    /// Numbers in an observation.
    pub width: usize,
    /// The measured variables, each for every step of every sequence.
    pub truth: Vec<Vec<f64>>,
    shown: Shown,
}

enum Shown {
    Pixels(Vec<u8>),
    Numbers(Vec<f32>),
}

/// The most numbers that sequences may hold.
const LARGEST: usize = 1 << 34;

impl Recorded {
    /// So many sequences of a system; `stream` tells training from test sequences, which are read alike.
    pub fn new(
        system: System,
        size: usize,
        count: usize,
        steps: usize,
        (seed, stream): (u64, u64),
    ) -> Result<Self, LabError> {
        let sizes = [count, steps, size, size];
        let numbers = sizes.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
        if size < 8 || count == 0 || steps < 3 || numbers.is_none_or(|n| n > LARGEST) {
            return Err(LabError::Invalid(format!(
                "{count} sequences of {steps} steps with {size} pixels on a side: there must be at least one, 3 steps and 8 pixels, \
                 and they must fit into memory"
            )));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let states: Vec<Vec<f64>> = (0..count)
            .flat_map(|_| system.trajectory(steps, &mut rng))
            .collect();
        let mut truth = vec![Vec::with_capacity(states.len()); system.variables().len()];
        for state in &states {
            let measured = system.measured(state);
            truth
                .iter_mut()
                .zip(measured)
                .for_each(|(to, x)| to.push(x));
        }
        let (width, shown) = if system.is_video() {
            let pixels = size * size;
            let mut frames = vec![0; states.len() * pixels];
            for (frame, state) in frames.chunks_exact_mut(pixels).zip(&states) {
                system.draw(state, size, frame);
            }
            (pixels, Shown::Pixels(frames))
        } else {
            let readings = Readings::new(&mut ChaCha8Rng::seed_from_u64(
                seed.wrapping_add(READING_SEED),
            ));
            let numbers = states
                .iter()
                .flat_map(|s| readings.of(s, &mut rng))
                .collect();
            (READINGS, Shown::Numbers(numbers))
        };
        Ok(Recorded {
            steps,
            width,
            truth,
            shown,
        })
    }

    /// As the observations `x` of a chain.
    pub fn dataset(&self) -> Result<Dataset, LabError> {
        let data = Dataset::new();
        Ok(match &self.shown {
            Shown::Pixels(frames) => {
                data.observe_sequence_bytes("x", self.steps, self.width, frames.clone(), None)?
            }
            Shown::Numbers(numbers) => {
                data.observe_sequence("x", self.steps, self.width, numbers.clone())?
            }
        })
    }
}

impl Sequences for Recorded {
    fn count(&self) -> usize {
        self.truth[0].len() / self.steps
    }

    fn steps(&self) -> usize {
        self.steps
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, sequence: usize, step: usize, to: &mut [f32]) {
        let start = (sequence * self.steps + step) * self.width;
        match &self.shown {
            Shown::Pixels(frames) => {
                let pixels = &frames[start..start + self.width];
                to.iter_mut()
                    .zip(pixels)
                    .for_each(|(to, &p)| *to = f32::from(p) / 255.0);
            }
            Shown::Numbers(numbers) => to.copy_from_slice(&numbers[start..start + self.width]),
        }
    }
}

/// Noisy readings of Lorenz's attractor: mixtures of its standardised coordinates, the same in every sequence, squashed.
struct Readings {
    mixtures: Vec<[f64; 4]>,
}

impl Readings {
    /// Those of a seed.
    fn new(rng: &mut ChaCha8Rng) -> Self {
        let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
        let mixtures = (0..READINGS)
            .map(|_| {
                std::array::from_fn(|k| {
                    if k < 3 {
                        normal(rng)
                    } else {
                        0.5 * normal(rng)
                    }
                })
            })
            .collect();
        Readings { mixtures }
    }

    /// The readings of a state.
    fn of(&self, state: &[f64], rng: &mut ChaCha8Rng) -> Vec<f32> {
        let s = [state[0] / 8.0, state[1] / 9.0, (state[2] - 23.5) / 8.5];
        self.mixtures
            .iter()
            .map(|m| {
                let noise: f64 = StandardNormal.sample(rng);
                let mixed = m[0] * s[0] + m[1] * s[1] + m[2] * s[2] + m[3];
                (mixed.tanh() + READING_NOISE * noise) as f32
            })
            .collect()
    }
}

/// An angle between −π and π.
fn wrapped(angle: f64) -> f64 {
    (angle + PI).rem_euclid(2.0 * PI) - PI
}

/// Draws a line of some thickness with round ends, each pixel as bright as the part of it that is covered.
fn rod(size: usize, from: (f64, f64), to: (f64, f64), radius: f64, frame: &mut [u8]) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx * dx + dy * dy;
    let span = |a: f64, b: f64| {
        let last = size as f64 - 1.0;
        let (low, high) = (a.min(b) - radius - 1.0, a.max(b) + radius + 1.0);
        (low.floor().clamp(0.0, last) as usize)..=(high.ceil().clamp(0.0, last) as usize)
    };
    for y in span(from.1, to.1) {
        for x in span(from.0, to.0) {
            let (px, py) = (x as f64 - from.0, y as f64 - from.1);
            let along = match length > 0.0 {
                true => ((px * dx + py * dy) / length).clamp(0.0, 1.0),
                false => 0.0,
            };
            let distance = (px - along * dx).hypot(py - along * dy);
            let covered = (255.0 * (radius - distance + 0.5).clamp(0.0, 1.0)).round() as u8;
            let pixel = &mut frame[y * size + x];
            *pixel = (*pixel).max(covered);
        }
    }
}

#[cfg(test)]
mod tests;
