//! `mpirun -n P ramp fit` gives the bits of `ramp fit`, whoever stops, dies or differs.
//!
//! The command is built once more with the feature `mpi`, of which only the command itself is new, and run over loopback. Where there is no MPI, the tests
//! are skipped with a printed reason.
#![cfg(unix)]

mod scene;

use ramp_io::array::{Array, ArrayValues, write_arrays};
use scene::{CHAIN, Scene, TREE, long_table, model, noise, said, table};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The command with MPI, or why there is none.
fn with_mpi() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(build);
    built.as_deref().map_err(String::clone)
}

fn build() -> Result<PathBuf, String> {
    for program in ["mpirun", "mpicc"] {
        let found = Command::new(program).arg("--version").output();
        if !found.is_ok_and(|found| found.status.success()) {
            return Err(format!("there is no `{program}`"));
        }
    }
    let plain = Path::new(env!("CARGO_BIN_EXE_ramp"));
    let folder = plain.parent().expect("its folder");
    let own = folder.join("ramp-with-mpi");
    // The features of everything else must be those of the workspace's tests, or all would be built again.
    let cargo = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .args(["test", "--workspace", "--no-run", "--test", "ranks"])
            .arg("--target-dir")
            .arg(folder.parent().expect("the target folder"))
            .args(more);
        if folder.ends_with("release") {
            command.arg("--release");
        }
        command.output().expect("cargo runs")
    };
    let output = cargo(&["--features", "ramp-cli/mpi"]);
    let copied = match output.status.success() {
        true => std::fs::copy(plain, &own).map_err(|e| e.to_string()),
        false => Err(said(&output)),
    };
    // The command without MPI takes its place again; nothing is compiled for that.
    let back = cargo(&[]);
    assert!(back.status.success(), "{}", said(&back));
    match copied {
        Ok(_) => Ok(own),
        Err(said) => panic!("the command does not build with the feature mpi: {said}"),
    }
}

/// The command with MPI; without it the test is over, which is a failure where it must not be.
macro_rules! command_or_return {
    () => {
        match with_mpi() {
            Ok(command) => command,
            Err(reason) => {
                assert!(std::env::var("CI").is_err(), "{reason}");
                eprintln!("skipped: {reason}");
                return;
            }
        }
    };
}

/// What `mpirun` needs to start more processes than cores, by whomever.
fn mpirun(scene: &Scene) -> Command {
    let mut command = Command::new("mpirun");
    command
        .current_dir(scene.path("."))
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        // Of the ways between processes of one machine, those that need no rights.
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .env("OMPI_MCA_btl_base_warn_component_unused", "0")
        .args(["--oversubscribe", "--bind-to", "none"]);
    command
}

/// `mpirun -n ranks ramp words --threads 1`.
fn among(scene: &Scene, command: &Path, ranks: usize, words: &[&str]) -> Command {
    let mut run = mpirun(scene);
    run.args(["-n", &ranks.to_string()])
        .arg(command)
        .args(words)
        .args(["--threads", "1"]);
    run
}

/// The sentences of the command, without what `mpirun` adds.
fn sentences(output: &Output) -> Vec<String> {
    let said = said(output);
    let own = said.lines().filter(|line| line.starts_with("ramp: "));
    own.map(String::from).collect()
}

/// Two runs of the same files, but for their pages, which say how long it took, and the list of checksums with that of the page.
fn same_run(scene: &Scene, one: &str, other: &str) {
    let files = |run: &str| -> Vec<PathBuf> {
        let folder = scene.path(run);
        let all = scene.files().into_keys();
        let own = all.filter_map(|path| path.strip_prefix(&folder).ok().map(Path::to_path_buf));
        own.filter(|path| {
            !["report.html", "run.json"]
                .iter()
                .any(|name| path.ends_with(name))
        })
        .collect()
    };
    let kept = files(one);
    assert!(
        kept.iter()
            .any(|path| path.ends_with("weights.safetensors"))
    );
    assert!(kept.iter().any(|path| path.starts_with("checkpoint")));
    assert_eq!(kept, files(other), "files of {one} and {other}");
    for file in kept {
        let file = file.display();
        let [a, b] = [one, other].map(|run| scene.read(&format!("{run}/{file}")));
        assert!(a == b, "{file} of {one} and {other}");
    }
    // What the pages show of the fit and its data.
    let [a, b] = [one, other].map(|run| scene.text(&format!("{run}/report.html")));
    let timeless = |page: String| -> Vec<String> {
        let lines = page.split(['{', '[']);
        let about = |part: &&str| !part.contains("this session") && !part.contains("command");
        lines.filter(about).map(String::from).collect()
    };
    assert!(timeless(a) == timeless(b), "report of {one} and {other}");
}

/// A model file that trains in batches for a while.
fn longer(scene: &Scene, iterations: usize) {
    scene.mend(
        "model.toml",
        "iterations = 5",
        &format!("iterations = {iterations}\nbatch = 20\nmask = 0.2\nseed = 7"),
    );
}

#[test]
fn any_number_of_ranks_leaves_the_run_of_one() {
    let command = command_or_return!();
    let tree = Scene::new();
    tree.write("data.csv", table(600));
    tree.mend("model.toml", "iterations = 5", "iterations = 20");
    // Each rank reads its own row groups, and a scale by ranks needs all of a column.
    let parquet = Scene::new();
    parquet.write("data.csv", table(600));
    let rows = parquet.table("data.csv");
    parquet.store("data.parquet", &rows);
    parquet.write(
        "model.toml",
        model(
            "data.parquet",
            &format!("{TREE}[observations.a]\nscale = \"rank\"\n"),
        ),
    );
    longer(&parquet, 20);
    let arrays = Scene::new();
    let number = |i: usize| {
        if i % 8 > 4 + i / 2000 {
            f32::NAN
        } else {
            noise(i, 0) as f32
        }
    };
    let walks = Array {
        name: "x".into(),
        shape: vec![200, 8, 2],
        values: ArrayValues::Numbers((0..200 * 16).map(|i| number(i / 2)).collect()),
    };
    write_arrays(&arrays.path("walks.npz"), &[walks], true).unwrap();
    arrays.write(
        "model.toml",
        model("walks.npz", "[tree]\nchain = { observe = [\"x\"] }\n"),
    );
    longer(&arrays, 20);
    let chain = Scene::new();
    chain.write("data.csv", long_table(60));
    chain.write("model.toml", model("data.csv", CHAIN));
    longer(&chain, 20);
    for scene in [tree, parquet, arrays, chain] {
        scene.does(&["fit", "model.toml", "--out", "one"]);
        for ranks in 1..=4 {
            let out = format!("ranks{ranks}");
            let words = ["fit", "model.toml", "--out", &out[..]];
            let output = among(&scene, command, ranks, &words).output().unwrap();
            assert!(output.status.success(), "{ranks}: {}", said(&output));
            same_run(&scene, "one", &out);
            // One of them speaks.
            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(printed.matches("the run is in").count(), 1, "{printed}");
        }
    }
}

/// Waits until a run has taken so many steps.
fn await_steps(scene: &Scene, run: &str, steps: usize) {
    let begun = Instant::now();
    let records = scene.path(&format!("{run}/checkpoint/records.jsonl"));
    let checkpoint = scene.path(&format!("{run}/checkpoint/checkpoint.safetensors"));
    let taken = || {
        let text = std::fs::read_to_string(&records).unwrap_or_default();
        text.lines().count()
    };
    while taken() < steps || !checkpoint.exists() {
        assert!(begun.elapsed() < Duration::from_secs(120), "no steps");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(id: u32, signal: &str) {
    let mut command = Command::new("kill");
    command.args([signal, &id.to_string()]);
    assert!(command.status().unwrap().success());
}

/// The processes that a process has started.
fn children(id: u32) -> Vec<u32> {
    let found = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid="])
        .output()
        .unwrap();
    let text = String::from_utf8(found.stdout).unwrap();
    let pairs = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().map(|word| word.parse::<u32>().ok());
        Some((words.next()??, words.next()??))
    });
    pairs
        .filter(|&(_, parent)| parent == id)
        .map(|(own, _)| own)
        .collect()
}

fn start(mut command: Command) -> Child {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Ctrl-C and a rank that dies: a checkpoint that is whole, and the same end with other ranks.
#[test]
fn what_stops_in_the_middle_goes_on_with_other_ranks() {
    let command = command_or_return!();
    let scene = Scene::new();
    longer(&scene, 1500);
    scene.mend("model.toml", "seed = 7", "seed = 7\npatience = 1000000");
    scene.does(&["fit", "model.toml", "--out", "whole"]);
    for run in ["interrupted", "dies"] {
        let fit = ["fit", "model.toml", "--out", run];
        let child = start(among(&scene, command, 3, &fit));
        await_steps(&scene, run, 320);
        match run {
            "interrupted" => kill(child.id(), "-INT"),
            _ => kill(children(child.id())[1], "-KILL"),
        }
        let stopped = Instant::now();
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success(), "{run}: {}", said(&output));
        let took = stopped.elapsed();
        assert!(took < Duration::from_secs(30), "{run}: {took:?}");
        assert!(!scene.path(&format!("{run}/weights.safetensors")).exists());
        let resume = ["fit", "model.toml", "--out", run, "--resume"];
        let output = among(&scene, command, 2, &resume).output().unwrap();
        assert!(output.status.success(), "{run}: {}", said(&output));
        same_run(&scene, "whole", run);
    }
}

/// Every rank ends, and one says why.
#[test]
fn ranks_that_differ_or_cannot_read_end_with_one_sentence() {
    let command = command_or_return!();
    let scene = Scene::new();
    scene.write("other.csv", table(60).replacen("1.", "2.", 1));
    scene.write("broken.parquet", "not a table");
    let with = |second: &[&str]| {
        let fit = ["fit", "model.toml", "--out", "run", "--threads", "1"];
        let mut run = mpirun(&scene);
        run.args(["-n", "2"]).arg(command).args(fit);
        run.args([":", "-n", "1"])
            .arg(command)
            .args(fit)
            .args(second);
        let begun = Instant::now();
        let output = run.output().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30));
        (output.status.code(), sentences(&output))
    };
    for (second, wanted) in [
        (["--data", "other.csv"], "rank 2 has other data than rank 0"),
        (
            ["--seed", "3"],
            "rank 2 has other training settings than rank 0",
        ),
        (["--data", "missing.csv"], "missing.csv"),
        (["--data", "broken.parquet"], "broken.parquet"),
    ] {
        let (code, sentences) = with(&second);
        assert_eq!(sentences.len(), 1, "{second:?}: {sentences:?}");
        assert!(sentences[0].contains(wanted), "{sentences:?}");
        assert!(matches!(code, Some(1 | 2)), "{code:?}");
        let weights = scene.path("run/weights.safetensors");
        assert!(!weights.exists(), "{second:?}");
        // What was claimed and not begun is no obstacle.
        let _ = std::fs::remove_dir_all(scene.path("run"));
    }
}

/// Without the feature, a launcher's processes would all train the same.
#[test]
fn a_command_without_mpi_says_how_to_build_one() {
    // While the command is built with MPI, it is in the place of this one.
    let _ = with_mpi();
    let scene = Scene::new();
    for (rank, lines) in [("0", 1), ("1", 0)] {
        let output = scene
            .command()
            .args(["fit", "model.toml", "--out", "run"])
            .env("OMPI_COMM_WORLD_SIZE", "2")
            .env("OMPI_COMM_WORLD_RANK", rank)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(said(&output).lines().count(), lines, "{}", said(&output));
        assert!(lines == 0 || said(&output).contains("cargo build --release --features mpi"));
        assert!(!scene.path("run").exists());
    }
}
