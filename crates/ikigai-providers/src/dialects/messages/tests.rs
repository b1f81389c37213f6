use ikigai_core::message::{Block, Message, Role};
use ikigai_core::project::Request;
use serde_json::json;

use super::{Messages, locate};
use crate::answer::{FailureKind, ProviderError};
use crate::dialect::Dialect;

#[test]
fn an_address_with_a_version_is_kept_and_any_other_gets_one() {
    let cases = [
        (
            "https://api.anthropic.com",
            "https://api.anthropic.com/v1/messages",
        ),
        (
            "http://localhost:8080/v1",
            "http://localhost:8080/v1/messages",
        ),
        ("http://localhost/v4", "http://localhost/v4/messages"),
        (
            "http://localhost/vault",
            "http://localhost/vault/v1/messages",
        ),
        ("http://localhost/v", "http://localhost/v/v1/messages"),
    ];
    for (base, expected) in cases {
        assert_eq!(Messages.endpoint(base, "m"), expected);
    }
}

#[test]
fn a_key_goes_into_its_header() {
    let version = ("anthropic-version", "2023-06-01".to_owned());
    let key = ("x-api-key", "k".to_owned());

    assert_eq!(Messages.headers(None), std::slice::from_ref(&version));
    assert_eq!(Messages.headers(Some("k")), [version, key]);
}

#[test]
fn refusals_are_told_apart() {
    let cases = [
        ("invalid_request_error", "no", FailureKind::BadRequest),
        (
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8",
            FailureKind::TooLong,
        ),
        (
            "invalid_request_error",
            "Your credit balance is too low",
            FailureKind::Quota,
        ),
        (
            "authentication_error",
            "invalid x-api-key",
            FailureKind::Unauthorized,
        ),
        ("billing_error", "pay", FailureKind::Quota),
        ("permission_error", "no", FailureKind::Forbidden),
        ("not_found_error", "model: x", FailureKind::NotFound),
        ("request_too_large", "big", FailureKind::TooLong),
        ("exceed_context_size_error", "big", FailureKind::TooLong),
        ("rate_limit_error", "slow", FailureKind::RateLimited),
        ("api_error", "oops", FailureKind::Unavailable),
        ("overloaded_error", "Overloaded", FailureKind::Unavailable),
        ("strange_error", "?", FailureKind::Connection),
    ];
    for (kind, words, expected) in cases {
        let mut error = ProviderError::new(FailureKind::Connection, "status 400");
        let body = json!({"type": "error", "error": {"type": kind, "message": words}});
        Messages.explain(&body, &mut error);

        assert_eq!((error.kind, error.message.as_str()), (expected, words));
    }
}

#[test]
fn a_body_without_words_leaves_the_error_as_it_is() {
    let unread = ProviderError::new(FailureKind::NotFound, "status 404");
    for body in [json!(null), json!([]), json!({}), json!({"error": null})] {
        let mut error = unread.clone();
        Messages.explain(&body, &mut error);

        assert_eq!(error, unread, "{body}");
    }
    let mut error = unread;
    Messages.explain(
        &json!({"error": {"type": "api_error", "message": " "}}),
        &mut error,
    );
    assert_eq!(error.message, "api_error");
}

#[test]
fn the_message_that_a_refusal_names_is_found_behind_the_merging() {
    let user = |text: &str| Message::text(Role::User, text);
    let thought = Message {
        role: Role::Assistant,
        blocks: vec![
            Block::Thinking {
                text: "not sent".to_owned(),
                payload: None,
            },
            Block::Text {
                text: "hello".to_owned(),
            },
        ],
        metadata: Vec::new(),
    };
    let request = Request {
        system: None,
        messages: vec![
            user("a"),
            user("b"),
            thought,
            user("c"),
            Message::tool_call("id", "read", "{}"),
            Message::tool_result("id", "done", false),
            user("d"),
        ],
        ..Request::default()
    };
    let cases = [
        ("messages.0.content.0: bad", Some(0)),
        ("messages.0.content.1: bad", Some(1)),
        ("messages.0: bad", None),
        ("messages.1: bad", Some(2)),
        ("in `messages.1.content.0.text`: bad", Some(2)),
        ("messages.4.content.0.tool_result: bad", Some(5)),
        ("messages.4.content.1: bad", Some(6)),
        ("messages.4.content.2: bad", None),
        ("messages.9: bad", None),
        ("messages.x: bad", None),
        ("all messages. bad", None),
        ("", None),
    ];
    for (words, expected) in cases {
        assert_eq!(locate(&request, words), expected, "{words}");
    }
}
