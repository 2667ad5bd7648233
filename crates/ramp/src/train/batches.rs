//! Who trains and who is held out, who is in which batch and mixture, and what is masked: functions of the seed and the
//! iteration alone, so that a resumed run needs no other memory. Everything is drawn into buffers that are reused.

use super::{TrainError, TrainSpec};
use crate::model::Mask;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Streams of random numbers that must not meet.
const HOLDOUT_STREAM: u64 = 1 << 62;
const MIXTURE_STREAM: u64 = 1 << 61;
const MASK_STREAM: u64 = 1 << 60;

fn rng(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// Who does what; every sample is in one of them, and all are ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Split {
    /// Learned from.
    pub training: Vec<u32>,
    /// Not learned from; they choose the weights.
    pub validation: Vec<u32>,
    /// Not touched by training; they judge.
    pub held_out: Vec<u32>,
}

/// Deals samples out by their shares.
pub(super) fn split(spec: &TrainSpec, rows: usize) -> Result<Split, TrainError> {
    let count = |name, share: f64| {
        let count = (rows as f64 * share).round() as usize;
        match rows == 0 || (share > 0.0 && (count == 0 || count == rows)) {
            true => Err(TrainError::NothingLeft {
                name,
                share,
                samples: rows,
            }),
            false => Ok(count),
        }
    };
    let (held_out, validation) = (
        count("holdout", spec.holdout)?,
        count("validation", spec.validation)?,
    );
    if held_out + validation >= rows {
        return Err(TrainError::NothingLeft {
            name: "validation",
            share: spec.holdout + spec.validation,
            samples: rows,
        });
    }
    let mut training: Vec<u32> = (0..rows as u32).collect();
    if !spec.holdout_last {
        training.shuffle(&mut rng(spec.dealt_by(), HOLDOUT_STREAM));
    }
    let mut held_out = training.split_off(rows - held_out);
    let mut validation = training.split_off(training.len() - validation);
    training.sort_unstable();
    validation.sort_unstable();
    held_out.sort_unstable();
    if let Some(batch) = spec.batch
        && batch > training.len()
    {
        return Err(TrainError::BatchTooLarge {
            batch,
            samples: training.len(),
        });
    }
    Ok(Split {
        training,
        validation,
        held_out,
    })
}

/// The batch, the mixture and the mask of a step.
pub(super) struct Drawn<'a> {
    /// The samples.
    pub samples: &'a [u32],
    /// The rows of the batch that make up its mixture; all of them if none are named.
    pub mixture: Option<&'a [u32]>,
    /// What is masked, if anything is.
    pub mask: Option<&'a Mask>,
}

/// Draws steps from training samples.
pub(super) struct Batches {
    spec: TrainSpec,
    /// Samples to learn from, ascending.
    train: Vec<u32>,
    /// Observations of a sample, and the series that they belong to in turn.
    observations: usize,
    series: usize,
    /// The samples in the order of an epoch.
    order: Vec<u32>,
    epoch: Option<usize>,
    rows: Vec<u32>,
    mixture: Vec<u32>,
    mask: Mask,
    before: Vec<Option<bool>>,
}

impl Batches {
    /// The samples to learn from.
    pub fn training(&self) -> &[u32] {
        &self.train
    }

    /// Draws from these samples, which have so many observations of so many series.
    pub fn new(spec: TrainSpec, train: Vec<u32>, (observations, series): (usize, usize)) -> Self {
        Batches {
            spec,
            order: train.clone(),
            train,
            observations,
            series,
            epoch: None,
            rows: vec![],
            mixture: vec![],
            mask: Mask::default(),
            before: vec![],
        }
    }

    /// What a step learns from.
    pub fn draw(&mut self, iteration: usize) -> Drawn<'_> {
        let batch = self.batch(iteration);
        let mixed = self.draw_mixture(iteration, batch.len());
        let masked = self.draw_mask(iteration, batch.len());
        Drawn {
            samples: &self.order[batch],
            mixture: mixed.then_some(&self.mixture),
            mask: masked.then_some(&self.mask),
        }
    }

    /// Where in the epoch's order a step's samples lie: batches of a random order, drawn anew each epoch.
    fn batch(&mut self, iteration: usize) -> std::ops::Range<usize> {
        let size = self.spec.batch.unwrap_or(self.train.len());
        if size == self.train.len() {
            // In the order of the data: nothing was shuffled.
            return 0..size;
        }
        let per_epoch = self.train.len() / size;
        let epoch = iteration / per_epoch;
        if self.epoch != Some(epoch) {
            self.order.copy_from_slice(&self.train);
            self.order.shuffle(&mut rng(self.spec.seed, epoch as u64));
            self.epoch = Some(epoch);
        }
        let start = iteration % per_epoch * size;
        start..start + size
    }

    /// Draws the rows of a batch that make up its mixture; whether it is not all of them.
    fn draw_mixture(&mut self, iteration: usize, batch: usize) -> bool {
        let Some(size) = self.spec.mixture.filter(|&m| m < batch) else {
            return false;
        };
        let mut rng = rng(self.spec.seed, MIXTURE_STREAM + iteration as u64);
        self.rows.clear();
        self.rows.extend(0..batch as u32);
        let (drawn, _) = self.rows.partial_shuffle(&mut rng, size);
        drawn.sort_unstable();
        self.mixture.clear();
        self.mixture.extend_from_slice(drawn);
        true
    }

    /// Draws what a step masks of so many rows; whether it masks anything.
    fn draw_mask(&mut self, iteration: usize, rows: usize) -> bool {
        if self.spec.mask == 0.0 {
            return false;
        }
        let mut rng = rng(self.spec.seed, MASK_STREAM + iteration as u64);
        let (mask, span) = self.spec.masking(iteration);
        let (series, before) = (self.series, &mut self.before);
        before.clear();
        before.resize(series * rows, None);
        self.mask
            .refill(self.observations, rows, |observation, row| {
                let before = &mut before[observation % series * rows + row];
                let chance = match (span, *before) {
                    (None, _) | (_, None) => mask,
                    // A span goes on, or another begins as often as keeps the chance in all.
                    (Some(span), Some(true)) => 1.0 - 1.0 / span,
                    (Some(span), Some(false)) => (mask / ((1.0 - mask) * span)).min(1.0),
                };
                let masked = rng.random_bool(chance);
                *before = Some(masked);
                masked
            });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The batch of a step as the whole data shuffled for it alone.
    fn naive(spec: &TrainSpec, train: &[u32], iteration: usize) -> Vec<u32> {
        let size = spec.batch.unwrap_or(train.len());
        let per_epoch = train.len() / size;
        let mut order = train.to_vec();
        order.shuffle(&mut rng(spec.seed, (iteration / per_epoch) as u64));
        order[iteration % per_epoch * size..][..size].to_vec()
    }

    #[test]
    fn samples_are_dealt_out_by_a_seed_of_their_own_where_there_is_one() {
        let dealt = |seed, split_seed| {
            let (holdout, validation) = (0.2, 0.1);
            let spec = TrainSpec {
                holdout,
                validation,
                seed,
                split_seed,
                ..TrainSpec::default()
            };
            split(&spec, 50).unwrap()
        };
        assert_eq!(dealt(1, Some(7)), dealt(2, Some(7)));
        assert_eq!(dealt(7, None), dealt(1, Some(7)));
        assert_ne!(dealt(1, None), dealt(2, None));
    }

    #[test]
    fn batches_from_a_cached_epoch_are_those_of_shuffling_every_step() {
        let spec = TrainSpec {
            batch: Some(7),
            mixture: Some(3),
            seed: 5,
            ..TrainSpec::default()
        };
        let train: Vec<u32> = (0..60).filter(|i| i % 3 > 0).collect();
        let mut batches = Batches::new(spec.clone(), train.clone(), (4, 1));
        // Forwards over epochs, and back: as a resumed run may begin anywhere.
        for iteration in (0..25).chain([3, 17, 4]) {
            let drawn = batches.draw(iteration);
            assert_eq!(drawn.samples, naive(&spec, &train, iteration));
            let mixture = drawn.mixture.unwrap();
            assert!(mixture.len() == 3 && mixture.is_sorted() && mixture[2] < 7);
            assert!(drawn.mask.is_none());
        }
        let whole = TrainSpec {
            batch: None,
            ..spec
        };
        let mut batches = Batches::new(whole, train.clone(), (4, 1));
        assert_eq!(batches.draw(3).samples, train);
    }

    #[test]
    fn masking_keeps_its_chance_and_the_length_of_its_spans() {
        let (observations, rows) = (400, 128);
        // The share of what is masked, and the mean length of a span.
        let measured = |spec: &TrainSpec, iteration: usize| {
            // Two series, whose steps take turns.
            let samples = (0..rows as u32).collect();
            let mut batches = Batches::new(spec.clone(), samples, (observations, 2));
            let drawn = batches.draw(iteration);
            let is = |observation: usize, row: usize| drawn.mask.unwrap().has(observation, row);
            let (mut all, mut spans) = (0, 0);
            for row in 0..rows {
                for at in (0..observations).filter(|&at| is(at, row)) {
                    all += 1;
                    spans += usize::from(at + 2 >= observations || !is(at + 2, row));
                }
            }
            let share = all as f64 / (observations * rows) as f64;
            (share, all as f64 / spans.max(1) as f64)
        };
        let near = |(share, span): (f64, f64), (wanted_share, wanted_span): (f64, f64)| {
            assert!(
                (share - wanted_share).abs() < 0.02,
                "{share} {wanted_share}"
            );
            assert!(
                (span / wanted_span - 1.0).abs() < 0.06,
                "{span} {wanted_span}"
            );
        };
        let alone = TrainSpec {
            mask: 0.4,
            ..TrainSpec::default()
        };
        near(measured(&alone, 3), (0.4, 1.0 / 0.6));
        let together = TrainSpec {
            mask_span: Some(6.0),
            mask_warmup: 100,
            ..alone
        };
        near(measured(&together, 100), (0.4, 6.0));
        near(measured(&together, 49), (0.2, 3.5));
        together.check().unwrap();
        let short = TrainSpec {
            mask: 0.8,
            mask_span: Some(2.0),
            ..TrainSpec::default()
        };
        let says = short.check().unwrap_err().to_string();
        assert!(says.contains("mask_span must be a number from 4"), "{says}");
    }
}
