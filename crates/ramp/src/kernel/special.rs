//! Special functions of the bounded families: log-gamma, digamma, Bessel functions of the circle.

use super::real::Real;

/// `lnΓ(x)` split so that sums of it can cancel before they round: with `z = shifted`,
/// `lnΓ(x) = (z − ½) ln z − z + ½ ln 2π + tail`.
pub(crate) struct LogGamma<R> {
    /// `x`, or `x + b` where `x < b`, with the border `b` of Stirling's series.
    pub shifted: R,
    /// `b` where `x < b`, else 0.
    pub shift: R,
    /// Stirling's correction minus the logarithm of the shifted-out factors.
    pub tail: R,
}

/// Coefficients of Stirling's series in `1/z`.
const STIRLING: [f64; 7] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
];

/// `½ ln 2π`.
pub(crate) const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_7;

/// The pieces of `lnΓ(x)` for `x > 0`.
#[inline(always)]
pub(crate) fn log_gamma<R: Real>(x: R) -> LogGamma<R> {
    let border = R::splat(f64::from(R::STIRLING_FROM));
    let shifted = x.select_lt(border, x + border, x);
    let inverse = R::one() / shifted;
    let squared = inverse * inverse;
    let mut series = R::zero();
    for &c in STIRLING[..R::STIRLING_TERMS].iter().rev() {
        series = series.mul_add(squared, R::splat(c));
    }
    // Bounded so that the unused product of a large argument cannot overflow.
    let small = x.min(border);
    let mut product = small;
    for i in 1..R::STIRLING_FROM {
        product = product * (small + R::splat(f64::from(i)));
    }
    LogGamma {
        shifted,
        shift: x.select_lt(border, border, R::zero()),
        tail: series * inverse - x.select_lt(border, product.ln(), R::zero()),
    }
}

/// The digamma function `ψ(x) = d lnΓ(x) / dx` for `x > 0`.
#[inline(always)]
pub(crate) fn digamma<R: Real>(x: R) -> R {
    let border = R::splat(f64::from(R::STIRLING_FROM));
    let z = x.select_lt(border, x + border, x);
    let inverse = R::one() / z;
    let squared = inverse * inverse;
    let mut series = R::zero();
    for (i, &c) in STIRLING[..R::STIRLING_TERMS].iter().enumerate().rev() {
        // d/dz of c z^-(2i+1) is −(2i+1) c z^-(2i+2).
        series = series.mul_add(squared, R::splat(-c * (2 * i + 1) as f64));
    }
    // Σ 1/(x+i) over the shifted-out factors is the slope of their product over the product: one division.
    let small = x.min(border);
    let (mut product, mut slope) = (small, R::one());
    for i in 1..R::STIRLING_FROM {
        let factor = small + R::splat(f64::from(i));
        slope = slope.mul_add(factor, product);
        product = product * factor;
    }
    let shifted_out = slope / product;
    z.ln() - R::splat(0.5) * inverse + series * squared
        - x.select_lt(border, shifted_out, R::zero())
}

/// `I0(x)` as exponent and scale, and `I1(x)/(x I0(x))`: the power series below 30, the asymptotic series above; to 1e-15.
pub(crate) fn bessel_i0_f64(x: f64) -> (f64, f64, f64) {
    if x < 30.0 {
        let quarter = 0.25 * x * x;
        let (mut term0, mut i0) = (1.0, 1.0);
        let (mut term1, mut i1_over_x) = (0.5, 0.5);
        for k in 1..200 {
            let k = f64::from(k);
            term0 *= quarter / (k * k);
            term1 *= quarter / (k * (k + 1.0));
            i0 += term0;
            i1_over_x += term1;
            if term0 < 1e-17 * i0 {
                break;
            }
        }
        (0.0, i0, i1_over_x / i0)
    } else {
        let asymptotic = |four_nu_squared: f64| {
            let (mut term, mut sum) = (1.0, 1.0);
            for k in 1..30 {
                let odd = f64::from(2 * k - 1);
                term *= -(four_nu_squared - odd * odd) / (f64::from(k) * 8.0 * x);
                sum += term;
            }
            sum
        };
        let (i0, i1) = (asymptotic(0.0), asymptotic(4.0));
        (x, i0 / (2.0 * std::f64::consts::PI * x).sqrt(), i1 / i0 / x)
    }
}

/// A polynomial by Horner's rule, lowest coefficient first.
#[inline(always)]
fn horner<R: Real>(t: R, c: &[f64]) -> R {
    let mut sum = R::splat(c[c.len() - 1]);
    for &c in c[..c.len() - 1].iter().rev() {
        sum = sum.mul_add(t, R::splat(c));
    }
    sum
}

/// The same by the polynomials of Abramowitz and Stegun 9.8.1 to 9.8.4, to about 3e-7: no branch, no logarithm.
#[inline(always)]
pub(crate) fn bessel_i0_rational<R: Real>(x: R) -> (R, R, R) {
    let border = R::splat(3.75);
    let low = x.min(border) * R::splat(1.0 / 3.75);
    let t = low * low;
    let i0_low = horner(
        t,
        &[
            1.0,
            3.515_622_9,
            3.089_942_4,
            1.206_749_2,
            0.265_973_2,
            0.036_076_8,
            0.004_581_3,
        ],
    );
    let i1_low = horner(
        t,
        &[
            0.5,
            0.878_905_94,
            0.514_988_69,
            0.150_849_34,
            0.026_587_33,
            0.003_015_32,
            0.000_324_11,
        ],
    );
    let high = x.max(border);
    let t = border / high;
    let i0_high = horner(
        t,
        &[
            0.398_942_28,
            0.013_285_92,
            0.002_253_19,
            -0.001_575_65,
            0.009_162_81,
            -0.020_577_06,
            0.026_355_37,
            -0.016_476_33,
            0.003_923_77,
        ],
    );
    let i1_high = horner(
        t,
        &[
            0.398_942_28,
            -0.039_880_24,
            -0.003_620_18,
            0.001_638_01,
            -0.010_315_55,
            0.022_829_67,
            -0.028_953_12,
            0.017_876_54,
            -0.004_200_59,
        ],
    );
    let exponent = x.select_lt(border, R::zero(), x);
    let scale = x.select_lt(border, i0_low, i0_high * high.rsqrt());
    let ratio = x.select_lt(border, i1_low / i0_low, i1_high / (i0_high * high));
    (exponent, scale, ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ln_gamma(x: f64) -> f64 {
        let g = log_gamma(x);
        (g.shifted - 0.5) * g.shifted.ln() - g.shifted + HALF_LN_TWO_PI + g.tail
    }

    #[test]
    fn log_gamma_meets_factorials_and_halves() {
        let mut ln_factorial = 0.0;
        for n in 1..60 {
            assert!(
                (ln_gamma(f64::from(n)) - ln_factorial).abs() < 1e-13 * ln_factorial.max(1.0),
                "{n}"
            );
            ln_factorial += f64::from(n).ln();
        }
        assert!((ln_gamma(0.5) - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-14);
        // Γ(x)Γ(1−x) = π / sin πx.
        for x in [1e-6, 0.01, 0.3, 0.7, 0.99] {
            let reflected = (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln();
            assert!(
                (ln_gamma(x) + ln_gamma(1.0 - x) - reflected).abs() < 1e-12,
                "{x}"
            );
        }
    }

    #[test]
    fn digamma_is_the_slope_of_log_gamma() {
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-13);
        for x in [1e-3, 0.2, 1.0, 3.3, 7.999, 8.001, 50.0, 1e4] {
            let h = 1e-5 * x;
            let slope = (ln_gamma(x + h) - ln_gamma(x - h)) / (2.0 * h);
            assert!(
                (digamma(x) - slope).abs() < 1e-6 * slope.abs().max(1.0),
                "{x}"
            );
        }
    }

    #[test]
    fn bessel_functions_meet_their_integral() {
        for x in [0.0, 1e-3, 0.5, 3.7, 3.8, 12.0, 29.9, 30.1, 300.0] {
            let n = 4000;
            let (mut i0, mut i1) = (0.0, 0.0);
            for i in 0..n {
                let a = std::f64::consts::PI * (f64::from(i) + 0.5) / f64::from(n);
                let w = (x * (a.cos() - 1.0)).exp() / f64::from(n);
                i0 += w;
                i1 += w * a.cos();
            }
            let (e, s, r) = bessel_i0_f64(x);
            assert!(
                (e + s.ln() - (x + i0.ln())).abs() < 1e-12 * x.max(1.0),
                "{x}"
            );
            if x > 0.0 {
                assert!((r * x - i1 / i0).abs() < 1e-12, "{x}");
            }
            let (e, s, r) = bessel_i0_rational(x);
            assert!((e + s.ln() - (x + i0.ln())).abs() < 5e-7, "{x}");
            assert!((r * x - i1 / i0).abs() < 1e-6, "{x}");
        }
    }
}
