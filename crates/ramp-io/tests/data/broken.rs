//! Broken files of every kind: a sentence that names the file, or a table, and never anything worse.
//!
//! `tests/corpus/broken` holds files that must be refused; each of them and of `tests/corpus/good` is also a seed for fuzzing.

use crate::foreign::write_parquet;
use parquet::basic::Compression;
use parquet::file::properties::WriterVersion;
use ramp_io::array::{Array, ArrayValues, read_arrays, write_arrays};
use ramp_io::arrow::{ArrayRef, Float64Array, Int64Array, StringArray};
use ramp_io::table::{columns, create_table, open_table, table};
use ramp_io::{Error, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads all that can be read of a file, up to some number of rows: a few bytes may well stand for many.
fn exercise(path: &Path) -> Result<()> {
    let mut reader = open_table(path)?;
    let mut rows = 0;
    while let Some(table) = reader.next(7)? {
        rows += table.num_rows();
        for column in columns(&table) {
            assert_eq!(column.texts().len(), table.num_rows());
            assert_eq!(column.missing().len(), table.num_rows());
            // Texts are not numbers; that is no fault of the file.
            let _ = column.numbers(0);
        }
        if rows > 2000 {
            break;
        }
    }
    if path
        .extension()
        .is_some_and(|ending| ending == "npy" || ending == "npz")
    {
        read_arrays(path)?;
    }
    Ok(())
}

/// What is said about a file, if anything: always about this file, in one line.
fn verdict(path: &Path) -> Option<String> {
    let error = exercise(path).err()?;
    assert!(
        matches!(error, Error::Table(_) | Error::Array(_)),
        "{}: {error:?}",
        path.display()
    );
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert!(!text.contains('\n') && text.len() < 500, "{text}");
    Some(text)
}

fn corpus(part: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(part);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn every_broken_file_gets_its_sentence() {
    let files = corpus("broken");
    for ending in [
        "csv", "tsv", "txt", "parquet", "arrow", "feather", "ipc", "npy", "npz",
    ] {
        let of_kind = |file: &&PathBuf| file.extension().is_some_and(|found| found == ending);
        assert!(
            files.iter().any(|file| of_kind(&file)),
            "no broken .{ending}"
        );
    }
    for file in files {
        let verdict = verdict(&file);
        assert!(verdict.is_some(), "{} was read", file.display());
        println!("{}", verdict.unwrap_or_default());
    }
}

#[test]
fn every_good_file_is_read() {
    for file in corpus("good") {
        assert_eq!(verdict(&file), None);
    }
}

/// Valid files of every kind to break.
fn specimens(folder: &Path) -> Vec<PathBuf> {
    let rows = 60;
    let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values(
        (0..rows).map(|i| f64::from(i) / 3.0),
    ));
    let integers: ArrayRef = Arc::new(
        (0..rows)
            .map(|i| (i % 7 > 0).then_some(i64::from(i)))
            .collect::<Int64Array>(),
    );
    let texts: ArrayRef = Arc::new(
        (0..rows)
            .map(|i| (i % 5 > 0).then(|| format!("\"{i}\",\nä")))
            .collect::<StringArray>(),
    );
    let mut files = Vec::new();
    for ending in ["csv", "tsv", "parquet", "arrow", "npy", "npz"] {
        let mut columns = vec![("n", numbers.clone()), ("i", integers.clone())];
        if !ending.starts_with("np") {
            columns.push(("t", texts.clone()));
        }
        let table = table(columns).unwrap();
        let path = folder.join(format!("a.{ending}"));
        let mut writer = create_table(&path, table.schema_ref()).unwrap();
        writer.write(&table).unwrap();
        writer.finish().unwrap();
        files.push(path);
    }
    let path = folder.join("deflated.npz");
    let values = ArrayValues::Bytes((0..240).map(|i| i as u8 / 9).collect());
    let shape = vec![60, 4];
    write_arrays(
        &path,
        &[Array {
            name: "x".into(),
            shape,
            values,
        }],
        true,
    )
    .unwrap();
    files.push(path);
    for (name, version, compression, dictionary) in [
        (
            "plain",
            WriterVersion::PARQUET_1_0,
            Compression::UNCOMPRESSED,
            false,
        ),
        (
            "snappy",
            WriterVersion::PARQUET_1_0,
            Compression::SNAPPY,
            true,
        ),
        (
            "delta",
            WriterVersion::PARQUET_2_0,
            Compression::UNCOMPRESSED,
            false,
        ),
        (
            "gzip",
            WriterVersion::PARQUET_2_0,
            Compression::GZIP(Default::default()),
            true,
        ),
        (
            "lz4",
            WriterVersion::PARQUET_2_0,
            Compression::LZ4_RAW,
            false,
        ),
    ] {
        let path = folder.join(format!("{name}.parquet"));
        write_parquet(&path, version, compression, dictionary);
        files.push(path);
    }
    files.extend(corpus("good"));
    files
}

/// An Arrow file of one packed column of zeros.
fn packed_arrow(path: &Path) -> Vec<u8> {
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 8000]));
    let table = table([("zeros", zeros)]).unwrap();
    let options = arrow_ipc::writer::IpcWriteOptions::default();
    let options = options.try_with_compression(Some(arrow_ipc::CompressionType::LZ4_FRAME));
    let file = std::fs::File::create(path).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new_with_options(
        file,
        table.schema_ref(),
        options.unwrap(),
    )
    .unwrap();
    writer.write(&table).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn a_packed_arrow_file_made_to_fill_the_memory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.arrow");
    let mut bytes = packed_arrow(&path);
    assert_eq!(verdict(&path), None);
    let size = 64_000_u64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == size).unwrap();
    bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let said = verdict(&path).unwrap();
    assert!(said.contains("more than 200 times its size"), "{said}");
}

#[test]
fn few_bytes_that_stand_for_very_long_texts_are_refused() {
    use arrow_array::{DictionaryArray, Int32Array};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let texts = StringArray::from(vec!["x".repeat(100_000)]);
    let keys = Int32Array::from(vec![0; 12_000]);
    let texts: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(texts)));
    let table = table([("t", texts)]).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, table.schema(), None).unwrap();
    writer.write(&table).unwrap();
    writer.close().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20);
    let said = verdict(&path).unwrap();
    assert!(said.contains("longer than can be read at once"), "{said}");
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    match rng.random_range(0..10) {
        0 => bytes.truncate(rng.random_range(0..bytes.len())),
        1 => {
            let from = rng.random_range(0..bytes.len());
            let to = (from + rng.random_range(1..50)).min(bytes.len());
            bytes.drain(from..to);
        }
        2 => {
            let at = rng.random_range(0..bytes.len());
            let piece = bytes[at..(at + 20).min(bytes.len())].to_vec();
            let to = rng.random_range(0..bytes.len());
            bytes.splice(to..to, piece);
        }
        _ => {
            for _ in 0..rng.random_range(1..9) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = match rng.random_range(0..4) {
                    0 => bytes[at] ^ 1 << rng.random_range(0..8),
                    1 => [0, 1, 0x7f, 0x80, 0xff][rng.random_range(0..5)],
                    _ => rng.random(),
                };
            }
        }
    }
}

#[test]
fn random_damage_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let broken = tempfile::tempdir().unwrap();
    // More with RAMP_MUTATIONS set, to search by hand.
    let count = std::env::var("RAMP_MUTATIONS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(300);
    for (seed, file) in specimens(folder.path()).into_iter().enumerate() {
        assert_eq!(verdict(&file), None);
        let whole = std::fs::read(&file).unwrap();
        let path = broken.path().join(file.file_name().unwrap());
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let mut refused = 0;
        for _ in 0..count {
            let mut bytes = whole.clone();
            mutate(&mut bytes, &mut rng);
            std::fs::write(&path, &bytes).unwrap();
            refused += usize::from(verdict(&path).is_some());
        }
        assert!(refused > 0, "no damage to {} was noticed", file.display());
    }
}
