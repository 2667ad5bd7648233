//! The experiments on nonlinear and misspecified trees as a person runs them: files, mistakes, interruptions.

mod signals;

use assert_cmd::Command;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

/// Runs small enough for a test.
const NONLINEAR: [&str; 10] = [
    "reproduce",
    "nonlinear-tree",
    "--n",
    "200",
    "--batch",
    "100",
    "--iterations",
    "20",
    "--bbvi-iterations",
    "5",
];
const MISSPECIFIED: [&str; 12] = [
    "reproduce",
    "misspecified-tree",
    "--n",
    "200",
    "--batch",
    "100",
    "--iterations",
    "60",
    "--trees",
    "2",
    "--most-moves",
    "2",
];
const SWEEP: [&str; 18] = [
    "reproduce",
    "nonlinear-sweep",
    "--n",
    "100",
    "--batch",
    "50",
    "--iterations",
    "4",
    "--bbvi-iterations",
    "3",
    "--link",
    "cubic",
    "--link",
    "step",
    "--noise",
    "0.1",
    "--noise",
    "0.5",
];

fn run(words: &[&str], extra: &[&str], out: &Path) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("ramp"))
        .args(words)
        .args(extra)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether nothing but the progress of long trainings was told.
fn only_progress(output: &Output) -> bool {
    said(output)
        .lines()
        .all(|line| line.contains(" iterations · "))
}

fn json(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(folder.join("results.json")).unwrap()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn each_run_writes_results_and_figures_and_nothing_else_and_is_quiet_off_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for (words, figures, heading) in [
        (
            &NONLINEAR[..],
            &["bars", "learning", "scatter"][..],
            "Spearman",
        ),
        (&MISSPECIFIED[..], &["mismatch", "trees"][..], "true tree"),
        (&SWEEP[..], &["sweep"][..], "Gaussian"),
    ] {
        let out = folder.path().join(words[1]);
        let output = run(words, &[], &out);
        assert!(output.status.success(), "{}", said(&output));
        assert!(only_progress(&output), "{}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains(heading));
        let mut expected = vec!["checkpoint".to_owned(), "results.json".to_owned()];
        for figure in figures {
            expected.extend([format!("{figure}.png"), format!("{figure}.svg")]);
        }
        expected.sort();
        assert_eq!(names(&out), expected);
    }
    let latents = &json(&folder.path().join("misspecified-tree"))["latents"];
    let latents = latents.as_array().unwrap();
    assert_eq!(latents.len(), 7 * (1 + 2 * 2));
    for key in [
        "k",
        "seed",
        "latent",
        "mismatch",
        "matched",
        "depth",
        "correlation",
    ] {
        assert!(latents.iter().all(|l| !l[key].is_null()), "{key}");
    }
    let cells = &json(&folder.path().join("nonlinear-sweep"))["cells"];
    assert_eq!(cells.as_array().unwrap().len(), 4);
}

#[test]
fn mistakes_get_a_sentence_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |words: &[&str], extra: &[&str], sentence: &str| {
        let output = run(words, extra, &folder.path().join("run"));
        assert_eq!(
            output.status.code(),
            Some(2),
            "{extra:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(sentence),
            "{extra:?}: {}",
            said(&output)
        );
        assert!(!said(&output).contains("panicked"));
    };
    let rate = "learning_rate must be a positive number";
    for words in [&NONLINEAR[..], &MISSPECIFIED[..], &SWEEP[..]] {
        fails(words, &["--learning-rate", "-1"], rate);
        fails(words, &["--threads", "0"], "0 is not in 1..");
        fails(words, &["--scale", "huge"], "possible values");
    }
    fails(&NONLINEAR, &["--bbvi-learning-rate", "nan"], rate);
    fails(
        &NONLINEAR,
        &["--noise", "-0.1"],
        "the share of noise is a number from 0 to 1, not -0.1",
    );
    fails(
        &NONLINEAR,
        &["--noise", "nan"],
        "the share of noise is a number from 0 to 1",
    );
    fails(&NONLINEAR, &["--link", "square"], "possible values");
    fails(
        &NONLINEAR,
        &["--bbvi-estimator", "exact"],
        "possible values",
    );
    fails(
        &SWEEP,
        &["--noise", "2"],
        "the share of noise is a number from 0 to 1, not 2",
    );
    fails(
        &[
            "reproduce",
            "misspecified-tree",
            "--n",
            "200",
            "--batch",
            "1000",
        ],
        &[],
        "a batch of 1000 is larger than the 200 training samples",
    );
    fails(
        &["reproduce", "misspecified-tree", "--trees", "0"],
        &[],
        "0 is not in 1..",
    );
    fails(
        &["reproduce", "nonlinear-tree", "--n", "3"],
        &[],
        "too few for the covariance",
    );
}

#[test]
fn a_folder_of_another_run_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&NONLINEAR[..], &MISSPECIFIED[..]] {
        let taken = folder.path().join(words[1]);
        assert!(run(words, &[], &taken).status.success());
        let before = std::fs::read(taken.join("results.json")).unwrap();
        let output = run(words, &["--seed", "9"], &taken);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("checkpoint"), "{}", said(&output));
        assert_eq!(before, std::fs::read(taken.join("results.json")).unwrap());
    }
}

#[test]
#[cfg(unix)]
fn killed_at_any_moment_misspecified_trees_go_on_and_end_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, pieces) = (folder.path().join("whole"), folder.path().join("pieces"));
    assert!(run(&MISSPECIFIED, &[], &whole).status.success());
    for wait in [1, 70, 150, 300] {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("ramp"))
            .args(MISSPECIFIED)
            .arg("--out")
            .arg(&pieces)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = run(&MISSPECIFIED, &[], &pieces);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(json(&whole)["latents"], json(&pieces)["latents"]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_a_state_to_go_on_from() {
    signals::heed();
    let folder = tempfile::tempdir().unwrap();
    let words = |name| ["reproduce", name, "--n", "500", "--iterations", "100000"];
    for name in ["nonlinear-tree", "misspecified-tree", "nonlinear-sweep"] {
        let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("ramp"))
            .args(words(name))
            .arg("--out")
            .arg(folder.path().join(name))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(1000));
        std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{name}: {}", said(&output));
        let sentence = "the same command goes on from there";
        assert!(
            said(&output).contains(sentence),
            "{name}: {}",
            said(&output)
        );
    }
}
