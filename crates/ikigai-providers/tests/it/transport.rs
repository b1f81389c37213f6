//! The transport against a scripted server: answers, retries, cancellation, secrets.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test code: whatever is not as expected fails the test at once"
)]

mod connections;
mod faults;
mod limits;
mod support;
mod surrogates;
mod trust;
mod wires;

use std::time::Duration;

use ikigai_providers::answer::PATIENCE;
use ikigai_providers::retry::Policy;
use ikigai_providers::transport::{Client, Deadlines, send};
use ikigai_providers::{Delta, FailureKind, ProviderError, ResponseStream, RetryPause};
use ikigai_testkit::server::{Script, Server};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

pub(crate) use support::run;
use support::{HASTY, KEY, PATIENT, ask, call, read, told, whole};

const WHOLE: &str = "data: text Hello\n\ndata: think h\u{e9}\n\ndata: call ls\n\ndata: end\n\n";

fn good() -> Script {
    Script::chunked().chunk(WHOLE).chunk("")
}

#[test]
fn an_answer_comes_piece_by_piece_and_whole() {
    run(async {
        let server = Server::start([good()]);
        let mut answer = ask(&server, HASTY);
        assert_eq!(
            server.received(),
            [],
            "nothing is sent before a receiver exists"
        );

        let deltas = read(&mut *answer).await;

        let expected = [
            Ok(Delta::Text("Hello".to_owned())),
            Ok(Delta::Thinking("h\u{e9}".to_owned())),
            Ok(Delta::Call("ls".to_owned())),
            Ok(Delta::Finished(whole("Hello"))),
        ];
        assert_eq!(deltas, expected);
        assert_eq!(answer.next().await, None);
    });
}

/// The patience that an answer asks for exceeds its deadlines.
#[test]
fn an_answer_asks_for_more_patience_than_it_needs() {
    let patience = |first_byte: Duration| {
        let deadlines = Deadlines {
            first_byte,
            ..Deadlines::DEFAULT
        };
        let call = call("http://127.0.0.1:9/".to_owned());
        send(&Client::new(deadlines), call, Policy::DEFAULT, 7).patience()
    };

    assert_eq!(patience(Deadlines::DEFAULT.first_byte), PATIENCE);
    let hour = Duration::from_hours(1);
    assert!(patience(hour) > hour + Policy::DEFAULT.longest_delay);
}

#[test]
fn the_request_goes_out_as_it_was_given() {
    run(async {
        let server = Server::start([good()]);

        read(&mut *ask(&server, HASTY)).await;

        let received = server.received();
        let [request] = received.as_slice() else {
            panic!("one request: {received:?}");
        };
        assert_eq!(request.line, "POST /v1/tiny");
        assert_eq!(request.body, br#"{"model":"tiny"}"#);
        let headers = [
            ("authorization", format!("Bearer {KEY}")),
            ("x-version", "2026".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("accept", "text/event-stream".to_owned()),
        ];
        for (name, value) in headers {
            assert_eq!(request.header(name), Some(value.as_str()), "{name}");
        }
        assert_eq!(
            request.header("accept-encoding"),
            None,
            "nothing is unpacked"
        );
    });
}

#[test]
fn an_answer_may_come_byte_by_byte() {
    run(async {
        let script = WHOLE
            .as_bytes()
            .iter()
            .fold(Script::stream(), |script, byte| script.send([*byte]));
        let server = Server::start([script]);

        let deltas = read(&mut *ask(&server, HASTY)).await;

        let expected = ["text Hello", "think h\u{e9}", "call ls", "finished Hello"];
        assert_eq!(told(&deltas), expected);
    });
}

#[test]
fn the_terminal_event_ends_an_answer_though_the_connection_stays_open() {
    run(async {
        let server = Server::start([Script::stream().send(WHOLE).await_close()]);

        let deltas = read(&mut *ask(&server, HASTY)).await;

        assert_eq!(told(&deltas).last().unwrap(), "finished Hello");
    });
}

#[test]
fn a_last_event_without_its_blank_line_counts() {
    run(async {
        let server = Server::start([Script::stream().send("data: text a\n\ndata: end")]);

        let deltas = read(&mut *ask(&server, HASTY)).await;

        assert_eq!(told(&deltas), ["text a", "finished a"]);
    });
}

#[test]
fn tries_are_visible_and_bounded() {
    run(async {
        let busy = Script::answer(503, &[], "");
        let server = Server::start([busy.clone(), busy.clone(), busy.clone(), busy]);

        let deltas = read(&mut *ask(&server, HASTY)).await;

        let words = format!("{} answered 503 Service Unavailable", server.address());
        let mut error = ProviderError::new(FailureKind::Unavailable, words);
        error.status = Some(503);
        let [
            Ok(Delta::Waiting(second)),
            Ok(Delta::Waiting(third)),
            Err(last),
        ] = deltas.as_slice()
        else {
            panic!("two waits and a failure: {deltas:?}");
        };
        let after = |attempts| ProviderError {
            attempts,
            ..error.clone()
        };
        let wait = |attempt, pause| RetryPause {
            error: after(attempt - 1),
            attempt,
            attempts: 3,
            pause,
        };
        assert_eq!(*second, wait(2, second.pause));
        assert_eq!(*third, wait(3, third.pause));
        assert!(second.pause <= third.pause, "{second:?} {third:?}");
        assert_eq!(*last, after(3));
        let received = server.received();
        assert_eq!(received.len(), 3);
        assert!(received.iter().all(|request| *request == received[0]));
    });
}

#[test]
fn an_answer_begins_anew_only_if_something_of_it_was_shown() {
    run(async {
        let server = Server::start([
            Script::answer(529, &[], "busy"),
            Script::chunked().chunk("data: text Hel\n\n"),
            good(),
        ]);

        let deltas = read(&mut *ask(&server, HASTY)).await;

        let host = server.address();
        let expected = [
            &format!("try 2 of 3: {host} answered 529 Overloaded: `busy`"),
            "text Hel",
            &format!(
                "try 3 of 3: the connection to {host} broke in the middle of the answer: \
                 connection closed"
            ),
            "again",
            "text Hello",
            "think h\u{e9}",
            "call ls",
            "finished Hello",
        ];
        assert_eq!(told(&deltas), expected);
    });
}

#[test]
fn what_was_shown_before_the_last_try_is_taken_back_once() {
    run(async {
        let server = Server::start([
            Script::stream().send("data: text Hel\n\n"),
            Script::stream(),
            good(),
        ]);

        let deltas = read(&mut *ask(&server, HASTY)).await;

        let again = deltas.iter().filter(|delta| **delta == Ok(Delta::Again));
        assert_eq!(again.count(), 1, "{:?}", told(&deltas));
    });
}

#[test]
fn what_came_before_a_failure_is_handed_out_first() {
    run(async {
        let events = "data: text one\n\ndata: text two\n\ndata: error not allowed\n\n";
        let server = Server::start([Script::stream().send(events)]);

        let deltas = read(&mut *ask(&server, HASTY)).await;

        assert_eq!(
            told(&deltas),
            ["text one", "text two", "failed: not allowed"]
        );
    });
}

#[test]
fn the_provider_says_how_long_to_wait() {
    let table = [
        (("retry-after-ms", "3"), Duration::from_millis(3)),
        (("retry-after", "0.004"), Duration::from_millis(4)),
    ];
    for (header, pause) in table {
        run(async {
            let server = Server::start([Script::answer(429, &[header], ""), good()]);

            let deltas = read(&mut *ask(&server, HASTY)).await;

            let Some(Ok(Delta::Waiting(wait))) = deltas.first() else {
                panic!("a wait: {deltas:?}");
            };
            assert_eq!(wait.pause, pause);
            assert_eq!(wait.error.retry_after, Some(pause));
            assert_eq!(told(&deltas).last().unwrap(), "finished Hello");
        });
    }
}

#[test]
fn a_dropped_answer_closes_its_connection() {
    let scripts = [
        ("before the head", Script::new().await_close()),
        ("after it", Script::stream().await_close()),
        (
            "inside",
            Script::stream().send("data: text a\n\n").await_close(),
        ),
    ];
    for (when, script) in scripts {
        run(async {
            let server = Server::start([script]);
            let mut answer = ask(&server, HASTY);
            while server.received().is_empty() {
                let _ = timeout(Duration::from_millis(1), answer.next()).await;
            }

            drop(answer);

            let closed = spawn_blocking(move || server.await_closed()).await;
            assert!(closed.is_ok(), "{when}");
        });
    }
}

#[test]
fn a_dropped_wait_sends_nothing_more() {
    run(async {
        let server = Server::start([Script::answer(503, &[], ""), good()]);
        let mut answer = ask(&server, Policy::DEFAULT);
        let delta = answer.next().await;
        assert!(matches!(delta, Some(Ok(Delta::Waiting(_)))), "{delta:?}");
        assert!(
            timeout(Duration::from_millis(5), answer.next())
                .await
                .is_err()
        );

        drop(answer);

        assert_eq!(server.received().len(), 1);
    });
}

/// Polls an answer with short timeouts, as a caller with other work does.
async fn read_impatiently(
    answer: &mut dyn ResponseStream,
    mut on_wait: impl FnMut(),
) -> Vec<Result<Delta, ProviderError>> {
    let mut deltas = Vec::new();
    loop {
        match timeout(Duration::from_micros(300), answer.next()).await {
            Ok(Some(delta)) => deltas.push(delta),
            Ok(None) => return deltas,
            Err(_) => on_wait(),
        }
    }
}

#[test]
fn nothing_is_lost_when_waiting_is_given_up_at_any_point() {
    run(async {
        let server = Server::start([
            Script::new()
                .await_go()
                .head(500, &[("content-length", "4")])
                .await_go()
                .send("oh ")
                .await_go()
                .send("no"),
            Script::new()
                .await_go()
                .send("HTTP/1.1 200 OK\r\n")
                .await_go()
                .send("\r\ndata: te")
                .await_go()
                .send("xt a\n\n")
                .await_go()
                .send("data: text b\n")
                .await_go(),
            Script::stream()
                .await_go()
                .send("data: text c\n\n")
                .await_go()
                .send("data: end\n\n"),
        ]);

        let mut answer = ask(&server, HASTY);
        let deltas = read_impatiently(&mut *answer, || server.go()).await;

        let host = server.address();
        let expected = [
            &format!("try 2 of 3: {host} answered 500 Internal Server Error: `oh n`"),
            "text a",
            "text b",
            "try 3 of 3: the answer ended before it was whole",
            "again",
            "text c",
            "finished c",
        ];
        assert_eq!(told(&deltas), expected);
    });
}

#[test]
fn a_caller_that_was_away_too_long_still_gets_what_came() {
    run(async {
        let deadlines = Deadlines {
            idle: Duration::from_millis(500),
            ..PATIENT
        };
        let script = Script::stream()
            .send("data: text a\n\n")
            .await_go()
            .send("data: end\n\n");
        let server = Server::start([script]);
        let client = Client::new(deadlines);
        let mut answer = send(&client, call(server.url("/v1")), HASTY, 7);
        assert_eq!(answer.next().await, Some(Ok(Delta::Text("a".to_owned()))));
        assert!(
            timeout(Duration::from_millis(1), answer.next())
                .await
                .is_err()
        );

        server.go();
        // Blocks the whole runtime on purpose, as a slow store does.
        std::thread::sleep(Duration::from_millis(600));

        let expected = Delta::Finished(whole("a"));
        assert_eq!(answer.next().await, Some(Ok(expected)));
    });
}

#[test]
fn a_refusal_without_end_is_read_only_so_far() {
    run(async {
        let flood = (0..64).fold(
            Script::new().head(400, &[("transfer-encoding", "chunked")]),
            |script, _| script.chunk(&"x".repeat(16 << 10)),
        );
        let server = Server::start([flood.await_close()]);

        let deltas = read(&mut *ask(&server, HASTY)).await;

        let [Err(error)] = deltas.as_slice() else {
            panic!("a failure: {deltas:?}");
        };
        assert_eq!(error.status, Some(400));
        assert!(error.message.len() < 300, "{}", error.message.len());
        let closed = spawn_blocking(move || server.await_closed()).await;
        assert!(closed.is_ok(), "the rest is not read");
    });
}

#[test]
fn no_key_is_shown_though_the_server_repeats_it() {
    let padding = "x".repeat(110);
    let json = [("content-type", "application/json")];
    let quoted = format!(r#"{{"error":{{"message":"key {KEY} is wrong: Bearer {KEY}"}}}}"#);
    let long = format!(r#"{{"error":{{"message":"{}{KEY}"}}}}"#, "x".repeat(1990));
    let page = format!("<html><title>{KEY}</title>");
    let location = format!("http://127.0.0.1/{KEY}");
    let scripts = [
        Script::answer(401, &json, &quoted),
        Script::answer(401, &json, &long),
        Script::answer(401, &[], &format!("{padding} {KEY}")),
        Script::answer(403, &[("content-type", "text/html")], &page),
        Script::answer(302, &[("location", &location)], ""),
        Script::answer(200, &json, &quoted),
        Script::answer(200, &[], &page),
        Script::stream().send(format!("data: error bad key {KEY}\n\n")),
        Script::stream().send(format!("data: {KEY} what\n\n")),
        Script::answer(429, &json, &quoted),
        Script::new().send(format!("{KEY}\r\n\r\n")),
    ];
    for script in scripts {
        run(async {
            let server = Server::start([script.clone()]);

            let deltas = read(&mut *ask(&server, HASTY)).await;

            let shown = format!("{deltas:?} {:?}", told(&deltas));
            assert!(!shown.contains("stays-secret"), "{shown}");
            assert!(!shown.contains("sk-a-key"), "{shown}");
            assert!(server.received()[0].header("authorization").is_some());
        });
    }
}

#[test]
fn a_key_that_no_header_can_carry_is_named_and_not_shown() {
    run(async {
        let mut call = call("http://127.0.0.1:1/v1".to_owned());
        call.headers[0].1 = format!("Bearer {KEY}\n").into();

        let deltas = read(&mut *send(&Client::default(), call, HASTY, 7)).await;

        let words = "failed: header `authorization` has a character that HTTP does not allow";
        assert_eq!(told(&deltas), [words]);
    });
}
