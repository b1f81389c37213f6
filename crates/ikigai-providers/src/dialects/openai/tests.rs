use super::{arguments, cache_key, result_text};

#[test]
fn a_failure_is_told_once_in_the_text() {
    let table = [
        ("done", false, "done"),
        ("no such file", true, "error: no such file"),
        ("ERROR: no", true, "ERROR: no"),
        ("", false, "(no output)"),
        (" \n", true, "error: (no output)"),
        (
            "\u{e9}\u{e9}\u{e9}\u{e9}",
            true,
            "error: \u{e9}\u{e9}\u{e9}\u{e9}",
        ),
        (
            "error: said the tool, and went on",
            false,
            "error: said the tool, and went on",
        ),
    ];
    for (content, is_error, expected) in table {
        assert_eq!(result_text(content, is_error), expected);
    }
}

#[test]
fn arguments_are_sent_as_they_came_or_as_an_empty_object() {
    let table = [
        ("{\"z\": 1, \"a\":2}", "{\"z\": 1, \"a\":2}"),
        ("", "{}"),
        ("{", "{}"),
        ("[]", "{}"),
        ("null", "{}"),
        ("{} and more", "{}"),
    ];
    for (written, expected) in table {
        assert_eq!(arguments(written), expected, "{written}");
    }
}

#[test]
fn a_cache_key_is_cut_and_never_empty() {
    let long = "x".repeat(70);

    assert_eq!(cache_key("agent"), Some("agent"));
    assert_eq!(cache_key(""), None);
    assert_eq!(cache_key(&long).map(str::len), Some(64));
}
