//! The columns that rows meet in the pairwise kernel: a mixture's beliefs, laid out for registers.

use super::pairwise::HUGE;
use super::room_for;
use crate::family::Belief;
use crate::kernel::real::{Element, Kernel, Real};
use crate::kernel::scratch::Scratch;

/// The columns of a mixture: the beliefs `f_m` of one factor, plane by plane, padded to whole groups of columns.
#[derive(Default)]
pub(super) struct Columns<E> {
    /// How many there are, with padding; the distance between planes.
    pub stride: usize,
    /// Natural parameters, `dim` planes.
    pub eta: Vec<E>,
    /// `Φ(f_m)`.
    pub phi: Vec<E>,
}

impl<E: Element> Columns<E> {
    /// Lays out the columns `which` of a factor's beliefs (`planes(d)` is plane `d` of the messages `f/f0`), with room for
    /// `most` of them.
    pub fn gather<'a>(
        &mut self,
        belief: &Belief,
        prior: &[f64],
        which: &[u32],
        most: usize,
        planes: impl Fn(usize) -> &'a [E],
    ) {
        let (dim, len) = (belief.dim(), which.len());
        let (stride, most) = (len.next_multiple_of(16), most.next_multiple_of(16));
        self.stride = stride;
        let eta = room_for(&mut self.eta, dim * stride, dim * most);
        for (d, plane) in eta.chunks_exact_mut(stride.max(1)).enumerate() {
            let from = planes(d);
            let prior_d = prior[d];
            for (to, &m) in plane.iter_mut().zip(which) {
                *to = E::from_f64(prior_d + from[m as usize].into());
            }
            plane[len..].fill(E::from_f64(prior_d));
        }
        let phi = room_for(&mut self.phi, stride, most);
        E::dispatch(LogNormalizers {
            belief,
            eta,
            stride,
            phi,
        });
        phi[len..].fill(E::from_f64(HUGE));
    }
}

/// `Φ` of every belief in `dim` planes whose length is a multiple of the lanes.
pub(super) struct LogNormalizers<'a, E> {
    pub belief: &'a Belief,
    pub eta: &'a [E],
    pub stride: usize,
    pub phi: &'a mut [E],
}

impl<E: Element> Kernel<E> for LogNormalizers<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<R: Real<Element = E>>(self) {
        let mut eta = Scratch::<R>::zeros(self.belief.dim());
        for at in (0..self.stride).step_by(R::LANES) {
            for (d, x) in eta.iter_mut().enumerate() {
                *x = R::load(&self.eta[d * self.stride + at..]);
            }
            self.belief.log_normalizer(&eta).store(&mut self.phi[at..]);
        }
    }
}
