//! Messages forward and their gradient backward, for one block of samples at a time.
//!
//! A block goes through all stages on one thread. Its messages, gradients and tapes are feature-major with the block's
//! padded number of rows as the distance between planes. Networks' inputs are cheap to rebuild from the messages, so
//! only the networks' tapes and raw outputs are kept for the way back, and those only while they fit.

use super::elementwise::{
    Constrain, ConstrainBackward, Incoming, NetworkInputs, NetworkInputsBackward, add, multiply,
    subtract,
};
use super::plan::{Source, Stage, Terms};
use super::{Batch, Model};
use crate::kernel::real::Element;
use crate::message::Messages;
use crate::network::{Block, ROW_UNIT};
use std::ops::Range;

/// How many numbers of input a stage takes through its network at a time; more are cut into runs of whole messages.
const INPUT_NUMBERS: usize = 1 << 23;
/// How many rows likewise.
const INPUT_ROWS: usize = 2048;

/// The working memory of a thread: reused from block to block and step to step.
#[derive(Default)]
pub(super) struct Arena {
    input: Vec<f32>,
    output: Vec<f32>,
    grad_input: Vec<f32>,
    scratch: Vec<f32>,
    space: Vec<f32>,
}

/// One block's messages and what its backward pass needs.
#[derive(Default)]
pub(super) struct BlockState {
    /// The samples of the batch it holds.
    pub rows: Range<usize>,
    /// Distance between planes: the number of rows, padded.
    pub stride: usize,
    pub messages: Vec<f32>,
    totals: Vec<f32>,
    tape: Vec<f32>,
    grad: Vec<f32>,
    grad_totals: Vec<f32>,
}

fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

impl BlockState {
    pub fn new(rows: Range<usize>) -> Self {
        let stride = rows.len().next_multiple_of(ROW_UNIT);
        BlockState {
            rows,
            stride,
            ..Default::default()
        }
    }

    /// Hands the tape's memory on to the next block.
    pub fn take_tape(&mut self) -> Vec<f32> {
        std::mem::take(&mut self.tape)
    }

    /// Takes over another block's tape, contents and all.
    pub fn lend_tape(&mut self, tape: Vec<f32>) {
        self.tape = tape;
    }
}

impl Model {
    /// The runs of messages that a stage takes through its network together.
    fn runs<'a>(&self, stage: &'a Stage, stride: usize) -> std::slice::Chunks<'a, u32> {
        let inputs = self.plan.shapes[stage.network].0.max(1);
        let rows = (INPUT_NUMBERS / inputs).min(INPUT_ROWS);
        stage.messages.chunks((rows / stride).max(1))
    }

    /// How many numbers of tape a block of `stride` rows leaves.
    pub(super) fn tape_len(&self, stride: usize) -> usize {
        let run = |stage: &Stage, run: &[u32]| {
            let rows = run.len() * stride;
            self.networks[stage.network].network.tape_len(rows)
                + self.plan.shapes[stage.network].1 * rows
        };
        self.plan
            .stages
            .iter()
            .map(|s| self.runs(s, stride).map(|r| run(s, r)).sum::<usize>())
            .sum()
    }

    /// All messages of a block.
    pub(super) fn forward_block(
        &self,
        batch: &Batch<'_>,
        block: &mut BlockState,
        arena: &mut Arena,
    ) {
        let stride = block.stride;
        let mut messages = std::mem::take(&mut block.messages);
        sized(&mut messages, self.plan.width() * stride);
        sized(&mut block.totals, self.plan.total_len * stride);
        sized(&mut block.tape, self.tape_len(stride));
        let mut tape_at = 0;
        for (i, stage) in self.plan.stages.iter().enumerate() {
            let slot = &self.networks[stage.network];
            let parameters = &self.parameters[slot.span.clone()];
            let outputs = self.plan.shapes[stage.network].1;
            for run in self.runs(stage, stride) {
                let rows = run.len() * stride;
                self.gather(
                    batch,
                    block.rows.clone(),
                    stage,
                    run,
                    stride,
                    &messages,
                    &block.totals,
                    arena,
                );
                let input = self.block_of(stage, rows, &arena.input);
                let tape_len = slot.network.tape_len(rows);
                let (tape, raw) =
                    block.tape[tape_at..tape_at + tape_len + outputs * rows].split_at_mut(tape_len);
                tape_at += tape_len + outputs * rows;
                let scratch = sized(&mut arena.scratch, slot.network.scratch_len(rows));
                slot.network.forward(parameters, input, raw, tape, scratch);
                for (position, &m) in run.iter().enumerate() {
                    let to =
                        &mut messages[self.plan.starts[m as usize] * stride..][..outputs * stride];
                    f32::dispatch(Constrain {
                        belief: &self.nodes[self.plan.target[m as usize]].belief,
                        raw: &raw[position * stride..],
                        raw_stride: rows,
                        message: to,
                        stride,
                    });
                    if let Some(mask) = batch.mask(m as usize) {
                        multiply(to, &mask[block.rows.clone()], stride);
                    }
                }
            }
            if self
                .plan
                .stages
                .get(i + 1)
                .is_none_or(|next| next.level > stage.level)
            {
                self.complete_totals(stage.level, stride, &messages, &mut block.totals);
            }
        }
        block.messages = messages;
    }

    /// From the gradient at every message (planes of the whole batch), adds the gradient of all parameters.
    pub(super) fn backward_block(
        &self,
        batch: &Batch<'_>,
        gradient: &Messages,
        block: &mut BlockState,
        arena: &mut Arena,
        grad_parameters: &mut [f32],
    ) {
        let stride = block.stride;
        let width = self.plan.width() * stride;
        let mut grad = std::mem::take(&mut block.grad);
        sized(&mut grad, width).fill(0.0);
        for m in 0..self.plan.target.len() {
            let span = self.plan.starts[m]..self.plan.starts[m + 1];
            for (d, plane) in span.enumerate() {
                let from = &gradient.plane(m, d)[block.rows.clone()];
                grad[plane * stride..plane * stride + from.len()].copy_from_slice(from);
            }
        }
        let mut grad_totals = std::mem::take(&mut block.grad_totals);
        sized(&mut grad_totals, self.plan.total_len * stride).fill(0.0);

        let mut tape_at = self.tape_len(stride);
        let mut level = usize::MAX;
        for stage in self.plan.stages.iter().rev() {
            if stage.level != level {
                level = stage.level;
                self.spread_totals(level, stride, &grad_totals, &mut grad);
            }
            let slot = &self.networks[stage.network];
            let (inputs, outputs) = self.plan.shapes[stage.network];
            for run in self.runs(stage, stride).rev() {
                let rows = run.len() * stride;
                let tape_len = slot.network.tape_len(rows);
                tape_at -= tape_len + outputs * rows;
                let (tape, raw) = block.tape[tape_at..].split_at(tape_len);
                let grad_raw = sized(&mut arena.output, outputs * rows);
                for (position, &m) in run.iter().enumerate() {
                    let own =
                        &mut grad[self.plan.starts[m as usize] * stride..][..outputs * stride];
                    if let Some(mask) = batch.mask(m as usize) {
                        multiply(own, &mask[block.rows.clone()], stride);
                    }
                    f32::dispatch(ConstrainBackward {
                        belief: &self.nodes[self.plan.target[m as usize]].belief,
                        raw: &raw[position * stride..],
                        raw_stride: rows,
                        grad_message: own,
                        grad_raw: &mut grad_raw[position * stride..],
                        stride,
                    });
                }
                self.gather(
                    batch,
                    block.rows.clone(),
                    stage,
                    run,
                    stride,
                    &block.messages,
                    &block.totals,
                    arena,
                );
                let has_beliefs = run.iter().any(|&m| {
                    self.plan.sources[m as usize]
                        .iter()
                        .any(|s| matches!(s, Source::Belief { .. }))
                });
                let input = self.block_of(stage, rows, &arena.input);
                let mut grad_input =
                    has_beliefs.then(|| sized(&mut arena.grad_input, inputs * rows));
                slot.network.backward(
                    &self.parameters[slot.span.clone()],
                    input,
                    tape,
                    &arena.output[..outputs * rows],
                    grad_input.as_deref_mut(),
                    &mut grad_parameters[slot.span.clone()],
                    sized(&mut arena.scratch, slot.network.scratch_len(rows)),
                );
                if let Some(grad_input) = grad_input {
                    for (position, &m) in run.iter().enumerate() {
                        self.inputs_backward(
                            m as usize,
                            block,
                            &grad_input[position * stride..],
                            rows,
                            &mut arena.space,
                            &mut grad,
                            &mut grad_totals,
                        );
                    }
                }
            }
        }
        block.grad = grad;
        block.grad_totals = grad_totals;
    }

    fn block_of<'a>(&self, stage: &Stage, rows: usize, input: &'a [f32]) -> Block<'a> {
        let inputs = self.plan.shapes[stage.network].0;
        match stage.wide {
            true => Block::row_major(&input[..inputs * rows], inputs, rows),
            false => Block::feature_major(&input[..inputs * rows], inputs, rows),
        }
    }

    /// The inputs of the network of a run of messages, into the arena.
    #[allow(clippy::too_many_arguments)]
    fn gather(
        &self,
        batch: &Batch<'_>,
        block_rows: Range<usize>,
        stage: &Stage,
        run: &[u32],
        stride: usize,
        messages: &[f32],
        totals: &[f32],
        arena: &mut Arena,
    ) {
        let inputs = self.plan.shapes[stage.network].0;
        let rows = run.len() * stride;
        let input = sized(&mut arena.input, inputs * rows);
        for (position, &m) in run.iter().enumerate() {
            let mut feature = 0;
            for source in &self.plan.sources[m as usize] {
                match source {
                    Source::Belief { latent, terms } => {
                        let node = &self.nodes[*latent];
                        let width = node.belief.input_dim(self.inputs);
                        f32::dispatch(NetworkInputs {
                            node,
                            inputs: self.inputs,
                            incoming: self.incoming(*latent, terms, stride, messages, totals),
                            stride,
                            features: &mut input[feature * rows + position * stride..],
                            features_stride: rows,
                        });
                        feature += width;
                    }
                    Source::Observation {
                        index,
                        features,
                        flag,
                    } => {
                        let observation = batch.observation(*index);
                        let (start, step, row_step) = if stage.wide {
                            (position * stride * inputs, 1, inputs)
                        } else {
                            (feature * rows + position * stride, rows, 1)
                        };
                        for (r, row) in block_rows.clone().enumerate() {
                            let to = &mut input[start + r * row_step..];
                            observation.write(batch.samples[row] as usize, to, step);
                            if let Some((noise, samples)) = batch.noise() {
                                noise.add(*index, samples[row], *features, to, step);
                            }
                            if *flag {
                                let shows = batch.shows(*index, row);
                                to[features * step] = f32::from(u8::from(shows));
                                // What is missing is stored as zeros, what is masked is not.
                                for i in (0..*features).filter(|_| !shows) {
                                    to[i * step] = 0.0;
                                }
                            }
                        }
                        for r in block_rows.len()..stride {
                            for i in 0..features + usize::from(*flag) {
                                input[start + r * row_step + i * step] = 0.0;
                            }
                        }
                        feature += features + usize::from(*flag);
                    }
                }
            }
        }
    }

    /// The planes that a belief's sum of messages is made of.
    fn incoming<'a>(
        &'a self,
        latent: usize,
        terms: &'a Terms,
        stride: usize,
        messages: &'a [f32],
        totals: &'a [f32],
    ) -> Incoming<'a> {
        let starts = &self.plan.starts;
        match terms {
            Terms::Sum(which) => Incoming::Sum {
                which,
                starts,
                messages,
            },
            Terms::TotalBut(own) => {
                let start = self.plan.total_start[latent].unwrap_or_default() * stride;
                let own = *own as usize;
                let own = &messages[starts[own] * stride..starts[own + 1] * stride];
                Incoming::TotalBut {
                    total: &totals[start..start + own.len()],
                    own,
                }
            }
        }
    }

    /// Passes the gradient at the inputs of a message's network on to the messages they were made of.
    #[allow(clippy::too_many_arguments)]
    fn inputs_backward(
        &self,
        message: usize,
        block: &BlockState,
        grad_features: &[f32],
        features_stride: usize,
        space: &mut Vec<f32>,
        grad: &mut [f32],
        grad_totals: &mut [f32],
    ) {
        let stride = block.stride;
        let mut feature = 0;
        for source in &self.plan.sources[message] {
            match source {
                Source::Observation { features, flag, .. } => {
                    feature += features + usize::from(*flag)
                }
                Source::Belief { latent, terms } => {
                    let node = &self.nodes[*latent];
                    let len = node.belief.dim() * stride;
                    let grad_sum = sized(space, len);
                    let incoming =
                        self.incoming(*latent, terms, stride, &block.messages, &block.totals);
                    f32::dispatch(NetworkInputsBackward {
                        node,
                        inputs: self.inputs,
                        incoming,
                        stride,
                        grad_features: &grad_features[feature * features_stride..],
                        features_stride,
                        grad_sum,
                    });
                    match terms {
                        Terms::Sum(parts) => {
                            for &m in parts {
                                add(
                                    &mut grad[self.plan.starts[m as usize] * stride..][..len],
                                    grad_sum,
                                );
                            }
                        }
                        Terms::TotalBut(own) => {
                            let start = self.plan.total_start[*latent].unwrap_or_default() * stride;
                            add(&mut grad_totals[start..start + len], grad_sum);
                            subtract(
                                &mut grad[self.plan.starts[*own as usize] * stride..][..len],
                                grad_sum,
                            );
                        }
                    }
                    feature += node.belief.input_dim(self.inputs);
                }
            }
        }
    }

    fn complete_totals(&self, level: usize, stride: usize, messages: &[f32], totals: &mut [f32]) {
        for &k in &self.plan.totals[level] {
            let len = self.nodes[k].belief.dim() * stride;
            let start = self.plan.total_start[k].unwrap_or_default() * stride;
            let total = &mut totals[start..start + len];
            total.fill(0.0);
            for m in self.nodes[k].messages.clone() {
                add(total, &messages[self.plan.starts[m] * stride..][..len]);
            }
        }
    }

    fn spread_totals(&self, level: usize, stride: usize, grad_totals: &[f32], grad: &mut [f32]) {
        for &k in &self.plan.totals[level] {
            let len = self.nodes[k].belief.dim() * stride;
            let start = self.plan.total_start[k].unwrap_or_default() * stride;
            for m in self.nodes[k].messages.clone() {
                add(
                    &mut grad[self.plan.starts[m] * stride..][..len],
                    &grad_totals[start..start + len],
                );
            }
        }
    }
}
