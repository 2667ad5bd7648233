//! Every mistake in a tree is answered with a sentence that names the nodes and the fix.

use ramp::graph::{FactorTree, GraphError};

/// What a constructor says about a mistake.
#[track_caller]
fn sentence(result: Result<FactorTree, GraphError>) -> String {
    match result {
        Ok(tree) => panic!("this is no mistake:\n{tree}"),
        Err(error) => error.to_string(),
    }
}

fn edges(list: &[(&str, &str)]) -> String {
    sentence(FactorTree::from_edges(list))
}

fn factors(list: &[&[&str]], observed: Option<&[&str]>) -> String {
    let list: Vec<Vec<&str>> = list.iter().map(|factor| factor.to_vec()).collect();
    sentence(FactorTree::from_factors(&list, observed))
}

fn newick(text: &str) -> String {
    sentence(FactorTree::from_newick(text))
}

#[test]
fn nothing_at_all() {
    assert_eq!(
        edges(&[]),
        "the tree has no factors: a smallest tree is one latent with two observations, for example the edges z–x1 and z–x2"
    );
    assert!(matches!(
        FactorTree::builder().build(),
        Err(GraphError::Empty)
    ));
}

#[test]
fn names() {
    assert_eq!(
        edges(&[("z", "x"), ("z", "")]),
        "variable 3 has an empty name: give every variable a name of its own"
    );
    assert!(edges(&[("z", "x"), ("z", "  ")]).starts_with("variable 3 has an empty name"));
    let twice = FactorTree::builder()
        .latent("a")
        .observed("a")
        .factor(["a", "a"]);
    assert_eq!(
        sentence(twice.build()),
        "`a` is the name of two variables: rename one of them"
    );
    assert_eq!(
        newick("((a,b)c,(d,e)c);"),
        "`c` is the name of two variables: rename one of them"
    );
}

#[test]
fn unknown_names() {
    let wrong = FactorTree::builder()
        .latent("shoulder")
        .observed("wrist")
        .factor(["shoulder", "wirst"]);
    assert_eq!(
        sentence(wrong.build()),
        "there is no variable `wirst`: did you mean `wrist`?"
    );
    let near = FactorTree::builder()
        .latent("shoulder")
        .observed("wrist")
        .factor(["Sholder", "wrist"]);
    assert_eq!(
        sentence(near.build()),
        "there is no variable `Sholder`: did you mean `shoulder`?"
    );
    assert_eq!(
        factors(&[&["z", "x1"], &["z", "x2"]], Some(&["x1", "x3"])),
        "there is no variable `x3`: did you mean `x1` or `x2`?"
    );

    let tree = FactorTree::star(40).unwrap();
    assert_eq!(
        tree.find("x400").unwrap_err().to_string(),
        "there is no variable `x400`: did you mean `x40`?"
    );
    let far = tree.find("elbow").unwrap_err().to_string();
    assert!(
        far.starts_with("there is no variable `elbow`: there are `z`, `x1`,"),
        "{far}"
    );
    assert!(far.ends_with(", `x11`, … 29 more"), "{far}");
    let message = tree.find_message("x40>y").unwrap_err().to_string();
    assert_eq!(
        message,
        "there is no message `x40>y`: did you mean `x40>z`?"
    );
}

#[test]
fn factors_that_join_nothing() {
    assert_eq!(
        factors(&[&["z", "x1"], &["z"]], None),
        "factor 2 (`z`) joins fewer than two variables: add another variable or remove the factor"
    );
    assert_eq!(
        factors(&[&["z", "x1"], &["z", "x2", "z"]], None),
        "factor 2 (`z`, `x2`, `z`) holds `z` twice: name each of its variables once"
    );
    assert_eq!(
        edges(&[("z", "x1"), ("z", "z")]),
        "factor 2 (`z`, `z`) holds `z` twice: name each of its variables once"
    );
    let apart = FactorTree::builder()
        .latent("z")
        .latent("lost")
        .observed("x1")
        .observed("x2");
    assert_eq!(
        sentence(apart.factor(["z", "x1"]).factor(["z", "x2"]).build()),
        "`lost` is in no factor: join it to another variable or remove it"
    );
}

#[test]
fn observations_in_the_wrong_place() {
    assert_eq!(
        factors(
            &[&["a", "x", "y1"], &["b", "x"], &["a", "y2"], &["b", "y3"]],
            Some(&["x", "y1", "y2", "y3"])
        ),
        "the observed variable `x` is in 2 factors, among them (`a`, `x`, `y1`) and (`b`, `x`): an observation belongs to \
         one factor, so put a latent between them or make `x` latent"
    );
    assert_eq!(
        edges(&[("x1", "x2")]),
        "the tree has only observed variables (`x1`, `x2`): add a latent that joins them"
    );
    assert_eq!(
        edges(&[("z", "x1"), ("z", "x2"), ("x3", "x4")]),
        "factor 3 (`x3`, `x4`) joins only observations: put a latent between them"
    );
}

#[test]
fn cycles() {
    assert_eq!(
        edges(&[
            ("a", "x1"),
            ("a", "b"),
            ("b", "c"),
            ("c", "d"),
            ("d", "a"),
            ("b", "x2")
        ]),
        "the variables `a` – `b` – `c` – `d` – `a` form a cycle: take one of these links out to make it a tree"
    );
    // The tail that leads to the cycle is not part of it.
    assert_eq!(
        edges(&[
            ("x", "p"),
            ("p", "q"),
            ("q", "r"),
            ("r", "s"),
            ("s", "t"),
            ("t", "r")
        ]),
        "the variables `r` – `s` – `t` – `r` form a cycle: take one of these links out to make it a tree"
    );
    // The ways from `root` part inside a factor, so `root` is not on the cycle.
    assert_eq!(
        factors(
            &[
                &["root", "a", "b"],
                &["root", "x1"],
                &["a", "c"],
                &["c", "b"]
            ],
            None
        ),
        "the variables `a` – `b` – `c` – `a` form a cycle: take one of these links out to make it a tree"
    );
    assert_eq!(
        edges(&[("a", "b"), ("b", "a"), ("a", "x1"), ("b", "x2")]),
        "`a` and `b` are joined by two factors: keep one of them, or join all their variables in one factor"
    );
    assert!(
        factors(&[&["r", "a", "b"], &["b", "a"], &["r", "x"]], None)
            .starts_with("`a` and `b` are joined by two")
    );
}

#[test]
fn pieces() {
    assert_eq!(
        edges(&[("a", "x1"), ("a", "x2"), ("b", "x3"), ("b", "x4")]),
        "the tree falls apart into 2 pieces, around `a`, `b`: join them, or fit each one as a model of its own"
    );
}

#[test]
fn latents_that_hang_loose() {
    assert_eq!(
        factors(
            &[&["z", "x1"], &["z", "x2"], &["z", "a"]],
            Some(&["x1", "x2"])
        ),
        "latent `a` leads to no observation: it hangs on `z` alone; remove it, attach an observation to it, \
         or make it observed"
    );
    assert_eq!(
        factors(&[&["z", "x1"], &["z", "x2", "a"]], Some(&["x1", "x2"])),
        "latent `a` hangs loose: it is only in the factor (`z`, `x2`, `a`), so it explains nothing between two sides; \
         remove it, attach an observation to it, or make it observed"
    );
    assert!(
        newick("((a,b)c)root;")
            .starts_with("latent `root` leads to no observation: it hangs on `c` alone")
    );
}

#[test]
fn sizes() {
    for (result, expected) in [
        (
            FactorTree::chain(0),
            "a chain of length 0 is too small: two steps are the least",
        ),
        (
            FactorTree::chain(1),
            "a chain of length 1 is too small: two steps are the least",
        ),
        (
            FactorTree::star(0),
            "a star with 0 observations is too small: two observations are the least",
        ),
        (
            FactorTree::star(1),
            "a star with 1 observations is too small: two observations are the least",
        ),
        (
            FactorTree::balanced(1, 2),
            "a balanced tree of depth 1 and arity 2 is too small: depth 2 and arity 2 are the least",
        ),
        (
            FactorTree::balanced(3, 1),
            "a balanced tree of depth 3 and arity 1 is too small: depth 2 and arity 2 are the least",
        ),
        (
            FactorTree::balanced(64, 2),
            "a balanced tree of depth 64 and arity 2 has more than 4194304 variables: choose a smaller size",
        ),
    ] {
        assert_eq!(sentence(result), expected);
    }
    let most = usize::MAX;
    for result in [
        FactorTree::chain(most),
        FactorTree::star(most),
        FactorTree::balanced(most, most),
    ] {
        assert!(matches!(result, Err(GraphError::TooLarge { .. })));
    }
    assert!(matches!(
        FactorTree::balanced(0, 0),
        Err(GraphError::TooSmall { .. })
    ));
}

#[test]
fn newick_typos() {
    for (text, expected) in [
        (
            "",
            "column 1: expected the name of an observation or `(`, found the end of the text",
        ),
        (
            "(a,,b);",
            "column 4: expected the name of an observation or `(`, found `,`",
        ),
        (
            "(a,b));",
            "column 6: expected a name, `:` or `;`, found `)`",
        ),
        (
            "(a,b)z",
            "column 7: expected `:` or `;`, found the end of the text",
        ),
        (
            "(a,b",
            "column 5: expected `:`, `,` or `)`, found the end of the text",
        ),
        (
            "(a b,c);",
            "column 4: expected `:`, `,` or `)`, found the name `b`",
        ),
        (
            "(a,b)z w;",
            "column 8: expected `:` or `;`, found the name `w`",
        ),
        ("(a:0.1:2,b);", "column 7: expected `,` or `)`, found `:`"),
        (
            "(a:far,b);",
            "column 4: expected a number as branch length, found the name `far`",
        ),
        (
            "(a:,b);",
            "column 4: expected a number as branch length, found `,`",
        ),
        (
            "(a,b); (c,d);",
            "column 8: expected nothing after `;`, found `(`",
        ),
        (
            "(a[one,b);",
            "column 3: expected a comment that `]` closes, found `[`",
        ),
        ("(a],b);", "column 3: expected `:`, `,` or `)`, found `]`"),
        (
            "('a,b);",
            "column 2: expected a name that a second quote closes, found `'`",
        ),
        (
            "(å,ø\n(b,c));",
            "line 2, column 1: expected `:`, `,` or `)`, found `(`",
        ),
    ] {
        assert_eq!(newick(text), format!("Newick text, {expected}"), "{text}");
    }
    assert_eq!(
        newick("a;"),
        "the tree has no factors: a smallest tree is one latent with two observations, \
                              for example the edges z–x1 and z–x2"
    );
    assert!(newick("('',b)z;").starts_with("variable 2 has an empty name"));
}

#[test]
fn newick_writes_pairs_only() {
    let tree = FactorTree::from_factors(&[vec!["z", "x1", "x2"], vec!["z", "x3"]], None).unwrap();
    assert_eq!(
        tree.to_newick().unwrap_err().to_string(),
        "the factor (`z`, `x1`, `x2`) joins 3 variables: Newick can only write trees whose factors join two"
    );
}

#[test]
fn a_bad_tree_is_an_error_of_the_crate() {
    let error = ramp::Error::from(FactorTree::chain(0).unwrap_err());
    assert!(matches!(error, ramp::Error::Graph(_)));
    assert_eq!(
        error.to_string(),
        "a chain of length 0 is too small: two steps are the least"
    );
}
