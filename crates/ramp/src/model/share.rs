//! A rank's share of a batch: whole shards, so that sums keep the order that they have on one machine.

use super::evaluate::Shard;
use crate::collective::{Collective, CollectiveError, all_gather, all_to_all, part, span};
use crate::network::ROW_UNIT;
use std::ops::Range;

/// Whose the shards of a batch are, and the memory of what ranks exchange of them. Shards of consecutive rows go to consecutive ranks.
#[derive(Default)]
pub(super) struct Share {
    /// Which of all shards are this rank's.
    own: Range<usize>,
    /// Where each rank's shards, rows and messages end.
    shard_ends: Vec<usize>,
    row_ends: Vec<usize>,
    message_ends: Vec<usize>,
    /// Natural parameters of all messages of one sample.
    width: usize,
    /// The rows of every block, the distance between its planes, and where its messages start.
    blocks: Vec<(Range<usize>, usize, usize)>,
    /// The messages of all blocks, block by block.
    messages: Vec<f32>,
    send: Vec<f32>,
    receive: Vec<f32>,
}

impl Share {
    /// The share of a rank in shards of blocks of rows.
    pub fn new(shards: &[&[Range<usize>]], width: usize, ranks: &dyn Collective) -> Self {
        let count = ranks.ranks();
        let mut share = Share {
            own: part(shards.len(), ranks.rank(), count),
            width,
            ..Share::default()
        };
        let (mut rows, mut start) = (0, 0);
        for rank in 0..count {
            let own = part(shards.len(), rank, count);
            share.shard_ends.push(own.end);
            for block in shards[own].iter().copied().flatten() {
                let stride = block.len().next_multiple_of(ROW_UNIT);
                share.blocks.push((block.clone(), stride, start));
                start += width * stride;
                rows = block.end;
            }
            share.row_ends.push(rows);
            share.message_ends.push(start);
        }
        share
    }

    /// How many ranks there are; none before there is a batch.
    pub fn ranks(&self) -> usize {
        self.shard_ends.len()
    }

    pub fn own_shards(&self) -> Range<usize> {
        self.own.clone()
    }

    /// Where each rank's rows end.
    pub fn row_ends(&self) -> &[usize] {
        &self.row_ends
    }

    /// The messages of every rank's blocks, to all.
    pub fn gather_messages(
        &mut self,
        shards: &[Shard],
        ranks: &dyn Collective,
    ) -> Result<(), CollectiveError> {
        let length = self.message_ends[self.ranks() - 1];
        self.messages.resize(length, 0.0);
        let mut at = span(&self.message_ends, ranks.rank()).start;
        for block in shards.iter().flat_map(|s| &s.blocks) {
            let len = self.width * block.stride;
            self.messages[at..at + len].copy_from_slice(&block.messages[..len]);
            at += len;
        }
        all_gather(ranks, &mut self.messages, &self.message_ends)
    }

    /// Every block that was gathered: its rows, the distance between its planes, and its messages.
    pub fn each_block(&self, mut visit: impl FnMut(&Range<usize>, usize, &[f32])) {
        for (rows, stride, start) in &self.blocks {
            let len = self.width * stride;
            visit(rows, *stride, &self.messages[*start..start + len]);
        }
    }

    /// The sum of all ranks' gradients of weights, in the order of shards: each rank adds up a part of the weights.
    pub fn sum_gradients(
        &mut self,
        shards: &[Shard],
        gradient: &mut [f32],
        ranks: &dyn Collective,
    ) -> Result<(), CollectiveError> {
        let (count, weights) = (self.ranks(), gradient.len());
        let of_rank = |rank: usize| part(weights, rank, count);
        self.send.clear();
        let mut send_ends = vec![];
        for rank in 0..count {
            for shard in shards {
                self.send.extend_from_slice(&shard.gradient[of_rank(rank)]);
            }
            send_ends.push(self.send.len());
        }
        let own = of_rank(ranks.rank());
        let receive_ends: Vec<usize> = self.shard_ends.iter().map(|e| e * own.len()).collect();
        self.receive.resize(receive_ends[count - 1], 0.0);
        all_to_all(
            ranks,
            (&self.send, &send_ends),
            (&mut self.receive, &receive_ends),
        )?;
        // Ranks in order have shards in order.
        let parts = self.receive.chunks_exact(own.len().max(1));
        sum_shards(&mut gradient[own], parts);
        let ends: Vec<usize> = (0..count).map(|rank| of_rank(rank).end).collect();
        all_gather(ranks, gradient, &ends)
    }
}

/// Adds shards' gradients up, one after the other.
pub(super) fn sum_shards<'a>(sum: &mut [f32], shards: impl Iterator<Item = &'a [f32]>) {
    sum.fill(0.0);
    for shard in shards {
        sum.iter_mut().zip(shard).for_each(|(sum, g)| *sum += g);
    }
}
