//! Baselines: what they learn from and what they assume. Those that learn do so in the library's loop ([`ramp::train`]).
//!
//! | baseline | sees | assumes |
//! |---|---|---|
//! | [`GaussianTree`](crate::gaussian::GaussianTree) | the true parameters | a linear-Gaussian tree; exact or mean-field |
//! | [`SupervisedGaussian`] | observations **and latents** | that all variables are jointly Gaussian |
//! | [`Bbvi`] | observations | the tree, unit noise, factorised Gaussian posteriors |
//! | [`Svae`] | sequences | linear-Gaussian dynamics, a decoder |
//! | [`Cpc`] | sequences | that a point tells the future of a sequence from those of others |

mod bbvi;
mod cpc;
mod learner;
mod matrix;
mod perceptron;
mod sequences;
mod supervised_gaussian;
mod svae;
mod tape;

pub use bbvi::{Bbvi, BbviSpec, Estimator, GenerativeTree};
pub use cpc::{Cpc, CpcSpec, Score};
pub use learner::{Array, Batch, Learner, Learning, LearningSpec, Parts, SequenceModel};
pub use sequences::{Sequences, Series};
pub use supervised_gaussian::SupervisedGaussian;
pub use svae::{Dynamics, Likelihood, State, Svae, SvaeSpec};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The random numbers of a step, in streams that parallel work can share out.
fn draws(seed: u64, iteration: usize, stream: u64) -> ChaCha8Rng {
    let step = (iteration as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = ChaCha8Rng::seed_from_u64(seed.wrapping_add(step));
    random.set_stream(stream);
    random
}
