use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{FailureKind, ProviderError};
use crate::dialects::by_name;
use crate::retry::kind_of_status;

/// Returns the error of a refusal with this status and body in a dialect.
fn refused(dialect: &str, status: u16, body: &Value) -> ProviderError {
    let mut error = ProviderError::new(kind_of_status(status), body.to_string());
    error.status = Some(status);
    by_name(dialect).unwrap().explain(body, &mut error);
    error
}

/// A refusal of a server, and the window that it states.
#[derive(Deserialize)]
struct RecordedRefusal {
    dialect: String,
    status: u16,
    body: Value,
    window: Option<u64>,
}

#[test]
fn every_server_s_overflow_is_recognised_with_the_window_it_states() {
    let recorded: Vec<RecordedRefusal> =
        serde_json::from_str(include_str!("recorded.json")).unwrap();
    for RecordedRefusal {
        dialect,
        status,
        body,
        window,
    } in recorded
    {
        let error = refused(&dialect, status, &body);

        let read = (error.kind, error.stated_window);
        assert_eq!(read, (FailureKind::TooLong, window), "{dialect}: {body}");
    }
}

#[test]
fn refusals_that_pass_or_mean_something_else_are_no_overflow() {
    use FailureKind::{BadRequest, NotFound, RateLimited, Unauthorized, Unavailable};
    let table = [
        (
            429,
            json!({"error": {"message": "Request too large for gpt-5: tokens per min (TPM): Limit 30000, Requested 42000", "code": "rate_limit_exceeded"}}),
            RateLimited,
        ),
        (
            400,
            json!({"error": {"message": "Rate limit: too many tokens per minute for this context length"}}),
            BadRequest,
        ),
        (
            503,
            json!({"error": {"message": "Throttling error: Too many tokens, please wait before trying again."}}),
            Unavailable,
        ),
        (
            400,
            json!({"error": {"message": "max_tokens is too large: 65536. This model supports at most 16384 completion tokens", "code": "invalid_value"}}),
            BadRequest,
        ),
        (
            401,
            json!({"error": {"message": "no key for the maximum context length"}}),
            Unauthorized,
        ),
        (
            404,
            json!({"error": {"message": "no model with that context window"}}),
            NotFound,
        ),
        (
            500,
            json!({"error": {"message": "the model runner crashed; context window 8192"}}),
            Unavailable,
        ),
    ];

    for (status, body, kind) in table {
        let error = refused("chat", status, &body);

        let read = (error.kind, error.stated_window);
        assert_eq!(read, (kind, None), "{status} {body}");
    }
}

#[test]
fn a_window_that_no_model_has_is_not_taken_from_words() {
    let stated = [
        "0",
        "8",
        "-8192",
        "99999999999999999999999999",
        "1000000000000",
        "eight thousand",
        "8192x",
        "",
    ];

    for number in stated {
        let message = format!("maximum context length is {number} tokens");
        let body = json!({"error": {"message": message, "n_ctx": 0}});
        let error = refused("chat", 400, &body);

        let read = (error.kind, error.stated_window);
        assert_eq!(read, (FailureKind::TooLong, None), "{number}");
    }
}
