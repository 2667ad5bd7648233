//! Wide layers: many inputs, most of which may be zero, as in pictures on an empty background.
//!
//! Weights lie input by input (`weights[i][o]`), so that an input of zero skips all of its weights. Rows that are mostly
//! zero are read once; the weights of each number that is not zero are added to, or summed into, a row of outputs that
//! stays in registers. Everything else goes to `gemm`.

#[cfg(test)]
mod tests;

use super::{Finish, RowSums, product_gemm};
use crate::kernel::block::Block;
use crate::kernel::dense::tiles::FinishBlock;
use crate::kernel::lanes::{Isa, dispatch_on, isa};
use crate::kernel::real::{Kernel, Real};
use crate::kernel::tile;
use std::cell::RefCell;

/// From this many inputs on, a first layer is wide.
pub(crate) const WIDE: usize = 256;

/// How many inputs of all rows are used before the next: their weights stay in the first-level cache.
const SEGMENT: usize = 64;

/// Rows whose zeros are counted to choose between skipping them and `gemm`.
const LOOKED_AT: usize = 16;

/// How a wide layer is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// Number by number that is not zero.
    Sparse(Isa),
    /// The `gemm` crate.
    Gemm,
}

impl Route {
    /// Skipping pays when fewer than two in five numbers are not zero.
    fn of(input: &Block<'_>) -> Self {
        if input.feature_stride() != 1 || input.features() == 0 {
            return Route::Gemm;
        }
        let every = input.rows().div_ceil(LOOKED_AT).max(1);
        let rows = (0..input.rows()).step_by(every);
        let counted = rows.len() * input.features();
        let filled: usize = rows
            .map(|r| {
                let row = &input.data()[r * input.row_stride()..][..input.features()];
                row.iter().filter(|&&x| x != 0.0).count()
            })
            .sum();
        if 5 * filled < 2 * counted {
            Route::Sparse(isa())
        } else {
            Route::Gemm
        }
    }
}

/// `output[o][r] = Σ weights[i][o] · input[i][r] + bias[o]`, then `finish`; `scratch` is as long as the output.
pub(crate) fn forward(
    weights: &[f32],
    bias: &[f32],
    input: Block<'_>,
    output: &mut [f32],
    finish: Finish<'_>,
    scratch: &mut [f32],
) {
    let route = Route::of(&input);
    forward_on(route, weights, bias, input, output, finish, scratch);
}

/// `grad_input[i][r] = Σ weights[i][o] · grad[o][r]`.
pub(crate) fn backward_input(weights: &[f32], grad: &[f32], rows: usize, grad_input: &mut [f32]) {
    let (inputs, outputs) = (grad_input.len() / rows, grad.len() / rows);
    assert_eq!(weights.len(), inputs * outputs);
    assert_eq!(grad.len(), outputs * rows);
    // SAFETY: the lengths were checked above; grad_input does not overlap the shared slices.
    unsafe {
        product_gemm(
            (inputs, rows, outputs),
            (grad_input.as_mut_ptr(), rows, 1, false),
            (weights.as_ptr(), outputs, 1),
            (grad.as_ptr(), rows, 1),
        );
    }
}

/// `grad_weights[i][o] += Σ grad[o][r] · input[i][r]` and `grad_bias[o] += Σ grad[o][r]`; `scratch` is as long as `grad`.
pub(crate) fn backward_weights(
    input: Block<'_>,
    grad: &[f32],
    grad_weights: &mut [f32],
    grad_bias: &mut [f32],
    scratch: &mut [f32],
) {
    let route = Route::of(&input);
    backward_weights_on(route, input, grad, grad_weights, grad_bias, scratch);
}

fn forward_on(
    route: Route,
    weights: &[f32],
    bias: &[f32],
    input: Block<'_>,
    output: &mut [f32],
    finish: Finish<'_>,
    scratch: &mut [f32],
) {
    let (inputs, outputs, rows) = (input.features(), bias.len(), input.rows());
    assert_eq!(weights.len(), inputs * outputs);
    assert_eq!(output.len(), outputs * rows);
    finish.check(output.len());
    match route {
        Route::Sparse(isa) => {
            assert_eq!(input.feature_stride(), 1);
            let sums = &mut scratch[..outputs * rows];
            sums.fill(0.0);
            dispatch_on(
                isa,
                Sparse {
                    input,
                    outputs,
                    deed: Sums { weights, sums },
                },
            );
            transpose(sums, rows, outputs, output);
        }
        // SAFETY: the lengths were checked above; output does not overlap the shared slices.
        Route::Gemm => unsafe {
            product_gemm(
                (outputs, rows, inputs),
                (output.as_mut_ptr(), rows, 1, false),
                (weights.as_ptr(), 1, outputs),
                (
                    input.data().as_ptr(),
                    input.feature_stride(),
                    input.row_stride(),
                ),
            );
        },
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

fn backward_weights_on(
    route: Route,
    input: Block<'_>,
    grad: &[f32],
    grad_weights: &mut [f32],
    grad_bias: &mut [f32],
    scratch: &mut [f32],
) {
    let (inputs, outputs, rows) = (input.features(), grad_bias.len(), input.rows());
    assert_eq!(grad.len(), outputs * rows);
    assert_eq!(grad_weights.len(), inputs * outputs);
    match route {
        Route::Sparse(isa) => {
            assert_eq!(input.feature_stride(), 1);
            let by_row = &mut scratch[..outputs * rows];
            transpose(grad, outputs, rows, by_row);
            dispatch_on(
                isa,
                Sparse {
                    input,
                    outputs,
                    deed: Gradient {
                        grad: by_row,
                        grad_weights,
                    },
                },
            );
        }
        // SAFETY: the lengths were checked above; grad_weights does not overlap the shared slices.
        Route::Gemm => unsafe {
            product_gemm(
                (inputs, outputs, rows),
                (grad_weights.as_mut_ptr(), outputs, 1, true),
                (
                    input.data().as_ptr(),
                    input.feature_stride(),
                    input.row_stride(),
                ),
                (grad.as_ptr(), 1, rows),
            );
        },
    }
    dispatch_on(
        isa(),
        RowSums {
            grad,
            rows,
            grad_bias,
        },
    );
}

/// `to[j][i] = from[i][j]` for `from` of `rows` by `columns`.
fn transpose(from: &[f32], rows: usize, columns: usize, to: &mut [f32]) {
    // Squares of 16: whole lines of the cache on both sides.
    for top in (0..rows).step_by(16) {
        for left in (0..columns).step_by(16) {
            for i in top..rows.min(top + 16) {
                for j in left..columns.min(left + 16) {
                    to[j * rows + i] = from[i * columns + j];
                }
            }
        }
    }
}

/// The numbers of a piece of a row that are not zero, and their places.
#[derive(Clone, Copy)]
struct Filled<'a> {
    places: &'a [u16],
    values: &'a [f32],
}

impl Filled<'_> {
    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = (usize, f32)> {
        let places = self.places.iter();
        places
            .zip(self.values)
            .map(|(&place, &value)| (usize::from(place), value))
    }
}

/// The filled numbers of all pieces, row by row.
#[derive(Default)]
struct Lists {
    places: Vec<u16>,
    values: Vec<f32>,
    /// Where each piece ends.
    ends: Vec<usize>,
}

impl Lists {
    /// Reads every row once, from its beginning to its end.
    #[inline(always)]
    fn read(&mut self, input: &Block<'_>) {
        let Lists {
            places,
            values,
            ends,
        } = self;
        places.clear();
        values.clear();
        ends.clear();
        for row in 0..input.rows() {
            let row = &input.data()[row * input.row_stride()..][..input.features()];
            for piece in row.chunks(SEGMENT) {
                for (group, numbers) in piece.chunks(16).enumerate() {
                    // The sign of a zero does not count.
                    let any = numbers.iter().fold(0, |any, x| any | (x.to_bits() << 1));
                    if any == 0 {
                        continue;
                    }
                    let count = values.len();
                    places.resize(count + 16, 0);
                    values.resize(count + 16, 0.0);
                    let (new_places, new_values) = (&mut places[count..], &mut values[count..]);
                    let mut filled = 0;
                    for (i, &x) in numbers.iter().enumerate() {
                        new_places[filled & 15] = (16 * group + i) as u16;
                        new_values[filled & 15] = x;
                        filled += usize::from(x != 0.0);
                    }
                    places.truncate(count + filled);
                    values.truncate(count + filled);
                }
                ends.push(values.len());
            }
        }
    }

    #[inline(always)]
    fn piece(&self, index: usize) -> Filled<'_> {
        let start = index.checked_sub(1).map_or(0, |i| self.ends[i]);
        let span = start..self.ends[index];
        Filled {
            places: &self.places[span.clone()],
            values: &self.values[span],
        }
    }
}

thread_local! {
    /// Kept from call to call: its size is known only when it is filled.
    static LISTS: RefCell<Lists> = RefCell::default();
}

/// A piece of a row that is mostly zero: the first of its inputs and how many, and the row.
#[derive(Clone, Copy)]
struct Piece {
    first: usize,
    len: usize,
    row: usize,
}

/// What is done with the filled numbers of a piece, for some of the outputs.
trait Deed {
    /// For `N` registers of outputs from `at` on.
    fn registers<R: Real<Element = f32>, const N: usize>(
        &mut self,
        filled: Filled<'_>,
        piece: Piece,
        outputs: usize,
        at: usize,
    );

    /// For the outputs from `at` on, which do not fill a register.
    fn rest(&mut self, filled: Filled<'_>, piece: Piece, outputs: usize, at: usize);
}

/// Goes through the pieces of all rows, a segment of inputs after the other.
struct Sparse<'a, D> {
    input: Block<'a>,
    outputs: usize,
    deed: D,
}

impl<D: Deed> Kernel<f32> for Sparse<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        let Sparse {
            input,
            outputs,
            mut deed,
        } = self;
        let mut lists = LISTS.take();
        lists.read(&input);
        let segments = input.features().div_ceil(SEGMENT);
        for segment in 0..segments {
            let first = segment * SEGMENT;
            let len = SEGMENT.min(input.features() - first);
            for row in 0..input.rows() {
                let filled = lists.piece(row * segments + segment);
                if filled.values.is_empty() {
                    continue;
                }
                let piece = Piece { first, len, row };
                let mut at = 0;
                while at + 8 * R::LANES <= outputs {
                    deed.registers::<R, 8>(filled, piece, outputs, at);
                    at += 8 * R::LANES;
                }
                while at + 2 * R::LANES <= outputs {
                    deed.registers::<R, 2>(filled, piece, outputs, at);
                    at += 2 * R::LANES;
                }
                while at + R::LANES <= outputs {
                    deed.registers::<R, 1>(filled, piece, outputs, at);
                    at += R::LANES;
                }
                deed.rest(filled, piece, outputs, at);
            }
        }
        LISTS.set(lists);
    }
}

/// `sums[r][o] += Σ weights[i][o] · input[i][r]`.
struct Sums<'a> {
    weights: &'a [f32],
    sums: &'a mut [f32],
}

impl Deed for Sums<'_> {
    #[inline(always)]
    fn registers<R: Real<Element = f32>, const N: usize>(
        &mut self,
        filled: Filled<'_>,
        piece: Piece,
        outputs: usize,
        at: usize,
    ) {
        let weights = &self.weights[piece.first * outputs..][..piece.len * outputs];
        let sums = &mut self.sums[piece.row * outputs..][..outputs];
        let mut held = [R::zero(); N];
        for (n, held) in held.iter_mut().enumerate() {
            *held = R::load(&sums[at + n * R::LANES..]);
        }
        for (i, x) in filled.iter() {
            let x = R::broadcast(x);
            for (n, held) in held.iter_mut().enumerate() {
                // SAFETY: places are below the piece's length, and `at + N·LANES` does not pass `outputs`.
                let weights = unsafe { tile::load::<R>(weights, i * outputs + at + n * R::LANES) };
                *held = x.mul_add(weights, *held);
            }
        }
        for (n, held) in held.iter().enumerate() {
            held.store(&mut sums[at + n * R::LANES..]);
        }
    }

    #[inline(always)]
    fn rest(&mut self, filled: Filled<'_>, piece: Piece, outputs: usize, at: usize) {
        let sums = &mut self.sums[piece.row * outputs..][..outputs];
        for (i, x) in filled.iter() {
            let weights = &self.weights[(piece.first + i) * outputs..][..outputs];
            for o in at..outputs {
                sums[o] += x * weights[o];
            }
        }
    }
}

/// `grad_weights[i][o] += Σ grad[r][o] · input[i][r]`.
struct Gradient<'a> {
    grad: &'a [f32],
    grad_weights: &'a mut [f32],
}

impl Deed for Gradient<'_> {
    #[inline(always)]
    fn registers<R: Real<Element = f32>, const N: usize>(
        &mut self,
        filled: Filled<'_>,
        piece: Piece,
        outputs: usize,
        at: usize,
    ) {
        let grad = &self.grad[piece.row * outputs..][..outputs];
        let weights = &mut self.grad_weights[piece.first * outputs..][..piece.len * outputs];
        let mut held = [R::zero(); N];
        for (n, held) in held.iter_mut().enumerate() {
            *held = R::load(&grad[at + n * R::LANES..]);
        }
        for (i, x) in filled.iter() {
            let x = R::broadcast(x);
            for (n, &held) in held.iter().enumerate() {
                let place = i * outputs + at + n * R::LANES;
                // SAFETY: places are below the piece's length, and `at + N·LANES` does not pass `outputs`.
                unsafe {
                    let sum = x.mul_add(held, tile::load::<R>(weights, place));
                    tile::store(sum, weights, place);
                }
            }
        }
    }

    #[inline(always)]
    fn rest(&mut self, filled: Filled<'_>, piece: Piece, outputs: usize, at: usize) {
        let grad = &self.grad[piece.row * outputs..][..outputs];
        for (i, x) in filled.iter() {
            let weights = &mut self.grad_weights[(piece.first + i) * outputs..][..outputs];
            for o in at..outputs {
                weights[o] += x * grad[o];
            }
        }
    }
}
