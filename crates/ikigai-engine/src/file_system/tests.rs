use std::process::Command;

use super::*;

fn checkout_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Option<Checkout>) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let inside = directory.path().join("src/inner");
    fs::create_dir_all(&inside).unwrap();
    let found = checkout_above(&inside);
    (directory, found)
}

#[test]
fn a_checkout_is_found_from_a_directory_inside() {
    let (directory, found) = checkout_of(&[(".git/HEAD", "ref: refs/heads/fix/lexer\n")]);

    let found = found.unwrap();
    assert_eq!(found.root, directory.path());
    assert_eq!(found.branch.as_deref(), Some("fix/lexer"));
}

#[test]
fn a_worktree_names_its_folder_in_a_file() {
    let files = [
        (".git", "gitdir: other/worktrees/one\n"),
        ("other/worktrees/one/HEAD", "ref: refs/heads/one\n"),
    ];

    assert_eq!(
        checkout_of(&files).1.unwrap().branch.as_deref(),
        Some("one")
    );
}

#[test]
fn a_head_without_a_branch_has_none() {
    for text in [
        "",
        "\n",
        "ref:",
        "0123456789012345678901234567890123456789\n",
    ] {
        let found = checkout_of(&[(".git/HEAD", text)]).1.unwrap();
        assert_eq!(found.branch, None, "{text:?}");
    }
    assert_eq!(
        checkout_of(&[(".git", "no folder")]).1.unwrap().branch,
        None
    );
}

/// A pipe in the place of `HEAD` would block a reader that waits for its other end.
#[test]
fn a_pipe_is_not_read() {
    let (directory, _) = checkout_of(&[(".git/config", "")]);
    let made = Command::new("mkfifo")
        .arg(directory.path().join(".git/HEAD"))
        .status();
    assert!(made.unwrap().success());

    let found = checkout_above(directory.path()).unwrap();

    assert_eq!(found.branch, None);
}
