use std::time::Duration;

use serde_json::{Value, json};

use super::Gemini;
use crate::answer::{FailureKind, ProviderError};
use crate::dialect::Dialect;

#[test]
fn the_model_is_part_of_the_address() {
    let expected = "http://localhost/v1beta/models/g:streamGenerateContent?alt=sse";

    for model in ["g", "models/g"] {
        assert_eq!(Gemini.endpoint("http://localhost/v1beta", model), expected);
    }
}

#[test]
fn a_key_goes_into_its_header() {
    let key = ("x-goog-api-key", "k".to_owned());

    assert_eq!(Gemini.headers(None), []);
    assert_eq!(Gemini.headers(Some("k")), [key]);
}

fn explained(body: &Value) -> ProviderError {
    let mut error = ProviderError::new(FailureKind::Connection, "status 400");
    Gemini.explain(body, &mut error);
    error
}

#[test]
fn refusals_are_told_apart() {
    let cases = [
        ("INVALID_ARGUMENT", "no", FailureKind::BadRequest),
        (
            "INVALID_ARGUMENT",
            "API key not valid. Pass one.",
            FailureKind::Unauthorized,
        ),
        (
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            FailureKind::TooLong,
        ),
        ("FAILED_PRECONDITION", "not there", FailureKind::BadRequest),
        ("UNAUTHENTICATED", "who", FailureKind::Unauthorized),
        ("PERMISSION_DENIED", "no", FailureKind::Forbidden),
        ("NOT_FOUND", "models/x", FailureKind::NotFound),
        ("RESOURCE_EXHAUSTED", "slow", FailureKind::RateLimited),
        ("UNAVAILABLE", "busy", FailureKind::Unavailable),
        ("INTERNAL", "oops", FailureKind::Unavailable),
        ("STRANGE", "?", FailureKind::Connection),
    ];
    for (status, words, expected) in cases {
        let body = json!({"error": {"code": 400, "message": words, "status": status}});
        for body in [body.clone(), json!([body])] {
            let error = explained(&body);

            assert_eq!((error.kind, error.message.as_str()), (expected, words));
        }
    }
}

#[test]
fn a_bad_key_is_known_by_its_reason() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]);
    let error = json!({"message": "bad", "status": "INVALID_ARGUMENT", "details": details});

    assert_eq!(
        explained(&json!({"error": error})).kind,
        FailureKind::Unauthorized
    );
}

#[test]
fn the_pause_is_read_from_the_details() {
    let cases = [
        (json!("34s"), Some(Duration::from_secs(34))),
        (json!("0.5s"), Some(Duration::from_millis(500))),
        (json!("-1s"), None),
        (json!("soon"), None),
        (json!(34), None),
    ];
    for (delay, expected) in cases {
        let details = json!([
            {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
        ]);
        let body = json!({"error": {"status": "RESOURCE_EXHAUSTED", "details": details}});

        assert_eq!(explained(&body).retry_after, expected, "{delay}");
    }
}

#[test]
fn a_header_has_told_the_pause_before() {
    let details = json!([{"retryDelay": "34s"}]);
    let body = json!({"error": {"status": "RESOURCE_EXHAUSTED", "details": details}});
    let mut error = ProviderError::new(FailureKind::RateLimited, "status 429");
    error.retry_after = Some(Duration::from_secs(1));
    Gemini.explain(&body, &mut error);

    assert_eq!(error.retry_after, Some(Duration::from_secs(1)));
}

#[test]
fn a_quota_of_the_day_is_not_waited_for() {
    let details = json!([
        {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
        {"retryDelay": "34s"},
    ]);
    let body = json!({"error": {"status": "RESOURCE_EXHAUSTED", "details": details}});

    assert_eq!(explained(&body).kind, FailureKind::Quota);
}

#[test]
fn the_content_that_a_refusal_names_is_the_message_of_that_index() {
    let cases = [
        (
            "* GenerateContentRequest.contents[3].parts[0]: bad",
            Some(3),
        ),
        ("contents[12]: bad", Some(12)),
        ("contents[x]: bad", None),
        ("the contents are bad", None),
    ];
    for (words, expected) in cases {
        let body = json!({"error": {"message": words, "status": "INVALID_ARGUMENT"}});

        assert_eq!(explained(&body).names_message, expected, "{words}");
    }
    let details = json!([{"fieldViolations": [{"field": "contents[2].parts[1]"}]}]);
    let body = json!({"error": {"message": "bad", "details": details}});
    assert_eq!(explained(&body).names_message, Some(2));
}
