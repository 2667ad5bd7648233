//! What every target does: write the bytes to a file and read all that can be read of it.

use ramp_io::array::read_arrays;
use ramp_io::table::{columns, open_table, summarize};
use std::path::Path;

/// Reads bytes as a file with this ending; anything but a result is a finding.
pub fn read(ending: &str, bytes: &[u8]) {
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
