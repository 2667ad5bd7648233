//! What every target does: write the bytes to a file and read all that can be read of it.

pub mod checkpoint;
mod edits;
pub mod run;

use ramp_io::array::read_arrays;
use ramp_io::model_file::Chain;
use ramp_io::source::SampleReader;
use ramp_io::table::{columns, open_table, summarize};
use std::path::Path;

/// A panic ends the fuzzer before it unwinds, also where the software would catch it and say a sentence: parsers of others stand behind such a fence.
fn respect_the_fence() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let end = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !ramp_io::table::is_guarded() {
                end(panic);
            }
        }));
    });
}

/// Reads bytes as a file with this ending; anything but a result is a finding.
pub fn read(ending: &str, bytes: &[u8]) {
    respect_the_fence();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(format!("input.{ending}"));
    std::fs::write(&path, bytes).expect("a temporary file");
    read_table(&path);
    if ending.starts_with("np") {
        let _ = read_arrays(&path);
    }
}

/// Some rows one by one, then all at once.
fn read_table(path: &Path) {
    if let Ok(mut reader) = open_table(path) {
        for _ in 0..100 {
            match reader.next(3) {
                Ok(Some(table)) => columns(&table).for_each(|column| {
                    assert_eq!(column.texts().len(), table.num_rows());
                    assert_eq!(column.missing().len(), table.num_rows());
                    let _ = column.numbers(0);
                }),
                _ => break,
            }
        }
        // A few bytes may rightly stand for very many rows.
        if reader.rows_hint().is_none_or(|rows| rows < 100_000) {
            let _ = open_table(path).and_then(|mut reader| summarize(reader.as_mut()));
        }
    }
}

/// Reads bytes as a file of weights, then as one whose checksum is right.
pub fn read_weights(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.safetensors");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = ramp::storage::read_tensors(&path).map(|stored| stored.map(|stored| stored.arrays()));
    let _ = ramp::model::Model::load(&path);
    let text = String::from_utf8_lossy(bytes);
    ramp::storage::write_tensors(&path, vec![], &text).expect("a file");
    let _ = ramp::model::Model::load(&path);
}

/// Reads bytes as an Arrow table, row by row and as sequences.
pub fn read_samples(bytes: &[u8]) {
    respect_the_fence();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("input.arrow");
    std::fs::write(&path, bytes).expect("a temporary file");
    let names: Vec<String> = match open_table(&path) {
        Ok(reader) if reader.rows_hint().is_none_or(|rows| rows < 100_000) => {
            let schema = reader.schema();
            schema.fields().iter().map(|f| f.name().clone()).collect()
        }
        _ => return,
    };
    let chain = Chain {
        sequence: names.first().cloned(),
        time: names.get(1).cloned(),
        step: (bytes.len() % 2 == 0).then(|| 1.0.into()),
        window: (bytes.len() % 3 == 0).then_some(4),
        season: None,
        observe: names.iter().skip(2).cloned().collect(),
    };
    for chain in [None, Some(&chain)] {
        if let Ok(mut reader) = SampleReader::open(&path, chain, None) {
            while let Ok(Some(samples)) = reader.next(50) {
                let _ = samples.select(&[0]);
            }
        }
    }
}
