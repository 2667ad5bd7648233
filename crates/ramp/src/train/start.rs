//! How a chain begins to learn: states are guessed from what its observations show, the guess that tells most of the steps around
//! it is chosen, and messages learn to say it before they learn by the free energy.
//!
//! No guess suits every system, and the free energy does not see what is missing (see [`Foresight`](crate::infer::Foresight), by
//! whose measure guesses are compared).

use super::teach::TeachProblem;
use super::{Event, Observer, TrainSpec, Trainer};
use crate::Result;
use crate::data::Dataset;
use crate::infer::told_around;
use crate::model::{DynamicsInit, Guess, Model, guesses};
use std::fmt;

/// Sequences that states are guessed of and taught from.
const SEQUENCES: usize = 400;
/// Iterations of teaching, and how many times the usual rate they have: what is taught is definite, so nothing can fold.
const ITERATIONS: usize = 150;
const RATE: f64 = 2.0;

/// One guess of what a state is made of, and how it did.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TriedStart {
    /// Pairs of coordinates that hold a place on a circle and how fast it turns.
    pub circles: usize,
    /// Pairs of coordinates that hold what is shown and its rate of change.
    pub lines: usize,
    /// Coordinates that hold what is shown alone.
    pub places: usize,
    /// The share of variance of what observations show 3 to 8 steps earlier and later that the guess tells; at most 1.
    pub told: f64,
}

impl fmt::Display for TriedStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            n => Some(format!("{n} {what}s")),
        };
        let parts = [
            some(self.circles, "circle"),
            some(self.lines, "line"),
            some(self.places, "place"),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Initialises a chain by the best guess of its states from some samples of its data, and tells how each guess did, the best first.
/// Where latents have no two coordinates on lines, or sequences are too short to show rates of change, nothing is guessed. The observer watches the
/// teaching and may stop it, which is [`TrainError::Interrupted`](super::TrainError::Interrupted); it takes all threads unless told otherwise.
pub fn start_chain(
    model: &mut Model,
    data: &Dataset,
    samples: &[u32],
    spec: &TrainSpec,
    threads: Option<usize>,
    observer: &mut dyn Observer,
) -> Result<Vec<TriedStart>> {
    let found = model.find_dynamics(data, samples)?;
    model.init_from(&found, DynamicsInit::twist());
    let Some(components) = found.components().filter(|_| model.has_rates()) else {
        return Ok(vec![]);
    };
    let chosen: Vec<u32> = samples.iter().copied().take(SEQUENCES).collect();
    let few = data.select(&chosen);
    let all: Vec<u32> = (0..chosen.len() as u32).collect();
    let shown = model.shown(&few, &all, components)?;
    let judged = |guess: Guess| Some((told_around(&shown, &guess.points)?, guess));
    let mut tried: Vec<(f64, Guess)> = guesses(&shown, model.lines())
        .into_iter()
        .filter_map(judged)
        .collect();
    tried.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let Some((_, best)) = tried.first() else {
        return Ok(vec![]);
    };
    model.init_guess(&found, best);
    let lessons = model.lessons(&shown, best, chosen.len());
    let mut short = spec.clone().lasting(ITERATIONS.min(spec.iterations.max(1)));
    short.learning_rate *= RATE;
    short.patience = None;
    short.batch = short.batch.filter(|&b| b < all.len());
    let mut problem = TeachProblem::new(model, &few, &lessons, &short)?;
    let mut trainer =
        Trainer::new(short)?.observer(|event: &Event<'_, Model>| observer.observe(event));
    if let Some(threads) = threads {
        trainer = trainer.threads(threads);
    }
    trainer.train(&mut problem)?;
    let start = |(told, guess): &(f64, Guess)| TriedStart {
        circles: guess.shape.circles,
        lines: guess.shape.lines,
        places: guess.shape.places,
        told: *told,
    };
    Ok(tried.iter().map(start).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{FactorTree, Tying};
    use crate::model::Initialisation;
    use crate::train::Control;

    const STEPS: usize = 20;
    const SEQUENCES: usize = 200;

    /// Points that go around a circle at a pace of their own, one way or the other: backwards they look as forwards.
    fn turning(backwards: bool) -> Dataset {
        let share = |n: usize, by: f32| (n as f32 * by).fract();
        let values = (0..SEQUENCES)
            .flat_map(|n| (0..STEPS).map(move |t| (n, t)))
            .flat_map(|(n, t)| {
                let t = if backwards { STEPS - 1 - t } else { t };
                let pace = 0.8 * (share(n, 0.618) - 0.5);
                let angle = std::f32::consts::TAU * share(n, 0.7549) + pace * t as f32;
                [angle.cos(), angle.sin()]
            })
            .collect();
        Dataset::new()
            .observe_sequence("x", STEPS, 2, values)
            .unwrap()
    }

    /// A chain as `ramp fit` begins and trains it; `alike` gives the backward network the weights of the forward one.
    fn fitted(alike: bool) -> (Model, Vec<TriedStart>) {
        let data = turning(false);
        let mut model = Model::builder(FactorTree::sequence(STEPS, &["x"]).unwrap())
            .families("gaussian(2)")
            .unwrap()
            .tying(Tying::Role)
            .init(Initialisation::Dynamics)
            .build(&data)
            .unwrap();
        let spec = TrainSpec {
            batch: Some(50),
            ..TrainSpec::for_chain(240)
        };
        let all: Vec<u32> = (0..SEQUENCES as u32).collect();
        let tried = start_chain(&mut model, &data, &all, &spec, None, &mut |_: &Event<
            '_,
        >| {
            Control::Continue
        })
        .unwrap();
        if alike {
            let span = |key: &str| {
                let mut networks = model.networks.iter();
                networks.find(|n| n.key == key).unwrap().span.clone()
            };
            let (from, to) = (span("forward"), span("backward"));
            model.parameters_mut().copy_within(from, to.start);
        }
        Trainer::new(spec).unwrap().fit(&mut model, &data).unwrap();
        (model, tried)
    }

    /// How far beliefs about sequences are from those about their reversals, read backwards, in standard deviations.
    fn apart(model: &Model) -> f64 {
        let means = |backwards| {
            let posterior = model.posterior(&turning(backwards)).unwrap();
            posterior.latents()[0].mean_array().into_values()
        };
        let (there, back) = (means(false), means(true));
        let mut differences = 0.0;
        for n in 0..SEQUENCES {
            for t in 0..STEPS {
                for d in 0..2 {
                    let at = |t: usize| (n * STEPS + t) * 2 + d;
                    differences += (there[at(t)] - back[at(STEPS - 1 - t)]).powi(2);
                }
            }
        }
        (differences / there.iter().map(|x| x * x).sum::<f64>()).sqrt()
    }

    #[test]
    fn a_fitted_chain_tells_a_sequence_from_its_reversal() {
        let (model, tried) = fitted(false);
        // A line, a circle or two places; of what turns both ways it is a circle.
        assert_eq!(tried.len(), 3);
        assert!(tried[0].told >= tried[1].told);
        assert_eq!(tried[0].to_string(), "1 circle");
        // Networks that begin alike hardly ever drift apart.
        let (twin, _) = fitted(true);
        let (told, not_told) = (apart(&model), apart(&twin));
        assert!(
            told > 0.3 && told > 2.0 * not_told,
            "{told} {not_told} {tried:?}"
        );
    }
}
