//! A chain's networks are tied over time: the same weights serve a chain of any length.

use super::{Model, ModelBuilder, ModelError, TreeSpec};
use crate::Result;
use crate::graph::Tying;

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
        let mut spec = self.spec.clone();
        match &mut spec.tree {
            TreeSpec::Chain { steps: all, .. } if self.spec.tying == Tying::Role => *all = steps,
            _ => return Err(ModelError::NotUnrollable.into()),
        }
        if !spec.priors.is_empty() {
            return Err(ModelError::StepPriors.into());
        }
        let mut model = ModelBuilder::from_spec(spec)?
            .own_networks_of(self)
            .build_as_stored()?;
        if model.parameters.len() != self.parameters.len() {
            return Err(ModelError::OtherNetworks.into());
        }
        // Keys are numbered by first use, which a single step may change.
        for slot in &model.networks {
            let Some(from) = self.networks.iter().find(|n| n.key == slot.key) else {
                return Err(ModelError::OtherNetworks.into());
            };
            model.parameters[slot.span.clone()]
                .copy_from_slice(&self.parameters[from.span.clone()]);
        }
        Ok(model)
    }
}
