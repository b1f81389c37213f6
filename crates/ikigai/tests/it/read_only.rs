//! Commands that read, on a store that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use crate::support::{MockAnswer, TestUser, said};

/// Sets the modes of everything below a directory.
fn protect(path: &Path, directories: u32, files: u32) {
    let mode = if path.is_dir() { directories } else { files };
    if path.is_dir() {
        // It must be writable before its entries can change.
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            protect(&entry.unwrap().path(), directories, files);
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(directory: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    names
}

/// Runs the program as a user who may write nothing.
fn as_reader(user: &TestUser, arguments: &[&str]) -> MockAnswer {
    let mut command = user.command(arguments);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    said(command.output().unwrap())
}

#[test]
fn every_reading_command_works_on_a_store_that_cannot_be_written() {
    let user = TestUser::with_file();
    user.ikigai(&["run", "hello there"]);
    user.ikigai(&["search", "hello"]);
    // This turn is not in the search index.
    user.ikigai(&["run", "something rare"]);
    let directory = user.database().parent().unwrap().to_owned();
    protect(user.home(), 0o555, 0o444);
    let before = names(&directory);

    for (arguments, expected) in [
        (&["log"][..], "something rare"),
        (&["search", "rare"], "rare"),
        (&["search", "hello"], "hello there"),
        (&["agents"], "events"),
        (&["cost"], "out"),
        (&["export"], "something rare"),
        (&["export", "--format", "json"], "something rare"),
        (&["sql", "SELECT count(*) AS n FROM messages"], "n"),
        (&["doctor"], "is intact"),
    ] {
        let said = as_reader(&user, arguments);
        assert_eq!(
            said.code,
            Some(0),
            "{arguments:?}: {}{}",
            said.out,
            said.err
        );
        assert!(said.out.contains(expected), "{arguments:?}: {}", said.out);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    fs::set_permissions(elsewhere.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let copy = elsewhere.path().join("copy.db");
    let (from, to) = (user.database(), copy.display().to_string());
    let from = from.display().to_string();
    let copied = as_reader(&user, &["copy", "--from", &from, "--to", &to]);
    assert_eq!(copied.code, Some(0), "{}", copied.err);
    let refused = as_reader(&user, &["run", "hello"]);
    assert_eq!(refused.code, Some(3), "{}", refused.err);

    assert_eq!(names(&directory), before);
    protect(user.home(), 0o755, 0o644);
}
