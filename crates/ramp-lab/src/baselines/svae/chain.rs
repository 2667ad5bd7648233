//! The exact posterior of a linear-Gaussian chain under Gaussian potentials, and everything of it that is differentiated.
//!
//! The prior is `z₁ ~ N(m, S)`, `z_{t+1} = A z_t + b + N(0, Q)`; the encoder multiplies it by `ψ_t(z_t) = exp(h_tᵀz_t − ½ z_tᵀΛ_tz_t)`.
//! The posterior's precision is block-tridiagonal. Eliminating it forwards gives pivots `D_t` and `g_t`, with which, backwards,
//! `z_t | z_{t+1} ~ N(D_t⁻¹ g_t + K_t z_{t+1}, D_t⁻¹)`, `K_t = D_t⁻¹ AᵀQ⁻¹`: means, covariances and draws alike. The
//! divergence from the prior follows from the normaliser `Z = ∫ p Πψ` as `KL = Σ E[ln ψ_t] − ln Z`.

use super::super::tape::{Small, Tape, Var};

/// The numbers of the dynamics: `A` row by row, `b`, the factor of `Q` (its two diagonal numbers before they are made positive, then
/// the one below), `m`, and the factor of `S` likewise.
pub(super) const DYNAMICS: usize = 14;
/// The numbers of a potential: `h`, then the factor of `Λ` as those of the dynamics.
pub(super) const POTENTIAL: usize = 5;

/// The posterior of one sequence on a tape.
pub(super) struct Posterior {
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
    pub dynamics: [f64; DYNAMICS],
    pub potentials: Vec<[f64; POTENTIAL]>,
}

/// A factor before its diagonal is made positive.
pub(super) fn factor(x: &[f64]) -> Small {
    Small::square([[x[0], 0.0], [x[2], x[1]]])
}

fn factor_slope(at: Small) -> [f64; 3] {
    [at[(0, 0)], at[(1, 1)], at[(1, 0)]]
}

impl Posterior {
    /// The posterior under potentials, with a draw that `noise` makes from it.
    pub fn new(
        dynamics: &[f64; DYNAMICS],
        potentials: &[[f64; POTENTIAL]],
        noise: &[[f64; 2]],
    ) -> Self {
        let steps = potentials.len();
        let mut tape = Tape::default();
        let t = &mut tape;
        let d = dynamics;
        let a = t.leaf(Small::square([[d[0], d[1]], [d[2], d[3]]]));
        let b = t.leaf(Small::point([d[4], d[5]]));
        let raw_q = t.leaf(factor(&d[6..9]));
        let first = t.leaf(Small::point([d[9], d[10]]));
        let raw_s = t.leaf(factor(&d[11..14]));

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
            let h = t.leaf(Small::point([x[0], x[1]]));
            let raw = t.leaf(factor(&x[2..]));
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
            let unit = t.leaf(Small::point(noise[step]));
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
            dynamics: [a, b, raw_q, first, raw_s],
            potentials: leaves,
            means: of(0),
            covariances: of(1),
            draws: of(2),
            divergence,
            tape,
        }
    }

    fn points<'a>(&'a self, of: &'a [Var]) -> impl Iterator<Item = [f64; 2]> {
        of.iter().map(|&var| {
            let x = self.tape.value(var);
            [x[(0, 0)], x[(1, 0)]]
        })
    }

    /// The mean of every step.
    pub fn means(&self) -> impl Iterator<Item = [f64; 2]> {
        self.points(&self.means)
    }

    /// The covariance of every step.
    pub fn covariances(&self) -> impl Iterator<Item = Small> {
        self.covariances.iter().map(|&var| self.tape.value(var))
    }

    /// The draw of every step.
    pub fn draws(&self) -> impl Iterator<Item = [f64; 2]> {
        self.points(&self.draws)
    }

    /// The divergence from the prior, in nats.
    pub fn divergence(&self) -> f64 {
        self.tape.value(self.divergence)[(0, 0)]
    }

    /// The gradient of `Σ ⟨at_draws, draws⟩ + at_divergence · KL`.
    pub fn backward(&self, at_draws: &[[f64; 2]], at_divergence: f64) -> Slopes {
        let mut seeds = vec![(self.divergence, Small::number(at_divergence))];
        let pulls = self.draws.iter().zip(at_draws);
        seeds.extend(pulls.map(|(&draw, &at)| (draw, Small::point(at))));
        let gradient = self.tape.backward(&seeds);
        let [a, b, raw_q, first, raw_s] = self.dynamics.map(|var| gradient.at(var));
        let [q, s] = [raw_q, raw_s].map(factor_slope);
        let potentials = self.potentials.iter().map(|&[h, raw]| {
            let (h, [x, y, below]) = (gradient.at(h), factor_slope(gradient.at(raw)));
            [h[(0, 0)], h[(1, 0)], x, y, below]
        });
        Slopes {
            dynamics: [
                a[(0, 0)],
                a[(0, 1)],
                a[(1, 0)],
                a[(1, 1)],
                b[(0, 0)],
                b[(1, 0)],
                q[0],
                q[1],
                q[2],
                first[(0, 0)],
                first[(1, 0)],
                s[0],
                s[1],
                s[2],
            ],
            potentials: potentials.collect(),
        }
    }
}
