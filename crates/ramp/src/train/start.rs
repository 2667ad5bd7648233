//! Which of several starts of a chain to train from: each learns for a while, and the one whose present foretells the future best
//! goes on.
//!
//! No start suits every system, and the free energy does not see what is missing (see [`Foresight`](crate::infer::Foresight), by
//! whose measure starts are compared).

use super::{Event, Observer, TrainSpec, Trainer};
use crate::Result;
use crate::data::Gather;
use crate::model::{DynamicsInit, Model};

/// Sequences that starts learn from.
const SEQUENCES: usize = 400;
/// The part of all iterations that each start learns for, within bounds. In four dimensions fewer than a hundred do not tell starts
/// apart: those of a ball in a box told equally little after 66.
const PART: usize = 6;
const ITERATIONS: std::ops::RangeInclusive<usize> = 120..=200;

/// The starts.
const TRIED: [fn() -> DynamicsInit; 2] = [DynamicsInit::twist, DynamicsInit::drift];

/// One start and how it did.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TriedStart {
    /// The start.
    pub init: DynamicsInit,
    /// The share of variance of what observations show that was foretold, over a few distances; at most 1.
    pub foretold: f64,
    /// The mean free energy of its last iterations, in nats.
    pub free_energy: f64,
}

/// Iterations that each start learns for.
fn trial_iterations(spec: &TrainSpec) -> usize {
    let iterations = (spec.iterations / PART).clamp(*ITERATIONS.start(), *ITERATIONS.end());
    iterations.min(spec.iterations.max(1))
}

/// How many steps [`start_chain`] takes at most before training begins: none where only one start suits the latents.
pub fn trial_steps(model: &Model, spec: &TrainSpec) -> usize {
    match model.has_rates() {
        true => TRIED.len() * trial_iterations(spec),
        false => 0,
    }
}

/// Initialises a chain by the best of the starts that suit its latents, from some samples of its data, and tells how each did, the best first.
/// Where only one start suits them, nothing is tried. The observer watches the short trainings and may stop them, which is
/// [`TrainError::Interrupted`](super::TrainError::Interrupted); they take all threads unless told otherwise.
pub fn start_chain(
    model: &mut Model,
    data: &dyn Gather,
    samples: &[u32],
    spec: &TrainSpec,
    threads: Option<usize>,
    observer: &mut dyn Observer,
) -> Result<Vec<TriedStart>> {
    let found = model.find_dynamics(data, samples)?;
    let components = found.components().filter(|_| model.has_rates());
    let Some(components) = components else {
        model.init_from(&found, DynamicsInit::twist());
        return Ok(vec![]);
    };
    let chosen: Vec<u32> = samples.iter().copied().take(SEQUENCES).collect();
    let few = data.gather(&chosen)?;
    let all: Vec<u32> = (0..chosen.len() as u32).collect();
    let mut short = spec.clone().lasting(trial_iterations(spec));
    (short.holdout, short.validation) = (0.0, 0.0);
    short.patience = None;
    short.batch = short.batch.filter(|&b| b < all.len());
    let shown = model.shown(&few, &all, components)?;
    let mut tried: Vec<(TriedStart, Vec<f32>)> = vec![];
    for init in TRIED.map(|init| init()) {
        let mut candidate = model.clone();
        candidate.init_from(&found, init);
        let begun = candidate.parameters().to_vec();
        let mut trainer = Trainer::new(short.clone())?
            .observer(|event: &Event<'_, Model>| observer.observe(event));
        if let Some(threads) = threads {
            trainer = trainer.threads(threads);
        }
        let fit = trainer.fit(&mut candidate, &few)?;
        drop(trainer);
        let last = fit.records.len().saturating_sub(10);
        let last: Vec<f64> = fit.records[last..].iter().map(|r| r.free_energy).collect();
        let start = TriedStart {
            init,
            foretold: candidate.foretold(&few, &shown)?.unwrap_or(0.0),
            free_energy: last.iter().sum::<f64>() / last.len().max(1) as f64,
        };
        tried.push((start, begun));
    }
    tried.sort_by(|(a, _), (b, _)| b.foretold.total_cmp(&a.foretold));
    if let Some((_, begun)) = tried.first() {
        model.parameters_mut().copy_from_slice(begun);
    }
    Ok(tried.into_iter().map(|(start, _)| start).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
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
        assert_eq!(tried.len(), 2);
        assert!(tried[0].foretold >= tried[1].foretold);
        // Networks that begin alike hardly ever drift apart.
        let (twin, _) = fitted(true);
        let (told, not_told) = (apart(&model), apart(&twin));
        assert!(
            told > 0.3 && told > 2.0 * not_told,
            "{told} {not_told} {tried:?}"
        );
    }
}
