//! Dense layers on feature-major blocks: forward, and the gradients at inputs and weights.
//!
//! Two routes compute the same sums. Small layers run register tiles straight from the caller's memory: no packing, no
//! call per layer worth mentioning, the activation in the same pass. Large ones go to `gemm`, whose packing pays off once
//! weights leave the first-level cache. The route depends on the shape alone, so results do not depend on who calls.

use super::lanes::{Isa, dispatch_on, isa};
use super::real::{Kernel, Real};
use super::tile::{self, DENSE, Finish, Lines, Walk};
use crate::network::{Block, ROW_UNIT};

/// How a layer is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Register tiles on an instruction set.
    Lanes(Isa),
    /// The `gemm` crate.
    Gemm,
}

/// Products with at most this many weights run on register tiles (measured with `examples/network_speed.rs`: the tiles are
/// ahead below, `gemm` above).
const SMALL_PRODUCT: usize = 1 << 14;

/// The same for weight gradients, whose tiles read both operands from memory and end in sums over lanes.
const SMALL_GRADIENT: usize = 1 << 11;

/// Whether a layer runs on register tiles if its input lies feature-major.
pub(crate) fn is_small(inputs: usize, outputs: usize) -> bool {
    inputs * outputs <= SMALL_PRODUCT
}

impl Route {
    /// The faster route for an operand of the given row stride and so many weights.
    fn of(weights: usize, limit: usize, row_stride: usize) -> Self {
        if row_stride == 1 && weights <= limit {
            Route::Lanes(isa())
        } else {
            Route::Gemm
        }
    }
}

/// `output[o][r] = Σ weights[o][i] · input[i][r] + bias[o]`, then `finish`.
pub(crate) fn forward(
    weights: &[f32],
    bias: &[f32],
    input: Block<'_>,
    output: &mut [f32],
    finish: Finish<'_>,
) {
    let route = Route::of(weights.len(), SMALL_PRODUCT, input.row_stride);
    forward_on(route, weights, bias, input, output, finish);
}

/// `grad_input[i][r] = Σ weights[o][i] · grad[o][r]`, then `finish`.
pub(crate) fn backward_input(
    weights: &[f32],
    grad: &[f32],
    rows: usize,
    grad_input: &mut [f32],
    finish: Finish<'_>,
) {
    let route = Route::of(weights.len(), SMALL_PRODUCT, 1);
    backward_input_on(route, weights, grad, rows, grad_input, finish);
}

/// `grad_weights[o][i] += Σ grad[o][r] · input[i][r]` and `grad_bias[o] += Σ grad[o][r]`.
pub(crate) fn backward_weights(
    input: Block<'_>,
    grad: &[f32],
    grad_weights: &mut [f32],
    grad_bias: &mut [f32],
) {
    let route = Route::of(grad_weights.len(), SMALL_GRADIENT, input.row_stride);
    backward_weights_on(route, input, grad, grad_weights, grad_bias);
}

/// Checks once what the unchecked loops below rely on.
fn check_block(input: &Block<'_>) {
    assert!(
        input.rows.is_multiple_of(ROW_UNIT),
        "rows come in multiples of {ROW_UNIT}"
    );
    if input.rows > 0 && input.features > 0 {
        let last =
            (input.features - 1) * input.feature_stride + (input.rows - 1) * input.row_stride;
        assert!(last < input.data.len(), "the block is longer than its data");
    }
}

fn forward_on(
    route: Route,
    weights: &[f32],
    bias: &[f32],
    input: Block<'_>,
    output: &mut [f32],
    finish: Finish<'_>,
) {
    let (inputs, outputs, rows) = (input.features, bias.len(), input.rows);
    check_block(&input);
    assert_eq!(weights.len(), inputs * outputs);
    assert_eq!(output.len(), outputs * rows);
    finish.check(output.len());
    match route {
        Route::Lanes(isa) => {
            assert_eq!(input.row_stride, 1);
            dispatch_on(
                isa,
                Product {
                    weights,
                    weight_output: inputs,
                    weight_channel: 1,
                    bias: Some(bias),
                    input: input.data,
                    input_channel: input.feature_stride,
                    channels: inputs,
                    output,
                    rows,
                    finish,
                },
            );
        }
        Route::Gemm => {
            // SAFETY: the lengths were checked above; output does not overlap the shared slices.
            unsafe {
                product_gemm(
                    (outputs, rows, inputs),
                    (output.as_mut_ptr(), rows, 1, false),
                    (weights.as_ptr(), inputs, 1),
                    (input.data.as_ptr(), input.feature_stride, input.row_stride),
                );
            }
            let bias = Some(bias);
            dispatch_on(
                isa(),
                FinishBlock {
                    bias,
                    output,
                    rows,
                    finish,
                },
            );
        }
    }
}

fn backward_input_on(
    route: Route,
    weights: &[f32],
    grad: &[f32],
    rows: usize,
    grad_input: &mut [f32],
    finish: Finish<'_>,
) {
    let (inputs, outputs) = (grad_input.len() / rows, grad.len() / rows);
    check_block(&Block::feature_major(grad, outputs, rows));
    assert_eq!(weights.len(), inputs * outputs);
    assert_eq!(grad_input.len(), inputs * rows);
    finish.check(grad_input.len());
    match route {
        Route::Lanes(isa) => dispatch_on(
            isa,
            Product {
                weights,
                weight_output: 1,
                weight_channel: inputs,
                bias: None,
                input: grad,
                input_channel: rows,
                channels: outputs,
                output: grad_input,
                rows,
                finish,
            },
        ),
        Route::Gemm => {
            // SAFETY: the lengths were checked above; grad_input does not overlap the shared slices.
            unsafe {
                product_gemm(
                    (inputs, rows, outputs),
                    (grad_input.as_mut_ptr(), rows, 1, false),
                    (weights.as_ptr(), 1, inputs),
                    (grad.as_ptr(), rows, 1),
                );
            }
            let (bias, output) = (None, grad_input);
            dispatch_on(
                isa(),
                FinishBlock {
                    bias,
                    output,
                    rows,
                    finish,
                },
            );
        }
    }
}

fn backward_weights_on(
    route: Route,
    input: Block<'_>,
    grad: &[f32],
    grad_weights: &mut [f32],
    grad_bias: &mut [f32],
) {
    let (inputs, outputs, rows) = (input.features, grad_bias.len(), input.rows);
    check_block(&input);
    assert_eq!(grad.len(), outputs * rows);
    assert_eq!(grad_weights.len(), inputs * outputs);
    let isa = match route {
        Route::Lanes(isa) => {
            assert_eq!(input.row_stride, 1);
            let (stride, input) = (input.feature_stride, input.data);
            dispatch_on(
                isa,
                WeightGradient {
                    input,
                    stride,
                    inputs,
                    grad,
                    rows,
                    grad_weights,
                },
            );
            isa
        }
        Route::Gemm => {
            // SAFETY: the lengths were checked above; grad_weights does not overlap the shared slices.
            unsafe {
                product_gemm(
                    (outputs, inputs, rows),
                    (grad_weights.as_mut_ptr(), inputs, 1, true),
                    (grad.as_ptr(), rows, 1),
                    (input.data.as_ptr(), input.row_stride, input.feature_stride),
                );
            }
            isa()
        }
    };
    dispatch_on(
        isa,
        RowSums {
            grad,
            rows,
            grad_bias,
        },
    );
}

/// One `gemm` call on this thread: `(m, n, k)`, then per matrix its pointer, row stride and column stride; the last of
/// the destination says whether to add to it.
///
/// # Safety
/// All three matrices must lie within live allocations, and the destination must not overlap the others.
unsafe fn product_gemm(
    (m, n, k): (usize, usize, usize),
    (dst, dst_row, dst_column, add): (*mut f32, usize, usize, bool),
    (lhs, lhs_row, lhs_column): (*const f32, usize, usize),
    (rhs, rhs_row, rhs_column): (*const f32, usize, usize),
) {
    // SAFETY: the caller's promise.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst,
            dst_column as isize,
            dst_row as isize,
            add,
            lhs,
            lhs_column as isize,
            lhs_row as isize,
            rhs,
            rhs_column as isize,
            rhs_row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

impl Finish<'_> {
    /// Checks that whatever accompanies the output is as long as the output.
    fn check(&self, len: usize) {
        match self {
            Finish::Keep | Finish::Activate(_, None) => {}
            Finish::Activate(_, Some(slopes)) => assert_eq!(slopes.len(), len),
            Finish::Chain(_, kept) => assert_eq!(kept.len(), len),
        }
    }
}

/// `output[o][r] = Σ_c weights[o·weight_output + c·weight_channel] · input[c][r]` with an optional bias.
struct Product<'a> {
    weights: &'a [f32],
    weight_output: usize,
    weight_channel: usize,
    bias: Option<&'a [f32]>,
    input: &'a [f32],
    input_channel: usize,
    channels: usize,
    output: &'a mut [f32],
    rows: usize,
    finish: Finish<'a>,
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
struct FinishBlock<'a> {
    bias: Option<&'a [f32]>,
    output: &'a mut [f32],
    rows: usize,
    finish: Finish<'a>,
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
struct WeightGradient<'a> {
    input: &'a [f32],
    stride: usize,
    inputs: usize,
    grad: &'a [f32],
    rows: usize,
    grad_weights: &'a mut [f32],
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
pub(super) struct RowSums<'a> {
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

#[cfg(test)]
mod tests;
