use std::fs;

use super::{FileError, FileSnapshot, find, replace, sha256_hex, size};

#[test]
fn a_file_that_somebody_else_writes_meanwhile_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.txt");

    // Created after it was found missing.
    fs::write(&path, "theirs").unwrap();
    let made = replace(&path, b"mine", None);
    // Changed after it was read.
    let seen = find(&path).unwrap().stamp();
    fs::write(&path, "theirs again").unwrap();
    let changed = replace(&path, b"mine", seen);
    // Removed after it was read.
    let seen = find(&path).unwrap().stamp();
    fs::remove_file(&path).unwrap();
    let removed = replace(&path, b"mine", seen);

    for refused in [made, changed, removed] {
        assert!(matches!(refused, Err(FileError::Changed)), "{refused:?}");
    }
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        0,
        "no draft is left"
    );
}

#[test]
fn a_file_as_it_was_seen_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.txt");
    fs::write(&path, "old").unwrap();

    let seen = find(&path).unwrap().stamp();
    replace(&path, b"new", seen).unwrap();

    assert!(matches!(find(&path).unwrap(), FileSnapshot::Whole { bytes, .. } if bytes == b"new"));
}

#[test]
fn sizes_are_short() {
    let table = [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KB"),
        (1_600, "1.5 KB"),
        (5 << 30, "5.0 GB"),
        (u64::MAX, "16777215.9 TB"),
    ];

    for (bytes, expected) in table {
        assert_eq!(size(bytes), expected);
    }
}

#[test]
fn hashes_are_written_in_hexadecimal() {
    assert_eq!(
        sha256_hex(b"hello\n"),
        "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    );
}
