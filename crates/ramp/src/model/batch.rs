//! Batches: a data set matched to a model, some of its samples, and which messages they have.

use super::noise::Noise;
use super::plan::{Source, Terms};
use super::{Model, ModelError};
use crate::Result;
use crate::data::{Dataset, Observation, Step};
use crate::message::Presence;
use std::borrow::Cow;

/// A data set whose observations have been matched to a model's.
pub(crate) struct Bound<'a> {
    /// For every observation of the tree its block of numbers, of a sequence the step: views, nothing is copied.
    observations: Vec<Step<'a>>,
    /// Steps of every sample where they differ, or where the chain is longer.
    lengths: Option<Cow<'a, [u32]>>,
    rows: usize,
}

impl<'a> Bound<'a> {
    /// How many samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many observations the tree has.
    pub fn observations(&self) -> usize {
        self.observations.len()
    }

    /// The block of one of the tree's observations.
    pub fn observation(&self, index: usize) -> Step<'a> {
        self.observations[index]
    }

    /// How many steps each sample has, where not all have as many as the chain.
    pub fn lengths(&self) -> Option<&[u32]> {
        self.lengths.as_deref()
    }
}

/// Observations to leave out of a batch though they are there: for each observation a bit per row.
#[derive(Default)]
pub(crate) struct Mask {
    words: usize,
    bits: Vec<u64>,
}

impl Mask {
    /// A mask that is chosen once.
    #[cfg(test)]
    pub fn new(observations: usize, rows: usize, choose: impl FnMut(usize, usize) -> bool) -> Self {
        let mut mask = Mask::default();
        mask.refill(observations, rows, choose);
        mask
    }

    /// Chooses anew what is left out, asking once for each row of each observation, observation by observation.
    pub fn refill(
        &mut self,
        observations: usize,
        rows: usize,
        mut choose: impl FnMut(usize, usize) -> bool,
    ) {
        self.words = rows.div_ceil(64);
        self.bits.clear();
        self.bits.resize(observations * self.words, 0);
        for (observation, bits) in self.bits.chunks_exact_mut(self.words).enumerate() {
            for r in 0..rows {
                bits[r / 64] |= u64::from(choose(observation, r)) << (r % 64);
            }
        }
    }

    /// Whether an observation is to be left out of a row.
    pub fn has(&self, observation: usize, row: usize) -> bool {
        self.bits[observation * self.words + row / 64] >> (row % 64) & 1 == 1
    }
}

/// Some samples of a data set, and which messages they lack.
pub(crate) struct Batch<'a> {
    bound: &'a Bound<'a>,
    pub(super) samples: &'a [u32],
    masked: Option<&'a Mask>,
    pub(super) presence: Presence,
    /// For every message, one or zero for every sample; `None` where all have it.
    masks: Vec<Option<Vec<f32>>>,
    /// What is added to images, while learning, and the samples that it is drawn for.
    noise: Option<(&'a Noise, &'a [u32])>,
    memory: BatchMemory,
}

/// The memory of a batch's masks, handed on from batch to batch.
#[derive(Default)]
pub(crate) struct BatchMemory {
    /// Which samples have which message, and one message's.
    bits: Vec<u64>,
    own: Vec<u64>,
    /// Of nodes with many messages: which samples have any of them, then which have two.
    totals: Vec<Vec<u64>>,
    /// Lists of samples and masks that no message uses.
    lists: Vec<Vec<u32>>,
    masks: Vec<Vec<f32>>,
    /// The containers of a batch without a gap.
    presence: Vec<Option<Vec<u32>>>,
    by_message: Vec<Option<Vec<f32>>>,
}

impl<'a> Batch<'a> {
    /// The batch with noise on its images: that of these samples, which are those of the batch, wherever their rows are now.
    pub fn with_noise(self, noise: &'a Noise, samples: &'a [u32]) -> Self {
        Batch {
            noise: Some((noise, samples)),
            ..self
        }
    }

    /// The noise, and the sample of each row.
    pub(super) fn noise(&self) -> Option<(&'a Noise, &'a [u32])> {
        self.noise
    }
}

impl Batch<'_> {
    pub(super) fn observation(&self, index: usize) -> Step<'_> {
        self.bound.observation(index)
    }

    /// Whether a row of the batch has an observation that is not masked.
    pub(super) fn shows(&self, observation: usize, row: usize) -> bool {
        shows(self.bound, self.samples, self.masked, observation, row)
    }

    pub(super) fn mask(&self, message: usize) -> Option<&[f32]> {
        self.masks[message].as_deref()
    }

    /// The memory for the next batch.
    pub fn into_memory(self) -> BatchMemory {
        let mut memory = self.memory;
        memory.presence = self.presence.into_rows();
        memory.by_message = self.masks;
        let messages = memory.presence.len();
        let lists = memory.presence.iter_mut().filter_map(Option::take);
        memory.lists.reserve(messages);
        memory.lists.extend(lists);
        let masks = memory.by_message.iter_mut().filter_map(Option::take);
        memory.masks.reserve(messages);
        memory.masks.extend(masks);
        memory
    }
}

/// Whether a row of a batch has an observation that is not masked.
fn shows(
    bound: &Bound<'_>,
    samples: &[u32],
    masked: Option<&Mask>,
    observation: usize,
    row: usize,
) -> bool {
    let masked = masked.is_some_and(|mask| mask.has(observation, row));
    !masked
        && bound
            .observation(observation)
            .is_present(samples[row] as usize)
}

/// All zeros, in memory that is there already.
fn cleared(buffer: &mut Vec<u64>, len: usize) -> &mut [u64] {
    buffer.clear();
    buffer.resize(len, 0);
    buffer
}

impl Model {
    /// Matches a data set's observations to the tree's.
    pub(crate) fn bind<'a>(&self, data: &'a Dataset) -> Result<Bound<'a>> {
        let fits = |found: &Observation, features: usize| match found.features() == features {
            true => Ok(()),
            false => Err(ModelError::Features {
                observation: found.name().into(),
                found: found.features(),
                expected: features,
            }),
        };
        let mut observations = Vec::with_capacity(self.features.len());
        let mut lengths = data.lengths().map(Cow::Borrowed);
        if let Some(time) = self.tree.time_axis() {
            let sequences = time
                .series()
                .iter()
                .zip(&self.features)
                .map(|(series, &features)| {
                    let found = data.sequence(series)?;
                    fits(found, features)?;
                    Ok(found)
                })
                .collect::<Result<Vec<_>>>()?;
            for step in 0..time.steps() {
                observations.extend(sequences.iter().map(|s| s.step(step)));
            }
            let steps = data.steps().unwrap_or(0);
            if lengths.is_none() && steps != time.steps() {
                lengths = Some(Cow::Owned(vec![
                    u32::try_from(steps).unwrap_or(u32::MAX);
                    data.rows()
                ]));
            }
        } else {
            for (&v, &features) in self.tree.observations().iter().zip(&self.features) {
                let found = data.single(self.tree.name(v))?;
                fits(found.observation(), features)?;
                observations.push(found);
            }
        }
        if let Some(lengths) = &lengths {
            if !self.tree.is_chain() {
                return Err(ModelError::LengthsWithoutChain.into());
            }
            let steps = self.nodes.len();
            if let Some(n) = lengths.iter().position(|&l| l as usize > steps) {
                return Err(ModelError::TooLong {
                    sequence: n,
                    length: lengths[n] as usize,
                    steps,
                }
                .into());
            }
        }
        Ok(Bound {
            observations,
            lengths,
            rows: data.rows(),
        })
    }

    /// Which messages each of some samples has: those with an observation behind them, up to the sample's last step.
    pub(crate) fn batch<'a>(
        &self,
        bound: &'a Bound<'a>,
        samples: &'a [u32],
        masked: Option<&'a Mask>,
    ) -> Batch<'a> {
        self.batch_with(bound, samples, masked, BatchMemory::default())
    }

    /// [`Model::batch`] in the memory of an earlier one.
    pub(crate) fn batch_with<'a>(
        &self,
        bound: &'a Bound<'a>,
        samples: &'a [u32],
        masked: Option<&'a Mask>,
        mut memory: BatchMemory,
    ) -> Batch<'a> {
        let count = self.plan.target.len();
        let mut lists = std::mem::take(&mut memory.presence);
        let mut masks = std::mem::take(&mut memory.by_message);
        lists.resize(count, None);
        masks.resize(count, None);
        let gaps = masked.is_some()
            || bound.lengths.is_some()
            || !bound.observations.iter().all(|o| o.is_complete());
        if gaps {
            self.mark_present(bound, samples, masked, &mut memory);
            let words = samples.len().div_ceil(64);
            for m in 0..count {
                let bits = &memory.bits[m * words..][..words];
                let there: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
                if there == samples.len() {
                    continue;
                }
                let has = |r: usize| bits[r / 64] >> (r % 64) & 1 == 1;
                let mut list = memory.lists.pop().unwrap_or_default();
                list.clear();
                // How many have it changes from step to step.
                list.reserve(samples.len());
                list.extend((0..samples.len() as u32).filter(|&r| has(r as usize)));
                lists[m] = Some(list);
                let mut mask = memory.masks.pop().unwrap_or_default();
                mask.clear();
                mask.extend((0..samples.len()).map(|r| f32::from(u8::from(has(r)))));
                masks[m] = Some(mask);
            }
        }
        Batch {
            bound,
            samples,
            masked,
            presence: Presence::new(lists),
            masks,
            noise: None,
            memory,
        }
    }

    /// Sets a bit for every sample that has a message, message by message.
    fn mark_present(
        &self,
        bound: &Bound<'_>,
        samples: &[u32],
        masked: Option<&Mask>,
        memory: &mut BatchMemory,
    ) {
        let words = samples.len().div_ceil(64);
        let bits = cleared(&mut memory.bits, self.plan.target.len() * words);
        let totals = &mut memory.totals;
        totals.resize_with(self.nodes.len(), Vec::new);
        totals.iter_mut().for_each(Vec::clear);
        for stage in &self.plan.stages {
            for &m in &stage.messages {
                let own = cleared(&mut memory.own, words);
                for source in &self.plan.sources[m as usize] {
                    match source {
                        Source::Observation { index, .. } => {
                            for r in 0..samples.len() {
                                let there = shows(bound, samples, masked, *index, r);
                                own[r / 64] |= u64::from(there) << (r % 64);
                            }
                        }
                        Source::Belief {
                            terms: Terms::Sum(parts),
                            ..
                        } => {
                            for &part in parts {
                                let part = &bits[part as usize * words..][..words];
                                own.iter_mut().zip(part).for_each(|(a, b)| *a |= b);
                            }
                        }
                        Source::Belief {
                            latent,
                            terms: Terms::TotalBut(but),
                        } => {
                            // Behind a node of many messages: any but one, from counts of at least two.
                            let total = &mut totals[*latent];
                            if total.is_empty() {
                                let (once, twice) = cleared(total, 2 * words).split_at_mut(words);
                                for part in self.nodes[*latent].messages.clone() {
                                    for (w, &b) in bits[part * words..][..words].iter().enumerate()
                                    {
                                        twice[w] |= once[w] & b;
                                        once[w] |= b;
                                    }
                                }
                            }
                            let (once, twice) = totals[*latent].split_at(words);
                            for (w, &b) in bits[*but as usize * words..][..words].iter().enumerate()
                            {
                                own[w] |= twice[w] | (once[w] & !b);
                            }
                        }
                    }
                }
                if let Some(lengths) = bound.lengths() {
                    // There are no messages about what comes after a sequence's end.
                    let step = self.plan.target[m as usize];
                    for (r, &n) in samples.iter().enumerate() {
                        if lengths[n as usize] as usize <= step {
                            own[r / 64] &= !(1 << (r % 64));
                        }
                    }
                }
                bits[m as usize * words..][..words].copy_from_slice(own);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::FactorTree;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Memory of earlier batches, of other sizes and with other gaps, must not show in a batch.
    #[test]
    fn a_batch_in_used_memory_is_that_of_fresh_memory() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        // 17 neighbours: a node of many messages.
        let names: Vec<String> = (1..=17).map(|i| format!("x{i}")).collect();
        let trees = [
            FactorTree::from_newick(&format!("(({})a,(y1,y2)b)c;", names.join(","))).unwrap(),
            FactorTree::from_newick("((x1,x2)a,(y1,y2)b)c;").unwrap(),
        ];
        let mut memory = BatchMemory::default();
        for tree in trees {
            let mut data = Dataset::new();
            for &v in tree.observations() {
                let value = |rng: &mut ChaCha8Rng| match rng.random_bool(0.4) {
                    true => f32::NAN,
                    false => 1.0,
                };
                let values = (0..200).map(|_| value(&mut rng)).collect();
                data = data.observe(tree.name(v), 1, values).unwrap();
            }
            let observations = tree.observations().len();
            let model = Model::builder(tree).build(&data).unwrap();
            let bound = model.bind(&data).unwrap();
            for rows in [150, 3, 64, 65] {
                let samples: Vec<u32> = (0..rows).map(|_| rng.random_range(0..200)).collect();
                let mask = Mask::new(observations, rows, |_, _| rng.random_bool(0.1));
                for mask in [None, Some(&mask)] {
                    let fresh = model.batch(&bound, &samples, mask);
                    let used = model.batch_with(&bound, &samples, mask, memory);
                    let mut gaps = 0;
                    for m in 0..model.plan.target.len() {
                        assert_eq!(fresh.presence.rows(m), used.presence.rows(m));
                        assert_eq!(fresh.mask(m), used.mask(m));
                        gaps += usize::from(fresh.mask(m).is_some());
                    }
                    assert!(gaps > 0);
                    memory = used.into_memory();
                }
            }
        }
    }
}
