//! Files that are damaged, missing, too new or in the way: each gets one sentence and exit code 2, and no file is touched.

mod scene;

use ramp_io::array::{Array, ArrayValues, write_arrays};
use ramp_io::table::columns;
use scene::{Scene, model, said, table};

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
            scene::numbers(&data, name)
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
        ("support.csv", &score),
        ("support.csv", &impute),
        ("metrics.jsonl", &report),
        ("model.toml", &report),
    ] {
        let path = format!("run/{file}");
        let whole = scene.read(&path);
        let mut garbled = whole.clone();
        garbled[10..30].fill(0xfe);
        for bad in [&whole[..whole.len() / 2], &garbled, b"", b"\x00\xff\xfe\n"] {
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
fn files_of_other_versions_are_left_to_them() {
    let scene = Scene::with_run();
    let infer = ["infer", "run", "--data", "data.csv", "--out", "o.csv"];
    for (version, says) in [("2", "older version"), ("9", "newer version")] {
        scene.mend(
            "run/run.json",
            "\"version\": 3",
            &format!("\"version\": {version}"),
        );
        for words in [
            &infer[..],
            &["report", "run"],
            &["fit", "model.toml", "--out", "run", "--overwrite"],
        ] {
            scene.fails(words, &["run.json", says]);
        }
        scene.mend(
            "run/run.json",
            &format!("\"version\": {version}"),
            "\"version\": 3",
        );
    }
    scene.does(&infer);
    std::fs::remove_file(scene.path("o.csv")).unwrap();
    // The header keeps its length, so that the arrays behind it stay in place.
    let mut bytes = scene.read("run/checkpoint/checkpoint.safetensors");
    let from = b"\\\"version\\\":";
    let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
    bytes[at + from.len()] = b'7';
    scene.write("run/checkpoint/checkpoint.safetensors", bytes);
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
fn rows_without_anything_pass_through() {
    let scene = Scene::with_run();
    scene.write("gaps.csv", table(12).replacen('\n', "\nempty,,,,,,\n", 3));
    scene.does(&["fit", "model.toml", "--data", "gaps.csv", "--out", "other"]);
    for command in ["infer", "score", "impute"] {
        scene.does(&[command, "run", "--data", "gaps.csv", "--out", "o.csv"]);
        let out = scene.table("o.csv");
        assert_eq!(out.num_rows(), 15, "{command}");
        for column in columns(&out) {
            assert!(!column.missing()[0], "{command}: {}", column.name());
        }
    }
    scene.does(&["infer", "run", "--data", "gaps.csv", "--out", "o.csv"]);
    let out = scene.table("o.csv");
    let (mean, sd) = ("left.mean", "left.sd");
    let first = |name: &str| scene::numbers(&out, name)[0];
    assert_eq!(
        (first(mean), first(sd)),
        (0.0, 1.0),
        "nothing but the prior"
    );
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
    // Only the file that the run was fitted to says, in a last column, which rows were learned from.
    let own = scene.text("x.csv");
    let own = own.lines().map(|line| line.rsplit_once(',').unwrap().0);
    assert!(own.eq(scene.text("y.csv").lines()));
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
    assert_eq!(scene.table("o.csv").num_rows(), 12);
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
                "run/support.csv",
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
