//! Whether beliefs of a chain are a state: how much of what observations show some steps later they foretell.
//!
//! The free energy does not see what is missing: a belief that knows places but no velocities, or that has a place twice in a fold, can have as
//! high a free energy as one that has neither fault. What differs is what lies ahead. So beliefs are judged, without labels, by how well a
//! smooth function (kernel ridge regression) of the filtered mean, which has seen nothing of the future, predicts what observations
//! will show; and beside it by what the same regression makes of the last few observations themselves, and of the present one alone.

use crate::Result;
use crate::data::Dataset;
use crate::model::{Model, Shown, linalg};
use std::collections::HashMap;

/// How many steps ahead is foretold.
const AHEAD: [usize; 3] = [2, 4, 8];
/// The observations that a belief is compared with, by steps before the present.
const BEFORE: [usize; 4] = [0, 1, 2, 4];
/// Rows that a regression is fitted to, and judged on, at most; and at least.
const ROWS: usize = 700;
const FEWEST: usize = 10;
/// The past adds something to the present where it adds this share of variance.
const ADDED: f64 = 0.05;

/// The share of variance of what a chain's observations show 2 to 8 steps later that is foretold on sequences that the
/// regression was not fitted to; at most 1, and 0 or less where nothing is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Foresight {
    /// By filtered means.
    pub beliefs: f64,
    /// By the last few observations themselves.
    pub observations: f64,
    /// By the present observation alone.
    pub present: f64,
}

impl Foresight {
    /// How much of what the past adds to the present observation beliefs have: about 1 where they are a state, 0 or less where they
    /// know no more than the present shows. `None` where the past adds next to nothing.
    pub fn share_of_past(&self) -> Option<f64> {
        let added = self.observations - self.present;
        (added > ADDED).then(|| (self.beliefs - self.present) / added)
    }
}

impl Model {
    /// How much the beliefs of a chain foretell, beside what observations do, in some samples; `None` where there are too few whole
    /// steps to tell.
    pub fn foresight(&self, data: &Dataset, samples: &[u32]) -> Result<Option<Foresight>> {
        let found = self.find_dynamics(data, samples)?;
        let Some(components) = found.components() else {
            return Ok(None);
        };
        let some = data.select(samples);
        let all: Vec<u32> = (0..samples.len() as u32).collect();
        let shown = self.shown(&some, &all, components)?;
        let Some(beliefs) = self.foretold_by_beliefs(&some, &shown, true)? else {
            return Ok(None);
        };
        let rows = row_of(&shown);
        let before = |i: usize| {
            let (sequence, step) = shown.places[i];
            let at = |&back: &usize| {
                let known = step
                    .checked_sub(back)
                    .and_then(|s| rows.get(&(sequence, s)));
                shown.components[*known.unwrap_or(&i)].clone()
            };
            BEFORE.iter().flat_map(at).collect()
        };
        let now = |i: usize| shown.components[i].clone();
        let (observations, present) = (
            foretold_by(&shown, &before, true),
            foretold_by(&shown, &now, true),
        );
        let both = observations.zip(present);
        Ok(both.map(|(observations, present)| Foresight {
            beliefs,
            observations,
            present,
        }))
    }

    /// The share of variance of what is shown some steps ahead that a smooth function of filtered means foretells.
    pub(crate) fn foretold(&self, data: &Dataset, shown: &Shown) -> Result<Option<f64>> {
        self.foretold_by_beliefs(data, shown, false)
    }

    fn foretold_by_beliefs(
        &self,
        data: &Dataset,
        shown: &Shown,
        tuned: bool,
    ) -> Result<Option<f64>> {
        let posterior = self.filtered(data)?;
        let latents = posterior.latents();
        let point = |i: usize| {
            let (sequence, step) = shown.places[i];
            match latents {
                [one] if one.steps().is_some() => one.describe_at(sequence, step).mean,
                many => many[step].describe(sequence).mean,
            }
        };
        Ok(foretold_by(shown, &point, tuned))
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

/// A smooth function, for beliefs that are to be told apart early.
const SMOOTH: Ridge = Ridge {
    narrower: 1.0,
    penalty: 1.0,
};
/// What is chosen from, on the sequences that a regression is fitted to, where it is asked how much is there at all.
const NARROWER: [f64; 3] = [1.0, 2.0, 4.0];
const PENALTIES: [f64; 2] = [1.0, 0.03];

/// The mean over distances of what points of places foretell; `None` where there are too few of them.
fn foretold_by(shown: &Shown, point: &dyn Fn(usize) -> Vec<f64>, tuned: bool) -> Option<f64> {
    let rows = row_of(shown);
    // How much is there at all is asked where a belief has some past.
    let first = if tuned { BEFORE[BEFORE.len() - 1] } else { 0 };
    let mut total = vec![];
    for ahead in AHEAD {
        // Some moments of sequences whose number leaves a rest, and what is shown later.
        let part = |of: usize, rest: usize, most: usize| -> Rows<'_> {
            let moments = shown.places.iter().enumerate();
            let own: Vec<(usize, usize)> = moments
                .filter(|(_, (sequence, step))| sequence % of == rest && *step >= first)
                .filter_map(|(i, &(sequence, step))| {
                    rows.get(&(sequence, step + ahead)).map(|&j| (i, j))
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
        if tuned && halves.0.0.len() >= FEWEST && halves.1.0.len() >= FEWEST {
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

    /// Points that go around a circle at a pace of their own: what is shown is where they are.
    fn turning() -> Shown {
        let place = |n: usize, t: usize| {
            let share = |by: f64| (n as f64 * by).fract();
            let pace = 0.4 * (share(0.618) - 0.5);
            (
                std::f64::consts::TAU * share(0.7549) + pace * t as f64,
                pace,
            )
        };
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
    fn a_state_foretells_what_a_place_does_not() {
        let shown = turning();
        let rows = row_of(&shown);
        let place = |i: usize| shown.components[i].clone();
        // Where it is and where it was tell the pace.
        let state = |i: usize| {
            let (sequence, step) = shown.places[i];
            let before = rows[&(sequence, step.saturating_sub(4))];
            let (now, then) = (&shown.components[i], &shown.components[before]);
            let moved = now.iter().zip(then).map(|(a, b)| a - b);
            now.iter().copied().chain(moved).collect()
        };
        let told = |point: &dyn Fn(usize) -> Vec<f64>| foretold_by(&shown, point, true).unwrap();
        let (state, place) = (told(&state), told(&place));
        assert!(state > 0.9 && place < state - 0.1, "{state} {place}");
        let of = |beliefs: f64| Foresight {
            beliefs,
            observations: state,
            present: place,
        };
        assert!(of(state).share_of_past().unwrap() > 0.99);
        assert!(of(place).share_of_past().unwrap() < 0.01);
        let nothing_added = Foresight {
            observations: place,
            ..of(place)
        };
        assert!(nothing_added.share_of_past().is_none());
    }
}
