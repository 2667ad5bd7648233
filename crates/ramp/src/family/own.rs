//! A family of one's own inside a belief: its formulas, compiled for every kind of lanes, behind a pointer.

use super::{Description, Family, FamilyError, NAMES, ParameterError, Size, Weight};
#[cfg(target_arch = "x86_64")]
use crate::kernel::lanes::{Avx2, Avx512};
use crate::kernel::lanes::{Lane, Portable};
use crate::kernel::real::{Operation, Real};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A user's own [`Family`] under a name, as part of a [`Belief`](super::Belief).
///
/// Its formulas run on the same lanes as the built-in ones and give the same numbers; every call goes through a pointer,
/// which makes the pairwise term a few times slower. Two are equal if they have the same name and size.
#[derive(Clone)]
pub struct OwnFamily {
    name: Arc<str>,
    facts: Arc<dyn Facts>,
    number: Arc<dyn OnLanes<f64>>,
    portable: Arc<dyn OnLanes<Lane<Portable>>>,
    #[cfg(target_arch = "x86_64")]
    avx2: Arc<dyn OnLanes<Lane<Avx2>>>,
    #[cfg(target_arch = "x86_64")]
    avx512: Arc<dyn OnLanes<Lane<Avx512>>>,
}

impl OwnFamily {
    /// A family under a name that no built-in one has; the name stands for it in stored models.
    pub fn new<F: Family + 'static>(name: &str, family: F) -> Result<Self, FamilyError> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name == "x" || !name.chars().all(is_word) {
            return Err(FamilyError::Name {
                name: name.to_string(),
            });
        }
        if NAMES.contains(&name) {
            return Err(FamilyError::Taken {
                name: name.to_string(),
            });
        }
        let family = Arc::new(family);
        Ok(OwnFamily {
            name: name.into(),
            facts: family.clone(),
            number: family.clone(),
            #[cfg(target_arch = "x86_64")]
            avx2: family.clone(),
            #[cfg(target_arch = "x86_64")]
            avx512: family.clone(),
            portable: family,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The formulas on lanes of one type.
    #[inline(always)]
    fn on<R: Real>(&self) -> &dyn OnLanes<R> {
        let kinds: &[&dyn Any] = &[
            &self.number,
            &self.portable,
            #[cfg(target_arch = "x86_64")]
            &self.avx2,
            #[cfg(target_arch = "x86_64")]
            &self.avx512,
        ];
        for kind in kinds {
            if let Some(formulas) = kind.downcast_ref::<Arc<dyn OnLanes<R>>>() {
                return &**formulas;
            }
        }
        unreachable!("`Real` is sealed: there are no other lanes")
    }
}

impl fmt::Debug for OwnFamily {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}({})", self.name, self.facts.size().value)
    }
}

impl PartialEq for OwnFamily {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.facts.size() == other.facts.size()
    }
}

impl Eq for OwnFamily {}

/// What a family says of itself, whatever the lanes.
trait Facts: Send + Sync {
    fn size(&self) -> Size;
    fn dim(&self) -> usize;
    fn moments_dim(&self) -> usize;
    fn freedom(&self) -> usize;
    fn prior(&self) -> Vec<f64>;
    fn check(&self, eta: &[f64]) -> Result<(), ParameterError>;
    fn describe(&self, eta: &[f64]) -> Description;
}

impl<F: Family> Facts for F {
    fn size(&self) -> Size {
        Family::size(self)
    }
    fn dim(&self) -> usize {
        Family::dim(self)
    }
    fn moments_dim(&self) -> usize {
        Family::moments_dim(self)
    }
    fn freedom(&self) -> usize {
        Family::freedom(self)
    }
    fn prior(&self) -> Vec<f64> {
        Family::prior(self)
    }
    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        Family::check(self, eta)
    }
    fn describe(&self, eta: &[f64]) -> Description {
        Family::describe(self, eta)
    }
}

/// A family's formulas on lanes of one type. Every call enters a function compiled for those lanes.
trait OnLanes<R>: Send + Sync {
    fn weight(&self, eta: &[R]) -> Weight<R>;
    fn weight_and_mean(&self, eta: &[R], mean: &mut [R]) -> Weight<R>;
    fn constrain(&self, raw: &[R], message: &mut [R]);
    fn constrain_backward(&self, raw: &[R], grad_message: &[R], grad_raw: &mut [R]);
    fn moments(&self, eta: &[R], moments: &mut [R]);
    fn moments_backward(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]);
}

macro_rules! formulas {
    ($($operation:ident = $method:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        $(
            struct $operation<'a, R>($($type),*);
            impl<'a, R: Real, F: Family> Operation<R, F> for $operation<'a, R> {
                type Output = $output;
                #[inline(always)]
                fn apply(self, family: &F) -> $output {
                    let $operation($($argument),*) = self;
                    Family::$method(family, $($argument),*)
                }
            }
        )*
        impl<R: Real, F: Family> OnLanes<R> for F {
            $(
                fn $method<'a>(&self, $($argument: $type),*) -> $output {
                    R::enter(self, $operation($($argument),*))
                }
            )*
        }
    };
}

formulas! {
    Weighing = weight(eta: &'a [R]) -> Weight<R>;
    WeighingMeans = weight_and_mean(eta: &'a [R], mean: &'a mut [R]) -> Weight<R>;
    Constraining = constrain(raw: &'a [R], message: &'a mut [R]) -> ();
    ConstrainingBack = constrain_backward(raw: &'a [R], grad_message: &'a [R], grad_raw: &'a mut [R]) -> ();
    Moments = moments(eta: &'a [R], moments: &'a mut [R]) -> ();
    MomentsBack = moments_backward(eta: &'a [R], grad_moments: &'a [R], grad_eta: &'a mut [R]) -> ();
}

impl Family for OwnFamily {
    const FIXED_DIMS: &'static [usize] = &[];

    fn size(&self) -> Size {
        self.facts.size()
    }
    fn dim(&self) -> usize {
        self.facts.dim()
    }
    fn moments_dim(&self) -> usize {
        self.facts.moments_dim()
    }
    fn freedom(&self) -> usize {
        self.facts.freedom()
    }
    fn prior(&self) -> Vec<f64> {
        self.facts.prior()
    }
    fn check(&self, eta: &[f64]) -> Result<(), ParameterError> {
        self.facts.check(eta)
    }
    fn describe(&self, eta: &[f64]) -> Description {
        self.facts.describe(eta)
    }
    #[inline(always)]
    fn weight<R: Real>(&self, eta: &[R]) -> Weight<R> {
        self.on::<R>().weight(eta)
    }
    #[inline(always)]
    fn weight_and_mean<R: Real>(&self, eta: &[R], mean: &mut [R]) -> Weight<R> {
        self.on::<R>().weight_and_mean(eta, mean)
    }
    #[inline(always)]
    fn constrain<R: Real>(&self, raw: &[R], message: &mut [R]) {
        self.on::<R>().constrain(raw, message);
    }
    #[inline(always)]
    fn constrain_backward<R: Real>(&self, raw: &[R], grad_message: &[R], grad_raw: &mut [R]) {
        self.on::<R>()
            .constrain_backward(raw, grad_message, grad_raw);
    }
    #[inline(always)]
    fn moments<R: Real>(&self, eta: &[R], moments: &mut [R]) {
        self.on::<R>().moments(eta, moments);
    }
    #[inline(always)]
    fn moments_backward<R: Real>(&self, eta: &[R], grad_moments: &[R], grad_eta: &mut [R]) {
        self.on::<R>().moments_backward(eta, grad_moments, grad_eta);
    }
}
