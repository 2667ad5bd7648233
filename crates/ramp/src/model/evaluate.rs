//! One evaluation of a batch: messages forward, the free energy, and its gradient backward.

use super::Model;
use super::batch::{Batch, BatchMemory};
use super::pass::{Arena, BlockState};
use super::share::{Share, sum_shards};
use crate::collective::{Collective, Single};
use crate::message::{Messages, Presence};
use crate::objective::{FreeEnergy, FreeEnergySpace, Mixture, Ranks, free_energy_among};
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;

/// The most rows that go through the networks together: their activations stay in the second-level cache.
const BLOCK: usize = 256;
/// Blocks are dealt to this many shards at most, each with its own sum of gradients; of batches of more than 65,536 rows there is one shard for every 16 blocks, so that
/// there is work for more ranks. Constants and not the number of threads or ranks: results must not depend on the machine.
const SHARDS: usize = 16;
const MOST_SHARDS: usize = 1024;
/// Tapes are kept for the backward pass up to this many numbers, and recomputed beyond.
const KEEP: usize = 8 << 20;

/// The blocks of so many rows, and how many of them make a shard.
fn blocks_of(rows: usize) -> (Vec<Range<usize>>, usize) {
    let block = rows.div_ceil(4).next_multiple_of(16).min(BLOCK);
    let blocks: Vec<Range<usize>> = (0..rows)
        .step_by(block.max(1))
        .map(|start| start..(start + block).min(rows))
        .collect();
    let shards = (blocks.len() / 16).clamp(SHARDS, MOST_SHARDS);
    let per_shard = blocks.len().div_ceil(shards).max(1);
    (blocks, per_shard)
}

/// Where the rows of a batch end that each rank takes through the networks.
pub(crate) fn row_ends(rows: usize, ranks: &dyn Collective) -> Vec<usize> {
    let (blocks, per_shard) = blocks_of(rows);
    let shards: Vec<&[Range<usize>]> = blocks.chunks(per_shard).collect();
    Share::new(&shards, 0, ranks).row_ends().to_vec()
}

/// The memory of a training step, reused from step to step.
#[derive(Default)]
pub(crate) struct Workspace {
    /// Of the batch's masks; taken by [`Model::batch_with`], given back by [`Batch::into_memory`].
    pub batch: BatchMemory,
    pub(super) shards: Vec<Shard>,
    pub(super) messages: Messages,
    pub(super) gradient: Messages,
    objective: FreeEnergySpace,
    rows: usize,
    share: Share,
}

/// Blocks that one task takes through the networks in order, and the gradient they add up to.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) blocks: Vec<BlockState>,
    pub(super) arena: Arena,
    pub(super) gradient: Vec<f32>,
}

/// The tape that went from block to block begins with the first again next time.
fn give_back(blocks: &mut [BlockState], lent: Option<Vec<f32>>) {
    if let (Some(first), Some(tape)) = (blocks.first_mut(), lent) {
        first.lend_tape(tape);
    }
}

impl Model {
    /// Lays out the memory for a rank's share of batches of a given size.
    fn prepare(&self, space: &mut Workspace, rows: usize, ranks: &dyn Collective) {
        if space.rows == rows && space.share.ranks() == ranks.ranks() {
            return;
        }
        let (blocks, per_shard) = blocks_of(rows);
        let shards: Vec<&[Range<usize>]> = blocks.chunks(per_shard).collect();
        space.share = Share::new(&shards, self.plan.width(), ranks);
        space.shards = shards[space.share.own_shards()]
            .iter()
            .map(|blocks| Shard {
                blocks: blocks.iter().cloned().map(BlockState::new).collect(),
                ..Default::default()
            })
            .collect();
        let dims = || self.plan.starts.windows(2).map(|w| w[1] - w[0]);
        space.messages = Messages::zeros(rows, dims());
        space.gradient = Messages::zeros(0, dims());
        space.rows = rows;
    }

    /// All messages of a batch, into the workspace.
    pub(super) fn forward(&self, batch: &Batch<'_>, space: &mut Workspace, keep: bool) {
        self.prepare(space, batch.samples.len(), &Single);
        self.forward_own(batch, space, keep);
        self.lay_out_messages(space);
    }

    /// The messages of this rank's blocks.
    fn forward_own(&self, batch: &Batch<'_>, space: &mut Workspace, keep: bool) {
        space.shards.par_iter_mut().for_each(|shard| {
            let Shard { blocks, arena, .. } = shard;
            let mut lent = None;
            for block in blocks.iter_mut() {
                if !keep && let Some(tape) = lent.take() {
                    block.lend_tape(tape);
                }
                self.forward_block(batch, block, arena);
                if !keep {
                    lent = Some(block.take_tape());
                }
            }
            give_back(blocks, lent);
        });
    }

    /// From the blocks, of all ranks, to planes of the whole batch.
    fn lay_out_messages(&self, space: &mut Workspace) {
        let Workspace {
            shards,
            messages,
            share,
            ..
        } = space;
        let stride = messages.stride();
        let starts = &self.plan.starts;
        messages.for_each_mut(|m, planes| {
            let mut lay_out = |rows: &Range<usize>, block_stride: usize, block: &[f32]| {
                for (d, plane) in (starts[m]..starts[m + 1]).enumerate() {
                    let from = &block[plane * block_stride..][..rows.len()];
                    planes[d * stride + rows.start..][..from.len()].copy_from_slice(from);
                }
            };
            match share.ranks() {
                1 => (shards.iter().flat_map(|s| &s.blocks))
                    .for_each(|b| lay_out(&b.rows, b.stride, &b.messages)),
                _ => share.each_block(lay_out),
            }
        });
    }

    /// All messages of a batch, and who has them.
    pub(crate) fn messages_of(
        &self,
        batch: &Batch<'_>,
        space: &mut Workspace,
    ) -> (Messages, Presence) {
        self.forward(batch, space, false);
        (space.messages.clone(), batch.presence.clone())
    }

    /// [`Model::evaluate_among`] by this process alone.
    #[cfg(test)]
    pub(crate) fn evaluate<'s>(
        &self,
        batch: &Batch<'_>,
        mixture: Mixture<'_>,
        gradient: Option<&mut [f32]>,
        space: &'s mut Workspace,
    ) -> Result<&'s FreeEnergy> {
        self.evaluate_among(&Single, batch, mixture, gradient, space)
    }

    /// The free energy of a batch and, where asked for, its gradient with respect to all parameters. Of several ranks that have the same batch,
    /// each takes some of its shards, and all get the same bits.
    pub(crate) fn evaluate_among<'s>(
        &self,
        ranks: &dyn Collective,
        batch: &Batch<'_>,
        mixture: Mixture<'_>,
        gradient: Option<&mut [f32]>,
        space: &'s mut Workspace,
    ) -> Result<&'s FreeEnergy> {
        let keep = self.send_among(ranks, batch, gradient.is_some(), space)?;
        free_energy_among(
            Ranks {
                collective: ranks,
                row_ends: space.share.row_ends(),
            },
            &self.nodes,
            &space.messages,
            &batch.presence,
            mixture,
            gradient.is_some().then_some(&mut space.gradient),
            &mut space.objective,
        )?;
        self.check_finite(space.objective.value())?;
        if let Some(gradient) = gradient {
            self.back_among(ranks, batch, keep, gradient, space)?;
        }
        Ok(space.objective.value())
    }

    /// All messages of a batch, in room for a gradient at them where one will be asked for; whether tapes were kept.
    pub(super) fn send_among(
        &self,
        ranks: &dyn Collective,
        batch: &Batch<'_>,
        learns: bool,
        space: &mut Workspace,
    ) -> Result<bool> {
        self.prepare(space, batch.samples.len(), ranks);
        let tapes: usize = space
            .shards
            .iter()
            .flat_map(|s| &s.blocks)
            .map(|b| self.tape_len(b.stride))
            .sum();
        let keep = learns && tapes <= KEEP;
        self.forward_own(batch, space, keep);
        if ranks.ranks() > 1 {
            space.share.gather_messages(&space.shards, ranks)?;
        }
        self.lay_out_messages(space);
        if learns && space.gradient.rows() != space.rows {
            space.gradient = space.messages.clone();
        }
        Ok(keep)
    }

    /// From the gradient at the messages in the workspace, that with respect to all parameters.
    pub(super) fn back_among(
        &self,
        ranks: &dyn Collective,
        batch: &Batch<'_>,
        keep: bool,
        gradient: &mut [f32],
        space: &mut Workspace,
    ) -> Result<()> {
        let at_messages = &space.gradient;
        space.shards.par_iter_mut().for_each(|shard| {
            let Shard {
                blocks,
                arena,
                gradient,
            } = shard;
            gradient.clear();
            gradient.resize(self.parameters.len(), 0.0);
            let mut lent = None;
            for block in blocks.iter_mut() {
                if !keep {
                    if let Some(tape) = lent.take() {
                        block.lend_tape(tape);
                    }
                    self.forward_block(batch, block, arena);
                }
                self.backward_block(batch, at_messages, block, arena, gradient);
                if !keep {
                    lent = Some(block.take_tape());
                }
            }
            give_back(blocks, lent);
        });
        match ranks.ranks() {
            1 => sum_shards(gradient, space.shards.iter().map(|s| &s.gradient[..])),
            _ => (space.share).sum_gradients(&space.shards, gradient, ranks)?,
        }
        for slot in &self.networks {
            if gradient[slot.span.clone()].iter().any(|g| !g.is_finite()) {
                return Err(Error::NotFinite {
                    what: format!("the gradient of network `{}`", slot.key),
                });
            }
        }
        Ok(())
    }

    fn check_finite(&self, value: &FreeEnergy) -> Result<()> {
        match value.nodes.iter().position(|f| !f.is_finite()) {
            None => Ok(()),
            Some(k) => Err(Error::NotFinite {
                what: format!(
                    "the free energy of latent `{}`",
                    self.tree.name(self.tree.latents()[k])
                ),
            }),
        }
    }

    /// The sum of messages into each latent that `keep` selects, in `f64`, plane by plane: `emit(latent, sums)` with
    /// `sums[parameter * rows + row]`, prior included.
    pub(crate) fn beliefs_of(
        &self,
        batch: &Batch<'_>,
        space: &mut Workspace,
        keep: &(dyn Fn(usize) -> bool + Sync),
        mut emit: impl FnMut(usize, Vec<f64>),
    ) -> Result<()> {
        self.forward(batch, space, false);
        let rows = batch.samples.len();
        for (k, node) in self.nodes.iter().enumerate() {
            let mut eta = Vec::with_capacity(node.prior.len() * rows);
            for (d, &prior) in node.prior.iter().enumerate() {
                let start = eta.len();
                eta.extend(std::iter::repeat_n(prior, rows));
                for m in node.messages.clone().filter(|&m| keep(m)) {
                    let plane = space.messages.plane(m, d);
                    eta[start..]
                        .iter_mut()
                        .zip(plane)
                        .for_each(|(e, &x)| *e += f64::from(x));
                }
            }
            if eta.iter().any(|x| !x.is_finite()) {
                return Err(Error::NotFinite {
                    what: format!(
                        "a posterior of latent `{}`",
                        self.tree.name(self.tree.latents()[k])
                    ),
                });
            }
            emit(k, eta);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits of fits depend on how their batches are cut.
    #[test]
    fn shards_are_those_of_earlier_versions_up_to_65_536_rows_and_more_beyond() {
        let shards = |rows: usize| {
            let (blocks, per_shard) = blocks_of(rows);
            let ends = blocks.iter().map(|block| block.end);
            assert!(
                blocks[0].start == 0 && ends.is_sorted() && blocks[blocks.len() - 1].end == rows
            );
            blocks.len().div_ceil(per_shard)
        };
        for rows in [1_usize, 100, 1_000, 4_096, 10_000, 65_536] {
            let block = rows.div_ceil(4).next_multiple_of(16).min(256);
            let blocks = rows.div_ceil(block);
            assert_eq!(
                shards(rows),
                blocks.div_ceil(blocks.div_ceil(16)),
                "{rows} rows"
            );
        }
        for (rows, least) in [(131_072, 32), (1 << 20, 256), (1 << 23, 1024)] {
            assert_eq!(shards(rows), least, "{rows} rows");
        }
    }

    #[test]
    fn ranks_take_all_rows_of_a_batch_in_turn() {
        use crate::collective::Threads;
        for rows in [1, 20, 700, 5_000] {
            for own in Threads::group(3) {
                let ends = row_ends(rows, &own);
                assert!(
                    ends.len() == 3 && ends.is_sorted() && ends[2] == rows,
                    "{ends:?}"
                );
            }
        }
    }
}
