//! A family of one's own: yes-or-no latents. The book's chapter on extending RAMP shows this file.

use ramp::data::Dataset;
use ramp::family::{Belief, Description, Family, ParameterError, Size, Weight};
use ramp::graph::FactorTree;
use ramp::kernel::real::Real;
use ramp::model::{Model, Registry};
use ramp::train::{TrainSpec, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

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
        Size::new("dim", self.dim, 1)
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
        Description::new(
            mean.clone(),
            mean.iter().map(|p| (p * (1.0 - p)).sqrt()).collect(),
            mean.iter().map(|&p| part(p) + part(1.0 - p)).sum(),
        )
    }
}

fn main() -> ramp::Result<()> {
    // A hidden yes or no behind three noisy numbers.
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let answers: Vec<bool> = (0..600).map(|_| rng.random_bool(0.5)).collect();
    let mut data = Dataset::new();
    for name in ["first", "second", "third"] {
        let numbers = answers.iter().map(|&yes| {
            let noise: f32 = StandardNormal.sample(&mut rng);
            noise + if yes { 1.5 } else { -1.5 }
        });
        data = data.observe(name, 1, numbers.collect())?;
    }

    // The model learns it as it would with any built-in family.
    let tree = FactorTree::from_newick("(first,second,third)answer;")?;
    let yes_or_no = Belief::own("bernoulli", Bernoulli { dim: 1 })?;
    let mut model = Model::builder(tree)
        .belief("answer", yes_or_no)?
        .build(&data)?;
    let settings = TrainSpec {
        iterations: 200,
        batch: Some(200),
        learning_rate: 0.01,
        ..Default::default()
    };
    Trainer::new(settings)?.fit(&mut model, &data)?;

    // Stored models hold the family's name and ask for the family.
    let path = std::env::temp_dir().join(format!("own_family_{}.safetensors", std::process::id()));
    model.save(&path)?;
    let model = Model::load_with(
        &path,
        Registry::new().family("bernoulli", |dim| Bernoulli { dim }),
    )?;
    let _ = std::fs::remove_file(&path);

    // Which of the two answers is called yes is the model's choice.
    let posterior = model.posterior(&data)?;
    let found = posterior.latent("answer")?.means(0);
    let right = found
        .iter()
        .zip(&answers)
        .filter(|(p, yes)| (**p > 0.5) == **yes)
        .count();
    let right = right.max(answers.len() - right);
    println!("{right} of {} answers found", answers.len());
    assert!(right > 570);
    Ok(())
}
