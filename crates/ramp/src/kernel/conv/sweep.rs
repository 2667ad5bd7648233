//! Convolutions tile by tile: how pixels, channels and taps are cut into register tiles, whatever their numbers.
//!
//! Callers have checked that all places fit their slices.

use super::{Convolution, Finish, GROUP, PACK, Place, Tap};
use crate::kernel::real::{Kernel, Real};
use crate::kernel::tile::{self, Lines, Walk};
use std::ops::Range;

/// One register tile after the other over the pixels and channels of an output.
pub(super) struct Sweep<'a> {
    pub weights: &'a [f32],
    /// Packed weights per [`PACK`] outputs.
    pub tile_weights: usize,
    pub bias: Option<&'a [f32]>,
    pub input: &'a [f32],
    pub from: Place,
    pub channels: usize,
    pub channels_at_once: usize,
    pub taps: &'a [Tap],
    pub output: &'a mut [f32],
    pub place: Place,
    pub kept: Place,
    pub shape: [usize; 3],
    pub finish: Finish<'a>,
}

impl Kernel<f32> for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(mut self) {
        let [_, height, width] = self.shape;
        for lane in (0..GROUP).step_by(R::LANES) {
            for y in 0..height {
                let mut x = 0;
                while x + 2 <= width {
                    self.pixels::<R, 2>(lane, y, x);
                    x += 2;
                }
                while x < width {
                    self.pixels::<R, 1>(lane, y, x);
                    x += 1;
                }
            }
        }
    }
}

impl Sweep<'_> {
    /// All outputs of `N` pixels of a row, some channels at a time: as many as leave what their windows cover in the
    /// first-level cache while all outputs' weights stream by.
    #[inline(always)]
    fn pixels<R: Real<Element = f32>, const N: usize>(&mut self, lane: usize, y: usize, x: usize) {
        for first in (0..self.channels).step_by(self.channels_at_once) {
            let end = self.channels.min(first + self.channels_at_once);
            self.channels::<R, N>(lane, y, x, first..end);
        }
    }

    /// Some channels' part of all outputs. Narrow machines have 16 registers, so their tiles are half as tall.
    #[inline(always)]
    fn channels<R: Real<Element = f32>, const N: usize>(
        &mut self,
        lane: usize,
        y: usize,
        x: usize,
        channels: Range<usize>,
    ) {
        let outputs = self.shape[0];
        let mut output = 0;
        if R::LANES >= 16 {
            while output + 8 <= outputs {
                self.tile::<R, 8, N>(output, lane, y, x, channels.clone());
                output += 8;
            }
        }
        while output + 4 <= outputs {
            self.tile::<R, 4, N>(output, lane, y, x, channels.clone());
            output += 4;
        }
        while output < outputs {
            self.tile::<R, 1, N>(output, lane, y, x, channels.clone());
            output += 1;
        }
    }

    #[inline(always)]
    fn tile<R: Real<Element = f32>, const M: usize, const N: usize>(
        &mut self,
        output: usize,
        lane: usize,
        y: usize,
        x: usize,
        channels: Range<usize>,
    ) {
        let walk = |place: Place, output: usize| Walk {
            start: place.start + lane + y * place.row + x * place.column + output * place.channel,
            output: place.channel,
            channel: place.channel,
            step: place.column,
        };
        let weights = Walk {
            start: output / PACK * self.tile_weights + channels.start * PACK + output % PACK,
            output: 1,
            channel: PACK,
            step: 0,
        };
        let at = walk(self.place, output);
        let mut from = walk(self.from, 0);
        from.start += channels.start * from.channel;
        let mut sums = [[R::zero(); N]; M];
        // SAFETY: the callers checked that every place fits its slice; the tile stays within the shape.
        unsafe {
            if channels.start > 0 {
                for (j, sums) in sums.iter_mut().enumerate() {
                    for (n, sum) in sums.iter_mut().enumerate() {
                        *sum = tile::load(self.output, at.start + j * at.output + n * at.step);
                    }
                }
            } else if let Some(bias) = self.bias {
                for (sums, &bias) in sums.iter_mut().zip(&bias[output..output + M]) {
                    *sums = [R::broadcast(bias); N];
                }
            }
            let sums = tile::product::<R, M, N>(
                (self.weights, weights),
                (self.input, from),
                channels.len(),
                self.taps,
                sums,
            );
            for (j, sums) in sums.iter().enumerate() {
                for (n, &sum) in sums.iter().enumerate() {
                    tile::store(sum, self.output, at.start + j * at.output + n * at.step);
                }
            }
            if channels.end == self.channels {
                let kept = walk(self.kept, output);
                self.finish.apply::<R>(self.output, at, kept, M, N);
            }
        }
    }
}

/// `grad_weights[o][c, tap] += Σ grad[o][pixel] · input[c][pixel + tap]`.
pub(super) struct WindowGradient<'a> {
    pub convolution: &'a Convolution,
    pub input: &'a [f32],
    pub grad: &'a [f32],
    pub grad_weights: &'a mut [f32],
}

impl Kernel<f32> for WindowGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(mut self) {
        let window = self.convolution.window;
        let mut column = 0;
        while column + 3 <= window {
            self.columns::<R, 3>(column);
            column += 3;
        }
        while column < window {
            self.columns::<R, 1>(column);
            column += 1;
        }
    }
}

impl WindowGradient<'_> {
    /// The weights of `C` columns of the window. The nine taps of a 3×3 window share most of their loads: one tile takes
    /// them all where there are 32 registers.
    #[inline(always)]
    fn columns<R: Real<Element = f32>, const C: usize>(&mut self, column: usize) {
        let rows = self.convolution.window_rows.len();
        let mut row = 0;
        if R::LANES >= 16 {
            while row + 3 <= rows {
                self.strip::<R, 3, C>(row, column);
                row += 3;
            }
        }
        while row < rows {
            self.strip::<R, 1, C>(row, column);
            row += 1;
        }
    }

    /// The weights of `L` rows and `C` columns of the window, of all outputs.
    #[inline(always)]
    fn strip<R: Real<Element = f32>, const L: usize, const C: usize>(
        &mut self,
        row: usize,
        column: usize,
    ) {
        let outputs = self.convolution.output[0];
        let mut output = 0;
        while output + 3 <= outputs {
            self.tile::<R, 3, L, C>(output, row, column);
            output += 3;
        }
        while output < outputs {
            self.tile::<R, 1, L, C>(output, row, column);
            output += 1;
        }
    }

    #[inline(always)]
    fn tile<R: Real<Element = f32>, const M: usize, const L: usize, const C: usize>(
        &mut self,
        output: usize,
        row: usize,
        column: usize,
    ) {
        let convolution = self.convolution;
        let from = convolution.input_buffer.place();
        let grad = convolution.grad_buffer.place();
        let walk = Lines {
            lines: convolution.output[1],
            steps: convolution.output[2],
            grad_line: grad.row,
            grad_step: grad.column,
            input_line: convolution.stride * from.row,
            input_step: convolution.stride * from.column,
        };
        let mut sums = [[[R::zero(); C]; L]; M];
        for lane in (0..GROUP).step_by(R::LANES) {
            let mut grads = [0; M];
            for (j, start) in grads.iter_mut().enumerate() {
                *start = grad.start + (output + j) * grad.channel + lane;
            }
            let mut inputs = [0; L];
            for (start, &offset) in inputs
                .iter_mut()
                .zip(&convolution.window_rows[row..row + L])
            {
                *start = offset + column * GROUP + lane;
            }
            // SAFETY: the caller checked both buffers' lengths; windows of all outputs lie within the bordered input.
            sums = unsafe {
                tile::gradient::<R, M, L, C>(
                    (self.grad, grads),
                    (self.input, inputs, GROUP),
                    walk,
                    sums,
                )
            };
        }
        for (j, sums) in sums.iter().enumerate() {
            for (l, sums) in sums.iter().enumerate() {
                let at =
                    (output + j) * convolution.fan_in() + (row + l) * convolution.window + column;
                for (weight, sum) in self.grad_weights[at..at + C].iter_mut().zip(sums) {
                    *weight += sum.sum();
                }
            }
        }
    }
}
