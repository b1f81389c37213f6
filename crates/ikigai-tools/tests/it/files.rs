//! The usual sequence of calls: read, write, edit.

use std::fs;
use std::os::unix::fs::symlink;

use ikigai_tools::Touches;
use serde_json::json;

use crate::desk::Desk;

#[test]
fn a_file_is_written_read_and_changed() {
    let desk = Desk::new();

    let written = desk.done(
        "file_write",
        &json!({"file_path": "a/notes.txt", "content": "one\ntwo\nthree\n"}),
    );
    let read = desk.done("file_read", &json!({"file_path": "a/notes.txt"}));
    let edited = desk.done(
        "file_edit",
        &json!({"file_path": "a/notes.txt", "old_string": "two", "new_string": "2"}),
    );
    let found = desk.done("glob", &json!({"pattern": "**/*.txt"}));

    assert_eq!(written, "made `a/notes.txt`: 14 bytes, 3 lines\n");
    assert_eq!(read, "     1\tone\n     2\ttwo\n     3\tthree\n");
    assert_eq!(edited, "edited `a/notes.txt`: line 2, +1 −1 lines\n");
    assert_eq!(desk.get("a/notes.txt"), "one\n2\nthree\n");
    assert_eq!(found, "a/notes.txt\n");
}

#[test]
fn what_is_hidden_stays_hidden() {
    let desk = Desk::new();
    let key = desk.place.hidden[0].join("key");
    symlink(&key, desk.path("link")).unwrap();
    symlink("../secret", desk.path("directory")).unwrap();
    symlink("../secret/new", desk.path("dangling")).unwrap();
    desk.put("other.txt", "");
    let before = fs::read_to_string(&key).unwrap();

    for path in [
        key.to_str().unwrap(),
        "../secret/key",
        "link",
        "directory/key",
        "directory/none",
        "dangling",
        "/proc/self/environ",
        "/proc/thread-self/environ",
    ] {
        for (tool, arguments) in [
            ("file_read", json!({"file_path": path})),
            ("file_write", json!({"file_path": path, "content": "x"})),
            (
                "file_edit",
                json!({"file_path": path, "old_string": "", "new_string": "x"}),
            ),
            ("glob", json!({"pattern": "*", "path": path})),
        ] {
            let reason = desk.failed(tool, &arguments);
            assert!(reason.contains("off limits"), "{tool} {path}: {reason}");
        }
    }
    let found = desk.done("glob", &json!({"pattern": "../**/*"}));

    assert!(
        found.contains("other.txt") && !found.contains("key"),
        "{found}"
    );
    assert_eq!(fs::read_to_string(&key).unwrap(), before);
    assert!(!desk.place.hidden[0].join("new").exists());
}

#[test]
fn a_working_directory_behind_a_link_keeps_its_name() {
    let mut desk = Desk::new();
    let path = desk.put("a.txt", "here\n");
    let link = desk.place.workdir.with_file_name("link");
    symlink("work", &link).unwrap();
    desk.place.workdir.clone_from(&link);

    for name in ["a.txt", path.to_str().unwrap()] {
        let prepared = desk
            .prepare("file_read", &json!({"file_path": name}))
            .unwrap();
        assert_eq!(prepared.touches, Touches::reading([link.join("a.txt")]));
        assert_eq!(prepared.subject, "a.txt");
        assert!(desk.run(prepared).success);
    }
    assert_eq!(desk.done("glob", &json!({"pattern": "*"})), "a.txt\n");
}
