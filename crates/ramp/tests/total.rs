//! The yardstick of trees against the textbook: with exact messages it is the log-likelihood ratio of the observations together and
//! apart, from every root; fitted, it comes close from below.

mod exact;

use exact::{World, invert};
use ramp::data::Dataset;
use ramp::graph::FactorTree;
use ramp::infer::SupportSet;
use ramp::model::Model;
use ramp::train::{Decay, TrainSpec, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A lower triangular factor of a covariance.
fn cholesky(a: &[f64], n: usize) -> Vec<f64> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            l[i * n + j] = match i == j {
                true => (a[i * n + i] - dot).sqrt(),
                false => (a[i * n + j] - dot) / l[j * n + j],
            };
        }
    }
    l
}

/// Draws of a world's observations, and of each draw the true log-likelihood ratio of what it has, together and apart.
fn draws(world: &World, rows: usize, missing: f64, seed: u64) -> (Vec<Vec<f32>>, Vec<f64>) {
    let tree = &world.tree;
    let n = tree.variable_count();
    let covariance = invert(&world.precision(), n);
    let l = cholesky(&covariance, n);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut columns = vec![vec![]; tree.observations().len()];
    let mut ratios = vec![];
    for _ in 0..rows {
        let e: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
        let mut seen = vec![];
        for (o, column) in tree.observations().iter().zip(&mut columns) {
            let i = o.index();
            let x: f64 = (0..=i).map(|k| l[i * n + k] * e[k]).sum();
            let there = missing == 0.0 || !rng.random_bool(missing);
            column.push(if there { x as f32 } else { f32::NAN });
            if there {
                seen.push((i, x));
            }
        }
        let k = seen.len();
        let part: Vec<f64> = seen
            .iter()
            .flat_map(|a| seen.iter().map(|b| covariance[a.0 * n + b.0]))
            .collect();
        let inverse = invert(&part, k);
        let l = cholesky(&part, k);
        let log_det: f64 = (0..k).map(|i| 2.0 * l[i * k + i].ln()).sum();
        let mut quadratic = 0.0;
        for (i, a) in seen.iter().enumerate() {
            for (j, b) in seen.iter().enumerate() {
                quadratic += a.1 * (inverse[i * k + j] - f64::from(u8::from(i == j))) * b.1;
            }
        }
        ratios.push(-0.5 * log_det - 0.5 * quadratic);
    }
    (columns, ratios)
}

fn observed(tree: &FactorTree, columns: &[Vec<f32>]) -> Dataset {
    let names = tree.observations().iter().map(|&o| tree.name(o));
    names.zip(columns).fold(Dataset::new(), |data, (name, x)| {
        data.observe(name, 1, x.clone()).unwrap()
    })
}

/// A world on a tree, every factor's variables joined by one common cause.
fn on(tree: FactorTree, seed: u64) -> World {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let correlations = tree
        .factors()
        .map(|f| {
            let k = tree.variables_of(f).len();
            let loading: Vec<f64> = (0..k).map(|_| rng.random_range(0.6..0.9)).collect();
            let entry = |i: usize| match i / k == i % k {
                true => 1.0,
                false => loading[i / k] * loading[i % k],
            };
            (0..k * k).map(entry).collect()
        })
        .collect();
    World { tree, correlations }
}

/// From every root the total is the true ratio, on the average over the same samples.
fn is_true_from_every_root(world: &World, missing: f64, tolerance: f64) {
    let tree = &world.tree;
    let (training, _) = draws(world, 4000, missing, 1);
    let (fresh, ratios) = draws(world, 2000, missing, 2);
    let (training, fresh) = (observed(tree, &training), observed(tree, &fresh));
    let model = world.model(&training);
    let support = SupportSet::new(&model, &training, 4000).unwrap();
    let truth = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!(truth > 0.15, "a world with something to explain: {truth}");
    for total in model.totals(&support, &fresh, tree.latents()).unwrap() {
        let (name, mean) = (tree.name(total.root()), total.mean());
        assert!(
            (mean - truth).abs() < tolerance,
            "from {name}: {mean} where the ratio is {truth}"
        );
        // Not only on average: rows follow the true ratios.
        let off: Vec<f64> = total
            .samples()
            .iter()
            .zip(&ratios)
            .map(|(t, r)| (t - r).abs())
            .collect();
        let mean_off = off.iter().sum::<f64>() / off.len() as f64;
        assert!(mean_off < 0.1, "from {name}: rows are {mean_off} off");
    }
}

#[test]
fn with_exact_messages_it_is_the_true_ratio_from_every_root() {
    let tree = FactorTree::from_newick("(((a,b)z4,(c,d)z5)z2,((e,f)z6,(g,h)z7)z3)z1;").unwrap();
    is_true_from_every_root(&on(tree, 3), 0.0, 0.012);
}

#[test]
fn missing_values_leave_it_the_ratio_of_what_is_there() {
    let tree = FactorTree::from_newick("((a,b,c)z2,(d,e,f)z3,(g,h)z4)z1;").unwrap();
    is_true_from_every_root(&on(tree, 4), 0.3, 0.012);
}

#[test]
fn outer_variables_of_wide_factors_are_taken_one_after_the_other() {
    let factors: Vec<Vec<String>> = [
        "a b c", "a x1", "a x2", "b x3", "b x4", "c x5", "c x6", "c x7 d", "d x8", "d x9",
    ]
    .iter()
    .map(|f| f.split(' ').map(str::to_owned).collect())
    .collect();
    let tree = FactorTree::from_factors(&factors, None).unwrap();
    for missing in [0.0, 0.2] {
        is_true_from_every_root(&on(tree.clone(), 5), missing, 0.015);
    }
}

#[test]
fn a_chain_is_a_tree() {
    let world = on(FactorTree::chain(5).unwrap(), 6);
    let sequences = |rows, seed| {
        let (columns, ratios) = draws(&world, rows, 0.0, seed);
        let by_row: Vec<Vec<f32>> = (0..rows)
            .map(|r| columns.iter().map(|c| c[r]).collect())
            .collect();
        (exact::dataset(&by_row), ratios)
    };
    let ((training, _), (fresh, ratios)) = (sequences(4000, 1), sequences(2000, 2));
    let model = world.model(&training);
    let support = SupportSet::new(&model, &training, 4000).unwrap();
    let truth = ratios.iter().sum::<f64>() / 2000.0;
    for total in model
        .totals(&support, &fresh, world.tree.latents())
        .unwrap()
    {
        assert!(
            (total.mean() - truth).abs() < 0.012,
            "{} {truth}",
            total.mean()
        );
    }
}

fn fitted(tree: FactorTree, data: &Dataset) -> Model {
    let mut model = Model::builder(tree).build(data).unwrap();
    let spec = TrainSpec {
        iterations: 300,
        learning_rate: 0.02,
        batch: Some(500),
        warmup: 30,
        decay: Decay::Cosine { to: 0.0 },
        validation: 0.1,
        ..TrainSpec::default()
    };
    Trainer::new(spec).unwrap().fit(&mut model, data).unwrap();
    model
}

#[test]
fn a_fitted_tree_comes_close_from_below_and_another_one_less() {
    let tree = FactorTree::from_newick("((a,b,c)z2,(d,e,f)z3)z1;").unwrap();
    let world = on(tree.clone(), 7);
    let (training, _) = draws(&world, 4000, 0.0, 1);
    let (fresh, ratios) = draws(&world, 2000, 0.0, 2);
    let (training, fresh) = (observed(&tree, &training), observed(&tree, &fresh));
    let truth = ratios.iter().sum::<f64>() / 2000.0;
    let total = |tree: FactorTree| {
        let model = fitted(tree, &training);
        let support = SupportSet::new(&model, &training, 4000).unwrap();
        model.total(&support, &fresh).unwrap()
    };
    let right = total(tree);
    let off: Vec<f64> = right
        .samples()
        .iter()
        .zip(&ratios)
        .map(|(t, r)| t - r)
        .collect();
    let mean_off = off.iter().sum::<f64>() / 2000.0;
    assert!(
        (-0.1 * truth..0.01).contains(&mean_off),
        "{} where the ratio is {truth}",
        right.mean()
    );
    let wrong = total(FactorTree::from_newick("((a,b,f)z2,(d,e,c)z3)z1;").unwrap());
    assert!(
        right.mean() > wrong.mean() + 3.0 * right.standard_error(),
        "{} and {}",
        right.mean(),
        wrong.mean()
    );
}

#[test]
fn nothing_is_explained_of_independent_columns() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut columns = |rows: usize| -> Vec<Vec<f32>> {
        (0..6)
            .map(|_| (0..rows).map(|_| StandardNormal.sample(&mut rng)).collect())
            .collect()
    };
    let tree = FactorTree::from_newick("((a,b,c)z2,(d,e,f)z3)z1;").unwrap();
    let (training, fresh) = (columns(4000), columns(2000));
    let (training, fresh) = (observed(&tree, &training), observed(&tree, &fresh));
    let model = fitted(tree, &training);
    let support = SupportSet::new(&model, &training, 4000).unwrap();
    let total = model.total(&support, &fresh).unwrap();
    let (mean, error) = (total.mean(), total.standard_error());
    assert!(
        mean.abs() < 2.0 * error + 0.005,
        "{mean} with a standard error of {error}"
    );
}
