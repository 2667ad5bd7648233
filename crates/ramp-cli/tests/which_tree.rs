//! Which tree? Totals in a fit's words, runs compared, trees doubted and grown.

mod scene;

use ramp::graph::FactorTree;
use scene::{Scene, noise};

/// Two facets of one trait, three items each, some answers missing; a column of row numbers besides.
fn answers(rows: usize, seed: usize) -> String {
    let mut text = String::from("id,a1,a2,a3,b1,b2,b3\n");
    for n in 0..rows {
        let mut drawn = 0;
        // Nearly normal, of unit variance.
        let mut normal = || -> f64 {
            drawn += 4;
            let sum: f64 = (0..4).map(|i| noise(n + rows * seed, drawn + i)).sum();
            (sum - 2.0) * 3f64.sqrt()
        };
        let general = normal();
        let facets = [general + normal(), general + normal()];
        let cells: Vec<String> = (0..6)
            .map(|i| {
                let value = facets[i / 3] + 0.8 * normal();
                match (n + 5 * i) % 17 == 0 {
                    true => String::new(),
                    // Distorted, but monotone.
                    false => format!("{:.4}", if i % 2 == 0 { value.exp() } else { value }),
                }
            })
            .collect();
        text += &format!("{n},{}\n", cells.join(","));
    }
    text
}

fn model(newick: &str, more: &str) -> String {
    format!(
        "[data]\nfile = \"answers.csv\"\nholdout = 0.25\n[tree]\nnewick = \"{newick}\"\n\
         [networks]\nmessage = {{ hidden = [8] }}\nobservation = {{ hidden = [8] }}\n\
         [train]\niterations = 150\nbatch = 300\n{more}"
    )
}

const RIGHT: &str = "((a1,a2,a3)a,(b1,b2,b3)b)top;";
const WRONG: &str = "((a1,a2,b3)a,(b1,b2,a3)b)top;";

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("answers.csv", answers(1600, 1));
    scene.write("right.toml", model(RIGHT, ""));
    scene.write("wrong.toml", model(WRONG, ""));
    scene
}

#[test]
fn fits_are_compared_on_rows_that_none_has_seen() {
    let scene = scene();
    let (said, _) = scene.does(&["fit", "right.toml", "--out", "right"]);
    assert!(
        said.contains(
            "nats a row more than independent columns, on 400 held-out rows; from any root"
        ),
        "{said}"
    );
    assert!(
        scene
            .text("right/report.html")
            .contains("the tree as a whole")
    );
    scene.does(&["fit", "wrong.toml", "--out", "wrong"]);
    let (said, _) = scene.does(&["compare", "right", "wrong"]);
    assert!(
        said.contains("on the 400 rows that none of them learned from"),
        "{said}"
    );
    assert!(
        said.contains("wrong explains ") && said.contains("nats less per row than right"),
        "{said}"
    );
    // A run is as good as itself.
    let (said, _) = scene.does(&["compare", "right", "right"]);
    assert!(
        said.contains("explain as much") && said.contains("+0.000 ± 0.000"),
        "{said}"
    );

    // Another seed begins elsewhere, on the same rows where they are dealt out alike.
    scene.write(
        "again.toml",
        model(RIGHT, "seed = 1\n").replace("[tree]", "split_seed = 0\n[tree]"),
    );
    scene.does(&["fit", "again.toml", "--out", "again", "--iterations", "2"]);
    let (said, _) = scene.does(&["compare", "right", "again"]);
    assert!(
        said.contains("on the 400 rows that none of them learned from"),
        "{said}"
    );
    // What a run keeps of its settings deals them out so too.
    scene.does(&[
        "fit",
        "again/model.toml",
        "--data",
        "answers.csv",
        "--out",
        "kept",
    ]);
    let (said, _) = scene.does(&["compare", "again", "kept"]);
    assert!(said.contains("on the 400 rows"), "{said}");

    // Other seeds hold out other rows otherwise; other rows and columns cannot be compared.
    scene.write(
        "few.toml",
        model(RIGHT, "seed = 1\n").replace("0.25", "0.02"),
    );
    scene.does(&["fit", "few.toml", "--out", "few", "--iterations", "2"]);
    scene.fails(
        &["compare", "right", "few"],
        &["unseen by all of these runs", "seed"],
    );
    scene.write("part.toml", model("(a1,a2,a3,b1)a;", ""));
    scene.does(&["fit", "part.toml", "--out", "part", "--iterations", "2"]);
    scene.fails(
        &["compare", "right", "part"],
        &["`b2`", "`right`", "`part`"],
    );
    scene.write("other.csv", answers(1600, 2));
    scene.write(
        "other.toml",
        model(RIGHT, "").replace("answers.csv", "other.csv"),
    );
    scene.does(&["fit", "other.toml", "--out", "other", "--iterations", "2"]);
    scene.fails(&["compare", "right", "other"], &["different data", "a1"]);
}

#[test]
fn a_misplaced_item_is_named() {
    let scene = scene();
    scene.write("moved.toml", model("((a1,a2)a,(b1,b2,b3,a3)b)top;", ""));
    scene.does(&["fit", "moved.toml", "--out", "moved"]);
    let (said, _) = scene.does(&["diagnose", "moved", "--out", "changes.csv"]);
    let first = said.lines().nth(2).unwrap();
    assert!(first.contains("a3 belongs to a rather than b"), "{said}");
    assert!(first.contains("< 0.001"), "{said}");
    assert!(
        said.contains("a3 belongs to a rather than b: +0."),
        "{said}"
    );
    let table = scene.text("changes.csv");
    let best = table.lines().nth(1).unwrap();
    let newick = best[best.rfind(",\"").unwrap() + 2..].trim_end_matches('"');
    let tree = FactorTree::from_newick(newick).unwrap();
    assert_eq!(
        tree.robinson_foulds(&FactorTree::from_newick(RIGHT).unwrap()),
        Ok(0),
        "{best}"
    );
    scene.fails(
        &["diagnose", "moved", "--out", "changes.txt"],
        &["changes.txt", ".csv"],
    );
    scene.fails(&["diagnose", "nowhere"], &["nowhere"]);

    // The report lists them, and keeps them when it is built again; the run is whole.
    assert!(said.contains("listed in moved/report.html"), "{said}");
    let listed = |scene: &Scene| {
        let page = scene.text("moved/report.html");
        let data: serde_json::Value =
            serde_json::from_str(ramp_io::report::data_of(&page).unwrap()).unwrap();
        data["changes"].clone()
    };
    let changes = listed(&scene);
    assert_eq!(changes.as_array().unwrap().len(), table.lines().count() - 1);
    assert_eq!(changes[0]["sentence"], "a3 belongs to a rather than b");
    scene.does(&["report", "moved"]);
    assert_eq!(listed(&scene), changes);
    scene.does(&["infer", "moved", "--out", "latents.csv"]);
}

#[test]
fn totals_of_rows_add_up_to_what_the_fit_says() {
    use ramp_io::arrow::{AsArray, types::Float64Type};
    let scene = scene();
    let (said, _) = scene.does(&["fit", "right.toml", "--out", "right"]);
    scene.does(&[
        "score",
        "right",
        "--out",
        "total.parquet",
        "--total",
        "--keep",
        "id",
    ]);
    let table = scene.table("total.parquet");
    let names: Vec<&str> = table
        .schema_ref()
        .fields()
        .iter()
        .map(|f| f.name().as_str())
        .collect();
    assert_eq!(
        names,
        ["id", "nats", "top.nats", "a.nats", "b.nats", "split"]
    );
    let column = |i: usize| table.column(i).as_primitive::<Float64Type>().values();
    for row in 0..table.num_rows() {
        let sum: f64 = (2..5).map(|i| column(i)[row]).sum();
        assert!((column(1)[row] - sum).abs() < 1e-9);
    }
    // All rows together explain about what the held-out ones do; most were learned from.
    let mean = column(1).iter().sum::<f64>() / table.num_rows() as f64;
    let words: Vec<&str> = said.split("in all ").nth(1).unwrap().split(' ').collect();
    let (held_out, error): (f64, f64) = (words[0].parse().unwrap(), words[2].parse().unwrap());
    assert!(
        mean > held_out - 3.0 * error && mean < held_out + 3.0 * error + 0.15,
        "{mean} of all rows, {held_out} ± {error} of held-out ones"
    );
}

#[cfg(unix)]
#[test]
fn growing_stops_and_goes_on_to_the_same_tree() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};
    let scene = scene();
    let grow = |out: &str| -> Vec<String> {
        let words = [
            "grow",
            "answers.csv",
            "--out",
            out,
            "--bootstraps",
            "10",
            "--rounds",
            "2",
        ];
        words.map(String::from).to_vec()
    };
    let mut child = scene
        .command()
        .args(grow("grown.toml"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !scene.path("grown.growing").exists() && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    std::process::Command::new("kill")
        .args(["-INT", &id])
        .status()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let noted = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{noted}");
    assert!(noted.contains("--resume"), "{noted}");
    assert!(!scene.path("grown.toml").exists() && scene.path("grown.growing").exists());

    // Not with other data, nor from a damaged state.
    let state = scene.text("grown.growing");
    let words = grow("grown.toml");
    let mut resume: Vec<&str> = words.iter().map(|w| w.as_str()).collect();
    resume.push("--resume");
    let mut other = resume.clone();
    other.extend(["--keep", "(a1,a2)pair;"]);
    scene.fails(&other, &["is not of `answers.csv`", "tree to keep"]);
    scene.write("grown.growing", &state[..state.len() / 2]);
    scene.fails(&resume, &["grown.growing", "damaged"]);
    scene.write("grown.growing", &state);

    scene.does(&resume);
    assert!(!scene.path("grown.growing").exists());
    let words = grow("whole.toml");
    scene.does(&words.iter().map(|w| w.as_str()).collect::<Vec<_>>());
    let newick = |name: &str| {
        let file = ramp_io::ModelFile::read(&scene.path(name)).unwrap();
        file.build_tree(2).unwrap().to_newick().unwrap()
    };
    assert_eq!(newick("grown.toml"), newick("whole.toml"));
}

#[test]
fn categories_and_mixed_columns_are_grown() {
    let scene = scene();
    let mut text = String::new();
    for (n, line) in answers(2500, 3).lines().enumerate() {
        let mut cells: Vec<String> = line.split(',').map(String::from).collect();
        if n > 0 {
            // Words without an order, and one of two.
            for (i, levels) in [(2, &["kiwi", "plum", "fig"][..]), (5, &["no", "yes"][..])] {
                if let Ok(value) = cells[i].parse::<f64>() {
                    let value = if (i - 1) % 2 == 0 { value.ln() } else { value };
                    let level = levels.iter().enumerate();
                    let mut level = level.filter(|(k, _)| {
                        value > 1.2 * (*k as f64 - (levels.len() - 1) as f64 / 2.0)
                    });
                    cells[i] = level.next_back().map_or(levels[0], |(_, l)| *l).to_string();
                }
            }
        }
        text += &(cells.join(",") + "\n");
    }
    scene.write("mixed.csv", text);
    scene.does(&[
        "grow",
        "mixed.csv",
        "--out",
        "mixed.toml",
        "--bootstraps",
        "40",
        "--rounds",
        "1",
    ]);
    let file = ramp_io::ModelFile::read(&scene.path("mixed.toml")).unwrap();
    let tree = file.build_tree(2).unwrap();
    assert_eq!(
        tree.robinson_foulds(&FactorTree::from_newick(RIGHT).unwrap()),
        Ok(0),
        "{}",
        tree.draw()
    );
    scene.does(&["fit", "mixed.toml", "--out", "run", "--iterations", "20"]);
}

#[test]
fn a_tree_is_grown_and_can_be_fitted() {
    let scene = scene();
    let grow = [
        "grow",
        "answers.csv",
        "--out",
        "grown.toml",
        "--bootstraps",
        "40",
    ];
    let (said, noted) = scene.does(&[&grow[..], &["--rounds", "1"]].concat());
    assert!(said.contains("then: ramp fit grown.toml"), "{said}");
    assert!(noted.contains("left out `id`"), "{noted}");
    let file = ramp_io::ModelFile::read(&scene.path("grown.toml")).unwrap();
    let tree = file.build_tree(2).unwrap();
    assert_eq!(
        tree.robinson_foulds(&FactorTree::from_newick(RIGHT).unwrap()),
        Ok(0),
        "{said}"
    );
    assert!(
        tree.find("a").is_ok() && tree.find("b").is_ok(),
        "named after items: {said}"
    );
    let drawing = scene.text("grown.svg");
    assert!(drawing.starts_with("<svg") && drawing.contains(">b3</text>"));
    assert!(!scene.path("grown.growing").exists());
    scene.does(&["check", "grown.toml"]);

    scene.fails(&grow, &["grown.toml", "--overwrite"]);
    scene.fails(
        &["grow", "answers.csv", "--out", "answers.csv"],
        &["is the data"],
    );
    scene.fails(
        &["grow", "answers.csv", "--out", "new.toml", "--resume"],
        &["nothing to go on from"],
    );
    let keep = |keep: &'static str| {
        [
            "grow",
            "answers.csv",
            "--out",
            "kept.toml",
            "--rounds",
            "0",
            "--bootstraps",
            "10",
            "--keep",
            keep,
        ]
    };
    scene.fails(&keep("(a1,a9)pair;"), &["`a9`", "answers.csv"]);
    scene.fails(&keep("(a1,a2"), &["to keep", "Newick"]);
    scene.does(&keep("(a1,b1)pair;"));
    let tree = ramp_io::ModelFile::read(&scene.path("kept.toml"))
        .unwrap()
        .build_tree(2)
        .unwrap();
    let pair = tree.find("pair").unwrap();
    let groups: Vec<usize> = tree.partition(pair).iter().map(Vec::len).collect();
    assert!(groups.contains(&4) && groups.len() == 3, "{}", tree.draw());
}
