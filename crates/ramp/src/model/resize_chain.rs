//! A chain's networks are tied over time: the same weights serve a chain of any length.

use super::{Model, ModelBuilder, TreeSpec};
use crate::graph::Tying;
use crate::{Error, Result};

impl Model {
    /// The same model on a longer or shorter chain. It needs a time axis, networks tied by role and one prior for all steps.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::{FactorTree, Tying}, model::Model};
    ///
    /// let tree = FactorTree::chain(3)?;
    /// let data = Dataset::new().observe_sequence("x", 3, 1, vec![0.5; 12])?;
    /// let model = Model::builder(tree).tying(Tying::Role).build(&data)?;
    /// let longer = model.unrolled(10)?;
    /// assert_eq!(longer.tree().latents().len(), 10);
    /// assert_eq!(longer.parameters(), model.parameters());
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn unrolled(&self, steps: usize) -> Result<Model> {
        let wrong = |why: &str| {
            Err(Error::Invalid(format!(
                "the chain cannot be unrolled: {why}"
            )))
        };
        let mut spec = self.spec.clone();
        match &mut spec.tree {
            TreeSpec::Chain { steps: all, .. } if self.spec.tying == Tying::Role => *all = steps,
            _ => return wrong("its tree must be a chain in time and its networks be tied by role"),
        }
        if !spec.priors.is_empty() {
            return wrong("its steps must have the same prior");
        }
        let mut model = ModelBuilder::from_spec(spec)?.build_as_stored()?;
        if model.parameters.len() != self.parameters.len() {
            return wrong("a longer chain has other networks");
        }
        // Keys are numbered by first use, which a single step may change.
        for slot in &model.networks {
            let Some(from) = self.networks.iter().find(|n| n.key == slot.key) else {
                return wrong("a longer chain has other networks");
            };
            model.parameters[slot.span.clone()]
                .copy_from_slice(&self.parameters[from.span.clone()]);
        }
        Ok(model)
    }
}
