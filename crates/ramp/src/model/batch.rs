//! Data bound to a model, and batches of it: which samples there are and which messages they lack.

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
    hidden: Option<&'a Mask>,
    pub(super) presence: Presence,
    /// For every message, one or zero for every sample; `None` where all have it.
    masks: Vec<Option<Vec<f32>>>,
}

impl Batch<'_> {
    pub(super) fn observation(&self, index: usize) -> Step<'_> {
        self.bound.observation(index)
    }

    /// Whether a row of the batch has an observation that is not hidden.
    pub(super) fn shows(&self, observation: usize, row: usize) -> bool {
        let hidden = self.hidden.is_some_and(|h| h.has(observation, row));
        !hidden
            && self
                .observation(observation)
                .is_present(self.samples[row] as usize)
    }

    pub(super) fn mask(&self, message: usize) -> Option<&[f32]> {
        self.masks[message].as_deref()
    }
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
        hidden: Option<&'a Mask>,
    ) -> Batch<'a> {
        let count = self.plan.target.len();
        let mut batch = Batch {
            bound,
            samples,
            hidden,
            presence: Presence::complete(count),
            masks: vec![None; count],
        };
        if hidden.is_none()
            && bound.lengths.is_none()
            && bound.observations.iter().all(|o| o.is_complete())
        {
            return batch;
        }
        let words = samples.len().div_ceil(64);
        let mut bits = vec![0u64; count * words];
        let mut totals: Vec<Vec<u64>> = vec![vec![]; self.nodes.len()];
        for stage in &self.plan.stages {
            for &m in &stage.messages {
                let mut own = vec![0u64; words];
                for source in &self.plan.sources[m as usize] {
                    match source {
                        Source::Observation { index, .. } => {
                            for r in 0..samples.len() {
                                own[r / 64] |= u64::from(batch.shows(*index, r)) << (r % 64);
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
                            let node = &self.nodes[*latent];
                            if totals[*latent].is_empty() {
                                let mut once = vec![0u64; words];
                                let mut twice = vec![0u64; words];
                                for part in node.messages.clone() {
                                    for (w, &b) in bits[part * words..][..words].iter().enumerate()
                                    {
                                        twice[w] |= once[w] & b;
                                        once[w] |= b;
                                    }
                                }
                                once.extend(twice);
                                totals[*latent] = once;
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
                    // Nothing is said about what comes after a sequence's end.
                    let step = self.plan.target[m as usize];
                    for (r, &n) in samples.iter().enumerate() {
                        if lengths[n as usize] as usize <= step {
                            own[r / 64] &= !(1 << (r % 64));
                        }
                    }
                }
                bits[m as usize * words..][..words].copy_from_slice(&own);
            }
        }
        let mut lists = vec![None; count];
        let mut masks = vec![None; count];
        for m in 0..count {
            let has = |r: usize| bits[m * words + r / 64] >> (r % 64) & 1 == 1;
            let list: Vec<u32> = (0..samples.len() as u32)
                .filter(|&r| has(r as usize))
                .collect();
            if list.len() < samples.len() {
                masks[m] = Some(
                    (0..samples.len())
                        .map(|r| f32::from(u8::from(has(r))))
                        .collect(),
                );
                lists[m] = Some(list);
            }
        }
        (batch.presence, batch.masks) = (Presence::new(lists), masks);
        batch
    }
}
