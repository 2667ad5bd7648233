//! Beliefs of any family in coordinates that are about standard normal under the prior, and the messages that say them.

use super::linalg::{cholesky, eigen, inverse, times};
use crate::family::{AnyFamily, Belief, Family, with_family};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

/// The least precision that a message says along any direction, so that no network begins where its gradient vanishes.
const LEAST: f64 = 0.01;
/// The log-odds of a Beta are about normal with the variance `1/α + 1/β`: two, under the uniform prior.
const LOGIT_SPREAD: f64 = std::f64::consts::SQRT_2;
/// How many observations' worth a Beta is told by one. Sharper than what a Gaussian is told: its means have no other way to lie
/// apart, and learning sharpens softplus outputs slowly.
const BETA_COUNT: f64 = 5.0;
/// How far means of random beliefs lie, in the prior's standard deviations, and how sharp the beliefs are.
const MEAN_SPREAD: f64 = 1.2;
const SHARPNESS: f64 = 1.5;

/// A belief in its chart.
#[derive(Clone, Debug)]
pub struct State {
    /// Coordinates on lines, and their covariance; standard normal under the prior.
    pub lines: Vec<f64>,
    pub covariance: Vec<f64>,
    /// Angles and their variances.
    pub circles: Vec<(f64, f64)>,
    /// Probabilities, and how concentrated they are.
    pub simplices: Vec<(Vec<f64>, f64)>,
}

/// The coordinates of one latent's beliefs.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    belief: &'a Belief,
    prior: &'a [f64],
    /// Where the prior of each line coordinate lies, and how far it spreads.
    place: Vec<(f64, f64)>,
    circles: usize,
}

impl<'a> Chart<'a> {
    /// That of a family with its prior.
    pub fn new(belief: &'a Belief, prior: &'a [f64]) -> Self {
        let mut place = vec![];
        let mut circles = 0;
        let mut rest = prior;
        for part in belief.parts() {
            let (own, others) = rest.split_at(with_family!(part, f => f.dim()));
            rest = others;
            match part {
                AnyFamily::Gaussian(f) => {
                    let covariance = inverse(f.dim, &unpacked(f.dim, &own[f.dim..]));
                    let covariance = covariance.unwrap_or_else(|| identity(f.dim));
                    let mean = times(f.dim, &covariance, &own[..f.dim]);
                    let spread = |i: usize| covariance[i * f.dim + i].sqrt();
                    place.extend((0..f.dim).map(|i| (mean[i], spread(i))));
                }
                AnyFamily::Diagonal(f) => {
                    let (h, p) = own.split_at(f.dim);
                    place.extend(h.iter().zip(p).map(|(h, p)| (h / p, 1.0 / p.sqrt())));
                }
                AnyFamily::Beta(_) => {
                    let chart = |c: &[f64]| ((c[0] / c[1]).ln(), LOGIT_SPREAD);
                    place.extend(own.chunks_exact(2).map(chart));
                }
                AnyFamily::Gamma(_) => {
                    let chart = |c: &[f64]| ((c[0] / c[1]).ln(), 1.0 / c[0].sqrt());
                    place.extend(own.chunks_exact(2).map(chart));
                }
                AnyFamily::VonMises(f) => circles += f.dim,
                // A family of one's own has no chart: its first messages say nothing.
                AnyFamily::Categorical(_) | AnyFamily::Dirichlet(_) | AnyFamily::Own(_) => {}
            }
        }
        Chart {
            belief,
            prior,
            place,
            circles,
        }
    }

    /// How many coordinates lie on lines, and on circles.
    pub fn coordinates(&self) -> (usize, usize) {
        (self.place.len(), self.circles)
    }

    /// A belief such as the first ones of a chain may be.
    pub fn draw(&self, rng: &mut ChaCha8Rng) -> State {
        let d = self.place.len();
        let lines = (0..d).map(|_| MEAN_SPREAD * normal(rng)).collect();
        let mut factor = vec![0.0; d * d];
        for i in 0..d {
            // Rows of about the same length, whatever the dimension.
            let scale = 1.0 / (i.max(1) as f64).sqrt();
            (0..i).for_each(|j| factor[i * d + j] = scale * normal(rng));
            factor[i * d + i] = SHARPNESS * normal(rng).abs();
        }
        let mut precision = identity(d);
        for i in 0..d {
            for j in 0..d {
                let products = (0..d).map(|k| factor[i * d + k] * factor[j * d + k]);
                precision[i * d + j] += products.sum::<f64>();
            }
        }
        let circle = |rng: &mut ChaCha8Rng| {
            let angle = rng.random_range(-PI..PI);
            (angle, 1.0 / (0.3 + 3.0 * normal(rng).abs()))
        };
        let circles = (0..self.circles).map(|_| circle(rng)).collect();
        let simplex = |levels: usize, rng: &mut ChaCha8Rng| {
            let logits: Vec<f64> = (0..levels).map(|_| SHARPNESS * normal(rng)).collect();
            (softmax(&logits), rng.random_range(0.5..2.0) * levels as f64)
        };
        let simplices = self.levels().map(|levels| simplex(levels, rng)).collect();
        State {
            lines,
            covariance: inverse(d, &precision).unwrap_or_else(|| identity(d)),
            circles,
            simplices,
        }
    }

    /// The levels of each part that holds probabilities.
    fn levels(&self) -> impl Iterator<Item = usize> {
        self.belief.parts().iter().filter_map(|part| match part {
            AnyFamily::Categorical(f) => Some(f.levels),
            AnyFamily::Dirichlet(f) => Some(f.levels),
            _ => None,
        })
    }

    /// The sum of messages that makes the prior this belief, and the raw network outputs that say it.
    pub fn message(&self, state: &State) -> (Vec<f64>, Vec<f64>) {
        let (mut sum, mut raw) = (vec![], vec![]);
        let (mut line, mut circle, mut simplex) = (0, 0, 0);
        let mut rest = self.prior;
        let d = self.place.len();
        for part in self.belief.parts() {
            let (prior, others) = rest.split_at(with_family!(part, f => f.dim()));
            rest = others;
            // Place and variance of a line coordinate, in the family's own units.
            let at = |i: usize| {
                let (place, spread) = self.place[i];
                (
                    place + spread * state.lines[i],
                    spread * spread * state.covariance[i * d + i],
                )
            };
            match part {
                AnyFamily::Gaussian(f) => {
                    let n = f.dim;
                    let own = |i: usize, j: usize| {
                        let (a, b) = (line + i, line + j);
                        self.place[a].1 * self.place[b].1 * state.covariance[a * d + b]
                    };
                    let covariance: Vec<f64> = (0..n * n).map(|k| own(k / n, k % n)).collect();
                    let mean: Vec<f64> = (0..n).map(|i| at(line + i).0).collect();
                    let precision = inverse(n, &covariance).unwrap_or_else(|| identity(n));
                    let before = unpacked(n, &prior[n..]);
                    let more: Vec<f64> =
                        precision.iter().zip(&before).map(|(a, b)| a - b).collect();
                    let more = at_least(n, &more, LEAST);
                    let whole: Vec<f64> = more.iter().zip(&before).map(|(a, b)| a + b).collect();
                    let h = times(n, &whole, &mean);
                    let h = h.iter().zip(prior).map(|(h, p)| h - p);
                    sum.extend(h.clone());
                    raw.extend(h);
                    sum.extend(
                        (0..n)
                            .flat_map(|i| (0..=i).map(move |j| (i, j)))
                            .map(|(i, j)| more[i * n + j]),
                    );
                    let factor = cholesky(n, &more).unwrap_or_else(|| identity(n));
                    raw.extend(
                        (0..n)
                            .flat_map(|i| (0..=i).map(move |j| (i, j)))
                            .map(|(i, j)| factor[i * n + j]),
                    );
                    line += n;
                }
                AnyFamily::Diagonal(f) => {
                    let n = f.dim;
                    let more: Vec<f64> = (0..n)
                        .map(|i| (1.0 / at(line + i).1 - prior[n + i]).max(LEAST))
                        .collect();
                    let h: Vec<f64> = (0..n)
                        .map(|i| (more[i] + prior[n + i]) * at(line + i).0 - prior[i])
                        .collect();
                    sum.extend(h.iter().chain(&more));
                    raw.extend(h.iter().copied().chain(more.iter().map(|p| p.sqrt())));
                    line += n;
                }
                AnyFamily::Beta(_) | AnyFamily::Gamma(_) => {
                    for pair in prior.chunks_exact(2) {
                        let (place, variance) = at(line);
                        let wanted = match part {
                            AnyFamily::Beta(_) => {
                                let p = 1.0 / (1.0 + (-place).exp());
                                let count = 1.0 / (variance * p * (1.0 - p));
                                [count * p, count * (1.0 - p)]
                            }
                            _ => [1.0 / variance, 1.0 / (variance * place.exp())],
                        };
                        for (wanted, prior) in wanted.iter().zip(pair) {
                            let more = (wanted - prior).max(LEAST);
                            sum.push(more);
                            raw.push(before_softplus(more));
                        }
                        line += 1;
                    }
                }
                AnyFamily::VonMises(f) => {
                    for i in 0..f.dim {
                        let (angle, variance) = state.circles[circle];
                        // The concentration of a narrow circle is the reciprocal of its variance.
                        let eta = [
                            angle.cos() / variance - prior[2 * i],
                            angle.sin() / variance - prior[2 * i + 1],
                        ];
                        sum.extend(eta);
                        raw.extend(eta);
                        circle += 1;
                    }
                }
                AnyFamily::Categorical(_) => {
                    let logits = state.simplices[simplex]
                        .0
                        .iter()
                        .zip(prior)
                        .map(|(p, prior)| p.max(1e-6).ln() - prior);
                    sum.extend(logits.clone());
                    raw.extend(logits);
                    simplex += 1;
                }
                AnyFamily::Own(_) => {
                    sum.extend(vec![0.0; prior.len()]);
                    raw.extend(vec![0.0; prior.len()]);
                }
                AnyFamily::Dirichlet(_) => {
                    let (p, count) = &state.simplices[simplex];
                    for (p, _) in p.iter().zip(prior) {
                        let more = (p * count).max(LEAST);
                        sum.push(more);
                        raw.push(before_softplus(more));
                    }
                    simplex += 1;
                }
            }
        }
        (sum, raw)
    }

    /// The raw outputs by which an observation tells its components: a broad belief around their place. `share` is the part that
    /// this observation has in it, where several tell of the same latent.
    pub fn shown(&self, components: &[f64], told: usize, share: f64) -> Vec<f64> {
        let mut raw = vec![];
        let component = |i: usize| components.get(i).copied().unwrap_or(0.0);
        // Pairs of components go around circles; with a circle there, lines are left for what no single observation shows.
        let mut next = 0;
        let tells_lines = self.circles == 0;
        for part in self.belief.parts() {
            let n = with_family!(part, f => f.size()).value;
            let known = |i: usize| tells_lines && i < components.len() && i < told;
            match part {
                AnyFamily::Gaussian(_) | AnyFamily::Diagonal(_) => {
                    let at = next;
                    let spread = |i: usize| self.place[i.min(self.place.len() - 1)].1;
                    let value = |i: usize| {
                        if known(at + i) {
                            component(at + i) / spread(at + i)
                        } else {
                            0.0
                        }
                    };
                    raw.extend((0..n).map(value));
                    let width = |i: usize| match known(at + i) {
                        true => share.sqrt() / spread(at + i),
                        false => 0.3 * share.sqrt() / spread(at + i),
                    };
                    match part {
                        AnyFamily::Diagonal(_) => raw.extend((0..n).map(width)),
                        _ => raw.extend(
                            (0..n)
                                .flat_map(|i| (0..=i).map(move |j| (i, j)))
                                .map(|(i, j)| if i == j { width(i) } else { 0.0 }),
                        ),
                    }
                    next += n;
                }
                AnyFamily::Beta(_) => {
                    raw.extend((0..n).flat_map(|i| {
                        if known(next + i) {
                            let p = 1.0 / (1.0 + (-LOGIT_SPREAD * component(next + i)).exp());
                            let count = share * BETA_COUNT;
                            [count * p, count * (1.0 - p)].map(|c| before_softplus(c.max(LEAST)))
                        } else {
                            [-1.0, -1.0]
                        }
                    }));
                    next += n;
                }
                AnyFamily::Gamma(_) => {
                    raw.extend((0..n).flat_map(|i| {
                        if known(next + i) {
                            [0.0, -component(next + i)]
                        } else {
                            [-1.0, -1.0]
                        }
                    }));
                    next += n;
                }
                AnyFamily::VonMises(_) => {
                    raw.extend((0..2 * n).map(|i| component(next + i)));
                    next += 2 * n;
                }
                AnyFamily::Own(_) => raw.extend(vec![0.0; with_family!(part, f => f.dim())]),
                AnyFamily::Categorical(_) | AnyFamily::Dirichlet(_) => {
                    raw.extend((0..n).map(|i| component(next + i)));
                    next += n;
                }
            }
        }
        raw
    }

    /// How many components an observation can tell of.
    pub fn components(&self) -> usize {
        match (self.circles, self.levels().sum::<usize>()) {
            (0, levels) => self.place.len() + levels,
            (circles, levels) => 2 * circles + levels,
        }
    }
}

pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

pub fn identity(n: usize) -> Vec<f64> {
    (0..n * n)
        .map(|k| f64::from(u8::from(k / n == k % n)))
        .collect()
}

/// A symmetric matrix from its packed lower triangle.
fn unpacked(n: usize, packed: &[f64]) -> Vec<f64> {
    let at = |i: usize, j: usize| packed[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)];
    (0..n * n).map(|k| at(k / n, k % n)).collect()
}

/// The symmetric matrix whose eigenvalues are at least so much.
fn at_least(n: usize, a: &[f64], least: f64) -> Vec<f64> {
    let (values, vectors) = eigen(n, a);
    let entry = |k: usize| {
        let parts = values.iter().zip(&vectors);
        parts
            .map(|(value, v)| value.max(least) * v[k / n] * v[k % n])
            .sum()
    };
    (0..n * n).map(entry).collect()
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let top = logits.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = logits.iter().map(|x| (x - top).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

/// What softplus turns into this positive number.
fn before_softplus(y: f64) -> f64 {
    if y > 30.0 { y } else { y.exp_m1().ln() }
}
