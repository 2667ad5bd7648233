//! The tree compiled into stages: which network turns which inputs into which messages, and in which order.

use super::ModelError;
use crate::family::{Belief, Inputs};
use crate::graph::{FactorTree, MessageId, NetworkAssignment, Schedule};

/// From this many incoming messages on, sums over all but one are taken as the total minus the one.
const TOTAL_FROM: usize = 16;

/// Up to this many features an observation is transposed into feature-major layout; wider ones stay row by row.
pub(super) const NARROW: usize = 32;

/// One variable that a message is computed from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A belief: the sum of these messages, or the total into a latent minus one of them.
    Belief { latent: usize, terms: Terms },
    /// An observation; `flag` adds an input that says whether it is there.
    Observation {
        index: usize,
        features: usize,
        flag: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Terms {
    Sum(Vec<u32>),
    TotalBut(u32),
}

/// Messages that one network computes together.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub level: usize,
    pub network: usize,
    pub messages: Vec<u32>,
    /// Whether the only input is a wide observation, handed on row by row.
    pub wide: bool,
}

/// What the forward and backward passes follow.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub stages: Vec<Stage>,
    /// For every message, its sources in order.
    pub sources: Vec<Vec<Source>>,
    /// For every message, the latent it goes to.
    pub target: Vec<usize>,
    /// Where a message's natural parameters start among those of all messages, and the end.
    pub starts: Vec<usize>,
    /// Latents with a running total, by the level after which it is complete.
    pub totals: Vec<Vec<usize>>,
    /// Where a latent's total lies among all totals, if it has one.
    pub total_start: Vec<Option<usize>>,
    /// Natural parameters of all totals together.
    pub total_len: usize,
    /// Inputs and outputs of every network.
    pub shapes: Vec<(usize, usize)>,
}

impl Plan {
    pub fn new(
        tree: &FactorTree,
        beliefs: &[Belief],
        features: &[usize],
        inputs: Inputs,
        networks: &NetworkAssignment,
    ) -> Result<Plan, ModelError> {
        let schedule = Schedule::plan(tree, &networks.of_message);
        let mut latent_of = vec![usize::MAX; tree.variable_count()];
        tree.latents()
            .iter()
            .enumerate()
            .for_each(|(k, v)| latent_of[v.index()] = k);
        let mut observation_of = vec![usize::MAX; tree.variable_count()];
        tree.observations()
            .iter()
            .enumerate()
            .for_each(|(i, v)| observation_of[v.index()] = i);

        let target: Vec<usize> = tree
            .messages()
            .map(|m| latent_of[tree.message_target(m).index()])
            .collect();
        let mut starts = vec![0];
        for &k in &target {
            starts.push(starts[starts.len() - 1] + beliefs[k].dim());
        }

        let mut level_of = vec![0; target.len()];
        for stage in &schedule.stages {
            stage
                .messages
                .iter()
                .for_each(|m| level_of[m.index()] = stage.level);
        }
        // A total is of use to messages that come after all of its parts.
        let ready: Vec<Option<usize>> = tree
            .latents()
            .iter()
            .map(|&v| {
                let incoming = tree.messages_into(v);
                (incoming.len() >= TOTAL_FROM)
                    .then(|| incoming.map(|m| level_of[m.index()]).max().unwrap_or(0))
            })
            .collect();

        let sources: Vec<Vec<Source>> = tree
            .messages()
            .map(|m| {
                message_sources(
                    tree,
                    m,
                    level_of[m.index()],
                    &ready,
                    &latent_of,
                    &observation_of,
                    features,
                )
            })
            .collect();

        let mut totals = vec![vec![]; schedule.levels()];
        let mut total_start = vec![None; beliefs.len()];
        let mut total_len = 0;
        for (k, level) in ready.iter().enumerate() {
            if let Some(level) = level {
                totals[*level].push(k);
                total_start[k] = Some(total_len);
                total_len += beliefs[k].dim();
            }
        }

        let mut shapes = vec![None; networks.keys.len()];
        for m in tree.messages() {
            let inputs = sources[m.index()]
                .iter()
                .map(|s| match s {
                    Source::Belief { latent, .. } => beliefs[*latent].input_dim(inputs),
                    Source::Observation { features, flag, .. } => features + usize::from(*flag),
                })
                .sum::<usize>();
            let shape = (inputs, beliefs[target[m.index()]].dim());
            let network = networks.of_message[m.index()];
            match shapes[network] {
                None => shapes[network] = Some((shape, m)),
                Some((first, _)) if first == shape => {}
                Some((first, other)) => {
                    return Err(ModelError::SharedShape {
                        first: tree.message_name(other),
                        second: tree.message_name(m),
                        network: networks.keys[network].clone(),
                        first_shape: first,
                        second_shape: shape,
                    });
                }
            }
        }

        let stages = schedule
            .stages
            .iter()
            .map(|stage| Stage {
                level: stage.level,
                network: stage.network,
                messages: stage.messages.iter().map(|m| m.index() as u32).collect(),
                wide: stage.messages.iter().all(|m| {
                    matches!(
                        sources[m.index()][..],
                        [Source::Observation { features, flag: false, .. }] if features > NARROW
                    )
                }),
            })
            .collect();
        Ok(Plan {
            stages,
            sources,
            target,
            starts,
            totals,
            total_start,
            total_len,
            shapes: shapes
                .into_iter()
                .flatten()
                .map(|(shape, _)| shape)
                .collect(),
        })
    }

    /// Natural parameters of all messages of one sample.
    pub fn width(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }
}

fn message_sources(
    tree: &FactorTree,
    message: MessageId,
    level: usize,
    ready: &[Option<usize>],
    latent_of: &[usize],
    observation_of: &[usize],
    features: &[usize],
) -> Vec<Source> {
    let factor = tree.message_factor(message);
    // In a factor of several sources a missing observation must be told apart from a zero.
    let crowded = tree.variables_of(factor).len() > 2;
    tree.sources(message)
        .map(|v| {
            if !tree.is_latent(v) {
                let index = observation_of[v.index()];
                return Source::Observation {
                    index,
                    features: features[index],
                    flag: crowded,
                };
            }
            let latent = latent_of[v.index()];
            let terms = match (ready[latent], tree.message(factor, v)) {
                (Some(complete), Some(own)) if complete < level => {
                    Terms::TotalBut(own.index() as u32)
                }
                _ => Terms::Sum(tree.inputs(message, v).map(|m| m.index() as u32).collect()),
            };
            Source::Belief { latent, terms }
        })
        .collect()
}
