//! Videos of a swinging pendulum: θ' = ω, ω' = −sin θ, seen as small grey pictures (paper, "Nonlinear Dynamical Systems").
//!
//! The angle is zero when the pendulum hangs down. States are integrated by the classical Runge–Kutta method of fourth
//! order with the paper's step of 0.001, whose energy stays within 1e-9 over a video; every hundredth state is a frame.

use crate::baselines::Sequences;
use crate::error::LabError;
use ramp::data::Dataset;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::f64::consts::{PI, TAU};

/// The integrator's step.
const DT: f64 = 0.001;
/// Integrator steps from frame to frame.
const STEPS_PER_FRAME: usize = 100;
/// The most bytes of frames.
const LARGEST: usize = 1 << 35;
/// The fastest start.
const FASTEST: f64 = 3.0;

/// The sizes of a set of videos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pendulum {
    /// Pixels on a side of a frame.
    pub size: usize,
    /// Videos.
    pub sequences: usize,
    /// Frames in a video.
    pub steps: usize,
}

/// Videos, and the states they show.
#[derive(Clone, Debug)]
pub struct Videos {
    /// Their sizes.
    pub sizes: Pendulum,
    /// The angle of every frame of every video, video by video, from −π to π.
    pub theta: Vec<f64>,
    /// The angular velocity likewise.
    pub omega: Vec<f64>,
    /// The pixels of every frame of every video, video by video: white on black.
    frames: Vec<u8>,
}

impl Pendulum {
    /// Videos of pendulums that start anywhere, at any speed up to 3; `stream` tells training videos from test videos.
    pub fn videos(&self, seed: u64, stream: u64) -> Result<Videos, LabError> {
        if self.size < 8 || self.sequences == 0 || self.steps == 0 {
            return Err(LabError::Invalid(format!(
                "{} videos of {} frames with {} pixels on a side: there must be at least one of each, and 8 pixels",
                self.sequences, self.steps, self.size
            )));
        }
        let sizes = [self.sequences, self.steps, self.size, self.size];
        let bytes = sizes.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
        if bytes.is_none_or(|bytes| bytes > LARGEST) {
            return Err(LabError::Invalid(format!(
                "{} videos of {} frames with {} pixels on a side do not fit into memory; ask for fewer or smaller ones",
                self.sequences, self.steps, self.size
            )));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let starts: Vec<[f64; 2]> = (0..self.sequences)
            .map(|_| {
                [
                    rng.random_range(-PI..PI),
                    rng.random_range(-FASTEST..FASTEST),
                ]
            })
            .collect();
        let trajectories: Vec<Vec<[f64; 2]>> = starts
            .par_iter()
            .map(|&start| trajectory(start, self.steps))
            .collect();
        let of = |k: usize| {
            trajectories
                .iter()
                .flatten()
                .map(|state| state[k])
                .collect()
        };
        let pixels = self.size * self.size;
        let mut frames = vec![0; self.sequences * self.steps * pixels];
        frames
            .par_chunks_exact_mut(self.steps * pixels)
            .zip(&trajectories)
            .for_each(|(video, states)| {
                for (frame, state) in video.chunks_exact_mut(pixels).zip(states) {
                    draw(state[0], self.size, frame);
                }
            });
        Ok(Videos {
            sizes: *self,
            theta: of(0),
            omega: of(1),
            frames,
        })
    }
}

impl Videos {
    /// The frames as the series `x` of a chain.
    pub fn into_dataset(self) -> Result<Dataset, LabError> {
        let Pendulum { size, steps, .. } = self.sizes;
        let data = Dataset::new();
        Ok(data.observe_sequence_bytes("x", steps, size * size, self.frames, None)?)
    }

    /// The first so many videos.
    pub fn first(&self, count: usize) -> Videos {
        let count = count.min(self.sizes.sequences);
        let (pixels, steps) = (self.sizes.size * self.sizes.size, self.sizes.steps);
        Videos {
            sizes: Pendulum {
                sequences: count,
                ..self.sizes
            },
            theta: self.theta[..count * steps].to_vec(),
            omega: self.omega[..count * steps].to_vec(),
            frames: self.frames[..count * steps * pixels].to_vec(),
        }
    }

    /// The pixels of one frame, row by row from the top.
    pub fn frame(&self, video: usize, step: usize) -> &[u8] {
        let pixels = self.sizes.size * self.sizes.size;
        &self.frames[(video * self.sizes.steps + step) * pixels..][..pixels]
    }

    /// cos θ, sin θ and ω of every frame, video by video.
    pub fn targets(&self) -> [Vec<f64>; 3] {
        [
            self.theta.iter().map(|x| x.cos()).collect(),
            self.theta.iter().map(|x| x.sin()).collect(),
            self.omega.clone(),
        ]
    }
}

/// Pixels from zero to one.
impl Sequences for Videos {
    fn count(&self) -> usize {
        self.sizes.sequences
    }

    fn steps(&self) -> usize {
        self.sizes.steps
    }

    fn width(&self) -> usize {
        self.sizes.size * self.sizes.size
    }

    fn read(&self, sequence: usize, step: usize, to: &mut [f32]) {
        to.fill(0.0);
        let pieces = self.frame(sequence, step).chunks(16);
        for (to, pixels) in to.chunks_mut(16).zip(pieces) {
            // Nearly all of a frame is background.
            if pixels.iter().fold(0, |any, pixel| any | pixel) == 0 {
                continue;
            }
            for (to, &pixel) in to.iter_mut().zip(pixels) {
                *to = f32::from(pixel) / 255.0;
            }
        }
    }
}

/// An angle between −π and π.
pub fn wrapped(angle: f64) -> f64 {
    (angle + PI).rem_euclid(TAU) - PI
}

/// A picture of a pendulum at an angle, row by row from the top.
pub fn picture(theta: f64, size: usize) -> Vec<u8> {
    let mut frame = vec![0; size * size];
    draw(theta, size, &mut frame);
    frame
}

/// The states of a pendulum at every frame, angles wrapped.
fn trajectory(start: [f64; 2], frames: usize) -> Vec<[f64; 2]> {
    let slope = |[theta, omega]: [f64; 2]| [omega, -theta.sin()];
    let along = |[a, b]: [f64; 2], [da, db]: [f64; 2], by: f64| [a + by * da, b + by * db];
    let mut state = start;
    let mut states = Vec::with_capacity(frames);
    for _ in 0..frames {
        states.push([wrapped(state[0]), state[1]]);
        for _ in 0..STEPS_PER_FRAME {
            let first = slope(state);
            let second = slope(along(state, first, DT / 2.0));
            let third = slope(along(state, second, DT / 2.0));
            let fourth = slope(along(state, third, DT));
            let mean = |k: usize| (first[k] + 2.0 * (second[k] + third[k]) + fourth[k]) / 6.0;
            state = along(state, [mean(0), mean(1)], DT);
        }
    }
    states
}

/// Draws a rod from the centre and a bob at its end: a pixel is as bright as the part of it that is covered, to within the
/// approximation of edges by straight lines.
fn draw(theta: f64, size: usize, frame: &mut [u8]) {
    let side = size as f64;
    let (centre, length) = ((side - 1.0) / 2.0, 0.38 * side);
    let (rod, bob) = (0.035 * side, 0.1 * side);
    let (dx, dy) = (length * theta.sin(), length * theta.cos());
    let span = |d: f64| {
        let (low, high) = (d.min(0.0) - bob - 1.0, d.max(0.0) + bob + 1.0);
        let last = side - 1.0;
        ((centre + low).floor().clamp(0.0, last) as usize)
            ..=((centre + high).ceil().clamp(0.0, last) as usize)
    };
    for y in span(dy) {
        for x in span(dx) {
            let (px, py) = (x as f64 - centre, y as f64 - centre);
            let along = ((px * dx + py * dy) / (length * length)).clamp(0.0, 1.0);
            let to_rod = (px - along * dx).hypot(py - along * dy);
            let to_bob = (px - dx).hypot(py - dy);
            let covered = (rod - to_rod).max(bob - to_bob) + 0.5;
            frame[y * size + x] = (255.0 * covered.clamp(0.0, 1.0)).round() as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_stays_for_the_length_of_a_video() {
        let energy = |[theta, omega]: [f64; 2]| omega * omega / 2.0 - theta.cos();
        for start in [[0.1, 0.0], [3.1, 0.0], [-2.0, 3.0], [1.0, -2.9], [PI, 1e-3]] {
            let states = trajectory(start, 100);
            let drift = states
                .iter()
                .map(|&s| (energy(s) - energy(start)).abs())
                .fold(0.0, f64::max);
            assert!(drift < 1e-9, "{start:?}: {drift}");
            assert!(states.iter().all(|s| (-PI..=PI).contains(&s[0])));
        }
    }

    #[test]
    fn small_swings_are_those_of_a_spring() {
        // θ(t) = θ0 cos t up to θ0³.
        let states = trajectory([1e-3, 0.0], 100);
        for (frame, state) in states.iter().enumerate() {
            let t = frame as f64 * DT * STEPS_PER_FRAME as f64;
            assert!((state[0] - 1e-3 * t.cos()).abs() < 1e-8, "frame {frame}");
        }
    }

    #[test]
    fn a_frame_shows_its_angle() {
        for size in [16, 32, 128] {
            let videos = Pendulum {
                size,
                sequences: 20,
                steps: 3,
            }
            .videos(1, 0)
            .unwrap();
            for video in 0..20 {
                for step in 0..3 {
                    let frame = videos.frame(video, step);
                    let centre = (size as f64 - 1.0) / 2.0;
                    let (mut x, mut y) = (0.0, 0.0);
                    for (i, &v) in frame.iter().enumerate() {
                        x += f64::from(v) * ((i % size) as f64 - centre);
                        y += f64::from(v) * ((i / size) as f64 - centre);
                    }
                    let off = wrapped(x.atan2(y) - videos.theta[video * 3 + step]);
                    assert!(off.abs() < 0.02, "{size}: off by {off}");
                    // Most of a picture is background, and nothing is cut off at its edge.
                    let dark = frame.iter().filter(|&&v| v == 0).count();
                    assert!(dark as f64 > 0.85 * frame.len() as f64, "{size}: {dark}");
                    assert_eq!(frame[0], 0);
                }
            }
        }
    }

    #[test]
    fn a_picture_is_the_frame_of_its_angle() {
        let sizes = Pendulum {
            size: 20,
            sequences: 3,
            steps: 4,
        };
        let videos = sizes.videos(5, 0).unwrap();
        assert_eq!(videos.frame(2, 3), picture(videos.theta[11], 20));
        let first = videos.first(2);
        assert_eq!(first.frame(1, 3), videos.frame(1, 3));
        assert_eq!(first.theta[..], videos.theta[..8]);
        assert_eq!(first.into_dataset().unwrap().rows(), 2);
    }

    #[test]
    fn other_streams_are_other_videos() {
        let sizes = Pendulum {
            size: 8,
            sequences: 5,
            steps: 2,
        };
        let [a, b, c] = [(1, 0), (1, 0), (1, 1)].map(|(s, t)| sizes.videos(s, t).unwrap().theta);
        assert_eq!(a, b);
        assert_ne!(a, c);
    }
}
