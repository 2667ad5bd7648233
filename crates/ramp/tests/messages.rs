//! Exact belief maps in place of networks: posteriors must be those of dense Gaussian conditioning, on any factor tree, with
//! any leaves missing.

mod exact;

use exact::{chain, dataset, invert, world};
use proptest::prelude::*;
use ramp::data::Dataset;
use ramp::graph::FactorTree;
use ramp::model::Model;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn exact_maps_give_exact_posteriors(size in 4usize..58, seed in 0u64..10_000) {
        let world = world(size, seed);
        let tree = &world.tree;
        prop_assert!(tree.variable_count() <= 62);
        let mut rng = ChaCha8Rng::seed_from_u64(seed + 1);
        let rows = 5;
        let mut data = Dataset::new();
        let mut values = vec![];
        for &x in tree.observations() {
            let column: Vec<f32> = (0..rows)
                .map(|_| if rng.random_bool(0.3) { f32::NAN } else { rng.random_range(-2.0..2.0f32) })
                .collect();
            data = data.observe(tree.name(x), 1, column.clone()).unwrap();
            values.push(column);
        }
        let posterior = world.model(&data).posterior(&data).unwrap();
        let joint = world.precision();
        let n = tree.variable_count();
        for row in 0..rows {
            // Dense conditioning: unobserved block of the precision, right-hand side from the observed.
            let mut known = vec![None; n];
            for (&x, column) in tree.observations().iter().zip(&values) {
                if !column[row].is_nan() {
                    known[x.index()] = Some(f64::from(column[row]));
                }
            }
            let free: Vec<usize> = (0..n).filter(|&i| known[i].is_none()).collect();
            let block: Vec<f64> =
                free.iter().flat_map(|&i| free.iter().map(move |&j| (i, j))).map(|(i, j)| joint[i * n + j]).collect();
            let covariance = invert(&block, free.len());
            let right: Vec<f64> = free
                .iter()
                .map(|&i| -(0..n).filter_map(|j| known[j].map(|x| joint[i * n + j] * x)).sum::<f64>())
                .collect();
            for latent in posterior.latents() {
                let at = free.iter().position(|&i| i == tree.find(latent.name()).unwrap().index()).unwrap();
                let mean: f64 = (0..free.len()).map(|j| covariance[at * free.len() + j] * right[j]).sum();
                let sd = covariance[at * free.len() + at].sqrt();
                let said = latent.describe(row);
                prop_assert!((said.mean[0] - mean).abs() < 1e-4, "{}: mean {} or {mean}", latent.name(), said.mean[0]);
                prop_assert!((said.sd[0] - sd).abs() < 1e-4, "{}: sd {} or {sd}", latent.name(), said.sd[0]);
            }
        }
    }
}

#[test]
fn filtering_is_the_posterior_without_the_future() {
    let (world, sequences) = chain(7, 20, 3);
    let data = dataset(&sequences);
    let model = world.model(&data);
    let filtered = model.filtered(&data).unwrap();
    for t in 0..7 {
        let mut past = sequences.clone();
        for sequence in &mut past {
            sequence[t + 1..].fill(f32::NAN);
        }
        let posterior = model.posterior(&dataset(&past)).unwrap();
        for row in 0..20 {
            let (a, b) = (
                filtered.latents()[0].describe_at(row, t),
                posterior.latents()[0].describe_at(row, t),
            );
            assert!(
                (a.mean[0] - b.mean[0]).abs() < 1e-5 && (a.sd[0] - b.sd[0]).abs() < 1e-5,
                "z{}",
                t + 1
            );
        }
    }
    // And it is not the smoothed posterior.
    let smoothed = model.posterior(&data).unwrap();
    let [smoothed, filtered] = [smoothed, filtered].map(|p| p.latents()[0].describe_at(0, 2).sd[0]);
    assert!((smoothed - filtered).abs() > 1e-3);
    let tree = FactorTree::balanced(3, 2).unwrap();
    let data = ["x1", "x2", "x3", "x4"]
        .into_iter()
        .fold(Dataset::new(), |d, x| {
            d.observe(x, 1, vec![0.0; 3]).unwrap()
        });
    let error = Model::builder(tree)
        .build(&data)
        .unwrap()
        .filtered(&data)
        .unwrap_err()
        .to_string();
    assert!(error.contains("filtering needs a chain"), "{error}");
}

#[test]
fn posteriors_come_run_by_run_or_all_at_once() {
    let (world, sequences) = chain(4, 50, 8);
    let data = dataset(&sequences);
    let model = world.model(&data);
    let whole = model.posterior(&data).unwrap();
    let mut next = 0;
    model
        .for_each_posterior(&data, 16, |part| {
            assert_eq!(part.first(), next);
            for row in 0..part.rows() {
                for (a, b) in part.latents().iter().zip(whole.latents()) {
                    assert_eq!(a.natural(row), b.natural(next + row));
                }
            }
            next += part.rows();
            Ok(())
        })
        .unwrap();
    assert_eq!(next, 50);
}
