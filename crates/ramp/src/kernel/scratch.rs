//! Working space of kernels, in memory that every thread keeps: they are entered for each message of each block, and a
//! training step asks the allocator for nothing.

use super::real::Real;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A cache line: no lane wants a stricter alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    /// What no kernel of this thread uses at the moment.
    static KEPT: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Some numbers of one lane type, zero at first. The memory goes back to the thread when it is dropped.
///
/// A guard and not a function that takes a closure, because a closure would not be compiled for the lanes' instruction set.
pub(crate) struct Scratch<R> {
    memory: Vec<Line>,
    len: usize,
    lanes: PhantomData<R>,
}

impl<R: Real> Scratch<R> {
    /// So many zeros.
    pub fn zeros(len: usize) -> Self {
        const { assert!(align_of::<R>() <= align_of::<Line>()) };
        Scratch {
            memory: take((len * size_of::<R>()).div_ceil(size_of::<Line>())),
            len,
            lanes: PhantomData,
        }
    }
}

/// Lines of zero bytes.
fn take(lines: usize) -> Vec<Line> {
    let kept = KEPT.try_with(|kept| kept.borrow_mut().pop());
    let mut memory = kept.ok().flatten().unwrap_or_default();
    memory.clear();
    memory.resize(lines, Line([0; 64]));
    memory
}

impl<R> Drop for Scratch<R> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        // A thread that is ending keeps nothing.
        let _ = KEPT.try_with(|kept| kept.borrow_mut().push(memory));
    }
}

impl<R: Real> Deref for Scratch<R> {
    type Target = [R];

    #[inline(always)]
    fn deref(&self) -> &[R] {
        // SAFETY: there are lines for `len` numbers, aligned for every lane type; `Real` is sealed and its types are plain
        // numbers, of which zero bytes are one.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }
}

impl<R: Real> DerefMut for Scratch<R> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [R] {
        // SAFETY: as above, and the memory belongs to this value alone.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::real::{Element, Kernel};

    struct Nested;

    impl Kernel<f32> for Nested {
        type Output = ();

        #[inline(always)]
        fn run<R: Real<Element = f32>>(self) {
            for len in [0, 1, 5, 300] {
                let (mut a, mut b) = (Scratch::<R>::zeros(len), Scratch::<R>::zeros(len + 1));
                for x in a.iter_mut().chain(b.iter_mut()) {
                    assert!(x.sum() == 0.0, "used memory comes back as zeros");
                    *x = R::splat(2.0);
                }
                a.fill(R::one());
                assert_eq!((a.len(), b.len()), (len, len + 1));
                assert!(a.iter().all(|x| x.sum() == R::LANES as f32));
                assert!(b.iter().all(|x| x.sum() == 2.0 * R::LANES as f32));
                assert_eq!(a.as_ptr() as usize % align_of::<R>(), 0);
            }
        }
    }

    #[test]
    fn scratch_is_zero_apart_and_aligned() {
        f32::dispatch(Nested);
        f32::dispatch(Nested);
        let mut numbers = Scratch::<f64>::zeros(3);
        numbers[2] = 1.0;
        assert_eq!(&numbers[..], [0.0, 0.0, 1.0]);
    }
}
