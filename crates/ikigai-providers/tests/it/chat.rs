//! Chat Completions: recorded streams, and requests against the rules.

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_core::message::{Block, Message, Role};
use ikigai_providers::catalogue::{ThinkingStyle, ThinkingValue};
use ikigai_providers::dialect::{Order, Quirks};
use ikigai_providers::dialects::chat::locate;
use ikigai_providers::{AnswerBlock, Delta, FailureKind, ProviderError, Response, StopReason};
use ikigai_testkit::wire::chat::check;
use serde_json::{Value, json};

use crate::matrix::{Hangings, assistant, conversations, request, results, tagged};
use crate::support::{
    assert_golden, call, dialect, frames, read, read_in_every_way, text, thinking, told,
};

const HANGINGS: Hangings = Hangings {
    thinking: r#"{"field":"reasoning_content"}"#,
    more_thinking: r#"{"field":"reasoning_content"}"#,
    text: None,
    call: None,
};

const ECHOING: Quirks = Quirks {
    old_max_tokens: true,
    echoes_reasoning: true,
    cache_key: false,
    no_encrypted_reasoning: true,
    short_call_ids: false,
    alternating_roles: false,
};

fn encode(request: &Request, thinking: Option<&str>, quirks: Quirks) -> Value {
    let thinking = thinking.map(|word| ThinkingValue {
        style: ThinkingStyle::Effort,
        value: json!(word),
    });
    dialect("chat").encode(&Order {
        request,
        model: "gpt-4.1",
        thinking: thinking.as_ref(),
        max_output: 4000,
        cache_key: "session-42",
        quirks,
    })
}

fn read_stream(stream: &str) -> Result<(Vec<Delta>, Response), ProviderError> {
    read("chat", &frames(stream))
}

/// Returns a stream of chunks with these deltas, and its end.
fn stream_of(deltas: &[Value], reason: &str) -> String {
    let chunk = |delta: &Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let mut stream: String = deltas.iter().map(|delta| chunk(delta, None)).collect();
    stream.push_str(&chunk(&json!({}), Some(reason)));
    stream
}

/// Returns the neutral block that a block of an answer becomes in a request.
fn sent_back(block: &AnswerBlock) -> Block {
    match block {
        AnswerBlock::Thinking { text, payload } => Block::Thinking {
            text: text.clone(),
            payload: payload.as_deref().map(tagged),
        },
        AnswerBlock::Text { text, .. } => Block::Text { text: text.clone() },
        AnswerBlock::Call {
            id,
            name,
            arguments,
            ..
        } => Block::ToolCall {
            id: id.clone().unwrap(),
            name: name.clone(),
            arguments: arguments.clone(),
        },
    }
}

#[test]
fn every_conversation_is_spelled_as_the_rules_say() {
    for (name, request) in conversations(HANGINGS) {
        let body = encode(&request, None, Quirks::default());
        let echoing = encode(&request, Some("high"), ECHOING);

        assert_eq!(check(&body), Ok(()), "{name}");
        assert_eq!(check(&echoing), Ok(()), "{name}");
        assert_golden(&format!("chat_{name}"), &body);
        assert_golden(&format!("chat_echoing_{name}"), &echoing);
    }
}

/// S1-6
#[test]
fn openai_chat_tool_call_form() {
    let (_, request) = conversations(HANGINGS).swap_remove(3);

    let body = encode(&request, None, Quirks::default());

    let calling = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
    let expected = json!({
        "role": "assistant",
        "content": "Reading.",
        "tool_calls": [
            calling("call_1", r#"{"path":"a.txt"}"#),
            calling("call_2", r#"{"path":"b.txt"}"#),
        ],
    });
    assert_eq!(body["messages"][2], expected);
}

/// S1-8
#[test]
fn openai_chat_tool_result_form() {
    let messages = vec![
        Message::text(Role::User, "Read a and b."),
        assistant(
            ["call_1", "call_2"]
                .map(|id| Block::ToolCall {
                    id: id.to_owned(),
                    name: "read".to_owned(),
                    arguments: "{}".to_owned(),
                })
                .into(),
            &[],
        ),
        results(&[("call_1", "hello", false), ("call_2", "no such file", true)]),
    ];

    let body = encode(&request(messages), None, Quirks::default());

    let expected = [
        json!({"role": "tool", "tool_call_id": "call_1", "content": "hello"}),
        json!({"role": "tool", "tool_call_id": "call_2", "content": "error: no such file"}),
    ];
    assert_eq!(body["messages"].as_array().unwrap()[3..], expected);
}

#[test]
fn nothing_but_the_conversation_is_sent_if_nothing_else_is_known() {
    let mut bare = request(vec![Message::text(Role::User, "Hello.")]);
    bare.system = None;
    bare.tools.clear();
    let quirks = Quirks {
        old_max_tokens: true,
        ..Quirks::default()
    };

    let body = encode(&bare, None, quirks);

    let expected = json!({
        "model": "gpt-4.1", "stream": true, "stream_options": {"include_usage": true},
        "max_tokens": 4000, "messages": [{"role": "user", "content": "Hello."}],
    });
    assert_eq!(body, expected);
}

#[test]
fn thinking_and_cache_key_go_where_they_belong() {
    let request = request(vec![Message::text(Role::User, "Hello.")]);
    let cached = Quirks {
        cache_key: true,
        ..Quirks::default()
    };

    let disabled = encode(&request, Some("disabled"), cached);
    let max = encode(&request, Some("max"), Quirks::default());

    assert_eq!(disabled["thinking"], json!({"type": "disabled"}));
    assert_eq!(disabled["reasoning_effort"], Value::Null);
    assert_eq!(disabled["prompt_cache_key"], json!("session-42"));
    assert_eq!(max["thinking"], Value::Null);
    assert_eq!(max["reasoning_effort"], json!("max"));
    assert_eq!(max["prompt_cache_key"], Value::Null);
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

    let found: Vec<_> = (0..8).map(|index| located(&order, index)).collect();

    let expected = [
        None,
        Some(0),
        Some(1),
        Some(2),
        Some(2),
        Some(3),
        Some(4),
        None,
    ];
    assert_eq!(found, expected);
}

#[test]
fn calls_are_gathered_by_their_index() {
    let (deltas, response) = read_in_every_way("chat", include_str!("streams/chat_calls.sse"));

    let blocks = vec![
        text("Reading both.", None),
        call(Some("call_1"), "read", r#"{"path":"a"}"#, None),
        call(Some("call_2"), "time", "", None),
    ];
    let usage = Amounts {
        input: Some(30),
        cache_read: Some(64),
        cache_write: Some(6),
        output: Some(20),
        reasoning: Some(8),
        cost_nano_usd: None,
    };
    let expected = Response {
        blocks,
        stop: StopReason::Calls,
        usage,
    };
    assert_eq!(response, expected);
    let calls = vec!["read".to_owned(), "time".to_owned()];
    assert_eq!(
        told(&deltas),
        ("Reading both.".to_owned(), String::new(), calls)
    );
}

#[test]
fn calls_are_told_apart_however_a_server_sends_them() {
    let whole = |index: Option<u64>, id: Option<&str>, name: &str, arguments: Value| {
        let mut call =
            json!({"type": "function", "function": {"name": name, "arguments": arguments}});
        if let Some(index) = index {
            call["index"] = json!(index);
        }
        if let Some(id) = id {
            call["id"] = json!(id);
        }
        call
    };
    let expected = |ids: [Option<&str>; 2]| {
        vec![
            call(ids[0], "read", r#"{"path":"a"}"#, None),
            call(ids[1], "read", r#"{"path":"b"}"#, None),
        ]
    };
    let (a, b) = (json!(r#"{"path":"a"}"#), json!(r#"{"path":"b"}"#));
    let table = [
        // Both in one chunk, without index.
        (
            vec![
                json!({"tool_calls": [whole(None, Some("x"), "read", a.clone()), whole(None, Some("y"), "read", b.clone())]}),
            ],
            expected([Some("x"), Some("y")]),
        ),
        // Without index and id, each in a chunk.
        (
            vec![
                json!({"tool_calls": [whole(None, None, "read", a.clone())]}),
                json!({"tool_calls": [whole(None, None, "read", b.clone())]}),
            ],
            expected([None, None]),
        ),
        // All under index 0.
        (
            vec![
                json!({"tool_calls": [whole(Some(0), Some("x"), "read", a.clone())]}),
                json!({"tool_calls": [whole(Some(0), Some("y"), "read", b.clone())]}),
            ],
            expected([Some("x"), Some("y")]),
        ),
        // One id for all.
        (
            vec![
                json!({"tool_calls": [whole(Some(0), Some("x"), "read", a.clone())]}),
                json!({"tool_calls": [whole(Some(1), Some("x"), "read", b.clone())]}),
            ],
            expected([Some("x"), Some("x")]),
        ),
        // Id and name with every piece.
        (
            vec![
                json!({"tool_calls": [whole(Some(0), Some("x"), "read", json!("{\"path\""))]}),
                json!({"tool_calls": [whole(Some(0), Some("x"), "read", json!(":\"a\"}"))]}),
                json!({"tool_calls": [whole(Some(1), Some("y"), "read", json!("{\"path\""))]}),
                json!({"tool_calls": [whole(Some(1), Some("y"), "read", json!(":\"b\"}"))]}),
            ],
            expected([Some("x"), Some("y")]),
        ),
        // Arguments that are an object, not a text.
        (
            vec![
                json!({"tool_calls": [whole(Some(0), None, "read", json!({"path": "a"})), whole(Some(1), None, "read", json!({"path": "b"}))]}),
            ],
            expected([None, None]),
        ),
    ];
    for (deltas, blocks) in table {
        let stream = stream_of(&deltas, "stop");
        let (_, response) = read_stream(&stream).unwrap();

        assert_eq!(response.blocks, blocks, "{stream}");
        assert_eq!(response.stop, StopReason::Calls, "{stream}");
    }
}

#[test]
fn reasoning_comes_in_a_field_and_goes_back_under_its_name() {
    let (deltas, response) = read_in_every_way("chat", include_str!("streams/chat_deepseek.sse"));

    let blocks = vec![
        thinking("Look it up.", Some(r#"{"field":"reasoning_content"}"#)),
        call(Some("call_00_x"), "read", "{}", None),
    ];
    assert_eq!(response.blocks, blocks);
    assert_eq!(
        (response.usage.input, response.usage.cache_read),
        (Some(18), Some(32))
    );
    assert_eq!(told(&deltas).1, "Look it up.");

    let messages = vec![
        Message::text(Role::User, "Go."),
        assistant(response.blocks.iter().map(sent_back).collect(), &[]),
        results(&[("call_00_x", "x", false)]),
    ];
    let sent = encode(&request(messages.clone()), None, ECHOING);
    assert_eq!(
        sent["messages"][2]["reasoning_content"],
        json!("Look it up.")
    );
    let silent = encode(&request(messages), None, Quirks::default());
    assert_eq!(silent["messages"][2].get("reasoning_content"), None);
}

#[test]
fn details_of_reasoning_are_gathered_and_go_back_as_they_came() {
    let (deltas, response) = read_in_every_way("chat", include_str!("streams/chat_openrouter.sse"));

    let AnswerBlock::Thinking {
        text: thought,
        payload,
    } = &response.blocks[0]
    else {
        panic!("{response:?}");
    };
    assert_eq!(thought, "Let me see.");
    let details = json!([
        {"type": "reasoning.text", "text": "Let me see.", "format": "x", "index": 0, "signature": "Eq+/="},
        {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 1},
    ]);
    let payload: Value = serde_json::from_str(payload.as_deref().unwrap()).unwrap();
    assert_eq!(payload, json!({"reasoning_details": details}));
    assert_eq!(response.blocks[1..], [text("Done.", None)]);
    assert_eq!(told(&deltas).1, "Let me see.");

    let messages = vec![
        Message::text(Role::User, "Go."),
        assistant(response.blocks.iter().map(sent_back).collect(), &[]),
        Message::text(Role::User, "On."),
    ];
    let sent = encode(&request(messages), None, ECHOING);
    assert_eq!(sent["messages"][2]["reasoning_details"], details);
}

#[test]
fn a_leading_tag_is_reasoning_in_every_splitting() {
    let table = [
        (
            "<think>\nHm, <b> </thin.\n</think>\n\nHi </think>.",
            Some("Hm, <b> </thin.\n"),
            Some("Hi </think>."),
        ),
        ("\n <think>Hm</think>Hi", Some("Hm"), Some("Hi")),
        ("<think>\n\n</think>\n\nHi", None, Some("Hi")),
        (
            "<think>Hm, never ends </th",
            Some("Hm, never ends </th"),
            None,
        ),
        ("<thinking>Hi", None, Some("<thinking>Hi")),
        ("Hi <think>no</think>", None, Some("Hi <think>no</think>")),
        ("  Hi", None, Some("  Hi")),
        ("<thi", None, Some("<thi")),
    ];
    for (content, thought, said) in table {
        let expected: Vec<_> = thought
            .map(|thought| thinking(thought, Some(r#"{"field":"think"}"#)))
            .into_iter()
            .chain(said.map(|said| text(said, None)))
            .collect();
        let splits = (0..=content.len()).map(|at| vec![&content[..at], &content[at..]]);
        let letters = (0..content.len()).map(|at| &content[at..=at]).collect();
        for pieces in splits.chain([letters]) {
            let deltas: Vec<_> = pieces
                .iter()
                .map(|piece| json!({"content": piece}))
                .collect();
            let (told_on_the_way, response) = read_stream(&stream_of(&deltas, "stop")).unwrap();

            assert_eq!(response.blocks, expected, "{pieces:?}");
            let (told_text, told_thought, _) = told(&told_on_the_way);
            assert_eq!(told_text, said.unwrap_or_default(), "{pieces:?}");
            assert_eq!(told_thought, thought.unwrap_or_default(), "{pieces:?}");
        }
    }
}

#[test]
fn an_answer_is_whole_with_a_finish_reason_or_done() {
    let said = r#"data: {"choices":[{"delta":{"content":"Hi."}}]}"#;
    let stop = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let table = [
        (vec![said, stop], None),
        (vec![said, "data: [DONE]"], None),
        (vec![said, stop, "data: [DONE]"], None),
        (vec![said], Some(FailureKind::CutOff)),
        (vec!["data: [DONE]"], Some(FailureKind::CutOff)),
        (vec![], Some(FailureKind::CutOff)),
    ];
    for (lines, failure) in table {
        let read = read_stream(&lines.join("\n\n"));

        match failure {
            None => assert_eq!(read.unwrap().1.blocks, [text("Hi.", None)], "{lines:?}"),
            Some(kind) => assert_eq!(read.unwrap_err().kind, kind, "{lines:?}"),
        }
    }
}

#[test]
fn answers_stop_for_their_reasons() {
    let table = [
        ("stop", StopReason::End),
        ("length", StopReason::Length),
        ("tool_calls", StopReason::End),
        ("content_filter", StopReason::Refused),
        ("whatever", StopReason::Other("whatever".to_owned())),
    ];
    for (word, stop) in table {
        let stream = stream_of(&[json!({"content": "Hm"})], word);

        assert_eq!(read_stream(&stream).unwrap().1.stop, stop, "{word}");
    }
    let refusing = stream_of(&[json!({"refusal": "No."})], "stop");
    assert_eq!(read_stream(&refusing).unwrap().1.stop, StopReason::Refused);
}

#[test]
fn a_cost_that_is_reported_is_taken() {
    let cost = |cost: Value| {
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 9, "cost": cost});
        let chunk = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage});
        let usage = read_stream(&format!("data: {chunk}\n\n")).unwrap().1.usage;
        usage.cost_nano_usd
    };

    let cases = [
        (json!(0.001_234_567_8), Some(1_234_568)),
        (json!(3), Some(3_000_000_000)),
        (json!(0), Some(0)),
        (json!(-1), None),
        (json!("1"), None),
        (Value::Null, None),
    ];
    for (price, nano) in cases {
        assert_eq!(cost(price.clone()), nano, "{price}");
    }
}

#[test]
fn reasoning_that_is_counted_beside_the_output_is_added_to_it() {
    let usage = |usage: Value| {
        let chunk = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage});
        read_stream(&format!("data: {chunk}\n\n")).unwrap().1.usage
    };
    let details = json!({"reasoning_tokens": 7});

    let within = usage(
        json!({"prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19,
        "completion_tokens_details": details}),
    );
    let beside = usage(
        json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 19,
        "completion_tokens_details": details}),
    );

    assert_eq!(within.output, Some(9));
    assert_eq!(beside.output, Some(9));
    assert_eq!(usage(json!({})), Amounts::default());
}

#[test]
fn failures_inside_a_stream_have_their_kind() {
    use FailureKind::{BadRequest, Malformed, Quota, RateLimited, TooLong, Unavailable};
    let table = [
        (
            r#"data: {"error":{"code":500,"message":"broken","type":"server_error"}}"#,
            Unavailable,
            "broken",
        ),
        (
            r#"data: {"error":{"code":429,"message":"slower"}}"#,
            RateLimited,
            "slower",
        ),
        (
            r#"data: {"error":{"code":"insufficient_quota","message":"no money"}}"#,
            Quota,
            "no money",
        ),
        (
            r#"data: {"error":{"message":"long","code":"context_length_exceeded"}}"#,
            TooLong,
            "long",
        ),
        (r#"data: {"error":"plain"}"#, Unavailable, "plain"),
        (
            r#"data: {"object":"error","message":"odd","type":"BadRequestError","code":400}"#,
            BadRequest,
            "odd",
        ),
        (
            "event: error\ndata: {\"message\":\"named\"}",
            Unavailable,
            "named",
        ),
        (
            r#"data: {"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"gone"}}]}"#,
            Unavailable,
            "gone",
        ),
        (
            r#"data: {"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#,
            Unavailable,
            "resources",
        ),
        ("data: {\"choices\":", Malformed, "`data`"),
        ("data: []", Malformed, "`data`"),
        (r#"data: {"choices":7}"#, Malformed, "`choices`"),
        (r#"data: {"choices":[{"delta":7}]}"#, Malformed, "`delta`"),
        (
            r#"data: {"choices":[{"delta":{"content":7}}]}"#,
            Malformed,
            "`content`",
        ),
        (
            r#"data: {"choices":[{"delta":{"tool_calls":{}}}]}"#,
            Malformed,
            "`tool_calls`",
        ),
        (
            r#"data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":7}}]}}]}"#,
            Malformed,
            "`arguments`",
        ),
    ];
    let said = r#"data: {"choices":[{"delta":{"content":"Hi"}}]}"#;
    for (failing, kind, named) in table {
        let error = read_stream(&format!("{said}\n\n{failing}\n\ndata: [DONE]\n\n")).unwrap_err();

        assert_eq!(error.kind, kind, "{failing}");
        assert!(error.message.contains(named), "{failing}: {error}");
    }
}

#[test]
fn content_in_parts_is_told_apart() {
    let deltas = [
        json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}),
        json!({"content": [{"type": "text", "text": "Hi."}]}),
        json!({"content": " Bye."}),
    ];

    let (_, response) = read_stream(&stream_of(&deltas, "stop")).unwrap();

    let blocks = [
        thinking("Hm", Some(r#"{"field":"content"}"#)),
        text("Hi. Bye.", None),
    ];
    assert_eq!(response.blocks, blocks);
}
