//! What ranks owe each other of the pairwise term (MATH, "The same step on many machines").
//!
//! Messages are everywhere, so any rank can take any chunk of any factor: they are dealt out in turn. What a chunk leaves behind then goes
//! to the ranks whose rows and columns it is about, bit for bit, and each finishes its own rows in the order of chunks.

use super::CHUNK;
use super::factor::Factor;
use super::pairwise::Sums;
use crate::collective::{Collective, CollectiveError, all_gather, all_to_all, span};
use crate::kernel::real::Element;
use std::ops::Range;

/// The ranks that evaluate a batch together, and whose its rows are.
#[derive(Clone, Copy)]
pub(crate) struct Ranks<'a> {
    pub collective: &'a dyn Collective,
    /// Where each rank's rows end.
    pub row_ends: &'a [usize],
}

impl Ranks<'_> {
    pub fn count(&self) -> usize {
        self.row_ends.len()
    }

    /// This rank's rows.
    pub fn own(&self) -> Range<usize> {
        self.rows_of(self.collective.rank())
    }

    fn rows_of(&self, rank: usize) -> Range<usize> {
        span(self.row_ends, rank)
    }

    /// Whether this rank computes a chunk, counted through all factors.
    pub fn computes(&self, unit: usize) -> bool {
        unit % self.count() == self.collective.rank()
    }
}

/// The memory of exchanges.
#[derive(Default)]
pub(super) struct Exchange<E> {
    send: Vec<E>,
    receive: Vec<E>,
    send_ends: Vec<usize>,
    receive_ends: Vec<usize>,
    samples: Vec<f64>,
}

/// The chunks of some factors: as many places for each, and which of them are computed.
pub(super) struct Units<'a, E> {
    pub factors: &'a [Factor<E>],
    pub chunks: &'a mut [Sums<E>],
    /// Places for each factor.
    pub per: usize,
    pub value_only: bool,
}

impl<E: Element> Units<'_, E> {
    /// Calls with the factor, the number and the place of every chunk that a rank computes, in order.
    fn of_rank(&self, rank: usize, ranks: usize, mut each: impl FnMut(&Factor<E>, usize, usize)) {
        for (f, factor) in self.factors.iter().enumerate() {
            for c in 0..factor.scored.div_ceil(CHUNK) {
                if (factor.first_unit + c) % ranks == rank {
                    each(factor, c, f * self.per + c);
                }
            }
        }
    }
}

impl<E: Element> Exchange<E> {
    /// Sends what the own chunks say of others' rows to them, and takes in what theirs say of the own rows.
    pub fn sums(&mut self, ranks: Ranks<'_>, units: Units<'_, E>) -> Result<(), CollectiveError> {
        let (me, count) = (ranks.collective.rank(), ranks.count());
        let own = ranks.own();
        self.send.clear();
        self.send_ends.clear();
        for rank in 0..count {
            // What is here already need not travel.
            let rows = if rank == me {
                0..0
            } else {
                ranks.rows_of(rank)
            };
            let send = &mut self.send;
            units.of_rank(me, count, |factor, c, place| {
                let pieces = factor.pieces(c, rows.clone(), units.value_only);
                let sums = &units.chunks[place];
                pieces.each(|field, span| send.extend_from_slice(&sums.field(field)[span]));
            });
            self.send_ends.push(self.send.len());
        }
        self.receive_ends.clear();
        let mut length = 0;
        for rank in 0..count {
            if rank != me {
                units.of_rank(rank, count, |factor, c, _| {
                    length += factor.pieces(c, own.clone(), units.value_only).len();
                });
            }
            self.receive_ends.push(length);
        }
        self.receive.resize(length, E::default());
        all_to_all(
            ranks.collective,
            (&self.send, &self.send_ends),
            (&mut self.receive, &self.receive_ends),
        )?;
        for rank in (0..count).filter(|&rank| rank != me) {
            let mut rest = &self.receive[span(&self.receive_ends, rank)];
            let mut places = vec![];
            units.of_rank(rank, count, |factor, c, place| {
                places.push((factor.pieces(c, own.clone(), units.value_only), place));
            });
            for (pieces, place) in places {
                let sums = &mut units.chunks[place];
                pieces.make_room(sums);
                pieces.each(|field, span| {
                    let (front, others) = rest.split_at(span.len());
                    sums.field_mut(field)[span].copy_from_slice(front);
                    rest = others;
                });
            }
        }
        Ok(())
    }

    /// The free energies of all rows, where every rank has those of its own: the sum over them has one order.
    pub fn samples(
        &mut self,
        ranks: Ranks<'_>,
        samples: &mut [f64],
        rows: usize,
    ) -> Result<(), CollectiveError> {
        if rows == 0 {
            return Ok(());
        }
        let nodes = samples.len() / rows;
        let ends: Vec<usize> = ranks.row_ends.iter().map(|end| end * nodes).collect();
        self.samples.resize(samples.len(), 0.0);
        let of_rank = |rank: usize| {
            let rows_of = ranks.rows_of(rank);
            let (start, len) = (span(&ends, rank).start, rows_of.len());
            (0..nodes).map(move |k| {
                let there = k * rows + rows_of.start;
                (start + k * len..start + (k + 1) * len, there..there + len)
            })
        };
        for (packed, there) in of_rank(ranks.collective.rank()) {
            self.samples[packed].copy_from_slice(&samples[there]);
        }
        all_gather(ranks.collective, &mut self.samples, &ends)?;
        for (packed, there) in (0..ranks.count()).flat_map(of_rank) {
            samples[there].copy_from_slice(&self.samples[packed]);
        }
        Ok(())
    }
}

/// A buffer of what a chunk leaves behind.
#[derive(Clone, Copy)]
pub(super) enum Field {
    LogSum,
    RowMean,
    OwnMean,
    OwnWeight,
    ColumnMean,
}

/// The part of what a chunk leaves behind that is about some rows of the batch.
pub(super) struct Pieces {
    pub dim: usize,
    /// Where these rows lie within the chunk, whose planes are so far apart.
    pub rows: Range<usize>,
    pub row_stride: usize,
    /// Where these rows lie among the columns, whose planes are so far apart.
    pub columns: Range<usize>,
    pub column_stride: usize,
    pub value_only: bool,
}

impl Pieces {
    /// Every piece in turn.
    fn each(&self, mut visit: impl FnMut(Field, Range<usize>)) {
        let at = |d: usize, stride: usize, span: &Range<usize>| {
            d * stride + span.start..d * stride + span.end
        };
        visit(Field::LogSum, self.rows.clone());
        if self.value_only {
            return;
        }
        for d in 0..self.dim {
            visit(Field::RowMean, at(d, self.row_stride, &self.rows));
            visit(Field::OwnMean, at(d, self.row_stride, &self.rows));
        }
        visit(Field::OwnWeight, self.rows.clone());
        for d in 0..=self.dim {
            visit(Field::ColumnMean, at(d, self.column_stride, &self.columns));
        }
    }

    fn len(&self) -> usize {
        let mut numbers = 0;
        self.each(|_, span| numbers += span.len());
        numbers
    }

    /// Room in a chunk that another rank computed.
    fn make_room<E: Element>(&self, sums: &mut Sums<E>) {
        sums.make_room(
            self.dim,
            self.row_stride,
            self.column_stride,
            self.value_only,
        );
    }
}
