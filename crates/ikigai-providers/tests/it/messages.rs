//! Anthropic Messages: requests against the rules, and recorded answers.

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_providers::catalogue::{ThinkingStyle, ThinkingValue};
use ikigai_providers::dialect::{Dialect, Order, Quirks};
use ikigai_providers::dialects::messages::Messages;
use ikigai_providers::{AnswerBlock, Delta, FailureKind, Response, StopReason};
use ikigai_testkit::cases;
use ikigai_testkit::wire::messages::check;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversations::{self, Hung};
use crate::stream::{
    Outcome, assert_no_beginning_is_whole, changes, event, read, read_changed, read_in_every_way,
};
use crate::support::assert_golden;

const HUNG: Hung = Hung {
    thinking: "{\"signature\":\"Eq/+=@\"}",
    hidden: "{\"data\":\"Em@x\"}",
    call: "{}",
    later_call: "{}",
};

fn encode(request: &Request, thinking: Option<&ThinkingValue>) -> Value {
    let order = Order {
        request,
        model: "claude-opus-5-5",
        thinking,
        max_output: 16_000,
        cache_key: "agent",
        quirks: Quirks::default(),
    };
    let body = Messages.encode(&order);
    assert_eq!(check(&body), Ok(()), "{body:#}");
    body
}

#[test]
fn requests_are_spelled_as_the_rules_say() {
    for (name, request) in conversations::all(&HUNG) {
        assert_golden(&format!("messages-{name}"), &encode(&request, None));
    }
}

#[test]
fn thinking_goes_where_its_style_says() {
    let (adaptive, budget) = (ThinkingStyle::Adaptive, ThinkingStyle::Budget);
    let cases = [
        ("adaptive", adaptive, json!("high")),
        ("adaptive-disabled", adaptive, json!("disabled")),
        ("between-tools", adaptive, json!("between_tools")),
        ("budget", budget, json!(4096)),
        ("budget-above-the-output", budget, json!(32_000)),
        ("budget-disabled", budget, json!("disabled")),
        ("none", ThinkingStyle::None, Value::Null),
    ];
    for (name, style, value) in cases {
        let thinking = ThinkingValue { style, value };
        let body = encode(&conversations::text(), Some(&thinking));
        assert_golden(&format!("messages-think-{name}"), &body);
    }
}

#[test]
fn after_a_switch_and_back_own_thinking_goes_out_as_it_came() {
    for provider in ["a", "b", "c"] {
        let request = conversations::switched(&HUNG, provider);
        let body = encode(&request, None);
        assert_golden(&format!("messages-switched-to-{provider}"), &body);
    }
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let cases = conversations::all(&HUNG);
    let (_, request) = cases
        .iter()
        .find(|(name, _)| *name == "several-calls")
        .unwrap();
    let good = encode(request, None);
    let text = json!({"type": "text", "text": "x"});
    let thought = json!({"type": "thinking", "thinking": "x", "signature": "s"});
    let marked = json!({
        "type": "redacted_thinking", "data": "d", "cache_control": {"type": "ephemeral"},
    });
    let effort = json!({"effort": "high"});
    let breaks = [
        ("/temperature", json!(1)),
        ("/max_tokens", json!(0)),
        ("/output_config", effort),
        (
            "/thinking",
            json!({"type": "enabled", "budget_tokens": 16_000}),
        ),
        (
            "/thinking",
            json!({"type": "enabled", "budget_tokens": 1000}),
        ),
        ("/thinking", json!({"type": "adaptive"})),
        ("/tool_choice", json!({"type": "any"})),
        ("/system/0/text", json!(" ")),
        ("/tools", json!([])),
        ("/tools/1/name", json!("read")),
        ("/tools/0/input_schema/type", json!("string")),
        ("/tools/0/cache_control", json!({"type": "ephemeral"})),
        ("/messages/0/role", json!("assistant")),
        ("/messages/0/content", json!([])),
        ("/messages/0/content/0/text", json!("\n")),
        ("/messages/1/content/0/signature", Value::Null),
        ("/messages/1/content/1/input", json!("{}")),
        ("/messages/1/content/1/id", json!("c 1")),
        ("/messages/1/content/3", thought),
        ("/messages/1/content/2", marked),
        ("/messages/2/content/0", text),
        ("/messages/2/content/0/tool_use_id", json!("c2")),
        ("/messages/2/content/0/content", json!("")),
        ("/messages/3/role", json!("user")),
        ("/messages/5/content/0/id", json!("c1")),
    ];
    for (place, value) in breaks {
        let mut bad = good.clone();
        let (parent, field) = place.rsplit_once('/').unwrap();
        let parent = bad.pointer_mut(parent).unwrap();
        match field.parse::<usize>() {
            Ok(index) => parent[index] = value,
            Err(_) => parent[field] = value,
        }

        assert!(check(&bad).is_err(), "{place}: {bad:#}");
    }
}

fn start(index: u64, block: &Value) -> String {
    let data = json!({"type": "content_block_start", "index": index, "content_block": block});
    event("content_block_start", &data)
}

fn delta(index: u64, delta: &Value) -> String {
    let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
    event("content_block_delta", &data)
}

fn stop(index: u64) -> String {
    let data = json!({"type": "content_block_stop", "index": index});
    event("content_block_stop", &data)
}

fn begin() -> String {
    let usage = json!({
        "input_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7,
        "output_tokens": 1, "service_tier": "standard",
    });
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let data = json!({"type": "message_start", "message": message});
    event("message_start", &data) + &event("ping", &json!({"type": "ping"}))
}

fn end(reason: &str) -> String {
    let data = json!({
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 89, "output_tokens_details": {"thinking_tokens": 40}},
    });
    event("message_delta", &data) + &event("message_stop", &json!({"type": "message_stop"}))
}

/// An unknown event, and one with invalid JSON.
const UNKNOWN: &str = "event: vault\ndata: {\"type\":\"vault\",\"index\":0}\n\n\
                       event: noise\ndata: }{\n\n";

fn everything() -> String {
    [
        begin(),
        start(
            0,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, &json!({"type": "thinking_delta", "thinking": "Hm, "})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "é."})),
        delta(
            0,
            &json!({"type": "signature_delta", "signature": "EqQB/+=="}),
        ),
        stop(0),
        start(1, &json!({"type": "redacted_thinking", "data": "Emx=="})),
        stop(1),
        start(2, &json!({"type": "text", "text": ""})),
        delta(2, &json!({"type": "text_delta", "text": "Rea"})),
        delta(2, &json!({"type": "citations_delta", "citation": {}})),
        delta(2, &json!({"type": "text_delta", "text": "ding 🦀."})),
        stop(2),
        start(
            3,
            &json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}),
        ),
        delta(3, &json!({"type": "input_json_delta", "partial_json": ""})),
        delta(
            3,
            &json!({"type": "input_json_delta", "partial_json": "{\"path\": "}),
        ),
        delta(
            3,
            &json!({"type": "input_json_delta", "partial_json": "\"a\"}"}),
        ),
        stop(3),
        start(
            4,
            &json!({"type": "server_tool_use", "id": "s", "name": "web", "input": {}}),
        ),
        delta(
            4,
            &json!({"type": "input_json_delta", "partial_json": "{}"}),
        ),
        stop(4),
        // As llama.cpp begins a call: without an input.
        start(
            5,
            &json!({"type": "tool_use", "id": "toolu_2", "name": "list"}),
        ),
        stop(5),
        end("tool_use"),
    ]
    .concat()
}

fn thinking(text: &str, payload: &str) -> AnswerBlock {
    AnswerBlock::Thinking {
        text: text.to_owned(),
        payload: Some(payload.to_owned()),
    }
}

fn text(text: &str) -> AnswerBlock {
    AnswerBlock::Text {
        text: text.to_owned(),
        item: None,
    }
}

fn call(id: &str, name: &str, arguments: &str) -> AnswerBlock {
    AnswerBlock::Call {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        item: None,
    }
}

fn usage() -> Amounts {
    Amounts {
        input: Some(25),
        cache_read: Some(100),
        cache_write: Some(7),
        output: Some(89),
        reasoning: Some(40),
        cost_nano_usd: None,
    }
}

#[test]
fn an_answer_of_everything_is_read_in_any_pieces() {
    let (deltas, response) = read_in_every_way(&Messages, &everything(), UNKNOWN);

    let expected = [
        Delta::Thinking("Hm, ".to_owned()),
        Delta::Thinking("é.".to_owned()),
        Delta::Text("Rea".to_owned()),
        Delta::Text("ding 🦀.".to_owned()),
        Delta::Call("read".to_owned()),
        Delta::Call("list".to_owned()),
    ];
    assert_eq!(deltas, expected);
    let expected = Response {
        blocks: vec![
            thinking("Hm, é.", "{\"signature\":\"EqQB/+==\"}"),
            thinking("", "{\"data\":\"Emx==\"}"),
            text("Reading 🦀."),
            call("toolu_1", "read", "{\"path\": \"a\"}"),
            call("toolu_2", "list", "{}"),
        ],
        stop: StopReason::Calls,
        usage: usage(),
    };
    assert_eq!(response, Ok(expected));
}

#[test]
fn no_beginning_of_an_answer_passes_for_whole() {
    assert_no_beginning_is_whole(
        &Messages,
        &everything(),
        "data: {\"type\":\"message_stop\"}",
    );
}

fn outcome(parts: &[String]) -> Outcome {
    read(&Messages, &[parts.concat().as_bytes()])
}

#[test]
fn stop_reasons_are_told_apart() {
    let cases = [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("pause_turn", StopReason::Paused),
        ("refusal", StopReason::Refused),
        ("model_context_window_exceeded", StopReason::ContextFull),
        ("tired", StopReason::Other("tired".to_owned())),
    ];
    for (word, stop) in cases {
        let (_, response) = outcome(&[begin(), end(word)]);

        assert_eq!(response.unwrap().stop, stop, "{word}");
    }
}

#[test]
fn a_call_that_was_cut_off_is_dropped() {
    let json = |json: &str| json!({"type": "input_json_delta", "partial_json": json});
    let tool = |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
    for partial in ["", "{\"path\": \"a"] {
        let (_, response) = outcome(&[
            begin(),
            start(0, &tool("whole")),
            delta(0, &json("{}")),
            stop(0),
            start(1, &tool("cut")),
            delta(1, &json(partial)),
            stop(1),
            end("max_tokens"),
        ]);

        let response = response.unwrap();
        assert_eq!(response.blocks, [call("whole", "read", "{}")]);
        assert_eq!(response.stop, StopReason::Length);
    }
}

#[test]
fn blocks_are_ordered_by_their_index_however_they_come() {
    let (_, response) = outcome(&[
        begin(),
        start(1, &json!({"type": "text", "text": "b"})),
        start(0, &json!({"type": "text", "text": "a"})),
        delta(1, &json!({"type": "text_delta", "text": "B"})),
        delta(0, &json!({"type": "text_delta", "text": "A"})),
        end("end_turn"),
    ]);

    assert_eq!(response.unwrap().blocks, [text("aA"), text("bB")]);
}

#[test]
fn an_error_inside_the_stream_is_named() {
    let cases = [
        ("overloaded_error", FailureKind::Unavailable),
        ("rate_limit_error", FailureKind::RateLimited),
        ("api_error", FailureKind::Unavailable),
        ("invalid_request_error", FailureKind::BadRequest),
        ("strange_error", FailureKind::Unavailable),
    ];
    for (kind, expected) in cases {
        let error = json!({"type": "error", "error": {"type": kind, "message": "Not now"}});
        let (_, result) = outcome(&[begin(), event("error", &error), end("end_turn")]);

        let error = result.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (expected, "Not now"));
    }
    // As llama.cpp ends a stream.
    let error = json!({"error": {"code": 500, "message": "Broken", "type": "server_error"}});
    let (_, result) = outcome(&[begin(), event("", &error)]);
    let error = result.unwrap_err();
    assert_eq!(error.kind, FailureKind::Unavailable);
    assert_eq!(error.message, "Broken");
}

#[test]
fn malformed_events_are_named() {
    let cases = [
        "event: content_block_delta\ndata: {\"type\"\n\n".to_owned(),
        delta(0, &json!({"type": "text_delta", "text": "to no block"})),
        delta(0, &json!(7)),
        start(0, &json!({"type": "text"})) + &delta(0, &json!({"type": "text_delta"})),
        start(0, &json!({"type": "text"})) + &start(0, &json!({"type": "text"})),
        start(0, &json!({"type": "tool_use", "id": "a"})),
        start(0, &json!({"type": "text"}))
            + &delta(0, &json!({"type": "input_json_delta", "partial_json": "{"})),
    ];
    for case in cases {
        let (_, result) = outcome(&[begin(), case.clone(), end("end_turn")]);

        let error = result.unwrap_err();
        assert_eq!(error.kind, FailureKind::Malformed, "{case}");
        assert!(error.message.contains("`content_block_"), "{error}");
    }
    let (_, result) = outcome(&[begin(), "data: <html>\n\n".to_owned()]);
    assert_eq!(result.unwrap_err().kind, FailureKind::Malformed);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(500, 20_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_damaged_answer_never_panics(changes in changes()) {
        read_changed(&Messages, &everything(), &changes);
    }
}
