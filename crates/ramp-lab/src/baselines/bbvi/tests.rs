//! BBVI against finite differences, a naive free energy and the analytic mean-field posterior.

use super::*;
use crate::experiments::linear_tree::data::LinearTree;
use crate::metrics::mean;
use ramp::train::{Control, Event, Trainer};

/// A tree of three latents and four observations with random networks, and data for it.
fn small(estimator: Estimator, samples: usize) -> Bbvi {
    let shape = LinearTree {
        depth: 3,
        ..LinearTree::default()
    };
    let data = shape.sample(5, 3, 0).unwrap();
    let tree = GenerativeTree::random(shape.parents().unwrap(), 3, 5, 8).unwrap();
    let spec = BbviSpec {
        samples,
        estimator,
        seed: 4,
        ..BbviSpec::default()
    };
    let mut bbvi = Bbvi::new(tree, &data.observations, spec).unwrap();
    let local = bbvi.local();
    for (i, number) in bbvi.parameters[..local].iter_mut().enumerate() {
        *number = 0.4 * ((i as f32) * 1.7).sin() - 0.2;
    }
    bbvi
}

/// The free energy summed over samples, the gradient of posteriors, and that of weights summed over samples, at one step's draws.
fn at(bbvi: &Bbvi) -> (f64, Vec<f32>, Vec<f32>) {
    let (mut bbvi, mut gradient) = (bbvi.clone(), vec![f32::NAN; bbvi.parameters.len()]);
    let rows = bbvi.rows as f64;
    let value = bbvi.step(0, &mut gradient).unwrap();
    let weights = gradient.split_off(bbvi.local());
    let weights = weights.iter().map(|&w| (f64::from(w) * rows) as f32);
    (value * rows, gradient, weights.collect())
}

/// The analytic free energy of a linear tree with unit weights and noise under factorised posteriors.
fn linear_free_energy(bbvi: &Bbvi, parents: &[Option<usize>]) -> f64 {
    let latents = bbvi.tree.latents();
    let log_2pi = (2.0 * std::f64::consts::PI).ln();
    let rows = bbvi.parameters[..bbvi.local()]
        .chunks(2 * latents)
        .zip(bbvi.observations.chunks(bbvi.tree.observed()));
    let mut total = 0.0;
    for (local, x) in rows {
        let moments = |node: usize| match node < latents {
            true => (
                f64::from(local[node]),
                (2.0 * f64::from(local[latents + node])).exp(),
            ),
            false => (f64::from(x[node - latents]), 0.0),
        };
        for (node, parent) in parents.iter().enumerate() {
            let (m, s) = moments(node);
            let (pm, ps) = parent.map_or((0.0, 0.0), moments);
            total += -0.5 * ((m - pm).powi(2) + s + ps) - 0.5 * log_2pi;
        }
        total += local[latents..]
            .iter()
            .map(|&r| f64::from(r) + 0.5 * (1.0 + log_2pi))
            .sum::<f64>();
    }
    total
}

#[test]
fn the_gradient_of_weights_and_the_pathwise_one_are_those_of_finite_differences() {
    // 37 draws: two full lanes and a padded one.
    let bbvi = small(Estimator::Pathwise, 37);
    let (_, local, weights) = at(&bbvi);
    let step = 1e-3;
    let check = |found: f32, bend: &dyn Fn(&mut Bbvi, f32)| {
        let [high, low] = [step, -step].map(|by| {
            let mut moved = bbvi.clone();
            bend(&mut moved, by);
            at(&moved).0
        });
        let expected = (high - low) / (2.0 * f64::from(step));
        assert!(
            (f64::from(found) - expected).abs() < 2e-2 * (1.0 + expected.abs()),
            "{found} {expected}"
        );
    };
    for i in 0..local.len() {
        check(local[i], &|b, by| b.parameters[i] += by);
    }
    for i in 0..weights.len() {
        check(weights[i], &|b, by| {
            let at = b.local() + i;
            b.parameters[at] += by;
        });
    }
    assert!(weights.iter().filter(|w| w.abs() > 1e-3).count() > weights.len() / 2);
}

#[test]
fn both_estimators_have_the_same_mean_and_the_free_energy_is_right() {
    let shape = LinearTree {
        depth: 3,
        ..LinearTree::default()
    };
    let parents = shape.parents().unwrap();
    let many = |estimator| {
        let mut bbvi = small(estimator, 100_000);
        bbvi.tree = GenerativeTree::linear(parents.clone(), 3, 1.0).unwrap();
        bbvi.parameters.truncate(bbvi.local());
        bbvi.spec.learn = false;
        bbvi
    };
    let (pathwise, reinforce) = (many(Estimator::Pathwise), many(Estimator::Reinforce));
    let exact = linear_free_energy(&pathwise, &parents);
    let ((value, through, _), (_, score, _)) = (at(&pathwise), at(&reinforce));
    assert!((value - exact).abs() < 0.1, "{value} {exact}");
    for (i, (a, b)) in through.iter().zip(&score).enumerate() {
        let mut moved = pathwise.clone();
        moved.parameters[i] += 1e-3;
        let analytic = (linear_free_energy(&moved, &parents) - exact) / 1e-3;
        assert!(
            (f64::from(*a) - analytic).abs() < 0.03 * (1.0 + analytic.abs()),
            "{a} {analytic}"
        );
        assert!(
            (f64::from(*b) - analytic).abs() < 0.06 * (1.0 + analytic.abs()),
            "{b} {analytic}"
        );
    }
}

#[test]
fn with_known_linear_parameters_the_optimum_is_the_mean_field_posterior() {
    let shape = LinearTree::default();
    let data = shape.sample(40, 5, 0).unwrap();
    let gaussian = shape.gaussian().unwrap();
    let (posterior, covariance) = (gaussian.posterior(&[]).unwrap(), gaussian.covariance());
    let exact = posterior.means(&data.observations).unwrap();
    for (estimator, near) in [(Estimator::Pathwise, 0.02), (Estimator::Reinforce, 0.04)] {
        let tree = GenerativeTree::linear(shape.parents().unwrap(), 7, 1.0).unwrap();
        let spec = BbviSpec {
            iterations: 1500,
            learning_rate: 0.05,
            decay: Decay::Cosine { to: 0.0 },
            estimator,
            learn: false,
            ..BbviSpec::default()
        };
        let before = tree.clone();
        let mut bbvi = Bbvi::new(tree, &data.observations, spec.clone()).unwrap();
        Trainer::new(spec.train())
            .unwrap()
            .train(&mut bbvi)
            .unwrap();
        assert_eq!(bbvi.tree(), before, "a known model stays as it is");
        for k in 0..7 {
            // The analytic posterior is stated for latents scaled to unit variance.
            let variance = covariance[(k, k)];
            let expected = posterior.mean_field_variances()[k] * variance;
            let found = mean(&bbvi.variances(k));
            assert!(
                (found / expected - 1.0).abs() < near,
                "{estimator:?} z{}: {found} {expected}",
                k + 1
            );
            let off = bbvi
                .means(k)
                .iter()
                .zip(&exact[k])
                .map(|(m, e)| (m - e * variance.sqrt()).abs())
                .fold(0.0, f64::max);
            assert!(off < 3.0 * near, "{estimator:?} z{}: {off}", k + 1);
        }
    }
}

#[test]
fn threads_and_interruptions_change_nothing() {
    let shape = LinearTree::default();
    let data = shape.sample(150, 5, 0).unwrap();
    let spec = BbviSpec {
        iterations: 12,
        samples: 20,
        ..BbviSpec::default()
    };
    let start = |rows: usize| {
        let tree = GenerativeTree::random(shape.parents().unwrap(), 7, 16, 1).unwrap();
        let some = |row: &Vec<f32>| row[..rows].to_vec();
        let rows: Vec<Vec<f32>> = data.observations.iter().map(some).collect();
        Bbvi::new(tree, &rows, spec.clone()).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let on = |threads: usize, until: usize, bbvi: &mut Bbvi| {
        Trainer::new(spec.train())
            .unwrap()
            .threads(threads)
            .checkpoints(folder.path(), 100)
            .observer(move |event: &Event<'_, Bbvi>| match event {
                Event::Step { record, .. } if record.iteration == until => Control::Stop,
                _ => Control::Continue,
            })
            .train(bbvi)
    };
    let mut whole = start(150);
    let fit = Trainer::new(spec.train())
        .unwrap()
        .threads(1)
        .train(&mut whole)
        .unwrap();
    assert!(on(3, 7, &mut start(150)).is_err(), "it was stopped");
    let mut resumed = start(150);
    assert_eq!(on(2, 12, &mut resumed).unwrap().records, fit.records);
    assert_eq!(whole.parameters, resumed.parameters);
    assert_eq!(whole.tree(), resumed.tree());
    assert_ne!(whole.tree(), start(150).tree());

    let message = on(1, 12, &mut start(10)).unwrap_err().to_string();
    assert!(
        message.contains("made with 150 samples but the data now has 10"),
        "{message}"
    );
}

#[test]
fn settings_without_a_meaning_are_refused() {
    let parents = LinearTree::default().parents().unwrap();
    let tree = || GenerativeTree::linear(parents.clone(), 7, 1.0).unwrap();
    let rows = vec![vec![0.0; 3]; 8];
    let refused = |spec: BbviSpec| Bbvi::new(tree(), &rows, spec).is_err();
    let good = BbviSpec::default();
    assert!(!refused(good.clone()));
    assert!(refused(BbviSpec {
        samples: 0,
        ..good.clone()
    }));
    assert!(refused(BbviSpec {
        samples: 1,
        estimator: Estimator::Reinforce,
        ..good.clone()
    }));
    assert!(refused(BbviSpec {
        learning_rate: f64::NAN,
        ..good.clone()
    }));
    assert!(Bbvi::new(tree(), &rows[..7], good.clone()).is_err());
    assert!(Bbvi::new(tree(), &vec![vec![]; 8], good).is_err());
    assert!(GenerativeTree::linear(parents.clone(), 0, 1.0).is_err());
    assert!(GenerativeTree::linear(vec![None, None, Some(0)], 2, 1.0).is_err());
    assert!(
        GenerativeTree::linear(vec![None, Some(0), Some(1)], 1, 1.0).is_err(),
        "an observed parent"
    );
}
