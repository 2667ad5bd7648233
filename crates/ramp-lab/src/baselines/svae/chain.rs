//! The exact posterior of a linear-Gaussian chain under Gaussian potentials, and everything of it that is differentiated.
//!
//! The prior is `z₁ ~ N(m, S)`, `z_{t+1} = A z_t + b + N(0, Q)`; the encoder multiplies it by `ψ_t(z_t) = exp(h_tᵀz_t − ½ z_tᵀΛ_tz_t)`.
//! The posterior's precision is block-tridiagonal. Eliminating it forwards gives pivots `D_t` and `g_t`, with which, backwards,
//! `z_t | z_{t+1} ~ N(D_t⁻¹ g_t + K_t z_{t+1}, D_t⁻¹)`, `K_t = D_t⁻¹ AᵀQ⁻¹`: means, covariances and draws alike. The
//! divergence from the prior follows from the normaliser `Z = ∫ p Πψ` as `KL = Σ E[ln ψ_t] − ln Z`.

use super::super::matrix::Matrix;
use super::super::tape::{Tape, Var};
use std::ops::Range;

/// Where the numbers of a chain with latents of some dimension lie. A factor is its diagonal before it is made positive, then what is below, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The dimension of a latent.
    pub dim: usize,
}

impl Layout {
    /// Numbers of a factor.
    fn factor_len(self) -> usize {
        self.dim * (self.dim + 1) / 2
    }

    /// Where `A` (row by row), `b`, the factor of `Q`, `m` and the factor of `S` lie among the numbers of the dynamics.
    pub fn dynamics(self) -> [Range<usize>; 5] {
        let sizes = [
            self.dim * self.dim,
            self.dim,
            self.factor_len(),
            self.dim,
            self.factor_len(),
        ];
        let mut start = 0;
        sizes.map(|size| {
            start += size;
            start - size..start
        })
    }

    /// How many numbers the dynamics have.
    pub fn dynamics_len(self) -> usize {
        self.dynamics()[4].end
    }

    /// How many numbers a potential has: `h`, then the factor of `Λ`.
    pub fn potential_len(self) -> usize {
        self.dim + self.factor_len()
    }

    /// A factor before its diagonal is made positive.
    pub fn factor(self, x: &[f64]) -> Matrix {
        let d = self.dim;
        Matrix::from_fn(d, d, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => x[i],
            std::cmp::Ordering::Greater => x[d + i * (i - 1) / 2 + j],
        })
    }

    /// The numbers of a factor, or the gradient at them.
    fn factor_numbers(self, of: &Matrix) -> Vec<f64> {
        let d = self.dim;
        let below = (0..d).flat_map(|i| (0..i).map(move |j| (i, j)));
        (0..d)
            .map(|i| (i, i))
            .chain(below)
            .map(|place| of[place])
            .collect()
    }
}

/// The posterior of one sequence on a tape.
pub(super) struct Posterior {
    layout: Layout,
    tape: Tape,
    dynamics: [Var; 5],
    potentials: Vec<[Var; 2]>,
    means: Vec<Var>,
    covariances: Vec<Var>,
    draws: Vec<Var>,
    divergence: Var,
}

/// The gradient with respect to what a posterior was made from.
pub(super) struct Slopes {
    pub dynamics: Vec<f64>,
    /// Step by step.
    pub potentials: Vec<Vec<f64>>,
}

impl Posterior {
    /// The posterior under potentials, with a draw that `noise` makes from it.
    pub fn new(
        layout: Layout,
        dynamics: &[f64],
        potentials: &[Vec<f64>],
        noise: &[Vec<f64>],
    ) -> Self {
        let steps = potentials.len();
        let mut tape = Tape::default();
        let t = &mut tape;
        let dim = layout.dim;
        let [of_a, of_b, of_q, of_first, of_s] = layout.dynamics().map(|span| &dynamics[span]);
        let a = t.leaf(Matrix::square(dim, of_a));
        let b = t.leaf(Matrix::point(of_b));
        let raw_q = t.leaf(layout.factor(of_q));
        let first = t.leaf(Matrix::point(of_first));
        let raw_s = t.leaf(layout.factor(of_s));

        let covariance = |t: &mut Tape, raw: Var| {
            let positive = t.positive(raw);
            t.squared(positive)
        };
        let (q, s) = (covariance(t, raw_q), covariance(t, raw_s));
        let (to_q, to_s) = (t.inverse(q), t.inverse(s));
        let a_turned = t.transpose(a);
        // What a transition says of the state before it and after it.
        let coupling = t.mul(a_turned, to_q);
        let before = t.mul(coupling, a);
        let (after_shift, before_shift) = (t.mul(to_q, b), t.mul(coupling, b));
        let start_shift = t.mul(to_s, first);

        // ln Z, the sum of ½ gᵀD⁻¹g − ½ ln|D| and of what the prior's own normaliser leaves.
        let mut log_z = {
            let volume = t.log_det(s);
            let offset = t.dot(first, start_shift);
            let both = t.add(volume, offset);
            t.scale(both, -0.5)
        };
        if steps > 1 {
            let volume = t.log_det(q);
            let offset = t.dot(b, after_shift);
            let both = t.add(volume, offset);
            let all = t.scale(both, -0.5 * (steps - 1) as f64);
            log_z = t.add(log_z, all);
        }

        let mut leaves = Vec::with_capacity(steps);
        let mut given = Vec::with_capacity(steps);
        // D⁻¹, D⁻¹g and K of every step.
        let mut eliminated = Vec::with_capacity(steps);
        let mut passed: Option<[Var; 2]> = None;
        for (step, x) in potentials.iter().enumerate() {
            let h = t.leaf(Matrix::point(&x[..dim]));
            let raw = t.leaf(layout.factor(&x[dim..]));
            leaves.push([h, raw]);
            let precision = covariance(t, raw);
            given.push([h, precision]);

            let (mut pivot, mut g) = match passed {
                None => (t.add(precision, to_s), t.add(h, start_shift)),
                Some([less, shift]) => {
                    let (own, pull) = (t.sub(precision, less), t.add(h, shift));
                    (t.add(own, to_q), t.add(pull, after_shift))
                }
            };
            if step + 1 < steps {
                pivot = t.add(pivot, before);
                g = t.sub(g, before_shift);
            }
            let inverse = t.inverse(pivot);
            let centre = t.mul(inverse, g);
            let gain = t.mul(inverse, coupling);
            let volume = t.log_det(pivot);
            let square = t.dot(g, centre);
            let rest = t.sub(square, volume);
            let half = t.scale(rest, 0.5);
            log_z = t.add(log_z, half);
            eliminated.push([inverse, centre, gain]);
            let back = t.transpose(coupling);
            passed = Some([t.mul(back, gain), t.mul(back, centre)]);
        }

        let mut backwards: Vec<[Var; 3]> = Vec::with_capacity(steps);
        let mut expected: Option<Var> = None;
        for step in (0..steps).rev() {
            let [inverse, centre, gain] = eliminated[step];
            let spread = t.cholesky(inverse);
            let unit = t.leaf(Matrix::point(&noise[step]));
            let moved = t.mul(spread, unit);
            let own_draw = t.add(centre, moved);
            let [mean, covariance, draw] = match backwards.last() {
                None => [centre, inverse, own_draw],
                Some(&[mean, covariance, draw]) => {
                    let (pull, pushed) = (t.mul(gain, mean), t.mul(gain, draw));
                    let turned = t.transpose(gain);
                    let carried = t.mul(gain, covariance);
                    let carried = t.mul(carried, turned);
                    [
                        t.add(centre, pull),
                        t.add(inverse, carried),
                        t.add(own_draw, pushed),
                    ]
                }
            };
            backwards.push([mean, covariance, draw]);

            // E[ln ψ] = hᵀμ − ½ ⟨Λ, Σ + μμᵀ⟩
            let [h, precision] = given[step];
            let linear = t.dot(h, mean);
            let square = t.squared(mean);
            let second = t.add(covariance, square);
            let quadratic = t.dot(precision, second);
            let half = t.scale(quadratic, 0.5);
            let own = t.sub(linear, half);
            expected = Some(match expected {
                None => own,
                Some(sum) => t.add(sum, own),
            });
        }
        let divergence = match expected {
            None => t.scale(log_z, -1.0),
            Some(sum) => t.sub(sum, log_z),
        };
        let of = |k: usize| backwards.iter().rev().map(|step| step[k]).collect();
        Posterior {
            layout,
            dynamics: [a, b, raw_q, first, raw_s],
            potentials: leaves,
            means: of(0),
            covariances: of(1),
            draws: of(2),
            divergence,
            tape,
        }
    }

    fn points<'a>(&'a self, of: &'a [Var]) -> impl Iterator<Item = &'a [f64]> {
        of.iter().map(|&var| self.tape.value(var).values())
    }

    /// The mean of every step.
    pub fn means(&self) -> impl Iterator<Item = &[f64]> {
        self.points(&self.means)
    }

    /// The covariance of every step.
    pub fn covariances(&self) -> impl Iterator<Item = &Matrix> {
        self.covariances.iter().map(|&var| self.tape.value(var))
    }

    /// The draw of every step.
    pub fn draws(&self) -> impl Iterator<Item = &[f64]> {
        self.points(&self.draws)
    }

    /// The divergence from the prior, in nats.
    pub fn divergence(&self) -> f64 {
        self.tape.value(self.divergence)[(0, 0)]
    }

    /// The gradient of `Σ ⟨at_draws, draws⟩ + at_divergence · KL`.
    pub fn backward(&self, at_draws: &[Vec<f64>], at_divergence: f64) -> Slopes {
        let mut seeds = vec![(self.divergence, Matrix::number(at_divergence))];
        let pulls = self.draws.iter().zip(at_draws);
        seeds.extend(pulls.map(|(&draw, at)| (draw, Matrix::point(at))));
        let gradient = self.tape.backward(&seeds);
        let [a, b, raw_q, first, raw_s] = self.dynamics.map(|var| gradient.at(var));
        let potentials = self.potentials.iter().map(|&[h, raw]| {
            let factor = self.layout.factor_numbers(gradient.at(raw));
            [gradient.at(h).values(), &factor].concat()
        });
        Slopes {
            dynamics: [
                a.values(),
                b.values(),
                &self.layout.factor_numbers(raw_q),
                first.values(),
                &self.layout.factor_numbers(raw_s),
            ]
            .concat(),
            potentials: potentials.collect(),
        }
    }
}
