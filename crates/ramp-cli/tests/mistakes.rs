//! What goes wrong in practice: every mistake gets one sentence, exit code 2, and no file is touched.

mod scene;

use ramp::data::array::{Array, ArrayValues, write_arrays};
use scene::{CHAIN, Scene, TREE, long_table, model, said, table};

const TWO: &str = "[tree]\nnewick = \"(a,b)z;\"\n";

/// The data in every format that a table may have.
fn store_all(scene: &Scene) {
    let data = scene.table("data.csv");
    for format in ["tsv", "parquet", "arrow"] {
        scene.store(&format!("data.{format}"), &data);
    }
}

#[test]
fn truncated_data_is_noticed_in_every_format() {
    let scene = Scene::with_run();
    store_all(&scene);
    for format in ["csv", "tsv", "parquet", "arrow"] {
        let whole = scene.read(&format!("data.{format}"));
        let cut = format!("cut.{format}");
        // In the middle of a row of text, well before its last field.
        let at = match format {
            "csv" | "tsv" => {
                let rows = whole.iter().enumerate().filter(|(_, b)| **b == b'\n');
                rows.map(|(i, _)| i).nth(30).unwrap() + 6
            }
            _ => whole.len() / 2,
        };
        scene.write(&cut, &whole[..at]);
        for words in [
            &["check", "model.toml", "--data", &cut][..],
            &["fit", "model.toml", "--data", &cut, "--out", "new"],
            &["infer", "run", "--data", &cut, "--out", "o.csv"],
            &["score", "run", "--data", &cut, "--out", "o.csv"],
            &["impute", "run", "--data", &cut, "--out", "o.csv"],
        ] {
            scene.fails(words, &[&cut]);
        }
    }
}

#[test]
fn truncated_arrays_are_noticed() {
    let scene = Scene::new();
    let array = |name: &str| Array {
        name: name.into(),
        shape: vec![40],
        values: ArrayValues::Numbers((0..40).map(|i| (i % 7) as f32).collect()),
    };
    write_arrays(&scene.path("a.npz"), &[array("a"), array("b")], true).unwrap();
    write_arrays(&scene.path("a.npy"), &[array("a")], true).unwrap();
    scene.write("m.toml", model("a.npz", TWO));
    scene.does(&["check", "m.toml"]);
    for (name, cut) in [("a.npz", "cut.npz"), ("a.npy", "cut.npy")] {
        let whole = scene.read(name);
        for length in [0, 5, whole.len() / 2, whole.len() - 3] {
            scene.write(cut, &whole[..length]);
            scene.fails(&["check", "m.toml", "--data", cut], &[cut]);
        }
    }
    scene.fails(
        &["check", "m.toml", "--data", "a.npy"],
        &["no array `", "a.npy"],
    );
}

#[test]
fn garbled_files_never_bring_it_down() {
    let scene = Scene::with_run();
    store_all(&scene);
    let data = scene.table("data.csv");
    let numbers = |name: &str| Array {
        name: name.into(),
        shape: vec![60],
        values: ArrayValues::Numbers(
            data.column(name)
                .unwrap()
                .numbers()
                .unwrap()
                .iter()
                .map(|&x| x as f32)
                .collect(),
        ),
    };
    write_arrays(&scene.path("data.npz"), &[numbers("a"), numbers("b")], true).unwrap();
    scene.write("arrays.toml", model("data.npz", TWO));
    scene.does(&["check", "arrays.toml"]);
    for (format, file) in [
        ("csv", "model.toml"),
        ("tsv", "model.toml"),
        ("parquet", "model.toml"),
        ("arrow", "model.toml"),
        ("npz", "arrays.toml"),
    ] {
        let whole = scene.read(&format!("data.{format}"));
        let name = format!("bad.{format}");
        for seed in 0..12 {
            let mut bytes = whole.clone();
            for hit in 0..1 + seed % 4 {
                let at = (scene::noise(seed, hit) * bytes.len() as f64) as usize;
                bytes[at] ^= 1 << (seed % 8);
            }
            scene.write(&name, &bytes);
            // A flipped bit may make another number; anything else is a sentence.
            let output = scene.run(&["check", file, "--data", &name]);
            let error = said(&output);
            match output.status.code() {
                Some(0) => {}
                Some(2) => assert!(
                    error.lines().count() == 1 && error.contains(&name),
                    "{format} {seed}: {error}"
                ),
                code => panic!("{format} {seed}: {code:?} {error}"),
            }
        }
    }
}

#[test]
fn a_damaged_run_is_named_file_by_file() {
    let scene = Scene::with_run();
    let infer = ["infer", "run", "--data", "data.csv", "--out", "o.csv"];
    let score = ["score", "run", "--data", "data.csv", "--out", "o.csv"];
    let impute = ["impute", "run", "--data", "data.csv", "--out", "o.csv"];
    let resume = ["fit", "model.toml", "--out", "run", "--resume"];
    let report = ["report", "run"];
    for (file, words) in [
        ("weights.safetensors", &infer[..]),
        ("checkpoint/checkpoint.safetensors", &resume),
        ("reference.csv", &score),
        ("reference.csv", &impute),
        ("metrics.jsonl", &report),
        ("model.toml", &report),
    ] {
        let path = format!("run/{file}");
        let whole = scene.read(&path);
        let half = match file {
            "reference.csv" => whole.len() / 2 / 30 * 30,
            _ => whole.len() / 2,
        };
        let mut garbled = whole.clone();
        garbled[10..30].fill(0xfe);
        for bad in [&whole[..half], &garbled, b"", b"\x00\xff\xfe\n"] {
            // Half of a table may end with a whole row, and half of the metrics with a whole line.
            if bad.ends_with(b"\n") && bad.len() == half
                || bad.is_empty() && file == "metrics.jsonl"
            {
                continue;
            }
            scene.write(&path, bad);
            scene.fails(words, &[file.rsplit('/').next().unwrap()]);
        }
        std::fs::remove_file(scene.path(&path)).unwrap();
        scene.fails(words, &["run"]);
        scene.write(&path, &whole);
    }
    for words in [&infer[..], &score, &impute, &report, &resume] {
        scene.does(words);
    }
}

#[test]
fn files_of_a_newer_version_are_left_to_it() {
    let scene = Scene::with_run();
    // Headers keep their length, so that the arrays behind them stay in place.
    let newer = |file: &str| {
        let bytes = scene.read(file);
        let from = b"\\\"version\\\":1";
        let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
        let mut newer = bytes.clone();
        newer[at + from.len() - 1] = b'7';
        scene.write(file, &newer);
        bytes
    };
    let kept = newer("run/weights.safetensors");
    scene.fails(
        &["infer", "run", "--data", "data.csv", "--out", "o.csv"],
        &["weights.safetensors", "newer version"],
    );
    scene.fails(&["report", "run"], &["newer version"]);
    scene.write("run/weights.safetensors", kept);
    newer("run/checkpoint/checkpoint.safetensors");
    scene.fails(
        &["fit", "model.toml", "--out", "run", "--resume"],
        &["checkpoint.safetensors", "newer version"],
    );
    scene.mend("model.toml", "version = 1", "version = 2");
    scene.fails(
        &["check", "model.toml"],
        &["model.toml", "version 2", "newer"],
    );
    scene.mend("model.toml", "version = 2", "version = 0");
    scene.fails(&["check", "model.toml"], &["no version 0"]);
}

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
        (&|i| format!("name{i}{}", "x".repeat(i)), ""),
    ] {
        scene.write("x.csv", rows(b));
        match sentence {
            // Few enough different texts are a category.
            "" => drop(scene.does(&["check", "m.toml"])),
            _ => scene.fails(&["fit", "m.toml", "--out", "run"], &["x.csv", sentence]),
        }
    }
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
fn rows_without_anything_pass_through() {
    let scene = Scene::with_run();
    scene.write("gaps.csv", table(12).replacen('\n', "\nempty,,,,,,\n", 3));
    scene.does(&["fit", "model.toml", "--data", "gaps.csv", "--out", "other"]);
    for command in ["infer", "score", "impute"] {
        scene.does(&[command, "run", "--data", "gaps.csv", "--out", "o.csv"]);
        let out = scene.table("o.csv");
        assert_eq!(out.rows(), 15, "{command}");
        for column in out.columns() {
            assert!(!column.is_missing(0), "{command}: {}", column.name);
        }
    }
    scene.does(&["infer", "run", "--data", "gaps.csv", "--out", "o.csv"]);
    let out = scene.table("o.csv");
    let (mean, sd) = ("left.mean", "left.sd");
    let first = |name: &str| out.column(name).unwrap().numbers().unwrap()[0];
    assert_eq!(
        (first(mean), first(sd)),
        (0.0, 1.0),
        "nothing but the prior"
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
        ("a,b\n1,2\n2,1\n", "holding out 0.2 of 2"),
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
        assert_eq!(scene.table("o.csv").rows(), 1);
    }
    scene.fails(&["init", "header.csv"], &["header.csv"]);
}

#[test]
fn a_byte_order_mark_and_windows_lines_make_no_difference() {
    let scene = Scene::new();
    scene.write(
        "windows.csv",
        format!("\u{feff}{}", table(60).replace('\n', "\r\n")),
    );
    scene.does(&["fit", "model.toml", "--out", "run"]);
    scene.does(&[
        "fit",
        "model.toml",
        "--data",
        "windows.csv",
        "--out",
        "other",
    ]);
    assert_eq!(
        scene.read("run/metrics.jsonl"),
        scene.read("other/metrics.jsonl")
    );
    for (data, out) in [("data.csv", "x.csv"), ("windows.csv", "y.csv")] {
        scene.does(&["infer", "run", "--data", data, "--out", out, "--keep", "id"]);
    }
    assert_eq!(scene.read("x.csv"), scene.read("y.csv"));
    scene.write("model.toml", scene.text("model.toml").replace('\n', "\r\n"));
    scene.does(&["check", "model.toml"]);
}

#[test]
fn ten_thousand_columns_take_seconds() {
    let scene = Scene::new();
    let names: Vec<String> = (0..10_000).map(|i| format!("x{i}")).collect();
    let mut text = names.join(",");
    for row in 0..12 {
        text.push('\n');
        let cells: Vec<String> = (0..10_000)
            .map(|c| format!("{:.2}", scene::noise(row, c)))
            .collect();
        text += &cells.join(",");
    }
    scene.write("wide.csv", text + "\n");
    let tree = format!("[tree]\nnewick = \"({})z;\"\n", names.join(","));
    scene.write(
        "m.toml",
        model("wide.csv", &tree)
            .replace("[4]", "[1]")
            .replace("= 5", "= 1"),
    );
    let begun = std::time::Instant::now();
    scene.does(&["check", "m.toml"]);
    scene.does(&["fit", "m.toml", "--out", "run"]);
    scene.does(&["infer", "run", "--data", "wide.csv", "--out", "o.csv"]);
    // A tenth of this without others on the machine; the square of ten thousand would be hours.
    assert!(begun.elapsed().as_secs() < 300, "{:?}", begun.elapsed());
    assert_eq!(scene.table("o.csv").rows(), 12);
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let scene = Scene::with_run();
    // Below a file there is no folder, for anybody.
    scene.fails(
        &["fit", "model.toml", "--out", "data.csv/run"],
        &["cannot write into `data.csv/run`", "--out"],
    );
    scene.fails(
        &["fit", "model.toml", "--out", "data.csv"],
        &["`data.csv` is a file", "--out"],
    );
    for command in ["infer", "score", "impute"] {
        scene.fails(
            &[
                command,
                "run",
                "--data",
                "data.csv",
                "--out",
                "model.toml/o.csv",
            ],
            &["cannot write into `model.toml`"],
        );
        scene.fails(
            &[command, "run", "--data", "data.csv", "--out", "o.xlsx"],
            &["`o.xlsx`", ".parquet"],
        );
    }
    scene.write("folder.csv/inside", "");
    scene.fails(
        &["infer", "run", "--data", "data.csv", "--out", "folder.csv"],
        &["`folder.csv` is a folder"],
    );
    if cfg!(target_os = "linux") {
        // Not even root can make files there.
        scene.fails(
            &["fit", "model.toml", "--out", "/proc/run"],
            &["cannot write into `/proc/run`"],
        );
        scene.fails(
            &["infer", "run", "--data", "data.csv", "--out", "/proc/o.csv"],
            &["cannot write into `/proc`"],
        );
    }
}

#[test]
fn nothing_that_is_needed_is_written_over() {
    let scene = Scene::with_run();
    for command in ["infer", "score", "impute"] {
        for out in ["data.csv", "./data.csv", "run/../data.csv"] {
            scene.fails(
                &[command, "run", "--data", "data.csv", "--out", out],
                &[out, "both the data and the output"],
            );
        }
        scene.fails(
            &[
                command,
                "run",
                "--data",
                "data.csv",
                "--out",
                "run/reference.csv",
            ],
            &["belongs to the run"],
        );
    }
    scene.fails(
        &["fit", "model.toml", "--out", "run"],
        &[
            "`run` holds a run already",
            "--resume",
            "--overwrite",
            "--out",
        ],
    );
    scene.fails(
        &["fit", "model.toml", "--out", "none", "--resume"],
        &["no run in `none`"],
    );
    std::fs::remove_dir_all(scene.path("run/checkpoint")).unwrap();
    scene.fails(
        &["fit", "model.toml", "--out", "run", "--resume"],
        &["its checkpoint is gone"],
    );
    // A mistake in the new model leaves the old run alone, even where it was to be replaced.
    scene.mend("model.toml", "(a,b,c)", "(a,b,cc)");
    scene.fails(
        &["fit", "model.toml", "--out", "run", "--overwrite"],
        &["`cc`", "did you mean `c`"],
    );
}

#[test]
fn resuming_with_anything_else_is_refused() {
    let scene = Scene::with_run();
    let resume = ["fit", "model.toml", "--out", "run", "--resume"];
    let model = scene.text("model.toml");
    scene.write("more.csv", table(61));
    // One digit, in a place that no scale depends on.
    let other = scene.text("data.csv").replacen("001,", "001,9", 1);
    scene.write("other.csv", &other);
    for (data, sentence) in [
        ("more.csv", "60 samples but the data now has 61"),
        ("other.csv", "other data"),
    ] {
        let words = [&resume[..], &["--data", data]].concat();
        scene.fails(&words, &["checkpoint", sentence]);
    }
    scene.fails(
        &[&resume[..], &["--seed", "5"]].concat(),
        &["other training settings"],
    );
    scene.write(
        "model.toml",
        model.replace("message = { hidden = [4] }", "message = { hidden = [5] }"),
    );
    scene.fails(&resume, &["another model"]);
    scene.write("model.toml", &model);
    scene.does(&[&resume[..], &["--iterations", "9"]].concat());
    assert_eq!(scene.text("run/metrics.jsonl").lines().count(), 9);
}

#[test]
fn files_that_are_not_there_or_not_files_are_named() {
    let scene = Scene::with_run();
    std::fs::create_dir(scene.path("folder.csv")).unwrap();
    std::fs::create_dir(scene.path("folder.npz")).unwrap();
    scene.write("data.xlsx", "a,b\n1,2\n");
    for (data, sentence) in [
        ("folder.csv", "is a folder"),
        ("folder.npz", "is a folder"),
        ("nothing.csv", "no data file `nothing.csv`"),
        ("data.xlsx", ".parquet"),
    ] {
        for words in [
            &["check", "model.toml", "--data", data][..],
            &["fit", "model.toml", "--data", data, "--out", "new"],
            &["infer", "run", "--data", data, "--out", "o.csv"],
            &["impute", "run", "--data", data, "--out", "o.csv"],
            &["score", "run", "--data", data, "--out", "o.csv"],
        ] {
            scene.fails(words, &[data, sentence]);
        }
    }
    scene.fails(
        &["check", "nothing.toml"],
        &["no model file `nothing.toml`", "ramp init"],
    );
    scene.fails(&["check", "folder.csv"], &["`folder.csv` is a folder"]);
    scene.write("latin.toml", b"# caf\xe9\n");
    scene.fails(&["check", "latin.toml"], &["latin.toml", "UTF-8"]);
    scene.fails(
        &["infer", "nowhere", "--data", "data.csv", "--out", "o.csv"],
        &["`nowhere` is no finished run"],
    );
    scene.fails(&["report", "nowhere"], &["`nowhere` is no finished run"]);
    for data in ["folder.csv", "nothing.csv", "data.xlsx"] {
        scene.fails(&["init", data], &[data]);
    }
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
        ("[tree]\nchain = { observe = [\"a@1\"] }", "rename it"),
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
        ("@[networks]\nview = \"moment\"", "did you mean `moments`?"),
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
        assert_eq!(out.rows(), 16, "{command}");
        let last = out.columns().last().unwrap().numbers().unwrap();
        // Steps that training never reached have nothing to be filled from.
        assert!(
            command == "impute" || last.iter().all(|x| x.is_finite()),
            "{command}"
        );
    }
    let no_ids = model("long.csv", "[tree]\nchain = { observe = [\"heart\"] }\n");
    scene.write("m.toml", no_ids);
    scene.fails(
        &["check", "m.toml"],
        &["needs the column that tells sequences apart"],
    );
}

#[test]
fn levels_that_training_never_saw_count_as_missing_with_a_note() {
    let scene = Scene::with_run();
    scene.write("new.csv", table(20).replace("low", "lowest"));
    let (_, noted) = scene.does(&["infer", "run", "--data", "new.csv", "--out", "o.csv"]);
    assert!(noted.contains("levels that training never saw"), "{noted}");
    scene.write("gone.csv", table(20).replace("low", ""));
    let (_, noted) = scene.does(&["infer", "run", "--data", "gone.csv", "--out", "p.csv"]);
    assert_eq!(noted, "");
    assert_eq!(scene.read("o.csv"), scene.read("p.csv"));
    // They are not missing, so nothing takes their place.
    scene.does(&["impute", "run", "--data", "new.csv", "--out", "i.csv"]);
    assert!(scene.text("i.csv").contains("lowest"));
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
        said(&output).contains("not finite; lower the learning rate"),
        "{}",
        said(&output)
    );
    assert!(!scene.path("run/weights.safetensors").exists());
}
