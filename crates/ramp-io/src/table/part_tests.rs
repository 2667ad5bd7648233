//! The parts of a table, one behind the other, are the table.

use super::{concat_rows, create_table, find_part, open_part, open_table};
use crate::arrow::RecordBatch;
use ramp::collective::{Collective, Threads};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;

fn read(mut reader: Box<dyn super::TableReader>) -> RecordBatch {
    let mut all = vec![RecordBatch::new_empty(reader.schema())];
    while let Some(rows) = reader.next(7).unwrap() {
        all.push(rows);
    }
    concat_rows(&all).unwrap()
}

/// Reads a file by so many ranks, and all of it by one.
fn compare(path: &Path, ranks: usize) -> Vec<usize> {
    let whole = read(open_table(path).unwrap());
    let parts: Vec<RecordBatch> = std::thread::scope(|scope| {
        let all: Vec<_> = Threads::group(ranks)
            .into_iter()
            .map(|own| {
                scope.spawn(move || {
                    assert!(own.rank() < ranks);
                    let place = find_part(path, &own).unwrap();
                    read(open_part(path, &place, None).unwrap())
                })
            })
            .collect();
        all.into_iter().map(|part| part.join().unwrap()).collect()
    });
    assert_eq!(concat_rows(&parts).unwrap(), whole, "{path:?} by {ranks}");
    parts.iter().map(RecordBatch::num_rows).collect()
}

/// Cells with quotes, line ends, separators and blank lines wherever they may stand.
fn strange(rng: &mut ChaCha8Rng, rows: usize, strangeness: f64) -> String {
    let plain = ["1.5", "-2", "word", "", "a b", "5\" nail", "it\"s"];
    let quoted = [
        "\"\"",
        "\"a,b\"",
        "\"two\nlines\"",
        "\"\"\"\"",
        "\"a\"\"b\r\n,c\"",
        "\"x\"y",
    ];
    let mut text = String::from("a,b,c");
    for row in 0..rows {
        text += ["\n", "\r\n", "\n\n", "\r"][rng.random_range(0..4)];
        let cell = |rng: &mut ChaCha8Rng| match rng.random_bool(strangeness) {
            true => quoted[rng.random_range(0..quoted.len())],
            false => plain[rng.random_range(0..plain.len())],
        };
        // A row of empty cells alone is no row.
        text += &format!("x{row},{},{}", cell(rng), cell(rng));
    }
    text
}

#[test]
fn bytes_of_texts_are_cut_where_rows_begin() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for case in 0..60 {
        let path = folder.path().join(format!("{case}.csv"));
        let rows = [1, 3, 40, 200][case % 4];
        let text = strange(&mut rng, rows, [0.0, 0.05, 0.5][case % 3]);
        std::fs::write(&path, text).unwrap();
        for ranks in [2, 3, 5, 16] {
            compare(&path, ranks);
        }
    }
    // A quote that opens in one part and closes in another.
    let path = folder.path().join("long.csv");
    let long = format!("a,b\n1,\"{}\"\n2,3\n", "x\ny,\"\"z\n".repeat(300));
    std::fs::write(&path, long).unwrap();
    for ranks in 2..9 {
        compare(&path, ranks);
    }
    // Parts are about equal.
    let path = folder.path().join("even.csv");
    let rows: String = (0..10_000).map(|i| format!("{i},{}\n", i % 7)).collect();
    std::fs::write(&path, format!("a,b\n{rows}")).unwrap();
    let counts = compare(&path, 4);
    assert!(
        counts.iter().all(|rows| (2_300..2_900).contains(rows)),
        "{counts:?}"
    );
}

#[test]
fn rows_of_other_formats_are_cut_evenly() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("table.csv");
    let rows: String = (0..1_000).map(|i| format!("{i},word{}\n", i % 7)).collect();
    std::fs::write(&text, format!("a,b\n{rows}")).unwrap();
    for name in ["table.parquet", "table.arrow"] {
        let path = folder.path().join(name);
        let mut reader = open_table(&text).unwrap();
        let mut writer = create_table(&path, &reader.schema()).unwrap();
        // Several batches, which ranks share.
        while let Some(rows) = reader.next(90).unwrap() {
            writer.write(&rows).unwrap();
        }
        writer.finish().unwrap();
        for ranks in [2, 3, 7] {
            let counts = compare(&path, ranks);
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{name}: {counts:?}");
        }
    }
    std::fs::write(folder.path().join("one.csv"), "a,b\n1,2\n").unwrap();
    assert_eq!(
        compare(&folder.path().join("one.csv"), 3)
            .iter()
            .sum::<usize>(),
        1
    );
}
