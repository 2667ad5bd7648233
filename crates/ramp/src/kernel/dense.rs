//! Dense layers on feature-major blocks: forward, and the gradients at inputs and weights.
//!
//! Two routes compute the same sums. Small layers run register tiles straight from the caller's memory: no packing, no
//! call per layer worth mentioning, the activation in the same pass. Large ones go to `gemm`, whose packing pays off once
//! weights leave the first-level cache. The route depends on the shape alone, so results do not depend on who calls.

use super::block::{Block, ROW_UNIT};
use super::lanes::{Isa, dispatch_on, isa};
use super::tile::Finish;
use tiles::{FinishBlock, Product, WeightGradient};

pub(super) use tiles::RowSums;

mod tiles;
pub(crate) mod wide;

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
    let route = Route::of(weights.len(), SMALL_PRODUCT, input.row_stride());
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
    let route = Route::of(grad_weights.len(), SMALL_GRADIENT, input.row_stride());
    backward_weights_on(route, input, grad, grad_weights, grad_bias);
}

fn forward_on(
    route: Route,
    weights: &[f32],
    bias: &[f32],
    input: Block<'_>,
    output: &mut [f32],
    finish: Finish<'_>,
) {
    let (inputs, outputs, rows) = (input.features(), bias.len(), input.rows());
    assert_eq!(weights.len(), inputs * outputs);
    assert_eq!(output.len(), outputs * rows);
    finish.check(output.len());
    match route {
        Route::Lanes(isa) => {
            assert_eq!(input.row_stride(), 1);
            dispatch_on(
                isa,
                Product {
                    weights,
                    weight_output: inputs,
                    weight_channel: 1,
                    bias: Some(bias),
                    input: input.data(),
                    input_channel: input.feature_stride(),
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
                    (
                        input.data().as_ptr(),
                        input.feature_stride(),
                        input.row_stride(),
                    ),
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
    assert!(
        rows.is_multiple_of(ROW_UNIT),
        "rows come in multiples of {ROW_UNIT}"
    );
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
    let (inputs, outputs, rows) = (input.features(), grad_bias.len(), input.rows());
    assert_eq!(grad.len(), outputs * rows);
    assert_eq!(grad_weights.len(), inputs * outputs);
    let isa = match route {
        Route::Lanes(isa) => {
            assert_eq!(input.row_stride(), 1);
            let (stride, input) = (input.feature_stride(), input.data());
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
                    (
                        input.data().as_ptr(),
                        input.row_stride(),
                        input.feature_stride(),
                    ),
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
pub(super) unsafe fn product_gemm(
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

#[cfg(test)]
mod tests;
