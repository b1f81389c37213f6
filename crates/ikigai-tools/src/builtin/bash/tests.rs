use std::sync::Arc;

use super::*;

fn place() -> Place {
    Place {
        workdir: PathBuf::from("/work"),
        hidden: Arc::from([]),
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
