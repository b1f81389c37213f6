use std::sync::Arc;

use super::*;

fn place() -> Place {
    Place {
        workdir: PathBuf::from("/work"),
        hidden: Arc::from([]),
    }
}

#[test]
fn rules_see_where_a_command_runs() {
    let cases = [
        ("", "make test", "make test *"),
        (".", "make test", "make test *"),
        ("sub", "cd 'sub' && make test", "make test *"),
        ("..", "cd '/' && make test", "make test *"),
        ("/it's", r"cd '/it'\''s' && make test", "make test *"),
    ];

    for (workdir, subject, pattern) in cases {
        let arguments = serde_json::json!({"command": "make test", "workdir": workdir});
        let prepared = Bash::default().prepare(&arguments.to_string(), &place());
        let prepared = prepared.ok().unwrap();
        assert_eq!(
            (prepared.subject.as_str(), prepared.pattern.as_str()),
            (subject, pattern)
        );
        assert_eq!(prepared.shown, subject);
    }
}

#[test]
fn a_call_says_what_it_would_do() {
    let prepared = Bash::default()
        .prepare(r#"{"command":"cargo test -q","timeout":7}"#, &place())
        .ok()
        .unwrap();

    assert_eq!(prepared.class, EffectClass::Execute);
    assert_eq!(prepared.touches, Touches::everything());
    assert_eq!(prepared.subject, "cargo test -q");
    assert_eq!(prepared.pattern, "cargo test *");
    assert_eq!(prepared.deadline, Duration::from_secs(7));
}

#[test]
fn arguments_that_cannot_work_are_refused() {
    let cases = [
        (r#"{"command":"  "}"#, "`command` is empty"),
        (r#"{"command":"a\u0000b"}"#, "`command` holds a zero byte"),
        (
            r#"{"command":"ls","timeout":0}"#,
            "`timeout` is 0; it must be from 1 to 3600 seconds",
        ),
        (
            r#"{"command":"ls","timeout":3601}"#,
            "`timeout` is 3601; it must be from 1 to 3600 seconds",
        ),
    ];

    for (arguments, expected) in cases {
        let error = Bash::default().prepare(arguments, &place()).err().unwrap();
        assert_eq!(error.to_string(), expected);
    }
}
