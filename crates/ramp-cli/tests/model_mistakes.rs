//! Mistakes in model files and in what they ask of the data: each gets one sentence and exit code 2, and no file is touched.

mod scene;

use ramp_io::table::columns;
use scene::{CHAIN, Scene, TREE, long_table, model, said, table};

const TWO: &str = "[tree]\nnewick = \"(a,b)z;\"\n";

#[test]
fn columns_that_can_tell_nothing_are_named() {
    let scene = Scene::new();
    scene.write("m.toml", model("x.csv", TWO));
    let rows = |b: &dyn Fn(usize) -> String| {
        let rows = (0..20).map(|i| format!("{},{}\n", i % 5, b(i)));
        format!("a,b\n{}", rows.collect::<String>())
    };
    for (b, sentence) in [
        (
            (&|_| "3".into()) as &dyn Fn(usize) -> String,
            "`b` is 3 wherever",
        ),
        (&|_| "yes".into(), "`b` is `yes` wherever"),
        (&|_| "NA".into(), "`b` has no value"),
        (
            &|i| if i == 4 { "inf".into() } else { i.to_string() },
            "infinite in data row 5",
        ),
        (
            &|i| if i == 4 { "oops".into() } else { i.to_string() },
            "`oops`",
        ),
        (&|i| format!("name{i}{}", "x".repeat(i)), ""),
    ] {
        scene.write("x.csv", rows(b));
        match sentence {
            // Few enough different texts are a category.
            "" => drop(scene.does(&["check", "m.toml"])),
            _ => scene.fails(&["fit", "m.toml", "--out", "run"], &["x.csv", sentence]),
        }
    }
    let levels = format!("{TWO}[observations.b]\nlevels = [\"Red\", \"Green\"]\n");
    scene.write("m.toml", model("x.csv", &levels));
    scene.write("x.csv", rows(&|i| ["red", "green"][i % 2].into()));
    scene.fails(
        &["fit", "m.toml", "--out", "run"],
        &["`b` holds none of its `levels`", "and the like"],
    );
    scene.write(
        "x.csv",
        rows(&|i| ["1e300", "-1e308", "0", "1.7e308"][i % 4].into()),
    );
    for scale in ["rank", "standard"] {
        let settings = format!("{TWO}[observations.b]\nscale = \"{scale}\"\n");
        scene.write("m.toml", model("x.csv", &settings));
        scene.does(&["fit", "m.toml", "--out", scale]);
        scene.does(&["infer", scale, "--data", "x.csv", "--out", "o.csv"]);
    }
    scene.write(
        "m.toml",
        model(
            "x.csv",
            &format!("{TWO}[observations.b]\nscale = \"none\"\n"),
        ),
    );
    scene.fails(
        &["fit", "m.toml", "--out", "none"],
        &["x.csv", "column `b` is 1e300 in data row 1", "too large"],
    );
}

#[test]
fn too_little_data_is_said_to_be() {
    let scene = Scene::with_run();
    scene.write("m.toml", model("x.csv", TWO));
    for (data, sentence) in [
        ("", "is empty"),
        ("\u{feff}", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n", "a single row"),
        ("a,b\n1,2\n2,1\n", "holdout 0.1 of 2"),
        ("a,a\n1,2\n", "more than one column named `a`"),
        ("a,\n1,2\n", "column 2 of"),
        ("a,b\n1,2\n3\n", "line 3"),
        ("a,b\n1,2\n\"3,4\n5,6", "line 3"),
        ("a,b\n1,2\n3,x\n4,5\n6,7,8\n", "line 5"),
    ] {
        scene.write("x.csv", data);
        scene.fails(&["fit", "m.toml", "--out", "new"], &["x.csv", sentence]);
        scene.fails(&["check", "m.toml"], &["x.csv"]);
    }
    let header = table(0);
    scene.write("header.csv", &header);
    for command in ["infer", "score", "impute"] {
        scene.fails(
            &[command, "run", "--data", "header.csv", "--out", "o.csv"],
            &["header.csv", "no rows"],
        );
    }
    scene.write("one.csv", table(1));
    for command in ["infer", "score", "impute"] {
        scene.does(&[command, "run", "--data", "one.csv", "--out", "o.csv"]);
        assert_eq!(scene.table("o.csv").num_rows(), 1);
    }
    scene.fails(&["init", "header.csv"], &["header.csv"]);
}

#[test]
fn unknown_columns_and_latents_are_named_with_the_nearest() {
    let scene = Scene::with_run();
    scene.fails(
        &[
            "infer", "run", "--data", "data.csv", "--out", "o.csv", "--keep", "wrod",
        ],
        &["`wrod`", "did you mean `word`?"],
    );
    scene.write("fewer.csv", table(9).replacen("word", "wood", 1));
    scene.fails(
        &["score", "run", "--data", "fewer.csv", "--out", "o.csv"],
        &[
            "`word`, which the model needs, is not in `fewer.csv`",
            "did you mean `wood`?",
        ],
    );
    for (from, to, sentence) in [
        (
            "(a,b,c)left",
            "(a,b,cc)left",
            "there is no column `cc` in `data.csv`: did you mean `c`?",
        ),
        (
            "[networks]",
            "[latents.lft]\ndim = 2\n[networks]",
            "[latents.lft]",
        ),
        (
            "[networks]",
            "[observations.wrod]\nkind = \"number\"\n[networks]",
            "did you mean `word`?",
        ),
        (
            "[networks]",
            "[observations.word]\nkind = \"number\"\n[networks]",
            "not a number",
        ),
        (
            "[networks]",
            "[observations.a]\nkind = \"image\"\n[networks]",
            "images come from arrays",
        ),
        (
            "[networks]",
            "[observations.v]\nkind = \"vector\"\ncolumns = [\"a\"]\n[networks]",
            "[observations.v]",
        ),
    ] {
        let good = scene.text("model.toml");
        scene.mend("model.toml", from, to);
        scene.fails(&["fit", "model.toml", "--out", "new"], &[sentence]);
        scene.write("model.toml", good);
    }
}

#[test]
fn unknown_settings_and_wrong_types_are_named_at_every_level() {
    let scene = Scene::new();
    for (settings, sentence) in [
        (
            "vershun = 1\n[tree]\nnewick = \"(a,b)z;\"",
            "did you mean `version`?",
        ),
        (
            "version = \"1\"",
            "`version` in the model file cannot be `\"1\"`: it is string \"1\", and must be a whole number",
        ),
        (
            "tree = 3",
            "`tree` in the model file must be a table of settings, not `3`",
        ),
        ("[tree]", "[tree] must say who hangs together in one way"),
        (
            "[tree]\nnewick = \"(a,b)z;\"\nedges = []",
            "it has 2 of them",
        ),
        ("[tree]\nnewik = \"(a,b)z;\"", "did you mean `newick`?"),
        ("[tree]\nnewick = 3", "must be a text in quotes"),
        (
            "[tree]\nnewick = \"((a,b)z;\"",
            "[tree]: Newick text, column 8",
        ),
        (
            "[tree]\nedges = [[\"a\",\"b\",\"c\"]]",
            "edge 1 in [tree] joins 3 variables",
        ),
        ("[tree]\nfactors = [[\"a\"]]", "fewer than two"),
        (
            "[tree]\nchain = { observ = [\"a\"] }",
            "no setting `observ`: did you mean `observe`?",
        ),
        ("[tree]\nchain = { observe = \"a\" }", "must be a list"),
        ("[tree]\nchain = { observe = [] }", "observes nothing"),
        (
            "[tree]\nchain = { observe = [\"a\"], step = -1.0, time = \"t\" }",
            "`step` must be a positive number",
        ),
        (
            "[tree]\nchain = { observe = [\"a\"], step = 1.0 }",
            "needs a `time`",
        ),
        ("@[data]\nfil = \"x\"", "did you mean `file`?"),
        ("@[data]\nfile = 3", "must be a text in quotes"),
        ("@[data]\nholdout = \"x\"", "must be a number"),
        ("@[data]\nholdout = 1.5", "must be a fraction"),
        ("@[latents]\nfamly = \"gaussian\"", "did you mean `family`?"),
        (
            "@[latents]\nfamily = \"gausian\"",
            "unknown family `gausian`",
        ),
        ("@[latents]\nfamily = 3", "must be a text in quotes"),
        ("@[latents.z]\ndim = \"x\"", "`dim` in [latents.z]"),
        ("@[latents.z]\ndimm = 1", "did you mean `dim`?"),
        ("@[latents.z]\nlevels = 3", "it has `dim`"),
        ("@[latents.z]\ndim = 100000", "between 1 and"),
        (
            "@[latents.y]\ndim = 1",
            "[latents.y] is about a latent that the tree does not have",
        ),
        ("@[observations]\na = 3", "write [observations.a]"),
        (
            "@[observations.a]\nknd = \"number\"",
            "did you mean `kind`?",
        ),
        (
            "@[observations.a]\nkind = \"nmber\"",
            "did you mean `number`?",
        ),
        ("@[observations.a]\nscale = \"rnk\"", "did you mean `rank`?"),
        ("@[observations.a]\nlevels = [1]", "must be a text"),
        (
            "@[observations.a]\nkind = \"vector\"",
            "a vector needs its columns",
        ),
        (
            "@[observations.a]\nkind = \"number\"\nlevels = [\"x\"]",
            "only a category has levels",
        ),
        (
            "@[observations.a]\nkind = \"categorical\"\nscale = \"rank\"",
            "a category has no scale",
        ),
        (
            "@[observations.a]\ncolumns = [\"a\", \"b\"]",
            "write `kind = \"vector\"`",
        ),
        (
            "@[observations.a]\nnetwork = { hiden = [3] }",
            "did you mean `hidden`?",
        ),
        ("@[networks]\nmesage = {}", "did you mean `message`?"),
        ("@[networks]\nmessage = 3", "must be a table of settings"),
        (
            "@[networks]\nmessage = { hiden = [3] }",
            "did you mean `hidden`?",
        ),
        (
            "@[networks]\nmessage = { hidden = \"x\" }",
            "must be a list",
        ),
        (
            "@[networks]\nmessage = { hidden = [-1] }",
            "must be a whole number from 0",
        ),
        ("@[networks]\nobservation = { hidden = [0] }", "no units"),
        (
            "@[networks]\nmessage = { kind = \"cnv\" }",
            "no `cnv`: did you mean `conv`?",
        ),
        (
            "@[networks]\nmessage = { activation = \"tahn\" }",
            "did you mean `tanh`?",
        ),
        (
            "@[networks]\ninputs = \"moment\"",
            "did you mean `moments`?",
        ),
        (
            "@[networks]\nview = \"moments\"",
            "[networks] has no setting `view` any more: it is called `inputs`",
        ),
        ("@[networks]\ntying = \"rle\"", "did you mean `role`?"),
        ("@[train]\niteration = 5", "did you mean `iterations`?"),
        ("@[train]\niterations = -5", "must be a whole number from 0"),
        (
            "@[train]\niterations = \"x\"",
            "must be a whole number from 0",
        ),
        (
            "@[train]\nlearning_rate = 0",
            "learning_rate must be a positive number",
        ),
        ("@[train]\nholdout = 0.1", "belongs into [data]"),
        ("@[train]\nsplit_seed = 1", "belongs into [data]"),
        ("@[data]\nsplit_seed = -1", "split_seed"),
        ("@[train]\nbatch = 0", "batch must be at least 1"),
        (
            "@[train]\nbatch = 1000000",
            "larger than the 48 training samples",
        ),
        (
            "@[train]\ndecay = { kind = \"cosin\" }",
            "did you mean `cosine`?",
        ),
        (
            "@[train]\noptimizer = { kind = \"adm\" }",
            "did you mean `adam`?",
        ),
        (
            "@[train]\noptimizer = 3",
            "`optimizer` in [train] cannot be `3`",
        ),
        ("@[train]\nseed = 1.5", "`seed` in [train]"),
        ("a = \"é\n[tree", "is not TOML"),
        ("\n\n[tree", "line 3 is not TOML"),
        ("\u{feff}\u{0}", "is not TOML"),
    ] {
        let settings = match settings.strip_prefix('@') {
            Some(rest) => format!("{TWO}{rest}"),
            None => settings.to_string(),
        };
        scene.write("m.toml", &settings);
        let before = scene.files();
        let output = scene.run(&["check", "m.toml", "--data", "data.csv"]);
        let error = said(&output);
        assert_eq!(output.status.code(), Some(2), "{settings}: {error}");
        assert_eq!(error.lines().count(), 1, "{settings}: {error}");
        assert!(
            error.contains(sentence),
            "{settings}: no `{sentence}` in: {error}"
        );
        assert_eq!(before, scene.files());
    }
    scene.write("m.toml", format!("{TREE}{}", scene::TINY));
    scene.fails(
        &["fit", "m.toml", "--out", "run"],
        &["no data is given", "--data"],
    );
}

#[test]
fn sequences_that_do_not_add_up_are_named() {
    let scene = Scene::new();
    let good = long_table(20);
    scene.write("m.toml", model("long.csv", CHAIN));
    for (bad, sentence) in [
        (
            good.replacen("s1,1,", "s1,0,", 1),
            "sequence `s1` has two rows with the same `day`",
        ),
        (
            good.replacen("s1,1,", ",1,", 1),
            "does not say which sequence data row 5 belongs to",
        ),
        (
            good.replacen("s1,1,", "s1,NA,", 1),
            "does not say the time of data row 5",
        ),
        (
            good.lines().take(4).map(|l| format!("{l}\n")).collect(),
            "a single sequence",
        ),
        (
            good.replacen("who,", "whom,", 1),
            "there is no column `who`",
        ),
    ] {
        scene.write("long.csv", bad);
        scene.fails(&["fit", "m.toml", "--out", "run"], &["long.csv", sentence]);
    }
    scene.write("long.csv", &good);
    scene.does(&["fit", "m.toml", "--out", "run"]);

    // Longer sequences than any in training.
    let mut longer = String::from("who,day,heart,sleep\n");
    for day in 0..15 {
        longer += &format!("new,{day},{:.2},\n", scene::noise(day, 0));
    }
    scene.write("longer.csv", longer + "short,1,0.3,0.2\n");
    for command in ["infer", "score", "impute"] {
        scene.does(&[command, "run", "--data", "longer.csv", "--out", "o.csv"]);
        let out = scene.table("o.csv");
        assert_eq!(out.num_rows(), 16, "{command}");
        let last = columns(&out).last().unwrap().numbers(0).unwrap();
        // Also at steps that training never reached: networks are tied over time.
        assert!(last.iter().all(|x| x.is_finite()), "{command}");
    }
    let no_ids = model("long.csv", "[tree]\nchain = { observe = [\"heart\"] }\n");
    scene.write("m.toml", no_ids);
    scene.fails(
        &["check", "m.toml"],
        &[
            "a single sequence",
            "names the column that tells sequences apart",
        ],
    );
}

#[test]
fn numbers_gone_astray_are_the_users_to_mend() {
    let scene = Scene::new();
    scene.mend(
        "model.toml",
        "iterations = 5",
        "iterations = 50\nwarmup = 0\nlearning_rate = 1e30",
    );
    let output = scene.run(&["fit", "model.toml", "--out", "run"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("a learning rate of 1e30 is too high"),
        "{}",
        said(&output)
    );
    assert!(!scene.path("run/weights.safetensors").exists());

    // What was there before stays.
    let scene = Scene::with_run();
    let before = [
        "weights.safetensors",
        "support.csv",
        "report.html",
        "metrics.jsonl",
    ]
    .map(|file| (file, scene.read(&format!("run/{file}"))));
    scene.mend(
        "model.toml",
        "iterations = 5",
        "iterations = 50\nwarmup = 0\nlearning_rate = 1e30",
    );
    let output = scene.run(&["fit", "model.toml", "--out", "run", "--overwrite"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for (file, bytes) in before {
        assert_eq!(scene.read(&format!("run/{file}")), bytes, "{file}");
    }
}

#[test]
fn a_report_is_of_the_data_that_the_run_was_fitted_to() {
    let scene = Scene::with_run();
    scene.does(&["report", "run"]);
    let text = scene.text("data.csv");
    let rows: Vec<&str> = text.lines().collect();
    scene.write("data.csv", rows[..rows.len() - 3].join("\n"));
    scene.fails(&["report", "run"], &["is not what `run` was fitted to"]);
}
