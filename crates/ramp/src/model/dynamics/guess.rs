//! States guessed from what a chain's observations show around every step, to begin with.
//!
//! A guess lays what is shown, and how it changes from step to step, into the coordinates of a latent. A *line* is a component beside its
//! rate of change. A *circle* is a plane of two components: their angle stays, and the distance from the origin tells how fast it turns, so that two
//! numbers hold a place on a circle and its velocity. A *place* is a component alone, where all of a state is shown. How many of each a system has is not known: all
//! guesses that fit into a latent are made, and compared by what they tell of the steps around them.

use super::observed::Shown;
use super::slow::dot;
use crate::infer::normal_quantile;
use std::collections::HashMap;
use std::f64::consts::PI;

/// Steps before and after the present one that a rate of change is found from.
const REACH: usize = 2;
/// Up to this many coordinates every mixture of circles, lines and places is tried; beyond it those with several places are not.
const ALL: usize = 4;
/// Points that circles are sought on, beginnings of the search and its rounds.
const SOUGHT_ON: usize = 400;
const BEGINNINGS: usize = 6;
const ROUNDS: usize = 8;
/// Half of the angles tried in a round.
const ANGLES: i32 = 8;
/// Added to the squared distance from the origin where an angle is hardly defined.
const CENTRE: f64 = 0.1;

/// How a guess lies in a latent's coordinates: those that an observation tells come first, then rates of change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// For each coordinate that an observation tells, the weights of components.
    pub told: Vec<Vec<f64>>,
    /// Pairs of coordinates that turn, and how far in a step at one standard deviation of the distance.
    pub circles: Vec<(usize, usize, f64)>,
    /// Which coordinate goes on by which other, and how far for one of it.
    pub rates: Vec<(usize, usize, f64)>,
}

/// How many of each kind a guess has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub circles: usize,
    pub lines: usize,
    pub places: usize,
}

impl Shape {
    /// Components that it is made of.
    fn components(self) -> usize {
        2 * self.circles + self.lines + self.places
    }

    /// All that have so many coordinates.
    fn all(dims: usize) -> Vec<Shape> {
        let mut all = vec![];
        for circles in 0..=dims / 2 {
            let rest = dims - 2 * circles;
            for lines in 0..=rest / 2 {
                let places = rest - 2 * lines;
                if dims <= ALL || places < 2 || circles + lines == 0 {
                    all.push(Shape {
                        circles,
                        lines,
                        places,
                    });
                }
            }
        }
        all
    }
}

/// A guess.
#[derive(Clone, Debug)]
pub(crate) struct Guess {
    pub shape: Shape,
    pub frame: Frame,
    /// The latent's coordinates, about standard normal, wherever enough is shown around.
    pub points: Vec<Option<Vec<f64>>>,
}

/// All guesses of so many coordinates; none where no steps are long enough in a row.
pub(crate) fn guesses(shown: &Shown, dims: usize) -> Vec<Guess> {
    let slopes = slopes(shown);
    let there = slopes.iter().flatten().count();
    let available = shown.components.first().map_or(0, Vec::len);
    let fits = |shape: &Shape| there > 0 && shape.components() <= available;
    let shapes = Shape::all(dims).into_iter().filter(fits);
    shapes.map(|shape| guess(shown, &slopes, shape)).collect()
}

/// How components change from step to step: the slopes of lines through the steps around each.
fn slopes(shown: &Shown) -> Vec<Option<Vec<f64>>> {
    let places = shown.places.iter().enumerate();
    let rows: HashMap<(usize, usize), usize> = places.map(|(i, &p)| (p, i)).collect();
    let weight: f64 = (1..=REACH).map(|j| 2.0 * (j * j) as f64).sum();
    let slope = |&(sequence, step): &(usize, usize)| {
        let own = *rows.get(&(sequence, step))?;
        let mut slope = vec![0.0; shown.components[own].len()];
        for j in 1..=REACH {
            let after = *rows.get(&(sequence, step + j))?;
            let before = *rows.get(&(sequence, step.checked_sub(j)?))?;
            let pairs = shown.components[after]
                .iter()
                .zip(&shown.components[before]);
            for (to, (after, before)) in slope.iter_mut().zip(pairs) {
                *to += j as f64 * (after - before) / weight;
            }
        }
        Some(slope)
    };
    shown.places.iter().map(slope).collect()
}

fn guess(shown: &Shown, slopes: &[Option<Vec<f64>>], shape: Shape) -> Guess {
    let axes = axes(&shown.components, shape);
    // Where enough is shown: the components and how they change.
    let seen: Vec<(usize, &[f64], &[f64])> = slopes
        .iter()
        .enumerate()
        .filter_map(|(i, slope)| Some((i, &shown.components[i][..], &slope.as_ref()?[..])))
        .collect();
    let mut columns: Vec<Vec<f64>> = vec![];
    let mut frame = Frame::default();
    let (turning, straight) = axes.split_at(2 * shape.circles);
    for axis in straight {
        frame.told.push(axis.clone());
        let values = seen.iter().map(|(_, x, _)| dot(axis, x)).collect();
        columns.push(normal_scores(values));
    }
    for pair in turning.chunks_exact(2) {
        let at = frame.told.len();
        frame.told.extend_from_slice(pair);
        let turn = |(_, x, v): &(usize, &[f64], &[f64])| {
            let (a, b) = (dot(&pair[0], x), dot(&pair[1], x));
            let (to_a, to_b) = (dot(&pair[0], v), dot(&pair[1], v));
            let turn = (a * to_b - b * to_a) / (a * a + b * b + CENTRE);
            (b.atan2(a), turn)
        };
        let (angles, turns): (Vec<f64>, Vec<f64>) = seen.iter().map(turn).unzip();
        frame.circles.push((at, at + 1, size(&turns)));
        // Rayleigh's distances: with all directions alike the plane is normal.
        let distance = |share: f64| (-2.0 * (1.0 - share).ln()).sqrt();
        let distances: Vec<f64> = ranks(&turns).into_iter().map(distance).collect();
        let polar = || angles.iter().zip(&distances);
        columns.push(polar().map(|(a, r)| r * a.cos()).collect());
        columns.push(polar().map(|(a, r)| r * a.sin()).collect());
    }
    for (to, axis) in straight.iter().take(shape.lines).enumerate() {
        let values: Vec<f64> = seen.iter().map(|(_, _, v)| dot(axis, v)).collect();
        frame.rates.push((to, columns.len(), size(&values)));
        columns.push(normal_scores(values));
    }
    let mut points = vec![None; slopes.len()];
    for (k, (i, ..)) in seen.iter().enumerate() {
        points[*i] = Some(columns.iter().map(|c| c[k]).collect());
    }
    Guess {
        shape,
        frame,
        points,
    }
}

/// Orthonormal directions among the slowest components, of which the first pairs are as nearly circles as can be.
fn axes(components: &[Vec<f64>], shape: Shape) -> Vec<Vec<f64>> {
    let available = components.first().map_or(0, Vec::len);
    let used = shape.components();
    let unit = |k: usize| -> Vec<f64> {
        (0..available)
            .map(|i| f64::from(u8::from(i == k)))
            .collect()
    };
    let first: Vec<Vec<f64>> = (0..used).map(unit).collect();
    if shape.circles == 0 || used == 2 {
        return first;
    }
    let every = components.len().div_ceil(SOUGHT_ON).max(1);
    let some: Vec<&Vec<f64>> = components.iter().step_by(every).collect();
    let mut best = (f64::INFINITY, first.clone());
    for beginning in 0..BEGINNINGS {
        let mut axes = first.clone();
        // Each begins elsewhere, turned by whatever angles.
        for (i, j) in pairs(used).filter(|_| beginning > 0) {
            turn(&mut axes, i, j, 1.7 * (beginning * (i + 2 * j + 1)) as f64);
        }
        let along = |x: &&Vec<f64>| -> Vec<f64> { axes.iter().map(|a| dot(a, x)).collect() };
        // One list of places for each axis.
        let places: Vec<Vec<f64>> = some.iter().map(along).collect();
        let mut places: Vec<Vec<f64>> = (0..used)
            .map(|k| places.iter().map(|p| p[k]).collect())
            .collect();
        let mut value = unevenness(&places, shape.circles);
        for round in 0..ROUNDS {
            let width = PI / f64::from(1 << (round / 2));
            for (i, j) in pairs(used) {
                let angle = |k: i32| width * f64::from(k) / f64::from(2 * ANGLES);
                let tried = (-ANGLES..=ANGLES).map(|k| {
                    let mut places = places.clone();
                    turn(&mut places, i, j, angle(k));
                    (unevenness(&places, shape.circles), angle(k))
                });
                let least = tried.min_by(|a, b| a.0.total_cmp(&b.0));
                if let Some((least, angle)) = least.filter(|(least, _)| *least < value) {
                    turn(&mut places, i, j, angle);
                    turn(&mut axes, i, j, angle);
                    value = least;
                }
            }
        }
        if value < best.0 {
            best = (value, axes);
        }
    }
    best.1
}

fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(|i| (0..i).map(move |j| (i, j)))
}

/// Turns two of several lists of numbers into each other.
fn turn(lists: &mut [Vec<f64>], i: usize, j: usize, angle: f64) {
    let (sin, cos) = angle.sin_cos();
    for k in 0..lists[i].len() {
        let (a, b) = (lists[i][k], lists[j][k]);
        (lists[i][k], lists[j][k]) = (cos * a - sin * b, sin * a + cos * b);
    }
}

/// How far distances from the origin differ within the planes of pairs of lists: nothing, where all are circles.
fn unevenness(places: &[Vec<f64>], planes: usize) -> f64 {
    let plane = |pair: &[Vec<f64>]| {
        let squares = || pair[0].iter().zip(&pair[1]).map(|(a, b)| a * a + b * b);
        let n = pair[0].len() as f64;
        let mean = squares().sum::<f64>() / n;
        squares().map(|s| (s / mean - 1.0).powi(2)).sum::<f64>() / n
    };
    places.chunks_exact(2).take(planes).map(plane).sum()
}

/// The root of the mean square.
fn size(values: &[f64]) -> f64 {
    let squares: f64 = values.iter().map(|x| x * x).sum();
    (squares / values.len().max(1) as f64).sqrt()
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

fn normal_scores(values: Vec<f64>) -> Vec<f64> {
    ranks(&values).into_iter().map(normal_quantile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::told_around;

    /// Sequences of points that go on by a law of their number and step.
    fn shown(components: impl Fn(usize, f64) -> Vec<f64>) -> Shown {
        let places: Vec<(usize, usize)> =
            (0..60).flat_map(|n| (0..24).map(move |t| (n, t))).collect();
        Shown {
            components: (places.iter())
                .map(|&(n, t)| components(n, t as f64))
                .collect(),
            places,
        }
    }

    fn share(n: usize, by: f64) -> f64 {
        (n as f64 * by).fract()
    }

    fn angle(n: usize, t: f64, by: [f64; 2]) -> f64 {
        2.0 * PI * share(n, by[0]) + 0.5 * (share(n, by[1]) - 0.5) * t
    }

    fn best(shown: &Shown, dims: usize) -> Guess {
        let told = |g: &Guess| told_around(shown, &g.points).unwrap();
        let all = guesses(shown, dims).into_iter().map(|g| (told(&g), g));
        all.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1
    }

    #[test]
    fn what_turns_is_a_circle_and_what_swings_a_line() {
        let scale = 2.0_f64.sqrt();
        let turning = shown(|n, t| {
            let a = angle(n, t, [0.618, 0.7549]);
            [a.cos(), a.sin(), (2.0 * a).cos()]
                .map(|x| scale * x)
                .to_vec()
        });
        let circle = best(&turning, 2);
        assert_eq!(
            (circle.shape.circles, circle.shape.lines),
            (1, 0),
            "{circle:?}"
        );
        // Of a swing one component is the place and another a function of it.
        let swinging = shown(|n, t| {
            let x = (0.3 + share(n, 0.618)) * (0.3 * t + 6.0 * share(n, 0.7549)).sin();
            vec![1.8 * x, 3.0 * (x * x - 0.3)]
        });
        let line = best(&swinging, 2);
        assert_eq!((line.shape.circles, line.shape.lines), (0, 1));
    }

    #[test]
    fn two_circles_are_told_apart_though_they_are_mixed() {
        let both = shown(|n, t| {
            let (a, b) = (angle(n, t, [0.618, 0.7549]), angle(n, t, [0.5698, 0.245]));
            let (sin, cos) = 0.6_f64.sin_cos();
            let x = [a.cos(), a.sin(), b.cos(), b.sin()];
            vec![
                cos * x[0] - sin * x[2],
                x[1] * 0.8 + x[3] * 0.6,
                sin * x[0] + cos * x[2],
                x[1] * -0.6 + x[3] * 0.8,
            ]
        });
        let found = axes(
            &both.components,
            Shape {
                circles: 2,
                lines: 0,
                places: 0,
            },
        );
        let along = |axis: &Vec<f64>| both.components.iter().map(|x| dot(axis, x)).collect();
        let places: Vec<Vec<f64>> = found.iter().map(along).collect();
        assert!(unevenness(&places, 2) < 0.02, "{}", unevenness(&places, 2));
    }

    #[test]
    fn guesses_are_about_standard_normal_and_rates_come_last() {
        let swinging = shown(|n, t| {
            let x = (0.3 + share(n, 0.618)) * (0.3 * t + 6.0 * share(n, 0.7549)).sin();
            vec![1.8 * x, 3.0 * (x * x - 0.3), x.powi(3)]
        });
        for guess in guesses(&swinging, 3) {
            let points: Vec<&Vec<f64>> = guess.points.iter().flatten().collect();
            assert_eq!(points.len(), 60 * (24 - 2 * REACH));
            for d in 0..3 {
                let column: Vec<f64> = points.iter().map(|p| p[d]).collect();
                assert!((size(&column) - 1.0).abs() < 0.2, "{:?}", guess.shape);
            }
            let rates: Vec<usize> = guess.frame.rates.iter().map(|r| r.1).collect();
            assert!(rates.iter().all(|&r| r >= guess.frame.told.len()));
        }
        // Sequences of four steps have no rate.
        let short = Shown {
            places: (0..40).map(|i| (i / 4, i % 4)).collect(),
            components: vec![vec![0.0, 1.0]; 40],
        };
        assert!(guesses(&short, 2).is_empty());
    }
}
