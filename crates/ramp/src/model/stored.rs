//! A model in a file: its settings and its weights, nothing that can execute on load.

use super::spec::check_version;
use super::{ArrayProblem, Model, ModelBuilder, ModelError, ModelSpec};
use crate::Result;
use crate::family::{AnyFamily, Belief, FamilyError, OwnFamily};
use crate::network::Network;
use crate::storage::{read_tensors, write_tensors};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// Makes a family of one's own of a given size.
type MakeFamily = Box<dyn Fn(usize) -> Result<OwnFamily, FamilyError>>;

/// What a stored model does not hold: networks and families of one's own, given again by name when it is loaded.
///
/// ```
/// use ramp::model::{Model, Registry};
/// # use ramp::{data::Dataset, graph::FactorTree};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("model.safetensors");
/// # let tree = FactorTree::from_newick("(x1,x2,x3)z;")?;
/// # let data = (1..=3).try_fold(Dataset::new(), |data, i| data.observe(format!("x{i}"), 1, vec![0.5; 4]))?;
/// # Model::builder(tree).build(&data)?.save(&path)?;
/// // A model without any needs none: this is what `Model::load(&path)` does.
/// let model = Model::load_with(&path, Registry::new())?;
/// # assert_eq!(model.tree().latents().len(), 1);
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct Registry {
    networks: HashMap<String, Box<dyn Network>>,
    families: HashMap<String, MakeFamily>,
}

impl Registry {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The network of one key, as [`ModelBuilder::own_network`] got it.
    pub fn network(mut self, key: impl Into<String>, network: Box<dyn Network>) -> Self {
        self.networks.insert(key.into(), network);
        self
    }

    /// The family of one name: how to make one of the stored size.
    pub fn family<F: crate::family::Family + 'static>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(usize) -> F + 'static,
    ) -> Self {
        let name = name.into();
        let own = name.clone();
        let make = move |size| OwnFamily::new(&own, make(size));
        self.families.insert(name, Box::new(make));
        self
    }

    /// A belief as it was written, with families of one's own.
    fn belief(&self, text: &str) -> Result<Belief> {
        let make = |name: &str, size: Option<usize>| match self.families.get(name) {
            None => Ok(None),
            Some(make) => make(size.unwrap_or(1)).map(|own| Some(AnyFamily::Own(own))),
        };
        let belief = match Belief::parse_with(text, &make) {
            Err(FamilyError::Unknown { name }) => {
                return Err(ModelError::MissingFamily { name }.into());
            }
            belief => belief?,
        };
        match belief.to_string() {
            same if same == text => Ok(belief),
            found => Err(ModelError::OtherFamily {
                found,
                stored: text.to_string(),
            }
            .into()),
        }
    }
}

/// What stands beside the weights. A run folder's file has more in it.
#[derive(Serialize, Deserialize)]
struct Header {
    /// The form of this header.
    version: u32,
    /// The version of the software that wrote it.
    software: String,
    model: serde_json::Value,
}

/// The form of the header.
const VERSION: u32 = 1;

impl Model {
    /// Writes settings and weights to a safetensors file, whole or not at all. Networks and families of one's own are kept
    /// by name: [`Model::load_with`] asks for them again.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::FactorTree, model::Model};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("model.safetensors");
    /// let tree = FactorTree::from_newick("(x1,x2,x3)z;")?;
    /// let data = (1..=3).try_fold(Dataset::new(), |data, i| data.observe(format!("x{i}"), 1, vec![0.5; 4]))?;
    /// let model = Model::builder(tree).build(&data)?;
    /// model.save(&path)?;
    /// let same = Model::load(&path)?;
    /// assert_eq!(same.parameters(), model.parameters());
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let settings = |e: serde_json::Error| ModelError::Settings {
            reason: e.to_string(),
        };
        let header = Header {
            version: VERSION,
            software: env!("CARGO_PKG_VERSION").into(),
            model: serde_json::to_value(&self.spec).map_err(settings)?,
        };
        let text = serde_json::to_string(&header).map_err(settings)?;
        let arrays = self
            .named_parameters()
            .into_iter()
            .map(|(name, shape, span)| (name, shape, self.parameters[span].into()))
            .collect();
        Ok(write_tensors(path.as_ref(), arrays, &text)?)
    }

    /// Reads a model that [`Model::save`] wrote and that has no networks or families of one's own.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        Model::load_with(path, Registry::new())
    }

    /// Reads a model that [`Model::save`] wrote, with networks and families of one's own from a registry.
    pub fn load_with(path: impl AsRef<Path>, registry: Registry) -> Result<Model> {
        let path = path.as_ref();
        let Some(stored) = read_tensors(path)? else {
            return Err(ModelError::NoFile { path: path.into() }.into());
        };
        let no_model = |reason: String| ModelError::NoModel {
            path: path.into(),
            reason,
        };
        let mut header: Header =
            serde_json::from_str(&stored.text).map_err(|e| no_model(e.to_string()))?;
        if header.version > VERSION {
            return Err(ModelError::Newer {
                found: header.version,
                known: VERSION,
            }
            .into());
        }
        let found = header.model.get("version").and_then(|v| v.as_u64());
        match found.and_then(|v| u32::try_from(v).ok()) {
            Some(found) => check_version(found)?,
            None => return Err(no_model("it has no version".into()).into()),
        }
        let mut arrays = stored.arrays()?.single;
        // Families of one's own are no text that can be read without the registry: they come apart from the rest.
        let families = match header.model.get_mut("families") {
            Some(families) => std::mem::replace(families, serde_json::Value::Array(vec![])),
            None => return Err(no_model("it has no families".into()).into()),
        };
        let families: Vec<String> =
            serde_json::from_value(families).map_err(|e| no_model(e.to_string()))?;
        let mut spec: ModelSpec =
            serde_json::from_value(header.model).map_err(|e| no_model(e.to_string()))?;
        spec.families = families
            .iter()
            .map(|text| registry.belief(text))
            .collect::<Result<_>>()?;
        let own_keys = spec.own_networks.clone();
        let there = arrays.values().map(Vec::len).sum();
        let mut builder = ModelBuilder::from_spec(spec)?.stored_parameters(there);
        let mut networks = registry.networks;
        for key in own_keys {
            match networks.remove(&key) {
                Some(network) => builder = builder.own_network(key, network),
                None => return Err(ModelError::MissingNetwork { key }.into()),
            }
        }
        let mut model = builder.build_as_stored()?;
        let wrong = |problem: ArrayProblem, array: String| ModelError::Array {
            path: path.into(),
            problem,
            array,
        };
        for (name, _, span) in model.named_parameters() {
            match arrays.remove(&name) {
                None => return Err(wrong(ArrayProblem::Missing, name).into()),
                Some(values) if values.len() != span.len() => {
                    return Err(wrong(ArrayProblem::Length, name).into());
                }
                Some(values) if !values.iter().all(|x| x.is_finite()) => {
                    return Err(wrong(ArrayProblem::NotFinite, name).into());
                }
                Some(values) => model.parameters[span].copy_from_slice(&values),
            }
        }
        match arrays.into_keys().min() {
            Some(name) => Err(wrong(ArrayProblem::Unknown, name).into()),
            None => Ok(model),
        }
    }
}
