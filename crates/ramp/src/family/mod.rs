//! Beliefs: one file per exponential family, their registration, and what they have in common.
//!
//! # A family of one's own
//! Implement [`Family`] and give it to a model: `Model::builder(tree).beliefs(Belief::own("coin", Coin)?)`, also as part of a
//! product ([`Belief::product`]). It trains, infers, scores, imputes and is stored like the others; `examples/own_family.rs`
//! is a whole program.
//!
//! # Adding a family to this crate
//! 1. Write one file with a struct that derives `Clone, Debug, PartialEq, Eq` and implements [`Family`]. Every formula is written once over [`Real`]; the tests of this module then
//!    run it in `f64` against quadrature and finite differences, and the kernels in `f32` lanes.
//! 2. Add one line to the `families!` list below: a variant, the type, its name in model files and how a number in
//!    parentheses (`beta(2)`) makes one.
//!
//! Nothing else changes: networks, messages, the free energy, training, inference and descriptions know only [`Belief`].

mod beta;
mod categorical;
mod diagonal;
mod dirichlet;
mod draw;
mod error;
mod gamma;
mod gaussian;
mod own;
mod product;
#[cfg(test)]
mod tests;
mod von_mises;

pub use beta::Beta;
pub use categorical::Categorical;
pub use diagonal::DiagonalGaussian;
pub use dirichlet::Dirichlet;
pub use error::{FamilyError, ParameterError};
pub use gamma::Gamma;
pub use gaussian::Gaussian;
pub use own::OwnFamily;
pub use product::{Belief, Inputs};
pub use von_mises::VonMises;

use crate::kernel::real::Real;

/// `exp Φ(η)` in two pieces, `scale · exp(exponent)`, so that a kernel over pairs needs no logarithm where a family can
/// avoid it.
#[derive(Clone, Copy)]
pub struct Weight<R> {
    /// The part that may be large.
    pub exponent: R,
    /// The part of moderate size.
    pub scale: R,
}

impl<R: Real> Weight<R> {
    /// A weight whose logarithm is known.
    #[inline(always)]
    pub fn from_log(exponent: R) -> Self {
        Weight {
            exponent,
            scale: R::one(),
        }
    }

    /// `Φ`.
    #[inline(always)]
    pub fn ln(self) -> R {
        self.exponent + self.scale.ln()
    }
}

/// A belief in words: one entry per coordinate of the latent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// What each coordinate is called in tables: empty for the only one, `1`, `2`, … else.
    pub names: Vec<String>,
    /// Posterior mean; probabilities of a categorical; the mean direction, in radians, of a circle.
    pub mean: Vec<f64>,
    /// Standard deviation; `√(−2 ln R)`, its analogue on a circle.
    pub sd: Vec<f64>,
    /// Differential entropy (entropy of a categorical), in nats.
    pub entropy: f64,
}

impl Description {
    /// A description with names by number.
    pub fn new(mean: Vec<f64>, sd: Vec<f64>, entropy: f64) -> Self {
        let names = match mean.len() {
            1 => vec![String::new()],
            n => (1..=n).map(|i| i.to_string()).collect(),
        };
        Description {
            names,
            mean,
            sd,
            entropy,
        }
    }
}

/// An exponential family with natural parameters `η` and log-normaliser `Φ(η)`.
///
/// Messages are ratios of beliefs: [`Family::constrain`] must map raw network output to a set that is closed under
/// addition and keeps `prior + any sum of messages` valid (MATH: a message whose subtree is missing is simply left out).
pub trait Family: Clone + Send + Sync {
    /// Numbers of natural parameters for which the pairwise kernel is compiled apart, with constant lengths: those of
    /// hot loops.
    const FIXED_DIMS: &'static [usize];

    /// Whether the smallest of them are worth inlining into the pairwise loop itself: the workhorse alone, for the
    /// sake of build times.
    const HOT: bool = false;

    /// Whether the formula is a long chain of operations that wait for one another: the pairwise kernel then takes four pairs of a large
    /// belief side by side ([`Four`](crate::kernel::four::Four)).
    const CHAINED: bool = false;

    /// The family's one setting.
    fn size(&self) -> Size;

    /// How many natural parameters a belief has.
    fn dim(&self) -> usize;

    /// How many numbers the [`Inputs::Moments`] reading of a belief has.
    fn moments_dim(&self) -> usize;

    /// In how many directions a belief can spread: its coordinates, less those that the others determine.
    fn freedom(&self) -> usize {
        self.size().value
    }

    /// The natural parameters of the default prior.
    fn prior(&self) -> Vec<f64>;

    /// What is wrong with these natural parameters, if anything: the half of a sentence after the family's name.
    fn check(&self, eta: &[f64]) -> Result<(), ParameterError>;

    /// `exp Φ(η)`.
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R>;

    /// `exp Φ(η)` and the mean parameters `μ = ∇Φ(η)`.
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R>;

    /// A valid message from `dim` raw network outputs.
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]);

    /// The gradient at the raw outputs from the gradient at the message.
    fn constrain_backward<R: Real>(&self, raw: &[R], grad_message: &[R], grad_raw: &mut [R]);

    /// A well-scaled, invertible reading of a belief for network inputs.
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]);

    /// The gradient at the natural parameters from the gradient at the reading.
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]);

    /// The belief in words.
    fn describe(&self, eta: &[f64]) -> Description;

    /// The log-normaliser `Φ(η)`.
    #[inline(always)]
    fn log_normalizer<R: Real>(&self, eta: &[R]) -> R {
        self.weight(eta).ln()
    }
}

macro_rules! families {
    ($($variant:ident($type:ty) = $name:literal from $make:expr;)*) => {
        /// Any of the built-in families, or one of the user's own.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum AnyFamily {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant($type),
            )*
            /// A family of the user's own.
            Own(OwnFamily),
        }

        /// The names of the built-in families, as model files write them.
        pub const NAMES: &[&str] = &[$($name),*];

        impl AnyFamily {
            /// The name in model files.
            pub fn name(&self) -> &str {
                match self {
                    $(AnyFamily::$variant(_) => $name,)*
                    AnyFamily::Own(own) => own.name(),
                }
            }

            /// A family by its name and the number in parentheses, if there is one.
            pub(crate) fn by_name(name: &str, size: Option<usize>) -> Option<Self> {
                match name {
                    $($name => Some(AnyFamily::$variant($make(size))),)*
                    _ => None,
                }
            }
        }

        $(
            impl From<$type> for AnyFamily {
                fn from(family: $type) -> Self {
                    AnyFamily::$variant(family)
                }
            }
        )*

        /// Evaluates an expression with the concrete family bound to a name.
        macro_rules! with_family {
            ($any:expr, $f:ident => $body:expr) => {
                match $any {
                    $($crate::family::AnyFamily::$variant($f) => $body,)*
                    $crate::family::AnyFamily::Own($f) => $body,
                }
            };
        }
        pub(crate) use with_family;
    };
}

families! {
    Gaussian(Gaussian) = "gaussian" from |n: Option<usize>| Gaussian { dim: n.unwrap_or(1) };
    Diagonal(DiagonalGaussian) = "diagonal_gaussian" from |n: Option<usize>| DiagonalGaussian { dim: n.unwrap_or(1) };
    Beta(Beta) = "beta" from |n: Option<usize>| Beta { dim: n.unwrap_or(1) };
    Gamma(Gamma) = "gamma" from |n: Option<usize>| Gamma { dim: n.unwrap_or(1) };
    Categorical(Categorical) = "categorical" from |n: Option<usize>| Categorical { levels: n.unwrap_or(2) };
    Dirichlet(Dirichlet) = "dirichlet" from |n: Option<usize>| Dirichlet { levels: n.unwrap_or(3) };
    VonMises(VonMises) = "von_mises" from |n: Option<usize>| VonMises { dim: n.unwrap_or(1) };
}

impl From<OwnFamily> for AnyFamily {
    fn from(family: OwnFamily) -> Self {
        AnyFamily::Own(family)
    }
}

impl AnyFamily {
    /// The family's one setting.
    pub fn size(&self) -> Size {
        with_family!(self, f => f.size())
    }
}

/// The one setting of a family: how large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// What model files call it.
    pub setting: &'static str,
    /// Its value.
    pub value: usize,
    /// The least that makes a belief.
    pub least: usize,
}

impl Size {
    /// A setting of this name and value, with the least value that makes a belief.
    pub fn new(setting: &'static str, value: usize, least: usize) -> Self {
        Size {
            setting,
            value,
            least,
        }
    }
}

/// `ln(1 + eˣ)`, without overflow.
#[inline(always)]
fn softplus<R: Real>(x: R) -> R {
    x.max(R::zero()) + ((-x.abs()).exp() + R::one()).ln()
}

/// The slope of [`softplus`].
#[inline(always)]
fn sigmoid<R: Real>(x: R) -> R {
    R::one() / (R::one() + (-x).exp())
}

/// The message map of families whose natural parameters are all non-negative.
#[inline(always)]
fn constrain_positive<R: Real>(raw: &[R], message: &mut [R]) {
    for (m, &x) in message.iter_mut().zip(raw) {
        *m = softplus(x);
    }
}

#[inline(always)]
fn constrain_positive_backward<R: Real>(raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
    for i in 0..raw.len() {
        grad_raw[i] = grad_message[i] * sigmoid(raw[i]);
    }
}

/// The check of families whose natural parameters are all positive.
fn check_positive(eta: &[f64]) -> Result<(), ParameterError> {
    match eta.iter().find(|x| !(x.is_finite() && **x > 0.0)) {
        Some(&value) => Err(ParameterError::NotPositive { value }),
        None => Ok(()),
    }
}
