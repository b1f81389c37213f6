use super::{Diff, whole};

fn numbered(word: &str, count: usize) -> String {
    let lines: Vec<String> = (0..count).map(|line| format!("{word}{line}\n")).collect();
    lines.concat()
}

#[test]
fn a_diff_shows_hunks_and_counts() {
    let table = [
        ("", "", "", (0, 0)),
        ("a\n", "a\n", "", (0, 0)),
        ("", "a\n", "@@ -0,0 +1 @@\n+a\n", (1, 0)),
        ("a\nb\n", "a\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", (1, 1)),
        (
            "a",
            "a\n",
            "@@ -1 +1 @@\n-a\n\\ no newline at end of file\n+a\n",
            (1, 1),
        ),
        ("a\r\n", "a\n", "@@ -1 +1 @@\n-a␍\n+a\n", (1, 1)),
        ("x\n", "\u{1b}[31mx\n", "@@ -1 +1 @@\n-x\n+␛[31mx\n", (1, 1)),
    ];

    for (old, new, text, (added, removed)) in table {
        let diff = Diff::between(old.as_bytes(), new.as_bytes());
        assert_eq!(diff.text, text);
        assert_eq!((diff.added, diff.removed), (added, removed), "{text}");
    }
}

#[test]
fn the_changed_lines_of_the_new_content_are_named() {
    let old = numbered("", 40);
    let third = |line: usize| if line.is_multiple_of(3) { "x" } else { "" };
    let many: Vec<String> = (0..40)
        .map(|line| format!("{}{line}\n", third(line)))
        .collect();
    let table = [
        (old.replace("\n4\n", "\nfour\n"), "line 5"),
        (old.replace("\n4\n", "\nfour\nand\nmore\n"), "lines 5-7"),
        (old.replace("\n4\n5\n6\n", "\n"), "line 5"),
        (
            old.replace("0\n1\n", "zero\n1\n")
                .replace("\n30\n", "\nx\ny\n"),
            "lines 1, 31-32",
        ),
        (format!("{old}end\n"), "line 41"),
        (
            many.concat(),
            "lines 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, …",
        ),
    ];

    for (new, place) in table {
        let diff = Diff::between(old.as_bytes(), new.as_bytes());
        assert_eq!(diff.place(), place, "{}", diff.text);
    }
}

#[test]
fn line_endings_that_do_not_change_are_not_shown() {
    let diff = Diff::between(b"a\r\nb\r\n", b"a\r\nc\r\n");

    assert_eq!(diff.text, "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
}

#[test]
fn a_long_diff_is_cut() {
    let old = numbered("", 1_000);

    let diff = Diff::between(old.as_bytes(), b"");

    assert_eq!(diff.text.lines().count(), 201);
    assert!(diff.text.ends_with("[801 more lines of this diff]\n"));
    assert_eq!((diff.added, diff.removed), (0, 1000));
}

#[test]
fn a_whole_diff_is_exact_and_never_cut() {
    let old = numbered("", 1_000);
    let long = format!("{}\u{1b}\u{202e}\rend\n", "x".repeat(2_000));
    let new = numbered("b", 6_000);

    assert_eq!(whole(old.as_bytes(), b"").lines().count(), 1_001);
    assert_eq!(
        whole(b"", long.as_bytes()),
        format!("@@ -0,0 +1 @@\n+{long}")
    );
    let text = whole(b"same\na\nend", format!("same\n{new}").as_bytes());
    assert!(
        text.starts_with("@@ -2,2 +2,6000 @@\n-a\n-end\n\\ no newline"),
        "{text}"
    );
    assert!(text.ends_with("+b5999\n"), "{text}");
}

#[test]
fn very_different_files_are_not_compared_line_by_line() {
    let old = numbered("a", 50_000);
    let new = numbered("b", 50_000);
    let new = format!("same\n{new}");
    let old = format!("same\n{old}");

    let diff = Diff::between(old.as_bytes(), new.as_bytes());

    let text = "[from line 2 on, 50000 lines are replaced by 50000 others]\n";
    assert_eq!(
        (diff.text.as_str(), diff.added, diff.removed),
        (text, 50_000, 50_000)
    );
}

#[test]
fn a_small_change_to_a_large_file_is_shown() {
    let old = "line\n".repeat(200_000);
    let new = format!("{old}end\n");

    let diff = Diff::between(old.as_bytes(), new.as_bytes());

    assert!(diff.text.ends_with(" line\n line\n line\n+end\n"));
}
