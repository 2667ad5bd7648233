//! What every format promises: what is written comes back, whatever it is and in whatever portions.

use proptest::prelude::*;
use ramp_io::arrow::{
    Array, ArrayRef, DataType, Field, Float64Array, Int64Array, RecordBatch, Schema, StringArray,
};
use ramp_io::table::{
    Column, ColumnKind, columns, concat_rows, create_table, is_missing_text, open_columns,
    open_table, table,
};
use std::path::Path;
use std::sync::Arc;

fn any_text() -> impl Strategy<Value = Option<String>> {
    // Anything that does not itself say that it is missing.
    prop::option::weighted(0.8, any::<String>())
        .prop_map(|text| text.filter(|text| !is_missing_text(text)))
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<f64>(),
        2 => (-100_i32..100).prop_map(f64::from),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
    ]
}

fn any_cells(rows: usize) -> impl Strategy<Value = ArrayRef> {
    prop_oneof![
        prop::collection::vec(any_number(), rows)
            .prop_map(|cells| Arc::new(Float64Array::from(cells)) as ArrayRef),
        prop::collection::vec(prop::option::weighted(0.8, any::<i64>()), rows)
            .prop_map(|cells| Arc::new(Int64Array::from(cells)) as ArrayRef),
        prop::collection::vec(any_text(), rows)
            .prop_map(|cells| Arc::new(StringArray::from(cells)) as ArrayRef),
    ]
}

fn any_table() -> impl Strategy<Value = RecordBatch> {
    (1_usize..6, 0_usize..40).prop_flat_map(|(columns, rows)| {
        prop::collection::vec(any_cells(rows), columns).prop_map(|all| {
            let named = all.into_iter().enumerate();
            table(named.map(|(i, cells)| (format!("ä,\"{i}"), cells))).unwrap()
        })
    })
}

fn numbers_only(all: &RecordBatch) -> RecordBatch {
    let numbers = columns(all).map(|column| {
        let cells = match column.kind() {
            ColumnKind::Text => {
                let lengths = column.texts().into_iter();
                let lengths = lengths.map(|text| text.map(|text| text.len() as i64));
                Arc::new(lengths.collect::<Int64Array>()) as ArrayRef
            }
            _ => column.cells.clone(),
        };
        (column.name(), cells)
    });
    table(numbers).unwrap()
}

fn write(path: &Path, table: &RecordBatch, portion: usize) {
    let mut writer = create_table(path, table.schema_ref()).unwrap();
    for from in (0..table.num_rows()).step_by(portion) {
        let count = portion.min(table.num_rows() - from);
        writer.write(&table.slice(from, count)).unwrap();
    }
    writer.finish().unwrap();
}

/// All rows, read in portions.
fn read(path: &Path, portion: usize, wanted: Option<&[String]>) -> RecordBatch {
    let mut reader = match wanted {
        Some(wanted) => open_columns(path, wanted).unwrap(),
        None => open_table(path).unwrap(),
    };
    // A file without rows still has its columns.
    let mut parts = vec![RecordBatch::new_empty(reader.schema())];
    while let Some(table) = reader.next(portion).unwrap() {
        assert!((1..=portion).contains(&table.num_rows()));
        parts.push(table);
    }
    concat_rows(&parts).unwrap()
}

/// The same name and kind, and the same cells: numbers to the last bit, texts to the letter.
fn assert_same(came: Column<'_>, went: Column<'_>) {
    assert_eq!((came.name(), came.kind()), (went.name(), went.kind()));
    assert_eq!(came.missing(), went.missing());
    assert_eq!(came.texts(), went.texts());
    if went.kind() == ColumnKind::Number {
        assert_eq!(bits(came), bits(went));
    }
}

fn bits(column: Column<'_>) -> Vec<u64> {
    let bits = |x: f64| if x.is_nan() { 0 } else { x.to_bits() };
    column.numbers(0).unwrap().into_iter().map(bits).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn parquet_and_arrow_keep_everything(table in any_table(), out in 1_usize..50, back in 1_usize..50) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.arrow"] {
            let path = folder.path().join(name);
            write(&path, &table, out);
            let whole = read(&path, back, None);
            prop_assert_eq!(whole.num_rows(), table.num_rows());
            columns(&whole).zip(columns(&table)).for_each(|(came, went)| assert_same(came, went));
            let mut backwards: Vec<String> = columns(&table).map(|c| c.name().to_owned()).collect();
            backwards.reverse();
            let turned = read(&path, back, Some(&backwards));
            let went: Vec<_> = columns(&table).collect();
            columns(&turned).zip(went.into_iter().rev()).for_each(|(came, went)| assert_same(came, went));
        }
    }

    #[test]
    fn text_files_keep_texts_and_numbers(table in any_table(), out in 1_usize..50, back in 1_usize..50) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.csv", "a.tsv"] {
            let path = folder.path().join(name);
            write(&path, &table, out);
            let whole = read(&path, back, None);
            prop_assert_eq!(whole.num_columns(), table.num_columns());
            for (came, went) in columns(&whole).zip(columns(&table)) {
                prop_assert_eq!(came.name(), went.name());
                prop_assert_eq!(came.texts(), went.texts());
                if went.kind() == ColumnKind::Number {
                    prop_assert_eq!(bits(came), bits(went));
                }
            }
        }
    }

    #[test]
    fn numpy_files_keep_numbers(table in any_table(), out in 1_usize..50, back in 1_usize..50) {
        let folder = tempfile::tempdir().unwrap();
        let table = numbers_only(&table);
        let path = folder.path().join("a.npz");
        write(&path, &table, out);
        let whole = read(&path, back, None);
        let same = |(a, b): (f64, f64)| a == b || (a.is_nan() && b.is_nan());
        for (came, went) in columns(&whole).zip(columns(&table)) {
            prop_assert_eq!(came.name(), went.name());
            // Whole numbers with holes become floating-point numbers.
            if went.kind() == ColumnKind::Integer && went.cells.null_count() > 0 {
                prop_assert_eq!(came.kind(), ColumnKind::Number);
                prop_assert!(came.numbers(0).unwrap().into_iter().zip(went.numbers(0).unwrap()).all(same));
            } else {
                assert_same(came, went);
            }
        }
        let path = folder.path().join("m.npy");
        write(&path, &table, out);
        let whole = read(&path, back, None);
        for (place, (came, went)) in columns(&whole).zip(columns(&table)).enumerate() {
            let name = if table.num_columns() == 1 { "m".into() } else { format!("m{}", place + 1) };
            prop_assert_eq!(came.name(), &name);
            let same = |(a, b): (f64, f64)| same((a, b)) || b == i64::MIN as f64;
            prop_assert!(came.numbers(0).unwrap().into_iter().zip(went.numbers(0).unwrap()).all(same));
        }
    }
}

#[test]
fn texts_do_not_go_into_numpy_files() {
    let folder = tempfile::tempdir().unwrap();
    let text = Schema::new(vec![Field::new("id", DataType::Utf8, true)]);
    let error = create_table(&folder.path().join("a.npz"), &text)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("column `id` is text"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_left_behind_in_any_format() {
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let table = table([("a", whole)]).unwrap();
    for name in ["a.csv", "a.tsv", "a.parquet", "a.arrow", "a.npy", "a.npz"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut writer = create_table(&path, table.schema_ref()).unwrap();
        writer.write(&table).unwrap();
        drop(writer);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "{name}"
        );
        let mut writer = create_table(&path, table.schema_ref()).unwrap();
        writer.write(&table).unwrap();
        writer.finish().unwrap();
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "{name}"
        );
    }
}
