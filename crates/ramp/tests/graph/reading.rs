//! Ready-made shapes, notations, drawings and the sharing of networks, on trees small enough to check by eye.

use ramp::graph::{FactorTree, GraphError, Kind, MessageId, Place, Schedule, Tying, VariableId};

fn names(tree: &FactorTree, variables: &[VariableId]) -> Vec<String> {
    variables
        .iter()
        .map(|&variable| tree.name(variable).to_owned())
        .collect()
}

/// Every message with the key of its network.
fn keys(tree: &FactorTree, tying: Tying) -> Vec<String> {
    let networks = tying.assign(tree);
    let key = |message: MessageId| &networks.keys[networks.of_message[message.index()]];
    tree.messages()
        .map(|message| format!("{} {}", tree.message_name(message), key(message)))
        .collect()
}

#[test]
fn the_papers_tree() {
    let tree = FactorTree::balanced(4, 2).unwrap();
    assert_eq!(
        names(&tree, tree.latents()),
        ["z1", "z2", "z3", "z4", "z5", "z6", "z7"]
    );
    assert_eq!(
        names(&tree, tree.observations()),
        ["x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8"]
    );
    assert_eq!(
        tree.to_newick().unwrap(),
        "(((x1,x2)z4,(x3,x4)z5)z2,((x5,x6)z6,(x7,x8)z7)z3)z1;"
    );
    let pairs: Vec<String> = tree
        .assumption_one()
        .iter()
        .map(|pair| pair.sentence(&tree))
        .collect();
    assert_eq!(
        pairs,
        [
            "z2 separates everything that z1 separates: z1 is only weakly identified",
            "z3 separates everything that z1 separates: z1 is only weakly identified",
        ]
    );
    let networks = Tying::Separate.assign(&tree);
    let schedule = Schedule::plan(&tree, &networks.of_message);
    assert_eq!((schedule.levels(), schedule.stages.len()), (5, 8 + 2 * 6));
}

#[test]
fn messages_have_names_and_ends() {
    let tree = FactorTree::chain(3).unwrap();
    let all: Vec<String> = tree
        .messages()
        .map(|message| tree.message_name(message))
        .collect();
    assert_eq!(
        all,
        [
            "x.1>z1", "z2>z1", "x.2>z2", "z1>z2", "z3>z2", "x.3>z3", "z2>z3"
        ]
    );
    for message in tree.messages() {
        let (factor, target) = (tree.message_factor(message), tree.message_target(message));
        assert_eq!(tree.message(factor, target), Some(message));
        assert_eq!(tree.find_message(&tree.message_name(message)), Ok(message));
    }
    let [z1, x1] = [
        tree.latent_at(0).unwrap(),
        tree.observation_at(0, 0).unwrap(),
    ];
    assert_eq!(tree.message(tree.factors_of(x1)[0], x1), None);
    let x2 = tree.observation_at(0, 1).unwrap();
    assert_eq!(tree.message(tree.factors_of(x2)[0], z1), None);
    assert_eq!(tree.messages_into(x1).len(), 0);
    assert_eq!(
        names(&tree, &tree.downstream(tree.find_message("z2>z1").unwrap())),
        ["x.2", "x.3"]
    );
}

#[test]
fn a_chain_knows_its_time_axis() {
    // Names that would be taken for one another if anyone looked for steps in them.
    let series = ["a", "a.1", "a@1", "z1"];
    let tree = FactorTree::sequence(12, &series).unwrap();
    let time = tree.time_axis().unwrap();
    assert_eq!((time.steps(), time.series().len()), (12, 4));
    for step in 0..12 {
        let latent = tree.latent_at(step).unwrap();
        assert_eq!(tree.place(latent), Some(Place::Latent { step }));
        assert!(tree.is_latent(latent));
        for (series, name) in series.iter().enumerate() {
            assert_eq!(time.find(name), Ok(series));
            let x = tree.observation_at(series, step).unwrap();
            assert_eq!(tree.place(x), Some(Place::Observation { series, step }));
            assert_eq!(tree.observations()[time.observation(series, step)], x);
            assert_eq!(tree.variables_of(tree.factors_of(x)[0]), [latent, x]);
        }
    }
    assert_eq!(
        (tree.latent_at(12), tree.observation_at(0, 12)),
        (None, None)
    );
    assert_eq!(tree.observation_at(4, 0), None);
    assert!(time.find("b").is_err());
    let keys = Tying::Role.assign(&tree).keys;
    assert_eq!(keys[..4], series.map(|name| format!("observation.{name}")));
    // A chain of the same shape that nobody called one in time has none.
    let edges = [("z1", "x1"), ("z2", "x2"), ("z1", "z2")];
    let tree = FactorTree::from_edges(&edges).unwrap();
    assert!(tree.is_chain() && tree.time_axis().is_none());
    assert_eq!(tree.place(tree.root()), None);
    let twice = FactorTree::sequence(3, &["a", "b", "a"]).unwrap_err();
    assert_eq!(twice, GraphError::DuplicateName { name: "a".into() });
    let empty = FactorTree::sequence(3, &["a", " "]).unwrap_err();
    assert_eq!(empty, GraphError::EmptyName { number: 2 });
    assert!(FactorTree::sequence::<&str>(3, &[]).is_err());
}

#[test]
fn message_names_never_clash() {
    // Unquoted, both of the first two would be `a>b>c`.
    let tree = FactorTree::from_edges(&[
        ("a>b", "c"),
        ("c", "d"),
        ("d", "b>c"),
        ("b>c", "a"),
        ("b>c", "it's"),
    ])
    .unwrap();
    let mut all: Vec<String> = tree
        .messages()
        .map(|message| tree.message_name(message))
        .collect();
    assert!(all.contains(&"'a>b'>c".to_owned()) && all.contains(&"a>'b>c'".to_owned()));
    assert!(all.contains(&"'it''s'>'b>c'".to_owned()));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), tree.message_count());

    let wide: Vec<String> = ["z".to_owned()]
        .into_iter()
        .chain((1..=20).map(|number| format!("x{number}")))
        .collect();
    let tree = FactorTree::from_factors(&[wide, vec!["z".into(), "y".into()]], None).unwrap();
    assert_eq!(
        tree.message_name(tree.messages().next().unwrap()),
        "(x1,…18 more…,x20)>z"
    );
}

#[test]
fn newick_is_read_generously() {
    let text = " ( (a:1e-3 ,'b c':2)[x,(;]:0.5,\n\t(d,'it''s')z1 ) ; [end] ";
    let tree = FactorTree::from_newick(text).unwrap();
    assert_eq!(names(&tree, tree.latents()), ["z2", "z3", "z1"]);
    assert_eq!(names(&tree, tree.observations()), ["a", "b c", "d", "it's"]);
    assert_eq!(tree.to_newick().unwrap(), "((a,'b c')z3,(d,'it''s')z1)z2;");
}

#[test]
fn explicit_observations_and_builder_agree() {
    let factors = [vec!["a", "b", "x"], vec!["a", "y"], vec!["b", "w"]];
    let inferred = FactorTree::from_factors(&factors, None).unwrap();
    let explicit = FactorTree::from_factors(&factors, Some(&["w", "x", "y"])).unwrap();
    let built = FactorTree::builder()
        .factor(["a", "b", "x"])
        .factor(["a", "y"])
        .factor(["b", "w"])
        .latent("a")
        .latent("b")
        .observed("x")
        .observed("y")
        .observed("w")
        .build()
        .unwrap();
    assert_eq!(inferred, explicit);
    assert_eq!(inferred, built);
    assert_eq!(inferred.kind(inferred.find("x").unwrap()), Kind::Observed);
}

#[test]
fn drawings() {
    let tree = FactorTree::from_newick("((x1,x2)b,(x3,x4)c)a;").unwrap();
    let drawing = "\
○ a
├─ ○ b
│  ├─ ● x1
│  └─ ● x2
└─ ○ c
   ├─ ● x3
   └─ ● x4
";
    assert_eq!(tree.draw(), drawing);
    assert_eq!(tree.to_string(), drawing);

    let factors = [
        vec!["a", "x1"],
        vec!["x2", "b", "a"],
        vec!["b", "x3"],
        vec!["b", "x4"],
    ];
    let drawing = "\
○ a
├─ ● x1
│
■
├─ ● x2
│
○ b
├─ ● x3
└─ ● x4
";
    assert_eq!(
        FactorTree::from_factors(&factors, None).unwrap().draw(),
        drawing
    );
}

#[test]
fn roles_on_a_chain_and_on_a_tree() {
    assert_eq!(
        keys(&FactorTree::chain(3).unwrap(), Tying::Role),
        [
            "x.1>z1 observation",
            "z2>z1 backward",
            "x.2>z2 observation",
            "z1>z2 forward",
            "z3>z2 backward",
            "x.3>z3 observation",
            "z2>z3 forward",
        ]
    );
    let tree = FactorTree::from_newick("((x1,x2)b,(x3,x4)c)a;").unwrap();
    assert_eq!(
        keys(&tree, Tying::Role),
        [
            "b>a inward",
            "c>a inward",
            "a>b outward",
            "x1>b observation",
            "x2>b observation",
            "a>c outward",
            "x3>c observation",
            "x4>c observation",
        ]
    );
    assert_eq!(
        Tying::Role.assign(&FactorTree::star(5).unwrap()).keys,
        ["observation"]
    );
}

#[test]
fn depths() {
    let tree = FactorTree::from_newick("(((x1,x2)c,x3)b,x4)a;").unwrap();
    assert_eq!(
        keys(&tree, Tying::Depth),
        [
            "b>a up.1>0",
            "x4>a observation.0",
            "a>b down.0>1",
            "c>b up.2>1",
            "x3>b observation.1",
            "b>c down.1>2",
            "x1>c observation.2",
            "x2>c observation.2",
        ]
    );
}

#[test]
fn wide_factors_share_only_like_with_like() {
    let factors = [
        vec!["a", "x1"],
        vec!["b", "a", "c", "x2"],
        vec!["a", "x3", "x4"],
        vec!["b", "x5"],
        vec!["c", "x6", "x7"],
    ];
    let tree = FactorTree::from_factors(&factors, None).unwrap();
    assert_eq!(
        keys(&tree, Tying::Role),
        [
            "x1>a observation",
            "(b,c,x2)>a inward.z2x",
            "(x3,x4)>a observation.x2",
            "(a,c,x2)>b outward.Zzx",
            "x5>b observation",
            "(b,a,x2)>c outward.zZx",
            "(x6,x7)>c observation.x2",
        ]
    );
    assert_eq!(
        keys(&tree, Tying::Depth)[3..5],
        ["(a,c,x2)>b down.0>1.Zzx", "x5>b observation.1"]
    );
}

#[test]
fn tying_in_files() {
    for (tying, text) in [
        (Tying::Separate, "separate"),
        (Tying::Depth, "depth"),
        (Tying::Role, "role"),
    ] {
        assert_eq!(
            serde_json::to_string(&tying).unwrap(),
            format!("\"{text}\"")
        );
        assert_eq!(
            serde_json::from_str::<Tying>(&format!("\"{text}\"")).unwrap(),
            tying
        );
    }
}
