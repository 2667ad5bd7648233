//! The nodewise free energies and their gradient with respect to every message (MATH, "The objective").
//!
//! Samples meet only here: everything before and after works on one sample at a time.

mod pairwise;
#[cfg(test)]
mod tests;

use crate::family::Belief;
use crate::kernel::real::{Element, Kernel, Real};
use crate::message::{Messages, Node, Presence};
use pairwise::{Columns, LogNormalizers, Pairwise, Rows, Sums};
use rayon::prelude::*;
use std::ops::Range;

/// Rows that one task takes through the pairwise kernel. A constant, so that results do not depend on the number of threads.
const CHUNK: usize = 2048;
/// How much memory the column sums of unfinished chunks may take, in numbers.
const PARTIALS: usize = 8 << 20;

/// Which samples make up the empirical mixture `F`, and what population they stand for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixture<'a> {
    /// The rows of the batch in the mixture, ascending; all of them by default.
    pub drawn: Option<&'a [u32]>,
    /// The size of the population that the batch was drawn from; the batch itself by default. It sets the weight of a
    /// sample's own term.
    pub population: Option<usize>,
    /// How many rows, from the first on, are to be scored when no gradient is asked for; all of them by default. The
    /// others only make up the mixture, and their own free energies have no meaning.
    pub scored: Option<usize>,
}

/// The value of the objective, taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FreeEnergy {
    /// The mean over samples for every node, in nats.
    pub nodes: Vec<f64>,
    /// `F_k^(n)` for every node and, within it, every sample.
    pub samples: Vec<f64>,
}

impl FreeEnergy {
    /// The mean over nodes: what training maximises.
    pub fn mean(&self) -> f64 {
        self.nodes.iter().sum::<f64>() / self.nodes.len() as f64
    }
}

/// Evaluates all nodewise free energies and, where `gradient` is given, writes the gradient of their mean.
pub fn free_energy<E: Element>(
    nodes: &[Node],
    messages: &Messages<E>,
    presence: &Presence,
    mixture: Mixture<'_>,
    mut gradient: Option<&mut Messages<E>>,
) -> FreeEnergy {
    let rows = messages.rows();
    let with_gradient = gradient.is_some();
    let sums: Vec<NodeSums<E>> = nodes
        .par_iter()
        .map(|node| NodeSums::new(node, messages, presence, with_gradient))
        .collect();

    let mut samples: Vec<f64> = sums
        .par_iter()
        .flat_map_iter(|s| s.base.iter().copied())
        .collect();
    let scale = 1.0 / (nodes.len() as f64 * rows as f64);
    // Row sides of the gradient, per node.
    let mut row_means: Vec<Vec<f64>> = sums
        .iter()
        .map(|s| {
            if with_gradient {
                vec![0.0; s.dim * rows]
            } else {
                vec![]
            }
        })
        .collect();

    for group in groups(nodes, rows) {
        let factors: Vec<Factor<E>> = group
            .par_iter()
            .map(|&(k, m)| {
                Factor::new(
                    &nodes[k],
                    messages,
                    presence.rows(m),
                    m,
                    &sums[k].sum,
                    mixture,
                )
            })
            .collect();
        let tasks: Vec<(usize, usize)> = factors
            .iter()
            .enumerate()
            .flat_map(|(i, f)| (0..f.scored).step_by(CHUNK).map(move |start| (i, start)))
            .collect();
        let chunks: Vec<Sums<E>> = tasks
            .par_iter()
            .map(|&(i, start)| {
                factors[i].pairwise(&nodes[group[i].0].belief, start, !with_gradient)
            })
            .collect();

        // In order of messages and chunks, whoever computed them.
        for (&(i, start), chunk) in tasks.iter().zip(&chunks) {
            let (factor, k) = (&factors[i], group[i].0);
            let span = &factor.rows[start..(start + CHUNK).min(factor.scored)];
            for (at, &n) in span.iter().enumerate() {
                let own_phi: f64 = factor.own_phi[start + at].into();
                let log_sum: f64 = chunk.log_sum[at].into();
                samples[k * rows + n as usize] -= own_phi + log_sum + factor.log_other[start + at];
            }
            if with_gradient {
                let stride = chunk.log_sum.len();
                for (d, plane) in row_means[k].chunks_exact_mut(rows).enumerate() {
                    for (at, &n) in span.iter().enumerate() {
                        plane[n as usize] += chunk.row_mean[d * stride + at].into();
                    }
                }
            }
        }
        if let Some(gradient) = gradient.as_deref_mut() {
            let mut targets = gradient.split_mut();
            let mut slots: Vec<(usize, &mut [E])> = group
                .iter()
                .enumerate()
                .map(|(i, &(_, m))| (i, std::mem::take(&mut targets[m])))
                .collect();
            slots.par_iter_mut().for_each(|(i, target)| {
                let first = tasks.partition_point(|t| t.0 < *i);
                let last = tasks.partition_point(|t| t.0 <= *i);
                factors[*i].gradient(
                    &nodes[group[*i].0].belief,
                    &chunks[first..last],
                    target,
                    messages.stride(),
                );
            });
        }
    }

    if let Some(gradient) = gradient {
        let stride = messages.stride();
        let mut targets = gradient.split_mut();
        let mut slots: Vec<(usize, Vec<_>)> = nodes
            .iter()
            .enumerate()
            .map(|(k, node)| {
                (
                    k,
                    node.messages
                        .clone()
                        .map(|m| (m, std::mem::take(&mut targets[m])))
                        .collect(),
                )
            })
            .collect();
        slots.par_iter_mut().for_each(|(k, targets)| {
            let (sums, row_mean) = (&sums[*k], &row_means[*k]);
            for (m, target) in targets {
                for d in 0..sums.dim {
                    let plane = &mut target[d * stride..d * stride + rows];
                    let mut finish = |n: usize| {
                        let ds = sums.posterior_mean[d * stride + n].into()
                            * (sums.present[n] + 1.0)
                            - row_mean[d * rows + n];
                        plane[n] = E::from_f64((plane[n].into() + ds) * scale);
                    };
                    match presence.rows(*m) {
                        None => (0..rows).for_each(&mut finish),
                        Some(present) => present.iter().for_each(|&n| finish(n as usize)),
                    }
                }
            }
        });
    }

    FreeEnergy {
        nodes: samples
            .chunks_exact(rows)
            .map(|s| s.iter().sum::<f64>() / rows as f64)
            .collect(),
        samples,
    }
}

/// The messages of all nodes as `(node, message)`, cut into groups whose column sums fit the memory set aside.
fn groups(nodes: &[Node], rows: usize) -> Vec<Vec<(usize, usize)>> {
    let mut all: Vec<Vec<(usize, usize)>> = vec![];
    let mut filled = usize::MAX;
    for (k, node) in nodes.iter().enumerate() {
        for m in node.messages.clone() {
            let partials = rows.div_ceil(CHUNK) * (node.belief.dim() + 1) * rows;
            if filled.saturating_add(partials) > PARTIALS {
                all.push(vec![]);
                filled = 0;
            }
            filled += partials;
            let last = all.len() - 1;
            all[last].push((k, m));
        }
    }
    all
}

/// What a node's messages add up to.
struct NodeSums<E> {
    dim: usize,
    /// `s_n`, `dim` planes.
    sum: Vec<E>,
    /// `μ(q_n)`, `dim` planes.
    posterior_mean: Vec<E>,
    /// `J_n`.
    present: Vec<f64>,
    /// `(J_n + 1) Φ(q_n) − Φ(η0)`, zero where no message is present.
    base: Vec<f64>,
}

impl<E: Element> NodeSums<E> {
    fn new(node: &Node, messages: &Messages<E>, presence: &Presence, with_mean: bool) -> Self {
        let (rows, stride, dim) = (messages.rows(), messages.stride(), node.belief.dim());
        let mut sum = vec![E::default(); dim * stride];
        E::dispatch(AddUp {
            messages,
            which: node.messages.clone(),
            sum: &mut sum,
        });
        let mut present = vec![0.0; rows];
        for m in node.messages.clone() {
            match presence.rows(m) {
                None => present.iter_mut().for_each(|j| *j += 1.0),
                Some(list) => list.iter().for_each(|&n| present[n as usize] += 1.0),
            }
        }
        let mut phi = vec![E::default(); stride];
        let mut posterior_mean = vec![E::default(); if with_mean { dim * stride } else { 0 }];
        E::dispatch(Posterior {
            node,
            sum: &sum,
            stride,
            phi: &mut phi,
            mean: &mut posterior_mean,
        });
        let prior_phi = node.belief.log_normalizer(&node.prior[..]);
        let base = present
            .iter()
            .zip(&phi)
            .map(|(&j, &phi)| {
                if j > 0.0 {
                    (j + 1.0) * phi.into() - prior_phi
                } else {
                    0.0
                }
            })
            .collect();
        NodeSums {
            dim,
            sum,
            posterior_mean,
            present,
            base,
        }
    }
}

/// Adds up the planes of several messages.
struct AddUp<'a, E> {
    messages: &'a Messages<E>,
    which: Range<usize>,
    sum: &'a mut [E],
}

impl<E: Element> Kernel<E> for AddUp<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = E>>(self) {
        for m in self.which {
            for (to, from) in self
                .sum
                .chunks_exact_mut(R::LANES)
                .zip(self.messages.message(m).chunks_exact(R::LANES))
            {
                (R::load(to) + R::load(from)).store(to);
            }
        }
    }
}

/// `Φ(q)` and, where there is room for them, the mean parameters.
struct Posterior<'a, E> {
    node: &'a Node,
    sum: &'a [E],
    stride: usize,
    phi: &'a mut [E],
    mean: &'a mut [E],
}

impl<E: Element> Kernel<E> for Posterior<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = E>>(self) {
        let dim = self.node.prior.len();
        let (mut eta, mut mu) = (vec![R::zero(); dim], vec![R::zero(); dim]);
        for at in (0..self.stride).step_by(R::LANES) {
            for (d, e) in eta.iter_mut().enumerate() {
                *e = R::load(&self.sum[d * self.stride + at..]) + R::splat(self.node.prior[d]);
            }
            if self.mean.is_empty() {
                self.node
                    .belief
                    .log_normalizer(&eta)
                    .store(&mut self.phi[at..]);
            } else {
                self.node
                    .belief
                    .mean(&eta, &mut mu)
                    .store(&mut self.phi[at..]);
                for (d, m) in mu.iter().enumerate() {
                    m.store(&mut self.mean[d * self.stride + at..]);
                }
            }
        }
    }
}

/// One factor's beliefs about one node: the rows that have it and the mixture they meet.
struct Factor<E> {
    /// The rows of the batch that have this message.
    rows: Vec<u32>,
    /// How many of them are to be scored.
    scored: usize,
    /// The rows, in order of the batch, that make the mixture.
    drawn: Vec<u32>,
    columns: Columns<E>,
    stride: usize,
    /// `s_n`, `f_n`, `dim` planes each, and `Φ(f_n)`, for the rows that have it.
    sum: Vec<E>,
    own: Vec<E>,
    own_phi: Vec<E>,
    own_column: Vec<E>,
    own_bonus: Vec<E>,
    log_other: Vec<f64>,
}

impl<E: Element> Factor<E> {
    fn new(
        node: &Node,
        messages: &Messages<E>,
        present: Option<&[u32]>,
        message: usize,
        node_sum: &[E],
        mixture: Mixture<'_>,
    ) -> Self {
        let all = messages.rows();
        let rows: Vec<u32> = present.map_or_else(|| (0..all as u32).collect(), <[u32]>::to_vec);
        let drawn = match mixture.drawn {
            None => rows.clone(),
            Some(drawn) if present.is_none() => drawn.to_vec(),
            Some(drawn) => drawn
                .iter()
                .copied()
                .filter(|n| rows.binary_search(n).is_ok())
                .collect(),
        };
        let plane = |d: usize| messages.plane(message, d);
        let columns = Columns::gather(&node.belief, &node.prior, &drawn, plane);
        // Present rows share the population in proportion. When some rows are only the mixture, it is their share: the score
        // of a row must not depend on the rows beside it.
        let share = match (mixture.scored, mixture.drawn) {
            (Some(_), Some(mixture)) => drawn.len() as f64 / mixture.len().max(1) as f64,
            _ => rows.len() as f64 / all as f64,
        };
        let scored = mixture.scored.map_or(rows.len(), |scored| {
            rows.partition_point(|&n| (n as usize) < scored)
        });
        let population = mixture
            .population
            .map_or(rows.len() as f64, |p| p as f64 * share);

        let (dim, stride) = (node.belief.dim(), rows.len().next_multiple_of(16));
        let mut sum = vec![E::default(); dim * stride];
        let mut own = vec![E::default(); dim * stride];
        for d in 0..dim {
            let (to, from) = (d * stride..(d + 1) * stride, plane(d));
            own[to.clone()].fill(E::from_f64(node.prior[d]));
            for ((o, s), &n) in own[to.clone()].iter_mut().zip(&mut sum[to]).zip(&rows) {
                *o = E::from_f64(node.prior[d] + from[n as usize].into());
                *s = node_sum[d * messages.stride() + n as usize];
            }
        }
        let mut own_phi = vec![E::default(); stride];
        E::dispatch(LogNormalizers {
            belief: &node.belief,
            eta: &own,
            stride,
            phi: &mut own_phi,
        });

        let mut own_column = vec![E::from_f64(-1.0); stride];
        let mut own_bonus = vec![E::default(); stride];
        let mut log_other = vec![0.0; rows.len()];
        let mut column = 0;
        for (at, &n) in rows.iter().enumerate() {
            while column < drawn.len() && drawn[column] < n {
                column += 1;
            }
            let own = column < drawn.len() && drawn[column] == n;
            if own {
                own_column[at] = E::from_f64(column as f64);
            }
            let others = (drawn.len() - usize::from(own)) as f64;
            // A sample alone in its mixture is the whole mixture.
            if others > 0.0 {
                let population = population.max(others + 1.0);
                own_bonus[at] = E::from_f64((others / (population - 1.0)).ln());
                log_other[at] = ((population - 1.0) / (population * others)).ln();
            }
        }
        Factor {
            rows,
            scored,
            drawn,
            columns,
            stride,
            sum,
            own,
            own_phi,
            own_column,
            own_bonus,
            log_other,
        }
    }

    fn pairwise(&self, belief: &Belief, start: usize, value_only: bool) -> Sums<E> {
        let len = CHUNK.min(self.scored - start);
        let rows = Rows {
            stride: self.stride,
            sum: &self.sum[start..],
            own: &self.own[start..],
            own_phi: &self.own_phi[start..],
            own_column: &self.own_column[start..],
            own_bonus: &self.own_bonus[start..],
            len,
        };
        E::dispatch(Pairwise {
            belief,
            rows,
            columns: &self.columns,
            value_only,
        })
    }

    /// `∂F/∂f` of every row that has the message, into the planes of the batch; absent rows get zero.
    fn gradient(
        &self,
        belief: &Belief,
        chunks: &[Sums<E>],
        target: &mut [E],
        target_stride: usize,
    ) {
        let dim = belief.dim();
        let mut mean = vec![E::default(); dim * self.stride];
        E::dispatch(Means {
            belief,
            eta: &self.own,
            stride: self.stride,
            mean: &mut mean,
        });
        // Column sums over all chunks, scattered to the rows they belong to.
        let place: Vec<usize> = {
            let mut at = 0;
            self.drawn
                .iter()
                .map(|n| {
                    while self.rows[at] < *n {
                        at += 1;
                    }
                    at
                })
                .collect()
        };
        let mut weight = vec![1.0; self.rows.len()];
        for (c, chunk) in chunks.iter().enumerate() {
            let last = dim * self.columns.stride;
            for (column, &at) in place.iter().enumerate() {
                weight[at] -= chunk.column_mean[last + column].into();
            }
            for (at, w) in weight[c * CHUNK..].iter_mut().take(CHUNK).enumerate() {
                *w -= chunk.own_weight[at].into();
            }
        }
        target.fill(E::default());
        let mut total = vec![0.0; self.rows.len()];
        for d in 0..dim {
            // −μ(f) − Σ w μ(s+f) + Σ w μ(f), own term and columns together.
            for ((t, w), m) in total.iter_mut().zip(&weight).zip(&mean[d * self.stride..]) {
                let m: f64 = (*m).into();
                *t = -m * w;
            }
            for (c, chunk) in chunks.iter().enumerate() {
                for (column, &at) in place.iter().enumerate() {
                    total[at] -= chunk.column_mean[d * self.columns.stride + column].into();
                }
                let stride = chunk.log_sum.len();
                for (at, t) in total[c * CHUNK..].iter_mut().take(CHUNK).enumerate() {
                    *t -= chunk.own_mean[d * stride + at].into();
                }
            }
            let plane = &mut target[d * target_stride..];
            for (&n, &t) in self.rows.iter().zip(&total) {
                plane[n as usize] = E::from_f64(t);
            }
        }
    }
}

/// The mean parameters of every belief in planes.
struct Means<'a, E> {
    belief: &'a Belief,
    eta: &'a [E],
    stride: usize,
    mean: &'a mut [E],
}

impl<E: Element> Kernel<E> for Means<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = E>>(self) {
        let dim = self.belief.dim();
        let (mut eta, mut mu) = (vec![R::zero(); dim], vec![R::zero(); dim]);
        for at in (0..self.stride).step_by(R::LANES) {
            for (d, e) in eta.iter_mut().enumerate() {
                *e = R::load(&self.eta[d * self.stride + at..]);
            }
            self.belief.mean(&eta, &mut mu);
            for (d, m) in mu.iter().enumerate() {
                m.store(&mut self.mean[d * self.stride + at..]);
            }
        }
    }
}
