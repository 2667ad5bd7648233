//! How much messages count in imputations: one temperature, learned from samples that the networks have not (temperature scaling).
//!
//! The formula of imputations takes messages at their word. Where the family cannot hold what an observation says they are off: any number that is read off
//! an angle allows of two places at least, and a von Mises message has one. The exact conditional of such data is calibrated; the formula's is 5 % too
//! wide on every seed, and so it is with every message divided by its true mixture `F` in place of `f0`. With all messages times the number under which
//! fresh cells are likeliest it is 0 to 2 % too wide; where the formula is right, that number is near 1.

use super::impute::{Imputer, Leaf, moved};
use crate::Result;
use crate::data::Dataset;
use crate::model::Model;
use rayon::prelude::*;

/// The most cells that a temperature is learned from, and the most candidates that each is compared with: below a second of work.
const CELLS: usize = 6000;
const CANDIDATES: usize = 400;
/// What is believed of its logarithm before: a standard deviation around 0, so that few cells leave it near 1.
const BELIEVED: f64 = 0.5;
/// Where its logarithm is looked for, and how closely.
const RANGE: (f64, f64) = (-0.9, 1.5);
const CLOSE: f64 = 0.02;

/// A cell of a fresh sample: the belief without it, and its own message.
struct Cell<'a> {
    leaf: &'a Leaf,
    rest: Vec<f64>,
    own: Vec<f64>,
}

impl Imputer {
    /// Learns how much messages count from samples that the networks have not learned from, such as those that chose the weights: each cell should be
    /// as likely as can be among the support set's. Returns the temperature; few cells leave it near 1.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::FactorTree, infer::{Imputer, SupportSet}, model::Model};
    ///
    /// let data = |values: Vec<f32>| {
    ///     (1..=3).try_fold(Dataset::new(), |data, i| data.observe(format!("x{i}"), 1, values.clone()))
    /// };
    /// let training = data(vec![-1.0, 0.0, 1.0, 2.0])?;
    /// let model = Model::builder(FactorTree::star(3)?).build(&training)?;
    /// let mut imputer = Imputer::new(&model, &SupportSet::new(&model, &training, 4)?, &training)?;
    /// let temperature = imputer.fit_temperature(&model, &data(vec![0.5, 1.5])?)?;
    /// assert!(temperature > 0.0 && temperature == imputer.temperature());
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn fit_temperature(&mut self, model: &Model, fresh: &Dataset) -> Result<f64> {
        self.fit_temperature_of(model, fresh, |_| true)
    }

    /// [`fit_temperature`](Imputer::fit_temperature) from the cells of some of the tree's observations alone: those that will be imputed.
    pub fn fit_temperature_of(
        &mut self,
        model: &Model,
        fresh: &Dataset,
        which: impl Fn(usize) -> bool,
    ) -> Result<f64> {
        self.set_temperature(1.0);
        let bound = model.bind(fresh)?;
        let conditionals = self.conditionals(model, fresh)?;
        let leaves = self.leaves();
        let present = |row: usize, o: usize| {
            let latent = leaves[o].latent;
            let reached = bound.lengths().is_none_or(|l| l[row] as usize > latent);
            let there = reached && bound.observation(o).is_present(row);
            which(o) && there && !leaves[o].rows.is_empty()
        };
        let count = leaves.len();
        let all = (0..fresh.rows()).flat_map(|row| (0..count).map(move |o| (row, o)));
        let all: Vec<(usize, usize)> = all.filter(|&(row, o)| present(row, o)).collect();
        let stride = all.len().div_ceil(CELLS).max(1);
        let cells: Vec<Cell<'_>> = (all.iter().step_by(stride))
            .map(|&(row, o)| Cell {
                leaf: &leaves[o],
                rest: conditionals.belief_without(o, row),
                own: conditionals.own_message(o, row),
            })
            .collect();
        let objective = |log: f64| {
            let each = cells.par_iter().map(|c| c.log_likelihood(log.exp()));
            // In the order of the cells, whatever the number of threads.
            let each: Vec<f64> = each.collect();
            each.iter().sum::<f64>() - 0.5 * (log / BELIEVED).powi(2)
        };
        let temperature = match cells.is_empty() {
            true => 1.0,
            false => golden_section(objective, RANGE, CLOSE).exp(),
        };
        self.set_temperature(temperature);
        Ok(temperature)
    }
}

impl Cell<'_> {
    /// The logarithm of how much likelier the cell is, given the rest of its sample, than a cell of the support set.
    fn log_likelihood(&self, temperature: f64) -> f64 {
        let Leaf { node, messages, .. } = self.leaf;
        let width = self.rest.len();
        let stride = (messages.len() / width).div_ceil(CANDIDATES).max(1);
        let rest = moved(&node.prior, &self.rest, temperature);
        let mut eta = vec![0.0; width];
        let mut phi = |belief: &[f64], message: &[f64]| {
            for ((e, q), m) in eta.iter_mut().zip(belief).zip(message) {
                *e = q + temperature * m;
            }
            node.belief.log_normalizer(&eta[..])
        };
        let mut score = |message: &[f64]| phi(&rest, message) - phi(&node.prior, message);
        let own = score(&self.own);
        let (mut total, mut count) = (1.0, 1.0);
        for candidate in messages.chunks_exact(width).step_by(stride) {
            total += (score(candidate) - own).exp();
            count += 1.0;
        }
        -f64::ln(total / count)
    }
}

/// Where a function with one summit has it.
fn golden_section(f: impl Fn(f64) -> f64, (mut a, mut b): (f64, f64), close: f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut x, mut y) = (b - ratio * (b - a), a + ratio * (b - a));
    let (mut at_x, mut at_y) = (f(x), f(y));
    while b - a > close {
        if at_x > at_y {
            (b, y, at_y) = (y, x, at_x);
            x = b - ratio * (b - a);
            at_x = f(x);
        } else {
            (a, x, at_x) = (x, y, at_y);
            y = a + ratio * (b - a);
            at_y = f(y);
        }
    }
    (a + b) / 2.0
}

#[cfg(test)]
mod tests {
    use super::golden_section;
    use crate::data::Dataset;
    use crate::graph::FactorTree;
    use crate::infer::{Imputer, SupportSet};
    use crate::model::Model;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn a_summit_is_found_inside_and_at_the_ends() {
        for top in [-2.0, -0.3, 0.0, 0.7, 3.0] {
            let found = golden_section(|x: f64| -(x - top).powi(2), (-1.0, 2.0), 1e-3);
            assert!((found - top.clamp(-1.0, 2.0)).abs() < 1e-3, "{top} {found}");
        }
    }

    /// Untrained messages are not right, so the temperature is not 1: the one that is found has the largest likelihood by the naive formula,
    /// the weight of a cell of the support set among all.
    #[test]
    fn the_temperature_is_the_likeliest_by_the_naive_formula() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let rows = 300;
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let mut columns = vec![vec![]; 4];
        for _ in 0..rows {
            let z = normal();
            for column in &mut columns {
                column.push((z + 0.5 * normal()) as f32);
            }
        }
        let data = columns
            .iter()
            .enumerate()
            .fold(Dataset::new(), |data, (i, x)| {
                data.observe(format!("x{}", i + 1), 1, x.clone()).unwrap()
            });
        for family in ["gaussian", "von_mises", "beta"] {
            let builder = Model::builder(FactorTree::star(4).unwrap()).seed(5);
            let model = builder.families(family).unwrap().build(&data).unwrap();
            let set = SupportSet::new(&model, &data, rows).unwrap();
            let mut imputer = Imputer::new(&model, &set, &data).unwrap();
            let found = imputer.fit_temperature(&model, &data).unwrap();
            let mut naive = |temperature: f64| {
                imputer.set_temperature(temperature);
                let conditionals = imputer.conditionals(&model, &data).unwrap();
                let cells = (0..rows).flat_map(|row| (0..4).map(move |o| (row, o)));
                let sum: f64 = cells
                    .map(|(row, o)| conditionals.weights(o, row)[row].ln())
                    .sum();
                sum - 0.5 * (temperature.ln() / super::BELIEVED).powi(2)
            };
            let at = naive(found);
            for factor in [0.8, 1.25] {
                let beside = (found * factor).clamp(super::RANGE.0.exp(), super::RANGE.1.exp());
                // At an end of the range, which untrained messages may reach, the search is as close as it promises.
                if (beside / found).ln().abs() < super::CLOSE {
                    continue;
                }
                // A cell counts once more among its candidates than in the naive formula.
                assert!(naive(beside) < at + 0.2, "{family}: {found}, {beside}");
            }
        }
    }

    #[test]
    fn without_fresh_cells_messages_count_as_they_are() {
        let data = |values: Vec<f32>| {
            let all = (1..=3).map(|i| format!("x{i}"));
            all.fold(Dataset::new(), |data, name| {
                data.observe(name, 1, values.clone()).unwrap()
            })
        };
        let training = data(vec![-1.0, 0.0, 1.0, 2.0]);
        let builder = Model::builder(FactorTree::star(3).unwrap());
        let model = builder.build(&training).unwrap();
        let set = SupportSet::new(&model, &training, 4).unwrap();
        let mut imputer = Imputer::new(&model, &set, &training).unwrap();
        let before = imputer
            .conditionals(&model, &training)
            .unwrap()
            .weights(1, 2);
        let found = imputer.fit_temperature(&model, &data(vec![f32::NAN; 5]));
        assert_eq!(found.unwrap(), 1.0);
        let after = imputer
            .conditionals(&model, &training)
            .unwrap()
            .weights(1, 2);
        assert_eq!(before, after);
    }
}
