//! Dense layers tile by tile: how outputs, inputs and rows are cut into register tiles, whatever their numbers.
//!
//! Callers have checked the lengths of all slices.

use super::Finish;
use crate::kernel::real::{Kernel, Real};
use crate::kernel::tile::{self, DENSE, Lines, Walk};

/// `output[o][r] = Σ_c weights[o·weight_output + c·weight_channel] · input[c][r]` with an optional bias.
pub(in crate::kernel) struct Product<'a> {
    pub weights: &'a [f32],
    pub weight_output: usize,
    pub weight_channel: usize,
    pub bias: Option<&'a [f32]>,
    pub input: &'a [f32],
    pub input_channel: usize,
    pub channels: usize,
    pub output: &'a mut [f32],
    pub rows: usize,
    pub finish: Finish<'a>,
}

impl Kernel<f32> for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(mut self) {
        let outputs = self.output.len().checked_div(self.rows).unwrap_or(0);
        let mut row = 0;
        // Few outputs leave few independent sums per register of rows: take more registers at once.
        if outputs < 4 {
            while row + 4 * R::LANES <= self.rows {
                self.panel::<R, 4>(row, outputs);
                row += 4 * R::LANES;
            }
        }
        while row + 2 * R::LANES <= self.rows {
            self.panel::<R, 2>(row, outputs);
            row += 2 * R::LANES;
        }
        while row < self.rows {
            self.panel::<R, 1>(row, outputs);
            row += R::LANES;
        }
    }
}

impl Product<'_> {
    /// All outputs on `N` registers of rows. Narrow machines have 16 registers, so their tiles are half as tall.
    #[inline(always)]
    fn panel<R: Real<Element = f32>, const N: usize>(&mut self, row: usize, outputs: usize) {
        let mut output = 0;
        if R::LANES >= 16 && N <= 2 {
            while output + 8 <= outputs {
                self.tile::<R, 8, N>(row, output);
                output += 8;
            }
        }
        if N <= 2 {
            while output + 4 <= outputs {
                self.tile::<R, 4, N>(row, output);
                output += 4;
            }
        }
        while output + 2 <= outputs {
            self.tile::<R, 2, N>(row, output);
            output += 2;
        }
        while output < outputs {
            self.tile::<R, 1, N>(row, output);
            output += 1;
        }
    }

    #[inline(always)]
    fn tile<R: Real<Element = f32>, const M: usize, const N: usize>(
        &mut self,
        row: usize,
        output: usize,
    ) {
        let mut sums = [[R::zero(); N]; M];
        if let Some(bias) = self.bias {
            for (sums, &bias) in sums.iter_mut().zip(&bias[output..output + M]) {
                *sums = [R::broadcast(bias); N];
            }
        }
        let weights = Walk {
            start: output * self.weight_output,
            output: self.weight_output,
            channel: self.weight_channel,
            step: 0,
        };
        let inputs = Walk {
            start: row,
            output: 0,
            channel: self.input_channel,
            step: R::LANES,
        };
        let at = Walk {
            start: output * self.rows + row,
            output: self.rows,
            channel: 0,
            step: R::LANES,
        };
        // SAFETY: the callers checked the lengths of all arrays; `panel` and `run` stay below outputs and rows.
        unsafe {
            let sums = tile::product::<R, M, N>(
                (self.weights, weights),
                (self.input, inputs),
                self.channels,
                DENSE,
                sums,
            );
            for (j, sums) in sums.iter().enumerate() {
                for (n, &sum) in sums.iter().enumerate() {
                    tile::store(sum, self.output, at.start + j * at.output + n * at.step);
                }
            }
            self.finish.apply::<R>(self.output, at, at, M, N);
        }
    }
}

/// Adds the bias and finishes a block that `gemm` has left.
pub(in crate::kernel) struct FinishBlock<'a> {
    pub bias: Option<&'a [f32]>,
    pub output: &'a mut [f32],
    pub rows: usize,
    pub finish: Finish<'a>,
}

impl Kernel<f32> for FinishBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(mut self) {
        let outputs = self.output.len().checked_div(self.rows).unwrap_or(0);
        for output in 0..outputs {
            let start = output * self.rows;
            if let Some(bias) = self.bias {
                let bias = R::broadcast(bias[output]);
                for chunk in self.output[start..start + self.rows].chunks_exact_mut(R::LANES) {
                    (R::load(chunk) + bias).store(chunk);
                }
            }
            let at = Walk {
                start,
                step: R::LANES,
                ..Walk::default()
            };
            // SAFETY: one output's rows lie within the block, and `Finish::check` compared its companions' lengths.
            unsafe {
                self.finish
                    .apply::<R>(self.output, at, at, 1, self.rows / R::LANES);
            }
        }
    }
}

/// `grad_weights[o][i] += Σ grad[o][r] · input[i][r]`.
pub(in crate::kernel) struct WeightGradient<'a> {
    pub input: &'a [f32],
    pub stride: usize,
    pub inputs: usize,
    pub grad: &'a [f32],
    pub rows: usize,
    pub grad_weights: &'a mut [f32],
}

impl Kernel<f32> for WeightGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(mut self) {
        let outputs = self.grad.len().checked_div(self.rows).unwrap_or(0);
        let mut output = 0;
        if R::LANES >= 16 {
            while output + 4 <= outputs {
                self.strip::<R, 4>(output);
                output += 4;
            }
        }
        while output + 2 <= outputs {
            self.strip::<R, 2>(output);
            output += 2;
        }
        while output < outputs {
            self.strip::<R, 1>(output);
            output += 1;
        }
    }
}

impl WeightGradient<'_> {
    /// All inputs of `M` outputs.
    #[inline(always)]
    fn strip<R: Real<Element = f32>, const M: usize>(&mut self, output: usize) {
        let mut input = 0;
        while input + 4 <= self.inputs {
            self.tile::<R, M, 4>(output, input);
            input += 4;
        }
        while input + 2 <= self.inputs {
            self.tile::<R, M, 2>(output, input);
            input += 2;
        }
        while input < self.inputs {
            self.tile::<R, M, 1>(output, input);
            input += 1;
        }
    }

    #[inline(always)]
    fn tile<R: Real<Element = f32>, const M: usize, const N: usize>(
        &mut self,
        output: usize,
        input: usize,
    ) {
        let mut grads = [0; M];
        for (j, start) in grads.iter_mut().enumerate() {
            *start = (output + j) * self.rows;
        }
        let mut inputs = [0; N];
        for (n, start) in inputs.iter_mut().enumerate() {
            *start = (input + n) * self.stride;
        }
        let walk = Lines {
            lines: 1,
            steps: self.rows / R::LANES,
            grad_line: 0,
            grad_step: R::LANES,
            input_line: 0,
            input_step: R::LANES,
        };
        // SAFETY: the caller checked the lengths of grad and input; the tile lies below outputs and inputs.
        let sums = unsafe {
            let (grads, inputs) = ((self.grad, grads), (self.input, inputs, 0));
            tile::gradient::<R, M, N, 1>(grads, inputs, walk, [[[R::zero()]; N]; M])
        };
        for (j, sums) in sums.iter().enumerate() {
            let at = (output + j) * self.inputs + input;
            for (weight, [sum]) in self.grad_weights[at..at + N].iter_mut().zip(sums) {
                *weight += sum.sum();
            }
        }
    }
}

/// `grad_bias[o] += Σ grad[o][r]`.
pub(in crate::kernel) struct RowSums<'a> {
    pub grad: &'a [f32],
    pub rows: usize,
    pub grad_bias: &'a mut [f32],
}

impl Kernel<f32> for RowSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        if self.rows == 0 {
            return;
        }
        for (bias, grad) in self
            .grad_bias
            .iter_mut()
            .zip(self.grad.chunks_exact(self.rows))
        {
            // Rows come in multiples of 16, so there is at least one whole register; two sums hide the latency of adding.
            let (mut even, mut odd) = (R::zero(), R::zero());
            let mut pairs = grad.chunks_exact(2 * R::LANES);
            for pair in &mut pairs {
                even = even + R::load(pair);
                odd = odd + R::load(&pair[R::LANES..]);
            }
            for rest in pairs.remainder().chunks_exact(R::LANES) {
                even = even + R::load(rest);
            }
            *bias += (even + odd).sum();
        }
    }
}
