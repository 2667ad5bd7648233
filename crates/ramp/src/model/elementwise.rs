//! The element-wise kernels between networks and messages, on feature-major planes.

use crate::family::{Belief, Inputs};
use crate::kernel::real::{Element, Kernel, Real};
use crate::kernel::scratch::Scratch;
use crate::message::Node;

/// Raw outputs to a message.
pub(super) struct Constrain<'a> {
    pub belief: &'a Belief,
    pub raw: &'a [f32],
    pub raw_stride: usize,
    pub message: &'a mut [f32],
    pub stride: usize,
}

impl Kernel<f32> for Constrain<'_> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        let dim = self.belief.dim();
        let (mut raw, mut message) = (Scratch::<R>::zeros(dim), Scratch::<R>::zeros(dim));
        for at in (0..self.stride).step_by(R::LANES) {
            load(&mut raw, self.raw, self.raw_stride, at);
            self.belief.constrain(&raw, &mut message);
            store(&message, self.message, self.stride, at);
        }
    }
}

/// The gradient at a message to the gradient at the raw outputs.
pub(super) struct ConstrainBackward<'a> {
    pub belief: &'a Belief,
    pub raw: &'a [f32],
    pub raw_stride: usize,
    pub grad_message: &'a [f32],
    pub grad_raw: &'a mut [f32],
    pub stride: usize,
}

impl Kernel<f32> for ConstrainBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        let dim = self.belief.dim();
        let mut space = Scratch::<R>::zeros(3 * dim);
        let (raw, rest) = space.split_at_mut(dim);
        let (grad_message, grad_raw) = rest.split_at_mut(dim);
        for at in (0..self.stride).step_by(R::LANES) {
            load(raw, self.raw, self.raw_stride, at);
            load(grad_message, self.grad_message, self.stride, at);
            self.belief.constrain_backward(raw, grad_message, grad_raw);
            store(grad_raw, self.grad_raw, self.raw_stride, at);
        }
    }
}

/// Incoming messages to a network's inputs: a parametrisation of their sum.
pub(super) struct NetworkInputs<'a> {
    pub node: &'a Node,
    pub inputs: Inputs,
    pub incoming: Incoming<'a>,
    pub stride: usize,
    pub features: &'a mut [f32],
    pub features_stride: usize,
}

impl Kernel<f32> for NetworkInputs<'_> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        let dim = self.node.belief.dim();
        let mut space = Scratch::<R>::zeros(3 * dim);
        let (sum, rest) = space.split_at_mut(dim);
        let (prior, belief) = rest.split_at_mut(dim);
        prior
            .iter_mut()
            .zip(&self.node.prior)
            .for_each(|(p, &x)| *p = R::splat(x));
        let mut features = Scratch::<R>::zeros(self.node.belief.input_dim(self.inputs));
        for at in (0..self.stride).step_by(R::LANES) {
            self.incoming.sum_up(sum, self.stride, at);
            self.node
                .belief
                .inputs(self.inputs, prior, sum, belief, &mut features);
            store(&features, self.features, self.features_stride, at);
        }
    }
}

/// The gradient at a network's inputs to the gradient at the sum of messages.
pub(super) struct NetworkInputsBackward<'a> {
    pub node: &'a Node,
    pub inputs: Inputs,
    pub incoming: Incoming<'a>,
    pub stride: usize,
    pub grad_features: &'a [f32],
    pub features_stride: usize,
    pub grad_sum: &'a mut [f32],
}

impl Kernel<f32> for NetworkInputsBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        let dim = self.node.belief.dim();
        let mut space = Scratch::<R>::zeros(4 * dim);
        let (sum, rest) = space.split_at_mut(dim);
        let (prior, rest) = rest.split_at_mut(dim);
        let (belief, grad_sum) = rest.split_at_mut(dim);
        prior
            .iter_mut()
            .zip(&self.node.prior)
            .for_each(|(p, &x)| *p = R::splat(x));
        let mut grad_features = Scratch::<R>::zeros(self.node.belief.input_dim(self.inputs));
        for at in (0..self.stride).step_by(R::LANES) {
            self.incoming.sum_up(sum, self.stride, at);
            load(
                &mut grad_features,
                self.grad_features,
                self.features_stride,
                at,
            );
            self.node.belief.inputs_backward(
                self.inputs,
                prior,
                sum,
                belief,
                &grad_features,
                grad_sum,
            );
            store(grad_sum, self.grad_sum, self.stride, at);
        }
    }
}

/// The planes that a belief's sum of messages is made of.
#[derive(Clone, Copy)]
pub(super) enum Incoming<'a> {
    /// Some of all messages, with the plane that each of them starts at.
    Sum {
        which: &'a [u32],
        starts: &'a [usize],
        messages: &'a [f32],
    },
    /// What all messages into the latent add up to, less one of them.
    TotalBut { total: &'a [f32], own: &'a [f32] },
}

impl Incoming<'_> {
    #[inline(always)]
    fn sum_up<R: Real<Element = f32>>(&self, sum: &mut [R], stride: usize, at: usize) {
        for (d, s) in sum.iter_mut().enumerate() {
            *s = R::zero();
            match *self {
                Incoming::Sum {
                    which,
                    starts,
                    messages,
                } => {
                    for &m in which {
                        let plane = (starts[m as usize] + d) * stride;
                        *s = *s + R::load(&messages[plane + at..]);
                    }
                }
                Incoming::TotalBut { total, own } => {
                    let at = d * stride + at;
                    *s = *s + R::load(&total[at..]) - R::load(&own[at..]);
                }
            }
        }
    }
}

#[inline(always)]
fn load<R: Real>(to: &mut [R], from: &[R::Element], stride: usize, at: usize) {
    for (d, x) in to.iter_mut().enumerate() {
        *x = R::load(&from[d * stride + at..]);
    }
}

#[inline(always)]
fn store<R: Real>(from: &[R], to: &mut [R::Element], stride: usize, at: usize) {
    for (d, x) in from.iter().enumerate() {
        x.store(&mut to[d * stride + at..]);
    }
}

struct Combine<'a> {
    to: &'a mut [f32],
    from: &'a [f32],
    factor: f64,
}

impl Kernel<f32> for Combine<'_> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = f32>>(self) {
        let factor = R::splat(self.factor);
        for (to, from) in self
            .to
            .chunks_exact_mut(R::LANES)
            .zip(self.from.chunks_exact(R::LANES))
        {
            R::load(from).mul_add(factor, R::load(to)).store(to);
        }
    }
}

/// `to += from`, for lengths that are whole registers.
pub(super) fn add(to: &mut [f32], from: &[f32]) {
    f32::dispatch(Combine {
        to,
        from,
        factor: 1.0,
    });
}

/// `to -= from`, for lengths that are whole registers.
pub(super) fn subtract(to: &mut [f32], from: &[f32]) {
    f32::dispatch(Combine {
        to,
        from,
        factor: -1.0,
    });
}

/// Multiplies every plane by a mask of its first rows.
pub(super) fn multiply(planes: &mut [f32], mask: &[f32], stride: usize) {
    for plane in planes.chunks_exact_mut(stride) {
        plane.iter_mut().zip(mask).for_each(|(x, m)| *x *= m);
    }
}
