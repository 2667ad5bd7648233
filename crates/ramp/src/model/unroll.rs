//! A chain's networks are tied over time: the same weights serve a chain of any length.

use super::{Model, ModelBuilder};
use crate::graph::{FactorTree, Tying};
use crate::{Error, Result};

impl Model {
    /// The same model on a longer or shorter chain. It needs networks tied by role and one family for all steps.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::{FactorTree, Tying}, model::Model};
    ///
    /// let tree = FactorTree::chain(3)?;
    /// let data = (1..=3).try_fold(Dataset::new(), |data, t| data.observe(format!("x{t}"), 1, vec![0.5; 4]))?;
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
        if self.spec.tying != Tying::Role || !self.tree.is_chain() {
            return wrong("its latents must follow one another and its networks be tied by role");
        }
        if !self.spec.priors.is_empty() || self.spec.families.windows(2).any(|w| w[0] != w[1]) {
            return wrong("its steps must have the same family and prior");
        }
        let first = self.tree.latents()[0];
        let mut series = vec![];
        let mut features = vec![];
        for (&v, &width) in self.tree.observations().iter().zip(&self.spec.features) {
            let factor = self.tree.factors_of(v)[0];
            if self.tree.variables_of(factor).contains(&first) {
                match self.tree.name(v).strip_suffix("@1") {
                    Some(name) => series.push(name.to_string()),
                    None if self.tree.name(v) == "x1" => {}
                    None => {
                        return wrong(
                            "its observations must be named x1, x2, … or heart@1, heart@2, …",
                        );
                    }
                }
                features.push(width);
            }
        }
        let tree = match series.is_empty() {
            true => FactorTree::chain(steps)?,
            false => FactorTree::sequence(steps, &series)?,
        };
        let mut spec = self.spec.clone();
        spec.describe_tree(&tree);
        spec.families = vec![self.spec.families[0].clone(); steps];
        spec.features = features.repeat(steps);
        let mut model = ModelBuilder::from_spec(spec)?
            .own_networks_of(self)
            .build_as_stored()?;
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
