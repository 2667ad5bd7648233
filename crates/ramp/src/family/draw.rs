//! Draws from beliefs.

use super::{AnyFamily, Belief, Family, with_family};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, StandardNormal};

impl Belief {
    /// A draw from the belief with these natural parameters: a number for every coordinate of [`Belief::describe`]; of a
    /// categorical, a one for the level and zeros for the others. `None` for a family of one's own, which has no generator.
    ///
    /// ```
    /// use ramp::{family::Belief, rand_chacha::ChaCha8Rng};
    /// use rand::SeedableRng;
    ///
    /// let belief: Belief = "gaussian".parse()?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// // A mean of 3 with a precision of 10,000.
    /// let draw = belief.draw(&[30_000.0, 10_000.0], &mut rng).unwrap();
    /// assert!((draw[0] - 3.0).abs() < 0.1);
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn draw(&self, eta: &[f64], rng: &mut ChaCha8Rng) -> Option<Vec<f64>> {
        let (mut all, mut at) = (vec![], 0);
        for part in self.parts() {
            let dim = with_family!(part, f => f.dim());
            let eta = &eta[at..][..dim];
            at += dim;
            match part {
                AnyFamily::Gaussian(family) => all.extend(gaussian(family.dim, eta, rng)),
                AnyFamily::Diagonal(family) => {
                    let (h, precisions) = eta.split_at(family.dim);
                    all.extend(h.iter().zip(precisions).map(|(h, p)| {
                        let noise: f64 = StandardNormal.sample(rng);
                        h / p + noise / p.sqrt()
                    }));
                }
                AnyFamily::Beta(_) => all.extend(eta.chunks_exact(2).map(|pair| {
                    let [a, b] = [gamma(pair[0], rng), gamma(pair[1], rng)];
                    share(a, a + b)
                })),
                AnyFamily::Gamma(_) => {
                    all.extend(
                        eta.chunks_exact(2)
                            .map(|pair| gamma(pair[0], rng) / pair[1]),
                    );
                }
                AnyFamily::Categorical(_) => {
                    let chances = with_family!(part, f => f.describe(eta)).mean;
                    let mut left: f64 = rng.random();
                    let level = chances.iter().position(|p| {
                        left -= p;
                        left < 0.0
                    });
                    let level = level.unwrap_or(chances.len() - 1);
                    all.extend((0..chances.len()).map(|l| f64::from(u8::from(l == level))));
                }
                AnyFamily::Dirichlet(_) => {
                    let parts: Vec<f64> = eta.iter().map(|&a| gamma(a, rng)).collect();
                    let total: f64 = parts.iter().sum();
                    all.extend(parts.iter().map(|part| share(*part, total)));
                }
                AnyFamily::VonMises(_) => {
                    all.extend(eta.chunks_exact(2).map(|pair| angle(pair, rng)));
                }
                AnyFamily::Own(_) => return None,
            }
        }
        Some(all)
    }
}

/// A Gamma of rate one. Its shape is positive; below what a generator can do it is next to nothing.
fn gamma(shape: f64, rng: &mut ChaCha8Rng) -> f64 {
    Gamma::new(shape, 1.0).map_or(0.0, |gamma| gamma.sample(rng))
}

/// A part of a whole; tiny shapes may leave nothing to share.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.5 }
}

/// `P⁻¹h + L⁻ᵀ·noise` with the Cholesky factor `L` of the precision.
fn gaussian(d: usize, eta: &[f64], rng: &mut ChaCha8Rng) -> Vec<f64> {
    let at = |i: usize, j: usize| i * (i + 1) / 2 + j;
    let (h, precision) = eta.split_at(d);
    let mut l = precision.to_vec();
    for i in 0..d {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| l[at(i, k)] * l[at(j, k)]).sum();
            let rest = precision[at(i, j)] - known;
            l[at(i, j)] = match i == j {
                true => rest.max(1e-30).sqrt(),
                false => rest / l[at(j, j)],
            };
        }
    }
    // L y = h forwards, then Lᵀ x = y + noise backwards.
    let mut x = vec![0.0; d];
    for i in 0..d {
        let known: f64 = (0..i).map(|k| l[at(i, k)] * x[k]).sum();
        x[i] = (h[i] - known) / l[at(i, i)];
    }
    for i in (0..d).rev() {
        let noise: f64 = StandardNormal.sample(rng);
        x[i] += noise;
    }
    for i in (0..d).rev() {
        let known: f64 = (i + 1..d).map(|k| l[at(k, i)] * x[k]).sum();
        x[i] = (x[i] - known) / l[at(i, i)];
    }
    x
}

/// Best and Fisher's rejection from a wrapped Cauchy.
fn angle(pair: &[f64], rng: &mut ChaCha8Rng) -> f64 {
    use std::f64::consts::PI;
    let kappa = pair[0].hypot(pair[1]);
    let centre = pair[1].atan2(pair[0]);
    let mut uniform = || -> f64 { rng.random() };
    if kappa < 1e-6 {
        return PI * (2.0 * uniform() - 1.0);
    }
    let turn = if kappa > 1e6 {
        // So narrow that the circle is a line; the sum of twelve would do, Box and Muller's is exact.
        let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
        radius * (2.0 * PI * uniform()).cos() / kappa.sqrt()
    } else {
        let tau = 1.0 + (1.0 + 4.0 * kappa * kappa).sqrt();
        let rho = (tau - (2.0 * tau).sqrt()) / (2.0 * kappa);
        let r = (1.0 + rho * rho) / (2.0 * rho);
        let cosine = loop {
            let z = (PI * uniform()).cos();
            let f = (1.0 + r * z) / (r + z);
            let c = kappa * (r - f);
            let u = 1.0 - uniform();
            if c * (2.0 - c) > u || (c / u).ln() + 1.0 >= c {
                break f;
            }
        };
        let side = if uniform() < 0.5 { -1.0 } else { 1.0 };
        side * cosine.clamp(-1.0, 1.0).acos()
    };
    let whole = centre + turn;
    whole - 2.0 * PI * ((whole + PI) / (2.0 * PI)).floor()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// Means and standard deviations of draws are those that the belief says; on a circle, its direction and `√(−2 ln R)`.
    #[test]
    fn draws_have_the_moments_of_their_belief() {
        let cases: [(&str, &[f64]); 9] = [
            (
                "gaussian(3)",
                &[1.0, -2.0, 0.5, 2.0, 0.6, 3.0, -0.4, 0.2, 1.5],
            ),
            ("diagonal_gaussian(2)", &[1.0, -2.0, 0.5, 4.0]),
            ("beta(2)", &[2.0, 3.0, 0.5, 0.7]),
            ("gamma(2)", &[2.5, 0.5, 0.8, 3.0]),
            ("categorical(3)", &[0.5, -1.0, 1.2]),
            ("dirichlet(3)", &[0.5, 2.0, 4.0]),
            ("von_mises(2)", &[1.0, 1.5, -3e4, 4e4]),
            ("von_mises", &[2e6, 1e6]),
            ("von_mises x gaussian", &[0.4, -0.3, 2.0, 4.0]),
        ];
        const COUNT: usize = 40_000;
        for (family, eta) in cases {
            let belief: Belief = family.parse().unwrap();
            let said = belief.describe(eta);
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            let draws: Vec<Vec<f64>> = (0..COUNT)
                .map(|_| belief.draw(eta, &mut rng).unwrap())
                .collect();
            let circular: Vec<bool> = belief
                .parts()
                .iter()
                .flat_map(|part| {
                    let circle = matches!(part, AnyFamily::VonMises(_));
                    vec![circle; part.size().value]
                })
                .collect();
            assert_eq!(draws[0].len(), said.mean.len());
            for c in 0..said.mean.len() {
                let values = || draws.iter().map(|d| d[c]);
                let mean_of = |f: &dyn Fn(f64) -> f64| values().map(f).sum::<f64>() / COUNT as f64;
                let (mean, sd) = if circular[c] {
                    let (x, y) = (mean_of(&f64::cos), mean_of(&f64::sin));
                    (y.atan2(x), (-2.0 * x.hypot(y).ln()).max(0.0).sqrt())
                } else {
                    let mean = mean_of(&|x| x);
                    (mean, mean_of(&|x| (x - mean).powi(2)).sqrt())
                };
                let error = said.sd[c] / (COUNT as f64).sqrt();
                assert!(
                    (mean - said.mean[c]).abs() < 6.0 * error,
                    "{family}: mean {mean} for {}",
                    said.mean[c]
                );
                assert!(
                    (sd - said.sd[c]).abs() < 0.04 * said.sd[c],
                    "{family}: sd {sd} for {}",
                    said.sd[c]
                );
            }
        }
    }

    /// Off-diagonal precisions count: the covariance of draws is the inverse of the precision.
    #[test]
    fn draws_of_a_full_gaussian_are_correlated_as_they_should() {
        let belief: Belief = "gaussian(2)".parse().unwrap();
        let eta = [0.0, 0.0, 2.0, -1.2, 1.5];
        let covariance = 1.2 / (2.0 * 1.5 - 1.2 * 1.2);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mean = (0..40_000)
            .map(|_| belief.draw(&eta, &mut rng).unwrap())
            .map(|x| x[0] * x[1])
            .sum::<f64>()
            / 40_000.0;
        assert!((mean - covariance).abs() < 0.03, "{mean} for {covariance}");
    }
}
