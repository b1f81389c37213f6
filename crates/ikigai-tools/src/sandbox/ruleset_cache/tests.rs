use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use super::*;

/// Waits until a change of the directory gets another time stamp.
fn settle(directory: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while DirectoryStamp::before_listing(directory).is_none() {
        assert!(Instant::now() < deadline, "{}", directory.display());
        std::thread::yield_now();
    }
}

#[test]
fn a_ruleset_is_not_current_after_its_paths_changed() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 6] = [
        ("a new entry beside a hidden one", |base| {
            fs::write(base.join("listed/new"), "").unwrap();
        }),
        ("a replaced entry beside a hidden one", |base| {
            fs::rename(base.join("other"), base.join("listed/entry")).unwrap();
        }),
        ("a writable directory that was replaced", |base| {
            fs::rename(base.join("writable"), base.join("away")).unwrap();
            fs::create_dir(base.join("writable")).unwrap();
        }),
        ("a writable directory that became a link", |base| {
            fs::rename(base.join("writable"), base.join("away")).unwrap();
            symlink(base.join("away"), base.join("writable")).unwrap();
        }),
        ("a missing directory that was made", |base| {
            fs::create_dir(base.join("missing")).unwrap();
        }),
        ("a listed directory that was removed", |base| {
            fs::remove_dir_all(base.join("listed")).unwrap();
        }),
    ];
    for (name, change) in changes {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        for name in ["listed", "writable"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        for name in ["listed/entry", "other"] {
            fs::write(base.join(name), "").unwrap();
        }
        settle(&base.join("listed"));
        let mut paths = RulesetPaths::default();
        paths.add_granted(&base.join("writable"));
        paths.add_granted(&base.join("missing"));
        paths.add_listed(&base.join("listed"));
        paths.add_granted(&base.join("listed/entry"));
        assert!(paths.can_be_cached());
        assert!(paths.are_current());

        change(base);

        assert!(!paths.are_current(), "{name}");
    }
}

#[test]
fn a_directory_that_just_changed_is_not_cached() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = RulesetPaths::default();
    // The change and the record are in one tick, or the machine was busy in between.
    let deadline = Instant::now() + Duration::from_secs(30);
    while paths.listed.iter().all(|(_, stamp)| stamp.is_some()) {
        assert!(Instant::now() < deadline);
        fs::write(directory.path().join("new"), "").unwrap();
        fs::remove_file(directory.path().join("new")).unwrap();
        paths.add_listed(directory.path());
    }

    assert!(!paths.can_be_cached());
}
