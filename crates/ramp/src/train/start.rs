//! How a chain begins: what its data show decides which states are estimated and taught to its messages, or whether a twist suits them.
//!
//! The free energy does not see which start ends in a fold. What states tell of the steps around them does (see
//! [`Foresight`](crate::infer::Foresight)), and that can be asked of estimated states before anything is learned.

use super::pretraining::PretrainingProblem;
use super::{Event, Observer, TrainSpec, Trainer};
use crate::Result;
use crate::data::Gather;
use crate::model::{DynamicsInit, Geodesic, Model, StateEstimate, state_estimates};
use rayon::prelude::*;

/// Sequences that states are estimated of, and messages pretrained on, at most.
const SEQUENCES: usize = 400;
/// Where estimates tell less than this share of what lies around them there is no movement to begin from: those of weather without its seasons tell 0.05,
/// those of systems with a law 0.47 and more.
const LEAST_TOLD: f64 = 0.2;
/// Iterations of pretraining, at most, and how many times the usual rate they have: what is to be said is definite, so nothing can fold.
const ITERATIONS: usize = 300;
const RATE: f64 = 2.0;

/// What a chain began from, and how well it tells what lies around it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TriedStart {
    /// How many pairs of a latent's numbers were estimated to be rings: places on a circle, each with its velocity as the distance from the origin.
    pub rings: usize,
    /// How many of the other numbers were estimated to be places, the rest being rates of change of the first of these.
    pub places: usize,
    /// The share of variance of what observations show 3 to 8 steps earlier and later that such states tell; at most 1.
    pub told: f64,
}

fn pretraining_iterations(spec: &TrainSpec) -> usize {
    ITERATIONS.min(spec.iterations.max(1))
}

/// How many steps [`start_chain`] takes at most before training begins.
pub fn trial_steps(model: &Model, spec: &TrainSpec) -> usize {
    model
        .state_dims()
        .map_or(0, |_| pretraining_iterations(spec))
}

/// Initialises a chain from what some samples of its data show, and tells which states were estimated, the best first. Messages are
/// pretrained to say these; where they are one ring, which a Gaussian finds from a twist, or no estimate tells anything, messages begin as a twist. The observer watches the
/// pretraining and may stop it, which is [`TrainError::Interrupted`](super::TrainError::Interrupted); it takes all threads unless told otherwise.
pub fn start_chain(
    model: &mut Model,
    data: &dyn Gather,
    samples: &[u32],
    spec: &TrainSpec,
    threads: Option<usize>,
    observer: &mut dyn Observer,
) -> Result<Vec<TriedStart>> {
    let found = model.find_dynamics(data, samples)?;
    let estimated = model
        .state_dims()
        .and_then(|dims| Some((dims, found.components()?, found.geodesics(dims))))
        .filter(|(.., geodesics)| !geodesics.is_empty());
    let Some((dims, components, geodesics)) = estimated else {
        model.init_from(&found, DynamicsInit::twist());
        return Ok(vec![]);
    };
    let chosen: Vec<u32> = samples.iter().copied().take(SEQUENCES).collect();
    let few = data.gather(&chosen)?;
    let all: Vec<u32> = (0..chosen.len() as u32).collect();
    let shown = model.shown(&few, &all, components)?;
    let scores = model.principal_scores(&few, &all, components)?;
    let estimates = geodesics.iter().flat_map(|geodesic| {
        let coordinates: Vec<Vec<f64>> = scores.par_iter().map(|row| geodesic.at(row)).collect();
        let estimates = state_estimates(&shown, &coordinates, dims, &mut found.rng());
        estimates.into_iter().map(move |own| (own, geodesic))
    });
    let estimates: Vec<(StateEstimate, &Geodesic)> = estimates.collect();
    let judged = |(estimate, geodesic): (StateEstimate, _)| {
        let told = shown.told_around(&estimate.points)?;
        let (rings, places) = (estimate.layout.rings, estimate.layout.places);
        let start = TriedStart {
            rings,
            places,
            told,
        };
        Some((start, estimate, geodesic))
    };
    let mut tried: Vec<(TriedStart, StateEstimate, &Geodesic)> =
        estimates.into_par_iter().filter_map(judged).collect();
    tried.sort_by(|(a, ..), (b, ..)| b.told.total_cmp(&a.told));
    // Of each layout the better of its metrics.
    let mut known = vec![];
    tried.retain(|(start, ..)| {
        let layout = (start.rings, start.places);
        let new = !known.contains(&layout);
        known.push(layout);
        new
    });
    let moves = tried.first().filter(|(best, ..)| best.told >= LEAST_TOLD);
    let Some((best, estimate, geodesic)) = moves else {
        model.init_from(&found, DynamicsInit::twist());
        return Ok(vec![]);
    };
    // A ring that fills a latent is found from a twist, and better than where it is taught (R² of 0.96 for 0.7 to 0.84).
    let alone = (best.rings, best.places) == (1, 0) && model.turns();
    match best.rings {
        0 if best.places < dims => model.init_from(&found, DynamicsInit::drift()),
        _ if best.rings == 0 || alone => model.init_from(&found, DynamicsInit::twist()),
        _ => model.init_from_estimate(&found, geodesic, estimate),
    }
    if !alone {
        let targets = model.pretraining_targets(&shown, estimate, chosen.len());
        let mut short = spec.clone().lasting(pretraining_iterations(spec));
        short.learning_rate *= RATE;
        (short.holdout, short.validation) = (0.0, 0.0);
        short.patience = None;
        short.batch = short.batch.filter(|&b| b < all.len());
        let mut problem = PretrainingProblem::new(model, &few, &targets, &short)?;
        let mut trainer =
            Trainer::new(short)?.observer(|event: &Event<'_, Model>| observer.observe(event));
        if let Some(threads) = threads {
            trainer = trainer.threads(threads);
        }
        trainer.train(&mut problem)?;
    }
    Ok(tried.into_iter().map(|(start, ..)| start).collect())
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
        // One place with its rate, two places, or a ring: what turns both ways is a ring.
        assert_eq!(tried.len(), 3);
        assert!(tried[0].told >= tried[1].told);
        assert_eq!((tried[0].rings, tried[0].places), (1, 0));
        // Networks that begin alike hardly ever drift apart.
        let (twin, _) = fitted(true);
        let (told, not_told) = (apart(&model), apart(&twin));
        assert!(
            told > 0.3 && told > 2.0 * not_told,
            "{told} {not_told} {tried:?}"
        );
    }
}
