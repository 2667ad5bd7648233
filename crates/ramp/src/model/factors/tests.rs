use super::super::linalg::inverse;
use super::super::{Initialisation, Model};
use super::linear::{LinearTree, Scores};
use crate::data::Dataset;
use crate::graph::FactorTree;
use crate::network::{MonotoneSpec, NetworkSpec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

const LOADINGS: [f64; 9] = [0.8, 0.7, 0.6, 0.9, 0.8, 0.7, 0.75, 0.65, 0.7];
const ABOVE: [f64; 3] = [0.8, 0.7, 0.6];

/// Rows of nine items under three factors under a general one, and the exact posterior means of the three and the general factor.
fn drawn(rows: usize, seed: u64) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let mut items = vec![];
    for _ in 0..rows {
        let g = normal();
        let f = ABOVE.map(|b| b * g + (1.0 - b * b).sqrt() * normal());
        let row = (0..9).map(|i| {
            let l = LOADINGS[i];
            l * f[i / 3] + (1.0 - l * l).sqrt() * normal()
        });
        items.push(row.collect::<Vec<f64>>());
    }
    // Cov(latent, items) Cov(items)⁻¹ items.
    let among = |a: usize, b: usize| if a == b { 1.0 } else { ABOVE[a] * ABOVE[b] };
    let covariance: Vec<f64> = (0..81)
        .map(|k| match (k / 9, k % 9) {
            (i, j) if i == j => 1.0,
            (i, j) => LOADINGS[i] * LOADINGS[j] * among(i / 3, j / 3),
        })
        .collect();
    let precision = inverse(9, &covariance).unwrap();
    let with = |latent: usize, i: usize| match latent {
        3 => ABOVE[i / 3] * LOADINGS[i],
        k => among(k, i / 3) * LOADINGS[i],
    };
    let exact = items
        .iter()
        .map(|row| {
            let solved: Vec<f64> = (0..9)
                .map(|i| (0..9).map(|j| precision[i * 9 + j] * row[j]).sum())
                .collect();
            (0..4)
                .map(|k| (0..9).map(|i| with(k, i) * solved[i]).sum())
                .collect()
        })
        .collect();
    (items, exact)
}

fn data_of(items: &[Vec<f64>]) -> Dataset {
    (0..9).fold(Dataset::new(), |data, i| {
        let column = items.iter().map(|row| row[i] as f32).collect();
        data.observe(format!("x{}", i + 1), 1, column).unwrap()
    })
}

fn tree() -> FactorTree {
    FactorTree::from_newick("((x1,x2,x3)f1,(x4,x5,x6)f2,(x7,x8,x9)f3)g;").unwrap()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let (ma, mb) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let sums = a.iter().zip(b).fold([0.0; 3], |[xy, xx, yy], (x, y)| {
        let (x, y) = (x - ma, y - mb);
        [xy + x * y, xx + x * x, yy + y * y]
    });
    sums[0] / (sums[1] * sums[2]).sqrt()
}

/// The means of `f1, f2, f3, g` beside the exact ones, in size.
fn agreement(model: &Model, data: &Dataset, exact: &[Vec<f64>]) -> Vec<f64> {
    let posterior = model.posterior(data).unwrap();
    let place = |name: &str| {
        let tree = model.tree();
        let mut latents = tree.latents().iter();
        latents.position(|&v| tree.name(v) == name).unwrap()
    };
    let latents = posterior.latents();
    (0..4)
        .map(|k| {
            let own = &latents[place(["f1", "f2", "f3", "g"][k])];
            let means = own.mean_array().into_values();
            let exact: Vec<f64> = exact.iter().map(|e| e[k]).collect();
            correlation(&means, &exact).abs()
        })
        .collect()
}

fn model_for(data: &Dataset) -> Model {
    Model::builder(tree())
        .init(Initialisation::Factors)
        .build(data)
        .unwrap()
}

#[test]
fn a_tree_begins_as_the_factor_model_of_its_data() {
    let (items, exact) = drawn(1000, 7);
    let data = data_of(&items);
    let mut model = model_for(&data);
    let random = agreement(&model, &data, &exact);
    assert!(
        model
            .init_factors(&data, &(0..1000).collect::<Vec<u32>>())
            .unwrap()
    );
    // Rows that it was not set on.
    let (others, exact) = drawn(1000, 8);
    let others = data_of(&others);
    let found = agreement(&model, &others, &exact);
    assert!(found.iter().all(|r| *r > 0.985), "{found:?}");
    assert!(random.iter().any(|r| *r < 0.9), "{random:?}");
    // Beliefs are as sure as exact ones: the general factor's variance is 1 − R² of nine items.
    let posterior = model.posterior(&others).unwrap();
    let g = model
        .tree()
        .latents()
        .iter()
        .position(|&v| model.tree().name(v) == "g")
        .unwrap();
    let variance = exact.iter().map(|e| e[3] * e[3]).sum::<f64>() / 1000.0;
    let sd = posterior.latents()[g].sd_array().into_values();
    let mean = sd.iter().map(|s| s * s).sum::<f64>() / sd.len() as f64;
    assert!((mean - (1.0 - variance)).abs() < 0.05, "{mean} {variance}");
}

#[test]
fn missing_observations_and_ordered_levels_are_no_obstacle() {
    let (items, exact) = drawn(800, 9);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    // Five answers, a tenth of them missing, the second item turned around.
    let answer = |x: f64| {
        [-1.2, -0.4, 0.4, 1.2]
            .iter()
            .filter(|cut| x > **cut)
            .count()
    };
    let data = (0..9).fold(Dataset::new(), |data, i| {
        let column = items.iter().flat_map(|row| {
            let x = if i == 1 { -row[i] } else { row[i] };
            let gone = rng.random::<f64>() < 0.1;
            let level = answer(x);
            (0..5).map(move |l| {
                if gone {
                    f32::NAN
                } else {
                    f32::from(u8::from(l == level))
                }
            })
        });
        let column: Vec<f32> = column.collect();
        data.observe(format!("x{}", i + 1), 5, column).unwrap()
    });
    let monotone = || NetworkSpec::Monotone(MonotoneSpec::default());
    let builder = (1..=9).fold(Model::builder(tree()), |builder, i| {
        builder.network(format!("x{i}>f{}", (i - 1) / 3 + 1), monotone())
    });
    let mut model = builder.build(&data).unwrap();
    assert!(
        model
            .init_factors(&data, &(0..800).collect::<Vec<u32>>())
            .unwrap()
    );
    let found = agreement(&model, &data, &exact);
    // The answers hold less than the numbers that they were cut from.
    assert!(found.iter().all(|r| *r > 0.88), "{found:?}");
}

#[test]
fn a_latent_of_several_numbers_begins_in_the_plane_of_its_factors() {
    let (items, exact) = drawn(1500, 11);
    let data = data_of(&items);
    let tree = FactorTree::from_newick("(x1,x2,x3,x4,x5,x6,x7,x8,x9)z;").unwrap();
    let mut model = Model::builder(tree)
        .families("gaussian(3)")
        .unwrap()
        .build(&data)
        .unwrap();
    assert!(
        model
            .init_factors(&data, &(0..1500).collect::<Vec<u32>>())
            .unwrap()
    );
    // Every exact factor is a line of the three numbers.
    let means = model.posterior(&data).unwrap().latents()[0]
        .mean_array()
        .into_values();
    for k in 0..3 {
        let targets: Vec<f64> = exact.iter().map(|e| e[k]).collect();
        let line = crate::infer::Ridge::fit(&means, 3, &targets).unwrap();
        let variance = targets.iter().map(|t| t * t).sum::<f64>() / targets.len() as f64;
        assert!(line.error < 0.1 * variance, "{k} {} {variance}", line.error);
    }
}

#[test]
fn how_extremely_people_answer_begins_beside_what_items_measure() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let (rows, items) = (1500_u32, 6_usize);
    let (mut traits, mut styles, mut answers) = (vec![], vec![], vec![vec![]; items]);
    for _ in 0..rows {
        let (level, style) = (normal(), normal());
        for (i, column) in answers.iter_mut().enumerate() {
            let way = if i == 2 { -1.0 } else { 1.0 };
            let x = (0.8 * style).exp() * (0.8 * way * level + 0.6 * normal());
            let answer = [-1.2, -0.4, 0.4, 1.2].iter().filter(|c| x > **c).count();
            column.extend((0..5).map(|l| f32::from(u8::from(l == answer))));
        }
        traits.push(level);
        styles.push(style);
    }
    let data = answers.into_iter().enumerate();
    let data = data.fold(Dataset::new(), |data, (i, column)| {
        data.observe(format!("x{i}"), 5, column).unwrap()
    });
    let tree = FactorTree::from_newick("(x0,x1,x2,x3,x4,x5)z;").unwrap();
    let builder = Model::builder(tree).families("gaussian(2)").unwrap();
    let builder = (0..items).fold(builder, |builder, i| {
        builder.network(
            format!("x{i}>z"),
            NetworkSpec::Monotone(MonotoneSpec::default()),
        )
    });
    let mut model = builder.build(&data).unwrap();
    let all: Vec<u32> = (0..rows).collect();
    assert!(model.init_factors(&data, &all).unwrap());
    let means = model.posterior(&data).unwrap().latents()[0]
        .mean_array()
        .into_values();
    let along = |k: usize, truth: &[f64]| {
        let own: Vec<f64> = means.chunks_exact(2).map(|m| m[k]).collect();
        let of = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
        let flat = |x: &[f64]| -> Vec<f64> {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            x.iter().map(|v| v - mean).collect()
        };
        let (a, b) = (flat(&own), flat(truth));
        of(&a, &b) / (of(&a, &a) * of(&b, &b)).sqrt()
    };
    // High is high: five of six items run with the trait.
    assert!(along(0, &traits) > 0.8, "{}", along(0, &traits));
    assert!(along(1, &styles).abs() > 0.6, "{}", along(1, &styles));
    assert!(along(1, &traits).abs() < 0.2 && along(0, &styles).abs() < 0.2);
}

#[test]
fn other_families_and_small_samples_stay_as_they_were() {
    let (items, _) = drawn(100, 5);
    let data = data_of(&items);
    let mut model = model_for(&data);
    let before = model.parameters().to_vec();
    assert!(!model.init_factors(&data, &[0, 1, 2, 3]).unwrap());
    assert_eq!(model.parameters(), before);
    let mut model = Model::builder(tree())
        .families("categorical(2)")
        .unwrap()
        .build(&data)
        .unwrap();
    let before = model.parameters().to_vec();
    assert!(
        !model
            .init_factors(&data, &(0..100).collect::<Vec<u32>>())
            .unwrap()
    );
    assert_eq!(model.parameters(), before);
}

#[test]
fn a_root_far_from_the_data_is_as_near_to_its_branches_as_it_is() {
    // Two branches of two latents with two items each. All that the root has is what both branches share, so their loadings settle last.
    const NEAR: f64 = 0.8;
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let rows = 10_000;
    let mut items = vec![vec![]; 8];
    for _ in 0..rows {
        let mut below = |z: f64| NEAR * z + (1.0 - NEAR * NEAR).sqrt() * normal();
        let root = below(0.0) / (1.0 - NEAR * NEAR).sqrt();
        for middle in 0..2 {
            let middle_value = below(root);
            for low in 0..2 {
                let low_value = below(middle_value);
                for item in 0..2 {
                    items[4 * middle + 2 * low + item].push(below(low_value));
                }
            }
        }
    }
    let scores: Vec<Scores> = items
        .into_iter()
        .enumerate()
        .map(|(i, values)| Scores {
            latent: 3 + i / 2,
            ordered: false,
            width: 1,
            sizes: vec![1.0],
            values,
            present: vec![true; rows],
        })
        .collect();
    let links = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)];
    let tree = LinearTree::fit(&[1; 7], &links, &scores).unwrap();
    // Only the product of the root's two loadings is told by data: the correlation of the two branches.
    let shared = tree.edges[0].a[0] * tree.edges[1].a[0];
    assert!((shared.abs() - NEAR * NEAR).abs() < 0.04, "{shared}");
}
