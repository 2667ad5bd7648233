//! The nodewise free energies and their gradient with respect to every message (MATH, "The objective").
//!
//! Samples meet only here: everything before and after works on one sample at a time.

mod columns;
mod exchange;
mod factor;
mod node_sums;
mod pairwise;
mod sparse;
#[cfg(test)]
mod sparse_tests;
#[cfg(test)]
mod tests;

use crate::collective::{CollectiveError, Single};
use crate::kernel::real::Element;
use crate::message::{Messages, Node, Presence};
pub(crate) use exchange::Ranks;
use exchange::{Exchange, Units};
use factor::Factor;
use node_sums::NodeSums;
use pairwise::{Evaluate, Sums};
use rayon::prelude::*;

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

/// The memory of evaluations, reused from one to the next: once it has seen a batch, those of its size ask for no more,
/// whichever messages their samples have.
///
/// ```
/// use ramp::message::{Messages, Node, Presence};
/// use ramp::objective::{FreeEnergySpace, Mixture, free_energy, free_energy_in};
///
/// let belief: ramp::family::Belief = "gaussian".parse()?;
/// let nodes = [Node { prior: belief.prior(), belief, messages: 0..2 }];
/// let messages: Messages = Messages::zeros(3, [2, 2]);
/// let (presence, mixture) = (Presence::complete(2), Mixture::default());
/// let mut space = FreeEnergySpace::default();
/// let value = free_energy_in(&nodes, &messages, &presence, mixture, None, &mut space);
/// assert_eq!(value, &free_energy(&nodes, &messages, &presence, mixture, None));
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Default)]
pub struct FreeEnergySpace<E = f32> {
    nodes: Vec<NodeSums<E>>,
    factors: Vec<Factor<E>>,
    /// The sums of every factor's chunks, as many for each.
    chunks: Vec<Sums<E>>,
    /// All messages as `(node, message)`, and where the groups that are evaluated together end.
    messages: Vec<(usize, usize)>,
    ends: Vec<usize>,
    /// For every message its place among those.
    places: Vec<usize>,
    exchange: Exchange<E>,
    value: FreeEnergy,
}

/// Evaluates all nodewise free energies and, where `gradient` is given, writes the gradient of their mean.
pub fn free_energy<E: Element>(
    nodes: &[Node],
    messages: &Messages<E>,
    presence: &Presence,
    mixture: Mixture<'_>,
    gradient: Option<&mut Messages<E>>,
) -> FreeEnergy {
    let mut space = FreeEnergySpace::default();
    free_energy_in(nodes, messages, presence, mixture, gradient, &mut space);
    space.value
}

/// [`free_energy`] in the memory of earlier evaluations.
pub fn free_energy_in<'s, E: Element>(
    nodes: &[Node],
    messages: &Messages<E>,
    presence: &Presence,
    mixture: Mixture<'_>,
    gradient: Option<&mut Messages<E>>,
    space: &'s mut FreeEnergySpace<E>,
) -> &'s FreeEnergy {
    let ranks = Ranks {
        collective: &Single,
        row_ends: &[messages.rows()],
    };
    match free_energy_among(ranks, nodes, messages, presence, mixture, gradient, space) {
        Ok(()) => &space.value,
        Err(_) => unreachable!("one process waits for nobody"),
    }
}

impl<E> FreeEnergySpace<E> {
    /// What was evaluated last.
    pub(crate) fn value(&self) -> &FreeEnergy {
        &self.value
    }
}

/// [`free_energy_in`] by several ranks that all have all messages: each gets the whole value, and the gradient of its own rows.
pub(crate) fn free_energy_among<E: Element>(
    ranks: Ranks<'_>,
    nodes: &[Node],
    messages: &Messages<E>,
    presence: &Presence,
    mixture: Mixture<'_>,
    mut gradient: Option<&mut Messages<E>>,
    space: &mut FreeEnergySpace<E>,
) -> Result<(), CollectiveError> {
    let rows = messages.rows();
    let own = ranks.own();
    let value_only = gradient.is_none();
    space.lay_out(nodes, messages);
    let FreeEnergySpace {
        nodes: sums,
        factors,
        chunks,
        messages: all,
        ends,
        places,
        exchange,
        value: FreeEnergy {
            nodes: means,
            samples,
        },
    } = space;
    let sums = &mut sums[..nodes.len()];
    let of_nodes = sums.par_iter_mut().zip(nodes);
    of_nodes
        .zip(room(samples, nodes.len() * rows).par_chunks_mut(rows))
        .for_each(|((s, node), base)| s.fill(node, messages, presence, !value_only, base));

    let scale = 1.0 / (nodes.len() as f64 * rows as f64);
    // Chunks of a batch in which all have a message.
    let per = rows.div_ceil(CHUNK);
    let mut first = 0;
    for &end in ends.iter() {
        let group = &all[first..end];
        let factors = &mut factors[..group.len()];
        let filled = factors.par_iter_mut().zip(group);
        filled.for_each(|(factor, &(k, m))| {
            let present = presence.rows(m);
            factor.fill(&nodes[k], messages, present, m, &sums[k].sum, mixture);
        });
        let mut units = 0;
        for factor in factors.iter_mut() {
            factor.first_unit = units;
            units += factor.scored.div_ceil(CHUNK);
        }
        let chunks = &mut chunks[..group.len() * per];
        let columns = mixture.drawn.map_or(rows, <[u32]>::len);
        for (chunks, &(k, _)) in chunks.chunks_mut(per).zip(group) {
            for chunk in chunks {
                chunk.reserve(nodes[k].belief.dim(), CHUNK.min(rows), columns, value_only);
            }
        }
        chunks.par_iter_mut().enumerate().for_each(|(at, sums)| {
            let (factor, start) = (&factors[at / per], at % per * CHUNK);
            if start < factor.scored && ranks.computes(factor.first_unit + at % per) {
                let belief = &nodes[group[at / per].0].belief;
                let pairwise = factor.chunk(belief, start, value_only);
                E::dispatch(Evaluate { pairwise, sums });
            }
        });

        if ranks.count() > 1 {
            let units = Units {
                factors,
                chunks,
                per,
                value_only,
            };
            exchange.sums(ranks, units)?;
        }

        // In order of messages and chunks, whoever computed them.
        for ((factor, chunks), &(k, _)) in factors.iter().zip(chunks.chunks(per)).zip(group) {
            for (start, chunk) in (0..factor.scored).step_by(CHUNK).zip(chunks) {
                let within = factor.within(start / CHUNK, &own);
                for at in within.clone() {
                    let n = factor.rows[start + at];
                    let own_phi: f64 = factor.own_phi[start + at].into();
                    let log_sum: f64 = chunk.log_sum[at].into();
                    samples[k * rows + n as usize] -=
                        own_phi + log_sum + factor.log_other[start + at];
                }
                let stride = chunk.log_sum.len();
                for (d, plane) in sums[k].row_mean.chunks_exact_mut(rows).enumerate() {
                    for at in within.clone() {
                        let n = factor.rows[start + at];
                        plane[n as usize] += chunk.row_mean[d * stride + at].into();
                    }
                }
            }
        }
        if let Some(gradient) = gradient.as_deref_mut() {
            let at_factors = factors.par_iter_mut().zip(chunks.par_chunks(per));
            at_factors
                .zip(group)
                .for_each(|((factor, chunks), &(k, _))| {
                    let chunks = &chunks[..factor.scored.div_ceil(CHUNK)];
                    factor.differentiate(&nodes[k].belief, chunks, messages, &own);
                });
            gradient.for_each_mut(|m, target| {
                if let Some(factor) = places[m].checked_sub(first).and_then(|i| factors.get(i)) {
                    factor.write_gradient(target, messages.stride(), &own);
                }
            });
        }
        first = end;
    }

    if let Some(gradient) = gradient {
        let stride = messages.stride();
        gradient.for_each_mut(|m, target| {
            let Some(&(k, _)) = all.get(places[m]) else {
                return;
            };
            let sums = &sums[k];
            for d in 0..sums.dim {
                let plane = &mut target[d * stride..d * stride + rows];
                let mut finish = |n: usize| {
                    let ds = sums.posterior_mean[d * stride + n].into() * (sums.present[n] + 1.0)
                        - sums.row_mean[d * rows + n];
                    plane[n] = E::from_f64((plane[n].into() + ds) * scale);
                };
                match presence.rows(m) {
                    None => own.clone().for_each(&mut finish),
                    Some(present) => {
                        let present = present.iter().map(|&n| n as usize);
                        present.filter(|n| own.contains(n)).for_each(&mut finish);
                    }
                }
            }
        });
    }

    if ranks.count() > 1 {
        exchange.samples(ranks, samples, rows)?;
    }
    means.clear();
    let of_nodes = samples.chunks_exact(rows);
    means.extend(of_nodes.map(|s| s.iter().sum::<f64>() / rows as f64));
    Ok(())
}

impl<E: Element> FreeEnergySpace<E> {
    /// Lists the messages of all nodes, cut into groups whose column sums fit the memory set aside, and makes room for them.
    fn lay_out(&mut self, nodes: &[Node], messages: &Messages<E>) {
        let rows = messages.rows();
        self.messages.clear();
        self.ends.clear();
        self.places.clear();
        self.places.resize(messages.len(), usize::MAX);
        let (mut filled, mut first, mut most) = (0, 0, 0);
        for (k, node) in nodes.iter().enumerate() {
            for m in node.messages.clone() {
                let partials = rows.div_ceil(CHUNK) * (node.belief.dim() + 1) * rows;
                let at = self.messages.len();
                if filled + partials > PARTIALS && at > first {
                    self.ends.push(at);
                    (first, filled) = (at, 0);
                }
                filled += partials;
                most = most.max(at + 1 - first);
                self.places[m] = at;
                self.messages.push((k, m));
            }
        }
        if self.messages.len() > first {
            self.ends.push(self.messages.len());
        }
        grow(&mut self.nodes, nodes.len());
        grow(&mut self.factors, most);
        grow(&mut self.chunks, most * rows.div_ceil(CHUNK));
    }
}

fn grow<T: Default>(list: &mut Vec<T>, len: usize) {
    if list.len() < len {
        list.resize_with(len, T::default);
    }
}

/// So many numbers, whatever they are at first.
fn room<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    buffer.resize(len, T::default());
    buffer
}

/// So many numbers, in memory that would hold more: the next batch may have them.
fn room_for<T: Copy + Default>(buffer: &mut Vec<T>, len: usize, most: usize) -> &mut [T] {
    buffer.reserve(most.saturating_sub(buffer.len()));
    room(buffer, len)
}
