use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::*;

fn ended(code: i32, output: &str, errors: &str) -> Ended {
    Ended {
        cause: Cause::Exited(ExitStatus::from_raw(code << 8)),
        output: output.into(),
        errors: errors.into(),
        left_behind: 0,
        refused: Vec::new(),
        warning: None,
    }
}

fn told_of(ended: Ended) -> (String, String, bool) {
    let output = read(ended, Duration::from_secs(7));
    let body = String::from_utf8(output.body).unwrap();
    (body, output.shown, output.success)
}

#[test]
fn json_is_an_answer() {
    let cases = [
        (r#"{"output":"two\nlines"}"#, "two\nlines", "2 lines", true),
        (
            r#"{"output":"no","success":false}"#,
            "no\nsaid",
            "no",
            false,
        ),
        (
            r#"{"output":{"a":[1, 2]},"success":true}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[1,2]}"#,
            true,
        ),
        (r#"{"a": 1}"#, r#"{"a":1}"#, r#"{"a":1}"#, true),
        (" [1, 2]\n", "[1,2]", "[1,2]", true),
        (r#""text""#, "text", "text", true),
        ("null", "", "done", true),
    ];

    for (output, body, shown, success) in cases {
        let expected = (body.to_owned(), shown.to_owned(), success);
        assert_eq!(told_of(ended(0, output, "said")), expected, "{output}");
    }
}

#[test]
fn anything_else_is_a_failure_that_shows_what_came() {
    let cases = [
        (
            ended(0, "plain text", ""),
            "plain text\nthe tool did not print JSON: expected value at line 1 column 1",
        ),
        (
            ended(0, "", "a complaint\n"),
            "a complaint\nthe tool printed nothing; it must print JSON",
        ),
        (ended(3, "", "a complaint\n"), "a complaint\nexit 3"),
        (ended(3, r#"{"output":"half"}"#, "why"), "half\nwhy\nexit 3"),
        (
            Ended {
                cause: Cause::Deadline,
                ..ended(0, "so far", "")
            },
            "so far\nstopped after 7 s",
        ),
    ];

    for (ended, body) in cases {
        let (told, _, success) = told_of(ended);
        assert_eq!((told.as_str(), success), (body, false));
    }
}
