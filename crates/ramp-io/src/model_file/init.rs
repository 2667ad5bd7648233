//! How networks begin, by what the model file says.

use super::file::{ModelFile, ObservationKind, TreeSettings};
use ramp::family::Belief;
use ramp::graph::Tying;
use ramp::model::Initialisation;

impl ModelFile {
    /// Whether a linear factor model of the tree is a start: latents are Gaussian, edges pairs, and every message has its own network.
    pub fn has_factors(&self) -> bool {
        let mut families = self.latents.each.values().chain([&self.latents.family]);
        let pairs = match &self.tree {
            TreeSettings::Factors(factors) => factors.iter().all(|f| f.len() == 2),
            TreeSettings::Chain(_) => false,
            _ => true,
        };
        let gaussian = |family: &Belief| {
            let name = family.to_string();
            name.split('(').next() == Some("gaussian") && !name.contains(" x ")
        };
        families.all(gaussian)
            && pairs
            && matches!(self.networks.tying, None | Some(Tying::Separate))
    }

    /// Whether observations are, or in arrays may be, images, of which a linear model says little.
    fn may_have_images(&self) -> bool {
        let mut kinds = self.observations.values().map(|o| o.kind);
        let ending = self.data.file.as_ref().and_then(|f| f.extension());
        kinds.any(|k| k == Some(ObservationKind::Image))
            || ending.is_some_and(|e| e == "npz" || e == "npy")
    }

    /// How the networks begin.
    pub fn init(&self) -> Initialisation {
        let usual = match self.chain() {
            Some(_) => Initialisation::Dynamics,
            None if self.has_factors() && !self.may_have_images() => Initialisation::Factors,
            None => Initialisation::Shared,
        };
        self.networks.init.unwrap_or(usual)
    }
}
