//! What new users stumble over: files as their programs write them, options they leave out, and what they are told.

mod scene;

use scene::{Scene, TINY, model, names, noise, numbers, said};
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;

/// The data that the report of a run shows.
fn report(scene: &Scene, run: &str) -> Value {
    let page = scene.text(&format!("{run}/report.html"));
    let mark = r#"<script type="application/json" id="report">"#;
    let start = page.find(mark).unwrap() + mark.len();
    let end = page[start..].find("</script").unwrap();
    serde_json::from_str(&page[start..start + end]).unwrap()
}

/// Numbers of two columns that hang together.
fn pairs(rows: usize) -> Vec<(f64, f64)> {
    let pair = |n| (3.0 * noise(n, 0) + 0.01, 3.0 * noise(n, 0) + noise(n, 1));
    (0..rows).map(pair).collect()
}

#[test]
fn decimal_commas_between_semicolons_are_numbers() {
    let scene = Scene::new();
    let spelled = |comma: &str, between: &str| {
        let mut text = format!("a (m, deep){between}b{between}c\n").replace(", deep", "");
        for (n, (a, b)) in pairs(40).into_iter().enumerate() {
            let cells = [format!("{a:.2}"), format!("{b:.2}"), format!("{}", n % 3)];
            text += &format!("{}\n", cells.join(between).replace('.', comma));
        }
        text
    };
    scene.write("point.csv", spelled(".", ","));
    scene.write("comma.csv", spelled(",", ";"));
    let tree = "[tree]\nnewick = \"('a (m)',b,c)z;\"\n";
    for name in ["point", "comma"] {
        scene.write(&format!("{name}.toml"), model(&format!("{name}.csv"), tree));
        scene.does(&["fit", &format!("{name}.toml"), "--out", name]);
        let out = format!("{name}_out.csv");
        scene.does(&["infer", name, "--out", &out]);
    }
    assert_eq!(scene.text("point_out.csv"), scene.text("comma_out.csv"));
    // Semicolons do the separating even where a name has a comma.
    scene.write("names.csv", "a, in m;b, in s\n1,5;2,5\n2,5;3,5\n0,5;1\n");
    let (_, _) = scene.does(&["init", "names.csv"]);
    let file = scene.text("names.toml");
    assert!(file.contains("a, in m: number, 0.5 to 2.5"), "{file}");
}

#[test]
fn commas_that_cannot_be_read_are_named() {
    let scene = Scene::new();
    scene.write("d.csv", "a,b\n\"1,234\",1\n\"2,345\",2\n\"3,456\",4\n");
    scene.write("m.toml", model("d.csv", "[tree]\nnewick = \"(a,b)z;\"\n"));
    scene.fails(
        &["check", "m.toml"],
        &[
            "column `a` holds `1,234` in data row 1",
            "write decimals with a point",
            "categorical",
        ],
    );
    scene.write("e.csv", "a,b\n1,5,2\n2,5,3\n");
    scene.write("e.toml", model("e.csv", "[tree]\nnewick = \"(a,b)z;\"\n"));
    scene.fails(
        &["check", "e.toml"],
        &[
            "line 2",
            "has 3 fields, but the header has 2",
            "separate columns by semicolons",
        ],
    );
}

#[test]
fn the_unnamed_first_column_is_an_index_and_no_identifier_enters_a_tree() {
    let scene = Scene::new();
    let mut text = String::from(",a,b,person_id,code,rising,when,tag,year_born\n");
    for (n, (a, b)) in pairs(40).into_iter().enumerate() {
        // Rows were taken out, so the index has gaps.
        let code = 100_000 + (n * 7919) % 9973;
        text += &format!(
            "{},{a:.2},{b:.2},{},{code},{},2024-01-{:02},u{},{}\n",
            3 * n + n % 2,
            n % 5,
            50 + 2 * n,
            1 + n % 28,
            n % 20,
            1950 + (n * 31) % 17,
        );
    }
    scene.write("d.csv", &text);
    scene.does(&["init", "d.csv"]);
    let file = scene.text("d.toml");
    assert!(
        file.contains("newick = \"(a,b,year_born)general;\""),
        "{file}"
    );
    for said in [
        "index: left out, as it is called like an identifier",
        "person_id: left out, as it is called like an identifier",
        "code: left out, as it looks like an identifier: every number comes once",
        "rising: left out, as it looks like a row number",
        "when: left out, as it holds dates",
        "tag: left out, as it looks like an identifier: a word with a number behind it",
    ] {
        assert!(file.contains(said), "no `{said}` in {file}");
    }
    // Who puts one into a tree is warned.
    scene.write(
        "m.toml",
        model("d.csv", "[tree]\nnewick = \"(a,b,person_id)z;\"\n"),
    );
    let (printed, _) = scene.does(&["check", "m.toml"]);
    assert!(
        printed.contains("warning: column `person_id` is called like an identifier"),
        "{printed}"
    );
    scene.mend("m.toml", ",person_id", "");
    let (printed, _) = scene.does(&["check", "m.toml"]);
    assert!(!printed.contains("warning"), "{printed}");
    // The index can be kept.
    scene.does(&["fit", "m.toml", "--out", "run"]);
    scene.does(&["infer", "run", "--out", "latents.csv", "--keep", "index"]);
    let latents = scene.table("latents.csv");
    assert_eq!(names(&latents), ["index", "z.mean", "z.sd", "split"]);
    assert_eq!(numbers(&latents, "index")[..3], [0.0, 4.0, 6.0]);
}

#[test]
fn the_report_counts_the_models_columns_and_shows_gaps_of_all() {
    let scene = Scene::new();
    let mut text = String::from("a,b,other\n");
    for (n, (a, b)) in pairs(3000).into_iter().enumerate() {
        let a = if n % 4 == 0 {
            String::new()
        } else {
            format!("{a:.2}")
        };
        // Every second row that the page shows is missing, and no other.
        let other = if n % 10 == 9 { "" } else { "7" };
        text += &format!("{a},{b:.2},{other}\n");
    }
    scene.write("d.csv", text);
    scene.write("m.toml", model("d.csv", "[tree]\nnewick = \"(a,b)z;\"\n"));
    scene.does(&["fit", "m.toml", "--out", "run"]);
    let report = report(&scene, "run");
    assert_eq!(report["observed_columns"], 2);
    assert_eq!(report["missing_cells"], 0.125);
    let columns = report["columns"].as_array().unwrap();
    let other = columns.iter().position(|c| c["name"] == "other").unwrap();
    assert_eq!(columns[other]["missing"], 0.1);
    assert_eq!(
        (&columns[other]["observed"], &columns[0]["observed"]),
        (&false.into(), &true.into())
    );
    let patterns = report["missing_patterns"].as_array().unwrap();
    let rows = |pattern: &Value| pattern["rows"].as_u64().unwrap();
    let lacking: u64 = patterns
        .iter()
        .filter(|p| p["missing"][other] == true)
        .map(rows)
        .sum();
    assert_eq!(lacking, 300);
    assert_eq!(patterns.iter().map(rows).sum::<u64>(), 3000);
}

#[test]
fn a_reader_who_stops_reading_is_no_panic() {
    let scene = Scene::new();
    // More than a pipe holds.
    let columns: Vec<String> = (0..3000)
        .map(|i| format!("a_rather_long_name_{i}"))
        .collect();
    let row = |n: usize| -> Vec<String> { (0..3000).map(|i| format!("{}", (n + i) % 7)).collect() };
    let mut text = columns.join(",");
    for n in 1..12 {
        text += &format!("\n{}", row(n).join(","));
    }
    scene.write("wide.csv", text);
    let newick = format!("[tree]\nnewick = \"({})z;\"\n", columns[1..].join(","));
    scene.write(
        "wide.toml",
        format!("version = 1\n[data]\nfile = \"wide.csv\"\n{newick}{TINY}"),
    );
    for words in [
        &["check", "wide.toml"][..],
        &["check", "--help"],
        &["check", "model.toml"],
    ] {
        let mut child = scene
            .command()
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 1];
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut first).unwrap();
        drop(output);
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{words:?}: {}", said(&ended));
        assert!(!said(&ended).contains("panicked"), "{}", said(&ended));
    }
}

#[test]
fn options_that_are_left_out_have_a_sensible_meaning() {
    let scene = Scene::with_run();
    // The run knows its data.
    scene.does(&["infer", "run", "--out", "own.csv"]);
    scene.does(&["infer", "run", "--data", "data.csv", "--out", "named.csv"]);
    assert_eq!(scene.read("own.csv"), scene.read("named.csv"));
    scene.does(&["score", "run", "--out", "scores.csv"]);
    let (printed, _) = scene.does(&["impute", "run", "--out", "filled.csv"]);
    let data = scene.table("data.csv");
    let gaps: usize = ["a", "b", "c", "d", "e", "word"]
        .iter()
        .map(|name| ramp_io::table::column(&data, name).unwrap().missing())
        .map(|missing| missing.into_iter().filter(|&m| m).count())
        .sum();
    assert_eq!(
        printed,
        format!("filled {gaps} cells; wrote 60 rows to filled.csv\n")
    );
    let (printed, _) = scene.does(&["impute", "run", "--out", "draws.csv", "--draws", "3"]);
    assert_eq!(
        printed,
        format!("filled {gaps} cells in 3 draws; wrote 180 rows to draws.csv\n")
    );
    // A model file is no run.
    scene.fails(
        &["infer", "model.toml", "--out", "x.csv"],
        &[
            "`model.toml` is a file, where the folder of a finished fit is needed",
            "`ramp fit MODEL.toml` writes one",
        ],
    );
    // Every command takes the number of threads, and none changes its numbers by it.
    for words in [
        &["init", "data.csv", "--out", "new.toml"][..],
        &["check", "model.toml"],
        &["fit", "model.toml", "--out", "one"],
        &["infer", "one", "--out", "one.csv"],
        &["impute", "one", "--out", "one_filled.csv"],
        &["score", "one", "--out", "one_scores.csv"],
        &["report", "one"],
    ] {
        let words: Vec<&str> = words.iter().copied().chain(["--threads", "1"]).collect();
        scene.does(&words);
    }
    for command in [
        "init",
        "check",
        "fit",
        "infer",
        "impute",
        "score",
        "forecast",
        "report",
        "grow",
        "diagnose",
        "compare",
        "reproduce",
    ] {
        let (printed, _) = scene.does(&[command, "--help"]);
        assert!(printed.contains("--threads"), "{command}: {printed}");
    }
    assert_eq!(scene.read("one.csv"), scene.read("own.csv"));
    assert_eq!(scene.read("one_filled.csv"), scene.read("filled.csv"));
}

#[test]
fn a_latent_cannot_be_called_like_a_column() {
    let scene = Scene::new();
    scene.mend("model.toml", "(a,b,c)left", "(a,b)c");
    scene.fails(
        &["check", "model.toml"],
        &[
            "`c` is a latent of the tree and a column of",
            "data.csv",
            "among the leaves",
        ],
    );
}

#[test]
fn rows_that_were_learned_from_are_marked_in_the_data_of_the_fit_alone() {
    let scene = Scene::with_run();
    let marks = |out: &str| -> Vec<String> {
        let text = scene.text(out);
        let rows = text.lines().skip(1);
        rows.map(|l| l.rsplit(',').next().unwrap().to_owned())
            .collect()
    };
    let (said, noted) = scene.does(&["infer", "run", "--out", "own.csv"]);
    assert!(!noted.contains("note:"), "{noted}");
    // Which way items run stands beside the latents.
    assert!(said.contains("what each item does"), "{said}");
    assert!(
        said.lines()
            .any(|l| l.starts_with("a ") && l.contains("left")),
        "{said}"
    );
    let own = marks("own.csv");
    let count = |word: &str| own.iter().filter(|m| *m == word).count();
    assert_eq!(
        ["training", "validation", "held-out"].map(count),
        [48, 6, 6]
    );
    // The same rows by name, as the fit's page counts them.
    scene.does(&["score", "run", "--data", "data.csv", "--out", "named.csv"]);
    assert_eq!(marks("named.csv"), own);
    let held_out = &report(&scene, "run")["held_out_rows"];
    assert_eq!(held_out.as_u64(), Some(6));
    // Other rows, or those rows in another file, have no marks.
    scene.write("copy.csv", scene.text("data.csv") + "\n");
    scene.does(&["infer", "run", "--data", "copy.csv", "--out", "other.csv"]);
    assert!(!scene.text("other.csv").contains("split"));
    // The file of the fit with another row: not known any more, and said.
    let last = scene.text("data.csv").lines().last().unwrap().to_owned();
    scene.write("data.csv", scene.text("data.csv") + &last + "\n");
    let (_, noted) = scene.does(&["infer", "run", "--out", "changed.csv"]);
    assert!(
        noted.contains("is not what it was when the run was fitted"),
        "{noted}"
    );
    assert!(!scene.text("changed.csv").contains("split"));
}
