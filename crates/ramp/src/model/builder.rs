//! Building a model: settings with good defaults, checked all at once.

use super::plan::{Plan, Source};
use super::{Initialisation, Model, ModelError, ModelSpec, NetworkSlot};
use crate::Result;
use crate::data::Dataset;
use crate::family::{Belief, Inputs};
use crate::graph::{FactorTree, Tying};
use crate::message::Node;
use crate::network::{Network, NetworkSpec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::sync::Arc;

/// What a network's last weights, and so its outputs, are multiplied with to begin [`Initialisation::ScaledDown`].
const SCALED_DOWN: f32 = 0.2;

/// The most weights of a model: a gigabyte, which training needs several times over. More is a slip of the pen.
const MOST_PARAMETERS: usize = 1 << 28;
/// The most natural parameters of all latents together: every sample has as many, several times over.
const MOST_NUMBERS: usize = 1 << 24;

/// Settings of a model; [`ModelBuilder::build`] checks them against each other and the data.
///
/// ```
/// use ramp::{data::Dataset, graph::FactorTree, model::Model};
///
/// let tree = FactorTree::from_newick("((q1,q2)calm,(q3,q4)kind)mood;")?;
/// let mut data = Dataset::new();
/// for q in ["q1", "q2", "q3", "q4"] {
///     data = data.observe(q, 1, vec![0.5; 10])?;
/// }
/// let model = Model::builder(tree).families("gaussian(2)")?.family("kind", "categorical(3)")?.build(&data)?;
/// assert_eq!(model.beliefs().map(|b| b.dim()).collect::<Vec<_>>(), [5, 5, 3]);
/// # Ok::<(), ramp::Error>(())
/// ```
#[must_use = "a builder makes a model only when it is built"]
pub struct ModelBuilder {
    tree: FactorTree,
    spec: ModelSpec,
    own: HashMap<String, Arc<dyn Network>>,
    most: usize,
}

impl ModelBuilder {
    pub(super) fn new(tree: FactorTree) -> Self {
        let spec = ModelSpec::new(&tree);
        ModelBuilder {
            tree,
            spec,
            own: HashMap::new(),
            most: MOST_PARAMETERS,
        }
    }

    /// Settings as they were stored.
    pub fn from_spec(spec: ModelSpec) -> Result<Self> {
        let tree = spec.tree()?;
        Ok(ModelBuilder {
            tree,
            spec,
            own: HashMap::new(),
            most: MOST_PARAMETERS,
        })
    }

    /// Says how many numbers a file has for the weights: for many more than these no memory is taken.
    pub fn stored_parameters(mut self, there: usize) -> Self {
        // Room for a sentence about the array that is missing or too short.
        let most = there.saturating_mul(2).saturating_add(1 << 20);
        self.most = most.min(MOST_PARAMETERS);
        self
    }

    /// The family of every latent, such as `gaussian(2)`; one-dimensional Gaussians by default.
    pub fn families(mut self, family: &str) -> Result<Self> {
        let belief: Belief = family.parse()?;
        self.spec.families = vec![belief];
        Ok(self)
    }

    /// The family of one latent.
    pub fn family(mut self, latent: &str, family: &str) -> Result<Self> {
        let k = self.latent(latent)?;
        self.spec.families = self.spec.each_family(self.tree.latents().len());
        self.spec.families[k] = family.parse()?;
        Ok(self)
    }

    /// The family of every latent: a product, or one of your own ([`Belief::own`]).
    pub fn beliefs(mut self, belief: Belief) -> Self {
        self.spec.families.fill(belief);
        self
    }

    /// The family of one latent: a product, or one of your own.
    pub fn belief(mut self, latent: &str, belief: Belief) -> Result<Self> {
        let k = self.latent(latent)?;
        self.spec.families = self.spec.each_family(self.tree.latents().len());
        self.spec.families[k] = belief;
        Ok(self)
    }

    /// The natural parameters of one latent's prior, in place of its family's default.
    pub fn prior(mut self, latent: &str, eta: Vec<f64>) -> Result<Self> {
        self.latent(latent)?;
        self.spec.priors.insert(latent.to_string(), eta);
        Ok(self)
    }

    fn latent(&self, name: &str) -> Result<usize> {
        let v = self.tree.find(name)?;
        self.tree
            .latents()
            .iter()
            .position(|&l| l == v)
            .ok_or_else(|| {
                ModelError::NotALatent {
                    name: name.to_string(),
                }
                .into()
            })
    }

    /// Which messages share a network; none by default.
    pub fn tying(mut self, tying: Tying) -> Self {
        self.spec.tying = tying;
        self
    }

    /// How beliefs are parametrised as inputs of networks.
    pub fn inputs(mut self, inputs: Inputs) -> Self {
        self.spec.inputs = inputs;
        self
    }

    /// The network from beliefs to messages; a tanh perceptron with two hidden layers of 32 by default.
    pub fn message_network(mut self, network: NetworkSpec) -> Self {
        self.spec.message = network;
        self
    }

    /// The network from an observation to a message; as for beliefs by default.
    pub fn observation_network(mut self, network: NetworkSpec) -> Self {
        self.spec.observation = network;
        self
    }

    /// The network of one key (see [`Tying`]), in place of the general one.
    pub fn network(mut self, key: impl Into<String>, network: NetworkSpec) -> Self {
        self.spec.networks.insert(key.into(), network);
        self
    }

    /// A network of your own for one key. A stored model holds its weights and its key; [`Model::load_with`] asks for it.
    pub fn own_network(mut self, key: impl Into<String>, network: Box<dyn Network>) -> Self {
        self.own.insert(key.into(), network.into());
        self
    }

    /// The networks of one's own of another model.
    pub(super) fn own_networks_of(mut self, model: &Model) -> Self {
        let own = model.networks.iter().filter(|slot| slot.own);
        self.own
            .extend(own.map(|slot| (slot.key.clone(), slot.network.clone())));
        self
    }

    /// Whether networks of the same shape begin with the same weights; they do by default.
    pub fn init(mut self, init: Initialisation) -> Self {
        self.spec.init = init;
        self
    }

    /// The seed of the initial weights.
    pub fn seed(mut self, seed: u64) -> Self {
        self.spec.seed = seed;
        self
    }

    /// Builds the model for observations like those of a data set.
    pub fn build(mut self, data: &Dataset) -> Result<Model> {
        self.spec.features = match self.tree.time_axis() {
            Some(time) => time
                .series()
                .iter()
                .map(|series| Ok(data.sequence(series)?.features()))
                .collect::<Result<_>>()?,
            None => self
                .tree
                .observations()
                .iter()
                .map(|&v| Ok(data.single(self.tree.name(v))?.features()))
                .collect::<Result<_>>()?,
        };
        self.build_as_stored()
    }

    /// Builds the model with the observations' sizes of a stored spec.
    pub fn build_as_stored(self) -> Result<Model> {
        let ModelBuilder {
            tree,
            mut spec,
            mut own,
            most,
        } = self;
        if let Some(key) = spec.own_networks.iter().find(|key| !own.contains_key(*key)) {
            return Err(ModelError::MissingNetwork { key: key.clone() }.into());
        }
        spec.own_networks = own.keys().cloned().collect();
        spec.own_networks.sort();
        let families = spec.each_family(tree.latents().len());
        let features = spec.each_features();
        if features.len() != tree.observations().len() || families.len() != tree.latents().len() {
            return Err(ModelError::Sizes {
                features: features.len(),
                families: families.len(),
                observations: tree.observations().len(),
                latents: tree.latents().len(),
            }
            .into());
        }
        let alike = families.windows(2).all(|w| w[0] == w[1]);
        if tree.time_axis().is_some() && !alike {
            return Err(ModelError::StepFamilies.into());
        }
        if alike {
            spec.families.truncate(1);
        }
        let numbers = families.iter().map(Belief::dim).sum();
        if numbers > MOST_NUMBERS {
            return Err(ModelError::TooManyNumbers {
                latents: families.len(),
                numbers,
                most: MOST_NUMBERS,
            }
            .into());
        }
        let (tree, spec) = (&tree, &spec);
        let nodes: Vec<Node> = tree
            .latents()
            .iter()
            .zip(&families)
            .map(|(&v, belief)| {
                let prior = spec
                    .priors
                    .get(tree.name(v))
                    .cloned()
                    .unwrap_or_else(|| belief.prior());
                belief.check(&prior).map_err(|source| ModelError::Prior {
                    latent: tree.name(v).to_string(),
                    source,
                })?;
                let mut incoming = tree.messages_into(v);
                let (count, first) = (incoming.len(), incoming.next().map_or(0, |m| m.index()));
                Ok(Node {
                    belief: belief.clone(),
                    prior,
                    messages: first..first + count,
                })
            })
            .collect::<Result<_>>()?;
        let assignment = spec.tying.assign(tree);
        let plan = Plan::new(tree, &families, &features, spec.inputs, &assignment)?;

        for key in spec.networks.keys().chain(own.keys()) {
            if !assignment.keys.contains(key) {
                return Err(ModelError::UnknownNetwork {
                    key: key.clone(),
                    keys: assignment.keys,
                }
                .into());
            }
        }
        let mut networks = vec![];
        let mut end = 0;
        for (i, (key, &(inputs, outputs))) in assignment.keys.iter().zip(&plan.shapes).enumerate() {
            let first = assignment
                .of_message
                .iter()
                .position(|&n| n == i)
                .unwrap_or(0);
            let observes = plan.sources[first]
                .iter()
                .all(|s| matches!(s, Source::Observation { .. }));
            let is_own = own.contains_key(key);
            let network = match (own.remove(key), spec.networks.get(key)) {
                (Some(network), _) => network,
                (None, Some(special)) => special.build(inputs, outputs)?.into(),
                (None, None) if observes => spec.observation.build(inputs, outputs)?.into(),
                (None, None) => spec.message.build(inputs, outputs)?.into(),
            };
            if (network.inputs(), network.outputs()) != (inputs, outputs) {
                return Err(ModelError::NetworkShape {
                    key: key.clone(),
                    from: network.inputs(),
                    to: network.outputs(),
                    inputs,
                    outputs,
                }
                .into());
            }
            let start = end;
            end += network.parameters().iter().map(|p| p.len()).sum::<usize>();
            if end > most {
                return Err(ModelError::TooManyParameters {
                    networks: assignment.keys.len(),
                    most,
                }
                .into());
            }
            networks.push(NetworkSlot {
                key: key.clone(),
                network,
                own: is_own,
                span: start..end,
            });
        }
        let mut parameters = vec![0.0; end];
        for (i, slot) in networks.iter().enumerate() {
            let mut rng = ChaCha8Rng::seed_from_u64(spec.seed);
            // A stream per network where they differ: adding one does not change the others' start.
            // The networks of a chain always differ: forward and backward ones that begin alike would stay alike wherever
            // the data look the same when played backwards.
            rng.set_stream(match spec.init {
                _ if tree.is_chain() => i as u64,
                Initialisation::Shared | Initialisation::ScaledDown | Initialisation::Factors => 0,
                Initialisation::Independent | Initialisation::Dynamics => i as u64,
            });
            let own = &mut parameters[slot.span.clone()];
            slot.network.initialize(&mut rng, own);
            if spec.init == Initialisation::ScaledDown
                && let Some(layout) = slot.network.layout()
            {
                own[layout.last.span()]
                    .iter_mut()
                    .for_each(|w| *w *= SCALED_DOWN);
            }
        }
        Ok(Model {
            inputs: spec.inputs,
            features,
            tree: tree.clone(),
            spec: spec.clone(),
            nodes,
            plan,
            networks,
            parameters,
        })
    }
}
