//! What holds for steps between trees and for their distances, on random trees, against naive definitions.

use proptest::prelude::*;
use ramp::graph::{FactorTree, GraphError, Interchange, VariableId};
use std::collections::BTreeSet;

use crate::properties::tree;

fn degrees(tree: &FactorTree) -> Vec<(String, usize)> {
    let degree = |v| (tree.name(v).to_owned(), tree.factors_of(v).len());
    tree.variables().map(degree).collect()
}

fn sizes(tree: &FactorTree) -> Vec<usize> {
    tree.factors().map(|f| tree.variables_of(f).len()).collect()
}

/// A tree after some of its interchanges, chosen by numbers.
fn walk(mut tree: FactorTree, choices: &[prop::sample::Index]) -> FactorTree {
    for choice in choices {
        let steps = tree.interchanges();
        if !steps.is_empty() {
            tree = tree.interchanged(steps[choice.index(steps.len())]).unwrap();
        }
    }
    tree
}

/// The fewest misplaced observations over all ways to pair groups, one by one.
fn naive_mismatch(own: &[BTreeSet<&str>], theirs: &[BTreeSet<&str>]) -> usize {
    fn most(own: &[BTreeSet<&str>], theirs: &[BTreeSet<&str>], used: &mut Vec<bool>) -> usize {
        let Some((first, rest)) = own.split_first() else {
            return 0;
        };
        let mut best = most(rest, theirs, used);
        for j in 0..theirs.len() {
            if !used[j] {
                used[j] = true;
                best = best.max(first.intersection(&theirs[j]).count() + most(rest, theirs, used));
                used[j] = false;
            }
        }
        best
    }
    let all: usize = own.iter().map(BTreeSet::len).sum();
    all - most(own, theirs, &mut vec![false; theirs.len()])
}

fn named_groups(tree: &FactorTree, latent: VariableId) -> Vec<BTreeSet<&str>> {
    let groups = tree.partition(latent);
    let names = |group: &Vec<VariableId>| group.iter().map(|&o| tree.name(o)).collect();
    groups.iter().map(names).collect()
}

proptest! {
    #[test]
    fn an_interchange_keeps_variables_kinds_and_degrees_and_leads_back(
        tree in prop_oneof![tree(1), tree(2), tree(3)],
        choice in any::<prop::sample::Index>(),
    ) {
        let steps = tree.interchanges();
        prop_assume!(!steps.is_empty());
        let step = steps[choice.index(steps.len())];
        let neighbour = tree.interchanged(step).unwrap();
        prop_assert_eq!(neighbour.observations(), tree.observations());
        prop_assert_eq!(neighbour.latents(), tree.latents());
        prop_assert_eq!(degrees(&neighbour), degrees(&tree));
        prop_assert_eq!(sizes(&neighbour), sizes(&tree));
        prop_assert_ne!(&neighbour, &tree);
        let mirrored = Interchange { first: step.second, second: step.first, ..step };
        let back = neighbour.interchanges();
        prop_assert!(back.contains(&step) || back.contains(&mirrored));
        prop_assert_eq!(neighbour.interchanged(step).unwrap(), tree);
    }

    #[test]
    fn an_interchange_moves_nothing_else(
        tree in prop_oneof![tree(1), tree(2)],
        choice in any::<prop::sample::Index>(),
    ) {
        // Seen from any latent but the two whose branches were swapped, the observations are divided as before.
        let steps = tree.interchanges();
        prop_assume!(!steps.is_empty());
        let step = steps[choice.index(steps.len())];
        let neighbour = tree.interchanged(step).unwrap();
        let changed = |v: &VariableId| tree.factors_of(*v).contains(&step.first) != neighbour.factors_of(*v).contains(&step.first);
        for &latent in tree.latents().iter().filter(|v| !changed(v)) {
            prop_assert_eq!(tree.partition(latent), neighbour.partition(latent));
        }
        prop_assert_eq!(tree.latents().iter().filter(|v| changed(v)).count(), 2);
    }

    #[test]
    fn mismatch_is_that_of_the_best_pairing(
        tree in prop_oneof![tree(1), tree(3)],
        choices in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let other = walk(tree.clone(), &choices);
        let matches = other.matches(&tree).unwrap();
        for (&latent, matched) in other.latents().iter().zip(matches) {
            let mut least = usize::MAX;
            for &candidate in tree.latents() {
                let naive = naive_mismatch(&named_groups(&other, latent), &named_groups(&tree, candidate));
                prop_assert_eq!(other.partition_mismatch(latent, &tree, candidate).unwrap(), naive);
                prop_assert_eq!(tree.partition_mismatch(candidate, &other, latent).unwrap(), naive);
                least = least.min(naive);
            }
            prop_assert_eq!(matched.mismatch, least);
            prop_assert_eq!(other.partition_mismatch(latent, &tree, matched.latent).unwrap(), least);
        }
    }

    #[test]
    fn robinson_foulds_is_a_distance_and_a_step_is_short(
        tree in tree(1),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        more in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let near = walk(tree.clone(), &choices);
        let far = walk(near.clone(), &more);
        let distance = |a: &FactorTree, b: &FactorTree| a.robinson_foulds(b).unwrap();
        prop_assert_eq!(distance(&tree, &tree), 0);
        prop_assert_eq!(distance(&tree, &near), distance(&near, &tree));
        prop_assert!(distance(&tree, &far) <= distance(&tree, &near) + distance(&near, &far));
        // One edge is replaced by another.
        prop_assert!(distance(&tree, &near) <= 2 * choices.len());
    }
}

#[test]
fn a_latent_is_matched_with_its_like_whatever_it_is_called() {
    let truth = FactorTree::balanced(4, 2).unwrap();
    let renamed = FactorTree::from_newick("(((x1,x2)a,(x3,x4)b)c,((x5,x6)d,(x7,x8)e)f)g;").unwrap();
    let names: Vec<&str> = renamed
        .matches(&truth)
        .unwrap()
        .iter()
        .map(|m| {
            assert_eq!(m.mismatch, 0);
            truth.name(m.latent)
        })
        .collect();
    let own: Vec<&str> = renamed.latents().iter().map(|&v| renamed.name(v)).collect();
    let pairs: BTreeSet<(&str, &str)> = own.into_iter().zip(names).collect();
    let expected = [
        ("a", "z4"),
        ("b", "z5"),
        ("c", "z2"),
        ("d", "z6"),
        ("e", "z7"),
        ("f", "z3"),
        ("g", "z1"),
    ];
    assert_eq!(pairs, expected.into_iter().collect());
    assert_eq!(renamed.robinson_foulds(&truth).unwrap(), 0);
}

#[test]
fn trees_over_other_observations_and_steps_of_other_trees_are_refused() {
    let (small, large) = (
        FactorTree::star(3).unwrap(),
        FactorTree::balanced(4, 2).unwrap(),
    );
    assert!(small.interchanges().is_empty());
    assert_eq!(
        small.robinson_foulds(&large).unwrap_err(),
        GraphError::OtherObservations { name: "x4".into() }
    );
    assert!(large.matches(&small).is_err());
    let step = large.interchanges()[0];
    let error = small.interchanged(step).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("take an interchange of this tree"),
        "{error}"
    );
    let nowhere = Interchange {
        first: step.across,
        ..step
    };
    assert!(large.interchanged(nowhere).is_err());
}
