//! `file_write`, and the safe replacement of files that it shares with `file_edit`.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use ikigai_core::EffectClass;
use ikigai_core::data::TouchedFile;
use ikigai_tools::{CallEnding, CallInputs, Need, Stale, Touches};
use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};

use crate::desk::{Desk, text};

const HELLO_HASH: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

fn hello(path: &str) -> Value {
    json!({"file_path": path, "content": "hello\n"})
}

#[test]
fn a_call_says_what_it_would_do_before_it_does_it() {
    let mut desk = Desk::new();
    let path = desk.put("sub/a.txt", "old\n");
    desk.know("sub/a.txt");

    let prepared = desk.prepare("file_write", &hello("sub/a.txt")).unwrap();

    assert_eq!(prepared.class, EffectClass::Write);
    assert_eq!(prepared.touches, Touches::writing([path.clone()]));
    assert_eq!(prepared.shown, r#"file_path="sub/a.txt""#);
    assert_eq!(prepared.subject, "sub/a.txt");
    assert_eq!(prepared.pattern, "sub/**");
    assert_eq!(prepared.needs, [Need::File(path)]);
    let preview = prepared.preview.unwrap()(&desk.inputs);
    assert_eq!(preview.unwrap(), "@@ -1 +1 @@\n-old\n+hello\n");
    assert_eq!(desk.get("sub/a.txt"), "old\n");
}

#[test]
fn always_allows_a_directory_or_one_file_of_the_working_directory() {
    let desk = Desk::new();
    let table = [
        ("a.txt", "a.txt"),
        ("a*.txt", "a\\*.txt"),
        ("src/lib.rs", "src/**"),
        ("/etc/x/y", "/etc/x/**"),
        ("/etc", "/etc"),
    ];

    for (path, pattern) in table {
        let prepared = desk.prepare("file_write", &hello(path)).unwrap();
        assert_eq!(prepared.pattern, pattern, "{path}");
    }
}

#[test]
fn a_preview_of_what_will_fail_is_the_failure() {
    let desk = Desk::new();
    fs::create_dir(desk.path("d")).unwrap();
    let prepared = desk.prepare("file_write", &hello("d")).unwrap();

    let failed = prepared.preview.unwrap()(&CallInputs::default()).unwrap_err();

    assert!(failed.shown.starts_with("`d` is a directory"), "{failed:?}");
    assert!(!failed.success);
}

#[test]
fn what_was_written_is_told_and_recorded() {
    let mut desk = Desk::new();
    let path = desk.put("a.txt", "old\n");
    desk.know("a.txt");

    let output = desk.call("file_write", &hello("a.txt"));

    assert_eq!(
        text(&output),
        "wrote `a.txt`: 6 bytes, 1 line, +1 −1 lines\n"
    );
    assert_eq!(output.shown, "a.txt: +1 −1\n@@ -1 +1 @@\n-old\n+hello");
    let touched = TouchedFile {
        path: Some(path.to_str().unwrap().to_owned()),
        hash: Some(HELLO_HASH.to_owned()),
        wrote: Some(true),
        added: Some(1),
        removed: Some(1),
    };
    assert_eq!(output.files, [touched]);
    assert_eq!(desk.get("a.txt"), "hello\n");
}

#[test]
fn writing_what_is_there_changes_nothing() {
    let desk = Desk::new();
    let path = desk.put("a.txt", "hello\n");
    let before = fs::metadata(&path).unwrap().ino();

    let output = desk.call("file_write", &hello("a.txt"));

    assert_eq!(
        text(&output),
        "`a.txt` was like this before: 6 bytes, 1 line\n"
    );
    assert_eq!(output.files[0].wrote, Some(false));
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
}

#[test]
fn the_mode_is_kept_and_no_draft_is_left() {
    let mut desk = Desk::new();
    let path = desk.put("run.sh", "old\n");
    desk.know("run.sh");
    fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
    let before = fs::metadata(&path).unwrap();

    desk.done("file_write", &hello("run.sh"));

    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.mode() & 0o7777, 0o751);
    assert_ne!(after.ino(), before.ino(), "replaced in one step");
    assert_eq!(fs::read_dir(&desk.place.workdir).unwrap().count(), 1);
}

#[test]
fn a_link_is_kept_and_its_target_written() {
    let mut desk = Desk::new();
    desk.put("target.txt", "old\n");
    desk.know("target.txt");
    symlink("target.txt", desk.path("link")).unwrap();
    symlink("new.txt", desk.path("dangling")).unwrap();

    desk.done("file_write", &hello("link"));
    desk.done("file_write", &hello("dangling"));

    assert_eq!(desk.get("target.txt"), "hello\n");
    assert_eq!(desk.get("new.txt"), "hello\n");
    assert!(desk.path("link").is_symlink() && desk.path("dangling").is_symlink());
}

#[test]
fn what_cannot_be_written_is_explained_and_untouched() {
    let mut desk = Desk::new();
    let read_only = desk.put("read-only.txt", "old\n");
    desk.know("read-only.txt");
    fs::set_permissions(&read_only, Permissions::from_mode(0o444)).unwrap();
    fs::create_dir(desk.path("directory")).unwrap();
    rustix::fs::mknodat(CWD, desk.path("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    symlink("loop", desk.path("loop")).unwrap();
    let long = "x".repeat(300);
    let table = [
        ("read-only.txt", "is read-only (mode 444)"),
        ("directory", "is a directory"),
        ("/", "is a directory"),
        ("pipe", "is a named pipe"),
        ("/dev/null", "is a device"),
        ("loop", "loop of symbolic links"),
        ("read-only.txt/x", "cannot be"),
        ("read-only.txt/x/y", "cannot be"),
        ("/proc/none", "cannot be written"),
        ("/proc/none/none", "its directory cannot be made"),
        (&long, "cannot be read: File name too long"),
    ];

    for (path, expected) in table {
        let reason = desk.failed("file_write", &hello(path));
        assert!(reason.contains(expected), "{path}: {reason}");
    }
    assert_eq!(desk.get("read-only.txt"), "old\n");
}

#[test]
fn a_file_that_changed_since_it_was_read_is_refused() {
    let mut desk = Desk::new();
    let path = desk.put("a.txt", "hello\n");
    desk.inputs.file = Some("0".repeat(64));

    for (tool, arguments) in [
        (
            "file_write",
            json!({"file_path": "a.txt", "content": "mine\n"}),
        ),
        (
            "file_edit",
            json!({"file_path": "a.txt", "old_string": "hello", "new_string": "mine"}),
        ),
    ] {
        let output = desk.call(tool, &arguments);

        assert!(!output.success);
        assert_eq!(
            text(&output),
            "`a.txt` was changed since you last read it; read it again first"
        );
        let stale = Stale {
            path: path.to_str().unwrap().to_owned(),
            hash: HELLO_HASH.to_owned(),
        };
        assert_eq!(output.stale, Some(stale));
        assert_eq!(output.files, []);
        assert_eq!(desk.get("a.txt"), "hello\n");
    }
}

#[test]
fn a_file_that_was_never_read_is_not_overwritten() {
    let desk = Desk::new();
    desk.put("a.txt", "hello\n");
    desk.put("empty.txt", "");
    let mine = json!({"file_path": "a.txt", "content": "mine\n"});
    let edit = json!({"file_path": "a.txt", "old_string": "hello", "new_string": "bye"});
    let prepared = desk.prepare("file_write", &mine).unwrap();

    let preview = prepared.preview.unwrap()(&CallInputs::default()).unwrap_err();
    let reason = desk.failed("file_write", &mine);
    desk.done("file_write", &hello("empty.txt"));
    let edited = desk.done("file_edit", &edit);

    assert_eq!(
        reason,
        "`a.txt` exists and you have not read it; read it first with file_read, then replace it or \
         change it with file_edit"
    );
    assert_eq!(preview.shown, reason);
    assert_eq!(edited, "edited `a.txt`: line 1, +1 −1 lines\n");
    assert_eq!(desk.get("empty.txt"), "hello\n");
}

#[test]
fn a_file_that_is_as_it_was_read_or_gone_is_written() {
    let mut desk = Desk::new();
    desk.put("a.txt", "hello\n");
    desk.know("a.txt");
    desk.done(
        "file_write",
        &json!({"file_path": "a.txt", "content": "mine\n"}),
    );
    assert_eq!(desk.get("a.txt"), "mine\n");
    desk.inputs.file = Some(HELLO_HASH.to_owned());
    fs::remove_file(desk.path("a.txt")).unwrap();

    desk.done(
        "file_write",
        &json!({"file_path": "a.txt", "content": "again\n"}),
    );

    assert_eq!(desk.get("a.txt"), "again\n");
}

#[test]
fn a_file_that_grew_huge_since_it_was_read_is_refused() {
    let mut desk = Desk::new();
    File::create(desk.path("huge"))
        .unwrap()
        .set_len(5 << 30)
        .unwrap();
    desk.inputs.file = Some(HELLO_HASH.to_owned());

    let output = desk.call("file_write", &hello("huge"));

    assert!(output.stale.is_some(), "{}", text(&output));
    assert_eq!(fs::metadata(desk.path("huge")).unwrap().len(), 5 << 30);
}

#[test]
fn a_huge_file_can_be_replaced_but_not_edited() {
    let desk = Desk::new();
    File::create(desk.path("huge"))
        .unwrap()
        .set_len(5 << 30)
        .unwrap();
    let edit = json!({"file_path": "huge", "old_string": "a", "new_string": "b"});

    let reason = desk.failed("file_edit", &edit);
    let done = desk.done("file_write", &hello("huge"));

    assert!(
        reason.contains("has 5.0 GB: too large to be edited"),
        "{reason}"
    );
    assert_eq!(done, "`huge` is replaced by 6 bytes, 1 line\n");
    assert_eq!(desk.get("huge"), "hello\n");
}

#[test]
fn a_stopped_call_writes_nothing() {
    let desk = Desk::new();
    desk.stop.cancel();

    let output = desk.call("file_write", &hello("a.txt"));

    assert_eq!(output.ending, CallEnding::Stopped);
    assert!(!desk.path("a.txt").exists());
}

#[test]
fn a_home_is_understood() {
    let desk = Desk::new();
    let home = std::env::var("HOME").unwrap();

    let prepared = desk
        .prepare("file_read", &json!({"file_path": "~/none/x"}))
        .unwrap();

    assert_eq!(
        prepared.touches,
        Touches::reading([format!("{home}/none/x").into()])
    );
    let odd = desk
        .prepare("file_read", &json!({"file_path": "~none"}))
        .unwrap();
    assert_eq!(odd.subject, "~none");
}

#[test]
fn all_names_of_a_file_keep_one_content() {
    let mut desk = Desk::new();
    let path = desk.put("a.txt", "one\ntwo\nthree\n");
    let other = desk.path("other/b.txt");
    fs::create_dir(desk.path("other")).unwrap();
    fs::hard_link(&path, &other).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();

    desk.done(
        "file_edit",
        &json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"}),
    );
    let edited = fs::read_to_string(&other).unwrap();
    desk.know("a.txt");
    desk.done(
        "file_write",
        &json!({"file_path": "other/b.txt", "content": "a longer text than before\n"}),
    );
    let longer = desk.get("a.txt");
    desk.know("a.txt");
    desk.done("file_write", &json!({"file_path": "a.txt", "content": ""}));

    assert_eq!(edited, "one\n2\nthree\n");
    assert_eq!(longer, "a longer text than before\n");
    assert_eq!(fs::read_to_string(&other).unwrap(), "");
    let after = fs::metadata(&path).unwrap();
    assert_eq!(
        (after.ino(), after.nlink(), after.mode()),
        (before.ino(), 2, before.mode())
    );
    let names = |directory| fs::read_dir(desk.path(directory)).unwrap().count();
    assert_eq!((names("."), names("other")), (2, 1), "no draft is left");
}
