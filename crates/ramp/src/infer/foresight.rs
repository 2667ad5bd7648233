//! Whether beliefs of a chain are a state: how much of what observations show some steps later, and earlier, they tell.
//!
//! The free energy does not see what is missing: a belief that knows places but no velocities, or that has a place twice in a fold, can have as
//! high a free energy as one that has neither fault. What differs is what lies ahead and behind. So beliefs are judged, without labels, by how well a
//! smooth function (kernel ridge regression) of their mean tells what observations will show and have shown; and beside it by what the same
//! regression makes of the observations around it themselves, and of the present one alone.
//!
//! A mean that has seen what it is asked for cannot cheat: it has as many numbers as the state, and tells several steps on both sides
//! only if these numbers are one. It is much sharper than the filtered mean, which early in a sequence knows little, so that a fold
//! stands out. States that are estimated before learning are judged in the same way ([`Shown::told_around`]).

use crate::Result;
use crate::data::Dataset;
use crate::infer::Posterior;
use crate::model::{Model, Shown, linalg};
use std::collections::HashMap;

/// Which steps are told, counted from the present.
const AROUND: [isize; 6] = [-8, -5, -3, 3, 5, 8];
/// The observations that a belief is compared with, counted from the present.
const BESIDE: [isize; 5] = [-2, -1, 0, 1, 2];
/// Rows that a regression is fitted to, and judged on, at most; and at least.
const ROWS: usize = 700;
const FEWEST: usize = 10;
/// The observations around the present one add something to it where they add this share of variance.
const ADDED: f64 = 0.05;

/// The share of variance of what a chain's observations show 3 to 8 steps earlier and later that is told on sequences that the
/// regression was not fitted to; at most 1, and 0 or less where nothing is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Foresight {
    /// By means of beliefs.
    pub beliefs: f64,
    /// By the observations from two steps earlier to two steps later themselves.
    pub observations: f64,
    /// By the present observation alone.
    pub present: f64,
}

impl Foresight {
    /// How much of what the steps around it add to the present observation beliefs have: about 1 where they are a state, 0 or less where they
    /// know no more than the present shows. `None` where these steps add next to nothing.
    pub fn share_of_motion(&self) -> Option<f64> {
        // A regression that tells nothing may be worse than the mean, by chance.
        let [beliefs, observations, present] =
            [self.beliefs, self.observations, self.present].map(|told| told.max(0.0));
        let added = observations - present;
        (added > ADDED).then(|| (beliefs - present) / added)
    }
}

impl Model {
    /// How much the beliefs of a chain tell of the steps around them, beside what observations do, in some samples; `None` where there are too few whole
    /// steps to tell.
    pub fn foresight(&self, data: &Dataset, samples: &[u32]) -> Result<Option<Foresight>> {
        let found = self.find_dynamics(data, samples)?;
        let Some(components) = found.components() else {
            return Ok(None);
        };
        let some = data.select(samples);
        let all: Vec<u32> = (0..samples.len() as u32).collect();
        let shown = self.shown(&some, &all, components)?;
        let posterior = self.posterior(&some)?;
        let rows = row_of(&shown);
        let beside = |i: usize| -> Option<Vec<f64>> {
            let (sequence, step) = shown.places[i];
            let at = |&by: &isize| {
                let row = rows.get(&(sequence, step.checked_add_signed(by)?))?;
                Some(shown.components[*row].iter().copied())
            };
            Some(
                BESIDE
                    .iter()
                    .map(at)
                    .collect::<Option<Vec<_>>>()?
                    .into_iter()
                    .flatten()
                    .collect(),
            )
        };
        // All are asked at the same moments.
        let whole = |i: usize| beside(i).is_some();
        let told = |point: &dyn Fn(usize) -> Vec<f64>| foretold_by(&shown, &whole, point);
        let (Some(beliefs), Some(observations), Some(present)) = (
            told(&|i| mean_at(&posterior, shown.places[i])),
            told(&|i| beside(i).unwrap_or_default()),
            told(&|i| shown.components[i].clone()),
        ) else {
            return Ok(None);
        };
        Ok(Some(Foresight {
            beliefs,
            observations,
            present,
        }))
    }
}

impl Shown {
    /// The share of variance of what is shown 3 to 8 steps earlier and later that estimated states tell, where there are any.
    pub(crate) fn told_around(&self, states: &[Option<Vec<f64>>]) -> Option<f64> {
        let asked = |i: usize| states[i].is_some();
        let point = |i: usize| states[i].clone().unwrap_or_default();
        foretold_by(self, &asked, &point)
    }
}

fn mean_at(posterior: &Posterior, (sequence, step): (usize, usize)) -> Vec<f64> {
    match posterior.latents() {
        [one] if one.steps().is_some() => one.describe_at(sequence, step).mean,
        many => many[step].describe(sequence).mean,
    }
}

fn row_of(shown: &Shown) -> HashMap<(usize, usize), usize> {
    let places = shown.places.iter().enumerate();
    places.map(|(i, &place)| (place, i)).collect()
}

/// Points and what is shown later, row by row.
type Rows<'a> = (Vec<Vec<f64>>, Vec<&'a [f64]>);

/// How a regression is made: how many times narrower than the points' spread its kernel is, and the penalty.
#[derive(Clone, Copy, Debug)]
struct Ridge {
    narrower: f64,
    penalty: f64,
}

/// A smooth function, where there are too few rows to choose.
const SMOOTH: Ridge = Ridge {
    narrower: 1.0,
    penalty: 1.0,
};
/// What is chosen from, on the sequences that a regression is fitted to, where it is asked how much is there at all.
const NARROWER: [f64; 3] = [1.0, 2.0, 4.0];
const PENALTIES: [f64; 2] = [1.0, 0.03];

/// The mean over distances of what points of some places tell; `None` where there are too few of them.
fn foretold_by(
    shown: &Shown,
    asked: &dyn Fn(usize) -> bool,
    point: &dyn Fn(usize) -> Vec<f64>,
) -> Option<f64> {
    let rows = row_of(shown);
    let mut total = vec![];
    for by in AROUND {
        // Some moments of sequences whose number leaves a rest, and what is shown then.
        let part = |of: usize, rest: usize, most: usize| -> Rows<'_> {
            let moments = shown.places.iter().enumerate();
            let own: Vec<(usize, usize)> = moments
                .filter(|(i, (sequence, _))| sequence % of == rest && asked(*i))
                .filter_map(|(i, &(sequence, step))| {
                    let then = (sequence, step.checked_add_signed(by)?);
                    rows.get(&then).map(|&j| (i, j))
                })
                .collect();
            let every = own.len().div_ceil(most).max(1);
            let some = own.into_iter().step_by(every);
            some.map(|(i, j)| (point(i), &shown.components[j][..]))
                .unzip()
        };
        let (known, others) = (part(2, 0, ROWS), part(2, 1, ROWS));
        if known.0.len() < FEWEST || others.0.len() < FEWEST {
            continue;
        }
        let mut ridge = SMOOTH;
        let halves = (part(4, 0, ROWS / 2), part(4, 2, ROWS / 2));
        if halves.0.0.len() >= FEWEST && halves.1.0.len() >= FEWEST {
            let grid = NARROWER
                .iter()
                .flat_map(|&narrower| PENALTIES.map(|penalty| Ridge { narrower, penalty }));
            let judged = grid.map(|r| (explained(&halves.0, &halves.1, r), r));
            let best = judged.max_by(|a, b| a.0.total_cmp(&b.0));
            ridge = best.map_or(SMOOTH, |(_, ridge)| ridge);
        }
        total.push(explained(&known, &others, ridge));
    }
    (!total.is_empty()).then(|| total.iter().sum::<f64>() / total.len() as f64)
}

/// The share of variance that a kernel ridge regression explains on other points.
fn explained((known, targets): &Rows<'_>, (others, truth): &Rows<'_>, ridge: Ridge) -> f64 {
    let n = known.len();
    let dims = known[0].len();
    let spread: Vec<f64> = (0..dims)
        .map(|d| {
            let mean = known.iter().map(|p| p[d]).sum::<f64>() / n as f64;
            let square = known.iter().map(|p| (p[d] - mean).powi(2)).sum::<f64>() / n as f64;
            square.sqrt().max(1e-9)
        })
        .collect();
    let kernel = |a: &[f64], b: &[f64]| {
        let parts = a.iter().zip(b).zip(&spread);
        let square: f64 = parts.map(|((a, b), s)| ((a - b) / s).powi(2)).sum();
        (-square * ridge.narrower.powi(2) / dims as f64).exp()
    };
    let mut gram = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            gram[i * n + j] = kernel(&known[i], &known[j]);
        }
        gram[i * n + i] += ridge.penalty;
    }
    let Some(factor) = linalg::cholesky(n, &gram) else {
        return 0.0;
    };
    let near: Vec<Vec<f64>> = others
        .iter()
        .map(|p| known.iter().map(|k| kernel(p, k)).collect())
        .collect();
    let (mut left, mut all) = (0.0, 0.0);
    for c in 0..targets[0].len() {
        let mut weights: Vec<f64> = targets.iter().map(|t| t[c]).collect();
        linalg::solve(n, &factor, &mut weights);
        for (near, truth) in near.iter().zip(truth) {
            let predicted: f64 = near.iter().zip(&weights).map(|(a, b)| a * b).sum();
            left += (predicted - truth[c]).powi(2);
            all += truth[c].powi(2);
        }
    }
    1.0 - left / f64::max(all, 1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a point that goes around a circle at a pace of its own is at a step, and its pace.
    fn place(n: usize, t: usize) -> (f64, f64) {
        let share = |by: f64| (n as f64 * by).fract();
        let pace = 0.4 * (share(0.618) - 0.5);
        let angle = std::f64::consts::TAU * share(0.7549) + pace * t as f64;
        (angle, pace)
    }

    /// What is shown of such points is where they are.
    fn turning() -> Shown {
        let places: Vec<(usize, usize)> =
            (0..80).flat_map(|n| (0..20).map(move |t| (n, t))).collect();
        let shown = |&(n, t): &(usize, usize)| {
            let (angle, _) = place(n, t);
            vec![angle.cos(), angle.sin()]
        };
        Shown {
            components: places.iter().map(shown).collect(),
            places,
        }
    }

    #[test]
    fn a_state_tells_what_a_fold_does_not() {
        let shown = turning();
        let told = |point: &dyn Fn(f64, f64) -> Vec<f64>| {
            let at = |i: usize| {
                let (sequence, step) = shown.places[i];
                let (angle, pace) = place(sequence, step);
                point(angle, pace)
            };
            foretold_by(&shown, &|_| true, &at).unwrap()
        };
        let at = |angle: f64, distance: f64| vec![distance * angle.cos(), distance * angle.sin()];
        let observations = told(&|angle, pace| vec![angle.cos(), angle.sin(), 5.0 * pace]);
        let present = told(&|angle, _| at(angle, 1.0));
        let share = |latent: &dyn Fn(f64, f64) -> Vec<f64>| {
            let seen = Foresight {
                beliefs: told(latent),
                observations,
                present,
            };
            seen.share_of_motion().unwrap()
        };
        // Further out is faster, everywhere: a state.
        let state = share(&|angle, pace| at(angle, 1.0 + 2.0 * pace));
        assert!(state > 0.9, "{state}");
        // A pace without its direction; places on two sides at the same point.
        let without_direction = share(&|angle, pace| at(angle, 1.0 + 2.0 * pace.abs()));
        let folded = share(&|angle, pace| at(angle.cos().acos(), 1.0 + 2.0 * pace));
        for fold in [without_direction, folded] {
            assert!(fold < 0.5, "{without_direction} {folded}");
        }
    }

    #[test]
    fn where_steps_around_add_nothing_there_is_no_share() {
        let seen = Foresight {
            beliefs: 0.4,
            observations: 0.42,
            present: 0.4,
        };
        assert!(seen.share_of_motion().is_none());
        // Noise is told by nothing, at times worse than by its mean.
        let noise = Foresight {
            beliefs: -0.2,
            observations: 0.02,
            present: -0.1,
        };
        assert!(noise.share_of_motion().is_none());
    }
}
