//! Registers of `f32` for every instruction set, chosen at run time.
//!
//! [`Lane`] wraps a register of `pulp`. The few operations where an instruction beats arithmetic (reciprocal square root,
//! scaling by a power of two) are the trait [`Lanes`]; everything else is written once. Polynomials are the classic ones of
//! Cephes and Eigen; the tests below hold them to 1e-6 relative over their whole range.

use super::real::{Element, Kernel, Operation, Real};
use pulp::{NullaryFnOnce, Scalar128b, Simd};
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::OnceLock;

/// The instruction sets with kernels of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// Whatever the compiler makes of plain arrays of 4.
    Portable,
    /// 8 lanes with fused multiply-add.
    Avx2,
    /// 16 lanes.
    Avx512,
}

/// The instruction set in use: the widest of this machine, or a narrower one named by the environment variable `RAMP_ISA`
/// (`portable`, `avx2`, `avx512`), read once. Narrowing is for measurements and for tests of every path.
pub fn isa() -> Isa {
    static ISA: OnceLock<Isa> = OnceLock::new();
    *ISA.get_or_init(|| {
        let best = widest();
        match std::env::var("RAMP_ISA").as_deref() {
            Ok("portable") => Isa::Portable,
            Ok("avx2") => best.min(Isa::Avx2),
            _ => best,
        }
    })
}

#[cfg(target_arch = "x86_64")]
fn widest() -> Isa {
    if pulp::x86::V4::try_new().is_some() {
        Isa::Avx512
    } else if pulp::x86::V3::try_new().is_some() {
        Isa::Avx2
    } else {
        Isa::Portable
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn widest() -> Isa {
    Isa::Portable
}

/// Runs a kernel on the given instruction set, or on the widest below it that this machine has.
pub(crate) fn dispatch_on<K: Kernel<f32>>(isa: Isa, kernel: K) -> K::Output {
    struct On<S, K>(K, std::marker::PhantomData<S>);
    impl<S: Lanes, K: Kernel<f32>> NullaryFnOnce for On<S, K> {
        type Output = K::Output;
        #[inline(always)]
        fn call(self) -> K::Output {
            self.0.run::<Lane<S>>()
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        if isa >= Isa::Avx512
            && let Some(simd) = pulp::x86::V4::try_new()
        {
            return simd.vectorize(On::<pulp::x86::V4, K>(kernel, std::marker::PhantomData));
        }
        if isa >= Isa::Avx2
            && let Some(simd) = pulp::x86::V3::try_new()
        {
            return simd.vectorize(On::<pulp::x86::V3, K>(kernel, std::marker::PhantomData));
        }
    }
    let _ = isa;
    On::<Scalar128b, K>(kernel, std::marker::PhantomData).call()
}

impl Element for f32 {
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    #[inline]
    fn dispatch<K: Kernel<f32>>(kernel: K) -> K::Output {
        dispatch_on(isa(), kernel)
    }
}

/// The instruction sets' proofs of existence, by the names of [`Isa`].
pub(crate) type Portable = Scalar128b;
#[cfg(target_arch = "x86_64")]
pub(crate) type Avx2 = pulp::x86::V3;
#[cfg(target_arch = "x86_64")]
pub(crate) type Avx512 = pulp::x86::V4;

/// What differs between instruction sets beyond plain arithmetic.
pub(crate) trait Lanes: Simd {
    /// See [`Real::enter`].
    fn enter<T, O: Operation<Lane<Self>, T>>(subject: &T, operation: O) -> O::Output;

    /// `1/√x` to about 2e-7.
    fn rsqrt(self, x: Self::f32s) -> Self::f32s;

    /// `a·b + c`, fused where that is one instruction.
    #[inline(always)]
    fn multiply_add(self, a: Self::f32s, b: Self::f32s, c: Self::f32s) -> Self::f32s {
        self.mul_add_e_f32s(a, b, c)
    }

    /// `c − a·b`, fused where that is one instruction.
    #[inline(always)]
    fn multiply_subtract(self, a: Self::f32s, b: Self::f32s, c: Self::f32s) -> Self::f32s {
        self.sub_f32s(c, self.mul_f32s(a, b))
    }

    /// Whether a number of `a` is below that of `b`.
    #[inline(always)]
    fn any_less(self, a: Self::f32s, b: Self::f32s) -> bool {
        let lanes = size_of::<Self::f32s>() / size_of::<f32>();
        self.first_true_m32s(self.less_than_f32s(a, b)) < lanes
    }

    /// The exponent of a weight, kept so far from the smallest numbers that its products stay normal: arithmetic on
    /// subnormal numbers is many times slower, and weights of 2⁻¹⁰⁰ count for nothing.
    #[inline(always)]
    fn bound(self, x: Self::f32s) -> Self::f32s {
        self.max_f32s(x, self.splat_f32s(-100.0))
    }

    /// The nearest whole number, for `|x| < 2²²`.
    #[inline(always)]
    fn round(self, x: Self::f32s) -> Self::f32s {
        let magic = self.splat_f32s(12_582_912.0);
        self.sub_f32s(self.add_f32s(x, magic), magic)
    }

    /// `p · 2^k` for whole `k` and `p` near one; flushes to about zero below 2⁻¹²⁶ and stays finite above.
    #[inline(always)]
    fn scale(self, p: Self::f32s, k: Self::f32s) -> Self::f32s {
        let k = self.min_f32s(
            self.max_f32s(k, self.splat_f32s(-126.0)),
            self.splat_f32s(127.0),
        );
        // Adding 1.5·2²³ leaves k in the low bits of the mantissa.
        let bits = self.transmute_u32s_f32s(self.add_f32s(k, self.splat_f32s(12_582_912.0)));
        let shifted = self.wrapping_dyn_shl_u32s(bits, self.splat_u32s(23));
        self.transmute_f32s_u32s(self.add_u32s(self.transmute_u32s_f32s(p), shifted))
    }
}

/// Functions compiled for one instruction set and one subject. Methods of the subject's type, so that the compiler puts each
/// subject into a unit of its own and translates them side by side.
#[cfg(target_arch = "x86_64")]
trait Entry: Sized {
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt,sse4.2"
    )]
    unsafe fn on_avx512<O: Operation<Lane<pulp::x86::V4>, Self>>(&self, operation: O) -> O::Output {
        operation.apply(self)
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,sse4.2")]
    unsafe fn on_avx2<O: Operation<Lane<pulp::x86::V3>, Self>>(&self, operation: O) -> O::Output {
        operation.apply(self)
    }
}

#[cfg(target_arch = "x86_64")]
impl<T> Entry for T {}

impl Lanes for Scalar128b {
    fn enter<T, O: Operation<Lane<Self>, T>>(subject: &T, operation: O) -> O::Output {
        operation.apply(subject)
    }
    #[inline(always)]
    fn rsqrt(self, x: Self::f32s) -> Self::f32s {
        self.div_f32s(self.splat_f32s(1.0), self.sqrt_f32s(x))
    }
    // Without the instruction, fusing is a call into the mathematics library for every number.
    #[inline(always)]
    fn multiply_add(self, a: Self::f32s, b: Self::f32s, c: Self::f32s) -> Self::f32s {
        self.add_f32s(self.mul_f32s(a, b), c)
    }
}

/// One Newton step for `1/√x` from a first guess `y`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn newton_rsqrt<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s {
    let half = simd.mul_f32s(simd.mul_f32s(x, simd.splat_f32s(-0.5)), y);
    simd.mul_f32s(y, simd.mul_add_e_f32s(half, y, simd.splat_f32s(1.5)))
}

#[cfg(target_arch = "x86_64")]
impl Lanes for pulp::x86::V3 {
    #[inline(always)]
    fn enter<T, O: Operation<Lane<Self>, T>>(subject: &T, operation: O) -> O::Output {
        // SAFETY: lanes of this type exist only where `dispatch_on` found the instructions.
        unsafe { subject.on_avx2(operation) }
    }
    #[inline(always)]
    fn rsqrt(self, x: Self::f32s) -> Self::f32s {
        let guess = pulp::cast(self.avx._mm256_rsqrt_ps(pulp::cast(x)));
        newton_rsqrt(self, x, guess)
    }
    #[inline(always)]
    fn multiply_subtract(self, a: Self::f32s, b: Self::f32s, c: Self::f32s) -> Self::f32s {
        let [a, b, c] = [pulp::cast(a), pulp::cast(b), pulp::cast(c)];
        pulp::cast(self.fma._mm256_fnmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn any_less(self, a: Self::f32s, b: Self::f32s) -> bool {
        let signs = pulp::cast(self.sub_f32s(a, b));
        self.avx._mm256_movemask_ps(signs) != 0
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for pulp::x86::V4 {
    #[inline(always)]
    fn enter<T, O: Operation<Lane<Self>, T>>(subject: &T, operation: O) -> O::Output {
        // SAFETY: lanes of this type exist only where `dispatch_on` found the instructions.
        unsafe { subject.on_avx512(operation) }
    }
    #[inline(always)]
    fn rsqrt(self, x: Self::f32s) -> Self::f32s {
        let guess = pulp::cast(self.avx512f._mm512_rsqrt14_ps(pulp::cast(x)));
        newton_rsqrt(self, x, guess)
    }
    #[inline(always)]
    fn multiply_subtract(self, a: Self::f32s, b: Self::f32s, c: Self::f32s) -> Self::f32s {
        let [a, b, c] = [pulp::cast(a), pulp::cast(b), pulp::cast(c)];
        pulp::cast(self.avx512f._mm512_fnmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn round(self, x: Self::f32s) -> Self::f32s {
        pulp::cast(self.avx512f._mm512_roundscale_ps::<0>(pulp::cast(x)))
    }
    #[inline(always)]
    fn scale(self, p: Self::f32s, k: Self::f32s) -> Self::f32s {
        pulp::cast(self.avx512f._mm512_scalef_ps(pulp::cast(p), pulp::cast(k)))
    }
}

/// A register of `f32` of the instruction set `S`.
///
/// Values exist only inside [`dispatch_on`], which has checked that the machine has `S`: that is what makes
/// [`token`] sound.
#[derive(Clone, Copy)]
pub(crate) struct Lane<S: Simd>(S::f32s);

/// The proof that the machine has `S`.
#[inline(always)]
fn token<S: Lanes>() -> S {
    const { assert!(size_of::<S>() == 0, "instruction-set tokens carry no data") }
    // SAFETY: `S` has no data, and code over `Lane<S>` runs only inside `dispatch_on`, which holds a real token.
    unsafe { std::mem::MaybeUninit::<S>::zeroed().assume_init() }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        impl<S: Lanes> $trait for Lane<S> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Lane(token::<S>().$op(self.0, other.0))
            }
        }
    )*};
}
arithmetic!(Add add add_f32s, Sub sub sub_f32s, Mul mul mul_f32s, Div div div_f32s);

impl<S: Lanes> Neg for Lane<S> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Lane(token::<S>().neg_f32s(self.0))
    }
}

/// A polynomial by Horner's rule, highest coefficient first.
#[inline(always)]
fn horner<R: Real>(x: R, coefficients: &[f64]) -> R {
    let mut sum = R::splat(coefficients[0]);
    for &c in &coefficients[1..] {
        sum = sum.mul_add(x, R::splat(c));
    }
    sum
}

/// `(e^r − 1 − r)/r²` on `|r| ≤ ln 2 / 2`, highest coefficient first (Cephes).
const EXP: [f64; 6] = [
    1.987_569_15e-4,
    1.398_199_95e-3,
    8.333_451_9e-3,
    4.166_579_6e-2,
    1.666_666_5e-1,
    0.5,
];
/// `2^f` on `|f| ≤ ½`, minimax in relative error (9e-8) with `2^0 = 1` exactly: running sums are multiplied by it often.
const EXP2: [f64; 6] = [
    1.326_472_712_368_723_2e-3,
    9.671_512_644_835_173e-3,
    5.550_733_743_496_695e-2,
    2.402_224_208_526_205_5e-1,
    6.931_469_775_989_935e-1,
    1.0,
];
/// `ln(1+x)/x`-like tail of Cephes' `logf` on `√½ ≤ 1+x < √2`.
const LOG: [f64; 9] = [
    7.037_683_629_2e-2,
    -1.151_461_031e-1,
    1.167_699_874e-1,
    -1.242_014_084_6e-1,
    1.424_932_278_7e-1,
    -1.666_805_766_5e-1,
    2.000_071_476_5e-1,
    -2.499_999_399_3e-1,
    3.333_333_117_4e-1,
];

impl<S: Lanes> super::real::sealed::Sealed for Lane<S> {}

impl<S: Lanes> Real for Lane<S> {
    type Element = f32;
    const LANES: usize = size_of::<S::f32s>() / size_of::<f32>();
    const STIRLING_FROM: u32 = 4;
    const STIRLING_TERMS: usize = 5;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Lane(token::<S>().splat_f32s(x as f32))
    }
    #[inline(always)]
    fn broadcast(x: f32) -> Self {
        Lane(token::<S>().splat_f32s(x))
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        assert!(from.len() >= Self::LANES);
        // SAFETY: the slice holds at least a register's worth of `f32`, and any bits are valid.
        Lane(unsafe { from.as_ptr().cast::<S::f32s>().read_unaligned() })
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        assert!(to.len() >= Self::LANES);
        // SAFETY: the slice has room for at least a register's worth of `f32`.
        unsafe { to.as_mut_ptr().cast::<S::f32s>().write_unaligned(self.0) }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        token::<S>().reduce_sum_f32s(self.0)
    }
    #[inline(always)]
    fn any_lt(self, bound: Self) -> bool {
        token::<S>().any_less(self.0, bound.0)
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        Lane(token::<S>().multiply_add(self.0, b.0, c.0))
    }
    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        Lane(token::<S>().multiply_subtract(self.0, b.0, c.0))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Lane(token::<S>().min_f32s(self.0, other.0))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Lane(token::<S>().max_f32s(self.0, other.0))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Lane(token::<S>().abs_f32s(self.0))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Lane(token::<S>().sqrt_f32s(self.0))
    }
    #[inline(always)]
    fn rsqrt(self) -> Self {
        Lane(token::<S>().rsqrt(self.0))
    }
    #[inline(always)]
    fn exp(self) -> Self {
        let simd = token::<S>();
        let x = self.max(Self::splat(-87.3)).min(Self::splat(88.3));
        let k = Lane(simd.round((x * Self::splat(std::f64::consts::LOG2_E)).0));
        // Cody and Waite: ln 2 in two pieces keeps the remainder exact.
        let r = k.mul_add(Self::splat(-0.693_359_375), x);
        let r = k.mul_add(Self::splat(2.121_944_400_546_905_8e-4), r);
        let p = horner(r, &EXP).mul_add(r * r, r) + Self::one();
        Lane(simd.scale(p.0, k.0))
    }
    #[inline(always)]
    fn exp_weight(self) -> Self {
        let simd = token::<S>();
        let x = Self(simd.bound((self * Self::splat(std::f64::consts::LOG2_E)).0));
        let k = Lane(simd.round(x.0));
        Lane(simd.scale(horner(x - k, &EXP2).0, k.0))
    }
    #[inline(always)]
    fn ln(self) -> Self {
        let simd = token::<S>();
        let x = self.max(Self::splat(f64::from(f32::MIN_POSITIVE)));
        let bits = simd.transmute_u32s_f32s(x.0);
        // Move the mantissa's range to [√½, √2) by borrowing from the exponent.
        let offset = simd.sub_u32s(bits, simd.splat_u32s(0x3f35_04f3));
        let exponent = simd.wrapping_dyn_shr_u32s(offset, simd.splat_u32s(23));
        let mantissa = simd.and_u32s(offset, simd.splat_u32s(0x007f_ffff));
        let m =
            Self(simd.transmute_f32s_u32s(simd.add_u32s(mantissa, simd.splat_u32s(0x3f35_04f3))));
        // The exponent is a 9-bit two's complement number; biasing by 256 makes it positive, and 2²³ turns it into a float.
        let biased = simd.and_u32s(
            simd.add_u32s(exponent, simd.splat_u32s(256)),
            simd.splat_u32s(511),
        );
        let float = simd.transmute_f32s_u32s(simd.or_u32s(biased, simd.splat_u32s(0x4b00_0000)));
        let e = Self(float) - Self::splat(8_388_608.0 + 256.0);
        let x = m - Self::one();
        let z = x * x;
        let y = horner(x, &LOG) * x * z;
        let y = e.mul_add(Self::splat(-2.121_944_4e-4), y);
        let y = z.mul_add(Self::splat(-0.5), y);
        e.mul_add(Self::splat(0.693_359_375), x + y)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        // Eigen's rational approximation; exact to 1 within rounding beyond the clamp.
        let x = self
            .max(Self::splat(-7.905_311))
            .min(Self::splat(7.905_311));
        let z = x * x;
        let p = horner(
            z,
            &[
                -2.760_768_474_223_558e-16,
                2.000_187_904_824_775e-13,
                -8.604_671_522_137_35e-11,
                5.122_297_090_371_14e-8,
                1.485_722_357_179_79e-5,
                6.372_619_288_754_36e-4,
                4.893_524_558_917_86e-3,
            ],
        );
        let q = horner(
            z,
            &[
                1.198_258_394_667_02e-6,
                1.185_347_056_866_54e-4,
                2.268_434_632_439e-3,
                4.893_525_185_543_85e-3,
            ],
        );
        x * p / q
    }
    #[inline(always)]
    fn select_lt(self, bound: Self, yes: Self, no: Self) -> Self {
        let simd = token::<S>();
        Lane(simd.select_f32s(simd.less_than_f32s(self.0, bound.0), yes.0, no.0))
    }
    #[inline(always)]
    fn bessel_i0(self) -> (Self, Self, Self) {
        super::special::bessel_i0_rational(self)
    }
    #[inline(always)]
    fn enter<T, O: Operation<Self, T>>(subject: &T, operation: O) -> O::Output {
        S::enter(subject, operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies one function to a list of numbers on one instruction set.
    struct Map<'a, F>(&'a [f32], F);
    trait Function {
        fn call<R: Real>(&self, x: R) -> R;
    }
    impl<F: Function> Kernel<f32> for Map<'_, F> {
        type Output = Vec<f32>;
        fn run<R: Real<Element = f32>>(self) -> Vec<f32> {
            let mut out = vec![0.0; self.0.len()];
            for (x, y) in self
                .0
                .chunks_exact(R::LANES)
                .zip(out.chunks_exact_mut(R::LANES))
            {
                self.1.call(R::load(x)).store(y);
            }
            out
        }
    }

    fn worst_relative(xs: &[f32], f: impl Function + Copy, exact: impl Fn(f64) -> f64) -> f64 {
        [Isa::Portable, Isa::Avx2, Isa::Avx512]
            .into_iter()
            .flat_map(|isa| {
                let ys = dispatch_on(isa, Map(xs, f));
                xs.iter()
                    .zip(ys)
                    .map(|(&x, y)| {
                        let e = exact(f64::from(x));
                        ((f64::from(y) - e) / e.abs().max(1e-30)).abs()
                    })
                    .collect::<Vec<_>>()
            })
            .fold(0.0, f64::max)
    }

    fn span(from: f32, to: f32) -> Vec<f32> {
        (0..160_000)
            .map(|i| from + (to - from) * (i as f32) / 159_999.0)
            .collect()
    }

    macro_rules! function {
        ($name:ident, $method:ident) => {
            #[derive(Clone, Copy)]
            struct $name;
            impl Function for $name {
                fn call<R: Real>(&self, x: R) -> R {
                    x.$method()
                }
            }
        };
    }
    function!(Exp, exp);
    function!(ExpWeight, exp_weight);
    function!(Ln, ln);
    function!(Tanh, tanh);
    function!(Rsqrt, rsqrt);

    #[test]
    fn exp_is_within_1e_6_over_its_range() {
        assert!(worst_relative(&span(-87.0, 88.0), Exp, f64::exp) < 1e-6);
    }

    #[test]
    fn weights_are_within_1e_6_where_they_matter_and_vanish_below() {
        let worst = worst_relative(&span(-8.0, 0.0), ExpWeight, f64::exp);
        assert!(worst < 1e-6, "{worst}");
        let tiny = dispatch_on(isa(), Map(&[-1e30; 16], ExpWeight));
        assert!(tiny.iter().all(|&w| (0.0..1e-30).contains(&w)), "{tiny:?}");
    }

    #[test]
    fn ln_is_within_1e_6_relative_away_from_one_and_absolute_near_it() {
        for (from, to) in [(1e-37, 1e-30), (1e-6, 0.5), (1.5, 1e3), (1e3, 1e30)] {
            let worst = worst_relative(&span(from, to), Ln, f64::ln);
            assert!(worst < 1e-6, "{worst} on {from}..{to}");
        }
        let xs = span(0.5, 2.0);
        let ys = dispatch_on(isa(), Map(&xs, Ln));
        assert!(
            xs.iter()
                .zip(ys)
                .all(|(&x, y)| (f64::from(y) - f64::from(x).ln()).abs() < 1e-7)
        );
    }

    #[test]
    fn tanh_is_within_1e_6_over_its_range() {
        for (from, to) in [(-20.0, -1e-3), (-1e-3, -1e-9), (1e-9, 1e-3), (1e-3, 20.0)] {
            let worst = worst_relative(&span(from, to), Tanh, f64::tanh);
            assert!(worst < 1e-6, "{worst} on {from}..{to}");
        }
    }

    #[test]
    fn rsqrt_is_within_1e_6_over_its_range() {
        for (from, to) in [(1e-30, 1e-3), (1e-3, 1e3), (1e3, 1e30)] {
            let worst = worst_relative(&span(from, to), Rsqrt, |x| 1.0 / x.sqrt());
            assert!(worst < 1e-6, "{worst} on {from}..{to}");
        }
    }
}
