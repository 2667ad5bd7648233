//! Nothing lost: a user's files, an old run while a new one is under way, the data that a fit read; and one writer at a time.

mod scene;

use scene::{Scene, model, said, table};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// The files of a run, but for what is under way in it.
fn placed(scene: &Scene, run: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let (run, stage) = (scene.path(run), scene.path(run).join(".next"));
    let files = scene.files().into_iter();
    files
        .filter(|(path, _)| path.starts_with(&run) && !path.starts_with(&stage))
        .filter(|(path, _)| !path.ends_with(".ramp-lock"))
        .collect()
}

fn start(scene: &Scene, words: &[&str]) -> Child {
    let mut command = scene.command();
    command.args(words).stdout(Stdio::null());
    command.stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for a file that is newer than now, as long as a slow machine may take.
fn await_file(scene: &Scene, name: &str) {
    let (begun, now) = (Instant::now(), SystemTime::now());
    let newer = |found: std::fs::Metadata| found.modified().is_ok_and(|at| at > now);
    while !std::fs::metadata(scene.path(name)).is_ok_and(newer) {
        assert!(begun.elapsed() < Duration::from_secs(120), "no {name}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let mut command = std::process::Command::new("kill");
    assert!(command.args([signal, &id]).status().unwrap().success());
}

/// A model that takes a while.
fn long(scene: &Scene, name: &str, iterations: usize) {
    let text = scene.text("model.toml");
    scene.write(
        name,
        text.replace(
            "iterations = 5",
            &format!("iterations = {iterations}\npatience = 1000000\nseed = 7"),
        ),
    );
}

#[test]
fn a_fit_never_writes_over_a_users_file() {
    let scene = Scene::new();
    let text = scene.text("model.toml") + "# why I chose this tree\n";
    scene.write("model.toml", &text);
    for words in [
        &["fit", "model.toml", "--out", "."][..],
        &["fit", "model.toml", "--out", ".", "--overwrite"],
        &["fit", "model.toml", "--out", "./."],
    ] {
        scene.fails(
            words,
            &["model.toml", "the run would write over it", "--out"],
        );
    }
    // Data with the name of a file that a run writes, and the same by a link.
    scene.write("here/support.csv", table(60));
    scene.write("m.toml", model("here/support.csv", scene::TREE));
    scene.fails(
        &["fit", "m.toml", "--out", "here"],
        &["here/support.csv", "would write over it"],
    );
    std::fs::create_dir(scene.path("linked")).unwrap();
    std::fs::hard_link(scene.path("data.csv"), scene.path("linked/support.csv")).unwrap();
    scene.fails(
        &["fit", "model.toml", "--out", "linked"],
        &["linked/support.csv", "would write over it"],
    );
    // Anything else in the way that is no run's.
    for name in [
        "report.html",
        "metrics.jsonl",
        "weights.safetensors",
        "model.toml",
    ] {
        scene.write(&format!("{name}.d/{name}"), "mine");
        let out = format!("{name}.d");
        for more in [&[][..], &["--overwrite"]] {
            let words = [&["fit", "model.toml", "--out", &out], more].concat();
            scene.fails(&words, &[name, "not from a run", "--out"]);
        }
    }
    // Files beside a run are nobody's business.
    scene.write("kept/notes.txt", "mine");
    scene.does(&["fit", "model.toml", "--out", "kept"]);
    scene.does(&["fit", "model.toml", "--out", "kept", "--overwrite"]);
    assert_eq!(scene.read("kept/notes.txt"), b"mine");
    assert!(scene.text("kept/run.json").contains("\"finished\": true"));
    // What was changed since is no longer the run's.
    scene.write("kept/model.toml", "# my notes\n");
    scene.fails(
        &["fit", "model.toml", "--out", "kept", "--overwrite"],
        &["kept/model.toml", "changed since the run wrote it"],
    );
}

#[test]
fn init_never_writes_over_the_data() {
    let scene = Scene::new();
    for out in ["data.csv", "./data.csv"] {
        scene.fails(
            &["init", "data.csv", "--out", out, "--overwrite"],
            &["is the data", "--out"],
        );
    }
    scene.write("other.csv", table(5));
    scene.fails(
        &["init", "data.csv", "--out", "other.csv", "--overwrite"],
        &["`other.csv` does not end in .toml"],
    );
    scene.does(&["init", "data.csv", "--out", "model.toml", "--overwrite"]);
}

#[test]
#[cfg(unix)]
fn an_old_run_is_whole_until_the_new_one_is() {
    let scene = Scene::with_run();
    long(&scene, "long.toml", 3000);
    let infer = ["infer", "run", "--data", "data.csv", "--out", "o.csv"];
    scene.does(&infer);
    let (before, old) = (placed(&scene, "run"), scene.read("o.csv"));
    let overwrite = ["fit", "long.toml", "--out", "run", "--overwrite"];
    for (signal, code) in [("-KILL", None), ("-INT", Some(130))] {
        let child = start(&scene, &overwrite);
        await_file(&scene, "run/.next/checkpoint/checkpoint.safetensors");
        scene.does(&infer);
        assert_eq!(scene.read("o.csv"), old);
        kill(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{}", said(&output));
        assert_eq!(placed(&scene, "run"), before, "{signal}");
        scene.does(&infer);
        assert_eq!(scene.read("o.csv"), old);
    }
    // The new one goes on where it stopped, and then it is the run.
    scene.does(&["fit", "long.toml", "--out", "run", "--resume"]);
    scene.does(&["fit", "long.toml", "--out", "fresh"]);
    for file in ["weights.safetensors", "metrics.jsonl", "support.csv"] {
        let [resumed, fresh] = ["run", "fresh"].map(|run| scene.read(&format!("{run}/{file}")));
        assert!(resumed == fresh, "{file}");
    }
    assert!(!scene.path("run/.next").exists());
    assert!(!scene.path("run/.ramp-lock").exists());
    scene.does(&[
        "fit",
        "long.toml",
        "--out",
        "run",
        "--resume",
        "--iterations",
        "3010",
    ]);
}

#[test]
#[cfg(unix)]
fn one_writer_per_folder_and_a_killed_one_is_no_writer() {
    let scene = Scene::with_run();
    long(&scene, "long.toml", 1_000_000);
    let mut child = start(&scene, &["fit", "long.toml", "--out", "busy"]);
    await_file(&scene, "busy/checkpoint/checkpoint.safetensors");
    let id = format!("another process ({})", child.id());
    for words in [
        &["fit", "model.toml", "--out", "busy", "--overwrite"][..],
        &["fit", "long.toml", "--out", "busy", "--resume"],
    ] {
        let output = scene.run(words);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(&id), "{}", said(&output));
    }
    let mut other = start(&scene, &["fit", "long.toml", "--out", "run", "--overwrite"]);
    await_file(&scene, "run/.next/checkpoint/checkpoint.safetensors");
    let output = scene.run(&["report", "run"]);
    assert!(
        said(&output).contains("is writing to `run`"),
        "{}",
        said(&output)
    );
    for child in [&mut child, &mut other] {
        kill(child, "-KILL");
        child.wait().unwrap();
    }
    assert!(scene.path("busy/.ramp-lock").exists());
    scene.does(&["fit", "model.toml", "--out", "busy", "--overwrite"]);
    assert!(!scene.path("busy/.ramp-lock").exists());
    scene.does(&["report", "run"]);
}

#[test]
#[cfg(unix)]
fn the_data_of_a_fit_are_the_data_that_it_read() {
    let scene = Scene::new();
    long(&scene, "long.toml", 2000);
    scene.does(&["fit", "long.toml", "--out", "calm"]);
    let (whole, calm) = (scene.read("data.csv"), scene.text("calm/report.html"));
    for other in [Some(table(3)), Some(table(90)), None] {
        let child = start(&scene, &["fit", "long.toml", "--out", "run", "--overwrite"]);
        await_file(
            &scene,
            if scene.path("run/run.json").exists() && scene.path("run/weights.safetensors").exists()
            {
                "run/.next/checkpoint/checkpoint.safetensors"
            } else {
                "run/checkpoint/checkpoint.safetensors"
            },
        );
        match other {
            Some(text) => scene.write("data.csv", text),
            None => std::fs::remove_file(scene.path("data.csv")).unwrap(),
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        scene.write("data.csv", &whole);
        for file in ["weights.safetensors", "support.csv"] {
            let [run, calm] = ["run", "calm"].map(|run| scene.read(&format!("{run}/{file}")));
            assert!(run == calm, "{file}");
        }
        // The same rows are shown; only the command and the time differ.
        let run = scene.text("run/report.html");
        assert!(
            run.len().abs_diff(calm.len()) < 40,
            "{} {}",
            run.len(),
            calm.len()
        );
    }
    scene.write("data.csv", table(61));
    scene.fails(&["report", "run"], &["is not what `run` was fitted to"]);
    // One cell, in a place that no scale depends on.
    let other = String::from_utf8(whole)
        .unwrap()
        .replacen("001,", "001,9", 1);
    scene.write("data.csv", other);
    scene.fails(&["report", "run"], &["is not what `run` was fitted to"]);
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_get_a_sentence() {
    let scene = Scene::with_run();
    for name in ["pipe.csv", "pipe.npz", "pipe.parquet", "model_pipe.toml"] {
        let made = std::process::Command::new("mkfifo")
            .arg(scene.path(name))
            .status();
        assert!(made.unwrap().success());
    }
    // A pipe has no contents to compare, so files are not walked here.
    let fails = |words: &[&str], part: &str| {
        let output = scene.run(words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            said(&output)
        );
        assert!(said(&output).contains(part), "{words:?}: {}", said(&output));
    };
    for data in ["pipe.csv", "pipe.npz", "pipe.parquet"] {
        fails(
            &["fit", "model.toml", "--data", data, "--out", "new"],
            "is a pipe",
        );
        fails(&["check", "model.toml", "--data", data], "is a pipe");
        fails(
            &["infer", "run", "--data", data, "--out", "o.csv"],
            "is a pipe",
        );
        fails(
            &["infer", "run", "--data", "data.csv", "--out", data],
            "is a pipe",
        );
    }
    fails(&["init", "pipe.csv"], "is a pipe");
    fails(&["check", "model_pipe.toml"], "is a pipe");
    fails(&["check", "model.toml", "--data", "/dev/zero"], "/dev/zero");
}

#[test]
#[cfg(unix)]
fn a_signal_that_was_to_be_ignored_is() {
    let scene = Scene::new();
    long(&scene, "long.toml", 3000);
    let ramp = scene.command().get_program().to_owned();
    let child = std::process::Command::new("sh")
        .args(["-c", "trap '' HUP INT; exec \"$0\" fit long.toml --out run"])
        .arg(ramp)
        .current_dir(scene.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    await_file(&scene, "run/checkpoint/checkpoint.safetensors");
    for signal in ["-HUP", "-INT", "-HUP", "-INT"] {
        kill(&child, signal);
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(scene.text("run/metrics.jsonl").lines().count(), 3000);

    // Without that, a terminal that closes is a wish to stop.
    let child = start(&scene, &["fit", "long.toml", "--out", "other"]);
    await_file(&scene, "other/checkpoint/checkpoint.safetensors");
    kill(&child, "-HUP");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
}

#[test]
fn divergence_is_named_and_the_best_weights_are_kept() {
    let scene = Scene::new();
    scene.mend(
        "model.toml",
        "iterations = 5",
        "iterations = 4000\nwarmup = 0\nlearning_rate = 100\nevaluate_every = 1\ndecay = { kind = \"constant\" }",
    );
    let output = scene.run(&["fit", "model.toml", "--out", "run"]);
    let error = said(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("a learning rate of 100 is too high"),
        "{error}"
    );
    assert!(error.contains("the best so far"), "{error}");
    scene.does(&["infer", "run", "--data", "data.csv", "--out", "o.csv"]);
    let before = scene.files();
    let output = scene.run(&["fit", "model.toml", "--out", "run", "--resume"]);
    let error = said(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    for part in ["diverged", "a learning rate of 100 is too high"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(scene.files(), before);
}

#[test]
fn leftovers_of_killed_commands_are_removed_at_the_next_start() {
    let scene = Scene::with_run();
    let left = ".ramp-0123456789abcdef0123456789abcdef.tmp";
    for place in ["", "run/", "run/checkpoint/"] {
        scene.write(&format!("{place}{left}"), "half");
    }
    scene.does(&["infer", "run", "--data", "data.csv", "--out", "o.csv"]);
    assert!(!scene.path(left).exists());
    scene.does(&["fit", "model.toml", "--out", "run", "--overwrite"]);
    for place in ["run/", "run/checkpoint/"] {
        assert!(!scene.path(&format!("{place}{left}")).exists(), "{place}");
    }
}
