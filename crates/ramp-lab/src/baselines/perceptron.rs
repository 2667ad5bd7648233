//! The library's perceptron with its working space, for models that run it on a block at a time.

use crate::error::LabError;
use ramp::network::{Block, Mlp, Network, ROW_UNIT};
use rand_chacha::ChaCha8Rng;
use std::cell::Cell;
use std::ops::Range;

use super::learner::Array;
use super::sequences::Sequences;

/// Inputs up to which the first layer learns at the full rate: the pixels of small frames, for which rates were chosen.
const FULL_RATE: f64 = 576.0;

/// A perceptron and the place of its weights among all of a model's numbers.
#[derive(Clone, Debug)]
pub(super) struct Perceptron {
    mlp: Mlp,
    place: Range<usize>,
}

/// What a forward pass leaves: outputs, feature-major, and what the way back needs.
pub(super) struct Pass {
    pub output: Vec<f32>,
    tape: Vec<f32>,
}

impl Perceptron {
    /// A perceptron with tanh units whose weights begin at `from`.
    pub fn new(
        inputs: usize,
        hidden: &[usize],
        outputs: usize,
        from: usize,
    ) -> Result<Self, LabError> {
        let mlp = Mlp::new(inputs, hidden, outputs)?;
        let len: usize = mlp.parameters().iter().map(|p| p.len()).sum();
        Ok(Perceptron {
            mlp,
            place: from..from + len,
        })
    }

    /// Where its weights are; those of its last layer's bias come last.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Its arrays, named after what it is. Adam moves every weight by about its rate, so that the same rate would move the sums of
    /// a picture by more the more pixels it has: the first layer of a `wide` perceptron learns at a lower one.
    pub fn arrays(&self, name: &str, wide: bool) -> Vec<Array> {
        let mut start = self.place.start;
        let layers = self.mlp.parameters().into_iter().enumerate();
        layers
            .map(|(i, parameter)| {
                let span = start..start + parameter.len();
                start = span.end;
                Array {
                    name: format!("{name} {}", parameter.name),
                    span,
                    part: match wide && i == 0 {
                        true => (FULL_RATE / self.mlp.inputs() as f64).min(1.0),
                        false => 1.0,
                    },
                }
            })
            .collect()
    }

    pub fn outputs(&self) -> usize {
        self.mlp.outputs()
    }

    pub fn initialize(&self, rng: &mut ChaCha8Rng, parameters: &mut [f32]) {
        self.mlp
            .initialize(rng, &mut parameters[self.place.clone()]);
    }

    pub fn forward(&self, parameters: &[f32], input: Block<'_>) -> Pass {
        let mut pass = Pass {
            output: vec![0.0; self.mlp.outputs() * input.rows()],
            tape: vec![0.0; self.mlp.tape_len(input.rows())],
        };
        let mut scratch = vec![0.0; self.mlp.scratch_len(input.rows())];
        self.mlp.forward(
            &parameters[self.place.clone()],
            input,
            &mut pass.output,
            &mut pass.tape,
            &mut scratch,
        );
        pass
    }

    /// Adds the gradient of the weights to their place in `gradient`; that at the inputs goes to `to_input`.
    pub fn backward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        pass: &Pass,
        at_output: &[f32],
        to_input: Option<&mut [f32]>,
        gradient: &mut [f32],
    ) {
        let mut scratch = vec![0.0; self.mlp.scratch_len(input.rows())];
        self.mlp.backward(
            &parameters[self.place.clone()],
            input,
            &pass.tape,
            at_output,
            to_input,
            &mut gradient[self.place.clone()],
            &mut scratch,
        );
    }
}

/// Rows of a block that holds so many, padding included.
pub(super) fn padded(rows: usize) -> usize {
    rows.next_multiple_of(ROW_UNIT)
}

thread_local! {
    /// The room of the last sequence: videos are large, and asking the system for room takes longer than reading them.
    static ROOM: Cell<Vec<f32>> = const { Cell::new(vec![]) };
}

/// All observations of a sequence, row by row, and rows of zeros as padding.
pub(super) struct Frames {
    width: usize,
    pub rows: usize,
    pub values: Vec<f32>,
}

impl Frames {
    pub fn read(data: &dyn Sequences, sequence: usize) -> Self {
        let (steps, width) = (data.steps(), data.width());
        let rows = padded(steps);
        let mut values = ROOM.take();
        values.resize(rows * width, 0.0);
        values[steps * width..].fill(0.0);
        for (step, row) in values.chunks_exact_mut(width).take(steps).enumerate() {
            data.read(sequence, step, row);
        }
        Frames {
            width,
            rows,
            values,
        }
    }

    pub fn block(&self) -> Block<'_> {
        Block::row_major(&self.values, self.width, self.rows)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        ROOM.set(std::mem::take(&mut self.values));
    }
}
