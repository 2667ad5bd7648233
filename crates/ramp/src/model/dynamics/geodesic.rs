//! Coordinates of the manifold that observations lie on: distances along it, laid out in a few dimensions.
//!
//! A dot that moves along a line traces a curve that bends through as many dimensions as a picture has places for it, so that no
//! linear component is its place. Distances to near neighbours are right all the same; the shortest ways over them are distances along the manifold,
//! which scaling turns into coordinates ([`super::isomap`]). Everything is found on some landmarks; a kernel regression then reads the
//! coordinates off any row.
//!
//! How far apart two observations look is an accident of how they are shown: of an arm of two rods whose tip is bright and whose elbow is not,
//! pictures with the elbow on either side are nearly alike, and a plane has them one upon the other. Distances in steps that sequences take have this fault hardly at
//! all. They are used twice: first for at least eight coordinates, which are smooth and have little noise, then on these for the ones that are asked for. What is a
//! circle to the eye may be an oval in steps, so neither metric is always better.

use super::isomap::{NEIGHBOURS, isomap};
use super::linalg::{cholesky, solve};
use super::rates::rates;
use super::slow::{dot, squared};
use super::step_distance::step_distances;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Rows that coordinates are found on, at most; and at least.
const LANDMARKS: usize = 1000;
const FEWEST: usize = 30;
/// A coordinate with less than this share of the variance of the first is bending, not extent.
const LEAST: f64 = 0.02;
/// The kernel that reads coordinates is as wide as this many times the distance to the neighbour of this rank; the penalty is small, as geodesics have little noise.
const WIDTH: f64 = 2.0;
const RANK: usize = 2 * NEIGHBOURS;
const PENALTY: f64 = 1e-2;

/// Coordinates of the first of two layers in steps, at least.
const FIRST_LAYER: usize = 8;
/// That many candidates beyond the coordinates that are asked for, as harmonics of circles among them are dropped; and the share of the variance of the first that each has at
/// least: a short line beside a circle has less than its second harmonic.
const CANDIDATES: usize = 6;
const LEAST_CANDIDATE: f64 = 0.01;
/// A coordinate that those before it explain as well as this is a function of them. Harmonics of circles have an R² of 0.94 and more, the fourth coordinate of two circles, whose
/// sign the other three leave open, at most 0.84.
const REDUNDANT: f64 = 0.9;

/// How far apart two rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// As far as they look.
    AsShown,
    /// As many steps as sequences take there ([`super::step_distance`]).
    InSteps,
}

/// A map from rows to coordinates of the manifold that they lie on, the longest first.
#[derive(Clone, Debug)]
pub(crate) struct Geodesic {
    /// One after the other.
    layers: Vec<Readout>,
}

impl Geodesic {
    /// Up to `dims` coordinates of some rows, whose sequences and steps are given; `None` where there are too few of them, all are the same or, in steps, too little moves.
    pub fn of(
        rows: &[Vec<f64>],
        places: &[(usize, usize)],
        metric: Metric,
        dims: usize,
        rng: &mut ChaCha8Rng,
    ) -> Option<Self> {
        if rows.len() < FEWEST || rows[0].is_empty() {
            return None;
        }
        let chosen = sample(rng, rows.len(), rows.len().min(LANDMARKS)).into_vec();
        let of_chosen = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
            chosen.iter().map(|&i| rows[i].clone()).collect()
        };
        let layers = match metric {
            Metric::AsShown => {
                let landmarks = of_chosen(rows);
                let apart = distances(&landmarks);
                let coordinates = isomap(landmarks.len(), &apart, dims, LEAST, rng);
                vec![Readout::of(landmarks, coordinates)?]
            }
            Metric::InSteps => {
                let mut layer = |rows: &[Vec<f64>], dims, least| {
                    let landmarks = of_chosen(rows);
                    let steps = step_distances(&landmarks, rows, &rates(places, rows, 1))?;
                    let coordinates = isomap(landmarks.len(), &steps, dims, least, rng);
                    Some((landmarks, coordinates))
                };
                let (landmarks, coordinates) = layer(rows, dims.max(FIRST_LAYER), 0.0)?;
                let unfolded = Readout::of(landmarks, coordinates)?;
                let rows: Vec<Vec<f64>> = rows.par_iter().map(|row| unfolded.at(row)).collect();
                let (landmarks, coordinates) = layer(&rows, dims + CANDIDATES, LEAST_CANDIDATE)?;
                let coordinates = independent(coordinates, dims);
                vec![unfolded, Readout::of(landmarks, coordinates)?]
            }
        };
        Some(Geodesic { layers })
    }

    /// How many coordinates there are.
    #[cfg(test)]
    fn dims(&self) -> usize {
        self.layers.last().map_or(0, |last| last.weights.len())
    }

    /// The coordinates of a row.
    pub fn at(&self, row: &[f64]) -> Vec<f64> {
        let through = |row: Vec<f64>, layer: &Readout| layer.at(&row);
        self.layers.iter().fold(row.to_vec(), through)
    }
}

/// The first coordinates of which none is a smooth function of those before it: a circle has harmonics, which would come before a short line beside it.
fn independent(coordinates: Vec<Vec<f64>>, dims: usize) -> Vec<Vec<f64>> {
    let mut kept: Vec<Vec<f64>> = vec![];
    for coordinate in coordinates {
        if kept.len() == dims {
            break;
        }
        if r2_from(&kept, &coordinate).is_none_or(|r2| r2 < REDUNDANT) {
            kept.push(coordinate);
        }
    }
    kept
}

/// R² of a kernel regression of a coordinate on others, judged on every other landmark; `None` where there are no others, or all are the same.
fn r2_from(others: &[Vec<f64>], coordinate: &[f64]) -> Option<f64> {
    let at = |i: usize| -> Vec<f64> { others.iter().map(|c| c[i]).collect() };
    let learned: Vec<Vec<f64>> = (0..coordinate.len()).step_by(2).map(at).collect();
    let targets = coordinate.iter().copied().step_by(2).collect();
    let told = Readout::of(learned, vec![targets])?;
    let judged: Vec<usize> = (1..coordinate.len()).step_by(2).collect();
    let mean = judged.iter().map(|&i| coordinate[i]).sum::<f64>() / judged.len() as f64;
    let (missed, all) = judged.iter().fold((0.0, 0.0), |(missed, all), &i| {
        let y = coordinate[i];
        let off = y - told.at(&at(i))[0];
        (missed + off * off, all + (y - mean).powi(2))
    });
    Some(1.0 - missed / all)
}

/// A kernel regression of coordinates on rows.
#[derive(Clone, Debug)]
struct Readout {
    landmarks: Vec<Vec<f64>>,
    /// For each coordinate, a weight for every landmark.
    weights: Vec<Vec<f64>>,
    /// The kernel's exponent per squared distance.
    narrow: f64,
}

impl Readout {
    /// From landmarks and the coordinates that they have; `None` where there are none, or all landmarks are the same.
    fn of(landmarks: Vec<Vec<f64>>, coordinates: Vec<Vec<f64>>) -> Option<Self> {
        let n = landmarks.len();
        let apart = distances(&landmarks);
        // How far the neighbour of a rank is, usually.
        let mut usual: Vec<f64> = (0..n)
            .map(|i| {
                let mut own = apart[i * n..][..n].to_vec();
                let (_, far, _) = own.select_nth_unstable_by(RANK.min(n - 1), f64::total_cmp);
                *far
            })
            .collect();
        let (_, usual, _) = usual.select_nth_unstable_by(n / 2, f64::total_cmp);
        let narrow = 0.5 / (WIDTH * *usual).powi(2);
        if coordinates.is_empty() || !narrow.is_finite() {
            return None;
        }
        let mut gram: Vec<f64> = apart
            .par_iter()
            .map(|far| (-narrow * far * far).exp())
            .collect();
        (0..n).for_each(|i| gram[i * n + i] += PENALTY);
        let factor = cholesky(n, &gram)?;
        let weights = coordinates
            .into_par_iter()
            .map(|mut y| {
                solve(n, &factor, &mut y);
                y
            })
            .collect();
        Some(Readout {
            landmarks,
            weights,
            narrow,
        })
    }

    /// The coordinates of a row.
    fn at(&self, row: &[f64]) -> Vec<f64> {
        let near = |landmark: &Vec<f64>| (-self.narrow * squared(landmark, row)).exp();
        let near: Vec<f64> = self.landmarks.iter().map(near).collect();
        self.weights.iter().map(|w| dot(w, &near)).collect()
    }
}

/// How far every two points are apart.
fn distances(points: &[Vec<f64>]) -> Vec<f64> {
    let n = points.len();
    (0..n * n)
        .into_par_iter()
        .map(|k| squared(&points[k / n], &points[k % n]).sqrt())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use std::f64::consts::TAU;

    /// How much of one list of numbers a line through another explains.
    fn explained(x: &[f64], y: &[f64]) -> f64 {
        let n = x.len() as f64;
        let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let sum = |a: &[f64], ma: f64, b: &[f64], mb: f64| -> f64 {
            a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum()
        };
        sum(x, mx, y, my).powi(2) / (sum(x, mx, x, mx) * sum(y, my, y, my))
    }

    /// Places of rows that do not follow each other.
    fn apart(rows: usize) -> Vec<(usize, usize)> {
        (0..rows).map(|i| (i, 0)).collect()
    }

    /// The squared distance of angles from those of the nearest other point in two coordinates, where that of points at random is one.
    fn missed(points: &[Vec<f64>], angles: &[[f64; 2]]) -> [f64; 2] {
        let apart = |a: &[f64; 2], b: &[f64; 2], k: usize| (a[k] - b[k]).powi(2);
        let (mut near, mut random) = ([0.0; 2], [0.0; 2]);
        for (i, own) in points.iter().enumerate() {
            let far = |j: usize| squared(&own[..2], &points[j][..2]);
            let others = (0..points.len()).filter(|&j| j != i);
            let nearest = others.min_by(|&a, &b| far(a).total_cmp(&far(b))).unwrap();
            for k in 0..2 {
                near[k] += apart(&angles[i], &angles[nearest], k);
                random[k] += apart(
                    &angles[i],
                    &angles[(i + points.len() / 2) % points.len()],
                    k,
                );
            }
        }
        [near[0] / random[0], near[1] / random[1]]
    }

    /// Harmonics of a circle come before a short line beside it, and are left out; another circle is not.
    #[test]
    fn what_others_tell_is_left_out() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let columns: Vec<Vec<f64>> = {
            let rows = (0..600).map(|_| {
                let mut uniform = |low: f64, high: f64| rng.random_range(low..high);
                let [a, b] = [uniform(0.0, TAU), uniform(0.0, TAU)];
                let line = uniform(-2.0, 2.0);
                [
                    9.0 * a.cos(),
                    9.0 * a.sin(),
                    3.0 * (3.0 * a).cos(),
                    3.0 * (3.0 * a).sin(),
                    line,
                    b.cos(),
                    b.sin(),
                ]
            });
            let rows: Vec<[f64; 7]> = rows.collect();
            (0..7)
                .map(|k| rows.iter().map(|r| r[k]).collect())
                .collect()
        };
        let kept = independent(columns.clone(), 5);
        let expected: Vec<Vec<f64>> = [0, 1, 4, 5, 6].map(|k| columns[k].clone()).to_vec();
        assert!(kept == expected);
        assert!(independent(columns, 3) == expected[..3]);
    }

    /// An arm of two rods of which hardly more than the tip is seen: where the elbow is on the other side it looks nearly the same.
    #[test]
    fn what_is_hardly_seen_counts_by_how_far_it_goes_in_a_step() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut rows, mut angles, mut places) = (vec![], vec![], vec![]);
        for sequence in 0..60 {
            let mut uniform = |low: f64, high: f64| rng.random_range(low..high);
            let size = [uniform(0.1, 1.2), uniform(0.1, 2.0)];
            let phase = [uniform(0.0, TAU), uniform(0.0, TAU)];
            for step in 0..25 {
                let angle = [0.09, 0.15].map(|pace| pace * f64::from(step));
                let at = [0, 1].map(|k| size[k] * (angle[k] + phase[k]).sin());
                let [elbow, tip] = at.map(|a: f64| [a.sin(), a.cos()]);
                rows.push(vec![
                    0.1 * elbow[0],
                    0.1 * elbow[1],
                    elbow[0] + tip[0],
                    elbow[1] + tip[1],
                ]);
                angles.push(at);
                places.push((sequence, step as usize));
            }
        }
        let mut told = |metric: Metric| {
            let found = Geodesic::of(&rows, &places, metric, 2, &mut rng).unwrap();
            let points: Vec<Vec<f64>> = rows.iter().map(|row| found.at(row)).collect();
            missed(&points, &angles)
        };
        let (in_steps, as_shown) = (told(Metric::InSteps), told(Metric::AsShown));
        assert!(in_steps.iter().all(|miss| *miss < 0.01), "{in_steps:?}");
        assert!(as_shown.iter().any(|miss| *miss > 0.1), "{as_shown:?}");
    }

    /// A row of pixels with a dot: dots that share no pixel are all equally far apart.
    fn picture(place: f64) -> Vec<f64> {
        (0..30)
            .map(|pixel| (-(f64::from(pixel) - 3.0 - 24.0 * place).powi(2)).exp())
            .collect()
    }

    #[test]
    fn the_place_of_a_dot_is_one_coordinate_though_no_component_tells_it() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut places: Vec<f64> = (0..700).map(|_| rng.random_range(0.0..1.0)).collect();
        // Most of the time it is at one end: components then tell that end from the rest.
        places.iter_mut().for_each(|p| *p = p.powi(2));
        let rows: Vec<Vec<f64>> = places.iter().map(|&p| picture(p)).collect();
        let found = Geodesic::of(&rows[..500], &apart(500), Metric::AsShown, 3, &mut rng).unwrap();
        assert_eq!(found.dims(), 1);
        let told: Vec<f64> = rows[500..].iter().map(|row| found.at(row)[0]).collect();
        assert!(explained(&told, &places[500..]) > 0.99);
    }

    #[test]
    fn a_circle_has_two_coordinates() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let turn = |i: usize| TAU * i as f64 / 300.0;
        let rows: Vec<Vec<f64>> = (0..300)
            .map(|i| vec![turn(i).cos(), turn(i).sin()])
            .collect();
        let found = Geodesic::of(&rows, &apart(300), Metric::AsShown, 4, &mut rng).unwrap();
        assert!(found.dims() >= 2);
        let along = |k: usize| -> Vec<f64> { rows.iter().map(|row| found.at(row)[k]).collect() };
        // In the first two, all are as far from the centre.
        let distances = along(0).into_iter().zip(along(1)).map(|(a, b)| a.hypot(b));
        let (least, most) =
            distances.fold((f64::INFINITY, 0.0_f64), |(l, m), d| (l.min(d), m.max(d)));
        assert!(least > 0.95 * most, "{least} {most}");
    }

    #[test]
    fn islands_are_joined_and_what_has_no_extent_has_no_coordinates() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let place = |i: usize| i as f64 / 100.0 + if i < 100 { 0.0 } else { 7.0 };
        let rows: Vec<Vec<f64>> = (0..200).map(|i| vec![place(i), 0.0]).collect();
        let found = Geodesic::of(&rows, &apart(200), Metric::AsShown, 2, &mut rng).unwrap();
        assert_eq!(found.dims(), 1);
        let told: Vec<f64> = rows.iter().map(|row| found.at(row)[0]).collect();
        let truth: Vec<f64> = (0..200).map(place).collect();
        assert!(explained(&told, &truth) > 0.99);
        // Too few, all alike, and none that vary at all.
        let still = vec![vec![1.0, 2.0]; 100];
        let together: Vec<(usize, usize)> = (0..100).map(|i| (i / 50, i % 50)).collect();
        for metric in [Metric::AsShown, Metric::InSteps] {
            let mut of = |rows: &[Vec<f64>]| {
                Geodesic::of(rows, &together[..rows.len()], metric, 2, &mut rng)
            };
            assert!(of(&rows[..10]).is_none());
            assert!(of(&still).is_none());
            assert!(of(&vec![vec![]; 100]).is_none());
        }
    }
}
