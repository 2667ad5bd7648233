//! Text tables as people and programs write them.

use ramp_io::arrow::{ArrayRef, Float64Array, RecordBatch};
use ramp_io::table::{column, columns, create_table, open_columns, open_table, table};
use ramp_io::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

fn file(name: &str, contents: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, contents).unwrap();
    (folder, path)
}

fn read(name: &str, contents: impl AsRef<[u8]>) -> Result<Option<RecordBatch>> {
    let (_folder, path) = file(name, contents.as_ref());
    open_table(&path)?.next(1000)
}

/// The cells row by row, `-` for a missing one.
fn rows(name: &str, contents: impl AsRef<[u8]>) -> Vec<Vec<String>> {
    let table = read(name, contents).unwrap().unwrap();
    let columns: Vec<_> = columns(&table).map(|column| column.texts()).collect();
    let cell = |text: &Option<String>| text.clone().unwrap_or("-".into());
    (0..table.num_rows())
        .map(|row| columns.iter().map(|column| cell(&column[row])).collect())
        .collect()
}

fn mistake(name: &str, contents: impl AsRef<[u8]>) -> String {
    let error = read(name, contents).unwrap_err();
    assert!(matches!(error, Error::Table(_)), "{error:?}");
    error.to_string()
}

#[test]
fn every_spelling_of_the_same_table_reads_the_same() {
    let expected = [["1.50", "x"], ["-", "y z"], ["007", "-"]];
    for (name, text) in [
        ("a.csv", "a,b\n1.50,x\n,y z\n007,NA\n"),
        ("a.csv", "\u{feff}a,b\r\n1.50,x\r\nNaN,y z\r\n007,NA\r\n"),
        ("a.csv", "a;b\n1.50;x\n null ;y z\n007;na"),
        (
            "a.csv",
            "\n\n\"a\",\" b \"\n\"1.50\",\"x\"\n \t ,\"y z\"\n\n007,\"nULL\"\n",
        ),
        ("a.txt", "a\tb\n1.50\tx\n\ty z\n007\t\n"),
        ("a.TSV", "a\tb\r1.50\tx\r\ty z\r007\t\r"),
    ] {
        assert_eq!(rows(name, text), expected, "{text:?}");
    }
}

#[test]
fn quotes_hold_separators_newlines_and_quotes() {
    assert_eq!(
        rows("a.csv", "\"a;b\",c\n\"1,5\n2\",\"say \"\"hi\"\"\"\n"),
        [["1,5\n2", "say \"hi\""]]
    );
}

#[test]
fn a_mistake_is_named_with_its_line() {
    for newline in ["\n", "\r\n"] {
        let line = |text: &str| text.replace('\n', newline);
        let ragged = mistake("a.csv", line("a,b\n1,2\n\"3\n\",4\n\n5\n"));
        assert!(ragged.starts_with("line 6 of `"), "{ragged}");
        assert!(
            ragged.ends_with("a.csv` has 1 fields, but the header has 2"),
            "{ragged}"
        );
        let mut bytes = line("a,b\n1,2\n3,").into_bytes();
        bytes.push(0xff);
        let garbled = mistake("a.csv", bytes);
        assert!(
            garbled.starts_with("line 3 of `") && garbled.contains("not UTF-8"),
            "{garbled}"
        );
    }
    // Each half would be fine beside the other.
    let halves = mistake("a.csv", b"a,b,c\n\xc3,\xa9,1\n");
    assert!(
        halves.contains("line 2") && halves.contains("not UTF-8"),
        "{halves}"
    );
}

#[test]
fn headers_that_name_no_columns_are_refused() {
    assert!(mistake("a.csv", "").contains("is empty"));
    assert!(mistake("a.csv", "\u{feff}\r\n \n").contains("is empty"));
    assert!(mistake("a.csv", "a,,b\n").contains("column 2 of"));
    let twice = mistake("a.csv", "a,b,a,c,b\n");
    assert!(
        twice.contains("more than one column named `a`, `b`"),
        "{twice}"
    );
    assert!(mistake("a.csv", b"\xff\xfea\0,\0b\0").contains("UTF-16"));
    assert!(mistake("a.xlsx", "").contains("must end in .csv"));
    assert!(read("a.csv", "a,b\n").unwrap().is_none());
}

#[test]
fn a_cell_that_is_no_number_is_named_with_its_row() {
    let (_folder, path) = file("a.csv", b"a,b\n1,2\n3,4\n5,\"6,5\"\n7,old\n");
    let mut reader = open_columns(&path, &["b".into()]).unwrap();
    let first = reader.next(2).unwrap().unwrap();
    assert!(column(&first, "b").unwrap().numbers(0).is_ok());
    let error = |rows: RecordBatch, first_row: usize| {
        let numbers = column(&rows, "b").unwrap().numbers(first_row);
        numbers.unwrap_err().to_string()
    };
    let comma = error(reader.next(1).unwrap().unwrap(), 2);
    assert!(
        comma.contains("`b` holds `6,5` in data row 3") && comma.contains("a point"),
        "{comma}"
    );
    let word = error(reader.next(1).unwrap().unwrap(), 3);
    assert!(word.contains("`old` in data row 4"), "{word}");
}

#[test]
fn wanted_columns_come_in_the_wanted_order() {
    let (_folder, path) = file("a.csv", b"a,b,c\n1,2,3\n");
    let table = open_columns(&path, &["c".into(), "a".into()])
        .unwrap()
        .next(9)
        .unwrap()
        .unwrap();
    let names: Vec<_> = columns(&table).map(|column| column.name()).collect();
    assert_eq!(names, ["c", "a"]);
    assert_eq!(column(&table, "c").unwrap().texts(), [Some("3".to_owned())]);
    let say = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        open_columns(&path, &wanted).err().unwrap().to_string()
    };
    assert!(say(&["d"]).contains("there is no column `d` in"));
    assert!(say(&["a", "a"]).contains("asked for twice"));
    assert!(say(&[]).contains("at least one"));
}

#[test]
fn an_open_quote_does_not_take_the_file_into_memory() {
    let mut text = b"a,b\n1,\"2\n".to_vec();
    text.resize(70 << 20, b'x');
    let error = mistake("a.csv", text);
    assert!(
        error.contains("line 2") && error.contains("a quote that is not closed"),
        "{error}"
    );
}

#[test]
fn ten_thousand_columns_are_no_effort() {
    let names: Vec<String> = (0..10_000).map(|i| format!("column{i}")).collect();
    let row = vec!["1.5"; 10_000].join(",");
    let text = format!("{}\n{}", names.join(","), format!("{row}\n").repeat(20));
    let (_folder, path) = file("a.csv", text.as_bytes());
    let table = open_columns(&path, &names)
        .unwrap()
        .next(1000)
        .unwrap()
        .unwrap();
    assert_eq!((table.num_rows(), table.num_columns()), (20, 10_000));
}

#[test]
fn a_copy_is_the_same_to_the_letter() {
    let text = "id,name\n007,NA\n 1.50,\"a,\"\"b\"\"\"\n,nan\n";
    let (folder, path) = file("a.csv", text.as_bytes());
    let copy = folder.path().join("new/copy.csv");
    let mut reader = open_table(&path).unwrap();
    let mut writer = create_table(&copy, &reader.schema()).unwrap();
    while let Some(table) = reader.next(2).unwrap() {
        writer.write(&table).unwrap();
    }
    assert!(!copy.exists());
    writer.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), text);
}

#[test]
fn what_is_not_finished_leaves_no_trace() {
    let (folder, path) = file("a.csv", b"old");
    let numbers = |name: &str, numbers: Vec<f64>| {
        let numbers: ArrayRef = Arc::new(Float64Array::from(numbers));
        table([(name, numbers)]).unwrap()
    };
    let table = numbers("a", vec![1e300, -0.0, f64::NAN, 0.1, f64::INFINITY]);
    let mut writer = create_table(&path, table.schema_ref()).unwrap();
    writer.write(&table).unwrap();
    drop(writer);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    let mut writer = create_table(&path, table.schema_ref()).unwrap();
    writer.write(&table).unwrap();
    let other = numbers("b", vec![]);
    assert!(
        writer
            .write(&other)
            .unwrap_err()
            .to_string()
            .contains("begun with a column `a`")
    );
    writer.finish().unwrap();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "a\n1e300\n-0\n\"\"\n0.1\ninf\n"
    );
}
