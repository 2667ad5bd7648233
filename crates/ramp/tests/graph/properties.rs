//! What holds on every tree, on random ones, against definitions spelled out naively.

use proptest::prelude::*;
use ramp::graph::{FactorTree, MessageId, Schedule, Tying, VariableId, WeakPair};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The factors of a random tree: each new factor takes a variable that is there and one to `most_new` new ones.
fn factors(most_new: usize) -> impl Strategy<Value = Vec<Vec<String>>> {
    let grown = prop::collection::vec((any::<prop::sample::Index>(), 1..=most_new), 2..14)
        .prop_map(|steps| {
            let mut count = 1_usize;
            let mut factors = Vec::new();
            for (at, new) in steps {
                let mut factor = vec![format!("v{}", at.index(count))];
                factor.extend((count..count + new).map(|variable| format!("v{variable}")));
                count += new;
                factors.push(factor);
            }
            factors
        });
    // Neither the order of the factors nor that of their variables may matter.
    grown.prop_shuffle().prop_flat_map(|factors| {
        factors
            .into_iter()
            .map(|factor| Just(factor).prop_shuffle())
            .collect::<Vec<_>>()
    })
}

pub fn tree(most_new: usize) -> impl Strategy<Value = FactorTree> {
    factors(most_new).prop_map(|factors| FactorTree::from_factors(&factors, None).unwrap())
}

fn any_tying() -> impl Strategy<Value = Tying> {
    prop::sample::select(vec![Tying::Separate, Tying::Depth, Tying::Role])
}

fn inputs(tree: &FactorTree, message: MessageId) -> Vec<MessageId> {
    tree.sources(message)
        .flat_map(|source| tree.inputs(message, source))
        .collect()
}

/// For each observation the group that it is in.
fn groups(tree: &FactorTree, latent: VariableId) -> HashMap<VariableId, usize> {
    let numbered = tree.partition(latent).into_iter().enumerate();
    numbered
        .flat_map(|(number, group)| {
            group
                .into_iter()
                .map(move |observation| (observation, number))
        })
        .collect()
}

proptest! {
    #[test]
    fn a_schedule_computes_each_message_once_and_as_early_as_it_can(tree in tree(3), tying in any_tying()) {
        let networks = tying.assign(&tree);
        let schedule = Schedule::plan(&tree, &networks.of_message);
        let mut level_of = HashMap::new();
        for stage in &schedule.stages {
            prop_assert!(!stage.messages.is_empty());
            for &message in &stage.messages {
                prop_assert_eq!(networks.of_message[message.index()], stage.network);
                let expected =
                    inputs(&tree, message).iter().map(|input| level_of.get(input).map_or(usize::MAX, |level| level + 1)).max();
                prop_assert_eq!(stage.level, expected.unwrap_or(0));
            }
            for &message in &stage.messages {
                prop_assert_eq!(level_of.insert(message, stage.level), None);
            }
        }
        prop_assert_eq!(level_of.len(), tree.message_count());
        let order: Vec<_> = schedule.stages.iter().map(|stage| (stage.level, stage.network)).collect();
        prop_assert!(order.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(schedule.levels(), order.last().unwrap().0 + 1);
    }

    #[test]
    fn partitions_are_disjoint_and_cover_all_observations(tree in tree(3)) {
        for &latent in tree.latents() {
            let partition = tree.partition(latent);
            prop_assert_eq!(partition.len(), tree.factors_of(latent).len());
            prop_assert!(partition.iter().all(|group| !group.is_empty() && group.is_sorted()));
            let mut together: Vec<_> = partition.concat();
            together.sort();
            prop_assert_eq!(&together[..], tree.observations());
            for (message, group) in tree.messages_into(latent).zip(partition) {
                prop_assert_eq!(tree.downstream(message), group);
            }
        }
    }

    #[test]
    fn weak_pairs_are_those_of_the_definition(tree in prop_oneof![tree(1), tree(2), tree(3)]) {
        let groups: HashMap<_, _> = tree.latents().iter().map(|&latent| (latent, groups(&tree, latent))).collect();
        let mut expected = BTreeSet::new();
        for &finer in tree.latents() {
            for &weak in tree.latents().iter().filter(|&&weak| weak != finer) {
                let together_then_apart = tree.observations().iter().any(|a| tree.observations().iter().any(|b| {
                    groups[&finer][a] == groups[&finer][b] && groups[&weak][a] != groups[&weak][b]
                }));
                if !together_then_apart {
                    expected.insert(WeakPair { weak, refined_by: finer });
                }
            }
        }
        let found = tree.assumption_one();
        prop_assert_eq!(found.len(), expected.len());
        prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn networks_are_shared_by_messages_of_the_same_make(tree in tree(4), tying in any_tying()) {
        let networks = tying.assign(&tree);
        prop_assert_eq!(networks.keys.iter().collect::<HashSet<_>>().len(), networks.keys.len());
        let mut makes = HashMap::new();
        let mut used = 0;
        for message in tree.messages() {
            let network = networks.of_message[message.index()];
            prop_assert!(network <= used, "numbered in order of first use");
            used = used.max(network + 1);
            let make: Vec<bool> = tree.sources(message).map(|source| tree.is_latent(source)).collect();
            prop_assert_eq!(makes.entry(network).or_insert_with(|| make.clone()), &make);
        }
        prop_assert_eq!(used, networks.keys.len());
    }

    #[test]
    fn message_ids_and_ends_agree(tree in tree(3)) {
        let mut next = 0;
        for &latent in tree.latents() {
            for (message, &factor) in tree.messages_into(latent).zip(tree.factors_of(latent)) {
                prop_assert_eq!(message.index(), next);
                next += 1;
                prop_assert_eq!((tree.message_factor(message), tree.message_target(message)), (factor, latent));
                prop_assert_eq!(tree.message(factor, latent), Some(message));
                prop_assert_eq!(tree.sources(message).count() + 1, tree.variables_of(factor).len());
            }
        }
        prop_assert_eq!(next, tree.message_count());
    }

    #[test]
    fn newick_and_edges_say_the_same_tree(factors in factors(1)) {
        let edges: Vec<(&String, &String)> = factors.iter().map(|edge| (&edge[0], &edge[1])).collect();
        let from_edges = FactorTree::from_edges(&edges).unwrap();
        prop_assert_eq!(&from_edges, &FactorTree::from_factors(&factors, None).unwrap());
        let text = from_edges.to_newick().unwrap();
        let from_newick = FactorTree::from_newick(&text).unwrap();
        prop_assert_eq!(from_newick.to_newick().unwrap(), text);

        let shape = |tree: &FactorTree| -> BTreeSet<BTreeSet<String>> {
            let names = |factor| tree.variables_of(factor).iter().map(|&member| tree.name(member).to_owned()).collect();
            tree.factors().map(names).collect()
        };
        prop_assert_eq!(shape(&from_newick), shape(&from_edges));
        for variable in from_edges.variables() {
            let same = from_newick.find(from_edges.name(variable)).unwrap();
            prop_assert_eq!(from_newick.kind(same), from_edges.kind(variable));
        }
    }

    #[test]
    fn a_drawing_names_every_variable_once(tree in tree(3)) {
        let drawing = tree.draw();
        let mut drawn: Vec<&str> = drawing.lines().filter_map(|line| line.split(['○', '●']).nth(1)).map(str::trim).collect();
        drawn.sort();
        let mut names: Vec<&str> = tree.variables().map(|variable| tree.name(variable)).collect();
        names.sort();
        prop_assert_eq!(drawn, names);
        let wide = tree.factors().filter(|&factor| tree.variables_of(factor).len() > 2).count();
        prop_assert_eq!(drawing.matches('■').count(), wide);
    }

    #[test]
    fn any_two_variables_joined_once_more_make_a_cycle(factors in factors(3), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let tree = FactorTree::from_factors(&factors, None).unwrap();
        let [a, b] = [a, b].map(|at| tree.name(tree.variables().nth(at.index(tree.variable_count())).unwrap()));
        prop_assume!(a != b);
        let mut more = factors.clone();
        more.push(vec![a.to_owned(), b.to_owned()]);
        let joined = |x: &String, y: &String| more.iter().filter(|factor| factor.contains(x) && factor.contains(y)).count();
        match FactorTree::from_factors(&more, None).unwrap_err() {
            ramp::graph::GraphError::Cycle { nodes } => {
                prop_assert!(nodes.len() > 2);
                for (position, node) in nodes.iter().enumerate() {
                    prop_assert_eq!(joined(node, &nodes[(position + 1) % nodes.len()]), 1);
                }
                // No factor is passed twice: only neighbours on the cycle share one.
                for factor in &more {
                    prop_assert!(nodes.iter().filter(|node| factor.contains(node)).count() <= 2);
                }
                prop_assert!(nodes.iter().any(|node| node == a) && nodes.iter().any(|node| node == b));
            }
            ramp::graph::GraphError::Parallel { first, second } => prop_assert_eq!(joined(&first, &second), 2),
            other => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn no_text_makes_the_newick_reader_panic(text in "[(),:;\\[\\]' ab1\n]{0,40}") {
        if let Ok(tree) = FactorTree::from_newick(&text) {
            prop_assert_eq!(FactorTree::from_newick(&tree.to_newick().unwrap()).unwrap().variable_count(), tree.variable_count());
        }
    }
}
