//! Filtering online: what is known about the present of a sequence, one step after the other.

use super::InferError;
use crate::family::{Belief, Description};
use crate::model::{ChainStep, Model};
use crate::{Error, Result};
use std::sync::Arc;

/// The belief about the present of one sequence, given all that has been seen of it so far.
///
/// It holds a copy of the model's networks and one forward message: time and memory per step do not grow. Its beliefs are
/// those of [`Model::filtered`], which sees whole sequences.
///
/// ```
/// use ramp::{data::Dataset, graph::{FactorTree, Tying}, infer::Filter, model::Model};
///
/// let data = Dataset::new().observe_sequence("x", 3, 1, vec![0.5; 12])?;
/// let model = Model::builder(FactorTree::chain(3)?).tying(Tying::Role).build(&data)?;
/// let mut filter = Filter::new(&model)?;
/// for observation in [Some(0.5), None, Some(-1.0), Some(2.0)] {
///     let belief = filter.step(&[observation.as_ref().map(std::slice::from_ref)])?;
///     println!("{} ± {}", belief.describe().mean[0], belief.describe().sd[0]);
/// }
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone)]
pub struct Filter {
    step: Arc<ChainStep>,
    /// What the past says, plane by plane; zeros while nothing has been seen.
    carried: Vec<f32>,
    /// Whether anything has been seen.
    begun: bool,
}

/// A belief about one latent of one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct PointBelief {
    belief: Belief,
    eta: Vec<f64>,
}

impl PointBelief {
    /// Its family.
    pub fn family(&self) -> &Belief {
        &self.belief
    }

    /// Its natural parameters.
    pub fn natural(&self) -> &[f64] {
        &self.eta
    }

    /// The belief in words.
    pub fn describe(&self) -> Description {
        self.belief.describe(&self.eta)
    }
}

impl Filter {
    /// A filter that has seen nothing. The model is a chain with networks tied over time.
    pub fn new(model: &Model) -> Result<Self> {
        let step = ChainStep::new(model)?.ok_or(InferError::NotAChain)?;
        Ok(Filter {
            carried: step.no_messages(),
            step: Arc::new(step),
            begun: false,
        })
    }

    /// Forgets everything: the next step is the first of another sequence.
    pub fn reset(&mut self) {
        self.carried.fill(0.0);
        self.begun = false;
    }

    /// The belief about the present, given its observations, in the order of the chain's series, and the past. `None` is
    /// missing.
    pub fn step(&mut self, observations: &[Option<&[f32]>]) -> Result<PointBelief> {
        let (expected, found) = (self.step.series(), observations.len());
        if expected != found {
            return Err(InferError::StepObservations { expected, found }.into());
        }
        let mut sum = self.carried.clone();
        let mut begun = self.begun;
        for (series, observation) in observations.iter().enumerate() {
            let Some(values) = observation else { continue };
            let (expected, found) = (self.step.features(series), values.len());
            if expected != found || !values.iter().all(|x| x.is_finite()) {
                return Err(InferError::StepNumbers { expected, found }.into());
            }
            let message = self.step.observe(series, values);
            sum.iter_mut().zip(&message).for_each(|(s, m)| *s += m);
            begun = true;
        }
        let eta = self.step.belief(&sum);
        if !eta.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: "the filtered belief".into(),
            });
        }
        if begun {
            self.carried = self.step.advance(&sum);
            self.begun = true;
        }
        Ok(PointBelief {
            belief: self.step.family().clone(),
            eta,
        })
    }
}
