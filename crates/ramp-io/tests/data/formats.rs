//! What every format promises: what is written comes back, whatever it is and in whatever portions.

use proptest::prelude::*;
use ramp_io::table::{
    Cells, Column, Table, create_table, is_missing_text, open_columns, open_table,
};
use std::path::Path;

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

fn any_cells(rows: usize) -> impl Strategy<Value = Cells> {
    prop_oneof![
        prop::collection::vec(any_number(), rows).prop_map(Cells::Numbers),
        prop::collection::vec(prop::option::weighted(0.8, any::<i64>()), rows)
            .prop_map(Cells::Integers),
        prop::collection::vec(any_text(), rows).prop_map(Cells::Texts),
    ]
}

fn any_table() -> impl Strategy<Value = Table> {
    (1_usize..6, 0_usize..40).prop_flat_map(|(columns, rows)| {
        prop::collection::vec(any_cells(rows), columns).prop_map(|all| {
            let named = all.into_iter().enumerate();
            let columns = named.map(|(i, cells)| Column::new(format!("ä,\"{i}"), cells));
            Table::new(columns.collect()).unwrap()
        })
    })
}

fn numbers_only(table: &Table) -> Table {
    let columns = table.columns().iter().map(|column| match &column.cells {
        Cells::Texts(cells) => Column::new(
            column.name.clone(),
            Cells::Integers(
                cells
                    .iter()
                    .map(|c| c.as_ref().map(|c| c.len() as i64))
                    .collect(),
            ),
        ),
        _ => column.clone(),
    });
    Table::new(columns.collect()).unwrap()
}

fn rows_of(table: &Table, from: usize, to: usize) -> Table {
    let columns = table.columns().iter().map(|column| {
        let cells = match &column.cells {
            Cells::Numbers(cells) => Cells::Numbers(cells[from..to].to_vec()),
            Cells::Integers(cells) => Cells::Integers(cells[from..to].to_vec()),
            Cells::Texts(cells) => Cells::Texts(cells[from..to].to_vec()),
            unread => unread.clone(),
        };
        Column::new(column.name.clone(), cells)
    });
    Table::new(columns.collect()).unwrap()
}

fn write(path: &Path, table: &Table, portion: usize) {
    let columns: Vec<_> = table
        .columns()
        .iter()
        .map(|column| (column.name.clone(), column.cells.column_type()))
        .collect();
    let mut writer = create_table(path, &columns).unwrap();
    for from in (0..table.rows()).step_by(portion) {
        writer
            .write(&rows_of(table, from, table.rows().min(from + portion)))
            .unwrap();
    }
    writer.finish().unwrap();
}

/// All rows, read in portions.
fn read(path: &Path, portion: usize, wanted: Option<&[String]>) -> Vec<Column> {
    let mut reader = match wanted {
        Some(wanted) => open_columns(path, wanted).unwrap(),
        None => open_table(path).unwrap(),
    };
    let mut columns: Vec<Column> = Vec::new();
    let mut rows = 0;
    while let Some(table) = reader.next(portion).unwrap() {
        assert!((1..=portion).contains(&table.rows()));
        assert_eq!(table.first_row(), rows);
        rows += table.rows();
        if columns.is_empty() {
            columns = table.into_columns();
            continue;
        }
        for (all, more) in columns.iter_mut().zip(table.into_columns()) {
            match (&mut all.cells, more.cells) {
                (Cells::Numbers(all), Cells::Numbers(more)) => all.extend(more),
                (Cells::Integers(all), Cells::Integers(more)) => all.extend(more),
                (Cells::Texts(all), Cells::Texts(more)) => all.extend(more),
                (all, more) => panic!("{all:?} was followed by {more:?}"),
            }
        }
    }
    if columns.is_empty() {
        // A file without rows still has its columns.
        let empty = reader.columns().into_iter().map(|(name, kind)| {
            use ramp_io::table::ColumnType;
            let cells = match kind {
                ColumnType::Number => Cells::Numbers(vec![]),
                ColumnType::Integer => Cells::Integers(vec![]),
                _ => Cells::Texts(vec![]),
            };
            Column::new(name, cells)
        });
        columns = empty.collect();
    }
    columns
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn parquet_and_arrow_keep_everything(table in any_table(), out in 1_usize..50, back in 1_usize..50) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.arrow"] {
            let path = folder.path().join(name);
            write(&path, &table, out);
            prop_assert_eq!(&read(&path, back, None), table.columns());
            let backwards: Vec<String> = table.columns().iter().rev().map(|c| c.name.clone()).collect();
            let columns = read(&path, back, Some(&backwards));
            prop_assert!(columns.iter().eq(table.columns().iter().rev()));
        }
    }

    #[test]
    fn text_files_keep_texts_and_numbers(table in any_table(), out in 1_usize..50, back in 1_usize..50) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.csv", "a.tsv"] {
            let path = folder.path().join(name);
            write(&path, &table, out);
            let columns = read(&path, back, None);
            prop_assert_eq!(columns.len(), table.columns().len());
            for (came, went) in columns.iter().zip(table.columns()) {
                prop_assert_eq!(&came.name, &went.name);
                prop_assert_eq!(came.texts(), went.texts());
                if let Cells::Numbers(numbers) = &went.cells {
                    let bits = |x: &f64| if x.is_nan() { 0 } else { x.to_bits() };
                    let came = came.numbers().unwrap();
                    prop_assert!(came.iter().map(bits).eq(numbers.iter().map(bits)));
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
        for (came, went) in read(&path, back, None).iter().zip(table.columns()) {
            prop_assert_eq!(&came.name, &went.name);
            match &went.cells {
                // Whole numbers with holes become floating-point numbers.
                Cells::Integers(cells) if cells.iter().any(Option::is_none) => {
                    prop_assert_eq!(&came.cells.column_type(), &ramp_io::table::ColumnType::Number);
                    let same = |(a, b): (f64, f64)| a == b || (a.is_nan() && b.is_nan());
                    prop_assert!(came.numbers().unwrap().into_iter().zip(went.numbers().unwrap()).all(same));
                }
                _ => prop_assert_eq!(came, went),
            }
        }
        let path = folder.path().join("m.npy");
        write(&path, &table, out);
        for (place, (came, went)) in read(&path, back, None).iter().zip(table.columns()).enumerate() {
            let name = if table.columns().len() == 1 { "m".into() } else { format!("m{}", place + 1) };
            prop_assert_eq!(&came.name, &name);
            let same = |(a, b): (f64, f64)| a == b || (a.is_nan() && b.is_nan()) || b == i64::MIN as f64;
            prop_assert!(came.numbers().unwrap().into_iter().zip(went.numbers().unwrap()).all(same));
        }
    }
}

#[test]
fn texts_do_not_go_into_numpy_files() {
    let folder = tempfile::tempdir().unwrap();
    let columns = [("id".to_owned(), ramp_io::table::ColumnType::Text)];
    let error = create_table(&folder.path().join("a.npz"), &columns)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("column `id` is text"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_left_behind_in_any_format() {
    let table = Table::new(vec![Column::new("a", Cells::Integers(vec![Some(1), None]))]).unwrap();
    let columns = [("a".to_owned(), table.columns()[0].cells.column_type())];
    for name in ["a.csv", "a.tsv", "a.parquet", "a.arrow", "a.npy", "a.npz"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut writer = create_table(&path, &columns).unwrap();
        writer.write(&table).unwrap();
        drop(writer);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "{name}"
        );
        let mut writer = create_table(&path, &columns).unwrap();
        writer.write(&table).unwrap();
        writer.finish().unwrap();
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "{name}"
        );
    }
}
