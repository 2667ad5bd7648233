//! Register tiles: the innermost loops of dense layers and convolutions.
//!
//! A tile holds `M × N` registers of sums. In a product ([`product`]) `M` counts outputs, whose weights are broadcast one
//! by one, and `N` counts registers of rows; a dense layer is the convolution with a single tap. In a weight gradient
//! ([`gradient`]) `M` counts outputs, `N` inputs in `L` lines of `C`, and the sums run over registers of rows.
//! Tiles trust their callers with bounds: an index check per load would cost more than the load.

use super::activation::Activation;
use super::real::Real;

/// One position of a convolution's window: where its weights and its inputs begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    pub weight: usize,
    pub input: usize,
}

/// The single tap of a dense layer.
pub(super) const DENSE: &[Tap] = &[Tap {
    weight: 0,
    input: 0,
}];

/// A strided walk over an array: `start + output·j + step·n`, and `channel` from one channel to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walk {
    pub start: usize,
    pub output: usize,
    pub channel: usize,
    pub step: usize,
}

/// The register at `at`.
///
/// # Safety
/// `at + R::LANES` must not pass the end of `from`.
#[inline(always)]
pub(super) unsafe fn load<R: Real>(from: &[R::Element], at: usize) -> R {
    // SAFETY: the caller's promise.
    R::load(unsafe { from.get_unchecked(at..at + R::LANES) })
}

/// Writes a register at `at`.
///
/// # Safety
/// `at + R::LANES` must not pass the end of `to`.
#[inline(always)]
pub(super) unsafe fn store<R: Real>(value: R, to: &mut [R::Element], at: usize) {
    // SAFETY: the caller's promise.
    value.store(unsafe { to.get_unchecked_mut(at..at + R::LANES) });
}

/// `sums[j][n] + Σ weights[j, c, tap] · inputs[c, tap, n]` over `channels` and `taps`.
///
/// # Safety
/// Every weight `weights.start + tap.weight + j·output + c·channel` and every register
/// `inputs.start + tap.input + c·channel + n·step` must lie within its slice.
#[inline(always)]
pub(super) unsafe fn product<R: Real<Element = f32>, const M: usize, const N: usize>(
    weights: (&[f32], Walk),
    inputs: (&[f32], Walk),
    channels: usize,
    taps: &[Tap],
    mut sums: [[R; N]; M],
) -> [[R; N]; M] {
    let ((w, weights), (x, inputs)) = (weights, inputs);
    for tap in taps {
        let mut w_at = weights.start + tap.weight;
        let mut x_at = inputs.start + tap.input;
        for _ in 0..channels {
            let mut column = [R::zero(); N];
            for (n, register) in column.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *register = unsafe { load(x, x_at + n * inputs.step) };
            }
            for (j, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                let weight = R::broadcast(unsafe { *w.get_unchecked(w_at + j * weights.output) });
                for (sum, &register) in sums.iter_mut().zip(&column) {
                    *sum = weight.mul_add(register, *sum);
                }
            }
            w_at += weights.channel;
            x_at += inputs.channel;
        }
    }
    sums
}

/// How a weight gradient walks over the rows of gradient and input: `lines` times `steps` registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    pub lines: usize,
    pub steps: usize,
    pub grad_line: usize,
    pub grad_step: usize,
    pub input_line: usize,
    pub input_step: usize,
}

/// `sums[j][l][c] + Σ grad[j] · input[l, c]` over lines and steps, lane by lane. Input `[l, c]` begins at
/// `inputs[l] + c · column`: with a constant `column`, a window's taps need a pointer per row, not one each, and all
/// pointers stay in registers.
///
/// # Safety
/// Every register `grads[j] + line·grad_line + step·grad_step` must lie within `grad`, and every register
/// `inputs[l] + c·column + line·input_line + step·input_step` within `input`.
#[inline(always)]
pub(super) unsafe fn gradient<
    R: Real<Element = f32>,
    const M: usize,
    const L: usize,
    const C: usize,
>(
    (grad, grads): (&[f32], [usize; M]),
    (input, inputs, column): (&[f32], [usize; L], usize),
    walk: Lines,
    mut sums: [[[R; C]; L]; M],
) -> [[[R; C]; L]; M] {
    for line in 0..walk.lines {
        let mut g_at = line * walk.grad_line;
        let mut x_at = line * walk.input_line;
        for _ in 0..walk.steps {
            let mut registers = [R::zero(); M];
            for (register, &start) in registers.iter_mut().zip(&grads) {
                // SAFETY: the caller's promise.
                *register = unsafe { load(grad, start + g_at) };
            }
            for (l, &start) in inputs.iter().enumerate() {
                for c in 0..C {
                    // SAFETY: the caller's promise.
                    let x: R = unsafe { load(input, start + x_at + c * column) };
                    for (sums, &g) in sums.iter_mut().zip(&registers) {
                        sums[l][c] = g.mul_add(x, sums[l][c]);
                    }
                }
            }
            g_at += walk.grad_step;
            x_at += walk.input_step;
        }
    }
    sums
}

/// What happens to the sums of a product before they are left in memory.
pub(crate) enum Finish<'a> {
    /// Nothing.
    Keep,
    /// The activation is applied, and its slopes are written (laid out as the output) where they are asked for.
    Activate(Activation, Option<&'a mut [f32]>),
    /// The chain rule through an activation: the sums are multiplied by its slope, found from what was kept of it.
    Chain(Activation, &'a [f32]),
}

impl Finish<'_> {
    /// Applies itself to `outputs × steps` registers of `output` walked by `at`; what was kept is walked by `kept_at`.
    ///
    /// # Safety
    /// All registers walked must lie within their slices.
    #[inline(always)]
    pub(super) unsafe fn apply<R: Real<Element = f32>>(
        &mut self,
        output: &mut [f32],
        at: Walk,
        kept_at: Walk,
        outputs: usize,
        steps: usize,
    ) {
        if let Finish::Keep = self {
            return;
        }
        for j in 0..outputs {
            for n in 0..steps {
                let y_at = at.start + j * at.output + n * at.step;
                // SAFETY: the caller's promise.
                let x: R = unsafe { load(output, y_at) };
                let y = match self {
                    Finish::Keep => x,
                    Finish::Activate(activation, None) => activation.value(x),
                    Finish::Activate(activation, Some(slopes)) => {
                        let (value, slope) = activation.value_and_slope(x);
                        // SAFETY: the caller's promise.
                        unsafe { store(slope, slopes, y_at) };
                        value
                    }
                    Finish::Chain(activation, kept) => {
                        let from = kept_at.start + j * kept_at.output + n * kept_at.step;
                        // SAFETY: the caller's promise.
                        x * activation.slope_from_kept(unsafe { load(kept, from) })
                    }
                };
                // SAFETY: the caller's promise.
                unsafe { store(y, output, y_at) };
            }
        }
    }
}
