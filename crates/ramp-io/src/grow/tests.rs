//! Distances that gaps, distortions and folds do not disturb, and trees that come out of them.

use super::*;
use ramp::graph::Rooted;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Columns of a linear tree with loadings of 0.75 on every edge, distorted, with gaps.
fn columns(newick: &str, rows: usize, missing: f64, seed: u64) -> (FactorTree, Vec<Vec<f32>>) {
    let tree = FactorTree::from_newick(newick).unwrap();
    let rooted = Rooted::new(&tree);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values: Vec<Vec<f64>> = vec![vec![]; tree.variable_count()];
    for &v in &rooted.order {
        values[v.index()] = (0..rows)
            .map(|r| {
                let noise: f64 = StandardNormal.sample(&mut rng);
                match rooted.entrance[v.index()] {
                    None => noise,
                    Some(f) => {
                        let parent = values[rooted.head[f.index()].index()][r];
                        0.75 * parent + (1.0f64 - 0.75 * 0.75).sqrt() * noise
                    }
                }
            })
            .collect();
    }
    let observed = tree.observations().iter().enumerate();
    let columns = observed
        .map(|(i, o)| {
            let cell = |x: &f64| match rng.random_bool(missing) {
                true => f32::NAN,
                false if i % 2 == 0 => x.exp() as f32,
                false => -*x as f32,
            };
            values[o.index()].iter().map(cell).collect()
        })
        .collect();
    (tree, columns)
}

fn scores(columns: &[Vec<f32>]) -> Associations {
    let each = columns.iter().map(|values| ColumnScores {
        width: 1,
        values: values.clone(),
    });
    Associations::new(each.collect())
}

fn started(newick: &str, rows: usize, missing: f64, seed: u64) -> usize {
    let (truth, columns) = columns(newick, rows, missing, seed);
    let start = Start::new(&scores(&columns), &[], 50, seed, &|_| false).unwrap();
    let names: Vec<String> = truth
        .observations()
        .iter()
        .map(|&o| truth.name(o).into())
        .collect();
    let tree = start
        .sketch
        .tree(&names, &naming::names(&start.sketch, &names, &[]))
        .unwrap();
    truth.robinson_foulds(&tree).unwrap()
}

#[test]
fn linear_trees_are_found_and_stars_stay_stars() {
    let deep = "((a,b,c)z2,(d,e,f)z3,((g,h,i)z5,(j,k,l)z6)z4)z1;";
    let star = "(a,b,c,d,e,f,g,h)z1;";
    for seed in 0..3 {
        assert_eq!(started(deep, 4000, 0.0, seed), 0, "seed {seed}");
        assert_eq!(started(deep, 4000, 0.15, seed), 0, "with gaps, seed {seed}");
    }
    // An edge where there is none is a matter of chance, and of one in twenty stars at most.
    let wrong = (20..40).filter(|&seed| started(star, 4000, 0.15, seed) > 0);
    assert!(wrong.count() <= 1);
}

#[test]
fn distances_are_those_of_the_correlation_behind_distortions_and_gaps() {
    let (_, columns) = columns("((a,b)z2,c,d)z1;", 20_000, 0.2, 5);
    let scores = scores(&columns);
    let d = scores.distances(&vec![1.0; 20_000]);
    let edges = -(0.75f64).ln();
    for (pair, length) in [((0, 1), 2.0), ((0, 2), 3.0), ((2, 3), 2.0)] {
        let found = d[pair.0 * 4 + pair.1];
        assert!((found - length * edges).abs() < 0.04, "{pair:?}: {found}");
        assert_eq!(found, d[pair.1 * 4 + pair.0]);
    }
}

#[test]
fn folds_and_levels_without_order_have_distances_too() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let rows = 3000;
    let x: Vec<f32> = (0..rows).map(|_| StandardNormal.sample(&mut rng)).collect();
    let folded: Vec<f32> = x.iter().map(|x| x * x).collect();
    let levels: Vec<f32> = x
        .iter()
        .flat_map(|&x| match x {
            x if x < -0.5 => [1.0, 0.0],
            x if x < 0.5 => [0.0, 1.0],
            _ => [0.0, 0.0],
        })
        .collect();
    let alone: Vec<f32> = (0..rows).map(|_| StandardNormal.sample(&mut rng)).collect();
    let one = |values: &Vec<f32>| ColumnScores {
        width: 1,
        values: values.clone(),
    };
    let all = Associations::new(vec![
        one(&x),
        one(&folded),
        ColumnScores {
            width: 2,
            values: levels,
        },
        one(&alone),
    ]);
    let d = all.distances(&vec![1.0; rows]);
    let strength = |i: usize, j: usize| (-d[i * 4 + j]).exp();
    assert!(strength(0, 1) > 0.8, "a fold: {}", strength(0, 1));
    assert!(strength(0, 2) > 0.85, "levels: {}", strength(0, 2));
    for other in 0..3 {
        assert!(strength(3, other) < 0.08, "nothing: {}", strength(3, other));
    }
}

#[test]
fn many_rows_of_two_kinds_are_no_reason_for_edges() {
    // A star around a latent of two values: strong columns have clearly greater canonical than plain correlations, weak ones do not, and distances that mix
    // both kinds are those of no tree. The more rows, the surer of edges that are not there.
    let (rows, count) = (10_000, 8);
    let names: Vec<String> = (0..count).map(|i| format!("x{i}")).collect();
    for seed in 0..4 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kind: Vec<f64> = (0..rows)
            .map(|_| if rng.random_bool(0.5) { 1.0 } else { -1.0 })
            .collect();
        let columns: Vec<Vec<f32>> = (0..count)
            .map(|i| {
                let noise = 0.25 + 0.15 * i as f64;
                let mut cell = |k: &f64| {
                    let other: f64 = StandardNormal.sample(&mut rng);
                    (k + noise * other) as f32
                };
                kind.iter().map(&mut cell).collect()
            })
            .collect();
        let start = Start::new(&scores(&columns), &[], 50, seed, &|_| false).unwrap();
        let latents = naming::names(&start.sketch, &names, &[]);
        let tree = start.sketch.tree(&names, &latents).unwrap();
        assert_eq!(tree.latents().len(), 1, "seed {seed}");
    }
}
