//! Long, deep and wide trees are planned on a small stack: nothing recurses, nothing is quadratic.

use ramp::graph::{FactorTree, GraphError, Schedule, Tying};

/// Runs on a stack on which a recursion over the tree could not end well.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(work)
        .unwrap();
    thread.join().unwrap();
}

/// Everything that a model asks of its tree, under each tying.
fn plan(tree: &FactorTree) -> Schedule {
    let mut schedules = [Tying::Separate, Tying::Depth, Tying::Role].map(|tying| {
        let networks = tying.assign(tree);
        Schedule::plan(tree, &networks.of_message)
    });
    let count = |schedule: &Schedule| {
        schedule
            .stages
            .iter()
            .map(|stage| stage.messages.len())
            .sum::<usize>()
    };
    assert!(
        schedules
            .iter()
            .all(|schedule| count(schedule) == tree.message_count())
    );
    std::mem::replace(&mut schedules[2], Schedule { stages: vec![] })
}

#[test]
fn a_chain_of_10_000_steps() {
    on_small_stack(|| {
        let tree = FactorTree::chain(10_000).unwrap();
        assert_eq!(plan(&tree).levels(), 10_000);
        assert_eq!(tree.assumption_one().len(), 2);
        assert_eq!(tree.partition(tree.latents()[5_000])[1].len(), 5_000);
        assert_eq!(tree.draw().lines().count(), 3 * 10_000 - 1);
        assert_eq!(
            FactorTree::from_newick(&tree.to_newick().unwrap())
                .unwrap()
                .variable_count(),
            20_000
        );
    });
}

#[test]
fn a_balanced_tree_of_131_071_nodes() {
    on_small_stack(|| {
        let tree = FactorTree::balanced(17, 2).unwrap();
        assert_eq!(tree.variable_count(), 131_071);
        let schedule = plan(&tree);
        assert_eq!((schedule.levels(), schedule.stages.len()), (31, 31));
        assert_eq!(tree.assumption_one().len(), 2);
        assert_eq!(tree.draw().lines().count(), 131_071);
    });
}

#[test]
fn a_star_with_100_000_observations() {
    on_small_stack(|| {
        let tree = FactorTree::star(100_000).unwrap();
        assert_eq!(plan(&tree).stages.len(), 1);
        assert_eq!(tree.draw().lines().count(), 100_001);
    });
}

#[test]
fn newick_nested_50_000_deep() {
    on_small_stack(|| {
        let depth = 50_000;
        let mut text = "(".repeat(depth);
        text.push_str("x0");
        for number in 1..=depth {
            text.push_str(&format!(",x{number})"));
        }
        text.push(';');
        let tree = FactorTree::from_newick(&text).unwrap();
        assert_eq!(tree.latents().len(), depth);
        assert_eq!(plan(&tree).levels(), depth);
        // An error deep inside comes back as well.
        assert!(matches!(
            FactorTree::from_newick(&text[..depth + 1]),
            Err(GraphError::Newick { .. })
        ));
        assert!(tree.draw().len() < 100 * depth);
    });
}

#[test]
fn a_factor_of_100_000_variables() {
    on_small_stack(|| {
        let names = |letter: char| (0..50_000).map(move |number| format!("{letter}{number}"));
        let wide: Vec<String> = names('z').chain(names('x')).collect();
        let mut factors: Vec<Vec<String>> = names('z')
            .zip(names('y'))
            .map(|(z, y)| vec![z, y])
            .collect();
        factors.push(wide);
        let tree = FactorTree::from_factors(&factors, None).unwrap();
        assert_eq!(tree.message_count(), 100_000);
        let networks = Tying::Role.assign(&tree);
        assert_eq!(
            networks.keys,
            [
                "observation",
                "inward.z49999x50000",
                "outward.Zz49998x50000"
            ]
        );
        assert_eq!(Schedule::plan(&tree, &networks.of_message).levels(), 2);
        assert_eq!(
            Tying::Separate.assign(&tree).keys[1],
            "(z1,…99997 more…,x49999)>z0"
        );
        assert_eq!(tree.assumption_one(), []);
        tree.draw();
    });
}

#[test]
fn a_line_of_100_000_latents_without_branches() {
    on_small_stack(|| {
        let edges: Vec<(String, String)> = (0..100_000)
            .map(|at| (format!("v{at}"), format!("v{}", at + 1)))
            .collect();
        let tree = FactorTree::from_edges(&edges).unwrap();
        plan(&tree);
        // There are 10¹⁰ pairs: they come one by one.
        assert_eq!(tree.weak_pairs().take(1_000).count(), 1_000);

        let mut ring = edges;
        ring.push(("v100000".to_owned(), "v0".to_owned()));
        let Err(GraphError::Cycle { nodes }) = FactorTree::from_edges(&ring) else {
            panic!("this is a ring")
        };
        assert_eq!(nodes.len(), 100_001);
    });
}
