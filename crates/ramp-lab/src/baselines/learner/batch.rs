//! The sequences of a step, and the sum of what each adds to the gradient.

use crate::baselines::draws;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Parts of a batch whose gradients are summed on their own: fixed, so that threads do not change the result.
const PARTS: usize = 8;

/// The sequences of one step, and where its random numbers come from.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Their numbers in the data.
    pub sequences: Vec<usize>,
    seed: u64,
    iteration: usize,
}

/// The gradients of parts of a batch: room that is reused from step to step.
pub type Parts = Vec<(f64, Vec<f32>)>;

impl Batch {
    pub(in crate::baselines) fn new(sequences: Vec<usize>, seed: u64, iteration: usize) -> Self {
        Batch {
            sequences,
            seed,
            iteration,
        }
    }

    /// Goes on to a step, counted from one: so many of all sequences, drawn at random.
    pub(super) fn draw(&mut self, iteration: usize, size: usize, all: usize) {
        self.iteration = iteration;
        let mut rng = draws(self.seed, iteration, 0);
        self.sequences.clear();
        self.sequences.extend(sample(&mut rng, all, size.min(all)));
        self.sequences.sort_unstable();
    }

    /// The random numbers of the sequence at a place of the batch.
    pub(in crate::baselines) fn draws(&self, place: usize) -> ChaCha8Rng {
        // Stream 0 chose the batch.
        draws(self.seed, self.iteration, 1 + place as u64)
    }

    /// Adds up what every sequence, by its place in the batch, adds to the objective and to the gradient, which is written
    /// over: in parallel, and in the same order on any number of threads.
    pub(in crate::baselines) fn sum(
        &self,
        parts: &mut Parts,
        gradient: &mut [f32],
        each: impl Fn(usize, &mut [f32]) -> f64 + Sync,
    ) -> f64 {
        let (all, numbers) = (self.sequences.len(), gradient.len());
        let size = all.div_ceil(PARTS).max(1);
        parts.resize_with(all.div_ceil(size), Default::default);
        parts
            .par_iter_mut()
            .enumerate()
            .for_each(|(part, (value, gradient))| {
                gradient.clear();
                gradient.resize(numbers, 0.0);
                let places = part * size..all.min((part + 1) * size);
                *value = places.map(|place| each(place, gradient)).sum();
            });
        let mut value = 0.0;
        for (number, (more, part)) in parts.iter().enumerate() {
            value += more;
            let pieces = gradient
                .par_chunks_mut(1 << 14)
                .zip(part.par_chunks(1 << 14));
            pieces.for_each(|(to, from)| match number {
                0 => to.copy_from_slice(from),
                _ => to.iter_mut().zip(from).for_each(|(to, from)| *to += from),
            });
        }
        value
    }
}
