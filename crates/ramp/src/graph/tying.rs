//! Which messages share a network.

use super::rooted::Rooted;
use super::{FactorId, FactorTree, Place, VariableId};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The rule by which messages share a network.
///
/// Only messages whose factors have equally many variables and whose sources are of the same kinds in the same order
/// ever share, so that their networks have inputs of the same make. For factors of more than two variables the key
/// says these kinds: `inward.z2x` hears two latents and an observation. `Z` marks the source on the root's side.
///
/// ```
/// use ramp::graph::{FactorTree, Tying};
///
/// let tree = FactorTree::balanced(3, 2)?;
/// assert_eq!(Tying::Role.assign(&tree).keys, ["inward", "outward", "observation"]);
/// assert_eq!(Tying::Depth.assign(&tree).keys, ["up.1>0", "down.0>1", "observation.1"]);
/// assert_eq!(Tying::Separate.assign(&tree).keys[0], "z2>z1");
/// # Ok::<(), ramp::graph::GraphError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tying {
    /// Every message has its own network, with the message's name as key.
    Separate,
    /// Messages between the same distances from the root share: `up.2>1`, `down.1>2`, and `observation.2` into a
    /// latent at distance 2.
    Depth,
    /// Messages share by what they do: `observation`; along a chain `forward` and `backward`; on other trees `inward`,
    /// towards the first latent, and `outward`.
    ///
    /// What counts as a chain says [`FactorTree::is_chain`]. Where a chain in time observes several series, each has its
    /// own `observation.heart`, `observation.sleep`, ….
    Role,
}

/// The network of every message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkAssignment {
    /// A key for each network, in order of first use.
    pub keys: Vec<String>,
    /// For each message the position of its network in `keys`.
    pub of_message: Vec<usize>,
}

impl Tying {
    /// Gives every message of a tree its network.
    pub fn assign(self, tree: &FactorTree) -> NetworkAssignment {
        if self == Tying::Separate {
            return NetworkAssignment {
                keys: tree
                    .messages()
                    .map(|message| tree.message_name(message))
                    .collect(),
                of_message: (0..tree.message_count()).collect(),
            };
        }
        let rooted = Rooted::new(tree);
        let directions = if tree.is_chain() {
            ["backward", "forward"]
        } else {
            ["inward", "outward"]
        };
        let mut shared = Shared {
            numbers: HashMap::new(),
            of_message: vec![0; tree.message_count()],
        };
        for factor in tree.factors() {
            let head = rooted.head[factor.index()];
            let depth = rooted.depth[head.index()];
            let (up, down, observation) = match self {
                Tying::Depth => (
                    format!("up.{}>{depth}", depth + 1),
                    format!("down.{depth}>{}", depth + 1),
                    format!("observation.{depth}"),
                ),
                _ => (
                    directions[0].to_owned(),
                    directions[1].to_owned(),
                    "observation".to_owned(),
                ),
            };
            shared.add(tree, factor, head, [up, down, observation]);
        }
        shared.in_order_of_use()
    }
}

/// Keys while they are being handed out factor by factor.
struct Shared {
    numbers: HashMap<String, usize>,
    of_message: Vec<usize>,
}

impl Shared {
    /// Hands out the keys of one factor's messages. Members of one run of equal kinds leave the same kinds behind, so
    /// a wide factor costs its number of runs and not its number of pairs.
    fn add(
        &mut self,
        tree: &FactorTree,
        factor: FactorId,
        head: VariableId,
        [up, down, observation]: [String; 3],
    ) {
        let members = tree.variables_of(factor);
        let symbol = |member: VariableId| match member {
            member if member == head => 'Z',
            member if tree.is_latent(member) => 'z',
            _ => 'x',
        };
        let runs: Vec<&[VariableId]> = members.chunk_by(|&a, &b| symbol(a) == symbol(b)).collect();
        let kinds: Vec<(char, usize)> =
            runs.iter().map(|run| (symbol(run[0]), run.len())).collect();
        for (position, run) in runs
            .iter()
            .enumerate()
            .filter(|&(position, _)| kinds[position].0 != 'x')
        {
            let to_head = kinds[position].0 == 'Z';
            let direction = match to_head {
                true if kinds.iter().all(|&(symbol, _)| symbol != 'z') => &observation,
                true => &up,
                false => &down,
            };
            let observed = members.iter().find(|&&member| !tree.is_latent(member));
            let series = observed.and_then(|&member| series_of(tree, member));
            let key = match (members.len(), series) {
                (2, Some(series)) => format!("{direction}.{series}"),
                (2, None) => direction.clone(),
                _ => format!("{direction}.{}", pattern_without(&kinds, position)),
            };
            let next = self.numbers.len();
            let number = *self.numbers.entry(key).or_insert(next);
            for message in run
                .iter()
                .filter_map(|&member| tree.message(factor, member))
            {
                self.of_message[message.index()] = number;
            }
        }
    }

    /// Renumbers the networks as messages first use them.
    fn in_order_of_use(self) -> NetworkAssignment {
        let mut keys_by_number = vec![String::new(); self.numbers.len()];
        for (key, number) in self.numbers {
            keys_by_number[number] = key;
        }
        let mut place = vec![None; keys_by_number.len()];
        let mut keys = Vec::with_capacity(keys_by_number.len());
        let of_message = self
            .of_message
            .into_iter()
            .map(|number| {
                *place[number].get_or_insert_with(|| {
                    keys.push(std::mem::take(&mut keys_by_number[number]));
                    keys.len() - 1
                })
            })
            .collect();
        NetworkAssignment { keys, of_message }
    }
}

/// The series that an observation belongs to, where there are several.
fn series_of(tree: &FactorTree, observation: VariableId) -> Option<&str> {
    let several = tree.time_axis().filter(|time| time.series().len() > 1)?;
    match tree.place(observation)? {
        Place::Observation { series, .. } => Some(&several.series()[series]),
        Place::Latent { .. } => None,
    }
}

/// The kinds of a factor's variables, as `z2xZ`, without one variable of the run at `position`.
fn pattern_without(kinds: &[(char, usize)], position: usize) -> String {
    let mut left: Vec<(char, usize)> = Vec::with_capacity(kinds.len());
    for (at, &(symbol, count)) in kinds.iter().enumerate() {
        let count = count - usize::from(at == position);
        match left.last_mut() {
            _ if count == 0 => {}
            Some(last) if last.0 == symbol => last.1 += count,
            _ => left.push((symbol, count)),
        }
    }
    let mut pattern = String::new();
    for (symbol, count) in left {
        pattern.push(symbol);
        if count > 1 {
            pattern.push_str(&count.to_string());
        }
    }
    pattern
}
