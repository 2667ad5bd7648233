//! The zero of a chain's latents: where beliefs lie on average, and the constants in messages that move it.

use super::{Model, Workspace};
use crate::Result;
use crate::data::Dataset;
use crate::family::{AnyFamily, DiagonalGaussian, Gaussian};

impl Model {
    /// The coordinates of a chain's latents, if they are Gaussian around zero: then the mean of beliefs has a zero to lie at.
    pub(crate) fn centred_coordinates(&self) -> Option<usize> {
        // A star is a chain too, of one step; trees have their zeros right as they are.
        self.tree.time_axis()?;
        let of = |node: &crate::message::Node| match node.belief.parts() {
            [AnyFamily::Gaussian(Gaussian { dim })]
            | [AnyFamily::Diagonal(DiagonalGaussian { dim })] => {
                node.prior[..*dim].iter().all(|&h| h == 0.0).then_some(*dim)
            }
            _ => None,
        };
        let dim = of(self.nodes.first()?)?;
        (self.nodes.iter().all(|node| of(node) == Some(dim))).then_some(dim)
    }

    /// How many numbers a sample of a chain shows, over all of its steps.
    pub(crate) fn numbers_per_sample(&self) -> usize {
        self.nodes.len() * self.spec().features.iter().sum::<usize>()
    }

    /// Adds the means of these samples' beliefs to sums over steps, and tells of how many: steps after a sequence's end have none.
    pub(crate) fn add_belief_means(&self, data: &Dataset, sums: &mut [f64]) -> Result<usize> {
        let bound = self.bind(data)?;
        let samples: Vec<u32> = (0..bound.rows() as u32).collect();
        let batch = self.batch(&bound, &samples, None);
        let (messages, _) = self.messages_of(&batch, &mut Workspace::default());
        let mut count = 0;
        for (k, node) in self.nodes.iter().enumerate() {
            for row in 0..bound.rows() {
                if bound.lengths().is_some_and(|l| l[row] as usize <= k) {
                    continue;
                }
                let mut eta = node.prior.clone();
                for m in node.messages.clone() {
                    for (d, q) in eta.iter_mut().enumerate() {
                        *q += f64::from(messages.plane(m, d)[row]);
                    }
                }
                let means = node.belief.describe(&eta).mean;
                for (sum, mean) in sums.iter_mut().zip(means) {
                    *sum += mean;
                }
                count += 1;
            }
        }
        Ok(count)
    }

    /// Adds a constant to the precision-weighted means of all messages of a chain, by the biases of their networks; those of networks that do not say how
    /// they lie stay.
    pub(crate) fn add_to_messages(&mut self, constant: &[f64]) {
        let layouts = self.networks.iter().filter_map(|slot| {
            let layout = slot.network.layout()?;
            Some(slot.span.start + layout.bias.start)
        });
        for start in layouts.collect::<Vec<_>>() {
            // A Gaussian's precision-weighted mean is what networks put out first, as it is.
            for (parameter, add) in self.parameters[start..].iter_mut().zip(constant) {
                *parameter += *add as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::data::Dataset;
    use crate::graph::{FactorTree, Tying};
    use crate::model::Model;

    fn chain(family: &str) -> (Model, Dataset) {
        let value = |i: usize| ((i * 37 % 101) as f32 / 50.0) - 1.0;
        let values = (0..40 * 5).map(value).collect();
        let data = Dataset::new().observe_sequence("x", 5, 1, values).unwrap();
        let lengths = (0..40).map(|n| 2 + n % 4).collect();
        let data = data.with_lengths(lengths).unwrap();
        let builder = Model::builder(FactorTree::sequence(5, &["x"]).unwrap());
        let builder = builder.families(family).unwrap().tying(Tying::Role);
        (builder.build(&data).unwrap(), data)
    }

    #[test]
    fn sums_are_those_of_the_posterior() {
        for (family, dim) in [
            ("gaussian", 1),
            ("gaussian(2)", 2),
            ("diagonal_gaussian(3)", 3),
        ] {
            let (model, data) = chain(family);
            assert_eq!(model.centred_coordinates(), Some(dim));
            let mut sums = vec![0.0; dim];
            let count = model.add_belief_means(&data, &mut sums).unwrap();
            let posterior = model.posterior(&data).unwrap();
            let means = posterior.latents()[0].mean_array().into_values();
            let there: Vec<&[f64]> = means
                .chunks_exact(dim)
                .filter(|mean| mean[0].is_finite())
                .collect();
            assert_eq!(count, there.len());
            for (d, sum) in sums.iter().enumerate() {
                let expected: f64 = there.iter().map(|mean| mean[d]).sum();
                assert!((sum - expected).abs() < 1e-9, "{family} {sum} {expected}");
            }
        }
    }

    #[test]
    fn only_gaussians_around_zero_on_a_chain_have_a_zero() {
        assert_eq!(chain("beta").0.centred_coordinates(), None);
        let data = Dataset::new().observe("x1", 1, vec![0.0; 3]).unwrap();
        let data = data.observe("x2", 1, vec![0.0; 3]).unwrap();
        let tree = Model::builder(FactorTree::star(2).unwrap());
        assert_eq!(tree.build(&data).unwrap().centred_coordinates(), None);
    }
}
