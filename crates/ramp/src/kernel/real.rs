//! The number type that every formula is written over: `f64` for oracles, a register of `f32` for work.

use std::ops::{Add, Div, Mul, Neg, Sub};

pub(super) mod sealed {
    /// Only the lanes of this crate are numbers: code over them relies on there being no others.
    pub trait Sealed {}

    impl Sealed for f64 {}
}

/// A real number, or a register of them treated alike.
///
/// Families, activations and the pairwise kernel are written once over this trait. `f64` is one number at full
/// precision, for oracles; the lane types of this crate hold 8 or 16 `f32` and run at the speed of the machine.
pub trait Real:
    sealed::Sealed
    + Copy
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// What one lane holds in memory.
    type Element: Element;
    /// How many numbers one value holds.
    const LANES: usize;
    /// From where on Stirling's series is used. Low is accurate in few digits, high in many.
    const STIRLING_FROM: u32;
    /// How many of its terms reach full precision there.
    const STIRLING_TERMS: usize;

    /// The same number in every lane.
    fn splat(x: f64) -> Self;
    /// One stored number in every lane.
    fn broadcast(x: Self::Element) -> Self;
    /// The first `LANES` numbers of a slice.
    fn load(from: &[Self::Element]) -> Self;
    /// Writes the lanes to the first `LANES` places of a slice.
    fn store(self, to: &mut [Self::Element]);
    /// The sum over the lanes.
    fn sum(self) -> Self::Element;
    /// Whether a lane is below that of the bound.
    fn any_lt(self, bound: Self) -> bool;

    /// `self * b + c`, fused where the machine can.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `c − self * b`, fused where the machine can.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    /// The smaller of two.
    fn min(self, other: Self) -> Self;
    /// The larger of two.
    fn max(self, other: Self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// One over the square root of a positive number.
    fn rsqrt(self) -> Self;
    /// The exponential.
    fn exp(self) -> Self;
    /// The exponential of a number that is at most about zero, to a relative error of about `1e-7 (1 + |x|)`: for weights.
    fn exp_weight(self) -> Self;
    /// The natural logarithm of a positive number.
    fn ln(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// `yes` where `self < bound`, else `no`.
    fn select_lt(self, bound: Self, yes: Self, no: Self) -> Self;
    /// The Bessel function `I0(x)` for `x ≥ 0` as `(exponent, scale)` with `I0 = scale · exp(exponent)`, and `I1(x) / (x I0(x))`.
    fn bessel_i0(self) -> (Self, Self, Self);

    /// Does something with a subject in a function of its own, compiled for these lanes.
    ///
    /// Formulas must be inlined to reach the lanes' instructions; without such borders every loop would hold the formulas
    /// of every subject that it may meet.
    fn enter<T, O: Operation<Self, T>>(subject: &T, operation: O) -> O::Output;

    /// Zero in every lane.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
    /// One in every lane.
    #[inline(always)]
    fn one() -> Self {
        Self::splat(1.0)
    }
    /// The product with itself.
    #[inline(always)]
    fn square(self) -> Self {
        self * self
    }
}

/// What is stored in memory: `f32` at work, `f64` in oracles.
pub trait Element:
    Copy + Send + Sync + Default + PartialOrd + std::fmt::Debug + Into<f64> + bytemuck::Pod
{
    /// Rounds a number to what is stored.
    fn from_f64(x: f64) -> Self;
    /// Runs a kernel on the widest lanes of this machine.
    fn dispatch<K: Kernel<Self>>(kernel: K) -> K::Output;
}

/// A piece of work that is compiled once per instruction set and chosen at run time.
pub trait Kernel<E: Element> {
    /// What it returns.
    type Output;
    /// The work, on lanes of type `R`.
    fn run<R: Real<Element = E>>(self) -> Self::Output;
}

/// Something done with a subject of type `T`, on lanes of one type.
pub trait Operation<R: Real, T> {
    /// What it returns.
    type Output;
    /// Does it.
    fn apply(self, subject: &T) -> Self::Output;
}

impl Element for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }
    fn dispatch<K: Kernel<f64>>(kernel: K) -> K::Output {
        kernel.run::<f64>()
    }
}

impl Real for f64 {
    type Element = f64;
    const LANES: usize = 1;
    const STIRLING_FROM: u32 = 8;
    const STIRLING_TERMS: usize = 7;

    fn splat(x: f64) -> Self {
        x
    }
    fn broadcast(x: f64) -> Self {
        x
    }
    fn load(from: &[f64]) -> Self {
        from[0]
    }
    fn store(self, to: &mut [f64]) {
        to[0] = self;
    }
    fn sum(self) -> f64 {
        self
    }
    fn any_lt(self, bound: Self) -> bool {
        self < bound
    }
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        c - self * b
    }
    fn min(self, other: Self) -> Self {
        f64::min(self, other)
    }
    fn max(self, other: Self) -> Self {
        f64::max(self, other)
    }
    fn abs(self) -> Self {
        f64::abs(self)
    }
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    fn rsqrt(self) -> Self {
        1.0 / f64::sqrt(self)
    }
    fn exp(self) -> Self {
        f64::exp(self)
    }
    fn exp_weight(self) -> Self {
        f64::exp(self)
    }
    fn ln(self) -> Self {
        f64::ln(self)
    }
    fn tanh(self) -> Self {
        f64::tanh(self)
    }
    fn select_lt(self, bound: Self, yes: Self, no: Self) -> Self {
        if self < bound { yes } else { no }
    }
    fn bessel_i0(self) -> (Self, Self, Self) {
        super::special::bessel_i0_f64(self)
    }
    fn enter<T, O: Operation<Self, T>>(subject: &T, operation: O) -> O::Output {
        operation.apply(subject)
    }
}
