//! Parquet and Arrow files as other programs write them: every type, page layout and compression.

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use ramp_io::arrow::RecordBatch;
use ramp_io::table::{
    ColumnKind, Kind, column, column_kind, columns, open_columns, open_table, summarize,
    unread_kind,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus/good")
        .join(name)
}

fn texts(table: &RecordBatch, name: &str) -> Vec<String> {
    let cells = column(table, name).unwrap().texts();
    cells
        .into_iter()
        .map(|cell| cell.unwrap_or("-".into()))
        .collect()
}

#[test]
fn arrow_files_of_the_official_library_are_read() {
    for name in [
        "official.arrow",
        "official_lz4.feather",
        "official_stream.ipc",
    ] {
        let mut reader = open_table(&corpus(name)).unwrap();
        let schema = reader.schema();
        let kinds: Vec<_> = schema.fields().iter().map(|f| column_kind(f)).collect();
        assert_eq!(unread_kind(schema.field(0)), Some("list"));
        assert_eq!(kinds[1..3], [ColumnKind::Integer, ColumnKind::Integer]);
        assert_eq!(kinds[4], ColumnKind::Number);
        assert!(kinds[5..].iter().all(|kind| *kind == ColumnKind::Text));
        let table = reader.next(3).unwrap().unwrap();
        let rest = reader.next(3).unwrap().unwrap();
        let second = reader.next(3).unwrap().unwrap();
        assert!(reader.next(3).unwrap().is_none());
        assert_eq!(
            (table.num_rows(), rest.num_rows(), second.num_rows()),
            (3, 1, 2)
        );
        // The second batch is the second and third row of the first.
        for column in columns(&second) {
            let first = texts(&table, column.name());
            let second = texts(&second, column.name());
            assert_eq!(second, first[1..], "{name}: {}", column.name());
        }
        let all = |column: &str| [texts(&table, column), texts(&rest, column)].concat();
        for (column, expected) in [
            ("i8", ["-1", "-", "3", "4"]),
            ("u16", ["65535", "1", "2", "3"]),
            ("u64", ["18446744073709551615", "1", "2", "3"]),
            ("f32", ["1.5", "inf", "-", "-0.5"]),
            ("view", ["a longer text than twelve", "short", "-", "-"]),
            ("bool", ["true", "-", "false", "true"]),
            ("color", ["red", "-", "blue", "red"]),
            ("day", ["2024-02-29", "-", "1970-01-01", "1969-12-31"]),
            ("ms", ["2024-02-29", "-", "1970-01-01", "1969-12-31"]),
            (
                "when",
                [
                    "1970-01-01T00:00:01.500Z",
                    "-",
                    "1970-01-01T00:00:00Z",
                    "1969-12-31T23:59:59.999999Z",
                ],
            ),
            ("time", ["01:01:01", "-", "00:00:00", "23:59:59"]),
            ("price", ["123.45", "-", "-0.05", "0.00"]),
            ("large", ["x", "-", "-", "ü"]),
            ("none", ["-", "-", "-", "-"]),
            ("text", ["a", "-", "-", "b c"]),
        ] {
            assert_eq!(all(column), expected, "{name}: {column}");
        }
        let error = open_columns(&corpus(name), &["list".into()])
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("column `list` is of type list"), "{error}");
    }
}

/// Two row groups of three rows with every type, the second cell of each missing.
pub fn write_parquet(
    path: &Path,
    version: WriterVersion,
    compression: Compression,
    dictionary: bool,
) {
    let schema = "message table {
        optional boolean truth;
        optional int32 whole;
        optional int32 small (INTEGER(8, false));
        optional int64 long;
        optional int64 huge (INTEGER(64, false));
        optional float single;
        optional double number;
        optional binary text (STRING);
        optional binary old;
        optional int32 day (DATE);
        optional int64 moment (TIMESTAMP(MICROS, true));
        optional int64 local (TIMESTAMP(NANOS, false));
        optional int32 clock (TIME(MILLIS, true));
        optional int96 legacy;
        optional int32 price (DECIMAL(9, 2));
        optional fixed_len_byte_array(16) wide (DECIMAL(38, 3));
        optional fixed_len_byte_array(16) id (UUID);
        optional fixed_len_byte_array(2) half (FLOAT16);
        required int32 always;
        repeated int32 many;
        optional fixed_len_byte_array(3) raw;
    }";
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(compression)
        .set_dictionary_enabled(dictionary)
        .set_data_page_row_count_limit(2)
        .set_write_batch_size(1);
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        let mut place = 0;
        while let Some(mut column) = group.next_column().unwrap() {
            let some = Some(&[1, 0, 1][..]);
            let fixed = |bytes: &[u8]| FixedLenByteArray::from(bytes.to_vec());
            match column.untyped() {
                ColumnWriter::BoolColumnWriter(w) => w.write_batch(&[true, false], some, None),
                ColumnWriter::Int32ColumnWriter(w) if place == 18 => {
                    w.write_batch(&[1, 2, 3], None, None)
                }
                ColumnWriter::Int32ColumnWriter(w) if place == 19 => {
                    w.write_batch(&[1, 2], Some(&[1, 1, 0, 0]), Some(&[0, 1, 0, 0]))
                }
                ColumnWriter::Int32ColumnWriter(w) => w.write_batch(&[-1, 200], some, None),
                ColumnWriter::Int64ColumnWriter(w) => {
                    w.write_batch(&[-1, 1_500_000_000], some, None)
                }
                ColumnWriter::Int96ColumnWriter(w) => {
                    let day = |day: u32| Int96::from(vec![0, 0, day]);
                    w.write_batch(&[day(2_440_588), day(2_440_589)], some, None)
                }
                ColumnWriter::FloatColumnWriter(w) => {
                    w.write_batch(&[0.5, f32::INFINITY], some, None)
                }
                ColumnWriter::DoubleColumnWriter(w) => w.write_batch(&[0.1, f64::NAN], some, None),
                ColumnWriter::ByteArrayColumnWriter(w) => w.write_batch(
                    &[ByteArray::from("grün"), ByteArray::from(" NA")],
                    some,
                    None,
                ),
                ColumnWriter::FixedLenByteArrayColumnWriter(w) => match place {
                    15 | 16 => {
                        let mut large = [0; 16];
                        large[15] = 5;
                        w.write_batch(&[fixed(&large), fixed(&[0xff; 16])], some, None)
                    }
                    17 => w.write_batch(&[fixed(&[0, 0x3c]), fixed(&[0, 0xc0])], some, None),
                    _ => w.write_batch(&[fixed(b"abc"), fixed(b"def")], some, None),
                },
            }
            .unwrap();
            column.close().unwrap();
            place += 1;
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn parquet_files_of_every_type_and_layout_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(Default::default()),
            Compression::LZ4_RAW,
            Compression::ZSTD(Default::default()),
        ] {
            for dictionary in [false, true] {
                write_parquet(&path, version, compression, dictionary);
                let mut reader = open_table(&path).unwrap();
                assert_eq!(reader.rows_hint(), Some(6));
                let first = reader.next(100).unwrap().unwrap();
                let second = reader.next(100).unwrap().unwrap();
                assert!(reader.next(100).unwrap().is_none());
                assert_eq!(first, second);
                for (column, expected) in [
                    ("truth", ["true", "-", "false"]),
                    ("whole", ["-1", "-", "200"]),
                    ("small", ["255", "-", "200"]),
                    ("long", ["-1", "-", "1500000000"]),
                    ("huge", ["18446744073709551615", "-", "1500000000"]),
                    ("single", ["0.5", "-", "inf"]),
                    ("number", ["0.1", "-", "-"]),
                    ("text", ["grün", "-", "-"]),
                    ("old", ["grün", "-", "-"]),
                    ("day", ["1969-12-31", "-", "1970-07-20"]),
                    (
                        "moment",
                        ["1969-12-31T23:59:59.999999Z", "-", "1970-01-01T00:25:00Z"],
                    ),
                    (
                        "local",
                        [
                            "1969-12-31T23:59:59.999999999",
                            "-",
                            "1970-01-01T00:00:01.500",
                        ],
                    ),
                    (
                        "legacy",
                        ["1970-01-01T00:00:00", "-", "1970-01-02T00:00:00"],
                    ),
                    ("price", ["-0.01", "-", "2.00"]),
                    ("wide", ["0.005", "-", "-0.001"]),
                    (
                        "id",
                        [
                            "00000000-0000-0000-0000-000000000005",
                            "-",
                            "ffffffff-ffff-ffff-ffff-ffffffffffff",
                        ],
                    ),
                    ("half", ["1", "-", "-2"]),
                    ("always", ["1", "2", "3"]),
                ] {
                    assert_eq!(
                        texts(&first, column),
                        expected,
                        "{version:?} {compression:?} {column}"
                    );
                }
                for name in ["many", "raw"] {
                    let column = column(&first, name).unwrap();
                    assert_eq!((column.kind(), column.cells.len()), (ColumnKind::Unread, 3));
                }
            }
        }
    }
    let summary = summarize(open_table(&path).unwrap().as_mut()).unwrap();
    let many = summary.iter().find(|column| column.name == "many").unwrap();
    assert_eq!(many.kind, Kind::Unread("list or struct".into()));
    let error = open_columns(&path, &["many".into()])
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("column `many` is of type list or struct"),
        "{error}"
    );
}
