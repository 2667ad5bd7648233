//! A family of one's own: yes-or-no latents. The book's chapter on extending RAMP shows this file.

use ramp::family::{Description, Family, ParameterError, Size, Weight};
use ramp::kernel::real::Real;

/// `dim` independent answers of yes or no; the natural parameters are their log-odds, and the prior is even.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bernoulli {
    /// How many answers.
    pub dim: usize,
}

/// The chance of a yes.
#[inline(always)]
fn chance<R: Real>(log_odds: R) -> R {
    R::one() / (R::one() + (-log_odds).exp())
}

impl Family for Bernoulli {
    const FIXED_DIMS: &'static [usize] = &[1];

    fn size(&self) -> Size {
        Size {
            setting: "dim",
            value: self.dim,
            least: 1,
        }
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn moments_dim(&self) -> usize {
        self.dim
    }

    fn prior(&self) -> Vec<f64> {
        vec![0.0; self.dim]
    }

    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        match eta.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(ParameterError::Own(format!(
                "needs finite log-odds, not {x}"
            ))),
            None => Ok(()),
        }
    }

    /// `Φ = Σ ln(1 + e^η)`, without overflow.
    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        let mut sum = R::zero();
        for &x in eta {
            sum = sum + x.max(R::zero()) + (R::one() + (-x.abs()).exp()).ln();
        }
        Weight::from_log(sum)
    }

    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        for (m, &x) in mean.iter_mut().zip(eta) {
            *m = chance(x);
        }
        self.weight(eta)
    }

    /// Any log-odds may be added to any others, so a network's output is a message as it is.
    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        message.copy_from_slice(raw);
    }

    #[inline(always)]
    fn constrain_backward<R: Real>(&self, _: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        grad_raw.copy_from_slice(grad_message);
    }

    /// Log-odds are well scaled already.
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        moments.copy_from_slice(eta);
    }

    #[inline(always)]
    fn moments_backward<R: Real>(&self, _: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        grad_eta.copy_from_slice(grad_moments);
    }

    fn describe(&self, eta: &[f64]) -> Description {
        let mean: Vec<f64> = eta.iter().map(|&x| chance(x)).collect();
        let part = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        Description {
            names: match self.dim {
                1 => vec![String::new()],
                n => (1..=n).map(|i| i.to_string()).collect(),
            },
            sd: mean.iter().map(|p| (p * (1.0 - p)).sqrt()).collect(),
            entropy: mean.iter().map(|&p| part(p) + part(1.0 - p)).sum(),
            mean,
        }
    }
}

fn main() {
    let family = Bernoulli { dim: 2 };
    let (eta, step) = ([0.3, -2.0], 1e-6);
    let mut mean = [0.0; 2];
    family.weight_and_mean(&eta, &mut mean);
    for i in 0..2 {
        let mut beside = eta;
        beside[i] += step;
        let slope = (family.log_normalizer(&beside) - family.log_normalizer(&eta)) / step;
        assert!((mean[i] - slope).abs() < 1e-5, "{} or {slope}", mean[i]);
    }
    println!("the mean parameters are the slope of the log-normaliser: {mean:.4?}");
}
