use super::*;

fn stamp(seconds: i64, nanoseconds: i64) -> DirectoryStamp {
    DirectoryStamp {
        device: 1,
        inode: 2,
        changed: (seconds, nanoseconds),
    }
}

#[test]
fn a_directory_that_just_changed_is_not_settled() {
    let at = |milliseconds| SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
    let cases = [
        (stamp(100, 5_000_000), 100_010, false),
        (stamp(100, 5_000_000), 100_100, true),
        // The file system may store only whole seconds.
        (stamp(100, 0), 102_900, false),
        (stamp(100, 0), 103_100, true),
        // A time in the future proves nothing.
        (stamp(200, 1), 100_000, false),
        (stamp(i64::MAX, 1), 100_000, false),
        (stamp(-1, 1), 100_000, false),
    ];

    for (stamp, now, is_settled) in cases {
        assert_eq!(stamp.is_settled(at(now)), is_settled, "{stamp:?} at {now}");
    }
}

#[test]
fn links_and_files_have_no_stamp() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();

    assert!(DirectoryStamp::read(directory.path()).is_some());
    assert_eq!(DirectoryStamp::read(&file), None);
    assert_eq!(DirectoryStamp::read(&link), None);
    assert_eq!(DirectoryStamp::before_listing(directory.path()), None);
}
