//! The rules that make variables and factors a tree for messages, and which nodes break them.

use super::{GraphError, Kind, unchecked::Unchecked};
use std::collections::VecDeque;

/// The factors of every variable, in ascending order: the transpose of a draft's factors.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) starts: Vec<usize>,
    pub(super) factors: Vec<usize>,
}

impl Links {
    pub(super) fn new(draft: &Unchecked) -> Self {
        let mut starts = vec![0; draft.names.len() + 1];
        for &variable in &draft.members {
            starts[variable + 1] += 1;
        }
        for variable in 0..draft.names.len() {
            starts[variable + 1] += starts[variable];
        }
        let mut next = starts.clone();
        let mut factors = vec![0; draft.members.len()];
        for factor in 0..draft.factor_count() {
            for &variable in draft.factor_members(factor) {
                factors[next[variable]] = factor;
                next[variable] += 1;
            }
        }
        Links { starts, factors }
    }

    fn of(&self, variable: usize) -> &[usize] {
        &self.factors[self.starts[variable]..self.starts[variable + 1]]
    }
}

/// Returns the first rule that the draft breaks, most telling rule first.
pub(super) fn check(draft: &Unchecked, links: &Links) -> Result<(), GraphError> {
    if draft.factor_count() == 0 && draft.names.len() < 2 {
        return Err(GraphError::Empty);
    }
    names(draft)?;
    members(draft)?;
    degrees(draft, links)?;
    if !draft.kinds.contains(&Kind::Latent) {
        return Err(GraphError::NoLatent {
            observed: draft.names.clone(),
        });
    }
    for factor in 0..draft.factor_count() {
        if draft
            .factor_members(factor)
            .iter()
            .all(|&variable| draft.kinds[variable] == Kind::Observed)
        {
            return Err(GraphError::OnlyObservations {
                number: factor + 1,
                members: draft.factor_names(factor),
            });
        }
    }
    tree(draft, links)?;
    latents(draft, links)
}

fn names(draft: &Unchecked) -> Result<(), GraphError> {
    if let Some(position) = draft.names.iter().position(|name| name.trim().is_empty()) {
        return Err(GraphError::EmptyName {
            number: position + 1,
        });
    }
    let mut sorted: Vec<&str> = draft.names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(GraphError::DuplicateName {
            name: pair[0].to_owned(),
        }),
        None => Ok(()),
    }
}

fn members(draft: &Unchecked) -> Result<(), GraphError> {
    // The factor that last held a variable, to see repetitions without comparing all pairs.
    let mut last_factor = vec![usize::MAX; draft.names.len()];
    for factor in 0..draft.factor_count() {
        let members = draft.factor_members(factor);
        if members.len() < 2 {
            return Err(GraphError::SmallFactor {
                number: factor + 1,
                members: draft.factor_names(factor),
            });
        }
        for &variable in members {
            if last_factor[variable] == factor {
                return Err(GraphError::RepeatedMember {
                    number: factor + 1,
                    members: draft.factor_names(factor),
                    name: draft.names[variable].clone(),
                });
            }
            last_factor[variable] = factor;
        }
    }
    Ok(())
}

fn degrees(draft: &Unchecked, links: &Links) -> Result<(), GraphError> {
    for (variable, name) in draft.names.iter().enumerate() {
        match *links.of(variable) {
            [] => return Err(GraphError::Isolated { name: name.clone() }),
            [first, second, ..] if draft.kinds[variable] == Kind::Observed => {
                return Err(GraphError::SharedObservation {
                    name: name.clone(),
                    count: links.of(variable).len(),
                    first: draft.factor_names(first),
                    second: draft.factor_names(second),
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Connected and without cycles, by breadth-first search over variables from each variable not yet seen.
fn tree(draft: &Unchecked, links: &Links) -> Result<(), GraphError> {
    const NONE: usize = usize::MAX;
    // For each variable the factor it was reached through; for each factor the variable it was reached from.
    let mut through = vec![NONE; draft.names.len()];
    let mut from = vec![NONE; draft.factor_count()];
    let mut seen = vec![false; draft.names.len()];
    let mut parts = Vec::new();
    let mut queue = VecDeque::new();
    for start in 0..draft.names.len() {
        if seen[start] {
            continue;
        }
        parts.push(draft.names[start].clone());
        seen[start] = true;
        queue.push_back(start);
        while let Some(variable) = queue.pop_front() {
            for &factor in links.of(variable) {
                if factor == through[variable] {
                    continue;
                }
                from[factor] = variable;
                for &next in draft.factor_members(factor) {
                    if next == variable {
                        continue;
                    }
                    if seen[next] {
                        return Err(cycle(draft, &through, &from, [variable, next]));
                    }
                    seen[next] = true;
                    through[next] = factor;
                    queue.push_back(next);
                }
            }
        }
    }
    if parts.len() > 1 {
        Err(GraphError::Disconnected { parts })
    } else {
        Ok(())
    }
}

/// The cycle that a factor closes when it joins `ends`: up from both ends to where the ways meet.
fn cycle(draft: &Unchecked, through: &[usize], from: &[usize], ends: [usize; 2]) -> GraphError {
    let [mut left, mut right] = ends.map(|end| {
        let mut way = vec![end];
        let mut at = end;
        while let Some(&above) = from.get(through[at]) {
            way.push(above);
            at = above;
        }
        way
    });
    let mut meeting = None;
    while !left.is_empty() && left.last() == right.last() {
        meeting = left.pop();
        right.pop();
    }
    let through_of = |way: &[usize]| way.last().map(|&variable| through[variable]);
    // Two ways that meet in one factor do not pass through the variable above it.
    let meet_in_factor = !left.is_empty() && through_of(&left) == through_of(&right);
    let mut nodes = left;
    nodes.extend(meeting.filter(|_| !meet_in_factor));
    nodes.extend(right.into_iter().rev());
    // Start where the user started.
    if let Some(first) = nodes
        .iter()
        .enumerate()
        .min_by_key(|&(_, node)| node)
        .map(|(position, _)| position)
    {
        nodes.rotate_left(first);
    }
    if nodes.len() > 2 && nodes[nodes.len() - 1] < nodes[1] {
        nodes[1..].reverse();
    }
    let mut names = nodes
        .into_iter()
        .map(|node| draft.names[node].clone())
        .collect::<Vec<_>>();
    if names.len() == 2 {
        let second = names.pop().unwrap_or_default();
        return GraphError::Parallel {
            first: names.pop().unwrap_or_default(),
            second,
        };
    }
    GraphError::Cycle { nodes: names }
}

/// With two factors at every latent, each walk away from a latent ends in an observation.
fn latents(draft: &Unchecked, links: &Links) -> Result<(), GraphError> {
    for (variable, name) in draft.names.iter().enumerate() {
        if draft.kinds[variable] == Kind::Observed {
            continue;
        }
        if let [factor] = *links.of(variable) {
            let members = draft.factor_members(factor);
            return Err(match *members {
                [a, b] => GraphError::Unobserved {
                    latent: name.clone(),
                    neighbour: draft.names[if a == variable { b } else { a }].clone(),
                },
                _ => GraphError::Loose {
                    latent: name.clone(),
                    members: draft.factor_names(factor),
                },
            });
        }
    }
    Ok(())
}
