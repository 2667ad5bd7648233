//! The main job from end to end: fit, infer, score, impute, report, on every format.

mod scene;

use ramp_io::arrow::{Array, ArrayRef, DataType, Float64Array, Int64Array, RecordBatch};
use ramp_io::table::{Column, column, columns, select_rows, table};
use scene::{CHAIN, Scene, long_table, model, names, noise, numbers, said};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FORMATS: [&str; 4] = ["csv", "tsv", "parquet", "arrow"];

/// The same columns with the same numbers, to the last digit.
fn assert_same(a: &RecordBatch, b: &RecordBatch, what: &str) {
    assert_eq!(names(a), names(b), "{what}");
    for name in names(a) {
        let bits = |table: &RecordBatch| -> Vec<u64> {
            let all = numbers(table, name);
            all.iter().map(|x| x.to_bits()).collect()
        };
        assert_eq!(bits(a), bits(b), "{what}: {name}");
    }
}

/// The cells of a column as numbers, not-a-number where one is missing.
fn floats(column: Column<'_>) -> ArrayRef {
    Arc::new(Float64Array::from(column.numbers(0).unwrap()))
}

/// The cells of a column as whole numbers, ten times as large where `by` says so.
fn integers(column: Column<'_>, by: f64) -> ArrayRef {
    let whole = |x: f64| (!x.is_nan()).then_some((x * by) as i64);
    let all = column.numbers(0).unwrap().into_iter().map(whole);
    Arc::new(all.collect::<Int64Array>())
}

/// The data as typed columns, as a program would store it.
fn typed(data: &RecordBatch) -> RecordBatch {
    let typed = columns(data).map(|column| {
        let cells = match column.name() {
            "word" => column.cells.clone(),
            "id" => integers(column, 1.0),
            _ => floats(column),
        };
        (column.name(), cells)
    });
    table(typed).unwrap()
}

#[test]
fn a_fit_leaves_its_files_and_says_what_it_found() {
    let scene = Scene::new();
    let (printed, noted) = scene.does(&["fit", "model.toml", "--out", "run"]);
    for file in [
        "run.json",
        "model.toml",
        "weights.safetensors",
        "checkpoint/checkpoint.safetensors",
        "metrics.jsonl",
        "support.csv",
        "report.html",
    ] {
        assert!(scene.path("run").join(file).is_file(), "{file}");
    }
    assert_eq!(scene.text("run/metrics.jsonl").lines().count(), 5);
    assert_eq!(noted, "", "what is done in a moment is not told");
    for said in [
        "60 rows; 48 to learn from, 6 to choose the weights, 6 to judge",
        "left",
        "3 levels",
        "report:",
    ] {
        assert!(printed.contains(said), "no `{said}` in {printed}");
    }

    // The report is built again, the same but for the command and the time that it names.
    let before = scene.text("run/report.html");
    std::fs::remove_file(scene.path("run/report.html")).unwrap();
    scene.does(&["report", "run"]);
    let after = scene.text("run/report.html");
    assert!(after.contains("<html") && after.len().abs_diff(before.len()) < 1000);

    // The resolved model makes the same run again.
    scene.does(&["fit", "run/model.toml", "--out", "again"]);
    assert_eq!(
        scene.read("run/metrics.jsonl"),
        scene.read("again/metrics.jsonl")
    );
}

#[test]
fn a_model_file_from_init_passes_check_and_fit() {
    let scene = Scene::new();
    scene.write(
        "odd.csv",
        scene::table(60).replacen("a,b,c", "'a (b)',\"b,\n[c]\",c@;", 1),
    );
    scene.does(&["init", "odd.csv"]);
    let (printed, _) = scene.does(&["check", "odd.toml"]);
    assert!(printed.contains("all is well"), "{printed}");
    assert!(scene.text("odd.toml").contains("id: left out"));
    scene.does(&["fit", "odd.toml", "--iterations", "2", "--out", "run"]);
    scene.fails(&["init", "odd.csv"], &["odd.toml", "--overwrite"]);
}

#[test]
#[cfg(unix)]
fn interrupted_and_resumed_it_ends_bit_for_bit_the_same() {
    let scene = Scene::new();
    scene.mend(
        "model.toml",
        "iterations = 5",
        "iterations = 6000\npatience = 100000",
    );
    scene.does(&["fit", "model.toml", "--out", "whole"]);

    let child = scene
        .command()
        .args(["fit", "model.toml", "--out", "pieces"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !scene.path("pieces/checkpoint").is_dir() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(
        said(&output).contains("go on with: ramp fit model.toml --out pieces --resume"),
        "{}",
        said(&output)
    );
    scene.fails(
        &["infer", "pieces", "--data", "data.csv", "--out", "o.csv"],
        &["no finished run", "--resume"],
    );
    scene.does(&["fit", "model.toml", "--out", "pieces", "--resume"]);
    for file in ["weights.safetensors", "metrics.jsonl"] {
        assert_eq!(
            scene.read(&format!("whole/{file}")),
            scene.read(&format!("pieces/{file}")),
            "{file}"
        );
    }
}

/// A table without its last column, which says what rows were to the fit.
fn without_split(table: &RecordBatch) -> RecordBatch {
    let columns: Vec<usize> = (0..table.num_columns() - 1).collect();
    assert_eq!(names(table).last(), Some(&"split"));
    table.project(&columns).unwrap()
}

#[test]
fn every_format_in_and_out_gives_the_same_numbers_row_for_row() {
    let scene = Scene::with_run();
    let data = scene.table("data.csv");
    let typed = typed(&data);
    for format in &FORMATS[1..] {
        scene.store(
            &format!("data.{format}"),
            if *format == "tsv" { &data } else { &typed },
        );
    }
    for command in ["infer", "score"] {
        scene.does(&[
            command,
            "run",
            "--data",
            "data.csv",
            "--out",
            "expected.csv",
        ]);
        let expected = scene.table("expected.csv");
        assert_eq!(expected.num_rows(), data.num_rows());
        for (i, input) in FORMATS.into_iter().enumerate() {
            // Every input and every output once; all sixteen pairs would say no more.
            let output = FORMATS[(i + 1) % 4];
            let (from, to) = (format!("data.{input}"), format!("out.{output}"));
            scene.does(&[command, "run", "--data", &from, "--out", &to]);
            // The file that the run was fitted to says of its rows which were learned from, in one more column.
            let got = match input {
                "csv" => without_split(&scene.table(&to)),
                _ => scene.table(&to),
            };
            let same = without_split(&expected);
            assert_same(&same, &got, &format!("{command} {from} {to}"));
        }
    }

    // Rows stand in the order of the data: the second half alone gives the second half.
    let half: Vec<u32> = (30..60).collect();
    scene.store("half.csv", &select_rows(&data, &half).unwrap());
    scene.does(&["infer", "run", "--data", "half.csv", "--out", "h.csv"]);
    scene.does(&["infer", "run", "--data", "data.csv", "--out", "all.csv"]);
    let (some, all) = (scene.table("h.csv"), scene.table("all.csv"));
    assert_eq!(names(&some), names(&without_split(&all)));
    for name in names(&some) {
        let (some, all) = (numbers(&some, name), numbers(&all, name));
        for (x, y) in some.iter().zip(&all[30..]) {
            assert!((x - y).abs() < 1e-5, "{name}: {x} {y}");
        }
    }
}

#[test]
fn what_is_to_be_kept_stands_in_front_as_it_came() {
    let scene = Scene::with_run();
    scene.does(&[
        "infer",
        "run",
        "--data",
        "data.csv",
        "--out",
        "o.csv",
        "--keep",
        "id,word,id",
    ]);
    let out = scene.table("o.csv");
    assert_eq!(
        names(&out),
        [
            "id",
            "word",
            "top.mean",
            "top.sd",
            "left.mean",
            "left.sd",
            "right.mean",
            "right.sd",
            "split"
        ]
    );
    let data = scene.table("data.csv");
    for name in ["id", "word"] {
        let cells = |table| column(table, name).unwrap().cells.clone();
        assert_eq!(&cells(&out), &cells(&data));
    }
    assert!(scene.text("o.csv").contains("\n007,NA,"), "as it was spelt");
}

#[test]
fn a_categorical_latent_has_probabilities_that_add_up() {
    let scene = Scene::new();
    let text = scene.text("model.toml") + "[latents.left]\nfamily = \"categorical\"\nlevels = 3\n";
    scene.write("model.toml", text);
    scene.does(&["fit", "model.toml", "--out", "run"]);
    scene.does(&["infer", "run", "--data", "data.csv", "--out", "o.csv"]);
    let out = scene.table("o.csv");
    let levels = ["left.p1", "left.p2", "left.p3"].map(|name| numbers(&out, name));
    for row in 0..60 {
        let total: f64 = levels.iter().map(|p| p[row]).sum();
        assert!((total - 1.0).abs() < 1e-6, "row {row}: {total}");
        assert!(levels.iter().all(|p| (0.0..=1.0).contains(&p[row])));
    }
}

#[test]
fn imputing_fills_what_is_missing_and_nothing_else() {
    let scene = Scene::with_run();
    // Spellings that a careless writer would tidy up, and gaps in a column that the model does not know.
    let data = scene
        .text("data.csv")
        .replacen("id,", "note,id,", 1)
        .replace("\n0", "\nNULL,0")
        .replace("000,", "000, ");
    scene.write("gaps.csv", &data);
    scene.does(&["impute", "run", "--data", "gaps.csv", "--out", "full.csv"]);
    let (before, after) = (scene.text("gaps.csv"), scene.text("full.csv"));
    assert_eq!(before.lines().count(), after.lines().count());
    let mut filled = 0;
    for (old, new) in before.lines().zip(after.lines()) {
        for (place, (old, new)) in old.split(',').zip(new.split(',')).enumerate() {
            let missing = matches!(old, "" | "NA" | "NULL") && place > 0;
            if missing {
                assert!(!matches!(new, "" | "NA"), "{before}\n{after}");
                filled += 1;
            } else {
                assert_eq!(old, new);
            }
        }
    }
    assert!(filled > 20, "{filled}");

    // In Parquet, whole numbers stay whole.
    let data = scene.table("data.csv");
    let typed = typed(&data);
    let whole = columns(&typed).map(|c| match c.name() {
        "a" => ("a", integers(c, 10.0)),
        name => (name, c.cells.clone()),
    });
    scene.store("whole.parquet", &table(whole).unwrap());
    scene.does(&[
        "impute",
        "run",
        "--data",
        "whole.parquet",
        "--out",
        "full.parquet",
    ]);
    let full = scene.table("full.parquet");
    let a = column(&full, "a").unwrap();
    assert_eq!(*a.cells.data_type(), DataType::Int64);
    assert_eq!(a.cells.null_count(), 0);
    assert_eq!(full.num_rows(), 60);
}

#[test]
fn draws_are_as_many_as_asked_for_and_reproducible_and_differ() {
    let scene = Scene::with_run();
    let impute = |out: &str, seed: &str| {
        scene.does(&[
            "impute", "run", "--data", "data.csv", "--out", out, "--draws", "5", "--seed", seed,
        ]);
        scene.table(out)
    };
    let first = impute("first.csv", "3");
    assert_eq!(first.num_rows(), 300);
    assert_eq!(
        numbers(&first, "draw")[..7],
        [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0]
    );
    let id = |row: usize| column(&first, "id").unwrap().texts()[row].clone().unwrap();
    assert_eq!(
        (id(0), id(4), id(5)),
        ("000".into(), "000".into(), "001".into())
    );
    impute("again.csv", "3");
    assert_eq!(scene.read("first.csv"), scene.read("again.csv"));
    impute("other.csv", "4");
    assert_ne!(scene.read("first.csv"), scene.read("other.csv"));

    // Draws differ among themselves wherever something is missing, and known cells never change.
    let data = scene.table("data.csv");
    let mut varied = 0;
    for name in ["a", "b", "c", "d", "e"] {
        let drawn = numbers(&first, name);
        let missing = column(&data, name).unwrap().missing();
        for row in 0..60 {
            let five = &drawn[5 * row..][..5];
            match missing[row] {
                true => varied += usize::from(five.iter().any(|x| x != &five[0])),
                false => assert!(five.iter().all(|x| x == &five[0])),
            }
        }
    }
    assert!(varied > 10, "{varied}");
}

#[test]
fn draws_of_different_columns_do_not_hang_together_by_chance() {
    // Columns that share nothing, all missing in the rows to fill: a draw's place among its candidates is then one random
    // number, and two columns must not get the same.
    let scene = Scene::new();
    let mut text = String::from("a,b,c\n");
    for row in 0..200 {
        text += &format!("{row},{row},{row}\n");
    }
    scene.write("order.csv", &text);
    scene.write(
        "m.toml",
        model("order.csv", "[tree]\nnewick = \"(a,b,c)z;\"\n"),
    );
    scene.does(&["fit", "m.toml", "--out", "run"]);
    scene.write("gaps.csv", "id,a,b,c\n1,,,\n2,,,\n");
    scene.does(&[
        "impute", "run", "--data", "gaps.csv", "--out", "o.csv", "--draws", "40",
    ]);
    let out = scene.table("o.csv");
    let [a, b, c] = ["a", "b", "c"].map(|n| numbers(&out, n));
    // Where nothing is known of a row, draws are spread as the column is, though the rest of a row would tell it to the last digit.
    for x in [&a, &b, &c] {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        let ratio = variance.sqrt() / (200.0 / 12.0_f64.sqrt());
        assert!((0.75..1.3).contains(&ratio), "{ratio}");
    }
    for (x, y) in [(&a, &b), (&b, &c)] {
        for shift in [0, 1] {
            let same = x[..40 - shift]
                .iter()
                .zip(&y[shift..40])
                .filter(|(x, y)| x == y);
            assert!(same.count() < 10, "shift {shift}");
            let same = x[shift..40]
                .iter()
                .zip(&y[..40 - shift])
                .filter(|(x, y)| x == y);
            assert!(same.count() < 10, "shift {shift} back");
        }
    }
}

#[test]
fn long_tables_of_sequences_keep_their_rows() {
    let scene = Scene::new();
    scene.write("long.csv", long_table(20));
    scene.write("m.toml", model("long.csv", CHAIN));
    scene.does(&["fit", "m.toml", "--out", "run"]);
    scene.does(&["infer", "run", "--data", "long.csv", "--out", "o.csv"]);
    let (data, out) = (scene.table("long.csv"), scene.table("o.csv"));
    assert_eq!(names(&out), ["who", "day", "z.mean", "z.sd"]);
    let who = |table: &RecordBatch| column(table, "who").unwrap().texts();
    assert_eq!(who(&out), who(&data));
    assert!(numbers(&out, "z.mean").iter().all(|x| x.is_finite()));
    scene.does(&["score", "run", "--data", "long.csv", "--out", "s.parquet"]);
    assert_eq!(scene.table("s.parquet").num_rows(), data.num_rows());

    // Rows in another order give the same posteriors in that order.
    let mixed: Vec<u32> = (0..data.num_rows() as u32)
        .map(|r| (r * 7) % data.num_rows() as u32)
        .collect();
    assert_ne!(data.num_rows() % 7, 0);
    scene.store("mixed.csv", &select_rows(&data, &mixed).unwrap());
    scene.does(&["infer", "run", "--data", "mixed.csv", "--out", "m.csv"]);
    let (straight, turned) = (
        numbers(&out, "z.mean"),
        numbers(&scene.table("m.csv"), "z.mean"),
    );
    for (x, &row) in turned.iter().zip(&mixed) {
        assert!((x - straight[row as usize]).abs() < 1e-5);
    }

    // What is missing is filled; the spelling of a note that the model does not know stays.
    scene.does(&["impute", "run", "--data", "long.csv", "--out", "i.csv"]);
    let (before, after) = (scene.text("long.csv"), scene.text("i.csv"));
    for (old, new) in before.lines().zip(after.lines()) {
        let (old, new): (Vec<_>, Vec<_>) = (old.split(',').collect(), new.split(',').collect());
        assert_eq!((old[0], old[1], old[4]), (new[0], new[1], new[4]));
        assert_eq!(old[3] == "NA", old[3] != new[3], "{old:?} {new:?}");
    }
}

#[test]
fn columns_of_a_chain_may_have_any_name() {
    // One that looks like a step of the other changes nothing.
    let outputs = [["heart", "sleep"], ["a@1", "a"], ["z", "past"]].map(|[first, second]| {
        let scene = Scene::new();
        let rename = |text: String| text.replace("heart", first).replace("sleep", second);
        scene.write("long.csv", rename(long_table(20)));
        scene.write("m.toml", rename(model("long.csv", CHAIN)));
        let (printed, _) = scene.does(&["fit", "m.toml", "--out", "run"]);
        assert!(
            printed.contains(first) && printed.contains(second),
            "{printed}"
        );
        ["infer", "score", "impute"].map(|command| {
            scene.does(&[command, "run", "--data", "long.csv", "--out", "o.csv"]);
            let text = scene.text("o.csv");
            text.split_once('\n').unwrap().1.to_string()
        })
    });
    assert!(outputs[0].iter().all(|o| o.lines().count() > 20));
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
}

#[test]
fn factors_of_three_and_vectors_work() {
    let scene = Scene::new();
    let tree = "[tree]\nfactors = [[\"u\", \"v\", \"w\"], [\"u\", \"a\"], [\"u\", \"b\"], [\"v\", \"c\"], [\"v\", \"pair\"], \
                [\"w\", \"word\"]]\n[observations.pair]\nkind = \"vector\"\ncolumns = [\"d\", \"e\"]\n";
    scene.write("m.toml", model("data.csv", tree));
    scene.does(&["check", "m.toml"]);
    let (printed, _) = scene.does(&["fit", "m.toml", "--out", "run"]);
    assert!(printed.contains("vector of 2"), "{printed}");
    scene.does(&["infer", "run", "--data", "data.csv", "--out", "o.csv"]);
    let out = scene.table("o.csv");
    assert_eq!(out.num_rows(), 60);
    // Two of every latent, and what each row was to the fit.
    assert_eq!(names(&out).len(), 7);
    scene.does(&["score", "run", "--data", "data.csv", "--out", "s.csv"]);
    scene.does(&["impute", "run", "--data", "data.csv", "--out", "i.csv"]);
    let full = scene.table("i.csv");
    assert!(columns(&full).all(|c| !c.missing().contains(&true)));
}

#[test]
fn levels_that_one_format_spells_otherwise_are_the_same_levels() {
    let scene = Scene::new();
    let mut text = String::from("a,b,c\n");
    for row in 0..40 {
        text += &format!("{:.2},{:.2},{}.0\n", noise(row, 0), noise(row, 1), row % 3);
    }
    scene.write("levels.csv", &text);
    scene.write(
        "m.toml",
        model(
            "levels.csv",
            "[tree]\nnewick = \"(a,b,c)z;\"\n[observations.c]\nkind = \"categorical\"\n",
        ),
    );
    scene.does(&["fit", "m.toml", "--out", "run"]);
    let levels = scene.table("levels.csv");
    let levels = columns(&levels).map(|c| (c.name(), floats(c)));
    scene.store("levels.arrow", &table(levels).unwrap());
    scene.does(&["infer", "run", "--data", "levels.csv", "--out", "x.csv"]);
    let (_, noted) = scene.does(&["infer", "run", "--data", "levels.arrow", "--out", "y.csv"]);
    assert_eq!(noted, "");
    // Only the file that the run was fitted to says which rows were learned from.
    let own = without_split(&scene.table("x.csv"));
    assert_same(&own, &scene.table("y.csv"), "levels");
}

#[test]
fn gaps_are_filled_with_levels_however_they_are_spelled() {
    let scene = Scene::new();
    let mut text = String::from("a,b,c\n");
    for row in 0..60 {
        // Mostly `0`, sometimes `2`, and gaps.
        let c = match row % 10 {
            3 => "",
            5 => "2.0",
            _ => "0.0",
        };
        text += &format!("{:.2},{:.2},{c}\n", noise(row, 0), noise(row, 1));
    }
    scene.write("levels.csv", &text);
    let settings =
        "[tree]\nnewick = \"(a,b,c)z;\"\n[observations.c]\nlevels = [\"0\", \"1\", \"2\"]\n";
    scene.write("m.toml", model("levels.csv", settings));
    scene.does(&["fit", "m.toml", "--out", "run"]);
    scene.does(&["impute", "run", "--data", "levels.csv", "--out", "x.csv"]);
    let filled = numbers(&scene.table("x.csv"), "c");
    assert!(
        (3..60).step_by(10).all(|row| filled[row] == 0.0),
        "{filled:?}"
    );

    let levels = scene.table("levels.csv");
    let levels = columns(&levels).map(|c| match c.name() {
        "c" => ("c", integers(c, 1.0)),
        name => (name, floats(c)),
    });
    scene.store("levels.arrow", &table(levels).unwrap());
    for words in [&[][..], &["--draws", "2"]] {
        let impute = ["impute", "run", "--data", "levels.arrow", "--out", "y.csv"];
        scene.does(&[&impute[..], words].concat());
        let filled = numbers(&scene.table("y.csv"), "c");
        assert!(filled.iter().all(|x| [0.0, 2.0].contains(x)), "{filled:?}");
    }
}

#[test]
fn every_help_has_an_example() {
    let scene = Scene::new();
    for command in [
        "init", "check", "fit", "infer", "impute", "score", "forecast", "report",
    ] {
        let (printed, _) = scene.does(&[command, "--help"]);
        assert!(
            printed.contains(&format!("Example:\n  ramp {command} ")),
            "{command}: {printed}"
        );
    }
}
