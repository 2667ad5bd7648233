//! Files as pandas, polars, pyarrow and DuckDB write them by default: every cell is compared.
//!
//! `tests/fixtures/make.py` wrote them.

use ramp_io::arrow::RecordBatch;
use ramp_io::table::{
    ColumnKind, column, columns, concat_rows, create_table, open_columns, open_table,
};
use std::path::{Path, PathBuf};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    let is_table = |file: &PathBuf| {
        let ending = file.extension().unwrap_or_default().to_string_lossy();
        ["csv", "parquet", "arrow", "feather", "ipc"].contains(&&*ending)
    };
    files.retain(is_table);
    files.sort();
    files
}

/// All rows, read in portions.
fn read(path: &Path, portion: usize) -> RecordBatch {
    let mut reader = open_table(path).unwrap();
    let parts = std::iter::from_fn(|| reader.next(portion).unwrap());
    concat_rows(&parts.collect::<Vec<_>>()).unwrap()
}

fn texts(table: &RecordBatch, name: &str) -> Vec<String> {
    let texts = column(table, name).unwrap().texts();
    texts.into_iter().map(|t| t.unwrap_or("-".into())).collect()
}

/// What every library's table holds; a dash is a missing cell, and the last text is a word for one.
const EXPECTED: [(&str, [&str; 4]); 9] = [
    ("whole", ["1", "-2", "-", "9007199254740993"]),
    ("truth", ["true", "false", "-", "true"]),
    (
        "text",
        [
            "Zürich",
            "a text that is longer than twelve bytes",
            "-",
            "-",
        ],
    ),
    ("level", ["low", "high", "-", "low"]),
    ("day", ["2024-02-29", "1969-12-31", "-", "2100-01-01"]),
    (
        "moment",
        [
            "2024-02-29T13:05:00.250",
            "1969-12-31T23:59:59",
            "-",
            "2100-01-01T00:00:00",
        ],
    ),
    (
        "zoned",
        [
            "2024-06-01T00:30:00Z",
            "1999-12-31T23:00:00Z",
            "-",
            "2024-06-01T00:30:00Z",
        ],
    ),
    ("clock", ["13:05:00", "00:00:01", "-", "23:59:59"]),
    ("price", ["123.45", "-0.05", "-", "0.00"]),
];

fn assert_numbers(table: &RecordBatch, name: &str, expected: [f64; 4], what: &str) {
    let numbers = column(table, name).unwrap().numbers(0).unwrap();
    let bits = |numbers: &[f64]| -> Vec<u64> { numbers.iter().map(|x| x.to_bits()).collect() };
    assert_eq!(bits(&numbers), bits(&expected), "{what}: {name}");
}

#[test]
fn every_library_says_the_same() {
    let files = fixtures();
    for library in ["pandas", "polars", "pyarrow", "duckdb"] {
        let of_library = |file: &&PathBuf| file.to_string_lossy().contains(library);
        let count = files.iter().filter(of_library).count();
        assert!(count >= 2, "{library} wrote {count} files");
    }
    for file in &files {
        let what = file.file_name().unwrap().to_string_lossy().into_owned();
        for portion in [1, 3, 100] {
            let table = read(file, portion);
            assert_eq!(table.num_rows(), 4, "{what}");
            let number = [0.1, -1e300, f64::NAN, 2.5];
            assert_numbers(&table, "number", number, &what);
            assert_numbers(&table, "price", [123.45, -0.05, f64::NAN, 0.0], &what);
            if what.ends_with(".csv") {
                // Texts as each library spells them.
                for name in ["whole", "text", "level", "day", "price"] {
                    let expected = EXPECTED.iter().find(|(column, _)| *column == name);
                    assert_eq!(texts(&table, name), expected.unwrap().1, "{what}: {name}");
                }
                continue;
            }
            for (name, expected) in EXPECTED {
                assert_eq!(texts(&table, name), expected, "{what}: {name}");
            }
            assert_eq!(column(&table, "whole").unwrap().kind(), ColumnKind::Integer);
            assert_eq!(column(&table, "many").unwrap().kind(), ColumnKind::Unread);
            if what.starts_with("pyarrow") {
                for name in ["large", "view"] {
                    assert_eq!(texts(&table, name), EXPECTED[2].1, "{what}: {name}");
                }
                assert_eq!(texts(&table, "small"), ["1", "255", "-", "0"], "{what}");
                assert_numbers(&table, "single", [0.5, -2.0, f64::NAN, 1.5], &what);
            }
        }
    }
}

#[test]
fn nested_columns_get_a_sentence() {
    for file in fixtures() {
        if file.extension().is_some_and(|ending| ending == "csv") {
            continue;
        }
        let error = open_columns(&file, &["many".into()]).err().unwrap();
        let error = error.to_string();
        assert!(
            error.contains("column `many` is of type list") && error.contains("leave it out"),
            "{error}"
        );
    }
}

#[test]
fn what_a_library_wrote_is_copied_in_its_types() {
    let folder = tempfile::tempdir().unwrap();
    for file in fixtures() {
        let wanted: Vec<String> = EXPECTED.iter().map(|(name, _)| (*name).into()).collect();
        let mut reader = open_columns(&file, &wanted).unwrap();
        let rows = reader.next(100).unwrap().unwrap();
        for ending in ["parquet", "arrow", "csv"] {
            let path = folder.path().join("copy").with_extension(ending);
            let mut writer = create_table(&path, &reader.schema()).unwrap();
            writer.write(&rows).unwrap();
            writer.finish().unwrap();
            let copy = read(&path, 100);
            for (went, came) in columns(&rows).zip(columns(&copy)) {
                let what = format!("{} to .{ending}: {}", file.display(), went.name());
                assert_eq!(came.texts(), went.texts(), "{what}");
                if ending == "arrow" {
                    assert_eq!(came.cells.data_type(), went.cells.data_type(), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_a_page_is_found_by_its_checksum() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("tests/fixtures/pyarrow_checksums.parquet");
    let whole = std::fs::read(path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.parquet");
    let zstd = [0x28, 0xb5, 0x2f, 0xfd];
    let pages: Vec<usize> = (0..whole.len() - 4)
        .filter(|&at| whole[at..].starts_with(&zstd))
        .collect();
    assert!(pages.len() > 10, "{}", pages.len());
    let mut by_checksum = 0;
    for at in pages {
        let mut bytes = whole.clone();
        bytes[at + 6] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let outcome = open_table(&path).and_then(|mut reader| reader.next(100));
        // Nested columns are not read, so damage to them is not seen.
        let Err(error) = outcome else { continue };
        by_checksum += usize::from(error.to_string().contains("CRC"));
    }
    assert!(by_checksum > 10, "{by_checksum}");
}
