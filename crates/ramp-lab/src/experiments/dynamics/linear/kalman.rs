//! A Kalman smoother whose parameters are found by expectation maximisation, begun at components of windows.

use super::{Scores, whiten, window_components};
use crate::error::LabError;
use crate::experiments::state_probe::Points;
use faer::linalg::solvers::{DenseSolveCore, Solve};
use faer::{Mat, Side};
use rayon::prelude::*;

/// Rounds of expectation maximisation, sequences that it learns from at most, and which of them are held out: one in so many.
const EM_ROUNDS: usize = 40;
const EM_SEQUENCES: usize = 300;
const HELD_OUT: usize = 5;
/// How many times the numbers of a state a wider state has, to choose from.
const WIDER: [usize; 3] = [1, 2, 4];
/// The least variance of anything, against singular matrices.
const LEAST: f64 = 1e-6;

/// A linear-Gaussian state-space model: `z' = A z + q`, `y = C z + r`.
struct StateSpace {
    a: Mat<f64>,
    c: Mat<f64>,
    q: Mat<f64>,
    /// Variances; observations are independent given the state.
    r: Vec<f64>,
    first_mean: Mat<f64>,
    first: Mat<f64>,
}

/// Smoothed covariances, which are those of every sequence, and gains.
struct Gains {
    kalman: Vec<Mat<f64>>,
    smoother: Vec<Mat<f64>>,
    smoothed: Vec<Mat<f64>>,
    /// Covariance of a state with the one before it.
    across: Vec<Mat<f64>>,
    /// The inverse covariance of what is predicted to be seen, and the logarithm of the covariance's determinant.
    surprise: Vec<(Mat<f64>, f64)>,
}

fn inverse(a: &Mat<f64>) -> Result<Mat<f64>, LabError> {
    let factor = a.llt(Side::Lower).map_err(|_| LabError::Singular {
        what: "a state-space model",
    })?;
    Ok(factor.inverse())
}

impl StateSpace {
    /// Begins at window components taken for states.
    fn new(scores: &Scores, states: &Points) -> Result<Self, LabError> {
        let d = states.features;
        let steps = scores.steps;
        let state =
            |n: usize, t: usize| Mat::from_fn(d, 1, |i, _| states.values[(n * steps + t) * d + i]);
        let mut sums = Sums::new(d, scores.width);
        for n in 0..scores.count() {
            for t in 0..steps {
                let (z, none) = (state(n, t), Mat::zeros(d, d));
                let before = (t > 0).then(|| (state(n, t - 1), none.clone(), none.clone()));
                sums.add(scores.row(n, t), (&z, &none), before.as_ref());
            }
        }
        sums.maximise()
    }

    fn gains(&self, steps: usize) -> Result<Gains, LabError> {
        let (d, p) = (self.a.nrows(), self.c.nrows());
        let identity = Mat::<f64>::identity(d, d);
        let (mut predicted, mut filtered, mut kalman) = (vec![self.first.clone()], vec![], vec![]);
        let mut surprise = vec![];
        for t in 0..steps {
            let v = &predicted[t];
            let mut s = &self.c * v * self.c.transpose();
            (0..p).for_each(|i| s[(i, i)] += self.r[i]);
            let precision = inverse(&s)?;
            let factor = s.llt(Side::Lower).map_err(|_| LabError::Singular {
                what: "a state-space model",
            })?;
            let volume = factor.L().diagonal().column_vector().iter();
            let volume = 2.0 * volume.map(|x| x.ln()).sum::<f64>();
            let gain = v * self.c.transpose() * &precision;
            surprise.push((precision, volume));
            let after = (&identity - &gain * &self.c) * v;
            let after = symmetric(&after);
            predicted.push(&self.a * &after * self.a.transpose() + &self.q);
            filtered.push(after);
            kalman.push(gain);
        }
        let mut smoothed = filtered.clone();
        let mut smoother = vec![Mat::zeros(d, d); steps];
        let mut across = vec![Mat::zeros(d, d); steps];
        for t in (0..steps - 1).rev() {
            let j = &filtered[t] * self.a.transpose() * inverse(&symmetric(&predicted[t + 1]))?;
            let more = &j * (&smoothed[t + 1] - &predicted[t + 1]) * j.transpose();
            smoothed[t] = symmetric(&(&filtered[t] + more));
            across[t + 1] = &smoothed[t + 1] * j.transpose();
            smoother[t] = j;
        }
        Ok(Gains {
            kalman,
            smoother,
            smoothed,
            across,
            surprise,
        })
    }

    /// The mean log-likelihood of a step.
    fn likelihood(&self, scores: &Scores) -> Result<f64, LabError> {
        let gains = self.gains(scores.steps)?;
        let mut total = 0.0;
        for n in 0..scores.count() {
            let mut predicted = self.first_mean.clone();
            for (t, (precision, volume)) in gains.surprise.iter().enumerate() {
                let (seen, row) = (&self.c * &predicted, scores.row(n, t));
                let off = Mat::from_fn(row.len(), 1, |i, _| row[i] - seen[(i, 0)]);
                total -= 0.5 * ((off.transpose() * precision * &off)[(0, 0)] + volume);
                predicted = &self.a * (predicted + &gains.kalman[t] * off);
            }
        }
        let log_2pi = (2.0 * std::f64::consts::PI).ln();
        let steps = (scores.count() * scores.steps) as f64;
        Ok(total / steps - 0.5 * scores.width as f64 * log_2pi)
    }

    /// Smoothed means of one sequence.
    fn smooth(&self, scores: &Scores, n: usize, gains: &Gains) -> Vec<Mat<f64>> {
        let (d, steps) = (self.a.nrows(), scores.steps);
        let mut predicted = vec![self.first_mean.clone()];
        let mut means: Vec<Mat<f64>> = Vec::with_capacity(steps);
        for t in 0..steps {
            let seen = &self.c * &predicted[t];
            let row = scores.row(n, t);
            let off = Mat::from_fn(row.len(), 1, |i, _| row[i] - seen[(i, 0)]);
            let mean = &predicted[t] + &gains.kalman[t] * off;
            predicted.push(&self.a * &mean);
            means.push(mean);
        }
        for t in (0..steps - 1).rev() {
            let off = &means[t + 1] - &predicted[t + 1];
            means[t] = &means[t] + &gains.smoother[t] * off;
        }
        debug_assert!(means.iter().all(|m| m.nrows() == d));
        means
    }

    fn improved(&self, scores: &Scores) -> Result<Self, LabError> {
        let gains = self.gains(scores.steps)?;
        let d = self.a.nrows();
        // Fixed parts, so that sums do not depend on the number of threads.
        let parts: Vec<Sums> = (0..PARTS)
            .into_par_iter()
            .map(|part| {
                let mut sums = Sums::new(d, scores.width);
                for n in (part..scores.count()).step_by(PARTS) {
                    let means = self.smooth(scores, n, &gains);
                    for t in 0..scores.steps {
                        let before = (t > 0).then(|| {
                            (
                                means[t - 1].clone(),
                                gains.across[t].clone(),
                                gains.smoothed[t - 1].clone(),
                            )
                        });
                        let here = (&means[t], &gains.smoothed[t]);
                        sums.add(scores.row(n, t), here, before.as_ref());
                    }
                }
                sums
            })
            .collect();
        let mut sums = Sums::new(d, scores.width);
        parts.iter().for_each(|part| sums.merge(part));
        sums.maximise()
    }
}

/// Parts of all sequences that sums are taken over one by one.
const PARTS: usize = 8;

/// Expected sufficient statistics.
struct Sums {
    count: f64,
    transitions: f64,
    sequences: f64,
    first: Mat<f64>,
    first_square: Mat<f64>,
    all: Mat<f64>,
    earlier: Mat<f64>,
    later: Mat<f64>,
    across: Mat<f64>,
    seen: Mat<f64>,
    seen_square: Vec<f64>,
}

impl Sums {
    fn new(d: usize, p: usize) -> Self {
        let square = || Mat::zeros(d, d);
        Sums {
            count: 0.0,
            transitions: 0.0,
            sequences: 0.0,
            first: Mat::zeros(d, 1),
            first_square: square(),
            all: square(),
            earlier: square(),
            later: square(),
            across: square(),
            seen: Mat::zeros(p, d),
            seen_square: vec![0.0; p],
        }
    }

    /// Adds a step: what is seen, the state's mean and covariance, and for all but the first step the mean before it, the
    /// covariance of both, and the covariance before it.
    fn add(
        &mut self,
        row: &[f64],
        (mean, covariance): (&Mat<f64>, &Mat<f64>),
        before: Option<&(Mat<f64>, Mat<f64>, Mat<f64>)>,
    ) {
        let square = mean * mean.transpose() + covariance;
        self.count += 1.0;
        self.all += &square;
        self.seen += Mat::from_fn(row.len(), 1, |i, _| row[i]) * mean.transpose();
        self.seen_square
            .iter_mut()
            .zip(row)
            .for_each(|(to, x)| *to += x * x);
        match before {
            Some((earlier, both, own)) => {
                self.transitions += 1.0;
                self.later += &square;
                self.across += mean * earlier.transpose() + both;
                self.earlier += earlier * earlier.transpose() + own;
            }
            None => {
                self.sequences += 1.0;
                self.first += mean;
                self.first_square += &square;
            }
        }
    }

    fn merge(&mut self, other: &Sums) {
        self.count += other.count;
        self.transitions += other.transitions;
        self.sequences += other.sequences;
        self.first += &other.first;
        self.first_square += &other.first_square;
        self.all += &other.all;
        self.earlier += &other.earlier;
        self.later += &other.later;
        self.across += &other.across;
        self.seen += &other.seen;
        self.seen_square
            .iter_mut()
            .zip(&other.seen_square)
            .for_each(|(a, b)| *a += b);
    }

    /// The parameters that make them most likely.
    fn maximise(&self) -> Result<StateSpace, LabError> {
        let a = solved(&self.across, &self.earlier)?;
        let c = solved(&self.seen, &self.all)?;
        let q = (&self.later - &a * self.across.transpose()) * (1.0 / self.transitions);
        let explained = &c * self.seen.transpose();
        let r = self.seen_square.iter().enumerate();
        let r = r.map(|(i, square)| ((square - explained[(i, i)]) / self.count).max(LEAST));
        let first_mean = &self.first * (1.0 / self.sequences);
        let first =
            &self.first_square * (1.0 / self.sequences) - &first_mean * first_mean.transpose();
        Ok(StateSpace {
            r: r.collect(),
            a,
            c,
            q: floored(&q),
            first: floored(&first),
            first_mean,
        })
    }
}

fn symmetric(a: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| (a[(i, j)] + a[(j, i)]) / 2.0)
}

/// The same with a little more on the diagonal, so that it stays positive definite.
fn floored(a: &Mat<f64>) -> Mat<f64> {
    let mut a = symmetric(a);
    (0..a.nrows()).for_each(|i| a[(i, i)] = a[(i, i)].max(0.0) + LEAST);
    a
}

/// `X` with `X B = A`, for a positive definite `B`.
fn solved(a: &Mat<f64>, b: &Mat<f64>) -> Result<Mat<f64>, LabError> {
    let factor = floored(b)
        .llt(Side::Lower)
        .map_err(|_| LabError::Singular {
            what: "the states of a smoother",
        })?;
    Ok(factor.solve(a.transpose()).transpose().to_owned())
}

/// Smoothed means of a state-space model.
pub(in super::super) struct Smoothed {
    /// Numbers of a state.
    pub dim: usize,
    /// The mean log-likelihood of steps of sequences that it was not fitted to.
    pub held_out: f64,
    /// Training and test sequences.
    pub points: [Points; 2],
}

/// State-space models found by expectation maximisation on training sequences: with as many numbers as the state has, and with the
/// number among some larger ones that makes held-out sequences likeliest.
pub(in super::super) fn kalman_smoothers(
    [train, test]: [&Scores; 2],
    dimension: usize,
) -> Result<[Smoothed; 2], LabError> {
    let used = train.count().min(EM_SEQUENCES);
    let (held_out, learned): (Vec<usize>, Vec<usize>) =
        (0..used).partition(|n| used >= HELD_OUT && n % HELD_OUT == 0);
    let (known, others) = (train.select(&learned), train.select(&held_out));
    let mut fitted = vec![];
    for wider in WIDER {
        let [states, _] = window_components([&known, test], wider * dimension)?;
        let mut model = StateSpace::new(&known, &states)?;
        for _ in 0..EM_ROUNDS {
            model = model.improved(&known)?;
        }
        let gains = model.gains(train.steps)?;
        let dim = states.features;
        let smooth = |of: &Scores| Points {
            features: dim,
            values: (0..of.count())
                .into_par_iter()
                .flat_map_iter(|n| {
                    let means = model.smooth(of, n, &gains);
                    means
                        .into_iter()
                        .flat_map(move |m| (0..dim).map(move |i| m[(i, 0)]).collect::<Vec<_>>())
                })
                .collect(),
        };
        let mut points = [smooth(train), smooth(test)];
        whiten(&mut points)?;
        fitted.push(Smoothed {
            dim,
            held_out: model.likelihood(&others)?,
            points,
        });
    }
    let same = fitted.remove(0);
    let best = fitted
        .into_iter()
        .max_by(|a, b| a.held_out.total_cmp(&b.held_out))
        .filter(|best| best.held_out > same.held_out);
    let wide = best.unwrap_or_else(|| Smoothed {
        points: same.points.clone(),
        ..same
    });
    Ok([same, wide])
}
