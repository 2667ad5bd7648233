//! What the messages into a node add up to, and the node's own part of the free energy.

use super::room;
use crate::kernel::real::{Element, Kernel, Real};
use crate::kernel::scratch::Scratch;
use crate::message::{Messages, Node, Presence};
use std::ops::Range;

/// What a node's messages add up to.
#[derive(Default)]
pub(super) struct NodeSums<E> {
    pub dim: usize,
    /// `s_n`, `dim` planes.
    pub sum: Vec<E>,
    /// `μ(q_n)`, `dim` planes.
    pub posterior_mean: Vec<E>,
    /// `J_n`.
    pub present: Vec<f64>,
    /// The row side of the gradient: `Σ_j Σ_m w_jnm μ(s_n + f_jm)`, `dim` planes of as many numbers as rows.
    pub row_mean: Vec<f64>,
    phi: Vec<E>,
}

impl<E: Element> NodeSums<E> {
    /// Adds up a node's messages. `base` gets `(J_n + 1) Φ(q_n) − Φ(η0)`, zero where no message is present.
    pub fn fill(
        &mut self,
        node: &Node,
        messages: &Messages<E>,
        presence: &Presence,
        with_gradient: bool,
        base: &mut [f64],
    ) {
        let (rows, stride, dim) = (messages.rows(), messages.stride(), node.belief.dim());
        let mean_dim = if with_gradient { dim } else { 0 };
        self.dim = dim;
        let sum = room(&mut self.sum, dim * stride);
        sum.fill(E::default());
        E::dispatch(AddUp {
            messages,
            which: node.messages.clone(),
            sum,
        });
        let present = room(&mut self.present, rows);
        present.fill(0.0);
        for m in node.messages.clone() {
            match presence.rows(m) {
                None => present.iter_mut().for_each(|j| *j += 1.0),
                Some(list) => list.iter().for_each(|&n| present[n as usize] += 1.0),
            }
        }
        room(&mut self.row_mean, mean_dim * rows).fill(0.0);
        E::dispatch(Posterior {
            node,
            sum: &self.sum,
            stride,
            phi: room(&mut self.phi, stride),
            mean: room(&mut self.posterior_mean, mean_dim * stride),
        });
        let prior_phi = node.belief.log_normalizer(&node.prior[..]);
        for ((base, &j), &phi) in base.iter_mut().zip(&self.present).zip(&self.phi) {
            *base = match j > 0.0 {
                true => (j + 1.0) * phi.into() - prior_phi,
                false => 0.0,
            };
        }
    }
}

/// Adds up the planes of several messages.
struct AddUp<'a, E> {
    messages: &'a Messages<E>,
    which: Range<usize>,
    sum: &'a mut [E],
}

impl<E: Element> Kernel<E> for AddUp<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = E>>(self) {
        for m in self.which {
            for (to, from) in self
                .sum
                .chunks_exact_mut(R::LANES)
                .zip(self.messages.message(m).chunks_exact(R::LANES))
            {
                (R::load(to) + R::load(from)).store(to);
            }
        }
    }
}

/// `Φ(q)` and, where there is room for them, the mean parameters.
struct Posterior<'a, E> {
    node: &'a Node,
    sum: &'a [E],
    stride: usize,
    phi: &'a mut [E],
    mean: &'a mut [E],
}

impl<E: Element> Kernel<E> for Posterior<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = E>>(self) {
        let dim = self.node.prior.len();
        let (mut eta, mut mu) = (Scratch::<R>::zeros(dim), Scratch::<R>::zeros(dim));
        for at in (0..self.stride).step_by(R::LANES) {
            for (d, e) in eta.iter_mut().enumerate() {
                *e = R::load(&self.sum[d * self.stride + at..]) + R::splat(self.node.prior[d]);
            }
            if self.mean.is_empty() {
                self.node
                    .belief
                    .log_normalizer(&eta)
                    .store(&mut self.phi[at..]);
            } else {
                self.node
                    .belief
                    .mean(&eta, &mut mu)
                    .store(&mut self.phi[at..]);
                for (d, m) in mu.iter().enumerate() {
                    m.store(&mut self.mean[d * self.stride + at..]);
                }
            }
        }
    }
}
