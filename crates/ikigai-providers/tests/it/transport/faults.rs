//! Fault table: each fault with its kind, its retry and its message to the user.

use std::net::TcpListener;

use ikigai_providers::sse::MOST_EVENT_BYTES;
use ikigai_providers::transport::{Client, Deadlines, send};
use ikigai_providers::{Delta, FailureKind, ProviderError};
use ikigai_testkit::server::{Script, Server};

use super::support::{BRIEF, HASTY, KEY, PATIENT, call, run};
use Again::{No, Yes};
use FailureKind::{
    BadRequest, Connection, CutOff, Forbidden, Malformed, NotFound, Quota, RateLimited, Timeout,
    TooLong, Unauthorized, Unavailable,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Yes,
    No,
}

/// One row: the fault, the server's script, and the outcome. `HOST` is the server.
type Row = (&'static str, Script, FailureKind, Again, &'static str);

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const HTML: &[(&str, &str)] = &[("content-type", "text/html; charset=utf-8")];
const PAGE: &str = "<!DOCTYPE html><html><head><title>Bad gateway</title></head><p>nginx";

fn refusal(status: u16, body: &str) -> Script {
    Script::answer(status, JSON, body)
}

fn bare(status: u16) -> Script {
    Script::answer(status, &[], "")
}

fn asking(status: u16, name: &str, value: &str) -> Script {
    Script::answer(status, &[(name, value)], "")
}

#[rustfmt::skip]
fn connections() -> Vec<Row> {
    vec![
        ("reset before the head", Script::new().reset(), Connection, Yes,
            "the connection to HOST broke before an answer came: connection reset"),
        ("closed before the head", Script::new(), Connection, Yes,
            "the connection to HOST broke before an answer came: connection closed"),
        ("no HTTP", Script::new().send("SSH-2.0-OpenSSH_9.2\r\n\r\n"), Malformed, No,
            "HOST does not speak HTTP"),
        ("reset inside the answer", Script::chunked().chunk("data: text a\n\n").await_go().reset(), Connection, Yes,
            "the connection to HOST broke in the middle of the answer: connection reset"),
        ("closed inside the answer", Script::chunked().chunk("data: text a\n\n"), CutOff, Yes,
            "the connection to HOST broke in the middle of the answer: connection closed"),
    ]
}

#[rustfmt::skip]
fn streams() -> Vec<Row> {
    let giant = format!("data: {}", "x".repeat(MOST_EVENT_BYTES + 1));
    vec![
        ("cut before the last event", Script::stream().send("data: text a\n\n"), CutOff, Yes,
            "the answer ended before it was whole"),
        ("cut inside an event", Script::stream().send("data: text a\n\ndata: te"), CutOff, Yes,
            "the answer was cut off in the middle of an event"),
        ("cut inside a character", Script::stream().send(b"data: text \xc3"), CutOff, Yes,
            "the answer was cut off in the middle of an event"),
        ("empty body", Script::stream(), CutOff, Yes,
            "HOST sent an empty answer"),
        ("only pings", Script::stream().send(": ping\n\n: ping\n\n"), CutOff, Yes,
            "the answer ended before it was whole"),
        ("web page", Script::answer(200, HTML, PAGE), Malformed, No,
            "HOST sent a web page instead of an event stream: `Bad gateway`"),
        ("web page without its type", Script::answer(200, &[], PAGE), Malformed, No,
            "HOST sent a web page instead of an event stream: `Bad gateway`"),
        ("wrong content type", Script::answer(200, &[("content-type", "image/png")], "PNG"), Malformed, No,
            "HOST sent `image/png` instead of an event stream: `PNG`"),
        ("wrong content type, empty", Script::answer(200, JSON, ""), CutOff, Yes,
            "HOST sent an empty answer"),
        ("JSON and no stream", Script::answer(200, JSON, r#"{"id":1}"#), Malformed, No,
            r#"HOST sent `application/json` instead of an event stream: `{"id":1}`"#),
        ("JSON error with 200", Script::answer(200, JSON, r#"{"error":{"message":"no such model"}}"#), Malformed, No,
            "no such model"),
        ("JSON error as a stream", Script::stream().send(r#"{"error":{"message":"no such model"}}"#), Malformed, No,
            "no such model"),
        ("error inside 200", Script::stream().send("data: error the prompt is not allowed\n\n"), BadRequest, No,
            "the prompt is not allowed"),
        ("overload inside 200", Script::stream().send("data: busy overloaded\n\n"), Unavailable, Yes,
            "overloaded"),
        ("malformed event", Script::stream().send("data: gibberish\n\n"), Malformed, No,
            "the event `gibberish` cannot be read"),
        ("giant line", Script::stream().send(giant), Malformed, No,
            "an event of the stream is larger than 8 MB"),
        ("not UTF-8", Script::stream().send(b"data: \xff\n\n"), Malformed, No,
            "the stream is not UTF-8"),
    ]
}

#[rustfmt::skip]
fn refusals() -> Vec<Row> {
    let words = r#"{"error":{"message":"words of the provider"}}"#;
    let quota = r#"{"error":{"message":"no money left","code":"insufficient_quota"}}"#;
    let long = r#"{"error":{"message":"too many tokens","code":"context_length_exceeded"}}"#;
    vec![
        ("204", bare(204), Malformed, No, "HOST answered 204 No Content"),
        ("302", Script::answer(302, &[("location", "https://u:p@example.org/login?next=1")], ""), NotFound, No,
            "HOST answered 302 Found and points to `https://example.org/login`"),
        ("400", bare(400), BadRequest, No, "HOST answered 400 Bad Request"),
        ("400, words", refusal(400, words), BadRequest, No, "words of the provider"),
        ("400, words in a list", refusal(400, &format!("[{words}]")), BadRequest, No, "words of the provider"),
        ("400, context", refusal(400, long), TooLong, No, "too many tokens"),
        ("401", bare(401), Unauthorized, No, "HOST answered 401 Unauthorized"),
        ("401, words", refusal(401, words), Unauthorized, No, "words of the provider"),
        ("402", bare(402), Quota, No, "HOST answered 402 Payment Required"),
        ("403", bare(403), Forbidden, No, "HOST answered 403 Forbidden"),
        ("403, page", Script::answer(403, HTML, PAGE), Forbidden, No,
            "HOST answered 403 Forbidden with a web page: `Bad gateway`"),
        ("404", bare(404), NotFound, No, "HOST answered 404 Not Found"),
        ("404, text", Script::answer(404, &[], "no such\nmodel\n"), NotFound, No,
            "HOST answered 404 Not Found: `no such model`"),
        ("404, other JSON", refusal(404, r#"{"detail":"Not Found"}"#), NotFound, No,
            r#"HOST answered 404 Not Found: `{"detail":"Not Found"}`"#),
        ("408", bare(408), Timeout, Yes, "HOST answered 408 Request Timeout"),
        ("409", bare(409), Unavailable, Yes, "HOST answered 409 Conflict"),
        ("413", bare(413), TooLong, No, "HOST answered 413 Payload Too Large"),
        ("429", bare(429), RateLimited, Yes, "HOST answered 429 Too Many Requests"),
        ("429, words", refusal(429, words), RateLimited, Yes, "words of the provider"),
        ("429, Retry-After 30", asking(429, "retry-after", "30"), RateLimited, Yes,
            "HOST answered 429 Too Many Requests"),
        ("429, Retry-After 300", asking(429, "retry-after", "300"), RateLimited, No,
            "HOST answered 429 Too Many Requests; try again in 5 min"),
        ("429, quota", refusal(429, quota), Quota, No, "no money left"),
        ("429, x-should-retry false", asking(429, "x-should-retry", "false"), RateLimited, No,
            "HOST answered 429 Too Many Requests"),
        ("500", bare(500), Unavailable, Yes, "HOST answered 500 Internal Server Error"),
        ("500, words", refusal(500, words), Unavailable, Yes, "words of the provider"),
        ("502, page", Script::answer(502, HTML, PAGE), Unavailable, Yes,
            "HOST answered 502 Bad Gateway with a web page: `Bad gateway`"),
        ("503", bare(503), Unavailable, Yes, "HOST answered 503 Service Unavailable"),
        ("503, Retry-After date", asking(503, "retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"), Unavailable, No,
            "HOST answered 503 Service Unavailable; try again in YEARS"),
        ("503, body never ends", Script::new().head(503, &[("content-length", "100")]).send("half").await_close(), Unavailable, Yes,
            "HOST answered 503 Service Unavailable: `half`"),
        ("504", bare(504), Unavailable, Yes, "HOST answered 504 Gateway Timeout"),
        ("529", bare(529), Unavailable, Yes, "HOST answered 529 Overloaded"),
        ("529, words", refusal(529, words), Unavailable, Yes, "words of the provider"),
        ("400, x-should-retry true", asking(400, "x-should-retry", "true"), BadRequest, Yes,
            "HOST answered 400 Bad Request"),
    ]
}

/// Returns the first error of an answer, and whether a retry follows.
async fn first_failure(
    url: String,
    deadlines: Deadlines,
    meanwhile: impl Fn(),
) -> (ProviderError, Again) {
    let client = Client::new(deadlines);
    let mut answer = send(&client, call(url), HASTY, 7);
    loop {
        match answer.next().await.expect("a failure") {
            Ok(Delta::Waiting(wait)) => return (wait.error, Yes),
            Ok(Delta::Finished(response)) => panic!("silent success: {response:?}"),
            Ok(_) => meanwhile(),
            Err(error) => {
                assert_eq!(answer.next().await, None, "an error is the last word");
                return (error, No);
            }
        }
    }
}

fn check(row: Row, deadlines: Deadlines) {
    let (fault, script, kind, again, words) = row;
    let server = Server::start([script]);

    let (error, retried) = run(first_failure(server.url("/v1"), deadlines, || server.go()));

    let message = error.message.replace(&server.address(), "HOST");
    let message = match message.split_once("try again in ") {
        Some((start, end)) if end.len() > 8 => format!("{start}try again in YEARS"),
        _ => message,
    };
    assert_eq!(
        (error.kind, retried, message.as_str()),
        (kind, again, words),
        "{fault}"
    );
    assert!(!format!("{error:?}").contains(KEY), "{fault}");
}

#[test]
fn a_broken_connection_is_named() {
    for row in connections() {
        check(row, PATIENT);
    }
}

#[test]
fn a_broken_stream_is_named_and_never_a_short_answer() {
    for row in streams() {
        check(row, PATIENT);
    }
}

#[test]
fn a_refusal_is_named_and_its_words_are_shown() {
    let deadlines = Deadlines {
        refusal: BRIEF,
        ..PATIENT
    };
    for row in refusals() {
        // Only the row whose body never ends reaches its deadline.
        let never_ends = row.0.contains("never ends");
        check(row, if never_ends { deadlines } else { PATIENT });
    }
}

#[test]
fn a_silent_server_is_named_with_what_was_waited_for() {
    let table: [Row; 2] = [
        (
            "slow headers",
            Script::new().await_close(),
            Timeout,
            Yes,
            "no answer from HOST within 50 ms",
        ),
        (
            "stalled",
            Script::stream().send("data: text a\n\n").await_close(),
            Timeout,
            Yes,
            "the answer stopped: nothing from HOST for 50 ms",
        ),
    ];
    let [headers, stalled] = table;

    check(
        headers,
        Deadlines {
            first_byte: BRIEF,
            ..PATIENT
        },
    );
    check(
        stalled,
        Deadlines {
            idle: BRIEF,
            ..PATIENT
        },
    );
}

#[test]
fn nobody_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);

    let (error, again) = run(first_failure(
        format!("http://{address}/v1"),
        PATIENT,
        || {},
    ));

    assert_eq!((error.kind, again), (Connection, Yes));
    let words = format!("cannot connect to {address}: connection refused");
    assert_eq!(error.message, words);
}

#[test]
fn a_name_without_an_address_is_named() {
    // Resolvers reject labels of more than 63 characters without a query.
    let host = format!("{}.invalid", "a".repeat(64));

    let (error, again) = run(first_failure(format!("http://{host}/v1"), PATIENT, || {}));

    assert_eq!((error.kind, again), (Connection, Yes));
    assert_eq!(
        error.message,
        format!("cannot find {host}: its name has no address")
    );
}

#[test]
fn a_failed_handshake_is_named_and_not_tried_again() {
    let server = Server::start([Script::answer(400, &[], "plain HTTP here")]);
    let url = format!("https://{}/v1", server.address());

    let (error, again) = run(first_failure(url, PATIENT, || {}));

    assert_eq!((error.kind, again), (Connection, No));
    let start = format!("no secure connection to {}: ", server.address());
    assert!(error.message.starts_with(&start), "{}", error.message);
}

#[test]
fn a_connection_that_takes_too_long_is_named() {
    // The handshake counts as connecting, and this server never says a word.
    let server = Server::start([Script::new().await_close()]);
    let url = format!("https://{}/v1", server.address());
    let deadlines = Deadlines {
        connect: BRIEF,
        ..PATIENT
    };

    let (error, again) = run(first_failure(url, deadlines, || {}));

    assert_eq!((error.kind, again), (Timeout, Yes));
    let words = format!("cannot connect to {} within 50 ms", server.address());
    assert_eq!(error.message, words);
}

#[test]
fn what_cannot_be_sent_is_named() {
    let table = [
        ("", "the base URL must begin with `http://` or `https://`"),
        (
            "ftp://example.org",
            "the base URL must begin with `http://` or `https://`",
        ),
        (
            "localhost:8080/v1",
            "the base URL must begin with `http://` or `https://`",
        ),
    ];
    for (url, words) in table {
        let (error, again) = run(first_failure(url.to_owned(), PATIENT, || {}));

        assert_eq!(
            (error.kind, again, error.message.as_str()),
            (NotFound, No, words)
        );
    }
}
