//! Hostile files, each with a line in `attacks/README.md` on what it tries: the command survives all of them, quickly and politely.

mod scene;

use scene::{Scene, model, said};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks")
}

/// The attacks of one kind.
fn attacks(kind: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder().join(kind)).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    assert!(!all.is_empty(), "{kind}");
    all
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// What a command said, the seconds of processor time that it took, and the megabytes that it held: unlike the time of day, these do
/// not depend on who else is on the machine.
#[cfg(unix)]
#[allow(clippy::zombie_processes)] // `wait4` waits, and says what was used.
fn measured(mut command: Command) -> (Output, f64, i64) {
    use std::os::unix::process::ExitStatusExt;
    let (mut stdout, mut stderr) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().unwrap());
    let child = command.stderr(stderr.try_clone().unwrap()).spawn().unwrap();
    let (mut status, mut usage) = (0, unsafe { std::mem::zeroed::<libc::rusage>() });
    // SAFETY: the child is ours and nobody else waits for it; both places live until the call is back.
    let ended = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    assert_eq!(ended, child.id() as i32);
    let text = |file: &mut std::fs::File| {
        let mut bytes = vec![];
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    };
    let output = Output {
        status: std::process::ExitStatus::from_raw(status),
        stdout: text(&mut stdout),
        stderr: text(&mut stderr),
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let taken = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    (output, taken, usage.ru_maxrss / 1024)
}

#[cfg(not(unix))]
fn measured(mut command: Command) -> (Output, f64, i64) {
    (command.output().unwrap(), 0.0, 0)
}

/// Runs the command, which must end by itself with a sentence or a result, in one line and without a word to the terminal; a refusal takes at
/// most a second and little memory.
fn survives(scene: &Scene, words: &[&str]) -> Output {
    let mut command = scene.command();
    command.args(words);
    let (output, seconds, megabytes) = measured(command);
    let error = said(&output);
    match output.status.code() {
        Some(0) => {}
        Some(1 | 2) => {
            assert!(error.starts_with("ramp: "), "{words:?}: {error}");
            assert_eq!(error.lines().count(), 1, "{words:?}: {error}");
        }
        code => panic!("{words:?}: {code:?} {error}"),
    }
    assert!(error.len() < 2000, "{words:?}: {error}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &error;
    let commands = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    assert!(!printed.contains(commands), "{words:?}: {printed:?}");
    let most = if output.status.success() { 10.0 } else { 1.0 };
    assert!(seconds < most, "{words:?}: {seconds} s: {error}");
    assert!(megabytes < 300, "{words:?}: {megabytes} MB: {error}");
    output
}

#[test]
fn every_attack_says_what_it_tries() {
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for kind in ["data", "joints", "models", "runs"] {
        for path in attacks(kind) {
            let line = format!("| `{kind}/{}` | ", name_of(&path));
            assert!(readme.contains(&line), "no line on {}", path.display());
        }
    }
    for line in readme.lines().filter(|line| line.starts_with("| `")) {
        let name = line.split('`').nth(1).unwrap();
        assert!(folder().join(name).exists(), "{name} is gone");
    }
}

#[test]
fn data() {
    let scene = Scene::with_run();
    for path in attacks("data") {
        let name = name_of(&path);
        std::fs::copy(&path, scene.path(&name)).unwrap();
        let before = scene.files();
        for words in [
            &["check", "model.toml", "--data", &name][..],
            &["infer", "run", "--data", &name, "--out", "o.csv"],
            &["impute", "run", "--data", &name, "--out", "o.npz"],
        ] {
            survives(&scene, words);
        }
        assert!(
            before
                .iter()
                .all(|(path, bytes)| scene.files()[path] == *bytes)
        );
        // As data of its own: a model, a fit, a report and every output.
        let toml = format!("{name}.toml");
        if survives(&scene, &["init", &name, "--out", &toml])
            .status
            .success()
        {
            let (out, data) = (format!("{name}.run"), &name[..]);
            let fit = ["fit", &toml, "--out", &out, "--iterations", "2"];
            if survives(&scene, &fit).status.success() {
                let page = scene.text(&format!("{out}/report.html"));
                assert!(!page.contains("<script>alert"), "{name}");
                assert!(!page.contains("<img src=x"), "{name}");
                for output in ["o.csv", "o.npz", "o.parquet"] {
                    survives(&scene, &["infer", &out, "--data", data, "--out", output]);
                    survives(&scene, &["impute", &out, "--data", data, "--out", output]);
                }
            }
        }
        let stray = scene.path("").parent().unwrap().join("x.npy");
        assert!(!stray.exists());
    }
}

#[test]
fn models() {
    let scene = Scene::new();
    for path in attacks("models") {
        let name = name_of(&path);
        std::fs::copy(&path, scene.path(&name)).unwrap();
        survives(&scene, &["check", &name]);
        survives(&scene, &["check", &name, "--data", "data.csv"]);
        if name != "endless_training.toml" {
            let fit = [
                "fit",
                &name,
                "--data",
                "data.csv",
                "--iterations",
                "2",
                "--out",
                "run",
                "--overwrite",
            ];
            survives(&scene, &fit);
        }
    }
}

#[test]
fn runs() {
    let scene = Scene::new();
    scene.write(
        "two.csv",
        "a,b\n1,2\n2,1\n3,4\n4,3\n5,6\n6,5\n7,8\n8,7\n9,1\n1,9\n",
    );
    scene.write(
        "two.toml",
        model("two.csv", "[tree]\nnewick = \"(a,b)z;\"\n"),
    );
    scene.write("victim.csv", "mine");
    for path in attacks("runs") {
        let name = format!("runs/{}", name_of(&path));
        copy_all(&path, &scene.path(&name));
        let before = scene.files();
        for words in [
            &["infer", &name, "--data", "two.csv", "--out", "o.csv"][..],
            &["score", &name, "--data", "two.csv", "--out", "o.csv"],
            &["impute", &name, "--data", "two.csv", "--out", "o.csv"],
            &["report", &name],
            &["fit", "two.toml", "--out", &name],
            &["fit", "two.toml", "--out", &name, "--resume"],
        ] {
            let output = survives(&scene, words);
            if words[0] == "fit" && output.status.success() {
                // An empty shell of a run may be filled; then it is one.
                continue;
            }
            assert_eq!(
                output.status.code(),
                Some(2),
                "{words:?}: {}",
                said(&output)
            );
            let after = scene.files();
            assert!(
                before.iter().all(|(p, bytes)| after.get(p) == Some(bytes)),
                "{words:?}"
            );
        }
        survives(&scene, &["fit", "two.toml", "--out", &name, "--overwrite"]);
        assert_eq!(scene.read("victim.csv"), b"mine");
    }
}

#[test]
fn joints() {
    let scene = Scene::new();
    for path in attacks("joints") {
        let path = path.to_string_lossy().into_owned();
        let pose = [
            "reproduce",
            "pose",
            "--joints",
            &path,
            "--out",
            "out",
            "--iterations",
            "1",
        ];
        let output = survives(&scene, &pose);
        assert_eq!(output.status.code(), Some(2), "{path}: {}", said(&output));
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_all(&path, &target),
            false => drop(std::fs::copy(&path, target).unwrap()),
        }
    }
}
