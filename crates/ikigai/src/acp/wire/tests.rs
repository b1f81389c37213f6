use serde_json::json;

use super::*;

fn error_of(line: &str) -> (Value, i64) {
    match ClientMessage::parse(line.as_bytes()) {
        ClientMessage::Invalid { id, error } => (id, error.code),
        other => panic!("{line} is {other:?}"),
    }
}

#[test]
fn invalid_lines_are_errors_with_the_id_that_they_have() {
    let cases = [
        ("", Value::Null, PARSE_ERROR),
        ("{", Value::Null, PARSE_ERROR),
        ("\u{0}", Value::Null, PARSE_ERROR),
        ("[]", Value::Null, INVALID_REQUEST),
        ("7", Value::Null, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0"}"#, Value::Null, INVALID_REQUEST),
        (
            r#"{"id":1,"method":"initialize"}"#,
            json!(1),
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            json!(1),
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
            Value::Null,
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
            Value::Null,
            INVALID_REQUEST,
        ),
        (r#"{"jsonrpc":"2.0","id":"a"}"#, json!("a"), INVALID_REQUEST),
    ];
    for (line, id, code) in cases {
        assert_eq!(error_of(line), (id, code), "{line}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(error_of(&deep), (Value::Null, PARSE_ERROR));
}

#[test]
fn requests_notifications_and_answers_are_distinguished() {
    let params = json!({"a": 1});
    let parse = |value: Value| ClientMessage::parse(value.to_string().as_bytes());

    let request = parse(json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params}));
    let notification = parse(json!({"jsonrpc": "2.0", "method": "m"}));
    let answer = parse(json!({"jsonrpc": "2.0", "id": 4, "result": null}));
    let refused = parse(json!({"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": ""}}));

    let method = || "m".to_owned();
    assert_eq!(
        request,
        ClientMessage::Call {
            id: json!(1),
            method: method(),
            params
        }
    );
    assert_eq!(
        notification,
        ClientMessage::Notification {
            method: method(),
            params: json!({})
        }
    );
    assert_eq!(
        answer,
        ClientMessage::Response {
            id: json!(4),
            result: Some(Value::Null)
        }
    );
    assert_eq!(
        refused,
        ClientMessage::Response {
            id: json!(4),
            result: None
        }
    );
}

#[test]
fn a_message_is_one_line() {
    let line = notification_line("m", &json!({"text": "a\nb\r\u{2028}"}));

    assert_eq!(line.matches('\n').count(), 1);
    assert!(line.ends_with('\n'));
}
