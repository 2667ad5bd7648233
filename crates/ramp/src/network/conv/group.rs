//! One group of images at a time: its working space, its activations, and the gradient that enters it from above.

use super::Conv;
use crate::kernel::Finish;
use crate::kernel::conv::{Convolution, GROUP, Place};
use crate::network::Block;

/// Numbers per cache line.
const LINE: usize = 16;

/// Lengths of a convolution's packed weights, in whole cache lines.
fn packed_lens(convolution: &Convolution) -> [usize; 2] {
    convolution
        .packed_lens()
        .map(|len| len.next_multiple_of(LINE))
}

/// The buffers of one convolution and one group.
#[derive(Default)]
pub(super) struct Space<'a> {
    pub input: &'a mut [f32],
    /// The slopes of the activations that are the inputs.
    pub slope: &'a mut [f32],
    pub grad: &'a mut [f32],
    pub bias: &'a [f32],
    /// Weights packed for the forward and the backward pass.
    pub forward: &'a [f32],
    pub backward: &'a [f32],
}

/// The parts of a group's working space, on the stack unless there are very many convolutions.
macro_rules! spaces {
    ($name:ident, $conv:expr) => {
        let parts = $conv.convolutions.len() + 1;
        let mut stack: [Space<'_>; 9] = Default::default();
        let mut heap;
        let $name: &mut [Space<'_>] = if parts <= stack.len() {
            &mut stack[..parts]
        } else {
            heap = Vec::from_iter((0..parts).map(|_| Space::default()));
            &mut heap
        };
    };
}
pub(super) use spaces;

impl Conv {
    /// Working space of one group: for every convolution its packed weights, its inputs, their slopes where the activation keeps them, and
    /// the gradient of its outputs; and the last one's outputs and slopes, which have no next convolution to lie in.
    pub(super) fn group_len(&self) -> usize {
        let copies = if self.activation.keeps_slope() { 2 } else { 1 };
        let layers = self.convolutions.iter();
        let lens: usize = layers
            .map(|c| copies * c.input_len() + c.grad_len() + packed_lens(c).iter().sum::<usize>())
            .sum();
        lens + 2 * self.flat_len(GROUP) + LINE
    }

    /// Cuts it up, a part for every convolution and one for the last one's outputs.
    pub(super) fn cut<'a>(
        &self,
        parameters: &'a [f32],
        scratch: &'a mut [f32],
        spaces: &mut [Space<'a>],
    ) {
        // Every buffer's length is a whole number of cache lines, so all begin on one if the first does.
        let begin = scratch.as_ptr().align_offset(LINE * size_of::<f32>());
        let mut rest = &mut scratch[begin.min(LINE)..];
        let mut take = |len: usize| {
            let (front, back) = std::mem::take(&mut rest).split_at_mut(len);
            rest = back;
            front
        };
        let slopes = self.activation.keeps_slope();
        let mut parameters = parameters;
        for (convolution, space) in self.convolutions.iter().zip(&mut *spaces) {
            let (weights, bias, after) = split(convolution, parameters);
            parameters = after;
            let packed = packed_lens(convolution).map(&mut take);
            let [forward, backward] = packed;
            convolution.pack_forward(weights, forward);
            convolution.pack_backward(weights, backward);
            let input = take(convolution.input_len());
            convolution.clear_input_border(input);
            let grad = take(convolution.grad_len());
            convolution.clear_grad_border(grad);
            *space = Space {
                input,
                slope: take(if slopes { convolution.input_len() } else { 0 }),
                grad,
                bias,
                forward,
                backward,
            };
        }
        spaces[self.convolutions.len()] = Space {
            input: take(self.flat_len(GROUP)),
            slope: take(if slopes { self.flat_len(GROUP) } else { 0 }),
            grad: &mut [],
            bias: &[],
            forward: &[],
            backward: &[],
        };
    }

    /// The activations, and slopes, of a group; those of the last convolution only where their slopes are needed, as
    /// their values are on the tape.
    pub(super) fn recompute(&self, input: Block<'_>, group: usize, spaces: &mut [Space<'_>]) {
        let first = &self.convolutions[0];
        gather(
            input,
            group,
            first.input(),
            spaces[0].input,
            first.input_place(),
        );
        let slopes = self.activation.keeps_slope();
        for (index, convolution) in self.convolutions.iter().enumerate() {
            let place = match self.convolutions.get(index + 1) {
                Some(following) => following.input_place(),
                None if slopes => Place::plain(convolution.output(), GROUP),
                None => return,
            };
            let (before, next) = spaces.split_at_mut(index + 1);
            let Space { input, slope, .. } = &mut next[0];
            let slope = slopes.then_some(&mut **slope);
            let finish = Finish::Activate(self.activation, slope);
            let own = &before[index];
            convolution.forward(own.forward, own.bias, own.input, (input, place), finish);
        }
    }

    /// The gradient at the last convolution's sums from that at the flattened features.
    pub(super) fn flat_gradient(
        &self,
        flat: &[f32],
        grad_flat: &[f32],
        from: Place,
        spaces: &mut [Space<'_>],
    ) {
        let last = self.convolutions.len() - 1;
        let [channels, height, width] = self.last().output();
        let place = self.last().grad_place();
        let (before, after) = spaces.split_at_mut(last + 1);
        let (grad, slopes) = (&mut *before[last].grad, &*after[0].slope);
        for pixel in 0..channels * height * width {
            let (c, y, x) = (
                pixel / (height * width),
                pixel / width % height,
                pixel % width,
            );
            let at = place.start + c * place.channel + y * place.row + x * place.column;
            let source = from.start + pixel * from.column;
            let kept = if slopes.is_empty() {
                &flat[source..source + GROUP]
            } else {
                &slopes[pixel * GROUP..(pixel + 1) * GROUP]
            };
            let grads = &grad_flat[source..source + GROUP];
            for ((to, &grad), &kept) in grad[at..at + GROUP].iter_mut().zip(grads).zip(kept) {
                // One number per pixel and image, next to thousands of products: `f64` lanes will do.
                *to = (f64::from(grad) * self.activation.slope_from_kept(f64::from(kept))) as f32;
            }
        }
    }
}

/// Copies 16 rows of the input, pixel by pixel side by side.
pub(super) fn gather(
    input: Block<'_>,
    group: usize,
    [channels, height, width]: [usize; 3],
    to: &mut [f32],
    place: Place,
) {
    for c in 0..channels {
        for y in 0..height {
            let feature = (c * height + y) * width;
            let row = &mut to[place.start + c * place.channel + y * place.row..][..width * GROUP];
            // Short stretches of one image at a time: both sides stay in the first-level cache.
            for (stretch, pixels) in row.chunks_mut(16 * GROUP).enumerate() {
                for image in 0..GROUP {
                    let from = (feature + 16 * stretch) * input.feature_stride()
                        + (group * GROUP + image) * input.row_stride();
                    let from = input.data()[from..].iter().step_by(input.feature_stride());
                    for (pixel, &value) in pixels.chunks_exact_mut(GROUP).zip(from) {
                        pixel[image] = value;
                    }
                }
            }
        }
    }
}

/// One convolution's weights and bias at the front of a slice, and the rest of it.
fn split<'a>(c: &Convolution, parameters: &'a [f32]) -> (&'a [f32], &'a [f32], &'a [f32]) {
    let (weights, rest) = parameters.split_at(c.weights_len());
    let (bias, rest) = rest.split_at(c.output()[0]);
    (weights, bias, rest)
}
