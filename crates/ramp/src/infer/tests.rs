//! Scores and imputations against the objective itself and against the textbook.

use super::*;
use crate::data::Dataset;
use crate::graph::FactorTree;
use crate::graph::Tying;
use crate::model::Model;
use crate::model::Workspace;
use crate::train::{TrainSpec, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A star of one latent with unit-variance links to `leaves` observations, some of them missing.
fn star(leaves: usize, rows: usize, missing: f64, seed: u64) -> (Vec<f64>, Vec<Vec<f32>>, Dataset) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let z: Vec<f64> = (0..rows).map(|_| normal()).collect();
    let x: Vec<Vec<f32>> = (0..leaves)
        .map(|_| z.iter().map(|z| (z + normal()) as f32).collect())
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed + 1000);
    let mut data = Dataset::new();
    for (i, values) in x.iter().enumerate() {
        let seen = values
            .iter()
            .map(|&v| {
                if rng.random_bool(missing) {
                    f32::NAN
                } else {
                    v
                }
            })
            .collect();
        data = data.observe(format!("x{}", i + 1), 1, seen).unwrap();
    }
    (z, x, data)
}

fn trained(data: &Dataset, leaves: usize) -> Model {
    let mut model = Model::builder(FactorTree::star(leaves).unwrap())
        .build(data)
        .unwrap();
    let spec = TrainSpec {
        iterations: 300,
        learning_rate: 0.02,
        batch: Some(500),
        warmup: 30,
        decay: crate::train::Decay::Cosine { to: 0.0 },
        ..TrainSpec::default()
    };
    Trainer::new(spec).unwrap().fit(&mut model, data).unwrap();
    model
}

#[test]
fn a_score_is_the_free_energy_and_minds_its_own_row() {
    let (_, _, data) = star(4, 300, 0.3, 1);
    let model = Model::builder(FactorTree::star(4).unwrap())
        .seed(3)
        .build(&data)
        .unwrap();
    let support = SupportSet::new(&model, &data, 1000).unwrap();
    let whole = support.scores(&model, &data).unwrap();
    // One sample at a time, by the objective's own words.
    let bound = model.bind(&data).unwrap();
    for row in [0u32, 7, 299] {
        let mut samples: Vec<u32> = vec![row];
        samples.extend(0..300);
        let batch = model.batch(&bound, &samples, None);
        let drawn: Vec<u32> = (1..=300).collect();
        let mixture = crate::objective::Mixture {
            drawn: Some(&drawn),
            population: Some(1000),
            scored: Some(1),
        };
        let value = model
            .evaluate(&batch, mixture, None, &mut Workspace::default())
            .unwrap()
            .clone();
        let (a, b) = (whole.latent(0)[row as usize], value.samples[0]);
        assert!((a - b).abs() < 1e-6, "{a} or {b}");
    }
}

#[test]
fn a_sample_of_the_reference_is_scored_as_if_it_were_not_in_it() {
    let (_, _, data) = star(4, 60, 0.3, 4);
    let model = Model::builder(FactorTree::star(4).unwrap())
        .seed(3)
        .build(&data)
        .unwrap();
    let own = SupportSet::new(&model, &data, 60)
        .unwrap()
        .own_scores(&model)
        .unwrap();
    // The whole data set, in which every sample counts itself once, by the objective's own words.
    let bound = model.bind(&data).unwrap();
    let all: Vec<u32> = (0..60).collect();
    let value = model
        .evaluate(
            &model.batch(&bound, &all, None),
            crate::objective::Mixture::default(),
            None,
            &mut Workspace::default(),
        )
        .unwrap()
        .clone();
    for (row, (a, b)) in own.latent(0).iter().zip(&value.samples).enumerate() {
        assert!((a - b).abs() < 1e-6, "row {row}: {a} or {b}");
    }
}

#[test]
fn what_a_message_brings_is_lost_without_it() {
    let (_, _, data) = star(3, 400, 0.0, 2);
    let model = Model::builder(FactorTree::star(3).unwrap())
        .seed(5)
        .build(&data)
        .unwrap();
    let support = SupportSet::new(&model, &data, 400).unwrap();
    let contributions = support.contributions(&model, &data).unwrap();
    let whole = support.scores(&model, &data).unwrap().means()[0];
    // Leaving a leaf out is having none of it in the data.
    let mut without = Dataset::new();
    for (i, name) in ["x1", "x2", "x3"].iter().enumerate() {
        let mut values = vec![0.0; 400];
        for (row, v) in values.iter_mut().enumerate() {
            data.observation(name)
                .unwrap()
                .write(row, std::slice::from_mut(v), 1);
            if i == 1 {
                *v = f32::NAN;
            }
        }
        without = without.observe(*name, 1, values).unwrap();
    }
    let less = SupportSet::new(&model, &without, 400)
        .unwrap()
        .scores(&model, &without)
        .unwrap()
        .means()[0];
    assert!(
        (contributions[0][1] - (whole - less)).abs() < 1e-6,
        "{} or {}",
        contributions[0][1],
        whole - less
    );
}

#[test]
fn imputations_come_close_to_the_conditional_mean() {
    let leaves = 5;
    let (_, _, data) = star(leaves, 4000, 0.1, 3);
    let model = trained(&data, leaves);
    let support = SupportSet::new(&model, &data, 4000).unwrap();
    let imputer = Imputer::new(&model, &support, &data).unwrap();
    let (_, x, _) = star(leaves, 500, 0.0, 9);
    // The first leaf is missing throughout; the conditional mean given four others is their sum over five.
    let mut seen = Dataset::new()
        .observe("x1", 1, vec![f32::NAN; 500])
        .unwrap();
    for i in 1..leaves {
        seen = seen
            .observe(format!("x{}", i + 1), 1, x[i].clone())
            .unwrap();
    }
    let conditionals = imputer.conditionals(&model, &seen).unwrap();
    let mut value = [0.0];
    let values: Vec<f64> = imputer
        .candidates(0)
        .iter()
        .map(|&n| {
            data.observation("x1")
                .unwrap()
                .write(n as usize, &mut value, 1);
            f64::from(value[0])
        })
        .collect();
    let (mut ours, mut exact) = (0.0, 0.0);
    for row in 0..500 {
        let mean: f64 = conditionals
            .weights(0, row)
            .iter()
            .zip(&values)
            .map(|(w, v)| w * v)
            .sum();
        let best: f64 = (1..leaves).map(|i| f64::from(x[i][row])).sum::<f64>() / leaves as f64;
        ours += (mean - f64::from(x[0][row])).powi(2);
        exact += (best - f64::from(x[0][row])).powi(2);
    }
    assert!(
        (ours / exact).sqrt() < 1.05,
        "{} times the exact error",
        (ours / exact).sqrt()
    );
}

#[test]
fn filtering_step_by_step_is_filtering_at_once() {
    let (steps, rows) = (7, 12);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for (family, hidden) in [
        ("gaussian(2)", vec![128]),
        ("von_mises*gaussian(1)", vec![8]),
    ] {
        let tree = FactorTree::sequence(steps, &["heart", "picture"]).unwrap();
        let mut data = Dataset::new();
        let mut seen = vec![];
        for (name, features) in [("heart", 1), ("picture", 300)] {
            let cells: Vec<Option<Vec<f32>>> = (0..rows * steps)
                .map(|_| {
                    let values = (0..features).map(|_| rng.random_range(-1.0..1.0)).collect();
                    rng.random_bool(0.7).then_some(values)
                })
                .collect();
            let missing = vec![f32::NAN; features];
            let values = cells.iter().flat_map(|s| s.as_ref().unwrap_or(&missing));
            let values = values.copied().collect();
            data = data
                .observe_sequence(name, steps, features, values)
                .unwrap();
            seen.push(cells);
        }
        let network = crate::network::NetworkSpec::Mlp(crate::network::MlpSpec {
            hidden,
            ..Default::default()
        });
        let model = Model::builder(tree)
            .tying(Tying::Role)
            .families(family)
            .unwrap()
            .message_network(network.clone())
            .observation_network(network)
            .build(&data)
            .unwrap();
        let whole = model.filtered(&data).unwrap();
        let mut filter = Filter::new(&model).unwrap();
        for row in 0..rows {
            filter.reset();
            for t in 0..steps {
                let now = [0, 1].map(|k| seen[k][row * steps + t].as_deref());
                let belief = filter.step(&now).unwrap();
                let exact = whole.latents()[0].natural_at(row, t);
                for (a, b) in belief.natural().iter().zip(exact) {
                    assert!(
                        (a - b).abs() < 1e-6 * (1.0 + b.abs()),
                        "{family} step {t}: {a} or {b}"
                    );
                }
            }
        }
        let wrong = |step: &[Option<&[f32]>]| Filter::new(&model).unwrap().step(step).is_err();
        assert!(wrong(&[None]));
        assert!(wrong(&[Some(&[1.0, 2.0]), None]));
        assert!(wrong(&[Some(&[f32::NAN]), None]));
    }
    let data = (1..=4).fold(Dataset::new(), |d, i| {
        d.observe(format!("x{i}"), 1, vec![0.0; 3]).unwrap()
    });
    let tree = Model::builder(FactorTree::balanced(3, 2).unwrap());
    assert!(Filter::new(&tree.build(&data).unwrap()).is_err());
}

#[test]
fn beyond_its_end_a_sequence_goes_on_as_if_nothing_were_observed() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (rows, steps, ahead) = (6, 5, 3);
    let numbers = |rng: &mut ChaCha8Rng, length: usize| -> Vec<f32> {
        let value = |t: usize| {
            if t < length {
                rng.random_range(-1.0..1.0)
            } else {
                f32::NAN
            }
        };
        (0..steps + ahead).map(value).collect()
    };
    let lengths: Vec<u32> = (0..rows as u32).map(|n| 2 + n % 4).collect();
    let series = |rng: &mut ChaCha8Rng| -> Vec<Vec<f32>> {
        lengths.iter().map(|&l| numbers(rng, l as usize)).collect()
    };
    let (a, b) = (series(&mut rng), series(&mut rng));
    let data = |width: usize| {
        let cut = |x: &[Vec<f32>]| x.iter().flat_map(|s| s[..width].to_vec()).collect();
        let data = Dataset::new()
            .observe_sequence("a", width, 1, cut(&a))
            .unwrap();
        data.observe_sequence("b", width, 1, cut(&b)).unwrap()
    };
    let known = data(steps).with_lengths(lengths.clone()).unwrap();
    let model = Model::builder(FactorTree::sequence(steps, &["a", "b"]).unwrap())
        .tying(Tying::Role)
        .families("gaussian(2)")
        .unwrap()
        .build(&known)
        .unwrap();
    // The same sequences with empty steps behind, by the filter that sees them whole.
    let whole = model.unrolled(steps + ahead).unwrap();
    let exact = whole.filtered(&data(steps + ahead)).unwrap();
    let mut forecaster = Forecaster::new(&model).unwrap();
    let support = SeriesSupport::new(&model, &known, 1000).unwrap();
    assert_eq!(
        support.places(0).len(),
        lengths.iter().sum::<u32>() as usize
    );
    let imputed = SupportSet::new(&model, &known, 6).unwrap();
    let imputer = Imputer::new(&model, &imputed, &known).unwrap();
    for (row, &length) in lengths.iter().enumerate() {
        let beliefs = forecaster.beliefs(&known, row, ahead).unwrap();
        for (h, belief) in beliefs.iter().enumerate() {
            let expected = exact.latents()[0].natural_at(row, length as usize + h);
            for (x, y) in belief.natural().iter().zip(expected) {
                assert!((x - y).abs() < 1e-6 * (1.0 + y.abs()), "{x} or {y}");
            }
        }
    }
    // At a step that both have observations for, weights are those of the imputer among its own candidates.
    let mut gap = a.clone();
    gap[3][1] = f32::NAN;
    let flat = |x: &[Vec<f32>]| x.iter().flat_map(|s| s[..steps].to_vec()).collect();
    let lacking = Dataset::new()
        .observe_sequence("a", steps, 1, flat(&gap))
        .unwrap()
        .observe_sequence("b", steps, 1, flat(&b))
        .unwrap()
        .with_lengths(lengths.clone())
        .unwrap();
    let posterior = model.posterior(&lacking).unwrap();
    let ours = support.weights(0, posterior.latents()[0].natural_at(3, 1));
    let at = model.tree().time_axis().unwrap().observation(0, 1);
    let theirs = imputer
        .conditionals(&model, &lacking)
        .unwrap()
        .weights(at, 3);
    let own: Vec<f64> = (support.places(0).iter().zip(&ours))
        .filter(|((_, t), _)| *t == 1)
        .map(|(_, w)| *w)
        .collect();
    let total: f64 = own.iter().sum();
    assert_eq!(own.len(), theirs.len());
    for (x, y) in own.iter().zip(&theirs) {
        assert!((x / total - y).abs() < 1e-5, "{x} of {total} or {y}");
    }
}
