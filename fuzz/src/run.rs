//! Run folders: a right one is made once, and then edited.

use crate::edits;
use ramp::storage::{Numbers, checksum, read_tensors, write_tensors};
use ramp_io::run::{Intent, RunFolder};
use ramp_io::stream::OutputOptions;
use ramp_io::{ModelFile, Project, Run};
use std::path::Path;
use std::sync::OnceLock;

const ROWS: &str =
    "a,b,word\n1,2,x\n2,1,y\n3,5,x\n4,3,y\n5,4,z\n6,6,x\n,7,y\n8,,z\n9,9,x\n10,10,\n";

/// The folder of a right run, with its data beside it.
fn right() -> &'static Path {
    static RIGHT: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = RIGHT.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data.csv");
        std::fs::write(&data, ROWS).expect("a temporary file");
        let mut file = ModelFile::parse(
            "[tree]\nnewick = \"(a,b,word)z;\"\n[networks]\nmessage = { hidden = [2] }\nobservation = { hidden = [2] }\n",
        )
        .expect("a model file");
        file.data.file = Some(data);
        let project = Project::prepare(file).expect("a project");
        let run = folder.path().join("run");
        let place = RunFolder::claim(&run, Intent::New, &[]).expect("a folder");
        place.finish(&project, "").expect("a run");
        folder
    });
    folder.path()
}

fn answer(run: &Path, data: &Path) {
    let Ok(run) = Run::open(run) else { return };
    if let Ok(reader) = run.read(data, false) {
        run.infer(reader, OutputOptions::default()).for_each(drop);
    }
    if let Ok(reader) = run.read(data, true)
        && let Ok(filled) = run.impute(reader, None)
    {
        filled.for_each(drop);
    }
}

/// Opens the run after its header and its support set were edited.
pub fn open_edited(input: &[u8]) {
    let Some((&what, input)) = input.split_first() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (from, to) = (right().join("run"), folder.path());
    let stored = read_tensors(&from.join("weights.safetensors"));
    let stored = stored.expect("weights").expect("weights");
    let text = stored.text.clone();
    let arrays = stored.arrays().expect("arrays");
    let support = std::fs::read(from.join("support.csv")).expect("support");
    let (text, support) = match what % 2 {
        0 => (edits::apply(text.as_bytes(), input), support),
        _ => (text.into_bytes(), edits::apply(&support, input)),
    };
    let text = String::from_utf8_lossy(&text);
    let single = arrays
        .single
        .iter()
        .map(|(n, x)| (n.clone(), vec![x.len()], Numbers::from(&x[..])));
    let double = arrays
        .double
        .iter()
        .map(|(n, x)| (n.clone(), vec![x.len()], Numbers::from(&x[..])));
    let weights = to.join("weights.safetensors");
    write_tensors(&weights, single.chain(double).collect(), &text).expect("weights");
    std::fs::write(to.join("support.csv"), support).expect("support");
    let sums = ["weights.safetensors", "support.csv"].map(|name| {
        let (sum, bytes) = checksum(&to.join(name)).expect("a checksum");
        format!(r#""{name}":{{"bytes":{bytes},"sha256":"{sum}"}}"#)
    });
    let manifest = format!(
        r#"{{"version":3,"software":"fuzz","finished":true,"files":{{{}}}}}"#,
        sums.join(",")
    );
    std::fs::write(to.join("run.json"), manifest).expect("a manifest");
    answer(to, &right().join("data.csv"));
}

/// Opens and claims a folder whose list of files is any bytes.
pub fn open_with_manifest(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run");
    std::fs::create_dir(&run).expect("a folder");
    std::fs::write(folder.path().join("victim"), "mine").expect("a file");
    for name in ["weights.safetensors", "support.csv"] {
        std::fs::copy(right().join("run").join(name), run.join(name)).expect("a file");
    }
    std::fs::write(run.join("run.json"), bytes).expect("a manifest");
    answer(&run, &right().join("data.csv"));
    for intent in [Intent::New, Intent::Resume, Intent::Overwrite] {
        let _ = RunFolder::claim(&run, intent, &[]);
    }
    assert!(folder.path().join("victim").exists());
}
