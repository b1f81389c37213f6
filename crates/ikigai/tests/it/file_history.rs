//! Changes of files in the built program: undo, redo, diff and blame.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{MockAnswer, TestUser};

/// Runs a shell command as a call of the model.
fn run(user: &TestUser, command: &str) -> MockAnswer {
    let prompt = format!("run `{command}`");
    let ran = user.ikigai(&["run", "--approve", "all", &prompt]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran
}

fn tree(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            if path.is_dir() {
                left.push(path);
                found.insert(name, String::new());
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn project(user: &TestUser) -> std::path::PathBuf {
    user.home().join("project")
}

fn prepare(user: &TestUser) -> BTreeMap<String, String> {
    let place = project(user);
    fs::create_dir_all(place.join("src/deep")).unwrap();
    for name in ["src/one", "src/deep/two", "three"] {
        fs::write(place.join(name), format!("{name}\nsecond\nlast\n")).unwrap();
    }
    tree(&place)
}

const CHANGES: &str = "sed -i s/second/2nd/ src/one; rm three; mv src/deep deeper; echo new > new";

/// Changes of a shell command are undone, and shown as a patch that brings them back.
#[test]
fn a_shell_command_is_undone_and_shown_as_a_patch() {
    let user = TestUser::new();
    let before = prepare(&user);
    run(&user, CHANGES);
    let after = tree(&project(&user));

    let shown = user.ikigai(&["diff", "project"]);
    let asked = user.ikigai(&["run", "/undo"]);
    let undone = user.ikigai(&["run", "/undo --files"]);

    assert!(
        asked.out.contains("bring back three"),
        "{}{}",
        asked.out,
        asked.err
    );
    assert_eq!(
        tree(&project(&user)),
        before,
        "{}{}",
        undone.out,
        undone.err
    );
    let patch = user.home().join("patch");
    fs::write(&patch, &shown.out).unwrap();
    let applied = Command::new("git")
        .args(["apply", "--verbose"])
        .arg(&patch)
        .current_dir(project(&user))
        .output()
        .unwrap();
    assert!(
        applied.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&applied.stderr),
        shown.out
    );
    let mut expected = after.clone();
    // Git knows no empty directories.
    expected.retain(|name, _| name != "src/deep");
    assert_eq!(tree(&project(&user)), expected);
}

/// A redo brings back exactly what an undo took away.
#[test]
fn a_redo_brings_the_changes_of_a_command_back() {
    let user = TestUser::new();
    prepare(&user);
    run(&user, CHANGES);
    let after = tree(&project(&user));
    user.ikigai(&["run", "/undo --files"]);
    assert_ne!(tree(&project(&user)), after);

    let redone = user.ikigai(&["run", "/redo --files"]);

    assert_eq!(tree(&project(&user)), after, "{}{}", redone.out, redone.err);
}

/// `kill -9` in the middle of a command: the next start knows what it had changed.
#[test]
fn a_command_that_was_cut_short_by_a_kill_is_undone() {
    let user = TestUser::new();
    let before = prepare(&user);
    let prompt = format!("run `{CHANGES}; touch begun; exec sleep 1000`");
    let mut child = user
        .command(&["run", "--approve", "all", &prompt])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !project(&user).join("begun").exists() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let undone = user.ikigai(&["run", "/undo --files"]);

    assert_eq!(
        tree(&project(&user)),
        before,
        "{}{}",
        undone.out,
        undone.err
    );
}

/// Each line of a file leads to the call that wrote it, through renames.
#[test]
fn blame_names_the_call_of_each_line() {
    let user = TestUser::new();
    prepare(&user);
    run(&user, "sed -i s/second/2nd/ src/one");
    run(&user, "mv src/one src/moved");
    run(&user, "echo end >> src/moved");
    let file = project(&user).join("src/moved");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "by hand\n").unwrap();

    let blamed = user.ikigai(&["blame", "src/moved"]);

    let lines: Vec<_> = blamed.out.lines().collect();
    assert_eq!(lines.len(), 5, "{}{}", blamed.out, blamed.err);
    let source = |line: &str| {
        let words = ["sed -i", "echo end", "(not recorded)"];
        words.into_iter().find(|word| line.contains(word))
    };
    let sources: Vec<_> = lines.iter().map(|line| source(line).unwrap()).collect();
    let unknown = "(not recorded)";
    assert_eq!(sources, [unknown, "sed -i", unknown, "echo end", unknown]);
    let one = user.ikigai(&["blame", "--porcelain", "src/moved:2"]);
    assert!(one.out.contains("tool bash\n"), "{}", one.out);
    assert!(one.out.ends_with("\t2nd\n"), "{}", one.out);
}
