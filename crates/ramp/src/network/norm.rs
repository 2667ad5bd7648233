//! Layer normalisation of a feature-major block, with the activation that follows it.

use super::Activation;
use crate::kernel::real::{Element, Kernel, Real};

/// Keeps the scale finite where all features of a row agree.
const EPSILON: f64 = 1e-5;

/// One normalised layer on a block of rows: what both passes read.
pub(super) struct Norm<'a> {
    pub rows: usize,
    pub gain: &'a [f32],
    pub activation: Activation,
}

impl Norm<'_> {
    /// Normalises `block` in place, leaves the scale `1/σ` of every row, and writes the activation of
    /// `gain · normalised + shift`, and its slopes where the slice is not empty.
    pub fn forward(
        &self,
        shift: &[f32],
        block: &mut [f32],
        scale: &mut [f32],
        value: &mut [f32],
        slope: &mut [f32],
    ) {
        assert_eq!(block.len(), self.gain.len() * self.rows);
        assert_eq!(value.len(), block.len());
        let norm = self;
        f32::dispatch(Forward {
            norm,
            shift,
            block,
            scale,
            value,
            slope,
        });
    }

    /// Turns `grad`, the gradient at the activations, into the gradient at the layer's sums, in place, and adds the
    /// gradients of gain and shift. `kept` is what [`Activation::slope_from_kept`] needs.
    pub fn backward(
        &self,
        kept: &[f32],
        normalized: &[f32],
        scale: &[f32],
        grad: &mut [f32],
        grad_gain: &mut [f32],
        grad_shift: &mut [f32],
    ) {
        assert_eq!(grad.len(), self.gain.len() * self.rows);
        assert_eq!(normalized.len(), grad.len());
        assert_eq!(kept.len(), grad.len());
        let norm = self;
        f32::dispatch(Backward {
            norm,
            kept,
            normalized,
            scale,
            grad,
            grad_gain,
            grad_shift,
        });
    }
}

struct Forward<'a> {
    norm: &'a Norm<'a>,
    shift: &'a [f32],
    block: &'a mut [f32],
    scale: &'a mut [f32],
    value: &'a mut [f32],
    slope: &'a mut [f32],
}

impl Kernel<f32> for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        let Norm {
            rows,
            gain,
            activation,
        } = *self.norm;
        let share = R::splat(1.0 / gain.len() as f64);
        for row in (0..rows).step_by(R::LANES) {
            let mut sum = R::zero();
            for feature in self.block.chunks_exact(rows) {
                sum = sum + R::load(&feature[row..]);
            }
            let mean = sum * share;
            let mut squares = R::zero();
            for feature in self.block.chunks_exact_mut(rows) {
                let centred = R::load(&feature[row..]) - mean;
                centred.store(&mut feature[row..]);
                squares = centred.mul_add(centred, squares);
            }
            let scale = (squares.mul_add(share, R::splat(EPSILON))).rsqrt();
            scale.store(&mut self.scale[row..]);
            for (f, feature) in self.block.chunks_exact_mut(rows).enumerate() {
                let normalized = R::load(&feature[row..]) * scale;
                normalized.store(&mut feature[row..]);
                let sum = normalized.mul_add(R::broadcast(gain[f]), R::broadcast(self.shift[f]));
                let at = f * rows + row;
                if self.slope.is_empty() {
                    activation.value(sum).store(&mut self.value[at..]);
                } else {
                    let (value, slope) = activation.value_and_slope(sum);
                    value.store(&mut self.value[at..]);
                    slope.store(&mut self.slope[at..]);
                }
            }
        }
    }
}

struct Backward<'a> {
    norm: &'a Norm<'a>,
    kept: &'a [f32],
    normalized: &'a [f32],
    scale: &'a [f32],
    grad: &'a mut [f32],
    grad_gain: &'a mut [f32],
    grad_shift: &'a mut [f32],
}

impl Kernel<f32> for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        let Norm {
            rows,
            gain,
            activation,
        } = *self.norm;
        for (f, &gain) in gain.iter().enumerate() {
            let (mut to_gain, mut to_shift) = (R::zero(), R::zero());
            for at in (f * rows..(f + 1) * rows).step_by(R::LANES) {
                let slope = activation.slope_from_kept(R::load(&self.kept[at..]));
                let grad = R::load(&self.grad[at..]) * slope;
                to_gain = grad.mul_add(R::load(&self.normalized[at..]), to_gain);
                to_shift = to_shift + grad;
                (grad * R::broadcast(gain)).store(&mut self.grad[at..]);
            }
            self.grad_gain[f] += to_gain.sum();
            self.grad_shift[f] += to_shift.sum();
        }
        // The normalised features of a row have mean zero and unit variance whatever the sums were: the gradient's parts
        // along both directions vanish.
        let share = R::splat(1.0 / gain.len() as f64);
        for row in (0..rows).step_by(R::LANES) {
            let (mut mean, mut along) = (R::zero(), R::zero());
            for (grad, normalized) in
                (self.grad.chunks_exact(rows)).zip(self.normalized.chunks_exact(rows))
            {
                let grad = R::load(&grad[row..]);
                mean = mean + grad;
                along = grad.mul_add(R::load(&normalized[row..]), along);
            }
            let (mean, along) = (mean * share, along * share);
            let scale = R::load(&self.scale[row..]);
            for (grad, normalized) in
                (self.grad.chunks_exact_mut(rows)).zip(self.normalized.chunks_exact(rows))
            {
                let normalized = R::load(&normalized[row..]);
                let rest = R::load(&grad[row..]) - mean - along * normalized;
                (rest * scale).store(&mut grad[row..]);
            }
        }
    }
}
