//! Nothing of a run is lost or silently other than it was: damage, wide tables, and new runs that take an old one's place.

use super::claim::STAGE;
use super::manifest::{MANIFEST, MODEL, SUPPORT_TABLE, WEIGHTS};
use super::*;
use crate::array::{Array, ArrayValues};
use crate::source::Content;
use crate::stream::OutputOptions;
use crate::{Error, ModelFile, Result};
use arrow_array::RecordBatch;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Rows of three columns, one of them a category.
fn table(rows: usize, seed: usize) -> String {
    let mut text = String::from("a,b,word\n");
    for row in 0..rows {
        let x = ((row * 37 + seed * 11) % 101) as f64 / 10.0;
        let gap = if row % 9 == 4 {
            String::new()
        } else {
            format!("{:.2}", x * 2.0 + 1.0)
        };
        text += &format!("{x:.1},{gap},{}\n", ["low", "mid", "high"][row % 3]);
    }
    text
}

fn project(data: &Path, tree: &str) -> Project {
    let mut file = ModelFile::parse(tree).unwrap();
    file.data.file = Some(data.to_path_buf());
    Project::prepare(file).unwrap()
}

const TREE: &str = "[tree]\nnewick = \"(a,b,word)z;\"\n[networks]\nmessage = { hidden = [3] }\nobservation = { hidden = [3] }\n";

/// A finished run of untrained networks, another start for every seed.
fn write_run(folder: &Path, seed: usize) {
    let data = folder.parent().unwrap().join(format!("data{seed}.csv"));
    fs::write(&data, table(60, seed)).unwrap();
    let project = project(&data, &format!("{TREE}[train]\nseed = {seed}\n"));
    let place = RunFolder::claim(folder, Intent::New, &[]).unwrap();
    place.finish(&project, &format!("<html>{seed}")).unwrap();
}

/// Everything that a run says of some rows.
fn answers(run: &Path, data: &Path) -> Result<Vec<RecordBatch>> {
    let run = Run::open(run)?;
    let mut all: Vec<RecordBatch> = vec![];
    for batch in run.infer(run.read(data, false)?, OutputOptions::default()) {
        all.push(batch?);
    }
    for batch in run.score(run.read(data, false)?, OutputOptions::default())? {
        all.push(batch?);
    }
    for batch in run.impute(run.read(data, true)?, None)? {
        all.push(batch?);
    }
    Ok(all)
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_all(&path, &target),
            false => drop(fs::copy(&path, target).unwrap()),
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn five_hundred_kinds_of_damage_give_no_other_number() {
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (folder.path().join("run"), folder.path().join("data1.csv"));
    write_run(&run, 1);
    let right = answers(&run, &data).unwrap();
    let (mut refused, mut seed) = (0, 7_u64);
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below.max(1)
    };
    for trial in 0..500 {
        let name = [WEIGHTS, SUPPORT_TABLE, MANIFEST, WEIGHTS, SUPPORT_TABLE][trial % 5];
        let path = run.join(name);
        let whole = fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        match random(8) {
            0 => bytes.truncate(random(whole.len())),
            1 => bytes.insert(random(whole.len()), random(256) as u8),
            2 => {
                let (a, b) = (random(whole.len()), random(whole.len()));
                bytes.swap(a, b);
            }
            3 => {
                let at = random(whole.len());
                bytes[at..].iter_mut().take(16).for_each(|b| *b = 0);
            }
            _ => {
                let at = random(whole.len());
                bytes[at] ^= 1 << random(8);
            }
        }
        fs::write(&path, &bytes).unwrap();
        match answers(&run, &data) {
            Ok(found) => assert_eq!(found, right, "trial {trial}: {name}"),
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(text.contains("run") && !text.contains('\n'), "{text}");
            }
        }
        fs::write(&path, &whole).unwrap();
    }
    // Some change nothing: two equal bytes are exchanged, or a blank of the manifest.
    assert!(refused > 450, "{refused}");
    assert_eq!(answers(&run, &data).unwrap(), right);
}

#[test]
fn files_of_other_runs_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    write_run(&one, 1);
    write_run(&two, 2);
    let data = folder.path().join("data1.csv");
    for name in [WEIGHTS, SUPPORT_TABLE] {
        let whole = fs::read(one.join(name)).unwrap();
        fs::copy(two.join(name), one.join(name)).unwrap();
        let error = answers(&one, &data).unwrap_err();
        let changed = matches!(error, Error::Run(RunError::Changed { .. }));
        assert!(changed && error.to_string().contains(name), "{error}");
        fs::remove_file(one.join(name)).unwrap();
        let error = answers(&one, &data).unwrap_err();
        assert!(
            matches!(error, Error::Run(RunError::Gone { .. })),
            "{error}"
        );
        fs::write(one.join(name), whole).unwrap();
    }
    answers(&one, &data).unwrap();
}

/// An old run in its place and a new one, whole, in the stage.
fn staged() -> (TempDir, PathBuf, [Vec<RecordBatch>; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    write_run(&old, 1);
    write_run(&new, 2);
    let data = folder.path().join("data1.csv");
    let both = [&old, &new].map(|run| answers(run, &data).unwrap());
    assert_ne!(both[0], both[1]);
    copy_all(&new, &old.join(STAGE));
    (folder, old, both)
}

#[test]
fn a_new_run_counts_from_its_manifest_on_wherever_a_process_ends() {
    let files = names(&staged().1.join(STAGE));
    assert_eq!(files.len(), 6, "{files:?}");
    for moved in 0..=files.len() {
        let (folder, run, [old, new]) = staged();
        let (stage, data) = (run.join(STAGE), folder.path().join("data1.csv"));
        // The manifest is the last to be moved, as it is the last to be written.
        let mut order: Vec<&String> = files.iter().filter(|f| *f != MANIFEST).collect();
        let manifest = MANIFEST.to_string();
        order.push(&manifest);
        for name in &order[..moved] {
            fs::rename(stage.join(name), run.join(name)).unwrap();
        }
        assert_eq!(answers(&run, &data).unwrap(), new, "{moved} moved");
        drop(RunFolder::claim_finished(&run).unwrap());
        assert_eq!(answers(&run, &data).unwrap(), new, "{moved} moved");
        assert_eq!(names(&run), files, "{moved} moved");

        // Without its manifest it does not count, however much of it there is.
        let (folder, run, _) = staged();
        let (stage, data) = (run.join(STAGE), folder.path().join("data1.csv"));
        for name in &order[order.len() - 1 - moved.min(order.len() - 1)..] {
            fs::remove_file(stage.join(name)).unwrap();
        }
        assert_eq!(answers(&run, &data).unwrap(), old, "{moved} missing");
    }
}

#[test]
fn nothing_is_written_over_that_is_not_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let check = |folder: &Path, intent, inputs: &[PathBuf]| {
        RunFolder::check(folder, intent, inputs).map_err(|error| match error {
            Error::Run(error) => error,
            other => panic!("{other}"),
        })
    };
    let plain = at.join("plain");
    fs::create_dir(&plain).unwrap();
    fs::write(plain.join("notes.txt"), "mine").unwrap();
    check(&plain, Intent::New, &[]).unwrap();
    for name in [
        "model.toml",
        "support.csv",
        "report.html",
        "checkpoint/records.jsonl",
        STAGE,
    ] {
        let path = plain.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        for intent in [Intent::New, Intent::Overwrite] {
            let error = check(&plain, intent, &[]).unwrap_err();
            let named = matches!(&error, RunError::NotFromRun { path: p } if *p == path);
            assert!(named, "{name}: {error}");
        }
        fs::remove_file(&path).unwrap();
    }
    let run = at.join("run");
    write_run(&run, 1);
    check(&run, Intent::Overwrite, &[]).unwrap();
    let error = check(&run, Intent::New, &[]).unwrap_err();
    assert!(matches!(error, RunError::Occupied { .. }), "{error}");
    let error = check(&run, Intent::Resume, &[]).unwrap_err();
    assert!(
        matches!(error, RunError::NothingToResume { gone: true, .. }),
        "{error}"
    );
    let input = [run.join(".").join(MODEL)];
    let error = check(&run, Intent::Overwrite, &input).unwrap_err();
    assert!(matches!(error, RunError::OverInput { .. }), "{error}");
    let linked = [at.join("linked.csv")];
    fs::hard_link(run.join(SUPPORT_TABLE), &linked[0]).unwrap();
    let error = check(&run, Intent::Overwrite, &linked).unwrap_err();
    assert!(matches!(error, RunError::OverInput { .. }), "{error}");
    fs::write(run.join(MODEL), "# my notes").unwrap();
    let error = check(&run, Intent::Overwrite, &[]).unwrap_err();
    assert!(matches!(error, RunError::ChangedByHand { .. }), "{error}");
    fs::remove_file(run.join(MODEL)).unwrap();
    check(&run, Intent::Overwrite, &[]).unwrap();
}

#[test]
fn one_writer_at_a_time_and_nothing_left_of_those_that_did_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let place = RunFolder::claim(&run, Intent::New, &[]).unwrap();
    assert!(run.join(MANIFEST).exists());
    let error = RunFolder::claim(&run, Intent::New, &[]).unwrap_err();
    let Error::Run(RunError::Busy { process, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(process, Some(std::process::id()));
    drop(place);
    assert_eq!(names(&run), [""; 0]);
    // What a killed process left: its lock's file, and the mark of a run that never began.
    fs::write(run.join(".ramp-lock"), "4242\n").unwrap();
    super::manifest::Manifest::begun().write(&run).unwrap();
    drop(RunFolder::claim(&run, Intent::New, &[]).unwrap());
    assert_eq!(names(&run), [""; 0]);
    // A file of that name that no process of ours wrote.
    fs::write(run.join(".ramp-lock"), "a user's text").unwrap();
    let error = RunFolder::claim(&run, Intent::New, &[]).unwrap_err();
    assert!(
        matches!(error, Error::Run(RunError::NotFromRun { .. })),
        "{error}"
    );
    assert_eq!(fs::read(run.join(".ramp-lock")).unwrap(), b"a user's text");
}

#[test]
fn ten_thousand_columns_of_many_values_are_saved_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("wide.csv");
    let columns: Vec<String> = (0..10_000).map(|i| format!("x{i}")).collect();
    let mut text = columns.join(",");
    for row in 0..700_usize {
        text.push('\n');
        for column in 0..10_000_usize {
            // 700 different values in every column, in another order.
            let x = (row * 397 + column * 13) % 700;
            if column > 0 {
                text.push(',');
            }
            text += &x.to_string();
        }
    }
    fs::write(&data, text + "\n").unwrap();
    let tree = format!(
        "[tree]\nnewick = \"({})z;\"\n[networks]\nmessage = {{ hidden = [1] }}\nobservation = {{ hidden = [1] }}\n",
        columns.join(",")
    );
    let project = project(&data, &tree);
    let run = folder.path().join("run");
    let place = RunFolder::claim(&run, Intent::New, &[]).unwrap();
    place.finish(&project, "").unwrap();
    drop(place);
    let read = Run::open(&run).unwrap();
    // To the last bit of every scale.
    assert_eq!(read.encoder, project.encoder);
    assert_eq!(read.model.parameters(), project.model.parameters());
    let header = fs::read(run.join(WEIGHTS)).unwrap();
    let length = u64::from_le_bytes(header[..8].try_into().unwrap());
    assert!(length < 20 << 20, "a header of {length} bytes");
}

#[test]
fn the_settings_of_a_run_are_those_when_its_data_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.csv");
    fs::write(&data, table(60, 1)).unwrap();
    let project = project(&data, TREE);
    let full = data.canonicalize().unwrap();
    // By the end of a training the file may be gone.
    fs::remove_file(&data).unwrap();
    let run = folder.path().join("run");
    let place = RunFolder::claim(&run, Intent::New, &[]).unwrap();
    place.finish(&project, "").unwrap();
    let kept = fs::read_to_string(run.join(MODEL)).unwrap();
    assert!(kept.contains(&full.display().to_string()), "{kept}");
}

#[test]
fn images_take_defaults_of_their_own_and_the_file_has_the_last_word() {
    let views = |more: &str| {
        let tree = format!("[tree]\nnewick = \"(left,right)z;\"\n{more}");
        let array = |name: &str, shift: usize| Array {
            name: name.into(),
            shape: vec![40, 4, 4],
            values: ArrayValues::Bytes(
                (0..640_usize)
                    .map(|i| ((i * 7 + i / 16 * shift) % 251) as u8)
                    .collect(),
            ),
        };
        let arrays = Content::Arrays(vec![array("left", 3), array("right", 5)]);
        Project::prepare_in_memory(ModelFile::parse(&tree).unwrap(), arrays).unwrap()
    };
    let images = views("");
    let numbers = ModelFile::parse(TREE).unwrap().train_spec(32).unwrap();
    assert!(images.train.noise > 0.0 && numbers.noise == 0.0);
    assert!(images.train.learning_rate < numbers.learning_rate);
    // Who is held out does not depend on it, and the run says what it did.
    let held_out = images.train.split(40).unwrap().held_out;
    assert_eq!(images.held_out, held_out);
    let again = ModelFile::parse(&images.settings).unwrap();
    assert_eq!(
        again.train_spec(32).unwrap().noise,
        images.train.noise,
        "{}",
        images.settings
    );
    let own = views("[train]\nnoise = 0.0\nlearning_rate = 0.5\n").train;
    assert_eq!((own.noise, own.learning_rate), (0.0, 0.5));
}
