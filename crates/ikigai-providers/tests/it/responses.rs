//! OpenAI Responses: recorded streams, and requests against the rules.

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_core::message::{Block, Message, Role};
use ikigai_providers::catalogue::{ThinkingStyle, ThinkingValue};
use ikigai_providers::dialect::{Order, Quirks};
use ikigai_providers::dialects::responses::locate;
use ikigai_providers::{AnswerBlock, FailureKind, ProviderError, StopReason};
use ikigai_testkit::wire::responses::check;
use serde_json::{Value, json};

use crate::matrix::{Hangings, assistant, conversations, request, results, tagged};
use crate::support::{
    assert_golden, call, dialect, frames, read, read_in_every_way, text, thinking, told,
};

const HANGINGS: Hangings = Hangings {
    thinking: r#"{"encrypted_content":"gAAA+/é\"=","id":"rs_1","summary":[],"type":"reasoning"}"#,
    more_thinking: r#"{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"And b."}],"encrypted_content":"gBBB"}"#,
    text: Some(r#"{"id":"msg_1","phase":"commentary","after":"rs_1"}"#),
    call: Some(r#"{"id":"fc_2","after":"rs_1"}"#),
};

fn effort(word: &str) -> ThinkingValue {
    ThinkingValue {
        style: ThinkingStyle::Effort,
        value: json!(word),
    }
}

fn encode(request: &Request, thinking: Option<&ThinkingValue>, quirks: Quirks) -> Value {
    dialect("responses").encode(&Order {
        request,
        model: "gpt-6.1-sol",
        thinking,
        max_output: 32_000,
        cache_key: "session-42",
        quirks,
    })
}

fn failure(stream: &str) -> ProviderError {
    read("responses", &frames(stream)).unwrap_err()
}

#[test]
fn every_conversation_is_spelled_as_the_rules_say() {
    let thinking = effort("medium");
    for (name, request) in conversations(HANGINGS) {
        let body = encode(&request, Some(&thinking), Quirks::default());

        assert_eq!(check(&body), Ok(()), "{name}");
        assert_golden(&format!("responses_{name}"), &body);
    }
}

#[test]
fn nothing_but_the_conversation_is_sent_to_a_server_of_which_nothing_is_known() {
    let mut bare = request(vec![Message::text(Role::User, "Hello.")]);
    bare.system = None;
    bare.tools.clear();
    let quirks = Quirks {
        no_encrypted_reasoning: true,
        ..Quirks::default()
    };

    let body = encode(&bare, None, quirks);

    let expected = json!({
        "model": "gpt-6.1-sol", "stream": true, "store": false, "max_output_tokens": 32000,
        "input": [{"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "Hello."}]}],
    });
    assert_eq!(body, expected);
}

#[test]
fn efforts_go_where_they_belong() {
    let request = request(vec![Message::text(Role::User, "Hello.")]);
    let table = [
        (
            effort("xhigh"),
            json!({"effort": "xhigh", "summary": "auto"}),
        ),
        (effort("none"), json!({"effort": "none"})),
        (effort("disabled"), json!({"effort": "none"})),
        (
            ThinkingValue {
                style: ThinkingStyle::None,
                value: Value::Null,
            },
            Value::Null,
        ),
    ];
    for (value, expected) in table {
        let body = encode(&request, Some(&value), Quirks::default());

        assert_eq!(body["reasoning"], expected);
        assert_eq!(body["include"].is_array(), expected.is_object());
    }
}

#[test]
fn reasoning_goes_back_only_before_what_it_led_to_and_ids_only_with_their_reasoning() {
    let thought = |payload: &str| Block::Thinking {
        text: String::new(),
        payload: Some(tagged(payload)),
    };
    let said = Block::Text {
        text: "Hi.".to_owned(),
    };
    let plain = r#"{"type":"reasoning","id":"rs_9","summary":[]}"#;
    let blocks = vec![thought(plain), said.clone(), thought(HANGINGS.thinking)];
    let item = r#"{"id":"msg_9","phase":"final_answer","after":"rs_9"}"#;
    let messages = vec![
        Message::text(Role::User, "Hello."),
        assistant(blocks, &[(1, Some(item))]),
        Message::text(Role::User, "Bye."),
    ];

    let body = encode(&request(messages), None, Quirks::default());

    let expected = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
        {"type": "message", "role": "assistant", "status": "completed", "phase": "final_answer",
            "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Bye."}]},
    ]);
    assert_eq!(body["input"], expected);
}

/// Returns the message that a refusal of item `index` refers to.
fn located(order: &Order<'_>, index: usize) -> Option<usize> {
    let mut error = ProviderError::new(FailureKind::BadRequest, "no");
    error.names_message = Some(index);
    locate(order, &error)
}

#[test]
fn what_a_refusal_counts_is_found_among_the_messages() {
    let (_, request) = conversations(HANGINGS).swap_remove(3);
    let order = Order {
        request: &request,
        model: "m",
        thinking: None,
        max_output: 0,
        cache_key: "",
        quirks: Quirks::default(),
    };

    let found: Vec<_> = (0..10).map(|index| located(&order, index)).collect();

    let expected = [0, 1, 1, 1, 1, 1, 2, 2, 3, 4].map(Some);
    assert_eq!(found, expected);
    assert_eq!(located(&order, 10), None);
    let said = "Item 'rs_2' of type 'reasoning' was provided without its required following item.";
    let error = ProviderError::new(FailureKind::BadRequest, said);
    assert_eq!(locate(&order, &error), Some(1));
}

#[test]
fn a_server_that_does_not_encrypt_is_sent_open_reasoning_only() {
    let open = r#"{"type":"reasoning","id":"rs_3","content":[{"type":"reasoning_text","text":"Hm."}],"encrypted_content":"","summary":[]}"#;
    let table = [(HANGINGS.thinking, true), (open, false)];
    for (payload, encrypted) in table {
        let blocks = vec![
            Block::Thinking {
                text: "Hm.".to_owned(),
                payload: Some(tagged(payload)),
            },
            Block::Text {
                text: "Hi.".to_owned(),
            },
        ];
        let messages = vec![
            Message::text(Role::User, "Hello."),
            assistant(blocks, &[]),
            Message::text(Role::User, "Bye."),
        ];
        let request = request(messages);
        for no_encrypted_reasoning in [false, true] {
            let quirks = Quirks {
                no_encrypted_reasoning,
                ..Quirks::default()
            };
            let body = encode(&request, None, quirks);

            let sent: Value = serde_json::from_str(payload).unwrap();
            let is_sent = body["input"][1] == sent;
            assert_eq!(is_sent, encrypted != no_encrypted_reasoning, "{body}");
        }
    }
}

#[test]
fn interleaved_items_keep_their_order_and_payloads() {
    let stream = include_str!("streams/responses_interleaved.sse");

    let (deltas, response) = read_in_every_way("responses", stream);

    let first = r#"{"encrypted_content":"gAAA+/éé==","id":"rs_1","summary":[{"text":"**Plan** both files.","type":"summary_text"},{"text":"Then compare.","type":"summary_text"}],"type":"reasoning"}"#;
    let second = r#"{"encrypted_content":"gBBB","id":"rs_2","summary":[],"type":"reasoning"}"#;
    let blocks = vec![
        thinking("**Plan** both files.\n\nThen compare.", Some(first)),
        text(
            "Reading both.",
            Some(r#"{"after":"rs_1","id":"msg_1","phase":"commentary"}"#),
        ),
        call(
            Some("call_1"),
            "read",
            r#"{"path":"a"}"#,
            Some(r#"{"after":"rs_1","id":"fc_1"}"#),
        ),
        thinking("", Some(second)),
        call(
            Some("call_2"),
            "read",
            r#"{"path":"b"}"#,
            Some(r#"{"after":"rs_2","id":"fc_2"}"#),
        ),
    ];
    assert_eq!(response.blocks, blocks);
    assert_eq!(response.stop, StopReason::Calls);
    let usage = Amounts {
        input: Some(300),
        cache_read: Some(600),
        cache_write: Some(100),
        output: Some(50),
        reasoning: Some(30),
        cost_nano_usd: None,
    };
    assert_eq!(response.usage, usage);
    let expected = (
        "Reading both.".to_owned(),
        "**Plan** both files.\n\nThen compare.".to_owned(),
        vec!["read".to_owned(), "read".to_owned()],
    );
    assert_eq!(told(&deltas), expected);
}

#[test]
fn an_answer_goes_back_as_it_came() {
    let stream = include_str!("streams/responses_interleaved.sse");
    let (_, response) = read("responses", &frames(stream)).unwrap();
    let mut metadata = Vec::new();
    let blocks = response
        .blocks
        .iter()
        .enumerate()
        .map(|(at, block)| match block {
            AnswerBlock::Thinking { text, payload } => Block::Thinking {
                text: text.clone(),
                payload: payload.as_deref().map(tagged),
            },
            AnswerBlock::Text { text, item } => {
                metadata.push((at, item.as_deref()));
                Block::Text { text: text.clone() }
            }
            AnswerBlock::Call {
                id,
                name,
                arguments,
                item,
            } => {
                metadata.push((at, item.as_deref()));
                Block::ToolCall {
                    id: id.clone().unwrap(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                }
            }
        });
    let blocks = blocks.collect();
    let messages = vec![
        Message::text(Role::User, "Read a and b."),
        assistant(blocks, &metadata),
        results(&[("call_1", "x", false), ("call_2", "y", false)]),
    ];

    let body = encode(&request(messages), Some(&effort("low")), Quirks::default());

    assert_eq!(check(&body), Ok(()));
    let done = frames(stream)
        .into_iter()
        .filter(|frame| frame.event == "response.output_item.done");
    let mut came: Vec<(u64, Value)> = done
        .map(|frame| {
            let mut event: Value = serde_json::from_str(&frame.data).unwrap();
            (
                event["output_index"].as_u64().unwrap(),
                event["item"].take(),
            )
        })
        .collect();
    came.sort_by_key(|(index, _)| *index);
    for ((_, mut came), sent) in came
        .into_iter()
        .zip(&body["input"].as_array().unwrap()[1..6])
    {
        // A null is left out; a call's status says nothing.
        let object = came.as_object_mut().unwrap();
        if sent["type"] != "message" {
            object.remove("status");
        }
        assert_eq!(&came, sent);
    }
}

#[test]
fn a_server_without_indexes_and_with_one_id_for_all_is_understood() {
    let stream = include_str!("streams/responses_llamacpp.sse");

    let (deltas, response) = read_in_every_way("responses", stream);

    let payload = r#"{"content":[{"text":"Let me see.","type":"reasoning_text"}],"encrypted_content":"","id":"rs_x","summary":[],"type":"reasoning"}"#;
    let blocks = vec![
        thinking("Let me see.", Some(payload)),
        text("Two calls.", Some(r#"{"after":"rs_x","id":"msg_x"}"#)),
        call(Some("fc_same"), "read", r#"{"path":"a"}"#, None),
        call(Some("fc_same"), "time", "{}", None),
    ];
    assert_eq!(response.blocks, blocks);
    assert_eq!(response.stop, StopReason::Calls);
    assert_eq!(
        (response.usage.input, response.usage.output),
        (Some(24), Some(8))
    );
    assert_eq!(told(&deltas).2, ["read", "time"]);
}

#[test]
fn a_translator_without_event_names_is_understood() {
    let stream = include_str!("streams/responses_litellm.sse");

    let (_, response) = read_in_every_way("responses", stream);

    let blocks = vec![
        text("Let me look.", Some(r#"{"id":"chatcmpl-1"}"#)),
        call(
            Some("call_9"),
            "read",
            r#"{"path": "a"}"#,
            Some(r#"{"id":"call_9"}"#),
        ),
    ];
    assert_eq!(response.blocks, blocks);
}

#[test]
fn an_answer_that_comes_only_with_its_end_is_read_there() {
    let stream = concat!(
        r#"data: {"type":"response.completed","response":{"status":"completed","output":["#,
        r#"{"type":"message","content":[{"type":"output_text","text":"Hi."}]},"#,
        r#"{"type":"message","content":[{"type":"output_text","text":"Bye."}]}]}}"#,
        "\n\n",
    );

    let (deltas, response) = read("responses", &frames(stream)).unwrap();

    assert_eq!(response.blocks, [text("Hi.", None), text("Bye.", None)]);
    assert_eq!(told(&deltas).0, "Hi.Bye.");
}

#[test]
fn answers_stop_for_their_reasons() {
    let message = r#"data: {"type":"response.output_text.delta","delta":"Hm"}"#;
    let refusing = r#"data: {"type":"response.refusal.delta","delta":"No."}"#;
    let ended =
        |name: &str, rest: &str| format!(r#"data: {{"type":"{name}","response":{{{rest}}}}}"#);
    let incomplete = |reason: &str| {
        ended(
            "response.incomplete",
            &format!(r#""status":"incomplete","incomplete_details":{{"reason":"{reason}"}}"#),
        )
    };
    let table = [
        (
            message,
            ended("response.completed", r#""status":"completed""#),
            StopReason::End,
        ),
        (
            refusing,
            ended("response.completed", ""),
            StopReason::Refused,
        ),
        (message, incomplete("max_output_tokens"), StopReason::Length),
        (message, incomplete("content_filter"), StopReason::Refused),
        (
            message,
            incomplete("steered"),
            StopReason::Other("steered".to_owned()),
        ),
    ];
    for (said, end, stop) in table {
        let (_, response) = read("responses", &frames(&format!("{said}\n\n{end}\n\n"))).unwrap();

        assert_eq!(response.stop, stop, "{end}");
        assert_eq!(response.blocks.len(), 1);
    }
}

#[test]
fn failures_inside_a_stream_have_their_kind() {
    let failed = |code: &str| {
        format!(
            r#"data: {{"type":"response.failed","response":{{"status":"failed","error":{{"code":"{code}","message":"sorry"}}}}}}"#
        )
    };
    let table = [
        (failed("server_error"), FailureKind::Unavailable, "sorry"),
        (failed("rate_limit_exceeded"), FailureKind::RateLimited, "sorry"),
        (failed("insufficient_quota"), FailureKind::Quota, "sorry"),
        (failed("context_length_exceeded"), FailureKind::TooLong, "sorry"),
        (failed("invalid_prompt"), FailureKind::BadRequest, "sorry"),
        (
            r#"data: {"type":"error","code":"rate_limit_exceeded","message":"slower","param":null}"#.to_owned(),
            FailureKind::RateLimited,
            "slower",
        ),
        (
            r#"data: {"error":{"code":500,"message":"broken","type":"server_error"}}"#.to_owned(),
            FailureKind::Unavailable,
            "broken",
        ),
        ("event: error\ndata: out of memory".to_owned(), FailureKind::Unavailable, "out of memory"),
        (
            r#"data: {"type":"response.cancelled","response":{"status":"cancelled"}}"#.to_owned(),
            FailureKind::Unavailable,
            "the provider cancelled the answer",
        ),
    ];
    for (stream, kind, message) in table {
        let error = failure(&format!("{stream}\n\n"));

        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, message),
            "{stream}"
        );
    }
}

#[test]
fn malformed_events_are_named_and_a_missing_end_is_noticed() {
    let table = [
        (
            "event: response.completed\ndata: {\"type\":",
            FailureKind::Malformed,
            "response.completed",
        ),
        ("data: <html>", FailureKind::Malformed, "data"),
        ("data: 7", FailureKind::Malformed, "data"),
        (
            r#"data: {"type":"response.output_item.done"}"#,
            FailureKind::Malformed,
            "response.output_item.done",
        ),
        (
            r#"data: {"type":"response.output_text.delta","delta":7}"#,
            FailureKind::Malformed,
            "`delta`",
        ),
        (
            r#"data: {"type":"response.completed"}"#,
            FailureKind::Malformed,
            "`response`",
        ),
        (
            r#"data: {"type":"response.output_text.delta","delta":"Hm"}"#,
            FailureKind::CutOff,
            "ended",
        ),
        ("data: [DONE]", FailureKind::CutOff, "ended"),
        ("", FailureKind::CutOff, "ended"),
    ];
    for (stream, kind, named) in table {
        let error = failure(&format!("{stream}\n\n"));

        assert_eq!(error.kind, kind, "{stream}");
        assert!(error.message.contains(named), "{stream}: {error}");
    }
}
