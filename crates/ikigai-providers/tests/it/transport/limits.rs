//! Endless answers: stopped at the content limit, in every part of an answer.

use ikigai_providers::transport::{Client, content_limit, send};
use ikigai_providers::{Delta, FailureKind};
use ikigai_testkit::server::{Script, Server};
use tokio::task::spawn_blocking;

use super::support::{HASTY, PATIENT, read, run, told};
use super::wires::{DIALECTS, Part, answer, begin, call_in, piece};

const PARTS: [Part; 3] = [Part::Text, Part::Thinking, Part::Arguments];

#[test]
fn a_token_of_the_longest_answer_may_have_32_bytes() {
    assert_eq!(content_limit(Some(1_000)), 32_000);
    assert_eq!(content_limit(None), 16 << 20);
    assert_eq!(content_limit(Some(u64::MAX)), usize::MAX);
}

#[test]
fn an_endless_answer_of_any_dialect_and_part_ends_at_its_limit() {
    for dialect in DIALECTS {
        for part in PARTS {
            let mut script = Script::stream();
            for event in begin(dialect, part) {
                script = script.send(event);
            }
            for _ in 0..40 {
                script = script.send(piece(dialect, part, &"x".repeat(100)));
            }
            let server = Server::start([script.await_close()]);
            let client = Client::new(PATIENT);
            let call = call_in(dialect, server.url("/v1"), content_limit(Some(100)));

            let deltas = run(async {
                let deltas = read(&mut *send(&client, call, HASTY, 7)).await;
                let closed = spawn_blocking(move || server.await_closed()).await;
                assert!(closed.is_ok(), "{dialect}, {part:?}");
                deltas
            });

            let Some(Err(error)) = deltas.last() else {
                panic!("{dialect}, {part:?}: {:?}", told(&deltas));
            };
            assert_eq!(error.kind, FailureKind::Malformed);
            assert_eq!(error.attempts, 1, "it is not tried again");
            let words = "stopped: the answer is longer than 3200 bytes, the limit for this model";
            assert_eq!(error.message, words, "{dialect}, {part:?}");
        }
    }
}

#[test]
fn empty_blocks_and_blanks_without_end_are_stopped_too() {
    let block = r#"data: {"type":"content_block_start","content_block":{"type":"text","text":""}}"#;
    let item = r#"data: {"type":"response.output_item.added","item":{"type":"message"}}"#;
    let call =
        r#"data: {"choices":[{"delta":{"tool_calls":[{"id":"ID","function":{"name":"ls"}}]}}]}"#;
    let blank = r#"data: {"choices":[{"delta":{"content":"        "}}]}"#;
    let table = [
        ("messages", block),
        ("responses", item),
        ("chat", call),
        ("chat", blank),
    ];
    for (dialect, event) in table {
        let events: String = (0..1_000)
            .map(|id| event.replace("ID", &format!("call-{id}")) + "\n\n")
            .collect();
        let server = Server::start([Script::stream().send(events)]);
        let client = Client::new(PATIENT);
        let call = call_in(dialect, server.url("/v1"), content_limit(Some(100)));

        let deltas = run(async { read(&mut *send(&client, call, HASTY, 7)).await });

        let last = told(&deltas).pop().unwrap_or_default();
        assert!(
            last.starts_with("failed: stopped: the answer is longer"),
            "{event}: {last}"
        );
    }
}

#[test]
fn arguments_that_come_are_progress_and_pings_are_not() {
    for dialect in ["chat", "responses", "messages"] {
        let mut events = answer(dialect, Part::Arguments, &["{", "}"]);
        events.insert(1, ": ping\n\n".to_owned());
        events.insert(1, "event: ping\ndata: {\"type\": \"ping\"}\n\n".to_owned());
        let script = events.into_iter().fold(Script::chunked(), |script, event| {
            script.chunk(&event).await_go()
        });
        let server = Server::start([script.chunk("")]);
        let client = Client::new(PATIENT);
        let call = call_in(dialect, server.url("/v1"), content_limit(None));

        let deltas = run(async {
            (0..20).for_each(|_| server.go());
            read(&mut *send(&client, call, HASTY, 7)).await
        });

        let progress = deltas.iter().filter(|delta| **delta == Ok(Delta::Progress));
        assert!(
            (1..=2).contains(&progress.count()),
            "{dialect}: {:?}",
            told(&deltas)
        );
    }
}
