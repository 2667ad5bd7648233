//! Adam, uphill, on pieces of an array: posteriors are updated block by block, wherever their gradient is at hand.

use rayon::prelude::*;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f32 = 1e-8;

/// The two moving averages of every number's gradient.
#[derive(Clone, Debug)]
pub(super) struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Adam {
    pub fn new(numbers: usize) -> Self {
        Self::from_parts(vec![0.0; numbers], vec![0.0; numbers])
    }

    pub fn from_parts(first: Vec<f32>, second: Vec<f32>) -> Self {
        Adam { first, second }
    }

    pub fn first(&self) -> &[f32] {
        &self.first
    }

    pub fn second(&self) -> &[f32] {
        &self.second
    }

    pub fn whole(&mut self) -> (&mut [f32], &mut [f32]) {
        (&mut self.first, &mut self.second)
    }

    pub fn chunks_mut(
        &mut self,
        size: usize,
    ) -> impl IndexedParallelIterator<Item = (&mut [f32], &mut [f32])> {
        let (first, second) = (
            self.first.par_chunks_mut(size),
            self.second.par_chunks_mut(size),
        );
        first.zip(second)
    }
}

/// One step's constants.
pub(super) struct Step {
    rate: f32,
    root: f32,
}

impl Step {
    /// The step of this number, counted from one.
    pub fn new(number: usize, rate: f64) -> Self {
        let power = i32::try_from(number).unwrap_or(i32::MAX);
        Step {
            rate: (rate / (1.0 - BETA1.powi(power))) as f32,
            root: (1.0 / (1.0 - BETA2.powi(power))).sqrt() as f32,
        }
    }

    pub fn apply(
        &self,
        gradient: &[f32],
        numbers: &mut [f32],
        (first, second): (&mut [f32], &mut [f32]),
    ) {
        let (b1, b2) = (BETA1 as f32, BETA2 as f32);
        for (((p, &g), m), v) in numbers.iter_mut().zip(gradient).zip(first).zip(second) {
            *m = b1 * *m + (1.0 - b1) * g;
            *v = b2 * *v + (1.0 - b2) * g * g;
            *p += self.rate * *m / (v.sqrt() * self.root + EPSILON);
        }
    }
}
