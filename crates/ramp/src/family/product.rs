//! A belief about one latent: a product of one or more families, side by side.

use super::{AnyFamily, Description, Family, FamilyError, OwnFamily, with_family};
use crate::kernel::real::{Operation, Real};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Makes a family that is not built in from its name and size, if it knows it.
pub(crate) type MakeFamily<'a> =
    dyn Fn(&str, Option<usize>) -> Result<Option<AnyFamily>, FamilyError> + 'a;

/// The largest size of a family that makes sense.
const MOST: usize = 4096;
/// The most natural parameters of a latent: each message of each sample has so many.
const MOST_PARAMETERS: usize = 1 << 16;

/// How a belief is parametrised as a network's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Inputs {
    /// The sum of the incoming messages' natural parameters, as in the paper.
    Natural,
    /// A well-scaled reading of prior × messages (for a Gaussian: mean, correlations, log-precisions).
    #[default]
    Moments,
}

/// The family of a latent: a product of independent parts, usually one.
///
/// Written and read as text: `gaussian(2)`, `beta`, `von_mises x gaussian`.
///
/// ```
/// use ramp::family::Belief;
/// let phase_space: Belief = "von_mises x gaussian(1)".parse()?;
/// assert_eq!(phase_space.dim(), 4);
/// let description = phase_space.describe(&[0.0, 50.0, 1.0, 4.0]);
/// assert!((description.mean[0] - std::f64::consts::FRAC_PI_2).abs() < 1e-6);
/// assert!((description.mean[1] - 0.25).abs() < 1e-6);
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Belief {
    parts: Vec<AnyFamily>,
}

impl Belief {
    /// A product of families.
    pub fn product(parts: Vec<AnyFamily>) -> Result<Self, FamilyError> {
        if parts.is_empty() {
            return Err(FamilyError::Empty);
        }
        for part in &parts {
            let size = with_family!(part, f => f.size());
            if size.value < size.least || size.value > MOST {
                return Err(FamilyError::OutOfRange {
                    family: part.name().to_string(),
                    setting: size.setting,
                    least: size.least,
                    most: MOST,
                    value: size.value,
                });
            }
        }
        let belief = Belief { parts };
        match belief.dim() {
            0..=MOST_PARAMETERS => Ok(belief),
            parameters => Err(FamilyError::TooManyParameters {
                family: belief.to_string(),
                parameters,
                most: MOST_PARAMETERS,
            }),
        }
    }

    /// A family of one's own under a name, which stands for it in stored models.
    ///
    /// Every formula of the [`Family`] is written once over [`Real`]; see `examples/own_family.rs`.
    pub fn own<F: Family + 'static>(name: &str, family: F) -> Result<Self, FamilyError> {
        Belief::product(vec![OwnFamily::new(name, family)?.into()])
    }

    /// Reads a belief whose families may be ones that `make` knows by name and size.
    pub(crate) fn parse_with(text: &str, make: &MakeFamily<'_>) -> Result<Self, FamilyError> {
        let parts = text
            .split([' ', '\t', '*', '×'])
            .filter(|word| !word.is_empty() && *word != "x");
        Belief::product(
            parts
                .map(|word| parse_part(word, make))
                .collect::<Result<_, _>>()?,
        )
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[AnyFamily] {
        &self.parts
    }

    /// What model files call the one setting of a single family; `None` for a product.
    pub fn size_setting(&self) -> Option<&'static str> {
        match self.parts() {
            [one] => Some(with_family!(one, f => f.size()).setting),
            _ => None,
        }
    }

    /// In how many directions a belief can spread: its coordinates, less those that the others determine.
    pub fn freedom(&self) -> usize {
        self.parts()
            .iter()
            .map(|part| with_family!(part, f => f.freedom()))
            .sum()
    }

    /// How many natural parameters.
    pub fn dim(&self) -> usize {
        self.parts
            .iter()
            .map(|p| with_family!(p, f => f.dim()))
            .sum()
    }

    /// How many inputs of a network it makes.
    pub fn input_dim(&self, inputs: Inputs) -> usize {
        match inputs {
            Inputs::Natural => self.dim(),
            Inputs::Moments => self
                .parts
                .iter()
                .map(|p| with_family!(p, f => f.moments_dim()))
                .sum(),
        }
    }

    /// The natural parameters of the default prior.
    pub fn prior(&self) -> Vec<f64> {
        self.parts
            .iter()
            .flat_map(|p| with_family!(p, f => f.prior()))
            .collect()
    }

    /// Checks that natural parameters make a belief of this family.
    pub fn check(&self, eta: &[f64]) -> Result<(), FamilyError> {
        if eta.len() != self.dim() {
            return Err(FamilyError::Count {
                belief: self.to_string(),
                expected: self.dim(),
                found: eta.len(),
            });
        }
        let mut rest = eta;
        for part in &self.parts {
            let (own, others) = rest.split_at(with_family!(part, f => f.dim()));
            with_family!(part, f => f.check(own)).map_err(|why| FamilyError::Parameters {
                family: part.name().to_string(),
                why,
            })?;
            rest = others;
        }
        Ok(())
    }

    /// The log-normaliser `Φ(η)`.
    #[inline(always)]
    pub fn log_normalizer<R: Real>(&self, eta: &[R]) -> R {
        let mut sum = R::zero();
        let mut at = 0;
        for part in &self.parts {
            with_family!(part, f => {
                sum = sum + R::enter(f, LogNormalizer(&eta[at..at + f.dim()]));
                at += f.dim();
            });
        }
        sum
    }

    /// The log-normaliser and the mean parameters `μ = ∇Φ(η)`.
    #[inline(always)]
    pub fn mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> R {
        let mut sum = R::zero();
        let mut at = 0;
        for part in &self.parts {
            with_family!(part, f => {
                let span = at..at + f.dim();
                sum = sum + R::enter(f, Mean(&eta[span.clone()], &mut mean[span]));
                at += f.dim();
            });
        }
        sum
    }

    /// A valid message from raw network outputs.
    #[inline(always)]
    pub fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        let mut at = 0;
        for part in &self.parts {
            with_family!(part, f => {
                let span = at..at + f.dim();
                R::enter(f, Constrain(&raw[span.clone()], &mut message[span]));
                at += f.dim();
            });
        }
    }

    /// The gradient at the raw outputs from the gradient at the message.
    #[inline(always)]
    pub fn constrain_backward<R: Real>(&self, raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        let mut at = 0;
        for part in &self.parts {
            with_family!(part, f => {
                let span = at..at + f.dim();
                let (raw, grad) = (&raw[span.clone()], &grad_message[span.clone()]);
                R::enter(f, ConstrainBackward(raw, grad, &mut grad_raw[span]));
                at += f.dim();
            });
        }
    }

    /// A network's inputs: the sum of messages itself, or the moments of prior × messages.
    #[inline(always)]
    pub fn inputs<R: Real>(
        &self,
        inputs: Inputs,
        prior: &[R],
        sum: &[R],
        belief: &mut [R],
        features: &mut [R],
    ) {
        if inputs == Inputs::Natural {
            features.copy_from_slice(sum);
            return;
        }
        for i in 0..sum.len() {
            belief[i] = prior[i] + sum[i];
        }
        let (mut at, mut to) = (0, 0);
        for part in &self.parts {
            with_family!(part, f => {
                let belief = &belief[at..at + f.dim()];
                R::enter(f, Moments(belief, &mut features[to..to + f.moments_dim()]));
                at += f.dim();
                to += f.moments_dim();
            });
        }
    }

    /// The gradient at the sum of messages from the gradient at the inputs.
    #[inline(always)]
    pub fn inputs_backward<R: Real>(
        &self,
        inputs: Inputs,
        prior: &[R],
        sum: &[R],
        belief: &mut [R],
        grad_features: &[R],
        grad_sum: &mut [R],
    ) {
        if inputs == Inputs::Natural {
            grad_sum.copy_from_slice(grad_features);
            return;
        }
        for i in 0..sum.len() {
            belief[i] = prior[i] + sum[i];
        }
        let (mut at, mut to) = (0, 0);
        for part in &self.parts {
            with_family!(part, f => {
                let span = at..at + f.dim();
                let grad = &grad_features[to..to + f.moments_dim()];
                R::enter(f, MomentsBackward(&belief[span.clone()], grad, &mut grad_sum[span]));
                at += f.dim();
                to += f.moments_dim();
            });
        }
    }

    /// The belief in words.
    pub fn describe(&self, eta: &[f64]) -> Description {
        let (mut mean, mut sd, mut entropy) = (Vec::new(), Vec::new(), 0.0);
        let mut at = 0;
        for part in &self.parts {
            let description = with_family!(part, f => {
                let description = f.describe(&eta[at..at + f.dim()]);
                at += f.dim();
                description
            });
            mean.extend(description.mean);
            sd.extend(description.sd);
            entropy += description.entropy;
        }
        Description::new(mean, sd, entropy)
    }

    /// The divergence `KL(a ‖ b) = (η_a − η_b)·μ_a − Φ_a + Φ_b`, in nats.
    pub fn kl(&self, a: &[f64], b: &[f64]) -> f64 {
        let mut mean = vec![0.0; a.len()];
        let phi = self.mean(a, &mut mean);
        let along: f64 = a
            .iter()
            .zip(b)
            .zip(&mean)
            .map(|((a, b), m)| (a - b) * m)
            .sum();
        along - phi + self.log_normalizer(b)
    }
}

macro_rules! operations {
    ($($name:ident($($field:ident: $type:ty),*) -> $output:ty = |$f:ident| $body:expr;)*) => {$(
        struct $name<'a, R>($($type),*);
        impl<R: Real, F: Family> Operation<R, F> for $name<'_, R> {
            type Output = $output;
            #[inline(always)]
            fn apply(self, $f: &F) -> $output {
                let $name($($field),*) = self;
                $body
            }
        }
    )*};
}

operations! {
    LogNormalizer(eta: &'a [R]) -> R = |f| f.log_normalizer(eta);
    Mean(eta: &'a [R], mean: &'a mut [R]) -> R = |f| f.weight_and_mean(eta, mean).ln();
    Constrain(raw: &'a [R], message: &'a mut [R]) -> () = |f| f.constrain(raw, message);
    ConstrainBackward(raw: &'a [R], grad: &'a [R], grad_raw: &'a mut [R]) -> () = |f| f.constrain_backward(raw, grad, grad_raw);
    Moments(eta: &'a [R], moments: &'a mut [R]) -> () = |f| f.moments(eta, moments);
    MomentsBackward(eta: &'a [R], grad: &'a [R], grad_eta: &'a mut [R]) -> () = |f| f.moments_backward(eta, grad, grad_eta);
}

impl<F: Into<AnyFamily>> From<F> for Belief {
    fn from(family: F) -> Self {
        Belief {
            parts: vec![family.into()],
        }
    }
}

impl fmt::Display for Belief {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            let size = with_family!(part, f => f.size());
            write!(
                out,
                "{}{}({})",
                if i > 0 { " x " } else { "" },
                part.name(),
                size.value
            )?;
        }
        Ok(())
    }
}

impl FromStr for Belief {
    type Err = FamilyError;

    fn from_str(text: &str) -> Result<Self, FamilyError> {
        Belief::parse_with(text, &|_, _| Ok(None))
    }
}

fn parse_part(word: &str, make: &MakeFamily<'_>) -> Result<AnyFamily, FamilyError> {
    let (name, size) = match word.split_once('(') {
        None => (word, None),
        Some((name, rest)) => {
            let size = rest
                .strip_suffix(')')
                .and_then(|n| n.parse().ok())
                .ok_or_else(|| FamilyError::Size {
                    text: word.to_string(),
                })?;
            (name, Some(size))
        }
    };
    match AnyFamily::by_name(name, size) {
        Some(family) => Ok(family),
        None => make(name, size)?.ok_or_else(|| FamilyError::Unknown {
            name: name.to_string(),
        }),
    }
}

impl TryFrom<String> for Belief {
    type Error = FamilyError;
    fn try_from(text: String) -> Result<Self, FamilyError> {
        text.parse()
    }
}

impl From<Belief> for String {
    fn from(belief: Belief) -> String {
        belief.to_string()
    }
}
