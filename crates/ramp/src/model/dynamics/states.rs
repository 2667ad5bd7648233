//! States estimated from what a chain's observations show around every step, for its messages to be pretrained on.
//!
//! An estimate lays coordinates of the manifold that observations lie on ([`super::geodesic`]), and how fast they change, into the
//! coordinates of a latent. *Lines*: some coordinates are places, the others rates of change of the first of them. A *ring* holds two
//! coordinates as an angle, and how fast it turns as the distance from the origin: a place on a circle and its velocity in a plane.
//! Which of them a system has is not known: all that fit into a latent are compared by what they tell of the steps around them.

use super::linalg::{eigen, product};
use super::observed::Shown;
use super::planes::circle_planes;
use super::rates::rates;
use super::slow::dot;
use crate::kernel::normal::normal_quantile;
use rand_chacha::ChaCha8Rng;

/// Steps before and after the present one that a rate of change is found from, by a parabola.
const REACH: usize = 3;
/// The share of the mean squared distance from the origin that is added to it where an angle is hardly defined.
const CENTRE: f64 = 0.05;

/// The share of the plane around the origin, by the prior, that a ring leaves free: where distances are small there is no angle.
const HOLE: f64 = 0.2;

/// How an estimate lies in a latent's coordinates: rings first, then places, then rates of change of the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Pairs of numbers, each a place on a circle with its velocity.
    pub rings: usize,
    /// Numbers that are places on lines.
    pub places: usize,
}

impl Layout {
    /// All that so many numbers can hold of so many coordinates: from as many places as rates of change to places alone; beside rings, the former.
    fn all(dims: usize, coordinates: usize) -> Vec<Self> {
        let lines = (dims.div_ceil(2)..=dims).map(|places| Layout { rings: 0, places });
        let rings = (1..=dims / 2).map(|rings| Layout {
            rings,
            places: (dims - 2 * rings).div_ceil(2),
        });
        let fits = |layout: &Layout| 2 * layout.rings + layout.places <= coordinates;
        lines.chain(rings).filter(fits).collect()
    }
}

/// A state at every place of some sequences where enough is shown around it.
#[derive(Clone, Debug)]
pub(crate) struct StateEstimate {
    pub layout: Layout,
    /// About standard normal.
    pub points: Vec<Option<Vec<f64>>>,
    /// What a single observation shows of it: axes in the manifold's coordinates, with the mean and the spread of what lies along each.
    pub shown: Vec<(Vec<f64>, f64, f64)>,
    /// How far each of these goes in a step, where its spread is one.
    pub paces: Vec<f64>,
}

impl StateEstimate {
    /// What coordinates of the manifold show of it: places on circles, then on lines, each of unit variance.
    pub fn shown_at(&self, coordinates: &[f64]) -> Vec<f64> {
        let along =
            |(axis, mean, spread): &(Vec<f64>, f64, f64)| (dot(axis, coordinates) - mean) / spread;
        self.shown.iter().map(along).collect()
    }
}

/// All estimates of so many numbers from the coordinates of every place; none where sequences are too short or show too little.
pub(crate) fn state_estimates(
    shown: &Shown,
    coordinates: &[Vec<f64>],
    dims: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<StateEstimate> {
    let Some(own) = coordinates.first().map(Vec::len) else {
        return vec![];
    };
    let mut estimates = vec![];
    for layout in Layout::all(dims, own) {
        let Layout { rings, places } = layout;
        let mut axes = match rings {
            0 => axes_of(own, places),
            _ => circle_planes(coordinates, 2 * rings + places, rings, rng),
        };
        axes.iter_mut().for_each(|axis| axis.resize(own, 0.0));
        let mut turned: Vec<Vec<f64>> = coordinates
            .iter()
            .map(|x| axes.iter().map(|axis| dot(axis, x)).collect())
            .collect();
        if rings == 0 {
            align(&mut turned, &shown.components, dims.div_ceil(2));
        }
        let rates = rates(&shown.places, &turned, REACH);
        // Where enough is shown: the coordinates and how they change.
        let seen: Vec<(usize, &[f64], &[f64])> = rates
            .iter()
            .enumerate()
            .filter_map(|(i, rate)| Some((i, &turned[i][..], &rate.as_ref()?[..])))
            .collect();
        if seen.len() < 2 {
            return vec![];
        }
        let column = |of: &dyn Fn(&[f64], &[f64]) -> f64| -> Vec<f64> {
            seen.iter().map(|(_, x, v)| of(x, v)).collect()
        };
        let circles = (0..rings).flat_map(|r| ring(&seen, 2 * r));
        let place = (0..places).map(|k| normal_scores(&column(&|x, _| x[2 * rings + k])));
        let rate = (0..dims - 2 * rings - places)
            .map(|k| normal_scores(&column(&|_, v| v[2 * rings + k])));
        let columns: Vec<Vec<f64>> = circles.chain(place).chain(rate).collect();
        let mut points = vec![None; coordinates.len()];
        for (k, (i, ..)) in seen.iter().enumerate() {
            points[*i] = Some(columns.iter().map(|c| c[k]).collect());
        }
        let spread = |k: usize| {
            let n = seen.len() as f64;
            let mean = seen.iter().map(|(_, x, _)| x[k]).sum::<f64>() / n;
            let square = seen.iter().map(|(_, x, _)| (x[k] - mean).powi(2));
            (mean, (square.sum::<f64>() / n).sqrt())
        };
        let shown: Vec<(Vec<f64>, f64, f64)> = (axes.into_iter().enumerate())
            .map(|(k, axis)| {
                let (mean, spread) = spread(k);
                (axis, mean, spread.max(1e-12))
            })
            .collect();
        let pace = |(k, (_, _, spread)): (usize, &(Vec<f64>, f64, f64))| {
            let squares = seen.iter().map(|(_, _, v)| v[k] * v[k]).sum::<f64>();
            (squares / seen.len() as f64).sqrt() / spread
        };
        let paces = shown.iter().enumerate().map(pace).collect();
        estimates.push(StateEstimate {
            layout,
            points,
            shown,
            paces,
        });
    }
    estimates
}

/// The first axes of so many.
fn axes_of(coordinates: usize, count: usize) -> Vec<Vec<f64>> {
    let axis = |i: usize| (0..coordinates).map(move |j| f64::from(u8::from(i == j)));
    (0..count).map(|i| axis(i).collect()).collect()
}

/// Turns the first coordinates, whose signs and directions are arbitrary, so that they lie along the components that networks begin by telling
/// (Procrustes): pretraining that first has to turn a plane over ends in a fold.
fn align(coordinates: &mut [Vec<f64>], components: &[Vec<f64>], count: usize) {
    let (own, others) = match (coordinates.first(), components.first()) {
        (Some(own), Some(others)) => (own.len(), others.len()),
        _ => return,
    };
    let k = count.min(own).min(others);
    let n = coordinates.len() as f64;
    let mut together = vec![0.0; k * k];
    for (x, y) in coordinates.iter().zip(components) {
        for i in 0..k {
            for j in 0..k {
                together[i * k + j] += x[i] * y[j] / n;
            }
        }
    }
    // The orthogonal factor of M is M (MᵀM)^(-1/2).
    let transposed: Vec<f64> = (0..k * k).map(|e| together[e % k * k + e / k]).collect();
    let (values, vectors) = eigen(k, &product(k, &transposed, &together));
    if values.iter().any(|v| !(*v > 1e-12 * values[0] && *v > 0.0)) {
        return;
    }
    let mut root = vec![0.0; k * k];
    for (value, vector) in values.iter().zip(&vectors) {
        for i in 0..k {
            for j in 0..k {
                root[i * k + j] += vector[i] * vector[j] / value.sqrt();
            }
        }
    }
    let turn = product(k, &together, &root);
    for x in coordinates {
        let turned: Vec<f64> = (0..k)
            .map(|j| (0..k).map(|i| x[i] * turn[i * k + j]).sum())
            .collect();
        x[..k].copy_from_slice(&turned);
    }
}

/// Two coordinates as an angle, with the rank of its velocity as distance: Rayleigh's distances, so that with all directions alike the plane is normal
/// but for its hole.
fn ring(seen: &[(usize, &[f64], &[f64])], k: usize) -> [Vec<f64>; 2] {
    let n = seen.len() as f64;
    let mean = |k: usize| seen.iter().map(|(_, x, _)| x[k]).sum::<f64>() / n;
    let centre = [mean(k), mean(k + 1)];
    let at = |x: &[f64]| [x[k] - centre[0], x[k + 1] - centre[1]];
    let square = |[a, b]: [f64; 2]| a * a + b * b;
    let usual = seen.iter().map(|(_, x, _)| square(at(x))).sum::<f64>() / n;
    let turns: Vec<f64> = seen
        .iter()
        .map(|(_, x, v)| {
            let [a, b] = at(x);
            (a * v[k + 1] - b * v[k]) / (square([a, b]) + CENTRE * usual)
        })
        .collect();
    let distances = ranks(&turns)
        .into_iter()
        .map(|share| (-2.0 * (1.0 - HOLE - (1.0 - HOLE) * share).ln()).sqrt());
    let polar = seen.iter().zip(distances).map(|((_, x, _), distance)| {
        let [a, b] = at(x);
        let (sin, cos) = b.atan2(a).sin_cos();
        (distance * cos, distance * sin)
    });
    let (across, up) = polar.unzip();
    [across, up]
}

/// For each value the share of all that lie below it, strictly between 0 and 1.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut shares = vec![0.0; values.len()];
    for (rank, &i) in order.iter().enumerate() {
        shares[i] = (rank as f64 + 0.5) / values.len() as f64;
    }
    shares
}

fn normal_scores(values: &[f64]) -> Vec<f64> {
    ranks(values).into_iter().map(normal_quantile).collect()
}

#[cfg(test)]
mod tests {
    use super::super::geodesic::{Geodesic, Metric};
    use super::*;
    use rand::SeedableRng;
    use std::f64::consts::PI;

    fn share(n: usize, by: f64) -> f64 {
        (n as f64 * by).fract()
    }

    /// The layout, of all coordinates, that tells most of the steps around, of points that go on by a law of their sequence and step.
    fn best(dims: usize, at: impl Fn(usize, f64) -> Vec<f64>) -> (Layout, Vec<Option<Vec<f64>>>) {
        let places: Vec<(usize, usize)> =
            (0..60).flat_map(|n| (0..24).map(move |t| (n, t))).collect();
        let components: Vec<Vec<f64>> = places.iter().map(|&(n, t)| at(n, t as f64)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let geodesics = [Metric::AsShown, Metric::InSteps]
            .map(|metric| Geodesic::of(&components, &places, metric, dims, &mut rng).unwrap());
        let shown = Shown { places, components };
        let told = |e: &StateEstimate| shown.told_around(&e.points).unwrap();
        let all = geodesics.iter().flat_map(|geodesic| {
            let coordinates: Vec<Vec<f64>> =
                (shown.components.iter()).map(|x| geodesic.at(x)).collect();
            state_estimates(&shown, &coordinates, dims, &mut rng)
        });
        let best = all.max_by(|a, b| told(a).total_cmp(&told(b)));
        best.map(|e| (e.layout, e.points)).unwrap()
    }

    #[test]
    fn what_turns_is_a_ring_and_what_swings_lines() {
        let (turning, _) = best(2, |n, t| {
            let angle = 2.0 * PI * share(n, 0.618) + 0.5 * (share(n, 0.7549) - 0.5) * t;
            vec![1.4 * angle.cos(), 1.4 * angle.sin()]
        });
        assert_eq!((turning.rings, turning.places), (1, 0));
        let (swinging, points) = best(2, |n, t| {
            let x = (0.3 + share(n, 0.618)) * (0.3 * t + 6.0 * share(n, 0.7549)).sin();
            vec![1.8 * x, 0.6 * (x * x - 0.3)]
        });
        assert_eq!((swinging.rings, swinging.places), (0, 1));
        // Every step has a state, at the ends too, and each number is about standard normal.
        let points: Vec<Vec<f64>> = points.into_iter().map(Option::unwrap).collect();
        for k in 0..2 {
            let square = points.iter().map(|p| p[k] * p[k]).sum::<f64>() / points.len() as f64;
            assert!((square - 1.0).abs() < 0.05, "{square}");
        }
    }

    /// The state of a product is laid out as a product: a circle beside a line, and two circles.
    #[test]
    fn what_turns_beside_what_swings_is_a_ring_and_a_place() {
        let angle = |n: usize, t: f64, by: f64, pace: f64| {
            2.0 * PI * share(n, by) + 0.4 * (share(n, pace) - 0.5) * t
        };
        let swing =
            |n: usize, t: f64| (0.3 + share(n, 0.4142)) * (0.3 * t + 6.0 * share(n, 0.5698)).sin();
        let (both, points) = best(4, |n, t| {
            let a = angle(n, t, 0.618, 0.7549);
            vec![1.4 * a.cos(), 1.4 * a.sin(), 1.6 * swing(n, t)]
        });
        assert_eq!((both.rings, both.places), (1, 1));
        // Its angle is that of the circle, up to a turn and a mirror; its third number goes with the place on the line.
        let (mut alike, mut mirrored) = ([0.0_f64; 2], [0.0_f64; 2]);
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for (i, point) in points.iter().enumerate() {
            let (n, t) = (i / 24, (i % 24) as f64);
            let point = point.as_ref().unwrap();
            let (truth, own) = (angle(n, t, 0.618, 0.7549), point[1].atan2(point[0]));
            for (sum, difference) in [(&mut alike, own - truth), (&mut mirrored, own + truth)] {
                sum[0] += difference.cos();
                sum[1] += difference.sin();
            }
            let x = swing(n, t);
            xy += x * point[2];
            xx += x * x;
            yy += point[2] * point[2];
        }
        let size = |sum: [f64; 2]| sum[0].hypot(sum[1]) / points.len() as f64;
        let turned = size(alike).max(size(mirrored));
        assert!(turned > 0.98, "{turned}");
        let explained = xy * xy / (xx * yy);
        assert!(explained > 0.9, "{explained}");
        let (circles, _) = best(4, |n, t| {
            let (a, b) = (angle(n, t, 0.618, 0.7549), angle(n, t, 0.4142, 0.5698));
            // Equally large, and mixed.
            let x = [a.cos(), a.sin(), b.cos(), b.sin()];
            vec![x[0] + x[2], x[0] - x[2], x[1] + x[3], x[1] - x[3]]
        });
        assert_eq!((circles.rings, circles.places), (2, 0));
    }

    #[test]
    fn coordinates_are_turned_along_components() {
        let components: Vec<Vec<f64>> = (0..50)
            .map(|i| vec![(0.7 * f64::from(i)).sin(), (1.9 * f64::from(i)).cos()])
            .collect();
        // Turned, mirrored and stretched, with one coordinate more.
        let (sin, cos) = 2.5_f64.sin_cos();
        let mut turned: Vec<Vec<f64>> = components
            .iter()
            .map(|x| {
                let (a, b) = (cos * x[0] + sin * x[1], cos * x[1] - sin * x[0]);
                vec![3.0 * a, -3.0 * b, 9.0]
            })
            .collect();
        align(&mut turned, &components, 2);
        for (x, y) in turned.iter().zip(&components) {
            assert!((x[0] - 3.0 * y[0]).abs() < 1e-6 && (x[1] - 3.0 * y[1]).abs() < 1e-6);
            assert_eq!(x[2], 9.0);
        }
    }
}
