//! Nobody listens, nothing can be written, no threads, no memory: a sentence at most, and never a panic.
#![cfg(target_os = "linux")]

mod scene;

use scene::{CHAIN, Scene, long_table, model, said};
use std::fs::File;
use std::process::{Command, Output, Stdio};

const COMMANDS: [&[&str]; 7] = [
    &["init", "data.csv", "--out", "new.toml", "--overwrite"],
    &["check", "model.toml"],
    &["fit", "model.toml", "--out", "other", "--overwrite"],
    &["infer", "run", "--data", "data.csv", "--out", "o.csv"],
    &["score", "run", "--data", "data.csv", "--out", "o.csv"],
    &["impute", "run", "--data", "data.csv", "--out", "o.csv"],
    &["report", "run"],
];

fn calm(output: &Output, words: &[&str]) {
    let error = said(output);
    assert!(!error.contains("panicked"), "{words:?}: {error}");
    assert!(
        output.status.code().is_some_and(|code| code <= 2),
        "{words:?}: {:?}",
        output.status
    );
}

#[test]
fn a_reader_that_goes_away_changes_nothing() {
    let scene = Scene::with_run();
    for words in COMMANDS {
        let mut child = scene
            .command()
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        calm(&output, words);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{words:?}: {}",
            said(&output)
        );
    }
    assert!(scene.path("o.csv").exists() && scene.path("other/report.html").exists());
    // Nor does one that reads no complaints.
    let mut child = scene
        .command()
        .args(["check", "nothing.toml"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_full_disk_behind_the_streams_is_told() {
    let scene = Scene::with_run();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for words in COMMANDS {
        let output = scene.command().args(words).stdout(full()).output().unwrap();
        calm(&output, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let said = said(&output);
        // How far a training is, is said there too.
        let error: Vec<&str> = said.lines().filter(|l| !l.contains("iterations")).collect();
        assert!(
            error.len() == 1 && error[0].starts_with("ramp: cannot write to standard output"),
            "{said}"
        );
    }
    // The work is done all the same.
    assert!(scene.path("o.csv").exists() && scene.path("other/report.html").exists());
    for words in COMMANDS {
        let mut command = scene.command();
        let output = command.args(words).stdout(full()).stderr(full()).output();
        calm(&output.unwrap(), words);
    }
    for words in [&["--help"][..], &["fit", "--help"], &["--version"], &[]] {
        calm(
            &scene.command().args(words).stdout(full()).output().unwrap(),
            words,
        );
    }
}

/// Runs the command under a limit of the shell.
fn limited(scene: &Scene, limit: &str, words: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{limit}; exec \"$0\" \"$@\"")])
        .arg(scene.command().get_program())
        .args(words)
        .current_dir(scene.path(""))
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .unwrap()
}

#[test]
fn where_memory_ends_there_is_a_sentence() {
    let scene = Scene::with_run();
    scene.write(
        "wide.toml",
        scene.text("model.toml").replace("[4]", "[4000, 4000]"),
    );
    let output = limited(
        &scene,
        "ulimit -v 600000",
        &["fit", "wide.toml", "--out", "wide"],
    );
    let error = said(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("ramp: the machine has no more memory"),
        "{error}"
    );
    assert!(!scene.path("wide/weights.safetensors").exists());
}

#[test]
fn absurd_sizes_are_refused_at_once_and_in_little_memory() {
    let scene = Scene::with_run();
    let text = scene.text("model.toml");
    scene.write("dim.toml", format!("{text}[latents]\ndim = 3000\n"));
    scene.write("wide.toml", text.replace("[4]", "[100000, 100000]"));
    scene.write("many.toml", text.replace("[4]", "[15000, 15000]"));
    let huge = File::create(scene.path("huge.toml")).unwrap();
    huge.set_len(1 << 30).unwrap();
    scene.write("line.csv", "a,".repeat(32 << 20));
    scene.write("word.csv", "a".repeat(64 << 20));
    let day = long_table(30).replacen("\ns1,2,", "\ns1,900000,", 1);
    assert_ne!(day, long_table(30));
    scene.write("far.csv", &day);
    let step = CHAIN.replace("observe", "step = 1.0, observe");
    scene.write("far.toml", model("far.csv", &step));
    for (words, part) in [
        (&["check", "dim.toml"][..], "natural parameters"),
        (&["check", "wide.toml"], "weights"),
        (&["check", "many.toml"], "weights"),
        (&["check", "huge.toml"], "1024 MB"),
        (
            &["check", "model.toml", "--data", "line.csv"],
            "longer than 8 MB",
        ),
        (&["init", "word.csv"], "longer than 8 MB"),
        (
            &["fit", "far.toml", "--out", "new"],
            "steps of 1 between data rows",
        ),
        (
            &[
                "impute", "run", "--data", "data.csv", "--out", "o.csv", "--draws", "65535",
            ],
            "65535 is not in 1..=1000",
        ),
        (
            &["fit", "model.toml", "--out", "new", "--threads", "65535"],
            "65535 is not in 1..=1024",
        ),
    ] {
        // Half a gigabyte of addresses, a part of which threads' stacks take, and a second of processor time.
        let output = limited(&scene, "ulimit -v 500000 && ulimit -t 1", words);
        calm(&output, words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            said(&output)
        );
        assert!(said(&output).contains(part), "{words:?}: {}", said(&output));
    }
}

#[test]
fn names_cannot_command_a_terminal_or_lead_out_of_an_archive() {
    let scene = Scene::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J";
    let data = scene.text("data.csv");
    scene.write("evil.csv", data.replacen(",a,", &format!(",{evil},"), 1));
    let name = evil
        .replace('\u{1b}', "\\u001B")
        .replace('\u{7}', "\\u0007");
    let tree = format!("[tree]\nedges = [[\"z\", \"{name}\"], [\"z\", \"b\"], [\"z\", \"c\"]]\n");
    scene.write("evil.toml", model("evil.csv", &tree));
    let quiet = |text: &str| assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    let (printed, noted) = scene.does(&["fit", "evil.toml", "--out", "run"]);
    assert!(printed.contains("\\u{1b}]0;owned"), "{printed}");
    quiet(&printed);
    quiet(&noted);
    for words in [&["check", "evil.toml"][..], &["report", "run"]] {
        let (printed, noted) = scene.does(words);
        quiet(&printed);
        quiet(&noted);
    }
    let output = scene.run(&["infer", "run", "--data", "data.csv", "--out", "o.csv"]);
    assert_eq!(output.status.code(), Some(2));
    quiet(&said(&output));

    scene.write(
        "slip.csv",
        "a,b,c\n1,2,3\n2,3,1\n3,1,2\n4,5,4\n5,4,6\n6,6,5\n",
    );
    let tree =
        "[tree]\nedges = [[\"../../x\", \"a\"], [\"../../x\", \"b\"], [\"../../x\", \"c\"]]\n";
    scene.write("slip.toml", model("slip.csv", tree));
    scene.does(&["fit", "slip.toml", "--out", "slip"]);
    scene.fails(
        &["infer", "slip", "--data", "slip.csv", "--out", "o.npz"],
        &["../../x", "would lead elsewhere"],
    );
    scene.does(&["infer", "slip", "--data", "slip.csv", "--out", "o.csv"]);
}
