//! Four numbers side by side: formulas whose steps wait for one another run at the speed of the machine so.
//!
//! A Cholesky factor is one long chain: every pivot waits for the one before it, and a register's arithmetic stands still
//! meanwhile. Written over [`Four`], the same formula takes four pairs at once and has four independent chains.

use super::real::{Operation, Real};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Four registers (or numbers) treated alike.
#[derive(Clone, Copy)]
pub(crate) struct Four<R>(pub [R; 4]);

/// A method of each of four, with one argument or two beside it. Macros, because a function that is handed on is not compiled for the
/// lanes' instruction set.
macro_rules! each {
    ($x:expr, $method:ident) => {{
        let [a, b, c, d] = $x.0;
        Four([a.$method(), b.$method(), c.$method(), d.$method()])
    }};
    ($x:expr, $method:ident, $y:expr) => {{
        let ([a, b, c, d], [p, q, r, s]) = ($x.0, $y.0);
        Four([a.$method(p), b.$method(q), c.$method(r), d.$method(s)])
    }};
    ($x:expr, $method:ident, $y:expr, $z:expr) => {{
        let ([a, b, c, d], [p, q, r, s], [t, u, v, w]) = ($x.0, $y.0, $z.0);
        Four([
            a.$method(p, t),
            b.$method(q, u),
            c.$method(r, v),
            d.$method(s, w),
        ])
    }};
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident),*) => {$(
        impl<R: Real> $trait for Four<R> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                each!(self, $method, other)
            }
        }
    )*};
}
arithmetic!(Add add, Sub sub, Mul mul, Div div);

impl<R: Real> Neg for Four<R> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        each!(self, neg)
    }
}

impl<R: Real> super::real::sealed::Sealed for Four<R> {}

impl<R: Real> Real for Four<R> {
    type Element = R::Element;
    const LANES: usize = 4 * R::LANES;
    const STIRLING_FROM: u32 = R::STIRLING_FROM;
    const STIRLING_TERMS: usize = R::STIRLING_TERMS;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Four([R::splat(x); 4])
    }
    #[inline(always)]
    fn broadcast(x: R::Element) -> Self {
        Four([R::broadcast(x); 4])
    }
    #[inline(always)]
    fn load(from: &[R::Element]) -> Self {
        let n = R::LANES;
        Four([
            R::load(from),
            R::load(&from[n..]),
            R::load(&from[2 * n..]),
            R::load(&from[3 * n..]),
        ])
    }
    #[inline(always)]
    fn store(self, to: &mut [R::Element]) {
        for (i, x) in self.0.into_iter().enumerate() {
            x.store(&mut to[i * R::LANES..]);
        }
    }
    #[inline(always)]
    fn sum(self) -> R::Element {
        let [a, b, c, d] = self.0;
        ((a + b) + (c + d)).sum()
    }
    #[inline(always)]
    fn any_lt(self, bound: Self) -> bool {
        let ([a, b, c, d], [p, q, r, s]) = (self.0, bound.0);
        a.any_lt(p) || b.any_lt(q) || c.any_lt(r) || d.any_lt(s)
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        each!(self, mul_add, b, c)
    }
    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        each!(self, neg_mul_add, b, c)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        each!(self, min, other)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        each!(self, max, other)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        each!(self, abs)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        each!(self, sqrt)
    }
    #[inline(always)]
    fn rsqrt(self) -> Self {
        each!(self, rsqrt)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        each!(self, exp)
    }
    #[inline(always)]
    fn exp_weight(self) -> Self {
        each!(self, exp_weight)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        each!(self, ln)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        each!(self, tanh)
    }
    #[inline(always)]
    fn select_lt(self, bound: Self, yes: Self, no: Self) -> Self {
        let ([a, b, c, d], [p, q, r, s]) = (self.0, bound.0);
        let ([t, u, v, w], [i, j, k, l]) = (yes.0, no.0);
        Four([
            a.select_lt(p, t, i),
            b.select_lt(q, u, j),
            c.select_lt(r, v, k),
            d.select_lt(s, w, l),
        ])
    }
    #[inline(always)]
    fn bessel_i0(self) -> (Self, Self, Self) {
        let [a, b, c, d] = self.0;
        let (a, b, c, d) = (a.bessel_i0(), b.bessel_i0(), c.bessel_i0(), d.bessel_i0());
        (
            Four([a.0, b.0, c.0, d.0]),
            Four([a.1, b.1, c.1, d.1]),
            Four([a.2, b.2, c.2, d.2]),
        )
    }
    /// Without a border: whoever works on four has entered with one.
    #[inline(always)]
    fn enter<T, O: Operation<Self, T>>(subject: &T, operation: O) -> O::Output {
        operation.apply(subject)
    }
}
