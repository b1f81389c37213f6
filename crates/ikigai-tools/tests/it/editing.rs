//! `file_edit`: matches, failed matches, and content that stays.

use ikigai_testkit::cases;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::desk::Desk;

fn edit(old: &str, new: &str) -> Value {
    json!({"file_path": "a.txt", "old_string": old, "new_string": new})
}

fn edit_all(old: &str, new: &str) -> Value {
    json!({"file_path": "a.txt", "old_string": old, "new_string": new, "replace_all": true})
}

#[test]
fn an_edit_changes_what_was_meant_and_nothing_else() {
    let desk = Desk::new();
    let table = [
        ("one\ntwo\n", edit("two", "2"), "one\n2\n"),
        ("no newline", edit("line", "LINE"), "no newLINE"),
        ("a a a", edit_all("a", "b"), "b b b"),
        ("aaa", edit_all("aa", "b"), "ba"),
        ("a\r\nb\r\nc", edit("a\nb", "x\ny\nz"), "x\r\ny\r\nz\r\nc"),
        ("a\r\nb\r\n", edit("b", "b\nc"), "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", edit("a\r\nb", "c\r\nd"), "c\r\nd\r\n"),
        ("a\r\nb\n", edit("b", "b\nc"), "a\r\nb\nc\n"),
        ("a\r\nb\nc\n", edit("a\nb", "x\ny"), "x\r\ny\nc\n"),
        ("tail\n", edit("tail\n", ""), ""),
        ("", edit("", "made"), "made"),
    ];

    for (before, arguments, after) in table {
        desk.put("a.txt", before);
        desk.done("file_edit", &arguments);
        assert_eq!(desk.get("a.txt"), after, "{before:?} {arguments}");
    }
}

fn edits(edits: &Value) -> Value {
    json!({"file_path": "a.txt", "edits": edits})
}

#[test]
fn several_edits_are_made_in_order_and_at_once() {
    let desk = Desk::new();
    let before = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
    desk.put("a.txt", before);
    let three = edits(&json!([
        {"old_string": "two", "new_string": "2\n2b"},
        {"old_str": "2b", "newString": "second"},
        {"filePath": "a.txt", "old_string": "e", "new_string": "E", "replace_all": "true"},
    ]));

    let result = desk.done("file_edit", &three);

    let after = before.replace("two", "2\nsEcond").replace('e', "E");
    assert_eq!(desk.get("a.txt"), after);
    assert_eq!(result, "edited `a.txt`: lines 1-4, 6, 8-11, +9 −8 lines\n");
}

#[test]
fn one_edit_that_fails_leaves_the_file_alone() {
    let desk = Desk::new();
    desk.put("a.txt", "one\ntwo\n");
    let good = json!({"old_string": "one", "new_string": "1"});
    let table = [
        (
            json!([good, {"old_string": "%%%%", "new_string": "x"}]),
            "`a.txt` does not hold `old_string`, nor anything like it; read the file again\n(edit 2 \
             of 2; none was made)",
        ),
        (
            json!([good, {"old_string": "one", "new_string": "x"}, good]),
            "(edit 2 of 3; none was made)",
        ),
        (json!([]), "`edits` is empty"),
        (
            json!([good, {"old_string": "a", "new_string": "a"}]),
            "are the same: there is nothing to change",
        ),
        (
            json!([good, {"old_string": "a"}]),
            "edit 2: missing field `new_string`",
        ),
        (
            json!([{"file_path": "b.txt", "old_string": "a", "new_string": "b"}]),
            "edit 1: all edits of a call change one file, that of `file_path`",
        ),
    ];

    for (list, expected) in table {
        let reason = desk.failed("file_edit", &edits(&list));
        assert!(reason.contains(expected), "{list}: {reason}");
        assert_eq!(desk.get("a.txt"), "one\ntwo\n");
    }
    let mut both = edits(&json!([good]));
    both["old_string"] = "one".into();
    let reason = desk.failed("file_edit", &both);
    assert!(reason.contains("not both"), "{reason}");
}

#[test]
fn a_diff_is_shown_only_if_the_texts_were_adapted() {
    let desk = Desk::new();
    desk.put("a.txt", "a\r\nb\nc\n");

    let adapted = desk.done("file_edit", &edit("a\nb", "x\ny"));
    let exact = desk.done("file_edit", &edit("c", "z"));

    assert!(
        adapted.starts_with("edited `a.txt`: lines 1-2, +2 −2 lines\n@@ "),
        "{adapted}"
    );
    assert_eq!(exact, "edited `a.txt`: line 3, +1 −1 lines\n");
}

#[test]
fn an_empty_old_string_makes_a_missing_file() {
    let desk = Desk::new();

    let made = desk.done("file_edit", &edit("", "new\n"));
    let refused = desk.failed("file_edit", &edit("", "again\n"));

    assert_eq!(made, "made `a.txt`: 4 bytes, 1 line\n");
    assert!(
        refused.contains("`old_string` must not be empty"),
        "{refused}"
    );
    assert_eq!(desk.get("a.txt"), "new\n");
}

#[test]
fn bytes_that_are_not_text_are_kept() {
    let desk = Desk::new();
    let path = desk.put("a.txt", b"\xff\xfeone\xc3two\xff");

    desk.done("file_edit", &edit("two", "2"));

    assert_eq!(std::fs::read(path).unwrap(), b"\xff\xfeone\xc32\xff");
}

#[test]
fn what_is_not_found_or_not_unique_is_explained() {
    let desk = Desk::new();
    let source = "fn main() {\n\tlet first = 1;\n    let second = 2;\n    let second = 2;\n}\n";
    desk.put("a.txt", source);
    let table = [
        (
            edit("let second", "x"),
            "`a.txt` holds `old_string` 2 times, at lines 3, 4; add lines around it until it is \
             unique, or set replace_all",
        ),
        (
            edit("    let first = 1;\nlet  second = 2;", "x"),
            "`a.txt` does not hold `old_string` exactly; but for white space it is at line 2:\n     \
             2\t\tlet first = 1;\n     3\t    let second = 2;\n",
        ),
        (
            edit("    let frist = 1;", "x"),
            "`a.txt` does not hold `old_string`; the lines most like it are:\n     2\t\tlet first = \
             1;\n",
        ),
        (
            edit(
                "     3\t    let second = 2;\n     4\t    let second = 2;",
                "x",
            ),
            "`a.txt` does not hold `old_string`, but does without the line numbers that file_read \
             puts before lines; leave them out",
        ),
        (
            edit("%%%%", "x"),
            "`a.txt` does not hold `old_string`, nor anything like it; read the file again",
        ),
        (
            edit("same", "same"),
            "`old_string` and `new_string` are the same: there is nothing to change",
        ),
    ];

    for (arguments, reason) in table {
        assert_eq!(desk.failed("file_edit", &arguments), reason, "{arguments}");
    }
    assert_eq!(desk.get("a.txt"), source);
}

#[test]
fn many_matches_are_counted_up_to_a_point() {
    let desk = Desk::new();
    desk.put("a.txt", "x\n".repeat(1_000));

    let reason = desk.failed("file_edit", &edit("x", "y"));

    let expected = "more than 10 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …;";
    assert!(reason.contains(expected), "{reason}");
}

#[test]
fn matches_that_overlap_are_not_unique() {
    let desk = Desk::new();
    desk.put("a.txt", "ababa");

    let reason = desk.failed("file_edit", &edit("aba", "x"));

    assert!(reason.contains("2 times"), "{reason}");
}

#[test]
fn a_text_that_almost_fits_everywhere_takes_no_time() {
    let desk = Desk::new();
    desk.put("a.txt", "a".repeat(4 << 20));
    let almost = format!("{}b", "a".repeat(1 << 20));

    let reason = desk.failed("file_edit", &edit(&almost, "x"));

    assert!(reason.contains("does not hold"), "{}", &reason[..100]);
    assert!(reason.len() < 4_000);
}

#[test]
fn a_missing_file_is_missed_with_names_like_it() {
    let desk = Desk::new();
    desk.put("notes.txt", "x");

    let reason = desk.failed(
        "file_edit",
        &json!({"file_path": "note.txt", "old_string": "x", "new_string": "y"}),
    );

    assert_eq!(
        reason,
        "`note.txt` does not exist; in the same directory there is `notes.txt`"
    );
}

/// Oracle of an edit on plain strings; `None` if the edit is refused.
fn model(file: &str, old: &str, new: &str, all: bool) -> Option<String> {
    if old.is_empty() {
        return file.is_empty().then(|| new.to_owned());
    }
    let ends = file.matches('\n').count();
    if ends > 0 && ends == file.matches("\r\n").count() {
        let lf = |text: &str| text.replace("\r\n", "\n");
        let edited = plain(&lf(file), &lf(old), &lf(new), all)?;
        return Some(edited.replace('\n', "\r\n"));
    }
    if !file.contains(old) {
        let crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
        return plain(file, &crlf(old), &crlf(new), all);
    }
    plain(file, old, new, all)
}

fn plain(file: &str, old: &str, new: &str, all: bool) -> Option<String> {
    let starts = file
        .char_indices()
        .filter(|(at, _)| file[*at..].starts_with(old));
    match starts.count() {
        0 => None,
        1 => Some(file.replacen(old, new, 1)),
        _ => all.then(|| file.replace(old, new)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases(300, 10_000))
    })]

    #[test]
    fn an_edit_equals_its_model(
        file in "([abé]|\n|\r\n){0,12}",
        crlf in any::<bool>(),
        old in "[abé\n]{0,3}",
        new in "[abé\n\r]{0,3}",
        all in any::<bool>(),
    ) {
        prop_assume!(old != new);
        let desk = Desk::new();
        let file = if crlf { file.replace("\r\n", "\n").replace('\n', "\r\n") } else { file };
        desk.put("a.txt", &file);
        let arguments = if all { edit_all(&old, &new) } else { edit(&old, &new) };

        let output = desk.call("file_edit", &arguments);

        let expected = model(&file, &old, &new, all);
        prop_assert_eq!(output.success, expected.is_some());
        prop_assert_eq!(desk.get("a.txt"), expected.unwrap_or(file));
    }
}
