//! The order of work: which messages can be computed together, and when.

use super::rooted::Rooted;
use super::{FactorTree, MessageId};

/// Messages that one network computes in one go: all their inputs come from earlier levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// 0 if every source is observed, else one more than the highest level among the inputs.
    pub level: usize,
    /// The network, as numbered by [`NetworkAssignment`](super::NetworkAssignment).
    pub network: usize,
    /// The messages, in ascending order.
    pub messages: Vec<MessageId>,
}

/// The stages of one inward and outward sweep, ordered by level and then by network.
///
/// ```
/// use ramp::graph::{FactorTree, Schedule, Tying};
///
/// let tree = FactorTree::chain(4)?;
/// let networks = Tying::Role.assign(&tree);
/// let schedule = Schedule::plan(&tree, &networks.of_message);
/// // The four observations first; then the forward and the backward sweep, side by side.
/// let work: Vec<_> = schedule
///     .stages
///     .iter()
///     .map(|stage| (stage.level, networks.keys[stage.network].as_str(), stage.messages.len()))
///     .collect();
/// assert_eq!(work, [
///     (0, "observation", 4),
///     (1, "backward", 1), (1, "forward", 1),
///     (2, "backward", 1), (2, "forward", 1),
///     (3, "backward", 1), (3, "forward", 1),
/// ]);
/// # Ok::<(), ramp::graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The stages, in the order in which they can run.
    pub stages: Vec<Stage>,
}

impl Schedule {
    /// Plans all messages of a tree, given the network of each, in time linear in the tree but for a sort.
    ///
    /// # Panics
    /// If `of_message` does not have one entry for every message of the tree.
    pub fn plan(tree: &FactorTree, of_message: &[usize]) -> Self {
        assert_eq!(
            of_message.len(),
            tree.message_count(),
            "every message needs a network"
        );
        let levels = message_levels(tree);
        let mut work: Vec<(usize, usize, MessageId)> = tree
            .messages()
            .map(|message| {
                (
                    levels[message.index()],
                    of_message[message.index()],
                    message,
                )
            })
            .collect();
        work.sort_unstable();
        let stages = work
            .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
            .map(|stage| Stage {
                level: stage[0].0,
                network: stage[0].1,
                messages: stage.iter().map(|&(_, _, message)| message).collect(),
            })
            .collect();
        Schedule { stages }
    }

    /// How many levels there are: the length of the longest line of messages that wait for each other.
    pub fn levels(&self) -> usize {
        self.stages.last().map_or(0, |stage| stage.level + 1)
    }
}

/// The level of every message.
///
/// A message goes out at the level at which its last source is ready: an observation at 0, a latent one level after the
/// last message that it waits for. An inward sweep settles what comes from outside, an outward sweep the rest.
/// "Everything but one" is read off the two largest values, so that a node of any degree costs only its degree.
fn message_levels(tree: &FactorTree) -> Vec<usize> {
    let rooted = Rooted::new(tree);
    let mut levels = vec![0; tree.message_count()];
    // When a variable is ready to speak towards the root.
    let mut ready = vec![0; tree.variable_count()];

    for &variable in rooted.order.iter().rev() {
        for message in tree.messages_into(variable) {
            if Some(tree.message_factor(message)) == rooted.entrance[variable.index()] {
                continue;
            }
            let level = tree
                .sources(message)
                .map(|source| ready[source.index()])
                .max()
                .unwrap_or(0);
            levels[message.index()] = level;
            ready[variable.index()] = ready[variable.index()].max(level + 1);
        }
    }

    for &variable in &rooted.order {
        let arrivals = TopTwo::of(
            tree.messages_into(variable)
                .map(|message| levels[message.index()] + 1),
        );
        for (position, message) in tree.messages_into(variable).enumerate() {
            let factor = tree.message_factor(message);
            if Some(factor) == rooted.entrance[variable.index()] {
                continue;
            }
            let ready_outward = arrivals.without(position);
            let members = tree.variables_of(factor);
            let speaks = TopTwo::of(members.iter().map(|&member| {
                if member == variable {
                    ready_outward
                } else {
                    ready[member.index()]
                }
            }));
            for (position, &member) in members
                .iter()
                .enumerate()
                .filter(|&(_, &member)| member != variable)
            {
                if let Some(outward) = tree.message(factor, member) {
                    levels[outward.index()] = speaks.without(position);
                }
            }
        }
    }
    levels
}

/// The two largest of some values: enough to know the largest of all but any one.
struct TopTwo {
    position: usize,
    largest: usize,
    second: usize,
}

impl TopTwo {
    fn of(values: impl Iterator<Item = usize>) -> Self {
        let mut top = TopTwo {
            position: usize::MAX,
            largest: 0,
            second: 0,
        };
        for (position, value) in values.enumerate() {
            if top.position == usize::MAX || value > top.largest {
                top = TopTwo {
                    position,
                    largest: value,
                    second: top.largest,
                };
            } else if value > top.second {
                top.second = value;
            }
        }
        top
    }

    fn without(&self, position: usize) -> usize {
        if position == self.position {
            self.second
        } else {
            self.largest
        }
    }
}
