//! Linear-Gaussian trees whose exact messages stand in place of networks.

#![allow(dead_code)] // Every test target uses a part of it.

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
pub struct World {
    pub tree: FactorTree,
    /// For every factor, the correlation matrix of its variables, all of unit variance.
    pub correlations: Vec<Vec<f64>>,
}

pub fn world(size: usize, seed: u64) -> World {
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
pub fn invert(a: &[f64], k: usize) -> Vec<f64> {
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
    pub fn precision(&self) -> Vec<f64> {
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

    pub fn model(&self, data: &Dataset) -> Model {
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

/// A chain whose links have random correlations, and data for it.
pub fn chain(length: usize, rows: usize, seed: u64) -> (World, Vec<Vec<f32>>) {
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

pub fn dataset(sequences: &[Vec<f32>]) -> Dataset {
    Dataset::new()
        .observe_sequence("x", sequences[0].len(), 1, sequences.concat())
        .unwrap()
}
