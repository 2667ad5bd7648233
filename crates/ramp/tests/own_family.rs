//! A family of one's own in a model: one that repeats a built-in one must give the same numbers, and one that is new the
//! derivatives of its own free energy.

use ramp::data::Dataset;
use ramp::family::{
    AnyFamily, Belief, Description, Family, OwnFamily, ParameterError, Size, Weight,
};
use ramp::graph::FactorTree;
use ramp::infer::{Imputer, SupportSet};
use ramp::kernel::real::{Element, Real};
use ramp::message::{Messages, Node, Presence};
use ramp::model::{Model, ModelError, Registry};
use ramp::objective::{Mixture, free_energy};
use ramp::train::{TrainSpec, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The Gaussian with independent coordinates, written again.
#[derive(Clone)]
struct Normal {
    dim: usize,
}

impl Family for Normal {
    const FIXED_DIMS: &'static [usize] = &[];

    fn size(&self) -> Size {
        Size::new("dim", self.dim, 1)
    }
    fn dim(&self) -> usize {
        2 * self.dim
    }
    fn moments_dim(&self) -> usize {
        2 * self.dim
    }
    fn prior(&self) -> Vec<f64> {
        [vec![0.0; self.dim], vec![1.0; self.dim]].concat()
    }
    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        match eta[self.dim..].iter().find(|p| **p <= 0.0) {
            Some(&value) => Err(ParameterError::NotPositive { value }),
            None => Ok(()),
        }
    }
    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        let mut exponent = R::zero();
        let mut scale = R::one();
        for i in 0..self.dim {
            let r = eta[self.dim + i].rsqrt();
            let t = eta[i] * r;
            exponent = (t * R::splat(0.5)).mul_add(t, exponent);
            scale = scale * r;
        }
        Weight { exponent, scale }
    }
    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        for i in 0..self.dim {
            let r = eta[self.dim + i].rsqrt();
            let x = eta[i] * r * r;
            mean[i] = x;
            mean[self.dim + i] = R::splat(-0.5) * x.mul_add(x, r * r);
        }
        self.weight(eta)
    }
    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        for i in 0..self.dim {
            message[i] = raw[i];
            message[self.dim + i] = raw[self.dim + i].square();
        }
    }
    #[inline(always)]
    fn constrain_backward<R: Real>(&self, raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        for i in 0..self.dim {
            let p = self.dim + i;
            grad_raw[i] = grad_message[i];
            grad_raw[p] = R::splat(2.0) * raw[p] * grad_message[p];
        }
    }
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        for i in 0..self.dim {
            moments[i] = eta[i] / eta[self.dim + i];
            moments[self.dim + i] = eta[self.dim + i].ln();
        }
    }
    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        for i in 0..self.dim {
            let p = self.dim + i;
            let inverse = R::one() / eta[p];
            let g = grad_moments[i] * inverse;
            grad_eta[i] = g;
            grad_eta[p] = grad_moments[p] * inverse - g * eta[i] * inverse;
        }
    }
    fn describe(&self, eta: &[f64]) -> Description {
        let (h, p) = eta.split_at(self.dim);
        let entropy = |p: &f64| 0.5 * (1.0 + (2.0 * std::f64::consts::PI).ln() - p.ln());
        Description::new(
            h.iter().zip(p).map(|(h, p)| h / p).collect(),
            p.iter().map(|p| p.recip().sqrt()).collect(),
            p.iter().map(entropy).sum(),
        )
    }
}

/// Yes or no, by log-odds: no built-in family.
#[derive(Clone)]
struct Coin;

impl Family for Coin {
    const FIXED_DIMS: &'static [usize] = &[1];

    fn size(&self) -> Size {
        Size::new("dim", 1, 1)
    }
    fn dim(&self) -> usize {
        1
    }
    fn moments_dim(&self) -> usize {
        1
    }
    fn prior(&self) -> Vec<f64> {
        vec![0.0]
    }
    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        match eta[0].is_finite() {
            true => Ok(()),
            false => Err(ParameterError::Own("needs finite log-odds".into())),
        }
    }
    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        let x = eta[0];
        Weight::from_log(x.max(R::zero()) + (R::one() + (-x.abs()).exp()).ln())
    }
    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        mean[0] = R::one() / (R::one() + (-eta[0]).exp());
        self.weight(eta)
    }
    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        message[0] = raw[0];
    }
    #[inline(always)]
    fn constrain_backward<R: Real>(&self, _: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        grad_raw[0] = grad_message[0];
    }
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        moments[0] = eta[0];
    }
    #[inline(always)]
    fn moments_backward<R: Real>(&self, _: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        grad_eta[0] = grad_moments[0];
    }
    fn describe(&self, eta: &[f64]) -> Description {
        let p = 1.0 / (1.0 + (-eta[0]).exp());
        let part = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        Description::new(
            vec![p],
            vec![(p * (1.0 - p)).sqrt()],
            part(p) + part(1.0 - p),
        )
    }
}

fn normal(dim: usize) -> Belief {
    Belief::own("normal", Normal { dim }).unwrap()
}

/// Beliefs with a part of one's own, each beside the same with built-in parts.
fn pairs() -> Vec<(Belief, Belief)> {
    let own = |dim| AnyFamily::from(OwnFamily::new("normal", Normal { dim }).unwrap());
    let gaussian: AnyFamily = ramp::family::Gaussian { dim: 2 }.into();
    let product = |parts: Vec<AnyFamily>| Belief::product(parts).unwrap();
    vec![
        (normal(1), "diagonal_gaussian".parse().unwrap()),
        (normal(3), "diagonal_gaussian(3)".parse().unwrap()),
        (
            product(vec![own(1), gaussian.clone()]),
            "diagonal_gaussian x gaussian(2)".parse().unwrap(),
        ),
        (
            product(vec![gaussian, own(2)]),
            "gaussian(2) x diagonal_gaussian(2)".parse().unwrap(),
        ),
    ]
}

/// Three random messages into one node.
fn messages<E: Element>(belief: &Belief, rows: usize) -> Messages<E> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let dim = belief.dim();
    let mut messages = Messages::zeros(rows, [dim; 3]);
    let stride = messages.stride();
    for m in 0..3 {
        for n in 0..rows {
            let raw: Vec<f64> = (0..dim).map(|_| rng.random_range(-1.5..1.5)).collect();
            let mut message = vec![0.0; dim];
            belief.constrain(&raw, &mut message);
            for (d, &value) in message.iter().enumerate() {
                messages.message_mut(m)[d * stride + n] = E::from_f64(value);
            }
        }
    }
    messages
}

fn evaluate<E: Element>(belief: &Belief, messages: &Messages<E>) -> (Vec<f64>, Messages<E>) {
    let nodes = [Node {
        belief: belief.clone(),
        prior: belief.prior(),
        messages: 0..3,
    }];
    let mut gradient = messages.clone();
    let presence = Presence::complete(3);
    let mixture = Mixture::default();
    let value = free_energy(&nodes, messages, &presence, mixture, Some(&mut gradient));
    (value.samples, gradient)
}

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    let error = (a - b).abs() / (1.0 + b.abs());
    assert!(error <= tolerance, "{what}: {a} or {b}");
}

fn compare<E: Element>(rows: usize, tolerance: f64) {
    for (own, built_in) in pairs() {
        let messages = messages::<E>(&built_in, rows);
        let (found, own_gradient) = evaluate(&own, &messages);
        let (expected, gradient) = evaluate(&built_in, &messages);
        for (a, b) in found.iter().zip(&expected) {
            near(*a, *b, tolerance, &format!("{own}"));
        }
        for m in 0..3 {
            for (a, b) in own_gradient.message(m).iter().zip(gradient.message(m)) {
                let (a, b): (f64, f64) = ((*a).into(), (*b).into());
                near(a, b, tolerance, &format!("gradient of {own}"));
            }
        }
    }
}

#[test]
fn free_energies_and_gradients_are_those_of_the_built_in_family() {
    compare::<f64>(37, 1e-12);
    compare::<f32>(37, 1e-5);
    // More rows than one register and one tile hold.
    compare::<f32>(700, 1e-5);
}

#[test]
fn gradients_are_the_slopes_of_the_free_energy() {
    for belief in [normal(1), normal(2), Belief::own("coin", Coin).unwrap()] {
        let home = messages::<f64>(&belief, 9);
        let (_, gradient) = evaluate(&belief, &home);
        let stride = home.stride();
        let mean = |m: &Messages<f64>| evaluate(&belief, m).0.iter().sum::<f64>() / 9.0;
        for m in 0..3 {
            for d in 0..belief.dim() {
                for n in [0, 4, 8] {
                    let moved = |by: f64| {
                        let mut messages = home.clone();
                        messages.message_mut(m)[d * stride + n] += by;
                        mean(&messages)
                    };
                    let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    let found = gradient.plane(m, d)[n];
                    near(
                        found,
                        slope,
                        1e-7,
                        &format!("{belief}, message {m}, {d}, row {n}"),
                    );
                }
            }
        }
    }
}

/// Readings of two quantities with a common cause, some missing.
fn data(rows: usize) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut columns = vec![vec![]; 6];
    for _ in 0..rows {
        let mut noise = || rng.random_range(-1.0..1.0_f32);
        let cause = noise();
        for side in 0..2 {
            let hidden = cause + noise();
            for i in 0..3 {
                let lost = noise() > 0.8;
                let value = hidden + noise();
                columns[3 * side + i].push(if lost { f32::NAN } else { value });
            }
        }
    }
    (columns.into_iter().enumerate()).fold(Dataset::new(), |data, (i, column)| {
        data.observe(format!("x{}", i + 1), 1, column).unwrap()
    })
}

fn tree() -> FactorTree {
    FactorTree::from_newick("((x1,x2,x3)a,(x4,x5,x6)b)c;").unwrap()
}

fn trained(belief: &Belief, data: &Dataset) -> Model {
    let builder = Model::builder(tree()).beliefs(belief.clone()).seed(4);
    let mut model = builder.build(data).unwrap();
    let settings = TrainSpec {
        iterations: 20,
        batch: Some(64),
        learning_rate: 0.01,
        ..Default::default()
    };
    let mut trainer = Trainer::new(settings).unwrap();
    trainer.fit(&mut model, data).unwrap();
    model
}

#[test]
fn training_posteriors_scores_and_imputations_are_those_of_the_built_in_family() {
    let data = data(150);
    for (own, built_in) in pairs() {
        let what = own.to_string();
        let (model, expected) = (trained(&own, &data), trained(&built_in, &data));
        for (a, b) in model.parameters().iter().zip(expected.parameters()) {
            near(f64::from(*a), f64::from(*b), 1e-5, &what);
        }
        let (found, posterior) = (
            model.posterior(&data).unwrap(),
            expected.posterior(&data).unwrap(),
        );
        for (a, b) in found.latents().iter().zip(posterior.latents()) {
            for row in 0..data.rows() {
                let (a, b) = (a.describe(row), b.describe(row));
                for (a, b) in a.mean.iter().zip(&b.mean).chain(a.sd.iter().zip(&b.sd)) {
                    near(*a, *b, 1e-5, &what);
                }
                near(a.entropy, b.entropy, 1e-5, &what);
            }
        }
        let scores = |model: &Model| {
            let support = SupportSet::new(model, &data, data.rows()).unwrap();
            let imputer = Imputer::new(model, &support, &data).unwrap();
            let weights = imputer.conditionals(model, &data).unwrap().weights(2, 7);
            let scores = support.scores(model, &data).unwrap();
            let all: Vec<f64> = (0..3).flat_map(|k| scores.latent(k).to_vec()).collect();
            (all, weights)
        };
        let ((a, weights), (b, expected)) = (scores(&model), scores(&expected));
        assert!(!weights.is_empty());
        for (a, b) in a.iter().zip(&b).chain(weights.iter().zip(&expected)) {
            near(*a, *b, 1e-5, &what);
        }
    }
}

#[test]
fn a_model_with_a_family_of_ones_own_is_stored_and_asks_for_it_by_name() {
    let data = data(80);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let coin = OwnFamily::new("coin", Coin).unwrap();
    let both = Belief::product(vec![
        coin.into(),
        OwnFamily::new("normal", Normal { dim: 2 }).unwrap().into(),
        ramp::family::Gamma { dim: 1 }.into(),
    ])
    .unwrap();
    assert_eq!(both.to_string(), "coin(1) x normal(2) x gamma(1)");
    let model = trained(&both, &data);
    assert!(model.parameters().iter().all(|p| p.is_finite()));
    model.save(&path).unwrap();

    let error = Model::load(&path).unwrap_err();
    let ramp::Error::Model(ModelError::MissingFamily { name }) = &error else {
        panic!("{error}");
    };
    assert_eq!(name, "coin");
    let half = Registry::new().family("coin", |_| Coin);
    let error = Model::load_with(&path, half).unwrap_err().to_string();
    assert!(
        error.contains("`normal`") && error.contains("registry"),
        "{error}"
    );
    // One that makes another size than was asked for is no substitute.
    let wrong = Registry::new()
        .family("coin", |_| Coin)
        .family("normal", |_| Normal { dim: 1 });
    let error = Model::load_with(&path, wrong).unwrap_err();
    assert!(
        matches!(error, ramp::Error::Model(ModelError::OtherFamily { .. })),
        "{error}"
    );

    let registry = Registry::new()
        .family("coin", |_| Coin)
        .family("normal", |dim| Normal { dim });
    let again = Model::load_with(&path, registry).unwrap();
    assert_eq!(again.parameters(), model.parameters());
    assert_eq!(again.spec(), model.spec());
    let (a, b) = (
        model.posterior(&data).unwrap(),
        again.posterior(&data).unwrap(),
    );
    for row in 0..data.rows() {
        assert_eq!(a.latents()[1].describe(row), b.latents()[1].describe(row));
    }
}

#[test]
fn training_with_a_family_of_ones_own_goes_on_from_a_checkpoint() {
    let data = data(60);
    let folder = tempfile::tempdir().unwrap();
    let train = |model: &mut Model, iterations: usize, kept: bool| {
        let settings = TrainSpec {
            iterations,
            batch: Some(32),
            learning_rate: 0.01,
            ..Default::default()
        };
        let mut trainer = Trainer::new(settings).unwrap();
        if kept {
            trainer = trainer.checkpoints(folder.path(), 100);
        }
        trainer.fit(model, &data).unwrap();
    };
    let build = |belief: Belief| {
        let builder = Model::builder(tree()).beliefs(belief);
        builder.build(&data).unwrap()
    };
    let mut at_once = build(normal(1));
    train(&mut at_once, 12, false);
    let mut first = build(normal(1));
    train(&mut first, 6, true);
    let mut second = build(normal(1));
    train(&mut second, 12, true);
    assert_ne!(first.parameters(), at_once.parameters());
    assert_eq!(second.parameters(), at_once.parameters());
    // Another family is another model.
    let mut other = build("diagonal_gaussian".parse().unwrap());
    let settings = TrainSpec {
        iterations: 12,
        batch: Some(32),
        learning_rate: 0.01,
        ..Default::default()
    };
    let mut trainer = Trainer::new(settings)
        .unwrap()
        .checkpoints(folder.path(), 100);
    assert!(trainer.fit(&mut other, &data).is_err());
}

#[test]
fn names_that_could_be_taken_for_something_else_are_refused() {
    for name in ["", "x", "two words", "a(b", "gaussian", "a*b"] {
        let error = Belief::own(name, Coin).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let error = Belief::own("normal", Normal { dim: 0 })
        .unwrap_err()
        .to_string();
    assert!(error.contains("normal") && error.contains("dim"), "{error}");
    let error = "coin".parse::<Belief>().unwrap_err().to_string();
    assert!(error.contains("unknown family `coin`"), "{error}");
    let prior = Model::builder(tree())
        .beliefs(Belief::own("coin", Coin).unwrap())
        .prior("a", vec![f64::NAN])
        .unwrap();
    let error = prior.build(&data(5)).unwrap_err().to_string();
    assert!(error.contains("needs finite log-odds"), "{error}");
}
