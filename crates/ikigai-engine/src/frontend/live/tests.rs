use std::time::{Duration, Instant};

use ikigai_core::data::Cause;
use ikigai_core::{AgentId, Micros, Row, RowRef, Seq, StoredKind};

use super::*;

fn at(number: u64) -> RowRef {
    let agent = AgentId::from_random([7; 16]).unwrap();
    RowRef::new(agent, Seq(number))
}

fn row(number: u64, kind: &str, content: &str, data: &str) -> Row {
    Row {
        at: at(number),
        kind: StoredKind::of(kind),
        content: Some(content.to_owned()),
        data: Some(data.to_owned()),
        created_at: Micros(0),
        author: None,
    }
}

fn stored(number: u64, kind: &str, content: &str, data: &str) -> UiEvent {
    UiEvent::Stored(row(number, kind, content, data))
}

/// Applies events at one time; returns the state.
fn live_after(events: &[UiEvent]) -> Live {
    let (mut live, now) = (Live::default(), Instant::now());
    for event in events {
        live.apply(event, now);
    }
    live
}

fn text(text: &str) -> UiEvent {
    UiEvent::Text(text.to_owned())
}

#[test]
fn a_stored_answer_replaces_the_streamed_one() {
    let streamed = [UiEvent::Began, text("Hel"), text("lo.")];

    let before = live_after(&streamed);
    let mut events = streamed.to_vec();
    events.push(stored(2, "assistant", "Hello.", "{}"));
    let after = live_after(&events);

    assert_eq!(before.text, "Hello.");
    assert_eq!(after.text, "");
    assert_eq!(after.summary.last, "Hello.");
    assert_eq!(after.summary.answered, Some(true));
}

#[test]
fn a_restart_discards_the_streamed_answer() {
    let mut live = live_after(&[UiEvent::Began, text("Hel")]);

    let change = live.apply(&UiEvent::Again, Instant::now());

    assert_eq!(change, LiveChange::Restarted);
    assert_eq!(live.text, "");
    assert_eq!(live.turn.map(|turn| turn.phase), Some(Phase::Requested));
}

#[test]
fn a_failing_store_is_a_change_once_until_it_stores_again() {
    let mut live = Live::default();
    let now = Instant::now();
    let away = UiEvent::StoreAway("no connection".to_owned());

    let first = live.apply(&away, now);
    let second = live.apply(&away, now);
    live.apply(&stored(1, "user", "hello", "{}"), now);
    let third = live.apply(&away, now);

    assert_eq!(first, LiveChange::StoreAway("no connection"));
    assert_eq!(second, LiveChange::State);
    assert_eq!(third, first);
}

#[test]
fn the_end_of_a_turn_has_its_outcome_and_duration() {
    let mut live = Live::default();
    let (now, took) = (Instant::now(), Duration::from_secs(12));
    live.apply(&UiEvent::Began, now);
    live.apply(&stored(3, "tool_call", "make", r#"{"name":"bash"}"#), now);

    let outcome = Outcome::Interrupted(Cause::User);
    let ended = UiEvent::Ended(outcome.clone());
    let change = live.apply(&ended, now + took);

    let (outcome, took) = (&outcome, Some(took));
    assert_eq!(change, LiveChange::Ended { outcome, took });
    assert!(!live.is_busy() && live.running.is_empty());
    assert_eq!(live.outcome.as_ref(), Some(outcome));
}

#[test]
fn a_result_ends_its_call_and_its_question() {
    let call = at(3);
    let question = Question {
        call,
        agent: "main".to_owned(),
        tool: "bash".to_owned(),
        shown: "make".to_owned(),
        workdir: "/".to_owned(),
        preview: None,
        pattern: "make".to_owned(),
        hash: String::new(),
    };
    let events = [
        UiEvent::Began,
        stored(3, "tool_call", "make", r#"{"name":"bash"}"#),
        UiEvent::Question(question),
        UiEvent::Running(call),
        UiEvent::Output {
            call,
            text: "one\ntwo\n".to_owned(),
        },
        UiEvent::Progress {
            call,
            line: "50 %".to_owned(),
        },
    ];
    let mut live = live_after(&events);

    let newest = live.running.first().map(|running| running.newest(2));
    assert_eq!(newest, Some((vec!["two", "50 %"], 1)));
    assert_eq!(live.questions.len(), 1);

    let data = serde_json::json!({ "call": call }).to_string();
    live.apply(&stored(4, "tool_result", "done", &data), Instant::now());

    assert!(live.running.is_empty() && live.questions.is_empty());
}
