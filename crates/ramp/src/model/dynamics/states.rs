//! States estimated from what a chain's observations show around every step, for its messages to be pretrained on.
//!
//! An estimate lays coordinates of the manifold that observations lie on ([`Geodesic`]), and how fast they change, into the
//! coordinates of a latent. *Lines*: some coordinates are places, the others rates of change of the first of them. A *ring* holds two
//! coordinates as an angle, and how fast it turns as the distance from the origin: a place on a circle and its velocity in a plane.
//! Which of them a system has is not known: all that fit into a latent are compared by what they tell of the steps around them.

use super::geodesic::Geodesic;
use super::linalg::{eigen, inverse, product};
use super::observed::Shown;
use crate::kernel::normal::normal_quantile;
use std::collections::HashMap;

/// Steps before and after the present one that a rate of change is found from, by a parabola.
const REACH: usize = 3;
/// The share of the mean squared distance from the origin that is added to it where an angle is hardly defined.
const CENTRE: f64 = 0.05;

/// How an estimate lies in a latent's coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// So many places, then the rates of change of the first of them.
    Lines { places: usize },
    /// Pairs of coordinates, each a place on a circle with its velocity.
    Rings,
}

/// A state at every place of some sequences where enough is shown around it.
#[derive(Clone, Debug)]
pub(crate) struct StateEstimate {
    pub layout: Layout,
    /// About standard normal.
    pub points: Vec<Option<Vec<f64>>>,
}

/// All estimates of so many numbers; none where sequences are too short or show too little.
pub(crate) fn state_estimates(
    shown: &Shown,
    geodesic: &Geodesic,
    scores: &[Vec<f64>],
    dims: usize,
) -> Vec<StateEstimate> {
    use rayon::prelude::*;
    let mut coordinates: Vec<Vec<f64>> = scores.par_iter().map(|row| geodesic.at(row)).collect();
    align(&mut coordinates, &shown.components, dims.div_ceil(2));
    let rates = rates(&shown.places, &coordinates);
    // Where enough is shown: the coordinates and how they change.
    let seen: Vec<(usize, &[f64], &[f64])> = rates
        .iter()
        .enumerate()
        .filter_map(|(i, rate)| Some((i, &coordinates[i][..], &rate.as_ref()?[..])))
        .collect();
    if seen.len() < 2 {
        return vec![];
    }
    let column = |of: &dyn Fn(&[f64], &[f64]) -> f64| -> Vec<f64> {
        seen.iter().map(|(_, x, v)| of(x, v)).collect()
    };
    let laid_out = |layout: Layout, columns: Vec<Vec<f64>>| {
        let mut points = vec![None; coordinates.len()];
        for (k, (i, ..)) in seen.iter().enumerate() {
            points[*i] = Some(columns.iter().map(|c| c[k]).collect());
        }
        StateEstimate { layout, points }
    };
    let mut estimates = vec![];
    for places in dims.div_ceil(2)..=dims.min(geodesic.dims()) {
        let place = (0..places).map(|k| normal_scores(&column(&|x, _| x[k])));
        let rate = (0..dims - places).map(|k| normal_scores(&column(&|_, v| v[k])));
        estimates.push(laid_out(
            Layout::Lines { places },
            place.chain(rate).collect(),
        ));
    }
    if dims.is_multiple_of(2) && geodesic.dims() >= dims {
        let planes = (0..dims).step_by(2);
        let columns = planes.flat_map(|k| ring(&seen, k)).collect();
        estimates.push(laid_out(Layout::Rings, columns));
    }
    estimates
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

/// Two coordinates as an angle, with the rank of its velocity as distance: Rayleigh's distances, so that with all directions alike the plane is normal.
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
        .map(|share| (-2.0 * (1.0 - share).ln()).sqrt());
    let polar = seen.iter().zip(distances).map(|((_, x, _), distance)| {
        let [a, b] = at(x);
        let (sin, cos) = b.atan2(a).sin_cos();
        (distance * cos, distance * sin)
    });
    let (across, up) = polar.unzip();
    [across, up]
}

/// How coordinates change from step to step: the slope of a parabola through the steps around each, on one side where a sequence ends.
fn rates(places: &[(usize, usize)], coordinates: &[Vec<f64>]) -> Vec<Option<Vec<f64>>> {
    let rows: HashMap<(usize, usize), usize> =
        places.iter().enumerate().map(|(i, &p)| (p, i)).collect();
    let width = 2 * REACH + 1;
    // By where the present step lies among those of the window.
    let slopes: Vec<Vec<f64>> = (0..width).map(|at| parabola_slope(width, at)).collect();
    let rate = |&(sequence, step): &(usize, usize)| {
        // The window around the step, or the nearest to it that is whole.
        let whole = |first: usize| -> Option<(usize, Vec<usize>)> {
            let own = (first..first + width).map(|t| rows.get(&(sequence, t)).copied());
            Some((step - first, own.collect::<Option<Vec<_>>>()?))
        };
        let mut firsts: Vec<usize> = (step.saturating_sub(width - 1)..=step).collect();
        firsts.sort_by_key(|first| (first + REACH).abs_diff(step));
        let (at, own) = firsts.into_iter().find_map(whole)?;
        let mut rate = vec![0.0; coordinates[own[0]].len()];
        for (row, slope) in own.iter().zip(&slopes[at]) {
            for (to, x) in rate.iter_mut().zip(&coordinates[*row]) {
                *to += slope * x;
            }
        }
        Some(rate)
    };
    places.iter().map(rate).collect()
}

/// The weights by which values at steps 0, 1, … give the slope at one of them of the parabola that fits them best.
fn parabola_slope(width: usize, at: usize) -> Vec<f64> {
    let t: Vec<f64> = (0..width).map(|i| i as f64 - at as f64).collect();
    let powers = |i: usize| [1.0, t[i], t[i] * t[i]];
    let mut normal = vec![0.0; 9];
    for i in 0..width {
        for (p, a) in powers(i).iter().enumerate() {
            for (q, b) in powers(i).iter().enumerate() {
                normal[p * 3 + q] += a * b;
            }
        }
    }
    let inverse = inverse(3, &normal).unwrap_or_else(|| vec![0.0; 9]);
    let weight = |i: usize| {
        powers(i)
            .iter()
            .zip(&inverse[3..6])
            .map(|(a, b)| a * b)
            .sum()
    };
    (0..width).map(weight).collect()
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
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use std::f64::consts::PI;

    fn share(n: usize, by: f64) -> f64 {
        (n as f64 * by).fract()
    }

    /// The layout that tells most of the steps around, of points that go on by a law of their sequence and step.
    fn best(dims: usize, at: impl Fn(usize, f64) -> Vec<f64>) -> (Layout, Vec<Option<Vec<f64>>>) {
        let places: Vec<(usize, usize)> =
            (0..60).flat_map(|n| (0..24).map(move |t| (n, t))).collect();
        let components: Vec<Vec<f64>> = places.iter().map(|&(n, t)| at(n, t as f64)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let geodesic = Geodesic::of(&components, dims, &mut rng).unwrap();
        let shown = Shown { places, components };
        let told = |e: &StateEstimate| shown.told_around(&e.points).unwrap();
        let all = state_estimates(&shown, &geodesic, &shown.components, dims);
        let best = all.into_iter().max_by(|a, b| told(a).total_cmp(&told(b)));
        best.map(|e| (e.layout, e.points)).unwrap()
    }

    #[test]
    fn what_turns_is_a_ring_and_what_swings_lines() {
        let (turning, _) = best(2, |n, t| {
            let angle = 2.0 * PI * share(n, 0.618) + 0.5 * (share(n, 0.7549) - 0.5) * t;
            vec![1.4 * angle.cos(), 1.4 * angle.sin()]
        });
        assert_eq!(turning, Layout::Rings);
        let (swinging, points) = best(2, |n, t| {
            let x = (0.3 + share(n, 0.618)) * (0.3 * t + 6.0 * share(n, 0.7549)).sin();
            vec![1.8 * x, 0.6 * (x * x - 0.3)]
        });
        assert_eq!(swinging, Layout::Lines { places: 1 });
        // Every step has a state, at the ends too, and each number is about standard normal.
        let points: Vec<Vec<f64>> = points.into_iter().map(Option::unwrap).collect();
        for k in 0..2 {
            let square = points.iter().map(|p| p[k] * p[k]).sum::<f64>() / points.len() as f64;
            assert!((square - 1.0).abs() < 0.05, "{square}");
        }
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

    #[test]
    fn rates_are_those_of_parabolas_and_gaps_have_none() {
        let at = |t: f64| 1.0 + 0.5 * t - 0.02 * t * t;
        let mut places: Vec<(usize, usize)> = (0..12).map(|t| (0, t)).collect();
        // A second sequence is too short, a third has a hole.
        places.extend((0..5).map(|t| (1, t)));
        places.extend((0..12).filter(|t| *t != 6).map(|t| (2, t)));
        let coordinates: Vec<Vec<f64>> = places.iter().map(|p| vec![at(p.1 as f64)]).collect();
        let found = rates(&places, &coordinates);
        for (&(sequence, t), rate) in places.iter().zip(&found) {
            match rate {
                Some(rate) => assert!((rate[0] - (0.5 - 0.04 * t as f64)).abs() < 1e-9),
                None => assert!(sequence > 0),
            }
        }
        assert!(found[..12].iter().all(Option::is_some));
        assert!(found[12..].iter().all(Option::is_none));
    }
}
