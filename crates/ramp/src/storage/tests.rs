//! Files under way and arrays under their checksum.

use super::*;
use std::fs;
use std::io::Write;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_takes_its_place_when_it_is_whole_and_leaves_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    write_atomically(&path, b"old").unwrap();
    let mut file = PendingFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()).len(), 2);
    drop(file);
    assert_eq!(names(folder.path()), ["a.txt"]);
    // A name as long as the system allows is none too long for what is beside it.
    let long = folder.path().join("x".repeat(250));
    write_atomically(&long, b"long").unwrap();
    assert_eq!(fs::read(&long).unwrap(), b"long");
}

#[test]
fn leftovers_go_and_files_under_way_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (path, at) = (folder.path().join("a.txt"), folder.path());
    let mut file = PendingFile::create(&path).unwrap();
    // As a killed process leaves it: no lock, and a name like those that are made today.
    let under_way = names(at)[0].clone();
    let mut digits: Vec<u8> = under_way.clone().into_bytes();
    digits[10] = if digits[10] == b'0' { b'1' } else { b'0' };
    fs::write(at.join(String::from_utf8(digits).unwrap()), "left").unwrap();
    for other in [".ramp-notes.tmp", "ramp.tmp", ".ramp-.tmp"] {
        fs::write(at.join(other), "a user's").unwrap();
    }
    assert_eq!(names(at).len(), 5);
    remove_leftovers(at);
    assert_eq!(names(at).len(), 4);
    file.write_all(b"whole").unwrap();
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    assert_eq!(
        names(at),
        [".ramp-.tmp", ".ramp-notes.tmp", "a.txt", "ramp.tmp"]
    );
}

#[cfg(unix)]
#[test]
fn what_is_replaced_hands_on_its_permissions_and_links_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("a.txt"), folder.path().join("link.txt"));
    for mode in [0o600, 0o640, 0o444] {
        write_atomically(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        write_atomically(&path, b"new").unwrap();
        let found = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode);
    }
    symlink(&path, &link).unwrap();
    write_atomically(&link, b"through the link").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&path).unwrap(), b"through the link");
    let error = write_atomically(Path::new("/dev/null"), b"").unwrap_err();
    assert!(matches!(error, StorageError::NotAFile { .. }), "{error}");
    let error = write_atomically(folder.path(), b"").unwrap_err();
    assert!(matches!(error, StorageError::Folder { .. }), "{error}");
}

#[test]
fn every_flipped_bit_of_stored_arrays_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let (single, double) = ([1.0_f32, -2.5, 0.0], [0.1_f64, 7.0]);
    let arrays = || {
        vec![
            ("a".to_string(), vec![3], Numbers::from(&single[..])),
            ("b".to_string(), vec![1, 2], Numbers::from(&double[..])),
        ]
    };
    write_tensors(&path, arrays(), "{\"iteration\":12}").unwrap();
    let read = || read_tensors(&path).map(|stored| stored.unwrap());
    let whole = fs::read(&path).unwrap();
    let stored = read().unwrap();
    assert_eq!(stored.text, "{\"iteration\":12}");
    let found = stored.arrays().unwrap();
    assert_eq!(
        (&found.single["a"][..], &found.double["b"][..]),
        (&single[..], &double[..])
    );
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&path, &bytes).unwrap();
            let Ok(stored) = read() else { continue };
            let text = stored.text.clone();
            // What is read in spite of it is what was written: a blank of the header became another, say.
            if let Ok(found) = stored.arrays() {
                assert_eq!(text, "{\"iteration\":12}", "byte {at}, bit {bit}");
                assert_eq!(found.single["a"], single, "byte {at}, bit {bit}");
                assert_eq!(found.double["b"], double, "byte {at}, bit {bit}");
            }
        }
    }
    let long = "x".repeat(65 << 20);
    let error = write_tensors(&path, arrays(), &long).unwrap_err();
    assert!(matches!(error, StorageError::TooLong { .. }), "{error}");
}

#[test]
fn a_checksum_is_that_of_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("abc");
    fs::write(&path, "abc").unwrap();
    let (sum, length) = checksum(&path).unwrap();
    assert_eq!(length, 3);
    // The example of FIPS 180-2, B.1.
    let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sum, known);
}
