use serde_json::{Value, json};

use super::{explain, in_stream};
use crate::answer::{FailureKind, ProviderError};

fn explained(status: u16, kind: FailureKind, body: &Value) -> ProviderError {
    let mut error = ProviderError::new(kind, "status");
    error.status = Some(status);
    explain(body, &mut error);
    error
}

#[test]
fn a_refusal_is_told_in_the_providers_words_and_kind() {
    use FailureKind::{BadRequest, Quota, RateLimited, TooLong, Unauthorized, Unavailable};
    let table = [
        (
            429,
            RateLimited,
            json!({"error": {"message": "no money", "type": "insufficient_quota", "code": "insufficient_quota"}}),
            Quota,
            "no money",
        ),
        (
            429,
            RateLimited,
            json!({"error": {"message": "slower", "type": "tokens", "code": "rate_limit_exceeded"}}),
            RateLimited,
            "slower",
        ),
        (
            400,
            BadRequest,
            json!({"error": {"message": "long", "code": "context_length_exceeded", "type": "invalid_request_error"}}),
            TooLong,
            "long",
        ),
        (
            400,
            BadRequest,
            json!({"error": {"message": "the request exceeds the available context size", "code": 400, "type": "exceed_context_size_error"}}),
            TooLong,
            "the request exceeds the available context size",
        ),
        (
            400,
            BadRequest,
            json!({"object": "error", "message": "This model's maximum context length is 8 tokens", "code": 400}),
            TooLong,
            "This model's maximum context length is 8 tokens",
        ),
        (
            401,
            Unauthorized,
            json!({"error": {"message": "bad key", "type": "invalid_request_error", "code": null}}),
            Unauthorized,
            "bad key",
        ),
        (
            503,
            Unavailable,
            json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
            Unavailable,
            "Loading model",
        ),
        (
            400,
            BadRequest,
            json!({"error": "plain words"}),
            BadRequest,
            "plain words",
        ),
        (
            400,
            BadRequest,
            json!([{"error": {"message": "in a list", "code": 400}}]),
            BadRequest,
            "in a list",
        ),
        (
            422,
            BadRequest,
            json!({"detail": "tool choice"}),
            BadRequest,
            "tool choice",
        ),
        (
            502,
            Unavailable,
            json!({"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "upstream broke"}}}),
            Unavailable,
            "Provider returned error: upstream broke",
        ),
        (500, Unavailable, json!("text"), Unavailable, "text"),
        (500, Unavailable, json!({}), Unavailable, "status"),
    ];
    for (status, given, body, kind, message) in table {
        let error = explained(status, given, &body);

        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, message),
            "{body}"
        );
    }
}

#[test]
fn an_error_inside_a_stream_has_the_kind_that_its_code_says() {
    let table = [
        (
            json!({"error": {"code": 500, "message": "x", "type": "server_error"}}),
            FailureKind::Unavailable,
        ),
        (
            json!({"error": {"code": 429, "message": "x"}}),
            FailureKind::RateLimited,
        ),
        (
            json!({"error": {"code": "402", "message": "x"}}),
            FailureKind::Quota,
        ),
        (
            json!({"code": "rate_limit_exceeded", "message": "x"}),
            FailureKind::RateLimited,
        ),
        (
            json!({"code": "server_error", "message": "x"}),
            FailureKind::Unavailable,
        ),
        (
            json!({"code": "invalid_prompt", "message": "x"}),
            FailureKind::BadRequest,
        ),
        (
            json!({"error": {"code": 500, "message": "Context size has been exceeded."}}),
            FailureKind::TooLong,
        ),
        (json!({"error": {}}), FailureKind::Unavailable),
    ];
    for (body, kind) in table {
        assert_eq!(in_stream(&body).kind, kind, "{body}");
    }
}

#[test]
fn the_message_that_is_refused_is_found_in_the_words() {
    let table = [
        ("Invalid value: 'input[3].content[0]'", None, Some(3)),
        ("x", Some("messages[12].role"), Some(12)),
        (
            "reasoning_content is missing in assistant tool call message at index 7",
            None,
            Some(7),
        ),
        ("input[] is odd, so is input[1]", None, Some(1)),
        ("input[99999999999999999999999]", None, None),
        ("nothing", Some("model"), None),
    ];
    for (message, parameter, expected) in table {
        let body = json!({"error": {"message": message, "param": parameter}});
        let error = explained(400, FailureKind::BadRequest, &body);

        assert_eq!(error.names_message, expected, "{message}");
    }
}

#[test]
fn a_page_of_words_is_cut() {
    let body = json!({"error": {"message": "\u{e9}".repeat(100_000)}});

    let error = explained(400, FailureKind::BadRequest, &body);

    assert!(error.message.len() <= super::LONGEST_MESSAGE_BYTES);
}
