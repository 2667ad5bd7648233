//! Every family against quadrature and finite differences, in `f64`; and its lanes against its `f64`.

use super::*;
use crate::kernel::real::{Element, Kernel};
use proptest::prelude::*;

/// The families to test, with names for messages. A new family joins through the registration, at two sizes.
fn beliefs() -> Vec<Belief> {
    let mut all: Vec<Belief> = NAMES
        .iter()
        .flat_map(|name| [2, 3, 7].map(|size| format!("{name}({size})").parse().unwrap()))
        .collect();
    all.push("gaussian(1)".parse().unwrap());
    all.push(
        "von_mises(1) x gaussian(2) x categorical(3)"
            .parse()
            .unwrap(),
    );
    all.push("beta(1) x gamma(1) x dirichlet(3)".parse().unwrap());
    all
}

/// A belief from raw numbers: the prior times a message.
fn valid(belief: &Belief, raw: &[f64]) -> Vec<f64> {
    let mut message = vec![0.0; raw.len()];
    belief.constrain(raw, &mut message);
    belief
        .prior()
        .iter()
        .zip(message)
        .map(|(p, m)| p + m)
        .collect()
}

fn slope(f: impl Fn(&[f64]) -> f64, x: &[f64], i: usize) -> f64 {
    let h = 1e-5 * x[i].abs().max(1.0);
    let mut moved = x.to_vec();
    moved[i] += h;
    let up = f(&moved);
    moved[i] -= 2.0 * h;
    (up - f(&moved)) / (2.0 * h)
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn means_are_slopes_of_the_log_normaliser(numbers in prop::collection::vec(-2.0..2.0f64, 64)) {
        for belief in beliefs() {
            let eta = valid(&belief, &numbers[..belief.dim()]);
            let mut mean = vec![0.0; eta.len()];
            let phi = belief.mean(&eta, &mut mean);
            prop_assert!(close(phi, belief.log_normalizer(&eta), 1e-12), "{belief}");
            for i in 0..eta.len() {
                let s = slope(|e| belief.log_normalizer(e), &eta, i);
                prop_assert!(close(mean[i], s, 1e-6), "{belief}: mean {i} is {} but the slope is {s}", mean[i]);
            }
        }
    }

    #[test]
    fn message_maps_and_views_have_right_gradients(
        numbers in prop::collection::vec(-2.0..2.0f64, 64),
        direction in prop::collection::vec(-1.0..1.0f64, 64),
    ) {
        for belief in beliefs() {
            let (n, seen) = (belief.dim(), belief.input_dim(Inputs::Moments));
            let raw = &numbers[..n];
            let project = |out: &[f64]| out.iter().zip(&direction).map(|(o, d)| o * d).sum::<f64>();
            let mut grad = vec![0.0; n];
            belief.constrain_backward(raw, &direction[..n], &mut grad);
            for i in 0..n {
                let s = slope(|r| { let mut m = vec![0.0; n]; belief.constrain(r, &mut m); project(&m) }, raw, i);
                prop_assert!(close(grad[i], s, 1e-6), "{belief}: message {i}: {} or {s}", grad[i]);
            }
            let eta = valid(&belief, raw);
            let prior = belief.prior();
            let sum: Vec<f64> = eta.iter().zip(&prior).map(|(e, p)| e - p).collect();
            let mut space = vec![0.0; n];
            belief.inputs_backward(Inputs::Moments, &prior, &sum, &mut space, &direction[..seen], &mut grad);
            for i in 0..n {
                let s = slope(
                    |e| {
                        let (mut space, mut out) = (vec![0.0; n], vec![0.0; seen]);
                        belief.inputs(Inputs::Moments, &prior, e, &mut space, &mut out);
                        project(&out)
                    },
                    &sum,
                    i,
                );
                prop_assert!(close(grad[i], s, 1e-5), "{belief}: view {i}: {} or {s}", grad[i]);
            }
        }
    }

    #[test]
    fn lanes_agree_with_f64(numbers in prop::collection::vec(-3.0..3.0f64, 64)) {
        for belief in beliefs() {
            let eta = valid(&belief, &numbers[..belief.dim()]);
            let mut mean = vec![0.0; eta.len()];
            let phi = belief.mean(&eta, &mut mean);
            let (lane_phi, lane_mean) = f32::dispatch(InLanes(&belief, &eta));
            prop_assert!(close(phi, lane_phi, 2e-5), "{belief}: Φ {phi} or {lane_phi}");
            for (a, b) in mean.iter().zip(lane_mean) {
                prop_assert!(close(*a, b, 2e-5), "{belief}: mean {a} or {b}");
            }
        }
    }

    #[test]
    fn divergence_is_zero_at_home_and_positive_elsewhere(numbers in prop::collection::vec(-2.0..2.0f64, 128)) {
        for belief in beliefs() {
            let a = valid(&belief, &numbers[..belief.dim()]);
            let b = valid(&belief, &numbers[64..64 + belief.dim()]);
            prop_assert!(belief.kl(&a, &a).abs() < 1e-9, "{belief}");
            prop_assert!(belief.kl(&a, &b) > -1e-9, "{belief}");
        }
    }
}

struct InLanes<'a>(&'a Belief, &'a [f64]);
impl Kernel<f32> for InLanes<'_> {
    type Output = (f64, Vec<f64>);
    fn run<R: Real<Element = f32>>(self) -> Self::Output {
        let eta: Vec<R> = self.1.iter().map(|&x| R::splat(x)).collect();
        let mut mean = vec![R::zero(); eta.len()];
        let phi = self.0.mean(&eta, &mut mean);
        let first = |r: R| f64::from(r.sum()) / R::LANES as f64;
        (first(phi), mean.into_iter().map(first).collect())
    }
}

/// `∫ exp(η·T(z)) h(z) dz` and its moments of `z` by the midpoint rule on a transformed line: the definition of Φ.
fn by_quadrature(
    statistics: impl Fn(f64) -> Vec<f64>,
    log_measure: impl Fn(f64) -> f64,
    eta: &[f64],
    line: (f64, f64),
) -> (f64, f64, f64, f64) {
    let n = 400_000;
    let (mut mass, mut first, mut second, mut log_density) = (0.0, 0.0, 0.0, 0.0);
    let step = (line.1 - line.0) / f64::from(n);
    let log_weight = |z: f64| {
        statistics(z)
            .iter()
            .zip(eta)
            .map(|(t, e)| t * e)
            .sum::<f64>()
            + log_measure(z)
    };
    for i in 0..n {
        let z = line.0 + step * (f64::from(i) + 0.5);
        let l = log_weight(z);
        let w = l.exp() * step;
        mass += w;
        first += w * z;
        second += w * z * z;
        log_density += w * l;
    }
    let mean = first / mass;
    (
        mass.ln(),
        mean,
        (second / mass - mean * mean).sqrt(),
        mass.ln() - log_density / mass,
    )
}

#[test]
fn one_dimensional_families_meet_quadrature() {
    let half_ln_two_pi = 0.5 * (2.0 * std::f64::consts::PI).ln();
    let check = |belief: &str,
                 eta: &[f64],
                 constant: f64,
                 (phi, mean, sd, entropy): (f64, f64, f64, f64)| {
        let belief: Belief = belief.parse().unwrap();
        let said = belief.describe(eta);
        assert!(
            close(belief.log_normalizer(eta) + constant, phi, 1e-6),
            "{belief} Φ {phi}"
        );
        assert!(
            close(said.mean[0], mean, 1e-5),
            "{belief} mean {} or {mean}",
            said.mean[0]
        );
        assert!(
            close(said.sd[0], sd, 1e-5),
            "{belief} sd {} or {sd}",
            said.sd[0]
        );
        assert!(
            close(said.entropy, entropy, 1e-5),
            "{belief} entropy {} or {entropy}",
            said.entropy
        );
    };
    for eta in [[0.3, 1.0], [-4.0, 3.5], [20.0, 12.0]] {
        let q = by_quadrature(|z| vec![z, -0.5 * z * z], |_| 0.0, &eta, (-30.0, 30.0));
        check("gaussian", &eta, half_ln_two_pi, q);
        check("diagonal_gaussian", &eta, half_ln_two_pi, q);
    }
    // With shapes above one the densities vanish at the ends, where the midpoint rule is exact enough.
    for eta in [[2.0, 3.0], [14.0, 2.5], [60.0, 90.0]] {
        let q = by_quadrature(
            |z| vec![z.ln(), (1.0 - z).ln()],
            |z| -(z * (1.0 - z)).ln(),
            &eta,
            (0.0, 1.0),
        );
        check("beta", &eta, 0.0, q);
        let q = by_quadrature(|z| vec![z.ln(), -z], |z| -z.ln(), &eta, (0.0, 60.0));
        check("gamma", &eta, 0.0, q);
    }
    for eta in [[0.4, 0.0], [3.0, 0.0], [30.0, 0.0]] {
        let pi = std::f64::consts::PI;
        let (phi, mean, _, entropy) =
            by_quadrature(|z| vec![z.cos(), z.sin()], |_| 0.0, &eta, (-pi, pi));
        let resultant = {
            let belief: Belief = "von_mises".parse().unwrap();
            let mut mu = [0.0; 2];
            belief.mean(&eta[..], &mut mu[..]);
            mu[0]
        };
        check(
            "von_mises",
            &eta,
            (2.0 * pi).ln(),
            (phi, mean, (-2.0 * resultant.ln()).sqrt(), entropy),
        );
    }
}

#[test]
fn large_concentrations_do_not_lose_digits() {
    // ln B(a, b) of large arguments is a small difference of huge numbers unless it is arranged with care.
    for eta in [[1e4, 2e4], [2e3, 1e2], [1e6, 1e6]] {
        for name in ["beta", "gamma"] {
            let belief: Belief = name.parse().unwrap();
            let exact = belief.log_normalizer(&eta[..]);
            let (phi, _) = f32::dispatch(InLanes(&belief, &eta));
            assert!(
                (phi - exact).abs() < 4e-6 * exact.abs(),
                "{name} {eta:?}: {phi} or {exact}"
            );
        }
    }
}

#[test]
fn text_round_trips_and_mistakes_are_named() {
    for belief in beliefs() {
        assert_eq!(belief.to_string().parse::<Belief>().unwrap(), belief);
    }
    let say = |text: &str| text.parse::<Belief>().unwrap_err().to_string();
    assert!(
        say("gausian").contains("unknown family `gausian`; known are gaussian, diagonal_gaussian")
    );
    assert!(say("gaussian(two)").contains("`gaussian(two)` should be written like `gaussian(2)`"));
    assert!(say("categorical(1)").contains("categorical needs levels between 2 and 4096, not 1"));
    assert!(say("").contains("at least one family"));
}
