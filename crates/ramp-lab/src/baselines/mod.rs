//! Rival methods: what they learn from, what they assume, and how they are told apart from RAMP.
//!
//! | baseline | sees | assumes |
//! |---|---|---|
//! | [`GaussianTree`](crate::gaussian::GaussianTree) | the true parameters | a linear-Gaussian tree; exact or mean-field |
//! | [`SupervisedGaussian`] | observations **and latents** | that all variables are jointly Gaussian |
//! | [`Bbvi`] | observations | the tree, unit noise, factorised Gaussian posteriors |

mod bbvi;
mod supervised_gaussian;

pub use bbvi::{Bbvi, BbviSpec, Estimator, GenerativeTree};
pub use supervised_gaussian::SupervisedGaussian;
