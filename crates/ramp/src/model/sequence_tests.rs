//! A chain given as sequences is the same chain given as a tree of separate observations: messages, free energy, gradient and
//! beliefs, bit for bit, whatever is missing and however long the samples are.

use super::*;
use crate::Result;
use crate::data::Dataset;
use crate::graph::Tying;
use crate::objective::Mixture;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The same chain without a time axis.
fn untimed(tree: &FactorTree) -> FactorTree {
    let mut builder = FactorTree::builder();
    for v in tree.variables() {
        builder = match tree.is_latent(v) {
            true => builder.latent(tree.name(v)),
            false => builder.observed(tree.name(v)),
        };
    }
    for f in tree.factors() {
        builder = builder.factor(tree.variables_of(f).iter().map(|&v| tree.name(v)));
    }
    builder.build().unwrap()
}

/// What of a series is there, cell by cell, as numbers or as bytes.
struct Series {
    features: usize,
    bytes: bool,
    values: Vec<u8>,
    present: Vec<bool>,
}

impl Series {
    fn random(rng: &mut ChaCha8Rng, cells: usize) -> Self {
        // Narrow ones are transposed for their network, wide ones are not.
        let features = [1, 2, 40][rng.random_range(0..3)];
        let gaps = [0.0, 0.3][rng.random_range(0..2)];
        Series {
            features,
            bytes: rng.random_bool(0.5),
            values: (0..cells * features).map(|_| rng.random()).collect(),
            present: (0..cells).map(|_| !rng.random_bool(gaps)).collect(),
        }
    }

    /// Some of its cells.
    fn cells(&self, which: &[usize]) -> (Vec<u8>, Vec<bool>) {
        let values = which
            .iter()
            .flat_map(|c| &self.values[c * self.features..][..self.features]);
        let present = which.iter().map(|&c| self.present[c]);
        (values.copied().collect(), present.collect())
    }

    fn numbers(&self, which: &[usize]) -> Vec<f32> {
        let (values, present) = self.cells(which);
        let there = present
            .iter()
            .flat_map(|&p| std::iter::repeat_n(p, self.features));
        let number = |(v, there): (u8, bool)| match there {
            true => f32::from(v) / 64.0 - 2.0,
            false => f32::NAN,
        };
        values.into_iter().zip(there).map(number).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_chain_of_sequences_is_a_tree_of_separate_observations(
        steps in 2usize..8,
        count in 1usize..4,
        rows in 1usize..40,
        unequal: bool,
        role: bool,
        seed in 0u64..1_000_000,
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Without a time axis, tying by role cannot tell series apart.
        let count = if role { 1 } else { count };
        let tying = if role { Tying::Role } else { Tying::Separate };
        let names: Vec<String> = (0..count).map(|i| format!("s@{i}")).collect();
        let tree = FactorTree::sequence(steps, &names).unwrap();
        let separate = untimed(&tree);
        let all: Vec<usize> = (0..rows * steps).collect();

        let (mut together, mut apart) = (Dataset::new(), vec![Dataset::new()]);
        let series: Vec<Series> = names.iter().map(|_| Series::random(&mut rng, rows * steps)).collect();
        for (name, s) in names.iter().zip(&series) {
            together = match s.bytes {
                true => {
                    let (values, present) = s.cells(&all);
                    together.observe_sequence_bytes(name, steps, s.features, values, Some(present)).unwrap()
                }
                false => together.observe_sequence(name, steps, s.features, s.numbers(&all)).unwrap(),
            };
        }
        for step in 0..steps {
            for (i, s) in series.iter().enumerate() {
                let name = separate.name(tree.observation_at(i, step).unwrap());
                let cells: Vec<usize> = (0..rows).map(|row| row * steps + step).collect();
                let data = apart.pop().unwrap();
                apart.push(match s.bytes {
                    true => {
                        let (values, present) = s.cells(&cells);
                        data.observe_bytes(name, s.features, values, Some(present)).unwrap()
                    }
                    false => data.observe(name, s.features, s.numbers(&cells)).unwrap(),
                });
            }
        }
        let mut apart = apart.pop().unwrap();
        if unequal {
            let lengths: Vec<u32> = (0..rows).map(|_| rng.random_range(0..=steps as u32)).collect();
            together = together.with_lengths(lengths.clone()).unwrap();
            apart = apart.with_lengths(lengths).unwrap();
        }
        let build = |tree: FactorTree, data: &Dataset| {
            let builder = Model::builder(tree).families("gaussian(2)").unwrap().tying(tying);
            builder.init(Initialisation::Independent).seed(seed).build(data).unwrap()
        };
        let (ours, theirs) = (build(tree, &together), build(separate, &apart));
        prop_assert_eq!(ours.parameters(), theirs.parameters());

        // Some samples of the data, some of their observations masked, as in a step of training.
        let samples: Vec<u32> = (0..rows as u32).filter(|_| rng.random_bool(0.8)).collect();
        let masked: Vec<bool> = (0..steps * count * samples.len()).map(|_| rng.random_bool(0.2)).collect();
        let look = |model: &Model, data: &Dataset| {
            let bound = model.bind(data).unwrap();
            let mask = Mask::new(steps * count, samples.len(), |i, r| masked[i * samples.len() + r]);
            let batch = model.batch(&bound, &samples, Some(&mask));
            let mut space = Workspace::default();
            let mut gradient = vec![0.0; model.parameters().len()];
            let mixture = Mixture { population: Some(2 * rows), ..Mixture::default() };
            let value = model.evaluate(&batch, mixture, Some(&mut gradient), &mut space).unwrap().clone();
            let messages: Vec<Vec<f32>> = (0..model.plan.target.len())
                .flat_map(|m| {
                    let dims = model.plan.starts[m + 1] - model.plan.starts[m];
                    (0..dims).map(move |d| (m, d))
                })
                .map(|(m, d)| space.messages.plane(m, d).to_vec())
                .collect();
            (messages, value, gradient)
        };
        if !samples.is_empty() {
            prop_assert_eq!(look(&ours, &together), look(&theirs, &apart));
        }

        let (ours, theirs) = (ours.posterior(&together).unwrap(), theirs.posterior(&apart).unwrap());
        let z = ours.latent("z").unwrap();
        let (means, sds) = z.moments();
        prop_assert_eq!(means.shape(), [rows, steps, 2]);
        for (step, latent) in theirs.latents().iter().enumerate() {
            for row in 0..rows {
                let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                prop_assert!(same(z.natural_at(row, step), latent.natural(row)));
                let said = latent.describe(row);
                prop_assert!(same(&means.row(row)[2 * step..2 * step + 2], &said.mean));
                prop_assert!(same(&sds.row(row)[2 * step..2 * step + 2], &said.sd));
            }
        }
    }
}

#[test]
fn data_of_the_wrong_make_is_named() {
    let chain = FactorTree::chain(2).unwrap();
    let single = Dataset::new().observe("x", 1, vec![0.0; 4]).unwrap();
    let sequence = Dataset::new()
        .observe_sequence("x", 2, 1, vec![0.0; 4])
        .unwrap();
    let says = |result: Result<Model>| result.unwrap_err().to_string();
    assert!(says(Model::builder(chain.clone()).build(&single)).contains("observe_sequence"));
    let star = FactorTree::from_edges(&[("z", "x"), ("z", "y")]).unwrap();
    assert!(says(Model::builder(star).build(&sequence)).contains("the tree has no time axis"));
    let model = Model::builder(chain.clone()).build(&sequence).unwrap();
    let wide = Dataset::new()
        .observe_sequence("x", 2, 2, vec![0.0; 4])
        .unwrap();
    let error = model.posterior(&wide).unwrap_err().to_string();
    assert!(
        error.contains("`x` has 2 numbers per sample in the data but 1 in the model"),
        "{error}"
    );
    let differ = Model::builder(chain).family("z2", "gaussian(2)").unwrap();
    assert!(says(differ.build(&sequence)).contains("must have the same family"));
}
