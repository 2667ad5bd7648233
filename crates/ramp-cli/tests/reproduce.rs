//! The command as a person uses it: help, results, mistakes, interruptions.

mod signals;

use assert_cmd::Command;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn ramp() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("ramp"))
}

/// A run small enough for a test.
const SMALL: [&str; 10] = [
    "reproduce",
    "linear-tree",
    "--n",
    "200",
    "--batch",
    "100",
    "--iterations",
    "20",
    "--bbvi-iterations",
    "5",
];

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether nothing but the progress of long trainings was told.
fn only_progress(output: &std::process::Output) -> bool {
    said(output)
        .lines()
        .all(|line| line.contains(" iterations · "))
}

fn json(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(folder.join("results.json")).unwrap()).unwrap()
}

#[test]
fn grown_trees_are_measured_against_the_true_ones() {
    let folder = tempfile::tempdir().unwrap();
    let grow = |more: &[&str]| {
        let words = [
            "reproduce",
            "grow",
            "--seeds",
            "1",
            "--leaves",
            "8",
            "--missing",
            "0",
            "--linear",
        ];
        let output = ramp()
            .args(words)
            .args(["--shape", "balanced", "--shape", "star", "--rows", "3000"])
            .args(more)
            .args(["--out", "grow"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = grow(&["--seed", "3"]);
    assert!(shown.contains("balanced    linear         3000"), "{shown}");
    let results = json(&folder.path().join("grow"));
    let cells = results["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    // Neighbour joining alone must resolve a star into edges that are not there; a tree of the data need not.
    assert_eq!(cells[1]["joined"], 5);
    for cell in cells {
        assert_eq!(cell["grown"], 0, "{shown}");
    }
    // What is done is not done again; other settings are.
    let again = json(&folder.path().join("grow"));
    grow(&["--seed", "3"]);
    assert_eq!(again["cells"], json(&folder.path().join("grow"))["cells"]);
}

#[test]
fn every_help_has_an_example() {
    for words in [
        &["--help"][..],
        &["reproduce", "--help"],
        &["reproduce", "linear-tree", "--help"],
        &["reproduce", "misspecified-tree", "--help"],
        &["reproduce", "nonlinear-tree", "--help"],
        &["reproduce", "nonlinear-sweep", "--help"],
        &["reproduce", "pendulum", "--help"],
        &["reproduce", "pendulum-sweep", "--help"],
        &["reproduce", "pose", "--help"],
        &["reproduce", "grow", "--help"],
    ] {
        let output = ramp().args(words).output().unwrap();
        assert!(output.status.success());
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("Example:"),
            "{words:?}"
        );
    }
}

#[test]
fn a_run_writes_results_and_figures_and_nothing_else_and_is_quiet_off_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let output = ramp()
        .args(SMALL)
        .arg("--out")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(only_progress(&output), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("mean-field"));
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [
        "bbvi.png",
        "bbvi.svg",
        "checkpoint",
        "correlation.png",
        "correlation.svg",
        "results.json",
        "variance.png",
        "variance.svg",
    ];
    assert_eq!(names, expected);
    assert_eq!(json(folder.path())["iterations"], 20);
}

#[test]
fn mistakes_get_a_sentence_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |extra: &[&str], sentence: &str| {
        let output = ramp()
            .args(SMALL)
            .args(extra)
            .arg("--out")
            .arg(folder.path().join("run"))
            .output()
            .unwrap();
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
    let replaced = |words: &[&str]| {
        let output = ramp()
            .args(words)
            .arg("--out")
            .arg(folder.path().join("run"))
            .output()
            .unwrap();
        (output.status.code(), said(&output))
    };
    fails(
        &["--learning-rate", "-1"],
        "learning_rate must be a positive number, not -1",
    );
    fails(
        &["--learning-rate", "nan"],
        "learning_rate must be a positive number",
    );
    fails(&["--threads", "0"], "0 is not in 1..");
    fails(&["--scale", "huge"], "possible values");
    let (code, sentence) = replaced(&["reproduce", "linear-tree", "--n", "200", "--batch", "1000"]);
    assert_eq!(code, Some(2));
    assert!(
        sentence.contains("a batch of 1000 is larger than the 200 training samples"),
        "{sentence}"
    );

    for (words, wanted) in [
        (
            &["reproduce", "pose", "--joints", "nowhere.mat"][..],
            "nowhere.mat: cannot be opened",
        ),
        (
            &[
                "reproduce",
                "pendulum",
                "--family",
                "beta",
                "--init",
                "tracker",
            ],
            "possible values: random, dynamics",
        ),
        (
            &["reproduce", "dynamics", "--batch", "5000"],
            "a batch of 5000 is larger than the 300 training samples",
        ),
        (
            &["reproduce", "dynamics", "--system", "triple-pendulum"],
            "possible values",
        ),
        (
            &["reproduce", "pendulum", "--batch", "5000"],
            "a batch of 5000 is larger than the 1000 training samples",
        ),
        (
            &["reproduce", "pendulum", "--steps", "10", "--ahead", "9"],
            "videos of 10 frames cannot have 9 of them predicted",
        ),
        (
            &["reproduce", "pendulum", "--beginning", "circle"],
            "called `--init` now; write `--init circle`",
        ),
        (
            &["reproduce", "pose", "--beginning", "limbs"],
            "called `--init` now",
        ),
        (
            &["reproduce", "linear-tree", "--view", "natural"],
            "called `--inputs` now; write `--inputs natural`",
        ),
        (
            &["reproduce", "pendulum-sweep", "--hide", "0.1"],
            "called `--mask` now",
        ),
        (
            &["reproduce", "pendulum", "--without-rivals"],
            "`--without-rivals` is called `--without-baselines` now",
        ),
    ] {
        let (code, sentence) = replaced(words);
        assert_eq!(code, Some(2), "{sentence}");
        assert!(sentence.contains(wanted), "{sentence}");
    }

    // A folder that belongs to another run is left as it is.
    let taken = folder.path().join("taken");
    assert!(
        ramp()
            .args(SMALL)
            .arg("--out")
            .arg(&taken)
            .output()
            .unwrap()
            .status
            .success()
    );
    let before = std::fs::read(taken.join("results.json")).unwrap();
    let output = ramp()
        .args(SMALL)
        .args(["--seed", "9", "--out"])
        .arg(&taken)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("checkpoint"), "{}", said(&output));
    assert_eq!(before, std::fs::read(taken.join("results.json")).unwrap());
}

#[test]
fn an_output_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let output = ramp()
        .args(SMALL)
        .arg("--out")
        .arg(file.join("run"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("cannot") && said(&output).contains("file"),
        "{}",
        said(&output)
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_sentence_and_leaves_no_half_written_file() {
    // /dev/full fails every write with "no space left"; a limit on file size does the same to regular files.
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "ulimit -f 8; exec {} {} --out {}",
        assert_cmd::cargo::cargo_bin!("ramp").display(),
        SMALL.join(" "),
        folder.path().display()
    );
    let output = std::process::Command::new("bash")
        .arg("-c")
        .arg(format!("trap '' XFSZ; {script}"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("cannot write"), "{}", said(&output));
    for left in std::fs::read_dir(folder.path().join("checkpoint")).unwrap() {
        let left = left.unwrap().path();
        let text = std::fs::read_to_string(&left).unwrap();
        let lines: Vec<&str> = match left.file_name().and_then(|n| n.to_str()) {
            Some("curves.json") => vec![&text],
            Some("records.jsonl") => text.lines().collect(),
            _ => panic!("{} stays", left.display()),
        };
        for line in lines {
            let whole: Result<serde_json::Value, _> = serde_json::from_str(line);
            assert!(whole.is_ok(), "nothing half-written stays");
        }
    }
}

#[test]
fn videos_may_be_few_small_and_short() {
    let folder = tempfile::tempdir().unwrap();
    let words = "reproduce pendulum --size 8 --sequences 30 --steps 3 --iterations 4 --batch 10 --without-baselines --out";
    let output = ramp()
        .args(words.split(' '))
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let results = json(folder.path());
    assert_eq!(results["settings"]["films"]["sequences"], 30);
    assert_eq!(results["free_energy_history"].as_array().unwrap().len(), 4);
    assert_eq!(results["prediction"]["ramp"].as_array().unwrap().len(), 1);
}

#[test]
#[cfg(unix)]
fn killed_at_any_moment_it_goes_on_and_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        "reproduce",
        "linear-tree",
        "--n",
        "600",
        "--batch",
        "300",
        "--iterations",
        "120",
        "--bbvi-iterations",
        "20",
    ];
    let whole = folder.path().join("whole");
    assert!(
        ramp()
            .args(words)
            .arg("--out")
            .arg(&whole)
            .output()
            .unwrap()
            .status
            .success()
    );

    let pieces = folder.path().join("pieces");
    for wait in [1, 60, 150, 333] {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("ramp"))
            .args(words)
            .arg("--out")
            .arg(&pieces)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = ramp()
        .args(words)
        .arg("--out")
        .arg(&pieces)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(json(&whole)["corr"], json(&pieces)["corr"]);
    assert_eq!(json(&whole)["bbvi_history"], json(&pieces)["bbvi_history"]);
    assert_eq!(
        json(&whole)["free_energy_history"],
        json(&pieces)["free_energy_history"]
    );
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_a_state_to_go_on_from() {
    signals::heed();
    let folder = tempfile::tempdir().unwrap();
    let words = [
        "reproduce",
        "linear-tree",
        "--n",
        "1000",
        "--batch",
        "500",
        "--iterations",
        "100000",
    ];
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("ramp"))
        .args(words)
        .arg("--out")
        .arg(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(800));
    let asked = Instant::now();
    std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(asked.elapsed() < Duration::from_secs(20));
    assert!(
        said(&output).contains("the same command goes on from there"),
        "{}",
        said(&output)
    );
    assert!(
        folder
            .path()
            .join("checkpoint/checkpoint.safetensors")
            .is_file()
    );
}
