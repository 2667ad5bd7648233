//! `ramp infer RUN -` stands in a pipeline: Arrow streams in and out, the numbers of a file, and memory that does not grow.

mod scene;

use ramp_io::arrow::RecordBatch;
use ramp_io::table::{concat_rows, read_stream, write_stream};
use scene::{CHAIN, Scene, long_table, model, names, said, table};
use std::io::{Read, Write};
use std::process::{Output, Stdio};

/// A table as an Arrow stream, so often.
fn stream_of(scene: &Scene, rows: &RecordBatch, times: usize) -> Vec<u8> {
    let file = std::fs::File::create(scene.path("stream")).unwrap();
    let mut writer = write_stream("a pipe".as_ref(), file, rows.schema_ref()).unwrap();
    for _ in 0..times {
        writer.write(rows).unwrap();
    }
    writer.finish().unwrap();
    let bytes = scene.read("stream");
    std::fs::remove_file(scene.path("stream")).unwrap();
    bytes
}

/// The rows of an Arrow stream.
fn rows_of(stream: Vec<u8>) -> RecordBatch {
    let mut reader = read_stream("a pipe".as_ref(), std::io::Cursor::new(stream)).unwrap();
    let parts: Vec<_> = std::iter::from_fn(|| reader.next(1 << 20).unwrap()).collect();
    concat_rows(&parts).unwrap()
}

/// Runs a command with this on its standard input.
fn piped(scene: &Scene, words: &[&str], input: Vec<u8>) -> Output {
    let mut child = scene
        .command()
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = std::thread::spawn(move || {
        // A command that has seen enough closes its end.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    output
}

#[test]
fn a_stream_gives_the_numbers_of_a_file() {
    let scene = Scene::with_run();
    let data = scene.table("data.csv");
    for command in ["infer", "score"] {
        scene.does(&[command, "run", "--data", "data.csv", "--out", "o.arrow"]);
        let output = piped(&scene, &[command, "run", "-"], stream_of(&scene, &data, 1));
        assert!(output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("wrote 60 rows to standard output"));
        // A stream does not know that these are the rows of the fit, so it has no last column that says which were learned from.
        let file = scene.table("o.arrow");
        let numbers: Vec<usize> = (0..file.num_columns() - 1).collect();
        assert_eq!(names(&file).last(), Some(&"split"));
        let file = file.project(&numbers).unwrap();
        assert_eq!(rows_of(output.stdout), file, "{command}");
    }
    // One side alone, columns that are kept, and filled gaps.
    let words = ["impute", "run", "--data", "-", "--out", "filled.csv"];
    assert!(
        piped(&scene, &words, stream_of(&scene, &data, 1))
            .status
            .success()
    );
    scene.does(&["impute", "run", "--data", "data.csv", "--out", "same.csv"]);
    assert_eq!(scene.text("filled.csv"), scene.text("same.csv"));
    let output = scene.run(&["infer", "run", "--out", "-", "--keep", "a"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(rows_of(output.stdout).schema().field(0).name(), "a");
    // Files have their messages in the same order.
    scene.store("data.arrow", &data);
    let output = piped(&scene, &["infer", "run", "-"], scene.read("data.arrow"));
    assert_eq!(
        rows_of(output.stdout.clone()).num_rows(),
        60,
        "{}",
        said(&output)
    );
}

#[test]
fn sequences_come_together_in_a_stream() {
    let scene = Scene::new();
    scene.write("data.csv", long_table(20));
    scene.write("model.toml", model("data.csv", CHAIN));
    scene.does(&["fit", "model.toml", "--out", "run"]);
    scene.does(&["infer", "run", "--out", "o.arrow"]);
    let stream = stream_of(&scene, &scene.table("data.csv"), 1);
    let output = piped(&scene, &["infer", "run", "-"], stream);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(rows_of(output.stdout), scene.table("o.arrow"));
    // The same people once more, far from their first rows: that cannot be done in constant memory.
    let twice = stream_of(&scene, &scene.table("data.csv"), 2);
    let output = piped(&scene, &["infer", "run", "-"], twice);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(!said(&output).contains("panicked"));
}

#[test]
fn a_stream_that_is_none_gets_a_sentence() {
    let scene = Scene::with_run();
    let whole = stream_of(&scene, &scene.table("data.csv"), 3);
    let cut = whole[..whole.len() * 2 / 3].to_vec();
    // A batch that claims more than there is memory for.
    let mut huge = whole.clone();
    let batch = huge
        .windows(8)
        .rposition(|w| w[..4] == [255; 4] && w[4..] != [0; 4])
        .unwrap();
    huge.truncate(batch);
    huge.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    let cases = [
        (b"a,b\n1,2\n".to_vec(), "not an Arrow"),
        (vec![], "not an Arrow"),
        (cut, "cut off"),
        (huge, "damaged"),
    ];
    for (input, words) in cases {
        let output = piped(&scene, &["infer", "run", "-"], input);
        let error = said(&output);
        assert_eq!(output.status.code(), Some(2), "{words}: {error}");
        assert!(
            error.contains("standard input") && error.lines().count() == 1,
            "{words}: {error}"
        );
        assert!(error.contains(words), "{words}: {error}");
    }
    let both = scene.run(&["infer", "run", "-", "--out", "o.csv"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn whoever_reads_may_stop() {
    let scene = Scene::with_run();
    let data = scene.table("data.csv");
    let mut child = scene
        .command()
        .args(["infer", "run", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = stream_of(&scene, &data, 2000);
    let mut stdin = child.stdin.take().unwrap();
    let feed = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let mut some = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(said(&output), "");
}

/// The most memory that a child took, in megabytes.
#[cfg(target_os = "linux")]
fn peak(scene: &Scene, input: Vec<u8>) -> f64 {
    scene.write("input", input);
    let mut child = scene
        .command()
        .args(["infer", "run", "-", "--threads", "1"])
        .stdin(std::fs::File::open(scene.path("input")).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Its own count of the most it had, as long as it can be asked.
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0.0_f64;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM"));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        most = most.max(number.unwrap_or(0.0) / 1024.0);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    most
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_stream() {
    let scene = Scene::with_run();
    scene.write("more.csv", table(20_000));
    let data = scene.table("more.csv");
    let few = peak(&scene, stream_of(&scene, &data, 1));
    // Some 25 MB of numbers.
    let many = peak(&scene, stream_of(&scene, &data, 20));
    assert!(many < few + 5.0, "{few} MB, then {many} MB");
}
