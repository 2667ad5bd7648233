//! Promises of the `dynamics` start, family by family.

use super::chart::Chart;
use super::states::Layout;
use super::transition::Movement;
use super::{DynamicsInit, STREAM};
use crate::data::Dataset;
use crate::family::Belief;
use crate::graph::{FactorTree, Tying};
use crate::model::Model;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const FAMILIES: [&str; 11] = [
    "gaussian(1)",
    "gaussian(2)",
    "gaussian(3)",
    "gaussian(4)",
    "diagonal_gaussian(2)",
    "beta(2)",
    "gamma(2)",
    "categorical(3)",
    "dirichlet(3)",
    "von_mises(1)",
    "von_mises(1) x gaussian(1)",
];

fn rng() -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    rng.set_stream(STREAM);
    rng
}

/// Swings of springs, each at its own phase and pace, with what hangs on them: a place and its square.
fn swings(steps: usize, backwards: bool) -> Dataset {
    let values = (0..40)
        .flat_map(|n| {
            (0..steps).flat_map(move |t| {
                let t = if backwards { steps - 1 - t } else { t };
                let angle = n as f32 * 1.7 + (0.2 + 0.01 * n as f32) * t as f32;
                [angle.sin(), angle.sin().powi(2) - 0.5]
            })
        })
        .collect();
    Dataset::new()
        .observe_sequence("x", steps, 2, values)
        .unwrap()
}

fn chain(family: &str, data: &Dataset, steps: usize) -> Model {
    Model::builder(FactorTree::sequence(steps, &["x"]).unwrap())
        .families(family)
        .unwrap()
        .tying(Tying::Role)
        .build(data)
        .unwrap()
}

/// How far the beliefs about a sequence are from those about its reversal, read backwards, in standard deviations of the means.
fn apart(model: &Model, steps: usize) -> f64 {
    let means = |data: &Dataset| {
        let posterior = model.posterior(data).unwrap();
        posterior.latents()[0].mean_array()
    };
    let (there, back) = (means(&swings(steps, false)), means(&swings(steps, true)));
    let dim = there.values().len() / (40 * steps);
    let mean = there.values().iter().sum::<f64>() / there.values().len() as f64;
    let spread = there
        .values()
        .iter()
        .map(|x| (x - mean).powi(2))
        .sum::<f64>();
    let mut differences = 0.0;
    for n in 0..40 {
        for t in 0..steps {
            for d in 0..dim {
                let at = |t: usize| (n * steps + t) * dim + d;
                differences += (there.values()[at(t)] - back.values()[at(steps - 1 - t)]).powi(2);
            }
        }
    }
    (differences / spread.max(1e-12)).sqrt()
}

#[test]
fn a_fresh_chain_tells_a_sequence_from_its_reversal() {
    let data = swings(12, false);
    let samples: Vec<u32> = (0..40).collect();
    for family in FAMILIES {
        for init in [DynamicsInit::twist(), DynamicsInit::drift()] {
            let mut model = chain(family, &data, 12);
            model.init_dynamics(&data, &samples, init).unwrap();
            let apart = apart(&model, 12);
            // One coordinate has nothing to turn in: only its random hidden layers differ.
            let least = if family == "gaussian(1)" { 1e-3 } else { 0.02 };
            assert!(apart > least, "{family}, {init:?}: {apart}");
        }
        // Nor do random weights begin alike in both directions.
        assert!(apart(&chain(family, &data, 12), 12) > 1e-3, "{family}");
    }
}

#[test]
fn raw_outputs_say_the_message() {
    for family in FAMILIES {
        let belief: Belief = family.parse().unwrap();
        let prior = belief.prior();
        let chart = Chart::new(&belief, &prior);
        let mut rng = rng();
        for _ in 0..50 {
            let (sum, raw) = chart.message(&chart.draw(&mut rng));
            let mut said = vec![0.0; belief.dim()];
            belief.constrain(&raw, &mut said);
            for (said, meant) in said.iter().zip(&sum) {
                let close = (said - meant).abs() < 1e-9 * (1.0 + meant.abs());
                assert!(close, "{family}: {said} {meant}");
            }
            let whole: Vec<f64> = prior.iter().zip(&sum).map(|(a, b)| a + b).collect();
            belief.check(&whole).unwrap();
        }
    }
}

#[test]
fn forwards_and_then_backwards_is_where_it_was() {
    for dims in [2, 3, 4, 6] {
        let belief: Belief = format!("gaussian({dims})").parse().unwrap();
        let prior = belief.prior();
        let chart = Chart::new(&belief, &prior);
        let mut rng = rng();
        for init in [DynamicsInit::twist(), DynamicsInit::drift()] {
            let quiet = DynamicsInit { noise: 0.0, ..init };
            let movement = Movement::new(dims, quiet, &[0.99, 0.98, 0.97], &mut rng);
            let state = chart.draw(&mut rng);
            let on = movement.moved(&state, true);
            let back = movement.moved(&on, false);
            assert!(
                state
                    .lines
                    .iter()
                    .zip(&on.lines)
                    .any(|(a, b)| (a - b).abs() > 1e-3)
            );
            let pairs = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(pairs(&state.lines, &back.lines), "{dims}, {init:?}");
            assert!(
                pairs(&state.covariance, &back.covariance),
                "{dims}, {init:?}"
            );
        }
    }
}

#[test]
fn a_ring_turns_by_its_own_radius_and_a_place_goes_on_by_its_rate() {
    let belief: Belief = "gaussian(4)".parse().unwrap();
    let prior = belief.prior();
    let chart = Chart::new(&belief, &prior);
    let layout = Layout {
        rings: 1,
        places: 1,
    };
    let movement = Movement::of_layout(4, layout, &[0.5, 0.5, 0.3]);
    assert_eq!(movement.told, 3);
    let state = chart.draw(&mut rng());
    let (x, on) = (&state.lines, movement.moved(&state, true).lines);
    let (radius, on_radius) = (x[0].hypot(x[1]), on[0].hypot(on[1]));
    assert!((radius - on_radius).abs() < 1e-9);
    // What is further out turns further, by nothing of the other two.
    let turned = (x[0] * on[1] - x[1] * on[0]).atan2(x[0] * on[0] + x[1] * on[1]);
    let rate = DynamicsInit::twist().angle / 0.655;
    assert!((turned - rate * (radius - 1.2533)).abs() < 1e-9, "{turned}");
    assert!((on[2] - (x[2] + 0.3 * x[3])).abs() < 1e-9);
    assert_eq!(on[3], x[3]);
}

#[test]
fn the_covariance_goes_along_by_the_derivative() {
    let belief: Belief = "gaussian(4)".parse().unwrap();
    let prior = belief.prior();
    let chart = Chart::new(&belief, &prior);
    let mut rng = rng();
    let quiet = DynamicsInit {
        noise: 0.0,
        ..DynamicsInit::twist()
    };
    let movement = Movement::new(4, quiet, &[], &mut rng);
    let state = chart.draw(&mut rng);
    let step = 1e-6;
    let mut slope = [0.0; 16];
    for j in 0..4 {
        let moved = |by: f64| {
            let mut state = state.clone();
            state.lines[j] += by;
            movement.moved(&state, true).lines
        };
        let (more, less) = (moved(step), moved(-step));
        (0..4).for_each(|i| slope[i * 4 + j] = (more[i] - less[i]) / (2.0 * step));
    }
    let got = movement.moved(&state, true).covariance;
    for i in 0..4 {
        for j in 0..4 {
            let mut sum = 0.0;
            for k in 0..4 {
                for l in 0..4 {
                    sum += slope[i * 4 + k] * state.covariance[k * 4 + l] * slope[j * 4 + l];
                }
            }
            assert!(
                (got[i * 4 + j] - sum).abs() < 1e-6,
                "{} {sum}",
                got[i * 4 + j]
            );
        }
    }
}
