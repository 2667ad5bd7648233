//! Exact belief maps in place of networks: posteriors must be those of dense Gaussian conditioning, on any factor tree, with
//! any leaves missing.

use proptest::prelude::*;
use ramp::data::Dataset;
use ramp::graph::{FactorTree, Kind};
use ramp::model::Model;
use ramp::network::{Block, Network, Parameter};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A Gaussian factor over standard-normal variables: their joint precision, last the variable it speaks to.
struct ExactFactor {
    /// Joint precision of (sources, target), row by row.
    precision: Vec<f64>,
    /// Which sources are observed (input: value and a flag where the factor has several sources).
    observed: Vec<bool>,
    flags: bool,
}

impl ExactFactor {
    fn width(&self, source: usize) -> usize {
        match (self.observed[source], self.flags) {
            (true, false) => 1,
            _ => 2,
        }
    }

    /// The message's natural parameters for one row of inputs: condition on what is observed, weigh by what is believed,
    /// integrate the sources out, divide by the standard-normal prior.
    fn message(&self, input: &dyn Fn(usize) -> f64) -> (f64, f64) {
        let k = self.observed.len() + 1;
        let mut p = self.precision.clone();
        let mut h = vec![0.0; k];
        let mut eliminate = vec![];
        let mut at = 0;
        for s in 0..k - 1 {
            if self.observed[s] {
                let (x, there) = (input(at), !self.flags || input(at + 1) > 0.5);
                if there {
                    for i in 0..k {
                        h[i] -= p[i * k + s] * x;
                    }
                    // A known variable is out of the game: unit precision, no couplings.
                    for i in 0..k {
                        p[i * k + s] = 0.0;
                        p[s * k + i] = 0.0;
                    }
                    p[s * k + s] = 1.0;
                    h[s] = 0.0;
                }
            } else {
                h[s] += input(at);
                p[s * k + s] += input(at + 1);
            }
            eliminate.push(s);
            at += self.width(s);
        }
        for s in eliminate {
            let pivot = p[s * k + s];
            for i in s + 1..k {
                let ratio = p[i * k + s] / pivot;
                for j in s + 1..k {
                    p[i * k + j] -= ratio * p[s * k + j];
                }
                h[i] -= ratio * h[s];
            }
        }
        (h[k - 1], p[k * k - 1] - 1.0)
    }
}

impl Network for ExactFactor {
    fn inputs(&self) -> usize {
        (0..self.observed.len()).map(|s| self.width(s)).sum()
    }
    fn outputs(&self) -> usize {
        2
    }
    fn parameters(&self) -> Vec<Parameter> {
        vec![]
    }
    fn initialize(&self, _: &mut ChaCha8Rng, _: &mut [f32]) {}
    fn tape_len(&self, _: usize) -> usize {
        0
    }
    fn scratch_len(&self, _: usize) -> usize {
        0
    }
    fn forward(
        &self,
        _: &[f32],
        input: Block<'_>,
        output: &mut [f32],
        _: &mut [f32],
        _: &mut [f32],
    ) {
        for row in 0..input.rows() {
            let (h, p) = self.message(&|feature| f64::from(input.get(feature, row)));
            output[row] = h as f32;
            // The message map squares it.
            output[input.rows() + row] = p.max(0.0).sqrt() as f32;
        }
    }
    fn backward(
        &self,
        _: &[f32],
        _: Block<'_>,
        _: &[f32],
        _: &[f32],
        grad_input: Option<&mut [f32]>,
        _: &mut [f32],
        _: &mut [f32],
    ) {
        if let Some(grad_input) = grad_input {
            grad_input.fill(0.0);
        }
    }
}

/// A random factor tree with up to `size` variables, and for every factor a random correlation among its variables.
struct World {
    tree: FactorTree,
    /// For every factor, the correlation matrix of its variables, all of unit variance.
    correlations: Vec<Vec<f64>>,
}

fn world(size: usize, seed: u64) -> World {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut factors: Vec<Vec<String>> = vec![];
    let mut variables = vec!["v0".to_string()];
    while variables.len() < size {
        // Some trees have a hub, whose sums over all but one message are taken from a running total.
        let hub = seed.is_multiple_of(3) && rng.random_bool(0.8);
        let anchor = if hub {
            0
        } else {
            rng.random_range(0..variables.len())
        };
        let anchor = variables[anchor].clone();
        let degree = *[2, 2, 2, 3, 4].get(rng.random_range(0..5usize)).unwrap();
        let mut factor = vec![anchor];
        for _ in 1..degree {
            variables.push(format!("v{}", variables.len()));
            factor.push(variables[variables.len() - 1].clone());
        }
        let at = rng.random_range(0..factor.len());
        factor.swap(0, at);
        factors.push(factor);
    }
    // The first variable must not hang loose if nothing was attached to it twice.
    for leaf in ["va", "vb"] {
        factors.push(vec!["v0".into(), leaf.into()]);
    }
    let tree = FactorTree::from_factors(&factors, None).unwrap();
    let correlations = factors
        .iter()
        .map(|f| {
            // A correlation matrix from random loadings on one common cause.
            let loading: Vec<f64> = f.iter().map(|_| rng.random_range(-0.9..0.9)).collect();
            let k = f.len();
            (0..k * k)
                .map(|i| {
                    if i / k == i % k {
                        1.0
                    } else {
                        loading[i / k] * loading[i % k]
                    }
                })
                .collect()
        })
        .collect();
    World { tree, correlations }
}

/// Inverts a positive definite matrix by Gauss–Jordan.
fn invert(a: &[f64], k: usize) -> Vec<f64> {
    let mut a = a.to_vec();
    let mut b: Vec<f64> = (0..k * k)
        .map(|i| f64::from(u8::from(i / k == i % k)))
        .collect();
    for s in 0..k {
        let pivot = a[s * k + s];
        for j in 0..k {
            a[s * k + j] /= pivot;
            b[s * k + j] /= pivot;
        }
        for i in (0..k).filter(|&i| i != s) {
            let ratio = a[i * k + s];
            for j in 0..k {
                a[i * k + j] -= ratio * a[s * k + j];
                b[i * k + j] -= ratio * b[s * k + j];
            }
        }
    }
    b
}

impl World {
    /// The joint precision of all variables: factors' precisions, less the priors counted twice.
    fn precision(&self) -> Vec<f64> {
        let n = self.tree.variable_count();
        let mut joint = vec![0.0; n * n];
        for (f, correlation) in self.tree.factors().zip(&self.correlations) {
            let members = self.tree.variables_of(f);
            let k = members.len();
            let p = invert(correlation, k);
            for i in 0..k {
                for j in 0..k {
                    joint[members[i].index() * n + members[j].index()] += p[i * k + j];
                }
            }
        }
        for v in self.tree.variables() {
            joint[v.index() * n + v.index()] -= self.tree.factors_of(v).len() as f64 - 1.0;
        }
        joint
    }

    fn model(&self, data: &Dataset) -> Model {
        let tree = &self.tree;
        let mut builder = Model::builder(tree.clone()).inputs(ramp::family::Inputs::Natural);
        for m in tree.messages() {
            let factor = tree.message_factor(m);
            let members = tree.variables_of(factor);
            let target = members
                .iter()
                .position(|&v| v == tree.message_target(m))
                .unwrap();
            let k = members.len();
            let order: Vec<usize> = (0..k).filter(|&i| i != target).chain([target]).collect();
            let p = invert(&self.correlations[factor.index()], k);
            let mut precision: Vec<f64> = vec![0.0; k * k];
            for (i, &a) in order.iter().enumerate() {
                for (j, &b) in order.iter().enumerate() {
                    precision[i * k + j] = p[a * k + b];
                }
            }
            // The beliefs of latent sources come as ratios to their standard-normal priors, which the factor holds.
            let observed: Vec<bool> = order[..k - 1]
                .iter()
                .map(|&i| tree.kind(members[i]) == Kind::Observed)
                .collect();
            let flags = k > 2;
            builder = builder.own_network(
                tree.message_name(m),
                Box::new(ExactFactor {
                    precision,
                    observed,
                    flags,
                }),
            );
        }
        builder.build(data).unwrap()
    }
}

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

/// A chain whose links have random correlations, and data for it.
fn chain(length: usize, rows: usize, seed: u64) -> (World, Vec<Vec<f32>>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let tree = FactorTree::chain(length).unwrap();
    let correlations = tree
        .factors()
        .map(|_| {
            let r: f64 = rng.random_range(0.3..0.9);
            vec![1.0, r, r, 1.0]
        })
        .collect();
    let sequences = (0..rows)
        .map(|_| {
            (0..length)
                .map(|_| rng.random_range(-2.0..2.0f32))
                .collect()
        })
        .collect();
    (World { tree, correlations }, sequences)
}

fn dataset(sequences: &[Vec<f32>]) -> Dataset {
    Dataset::new()
        .observe_sequence("x", sequences[0].len(), 1, sequences.concat())
        .unwrap()
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
