//! The gradient of whole models by finite differences: every network kind, every wiring.

use super::*;
use crate::data::Dataset;
use crate::graph::Tying;
use crate::network::NetworkSpec;
use crate::objective::Mixture;
use crate::{Error, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn network(text: &str) -> NetworkSpec {
    serde_json::from_str(text).unwrap()
}

/// Random observations for every leaf of a tree, some missing.
fn noise(tree: &FactorTree, features: usize, rows: usize, missing: f64, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let columns = tree.observations().iter().map(|_| {
        let mut values = vec![];
        for _ in 0..rows {
            let there = !rng.random_bool(missing);
            values.extend((0..features).map(|_| {
                if there {
                    rng.random_range(-1.5..1.5f32)
                } else {
                    f32::NAN
                }
            }));
        }
        values
    });
    dataset(tree, features, &columns.collect::<Vec<_>>())
}

/// A data set of the values of every leaf of a tree; of a chain in time, sequences.
fn dataset(tree: &FactorTree, features: usize, columns: &[Vec<f32>]) -> Dataset {
    let Some(time) = tree.time_axis() else {
        let named = tree.observations().iter().zip(columns);
        return named.fold(Dataset::new(), |data, (&x, values)| {
            data.observe(tree.name(x), features, values.clone())
                .unwrap()
        });
    };
    let rows = columns[0].len() / features;
    let mut data = Dataset::new();
    for (series, name) in time.series().iter().enumerate() {
        let cells = (0..rows).flat_map(|row| (0..time.steps()).map(move |step| (row, step)));
        let values = cells
            .flat_map(|(row, step)| {
                &columns[time.observation(series, step)][row * features..][..features]
            })
            .copied()
            .collect();
        data = data
            .observe_sequence(name, time.steps(), features, values)
            .unwrap();
    }
    data
}

/// The step of finite differences. Layer norm is steep where a belief is near its prior, so it must be small.
const STEP: f64 = 5e-4;

/// Compares slopes along random directions with the gradient.
fn check(name: &str, mut model: Model, data: &Dataset, drawn: Option<&[u32]>) {
    let samples: Vec<u32> = (0..data.rows() as u32).rev().collect();
    let bound = model.bind(data).unwrap();
    let mixture = Mixture {
        drawn,
        population: Some(2 * data.rows()),
        ..Mixture::default()
    };
    let mut space = Workspace::default();
    let mut gradient = vec![0.0; model.parameters().len()];
    let batch = model.batch(&bound, &samples, None);
    model
        .evaluate(&batch, mixture, Some(&mut gradient), &mut space)
        .unwrap();
    let home = model.parameters().to_vec();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let size = (gradient.iter().map(|g| g * g).sum::<f32>()).sqrt();
    assert!(size > 1e-4, "{name}: there is something to check");
    for trial in 0..12 {
        // Random directions that lean on the gradient, so that slopes stand out from rounding; each hits all parameters.
        let direction: Vec<f32> = gradient
            .iter()
            .map(|g| {
                let noise = rng.random_range(-1.0..1.0f32);
                if trial < 6 {
                    noise * (g.abs() + 0.05 * size / (gradient.len() as f32).sqrt())
                } else {
                    g * (1.0 + noise)
                }
            })
            .collect();
        let length = direction.iter().map(|d| d * d).sum::<f32>().sqrt();
        let h = STEP as f32 / length;
        let mut value = |sign: f32| {
            for ((p, x), d) in model.parameters_mut().iter_mut().zip(&home).zip(&direction) {
                *p = x + sign * h * d;
            }
            let batch = model.batch(&bound, &samples, None);
            model
                .evaluate(&batch, mixture, None, &mut space)
                .unwrap()
                .mean()
        };
        // Of fourth order: a model whose networks begin alike curves sharply.
        let slope = (8.0 * (value(1.0) - value(-1.0)) - (value(2.0) - value(-2.0))) / (12.0 * STEP);
        let along: f64 = direction
            .iter()
            .zip(&gradient)
            .map(|(d, g)| f64::from(d / length) * f64::from(*g))
            .sum();
        assert!(
            (slope - along).abs() < 2e-2 * f64::from(size) + 2e-4,
            "{name}, direction {trial}: the slope is {slope}, the gradient says {along} (of {size})"
        );
    }
}

#[test]
fn every_network_kind_has_the_gradient_of_the_whole_model() {
    let tree = FactorTree::from_newick("((a,b,c)y,(d,e)z)w;").unwrap();
    // Several features: layer norm of a single one is a step at zero, too steep for finite differences.
    let data = noise(&tree, 3, 40, 0.2, 1);
    for activation in ["tanh", "relu", "gelu", "silu"] {
        for norm in [false, true] {
            let spec = network(&format!(
                r#"{{"kind":"mlp","hidden":[12,8],"activation":"{activation}","layer_norm":{norm}}}"#
            ));
            let model = Model::builder(tree.clone())
                .message_network(spec.clone())
                .observation_network(spec)
                .seed(3)
                .build(&data)
                .unwrap();
            check(
                &format!("{activation}, layer norm {norm}"),
                model,
                &data,
                None,
            );
        }
    }
    let images = noise(&tree, 2 * 6 * 5, 24, 0.2, 2);
    let conv = network(
        r#"{"kind":"conv","image":[2,6,5],"layers":[{"kernel":3,"stride":1,"padding":1,"channels":4},
            {"kernel":3,"stride":2,"padding":0,"channels":3}],"dense":[7],"activation":"gelu"}"#,
    );
    let model = Model::builder(tree)
        .observation_network(conv)
        .seed(3)
        .build(&images)
        .unwrap();
    check("convolution", model, &images, None);
}

#[test]
fn every_wiring_has_the_gradient_of_the_whole_model() {
    let drawn: Vec<u32> = (0..30).step_by(3).collect();
    let small = network(r#"{"kind":"mlp","hidden":[8]}"#);
    let hub: Vec<(String, String)> = (0..20)
        .flat_map(|i| {
            [("h".to_string(), format!("z{i}"))]
                .into_iter()
                .chain((0..2).map(move |j| (format!("z{i}"), format!("x{i}{j}"))))
        })
        .collect();
    let wide: &[&[&str]] = &[
        &["p", "q", "o"],
        &["p", "r", "s"],
        &["p", "a"],
        &["q", "b"],
        &["r", "c"],
        &["s", "d"],
        &["s", "e"],
    ];
    let wide: Vec<Vec<&str>> = wide.iter().map(|f| f.to_vec()).collect();
    let cases = [
        (
            "chain, tied",
            FactorTree::chain(6).unwrap(),
            Tying::Role,
            "gaussian(2)",
        ),
        (
            "hub with a running total",
            FactorTree::from_edges(&hub).unwrap(),
            Tying::Role,
            "gaussian(1)",
        ),
        (
            "factors of three, one with an observation",
            FactorTree::from_factors(&wide, None).unwrap(),
            Tying::Separate,
            "gaussian(1)",
        ),
        (
            "balanced, tied by depth",
            FactorTree::balanced(4, 2).unwrap(),
            Tying::Depth,
            "von_mises x gaussian(1)",
        ),
        (
            "counts and classes",
            FactorTree::balanced(3, 3).unwrap(),
            Tying::Separate,
            "gamma x categorical(3)",
        ),
        (
            "proportions",
            FactorTree::balanced(3, 2).unwrap(),
            Tying::Separate,
            "dirichlet(3) x beta",
        ),
    ];
    for (name, tree, tying, family) in cases {
        for view in [Inputs::Natural, Inputs::Moments] {
            let data = noise(&tree, 1, 30, 0.25, 4);
            let model = Model::builder(tree.clone())
                .families(family)
                .unwrap()
                .tying(tying)
                .inputs(view)
                .message_network(small.clone())
                .observation_network(small.clone())
                .seed(1)
                .build(&data)
                .unwrap();
            check(&format!("{name}, {view:?}"), model, &data, Some(&drawn));
        }
    }
}

#[test]
fn recomputed_tapes_give_the_same_gradient_as_kept_ones() {
    // More rows than a block, so that tapes are passed from block to block.
    let tree = FactorTree::balanced(3, 2).unwrap();
    let data = noise(&tree, 1, 3000, 0.1, 5);
    let model = Model::builder(tree).seed(2).build(&data).unwrap();
    let bound = model.bind(&data).unwrap();
    let samples: Vec<u32> = (0..3000).collect();
    let batch = model.batch(&bound, &samples, None);
    let mut space = Workspace::default();
    model.forward(&batch, &mut space, true);
    let kept = space.messages.message(3).to_vec();
    model.forward(&batch, &mut space, false);
    assert_eq!(kept, space.messages.message(3));
    let mut gradient = vec![0.0; model.parameters().len()];
    model
        .evaluate(&batch, Mixture::default(), Some(&mut gradient), &mut space)
        .unwrap();
    let at_messages = space.gradient.clone();
    let mut again = vec![0.0; model.parameters().len()];
    for shard in &mut space.shards {
        for block in &mut shard.blocks {
            model.forward_block(&batch, block, &mut shard.arena);
            model.backward_block(&batch, &at_messages, block, &mut shard.arena, &mut again);
        }
    }
    for (a, b) in gradient.iter().zip(&again) {
        assert!((a - b).abs() < 1e-5 * (1.0 + a.abs()), "{a} or {b}");
    }
}

#[test]
fn mistakes_are_named() {
    let tree = FactorTree::balanced(3, 2).unwrap();
    let data = noise(&tree, 1, 4, 0.0, 0);
    let say = |r: Result<Model>| r.unwrap_err().to_string();
    let builder = || Model::builder(tree.clone());
    assert!(
        builder()
            .families("gausian")
            .err()
            .unwrap()
            .to_string()
            .contains("unknown family `gausian`")
    );
    assert!(builder().family("z9", "beta").is_err());
    assert!(
        builder()
            .family("x1", "beta")
            .err()
            .unwrap()
            .to_string()
            .contains("`x1` is an observation, not a latent")
    );
    assert!(
        say(builder()
            .network("z9>z1", network(r#"{"kind":"mlp"}"#))
            .build(&data))
        .contains("there is no network `z9>z1`")
    );
    assert!(
        say(builder().prior("z1", vec![0.0, -1.0]).unwrap().build(&data))
            .contains("the prior of `z1`")
    );
    let mixed = builder()
        .family("z2", "categorical(3)")
        .unwrap()
        .tying(Tying::Role)
        .build(&data);
    assert!(say(mixed).contains("share the network"));
    assert!(
        say(builder().build(&Dataset::new()))
            .contains("`x1` named in the tree is not in the data, which has none")
    );
    let model = builder().build(&data).unwrap();
    let other = noise(&tree, 2, 4, 0.0, 0);
    assert!(
        model
            .posterior(&other)
            .unwrap_err()
            .to_string()
            .contains("has 2 numbers per sample in the data but 1 in the model")
    );
}

#[test]
fn a_stored_spec_builds_the_same_model() {
    let tree = FactorTree::chain(4).unwrap();
    let data = noise(&tree, 3, 10, 0.2, 0);
    let model = Model::builder(tree)
        .families("gaussian(2)")
        .unwrap()
        .tying(Tying::Role)
        .seed(9)
        .build(&data)
        .unwrap();
    let text = serde_json::to_string(model.spec()).unwrap();
    let again = ModelBuilder::from_spec(serde_json::from_str(&text).unwrap())
        .unwrap()
        .build_as_stored()
        .unwrap();
    assert_eq!(model.parameters(), again.parameters());
    let (a, b) = (
        model.posterior(&data).unwrap(),
        again.posterior(&data).unwrap(),
    );
    assert_eq!(a.latents()[0].naturals(), b.latents()[0].naturals());
}

#[test]
fn sequences_of_unequal_length_are_as_good_as_chains_of_their_own_length() {
    let (long, short, rows) = (7, 4, 40);
    let tree = FactorTree::sequence(long, &["a", "b"]).unwrap();
    let data = noise(&tree, 1, rows, 0.2, 11);
    let model = Model::builder(tree)
        .families("gaussian(2)")
        .unwrap()
        .tying(Tying::Role)
        .seed(4)
        .build(&data)
        .unwrap();
    let cut = model.unrolled(short).unwrap();
    // What lies beyond a sequence's end must have no part in anything, so it is left in the data.
    let whole = data.clone().with_lengths(vec![short as u32; rows]).unwrap();
    let (a, b) = (
        model.posterior(&whole).unwrap(),
        cut.posterior(&whole).unwrap(),
    );
    let (a, b) = (&a.latents()[0], &b.latents()[0]);
    for row in 0..rows {
        for t in 0..long {
            match t < short {
                true => assert_eq!(a.natural_at(row, t), b.natural_at(row, t)),
                false => {
                    assert!(a.natural_at(row, t).iter().all(|x| x.is_nan()));
                    assert!(a.describe_at(row, t).mean.iter().all(|x| x.is_nan()));
                }
            }
        }
    }
    // A longer chain takes shorter data as it is.
    let longer = model.unrolled(long + 3).unwrap();
    let (longer, same) = (
        longer.posterior(&data).unwrap(),
        model.posterior(&data).unwrap(),
    );
    for row in 0..rows {
        let dim = 5 * long;
        assert_eq!(
            longer.latents()[0].natural(row)[..dim],
            *same.latents()[0].natural(row)
        );
        assert!(longer.latents()[0].natural_at(row, long)[0].is_nan());
    }
    let support = crate::infer::SupportSet::new(&model, &whole, rows).unwrap();
    let scores = support.scores(&model, &whole).unwrap();
    let same = crate::infer::SupportSet::new(&cut, &whole, rows).unwrap();
    let expected = same.scores(&cut, &whole).unwrap();
    for t in 0..long {
        for (row, &f) in scores.latent(t).iter().enumerate() {
            let expected = if t < short {
                expected.latent(t)[row]
            } else {
                0.0
            };
            assert!((f - expected).abs() < 1e-6, "step {t}: {f} or {expected}");
        }
    }
    let error = cut.posterior(&data).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Model(ModelError::TooLong {
                sequence: 0,
                length: 7,
                steps: 4
            })
        ),
        "{error}"
    );
}

#[test]
fn what_is_hidden_is_as_good_as_missing() {
    hide_and_compare(FactorTree::balanced(3, 2).unwrap());
    // Factors of three, whose networks hear which of their observations are there.
    let factors = [["u", "v", "a"], ["u", "b", "c"], ["v", "d", "e"]].map(Vec::from);
    hide_and_compare(FactorTree::from_factors(&factors, None).unwrap());
}

fn hide_and_compare(tree: FactorTree) {
    let observations = tree.observations().len();
    let data = noise(&tree, 1, 50, 0.0, 5);
    let missing_data = noise(&tree, 1, 50, 0.3, 6);
    let model = Model::builder(tree.clone()).build(&missing_data).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let pattern: Vec<bool> = (0..observations * 50)
        .map(|_| rng.random_bool(0.4))
        .collect();
    let hidden = Mask::new(observations, 50, |i, row| pattern[i * 50 + row]);
    let mut missing = Dataset::new();
    for (i, &x) in tree.observations().iter().enumerate() {
        let mut values = vec![0.0; 50];
        let whole = data.observation(tree.name(x)).unwrap();
        for (row, value) in values.iter_mut().enumerate() {
            whole.write(row, std::slice::from_mut(value), 1);
            if pattern[i * 50 + row] {
                *value = f32::NAN;
            }
        }
        missing = missing.observe(tree.name(x), 1, values).unwrap();
    }
    let samples: Vec<u32> = (0..50).collect();
    let value = |data: &Dataset, hidden| {
        let bound = model.bind(data).unwrap();
        let batch = model.batch(&bound, &samples, hidden);
        model
            .evaluate(&batch, Mixture::default(), None, &mut Workspace::default())
            .unwrap()
            .clone()
    };
    assert_eq!(value(&data, Some(&hidden)), value(&missing, None));
}

#[test]
fn a_scaled_down_initialisation_is_the_shared_one_with_smaller_outputs() {
    let data = ["x1", "x2", "x3", "x4"]
        .iter()
        .fold(Dataset::new(), |d, x| {
            d.observe(*x, 1, vec![0.5; 4]).unwrap()
        });
    let build = |start| {
        let builder = Model::builder(FactorTree::balanced(3, 2).unwrap()).init(start);
        builder.build(&data).unwrap()
    };
    let (apart, alike, soft) = (
        build(Initialisation::Independent),
        build(Initialisation::Shared),
        build(Initialisation::ScaledDown),
    );
    let of = |model: &Model, name: &str| -> Vec<f32> {
        let named = model.named_parameters();
        let (_, _, range) = named.iter().find(|(n, _, _)| n == name).unwrap();
        model.parameters()[range.clone()].to_vec()
    };
    assert_ne!(of(&apart, "x1>z2/0.weight"), of(&apart, "x4>z3/0.weight"));
    for model in [&alike, &soft] {
        assert_eq!(of(model, "x1>z2/0.weight"), of(model, "x4>z3/0.weight"));
        assert_eq!(of(model, "z2>z1/2.weight"), of(model, "z3>z1/2.weight"));
    }
    assert_eq!(of(&alike, "z2>z1/1.weight"), of(&soft, "z2>z1/1.weight"));
    let quieter: Vec<f32> = of(&alike, "z2>z1/2.weight")
        .iter()
        .map(|w| w * 0.2)
        .collect();
    assert_eq!(of(&soft, "z2>z1/2.weight"), quieter);
}
