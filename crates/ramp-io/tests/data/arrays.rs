//! Arrays as NumPy writes them, whole and in parts.

use ramp_io::array::{Array, ArrayReader, ArrayValues, read_arrays, write_arrays};
use ramp_io::table::{column, columns, open_columns, open_table};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An NPY file as NumPy would write it.
pub fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (text.len() + 11) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.as_bytes());
    file.extend(data);
    file
}

fn file(name: &str, contents: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, contents).unwrap();
    (folder, path)
}

fn numbers(array: &Array) -> &[f32] {
    match &array.values {
        ArrayValues::Numbers(numbers) => numbers,
        ArrayValues::Bytes(_) => panic!("bytes"),
    }
}

fn only(contents: &[u8]) -> Array {
    let (_folder, path) = file("a.npy", contents);
    read_arrays(&path).unwrap().remove(0)
}

fn mistake(path: &Path) -> String {
    let error = read_arrays(path).unwrap_err();
    assert!(matches!(error, ramp_io::Error::Array(_)), "{error:?}");
    error.to_string()
}

#[test]
fn every_type_in_either_byte_order_is_read() {
    let check = |descr: &str, data: &[u8], expected: [f32; 2]| {
        assert_eq!(
            numbers(&only(&npy(descr, false, "(2,)", data))),
            expected,
            "{descr}"
        );
    };
    check("|i1", &[0xff, 5], [-1.0, 5.0]);
    check("|b1", &[0, 1], [0.0, 1.0]);
    macro_rules! both_orders {
        ($($code:literal, $kind:ty, $a:expr, $b:expr;)*) => {$(
            let values: [$kind; 2] = [$a, $b];
            let expected = values.map(|x| x as f32);
            check(concat!("<", $code), &values.map(<$kind>::to_le_bytes).concat(), expected);
            check(concat!(">", $code), &values.map(<$kind>::to_be_bytes).concat(), expected);
        )*};
    }
    both_orders! {
        "i2", i16, -300, 7;
        "u2", u16, 65535, 7;
        "i4", i32, -70000, 7;
        "u4", u32, 4_000_000_000, 7;
        "i8", i64, -5_000_000_000, 7;
        "u8", u64, u64::MAX, 7;
        "f4", f32, 1.5, -2.25;
        "f8", f64, 1.5, -2.25;
    }
    check("<f2", &[0x00, 0x3c, 0x00, 0xc0], [1.0, -2.0]);
    check(">f2", &[0x3c, 0x00, 0xc0, 0x00], [1.0, -2.0]);
    let bytes = only(&npy("|u1", false, "(2, 1)", &[0, 255]));
    assert_eq!(
        (bytes.values, bytes.shape),
        (ArrayValues::Bytes(vec![0, 255].into()), vec![2, 1])
    );
}

#[test]
fn a_single_number_has_no_axes() {
    let one = only(&npy("<f4", false, "()", &2.5_f32.to_le_bytes()));
    assert_eq!((one.shape.len(), numbers(&one)), (0, &[2.5][..]));
}

/// The element at `[i, j, k]` of an array of 4 × 3 × 2 is `100 i + 10 j + k`.
fn cube(fortran: bool) -> Vec<u8> {
    let mut data = Vec::new();
    let mut push = |i: i32, j: i32, k: i32| data.extend((100 * i + 10 * j + k).to_le_bytes());
    if fortran {
        (0..2).for_each(|k| (0..3).for_each(|j| (0..4).for_each(|i| push(i, j, k))));
    } else {
        (0..4).for_each(|i| (0..3).for_each(|j| (0..2).for_each(|k| push(i, j, k))));
    }
    npy("<i4", fortran, "(4, 3, 2)", &data)
}

#[test]
fn parts_of_the_first_axis_are_read_alone_in_either_order() {
    for fortran in [false, true] {
        let (_folder, path) = file("cube.npy", &cube(fortran));
        let mut reader = ArrayReader::open(&path, None).unwrap();
        assert_eq!(
            (reader.name(), reader.shape(), reader.rows()),
            ("cube", &[4, 3, 2][..], 4)
        );
        for rows in [1..3, 0..4, 3..4, 2..2, 0..1] {
            let part = reader.read(rows.clone()).unwrap();
            assert_eq!(part.shape, [rows.len(), 3, 2]);
            let expected: Vec<f32> = rows
                .flat_map(|i| {
                    (0..3).flat_map(move |j| (0..2).map(move |k| (100 * i + 10 * j + k) as f32))
                })
                .collect();
            assert_eq!(numbers(&part), expected);
        }
        let error = reader.read(3..5).unwrap_err().to_string();
        assert!(error.contains("has 4 rows"), "{error}");
    }
}

fn arrays() -> Vec<Array> {
    vec![
        Array {
            name: "steps".into(),
            shape: vec![50, 3, 2],
            values: ArrayValues::Numbers((0..300).map(|i| i as f32 / 7.0).collect()),
        },
        Array {
            name: "pixels".into(),
            shape: vec![50, 4],
            values: ArrayValues::Bytes((0..200).map(|i| i as u8).collect()),
        },
    ]
}

#[test]
fn archives_come_back_stored_and_deflated() {
    let folder = tempfile::tempdir().unwrap();
    for deflate in [false, true] {
        let path = folder.path().join("a.npz");
        write_arrays(&path, &arrays(), deflate).unwrap();
        assert_eq!(read_arrays(&path).unwrap(), arrays());
        // Backwards and forwards.
        let mut steps = ArrayReader::open(&path, Some("steps")).unwrap();
        for rows in [40..50, 0..10, 20..30] {
            let part = steps.read(rows.clone()).unwrap();
            assert_eq!(
                numbers(&part),
                &numbers(&arrays()[0])[6 * rows.start..6 * rows.end]
            );
        }
        let error = ArrayReader::open(&path, Some("pixel"))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("did you mean `pixels`?"), "{error}");
        assert!(ArrayReader::open(&path, None).is_err());
    }
    let path = folder.path().join("one.npy");
    assert!(write_arrays(&path, &arrays(), false).is_err());
    write_arrays(&path, &arrays()[1..], false).unwrap();
    assert_eq!(read_arrays(&path).unwrap()[0].values, arrays()[1].values);
}

#[test]
fn a_flipped_bit_in_an_archive_is_found_by_its_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    write_arrays(&path, &arrays()[1..], false).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes
        .windows(4)
        .position(|window| window == [100, 101, 102, 103])
        .unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(mistake(&path).contains("checksum"));
}

#[test]
fn files_that_promise_too_much_are_refused_without_room_for_it() {
    for shape in [
        "(99999999999999,)",
        "(4294967296, 4294967296, 4294967296)",
        "(18446744073709551615,)",
    ] {
        let (_folder, path) = file("a.npy", &npy("<f8", false, shape, &[0; 16]));
        mistake(&path);
        assert!(open_table(&path).is_err());
    }
    // Nothing at all, but of a width that overflows.
    let nothing = npy(
        "<f8",
        false,
        "(0, 9223372036854775807, 9223372036854775807)",
        &[],
    );
    let (_folder, path) = file("a.npy", &nothing);
    assert_eq!(numbers(&read_arrays(&path).unwrap()[0]), [0.0_f32; 0]);
    let (_folder, path) = file("a.npy", &npy("|O", false, "(3,)", b"cos\nsystem\n"));
    assert!(mistake(&path).contains("Python objects"));
}

#[test]
fn an_archive_made_to_fill_the_memory_is_refused() {
    // Two gigabytes of zeros deflate to two megabytes; here the directory alone says so.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    write_arrays(&path, &arrays()[1..], true).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let directory = bytes
        .windows(4)
        .rposition(|window| window == b"PK\x01\x02")
        .unwrap();
    bytes[directory + 24..directory + 28].copy_from_slice(&0xf000_0000_u32.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    assert!(mistake(&path).contains("times its size"));
}

#[test]
fn arrays_of_one_and_two_axes_are_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let small = |name: &str, shape: &[usize]| Array {
        name: name.into(),
        shape: shape.to_vec(),
        values: ArrayValues::Numbers((0..shape.iter().product()).map(|i| i as f32).collect()),
    };
    write_arrays(
        &path,
        &[
            small("age", &[3]),
            small("x", &[3, 2]),
            small("walk", &[3, 2, 2]),
        ],
        false,
    )
    .unwrap();
    let mut reader = open_table(&path).unwrap();
    let schema = reader.schema();
    let names: Vec<_> = schema.fields().iter().map(|f| f.name()).collect();
    assert_eq!(names, ["age", "x1", "x2", "walk"]);
    assert_eq!(reader.rows_hint(), Some(3));
    let table = reader.next(2).unwrap().unwrap();
    assert_eq!(
        column(&table, "x2").unwrap().numbers(0).unwrap(),
        [1.0, 3.0]
    );
    assert!(
        column(&table, "walk")
            .unwrap()
            .numbers(0)
            .unwrap_err()
            .to_string()
            .contains("[3, 2, 2]")
    );
    let table = reader.next(2).unwrap().unwrap();
    assert_eq!(columns(&table).next().unwrap().numbers(2).unwrap(), [2.0]);
    assert!(reader.next(2).unwrap().is_none());
    let error = open_columns(&path, &["walk".into()])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("array of shape [3, 2, 2]"), "{error}");

    write_arrays(&path, &[small("age", &[3]), small("x", &[4, 2])], false).unwrap();
    let error = open_table(&path).err().unwrap().to_string();
    assert!(error.contains("`x` has 4 rows, but `age` has 3"), "{error}");
}
