//! Convolutions of groups of images that lie side by side, one lane per image.
//!
//! Where `gemm` would want every window copied out (im2col, nine times the data for 3×3), a group of [`GROUP`] images with
//! the image as the innermost dimension needs no copy at all: the same pixel of all images is one contiguous load whatever
//! the stride, and a layer is the register tile of a dense layer walked over the window's taps. Inputs and output
//! gradients lie in buffers with a border of zeros, so that no window is a special case. Buffers should begin on a cache
//! line: weight gradients read two registers for five products, and loads that straddle lines cost them a third.
//! The input's gradient is again such a walk: with stride `s`, the pixels of one residue class modulo `s` see the same taps.

use super::activation::Activation;
use super::block::ROW_UNIT;
use super::dense::RowSums;
use super::lanes::{Isa, dispatch_on, isa};
use super::tile::{Finish, Tap};
use sweep::{Sweep, WindowGradient};

mod geometry;
mod sweep;

pub(crate) use geometry::Place;
use geometry::{Bordered, Class};

/// How many images are convolved side by side.
pub(crate) const GROUP: usize = ROW_UNIT;

/// Weights are packed in columns of so many outputs, the height of the tallest register tile: one tile's weights are then
/// contiguous, which in place they are not (an input gradient's tile would touch five lines per channel).
const PACK: usize = 8;

/// A convolution of square windows: shapes, and the walks that compute it.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    input: [usize; 3],
    output: [usize; 3],
    stride: usize,
    window: usize,
    input_buffer: Bordered,
    grad_buffer: Bordered,
    /// The window's taps in the bordered input.
    taps: Vec<Tap>,
    /// Where the input of every row of the window begins, over all channels.
    window_rows: Vec<usize>,
    classes: Vec<Class>,
}

impl Convolution {
    /// A convolution of images of shape `[channels, height, width]`. The shapes must fit: the window is neither empty nor
    /// larger than the padded image, and the stride is not zero.
    pub fn new(
        input: [usize; 3],
        outputs: usize,
        window: usize,
        stride: usize,
        padding: usize,
    ) -> Self {
        let [channels, height, width] = input;
        let inner = [height, width];
        let size = inner.map(|side| side + 2 * padding);
        // Beyond the image, all strides are alike: one window.
        let stride = stride.min(size[0].max(size[1]));
        let out = size.map(|side| (side - window) / stride + 1);
        let input_buffer = Bordered {
            channels,
            size,
            before: [padding; 2],
            inner,
        };
        // Input pixel i meets output j at tap t where i + padding = stride·j + t. Along one side, for a class that begins
        // at `first`, that is j = i' + shift for its i'-th pixel, with a shift per tap.
        let shifts = |first: usize| {
            (0..window).filter_map(move |tap| {
                let distance = (first + padding) as isize - tap as isize;
                (distance.rem_euclid(stride as isize) == 0)
                    .then(|| (tap, distance.div_euclid(stride as isize)))
            })
        };
        let (mut before, mut after) = ([0; 2], [0; 2]);
        for side in 0..2 {
            for first in 0..stride.min(inner[side]) {
                let count = (inner[side] - first).div_ceil(stride);
                for (_, shift) in shifts(first) {
                    let last = count as isize - 1 + shift;
                    before[side] = before[side].max(-shift);
                    after[side] = after[side].max(last + 1 - out[side] as isize);
                }
            }
        }
        let before = before.map(|b| b as usize);
        let grad_size = [0, 1].map(|side| before[side] + out[side] + after[side] as usize);
        let grad_buffer = Bordered {
            channels: outputs,
            size: grad_size,
            before,
            inner: out,
        };
        let pairs = |a: usize, b: usize| (0..a).flat_map(move |i| (0..b).map(move |j| (i, j)));
        let taps: Vec<Tap> = pairs(window, window)
            .map(|(y, x)| Tap {
                weight: (y * window + x) * channels * PACK,
                input: (y * size[1] + x) * GROUP,
            })
            .collect();
        let plane = size[0] * size[1] * GROUP;
        let window_rows = pairs(channels, window)
            .map(|(c, y)| c * plane + y * size[1] * GROUP)
            .collect();
        let classes = pairs(stride.min(height), stride.min(width)).map(|(y, x)| Class {
            first: [y, x],
            count: [(height - y).div_ceil(stride), (width - x).div_ceil(stride)],
            lines: shifts(y).count(),
            taps: shifts(y)
                .flat_map(|(ty, sy)| shifts(x).map(move |(tx, sx)| (ty, sy, tx, sx)))
                .map(|(ty, sy, tx, sx)| {
                    let row = (sy + before[0] as isize) as usize;
                    let column = (sx + before[1] as isize) as usize;
                    Tap {
                        weight: (ty * window + tx) * outputs * PACK,
                        input: (row * grad_size[1] + column) * GROUP,
                    }
                })
                .collect(),
        });
        let classes = classes.collect();
        Convolution {
            input,
            output: [outputs, out[0], out[1]],
            stride,
            window,
            input_buffer,
            grad_buffer,
            taps,
            window_rows,
            classes,
        }
    }

    /// Channels, height and width of the input.
    pub fn input(&self) -> [usize; 3] {
        self.input
    }

    /// Channels, height and width of the output.
    pub fn output(&self) -> [usize; 3] {
        self.output
    }

    /// Weights, `[outputs, channels, window, window]`.
    pub fn weights_len(&self) -> usize {
        self.output[0] * self.fan_in()
    }

    /// The numbers that one output sums over.
    pub fn fan_in(&self) -> usize {
        self.window_rows.len() * self.window
    }

    /// Length of the weights packed for [`Convolution::forward`] and for [`Convolution::backward_input`].
    pub fn packed_lens(&self) -> [usize; 2] {
        let ([inputs, ..], [outputs, ..]) = (self.input, self.output);
        let taps = self.taps.len();
        [
            outputs.next_multiple_of(PACK) * inputs * taps,
            inputs.next_multiple_of(PACK) * outputs * taps,
        ]
    }

    /// Packs weights for [`Convolution::forward`].
    pub fn pack_forward(&self, weights: &[f32], packed: &mut [f32]) {
        let steps = [self.fan_in(), self.taps.len()];
        self.pack(weights, packed, self.output[0], self.input[0], steps);
    }

    /// Packs weights for [`Convolution::backward_input`].
    pub fn pack_backward(&self, weights: &[f32], packed: &mut [f32]) {
        let steps = [self.taps.len(), self.fan_in()];
        self.pack(weights, packed, self.input[0], self.output[0], steps);
    }

    /// `packed[m / PACK][tap][channel][m % PACK] = weights[m · step_m + channel · step_channel + tap]`.
    fn pack(
        &self,
        weights: &[f32],
        packed: &mut [f32],
        outputs: usize,
        channels: usize,
        [step, channel_step]: [usize; 2],
    ) {
        let taps = self.taps.len();
        let mut columns = packed.chunks_exact_mut(PACK);
        for first in (0..outputs).step_by(PACK) {
            for tap in 0..taps {
                for (channel, column) in (0..channels).zip(&mut columns) {
                    for (m, to) in (first..outputs).zip(column) {
                        *to = weights[m * step + channel * channel_step + tap];
                    }
                }
            }
        }
    }

    /// Length of the bordered buffer of a group's inputs.
    pub fn input_len(&self) -> usize {
        self.input_buffer.len()
    }

    /// Where the pixels lie within that buffer.
    pub fn input_place(&self) -> Place {
        self.input_buffer.place()
    }

    /// Writes the zeros around the inputs; the pixels may follow later.
    pub fn clear_input_border(&self, buffer: &mut [f32]) {
        self.input_buffer.clear_border(buffer);
    }

    /// Length of the bordered buffer of a group's output gradients.
    pub fn grad_len(&self) -> usize {
        self.grad_buffer.len()
    }

    /// Where the gradients lie within that buffer.
    pub fn grad_place(&self) -> Place {
        self.grad_buffer.place()
    }

    /// Writes the zeros around the gradients; the gradients may follow later.
    pub fn clear_grad_border(&self, buffer: &mut [f32]) {
        self.grad_buffer.clear_border(buffer);
    }

    /// Outputs of a group at `place` with packed weights, then `finish`, whose companions lie at `place` too.
    pub fn forward(
        &self,
        weights: &[f32],
        bias: &[f32],
        input: &[f32],
        (output, place): (&mut [f32], Place),
        finish: Finish<'_>,
    ) {
        self.forward_on(isa(), weights, bias, input, (output, place), finish);
    }

    fn forward_on(
        &self,
        isa: Isa,
        weights: &[f32],
        bias: &[f32],
        input: &[f32],
        (output, place): (&mut [f32], Place),
        finish: Finish<'_>,
    ) {
        assert!(weights.len() >= self.packed_lens()[0]);
        assert_eq!(bias.len(), self.output[0]);
        assert!(input.len() >= self.input_len());
        assert!(place.end(self.output) <= output.len());
        if let Finish::Activate(_, Some(slopes)) = &finish {
            assert!(place.end(self.output) <= slopes.len());
        }
        assert!(!matches!(finish, Finish::Chain(..)));
        let from = self.input_buffer.place();
        dispatch_on(
            isa,
            Sweep {
                weights,
                tile_weights: PACK * self.fan_in(),
                bias: Some(bias),
                input,
                from: Place {
                    start: 0,
                    channel: from.channel,
                    row: self.stride * from.row,
                    column: self.stride * from.column,
                },
                channels: self.input[0],
                channels_at_once: channels_at_once(self.window * (self.window + self.stride)),
                taps: &self.taps,
                output,
                place,
                kept: place,
                shape: self.output,
                finish,
            },
        );
    }

    /// The gradient at a group's inputs with packed weights, written to `place`. Where it is chained through an activation, what was kept of
    /// that lies as the inputs do ([`Convolution::input_place`]).
    pub fn backward_input(
        &self,
        weights: &[f32],
        grad: &[f32],
        (output, place): (&mut [f32], Place),
        chain: Option<(Activation, &[f32])>,
    ) {
        self.backward_input_on(isa(), weights, grad, (output, place), chain);
    }

    fn backward_input_on(
        &self,
        isa: Isa,
        weights: &[f32],
        grad: &[f32],
        (output, place): (&mut [f32], Place),
        chain: Option<(Activation, &[f32])>,
    ) {
        assert!(weights.len() >= self.packed_lens()[1]);
        assert!(grad.len() >= self.grad_len());
        assert!(place.end(self.input) <= output.len());
        let kept_place = self.input_place();
        if let Some((_, kept)) = chain {
            assert!(kept_place.end(self.input) <= kept.len());
        }
        let from = self.grad_buffer.place();
        // Row by row over all classes, which write to the same rows and read the same ones.
        for line in 0..self.input[1].div_ceil(self.stride) {
            for class in &self.classes {
                if line >= class.count[0] {
                    continue;
                }
                let within = |place: Place| Place {
                    start: place.start
                        + (class.first[0] + line * self.stride) * place.row
                        + class.first[1] * place.column,
                    channel: place.channel,
                    row: 0,
                    column: self.stride * place.column,
                };
                dispatch_on(
                    isa,
                    Sweep {
                        weights,
                        tile_weights: PACK * self.output[0] * self.taps.len(),
                        bias: None,
                        input: grad,
                        from: Place {
                            start: line * from.row,
                            ..from
                        },
                        channels: self.output[0],
                        channels_at_once: channels_at_once(class.taps.len() + class.lines),
                        taps: &class.taps,
                        output: &mut *output,
                        place: within(place),
                        kept: within(kept_place),
                        shape: [self.input[0], 1, class.count[1]],
                        finish: match chain {
                            Some((activation, kept)) => Finish::Chain(activation, kept),
                            None => Finish::Keep,
                        },
                    },
                );
            }
        }
    }

    /// Adds a group's part to the gradients of weights and bias.
    pub fn backward_weights(
        &self,
        input: &[f32],
        grad: &[f32],
        grad_weights: &mut [f32],
        grad_bias: &mut [f32],
    ) {
        self.backward_weights_on(isa(), input, grad, grad_weights, grad_bias);
    }

    fn backward_weights_on(
        &self,
        isa: Isa,
        input: &[f32],
        grad: &[f32],
        grad_weights: &mut [f32],
        grad_bias: &mut [f32],
    ) {
        assert!(input.len() >= self.input_len());
        assert!(grad.len() >= self.grad_len());
        assert_eq!(grad_weights.len(), self.weights_len());
        assert_eq!(grad_bias.len(), self.output[0]);
        // The border is zero, so whole planes may be summed.
        let grad = &grad[..self.grad_len()];
        let rows = self.grad_buffer.place().channel;
        dispatch_on(
            isa,
            RowSums {
                grad,
                rows,
                grad_bias,
            },
        );
        dispatch_on(
            isa,
            WindowGradient {
                convolution: self,
                input,
                grad,
                grad_weights,
            },
        );
    }
}

/// The channels to take at once if every one covers so many pixels under the windows of a tile: 16 kB, a third of the
/// first-level cache, or half of a small one.
fn channels_at_once(pixels: usize) -> usize {
    (16 * 1024 / (pixels.max(1) * GROUP * size_of::<f32>())).max(1)
}

#[cfg(test)]
mod tests;
