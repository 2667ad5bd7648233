//! One call of the system fails, wherever that may be: old files stay whole, there is a sentence, and the exit code is right.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod scene;

use scene::{CHAIN, Scene, long_table, model, said};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The library between command and system, from `faults/shim.c`.
fn shim(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
    let library = folder.join("shim.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-fno-builtin", "-o"])
        .args([library.as_path(), &source])
        .arg("-ldl")
        .status();
    assert!(
        built.unwrap().success(),
        "the C compiler that the build needs"
    );
    library
}

struct Faulty {
    scene: Scene,
    shim: PathBuf,
    _folder: tempfile::TempDir,
}

impl Faulty {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Faulty {
            scene: Scene::with_run(),
            shim: shim(folder.path()),
            _folder: folder,
        }
    }

    fn run(&self, fault: &str, words: &[&str]) -> Output {
        let under = self.scene.path("").canonicalize().unwrap();
        let mut command = self.scene.command();
        command.args(words).env("LD_PRELOAD", &self.shim);
        command.env("FAULT", fault).env("FAULT_UNDER", under);
        command.output().unwrap()
    }

    /// What the run says of its data.
    fn answer(&self) -> Vec<u8> {
        let infer = ["infer", "run", "--data", "data.csv", "--out", "answer.csv"];
        self.scene.does(&infer);
        let answer = self.scene.read("answer.csv");
        std::fs::remove_file(self.scene.path("answer.csv")).unwrap();
        answer
    }

    fn leftovers(&self) -> Vec<PathBuf> {
        let files = self.scene.files().into_keys();
        files
            .filter(|path| path.extension().is_some_and(|e| e == "tmp"))
            .collect()
    }
}

const FAULTS: [(&str, usize); 6] = [
    ("write", 6),
    ("read", 6),
    ("rename", 6),
    ("sync", 6),
    ("create", 6),
    ("alloc", 6),
];

fn faults() -> impl Iterator<Item = String> {
    FAULTS
        .into_iter()
        .flat_map(|(kind, count)| (1..=count).map(move |number| format!("{kind}:{number}")))
}

/// A sentence and an exit code, whatever failed; whether it was done all the same.
fn told(output: &Output, what: &str) -> bool {
    let error = said(output);
    match output.status.code() {
        Some(0) => true,
        Some(1 | 2) => {
            assert_eq!(error.lines().count(), 1, "{what}: {error}");
            assert!(error.starts_with("ramp: "), "{what}: {error}");
            false
        }
        code => panic!("{what}: {code:?} {error}"),
    }
}

#[test]
fn answers_are_whole_or_not_there() {
    let faulty = Faulty::new();
    let right = faulty.answer();
    let mut failed = 0;
    faulty.scene.write("long.csv", long_table(20));
    faulty.scene.write("chain.toml", model("long.csv", CHAIN));
    faulty.scene.does(&["fit", "chain.toml", "--out", "chain"]);
    let about_rows = |command| [command, "run", "--data", "data.csv", "--out", "o.csv"].to_vec();
    let mut commands = ["infer", "score", "impute"].map(about_rows).to_vec();
    let forecast = [
        "forecast", "chain", "--data", "long.csv", "--steps", "3", "--out", "o.csv",
    ];
    commands.push(forecast.to_vec());
    for words in commands {
        let command = words[0];
        faulty.scene.does(&words);
        let whole = faulty.scene.read("o.csv");
        for fault in faults() {
            let what = format!("{command} {fault}");
            faulty.scene.write("o.csv", "old");
            let mut before = faulty.scene.files();
            let done = told(&faulty.run(&fault, &words), &what);
            failed += usize::from(!done);
            if done {
                before.insert(faulty.scene.path("o.csv"), whole.clone());
            }
            // Memory that ends leaves no time to tidy up; the next start does.
            if fault.starts_with("alloc") {
                faulty.scene.does(&words);
                before.insert(faulty.scene.path("o.csv"), whole.clone());
            }
            assert!(faulty.scene.files() == before, "{what}");
        }
    }
    assert!(failed > 40, "{failed}");
    assert_eq!(faulty.answer(), right);
}

#[test]
fn model_files_and_checks_leave_everything_as_it_was() {
    let faulty = Faulty::new();
    let init = ["init", "data.csv", "--out", "new.toml", "--overwrite"];
    faulty.scene.does(&init);
    let whole = faulty.scene.read("new.toml");
    for words in [&init[..], &["check", "model.toml"]] {
        for fault in faults() {
            faulty.scene.write("new.toml", "old");
            let mut before = faulty.scene.files();
            let done = told(&faulty.run(&fault, words), &format!("{words:?} {fault}"));
            if fault.starts_with("alloc") {
                faulty.scene.does(&init);
            }
            if words == init && done || fault.starts_with("alloc") {
                before.insert(faulty.scene.path("new.toml"), whole.clone());
            }
            assert!(faulty.scene.files() == before, "{words:?} {fault}");
        }
    }
}

#[test]
fn a_run_is_the_old_one_or_the_new_one() {
    let faulty = Faulty::new();
    let old = faulty.answer();
    faulty
        .scene
        .write("other.toml", faulty.scene.text("model.toml") + "seed = 9\n");
    let overwrite = ["fit", "other.toml", "--out", "run", "--overwrite"];
    let restore = ["fit", "model.toml", "--out", "run", "--overwrite"];
    faulty.scene.does(&overwrite);
    let new = faulty.answer();
    assert_ne!(old, new);
    faulty.scene.does(&restore);
    assert_eq!(faulty.answer(), old);
    let mut failed = 0;
    // More renames: all files of a run take their places one after the other.
    let renames = (7..20).map(|number| format!("rename:{number}"));
    for fault in faults().chain(renames) {
        let done = told(&faulty.run(&fault, &overwrite), &fault);
        failed += usize::from(!done);
        let answer = faulty.answer();
        assert!(answer == new || !done && answer == old, "{fault}: neither");
        if !fault.starts_with("alloc") {
            assert_eq!(faulty.leftovers(), Vec::<PathBuf>::new(), "{fault}");
        }
        faulty.scene.does(&restore);
        assert_eq!(faulty.answer(), old, "{fault}");
        assert_eq!(faulty.leftovers(), Vec::<PathBuf>::new(), "{fault}");
    }
    assert!(failed > 25, "{failed}");
    for fault in faults() {
        told(&faulty.run(&fault, &["report", "run"]), &fault);
        assert_eq!(faulty.answer(), old, "report {fault}");
        faulty.scene.does(&["report", "run"]);
    }
}

/// An experiment's results are whole or not there, and the same command goes on to the same numbers.
#[test]
fn experiments_go_on_after_whatever_failed() {
    let faulty = Faulty::new();
    let words =
        "reproduce calibration --case beta --n 60 --test 40 --iterations 6 --batch 20 --out out";
    let words: Vec<&str> = words.split(' ').collect();
    let found = || -> serde_json::Value {
        let results: serde_json::Value =
            serde_json::from_slice(&faulty.scene.read("out/results.json")).unwrap();
        results["cases"][0]["ranks"].clone()
    };
    faulty.scene.does(&words);
    let right = found();
    assert_eq!(right[0]["ranks"], 40);
    let mut failed = 0;
    for fault in faults() {
        std::fs::remove_dir_all(faulty.scene.path("out")).unwrap();
        let done = told(&faulty.run(&fault, &words), &fault);
        failed += usize::from(!done);
        if faulty.scene.path("out/results.json").exists() {
            assert_eq!(found(), right, "{fault}");
        }
        assert!(
            faulty.scene.path("out/results.json").exists() || !done,
            "{fault}"
        );
        faulty.scene.does(&words);
        assert_eq!(found(), right, "{fault}");
        assert_eq!(faulty.leftovers(), Vec::<PathBuf>::new(), "{fault}");
    }
    assert!(failed > 12, "{failed}");
}

#[test]
fn without_threads_one_does_the_work() {
    let faulty = Faulty::new();
    let right = faulty.answer();
    for words in [
        &["fit", "model.toml", "--out", "other"][..],
        &["check", "model.toml"],
        &["infer", "other", "--data", "data.csv", "--out", "o.csv"],
        &["score", "other", "--data", "data.csv", "--out", "s.csv"],
        &["impute", "other", "--data", "data.csv", "--out", "i.csv"],
        &["report", "other"],
    ] {
        let output = faulty.run("thread:1", words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }
    assert_eq!(faulty.scene.read("o.csv"), right);
    // Nor where several are asked for: the answer is the same.
    let several = ["fit", "model.toml", "--out", "third", "--threads", "3"];
    let output = faulty.run("thread:1", &several);
    assert!(output.status.success(), "{}", said(&output));
    let [one, other] =
        ["run", "third"].map(|run| faulty.scene.read(&format!("{run}/metrics.jsonl")));
    assert!(one == other);
}
