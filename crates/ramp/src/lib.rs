//! RAMP uncovers the latent variables behind data whose dependencies form a tree.
//!
//! Say which observations hang together; RAMP learns small networks that pass messages (natural parameters of
//! exponential-family beliefs) along the edges, by maximising a sum of nodewise free energies: without labels and without a
//! generative model. Then every latent of every sample has a posterior.
//!
//! A complete program: two readings of each of two hidden quantities that share a cause.
//!
//! ```
//! use ramp::data::Dataset;
//! use ramp::graph::FactorTree;
//! use ramp::model::Model;
//! use ramp::train::{TrainSpec, Trainer};
//! use rand::SeedableRng;
//! use rand_chacha::ChaCha8Rng;
//! use rand_distr::{Distribution, StandardNormal};
//!
//! # fn main() -> ramp::Result<()> {
//! // Data in the shape of a tree: mood drives calm and kind, each is read three times with noise, some readings are lost.
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let mut normal = || -> f32 { StandardNormal.sample(&mut rng) };
//! let (mut calm, mut questions) = (vec![], vec![vec![]; 6]);
//! for n in 0..1000 {
//!     let mood = normal();
//!     for side in 0..2 {
//!         let hidden = mood + normal();
//!         for (i, question) in questions[3 * side..3 * side + 3].iter_mut().enumerate() {
//!             question.push(if (n + i) % 10 == 0 { f32::NAN } else { hidden + normal() });
//!         }
//!         if side == 0 {
//!             calm.push(f64::from(hidden));
//!         }
//!     }
//! }
//!
//! // Say what hangs together.
//! let tree = FactorTree::from_newick("((q1,q2,q3)calm,(q4,q5,q6)kind)mood;")?;
//! let mut data = Dataset::new();
//! for (i, question) in questions.into_iter().enumerate() {
//!     data = data.observe(format!("q{}", i + 1), 1, question)?;
//! }
//!
//! // Learn.
//! let mut model = Model::builder(tree).build(&data)?;
//! let settings = TrainSpec { iterations: 150, batch: Some(250), learning_rate: 0.01, ..Default::default() };
//! Trainer::new(settings)?.fit(&mut model, &data)?;
//!
//! // Read posteriors: a mean and a standard deviation for every latent of every sample.
//! let posterior = model.posterior(&data)?;
//! let first = posterior.latent("calm")?.describe(0);
//! println!("calm of the first sample: {:.2} ± {:.2}", first.mean[0], first.sd[0]);
//!
//! // Nobody told it what calm was; it found it from how the answers hang together, up to sign and scale.
//! let found = posterior.latent("calm")?.means(0);
//! let correlation = {
//!     let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
//!     let (a, b) = (mean(&found), mean(&calm));
//!     let dot = |f: &dyn Fn(usize) -> f64| (0..calm.len()).map(f).sum::<f64>();
//!     dot(&|i| (found[i] - a) * (calm[i] - b))
//!         / (dot(&|i| (found[i] - a).powi(2)) * dot(&|i| (calm[i] - b).powi(2))).sqrt()
//! };
//! assert!(correlation.abs() > 0.85);
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//! The modules follow the way of the data:
//! [`data`] → [`graph`] → [`network`] → [`message`] → [`family`] (beliefs) → [`objective`] (free energy) → [`train`]; or →
//! [`infer`]. [`model`] holds a tree, its families and its networks together; [`kernel`] has the numerics. No module reaches
//! against the order `kernel`, `graph`, `data`, `family`, `network`, `message`, `objective`, `model`, then `train` and `infer`
//! (`tests/architecture.rs`). [`collective`] and [`storage`] know none of them: how several processes talk, and how files are written.
//!
//! - [`graph::FactorTree`]: who depends on whom.
//! - [`family::Belief`]: what kind of thing a latent is. [`family`] shows how to use one of your own.
//! - [`network::Network`]: the trait of amortisers; [`network::NetworkSpec`] those that come along.
//! - [`model::Model`] (built, saved, loaded, cloned), [`train::Trainer`], [`infer::Posterior`].

pub mod collective;
pub mod data;
mod error;
pub mod family;
pub mod graph;
pub mod infer;
pub mod kernel;
pub mod message;
pub mod model;
pub mod names;
pub mod network;
pub mod objective;
pub mod storage;
pub mod train;

pub use error::{Error, Result};
/// The generators of random numbers that networks are initialised with ([`network::Network::initialize`]).
pub use rand_chacha;
