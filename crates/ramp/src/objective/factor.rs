//! One factor's beliefs about one node: who meets whom in the pairwise kernel, and the gradient at those beliefs.

use super::columns::{Columns, LogNormalizers};
use super::exchange::Pieces;
use super::pairwise::{Pairwise, Rows, Sums};
use super::{CHUNK, Mixture, room_for};
use crate::family::Belief;
use crate::kernel::real::{Element, Kernel, Real};
use crate::kernel::scratch::Scratch;
use crate::message::{Messages, Node};
use std::ops::Range;

/// One factor's beliefs about one node: the rows that have it and the mixture they meet.
#[derive(Default)]
pub(super) struct Factor<E> {
    /// The rows of the batch that have this message.
    pub rows: Vec<u32>,
    /// How many of them are to be scored.
    pub scored: usize,
    /// How many chunks the factors before it have.
    pub first_unit: usize,
    /// The rows, in order of the batch, that make the mixture.
    drawn: Vec<u32>,
    columns: Columns<E>,
    dim: usize,
    stride: usize,
    /// `s_n`, `f_n`, `dim` planes each, and `Φ(f_n)`, for the rows that have it.
    sum: Vec<E>,
    own: Vec<E>,
    pub own_phi: Vec<E>,
    own_column: Vec<E>,
    own_bonus: Vec<E>,
    pub log_other: Vec<f64>,
    /// `∂F/∂f_n`, `dim` planes; before that `μ(f_n)`.
    gradient: Vec<E>,
    /// Where each column lies among the rows, and sums over chunks.
    place: Vec<usize>,
    weight: Vec<f64>,
    total: Vec<f64>,
}

impl<E: Element> Factor<E> {
    /// Gathers those who have a message. There is room for a batch in which all have it: which rows do changes from step to step.
    pub fn fill(
        &mut self,
        node: &Node,
        messages: &Messages<E>,
        present: Option<&[u32]>,
        message: usize,
        node_sum: &[E],
        mixture: Mixture<'_>,
    ) {
        let (all, most) = (messages.rows(), messages.stride());
        let rows = &mut self.rows;
        rows.clear();
        rows.reserve(all);
        match present {
            None => rows.extend(0..all as u32),
            Some(present) => rows.extend_from_slice(present),
        }
        let drawn = &mut self.drawn;
        drawn.clear();
        drawn.reserve(mixture.drawn.map_or(all, <[u32]>::len));
        match mixture.drawn {
            None => drawn.extend_from_slice(rows),
            Some(mixed) if present.is_none() => drawn.extend_from_slice(mixed),
            Some(mixed) => {
                let mixed = mixed.iter().copied();
                drawn.extend(mixed.filter(|n| rows.binary_search(n).is_ok()));
            }
        }
        let plane = |d: usize| messages.plane(message, d);
        let most_columns = mixture.drawn.map_or(all, <[u32]>::len);
        (self.columns).gather(&node.belief, &node.prior, drawn, most_columns, plane);
        // Present rows share the population in proportion. When some rows are only the mixture, it is their share: the score
        // of a row must not depend on the rows beside it.
        let share = match (mixture.scored, mixture.drawn) {
            (Some(_), Some(mixture)) => drawn.len() as f64 / mixture.len().max(1) as f64,
            _ => rows.len() as f64 / all as f64,
        };
        self.scored = mixture.scored.map_or(rows.len(), |scored| {
            rows.partition_point(|&n| (n as usize) < scored)
        });
        let population = mixture
            .population
            .map_or(rows.len() as f64, |p| p as f64 * share);

        let (dim, stride) = (node.belief.dim(), rows.len().next_multiple_of(16));
        (self.dim, self.stride) = (dim, stride);
        let sum = room_for(&mut self.sum, dim * stride, dim * most);
        let own = room_for(&mut self.own, dim * stride, dim * most);
        sum.fill(E::default());
        for d in 0..dim {
            let (to, from) = (d * stride..(d + 1) * stride, plane(d));
            own[to.clone()].fill(E::from_f64(node.prior[d]));
            for ((o, s), &n) in own[to.clone()].iter_mut().zip(&mut sum[to]).zip(&*rows) {
                *o = E::from_f64(node.prior[d] + from[n as usize].into());
                *s = node_sum[d * messages.stride() + n as usize];
            }
        }
        E::dispatch(LogNormalizers {
            belief: &node.belief,
            eta: own,
            stride,
            phi: room_for(&mut self.own_phi, stride, most),
        });

        let own_column = room_for(&mut self.own_column, stride, most);
        let own_bonus = room_for(&mut self.own_bonus, stride, most);
        let log_other = room_for(&mut self.log_other, rows.len(), all);
        own_column.fill(E::from_f64(-1.0));
        own_bonus.fill(E::default());
        log_other.fill(0.0);
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
    }

    /// Where some rows of the batch lie among those that have the message.
    pub fn places(&self, rows: &Range<usize>) -> Range<usize> {
        places(&self.rows, rows)
    }

    /// Those of some rows of the batch that are in a chunk, counted within it.
    pub fn within(&self, chunk: usize, rows: &Range<usize>) -> Range<usize> {
        let start = chunk * CHUNK;
        let end = (start + CHUNK).min(self.scored);
        let places = self.places(rows);
        let inside = |at: usize| at.clamp(start, end) - start;
        inside(places.start)..inside(places.end)
    }

    /// What a chunk has to say of some rows of the batch.
    pub fn pieces(&self, chunk: usize, rows: Range<usize>, value_only: bool) -> Pieces {
        Pieces {
            dim: self.dim,
            rows: self.within(chunk, &rows),
            row_stride: CHUNK.min(self.scored - chunk * CHUNK).next_multiple_of(16),
            columns: places(&self.drawn, &rows),
            column_stride: self.columns.stride,
            value_only,
        }
    }

    /// The pairwise term of a chunk of rows, to be evaluated.
    pub fn chunk<'a>(
        &'a self,
        belief: &'a Belief,
        start: usize,
        value_only: bool,
    ) -> Pairwise<'a, E> {
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
        Pairwise {
            belief,
            rows,
            columns: &self.columns,
            value_only,
        }
    }

    /// `∂F/∂f` of those of the own rows that have the message, from the sums of its chunks, for [`Factor::write_gradient`].
    pub fn differentiate(
        &mut self,
        belief: &Belief,
        chunks: &[Sums<E>],
        messages: &Messages<E>,
        own: &Range<usize>,
    ) {
        let columns = places(&self.drawn, own);
        let own = self.places(own);
        let (dim, stride) = (belief.dim(), self.stride);
        let (all, most) = (messages.rows(), messages.stride());
        let mean = room_for(&mut self.gradient, dim * stride, dim * most);
        E::dispatch(Means {
            belief,
            eta: &self.own,
            stride,
            mean,
        });
        // Column sums over all chunks, scattered to the rows they belong to.
        let place = &mut self.place;
        place.clear();
        place.reserve(all);
        let mut at = 0;
        for n in &self.drawn {
            while self.rows[at] < *n {
                at += 1;
            }
            place.push(at);
        }
        let weight = room_for(&mut self.weight, self.rows.len(), all);
        weight.fill(1.0);
        let in_chunk = |c: usize| own.start.max(c * CHUNK)..own.end.min((c + 1) * CHUNK);
        for (c, chunk) in chunks.iter().enumerate() {
            let last = dim * self.columns.stride;
            for column in columns.clone() {
                weight[place[column]] -= chunk.column_mean[last + column].into();
            }
            for at in in_chunk(c) {
                weight[at] -= chunk.own_weight[at - c * CHUNK].into();
            }
        }
        let total = room_for(&mut self.total, self.rows.len(), all);
        for d in 0..dim {
            let plane = &mut mean[d * stride..];
            // −μ(f) − Σ w μ(s+f) + Σ w μ(f), own term and columns together.
            for at in own.clone() {
                let m: f64 = plane[at].into();
                total[at] = -m * weight[at];
            }
            for (c, chunk) in chunks.iter().enumerate() {
                for column in columns.clone() {
                    let mean = chunk.column_mean[d * self.columns.stride + column];
                    total[place[column]] -= mean.into();
                }
                let stride = chunk.log_sum.len();
                for at in in_chunk(c) {
                    total[at] -= chunk.own_mean[d * stride + at - c * CHUNK].into();
                }
            }
            for at in own.clone() {
                plane[at] = E::from_f64(total[at]);
            }
        }
    }

    /// The gradient of the own rows in the planes of the batch; absent rows get zero.
    pub fn write_gradient(&self, target: &mut [E], target_stride: usize, own: &Range<usize>) {
        target.fill(E::default());
        let own = self.places(own);
        for (d, plane) in target.chunks_exact_mut(target_stride).enumerate() {
            let gradient = &self.gradient[d * self.stride..];
            for (&n, &g) in self.rows[own.clone()].iter().zip(&gradient[own.clone()]) {
                plane[n as usize] = g;
            }
        }
    }
}

/// Where some rows lie in an ascending list of rows.
fn places(list: &[u32], rows: &Range<usize>) -> Range<usize> {
    let at = |row: usize| list.partition_point(|&n| (n as usize) < row);
    at(rows.start)..at(rows.end)
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
        let (mut eta, mut mu) = (Scratch::<R>::zeros(dim), Scratch::<R>::zeros(dim));
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
