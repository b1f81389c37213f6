//! Gemini: requests against the rules, and recorded answers.

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_providers::catalogue::{ThinkingStyle, ThinkingValue};
use ikigai_providers::dialect::{Dialect, Order, Quirks};
use ikigai_providers::dialects::gemini::Gemini;
use ikigai_providers::{AnswerBlock, Delta, FailureKind, Response, StopReason};
use ikigai_testkit::cases;
use ikigai_testkit::wire::gemini::{check, check_signatures};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversations::{self, Hung};
use crate::stream::{
    Outcome, assert_no_beginning_is_whole, changes, event, read, read_changed, read_in_every_way,
};
use crate::support::assert_golden;

const HUNG: Hung = Hung {
    thinking: "{\"text\":\"\",\"thoughtSignature\":\"CiQ/+=@\"}",
    hidden: "{\"text\":\" \",\"thoughtSignature\":\"Dx\"}",
    call: "{\"id\":\"c1\",\"thoughtSignature\":\"CiQB/+==@\"}",
    later_call: "{\"id\":\"c2\"}",
};

fn encode(request: &Request, model: &str, thinking: Option<&ThinkingValue>) -> Value {
    let order = Order {
        request,
        model,
        thinking,
        max_output: 16_000,
        cache_key: "agent",
        quirks: Quirks::default(),
    };
    let body = Gemini.encode(&order);
    assert_eq!(check(&body), Ok(()), "{body:#}");
    body
}

#[test]
fn requests_are_spelled_as_the_rules_say() {
    for (name, request) in conversations::all(&HUNG) {
        let body = encode(&request, "gemini-3.8-flash", None);
        assert_eq!(check_signatures(&body), Ok(()), "{body:#}");
        assert_golden(&format!("gemini-{name}"), &body);
    }
}

#[test]
fn older_models_get_no_dummy_signature() {
    for (_, request) in conversations::all(&HUNG) {
        let body = encode(&request, "gemini-2.5-pro", None);

        assert!(!body.to_string().contains("skip_thought_signature"));
    }
}

#[test]
fn thinking_goes_where_its_style_says() {
    let cases = [
        ("level", ThinkingStyle::Level, json!("MEDIUM")),
        ("budget", ThinkingStyle::Budget, json!(8192)),
        ("budget-zero", ThinkingStyle::Budget, json!(0)),
        ("none", ThinkingStyle::None, Value::Null),
    ];
    for (name, style, value) in cases {
        let thinking = ThinkingValue { style, value };
        let body = encode(&conversations::text(), "gemini-x", Some(&thinking));
        assert_golden(&format!("gemini-think-{name}"), &body);
    }
}

#[test]
fn after_a_switch_and_back_own_signatures_go_out_as_they_came() {
    for provider in ["a", "b", "c"] {
        let request = conversations::switched(&HUNG, provider);
        let body = encode(&request, "gemini-3.8-flash", None);
        assert_golden(&format!("gemini-switched-to-{provider}"), &body);
    }
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let cases = conversations::all(&HUNG);
    let (_, request) = cases
        .iter()
        .find(|(name, _)| *name == "several-calls")
        .unwrap();
    let good = encode(request, "gemini-3.8-flash", None);
    let both = json!({"thinkingLevel": "LOW", "thinkingBudget": 1});
    let breaks = [
        ("/model", json!("gemini-x")),
        ("/systemInstruction/parts", json!([])),
        ("/generationConfig/temperature", json!(1)),
        ("/generationConfig/maxOutputTokens", json!(0)),
        ("/generationConfig/thinkingConfig", both),
        (
            "/generationConfig/thinkingConfig",
            json!({"thinkingLevel": "low"}),
        ),
        ("/tools/0/functionDeclarations", json!([])),
        ("/tools/0/functionDeclarations/1/name", json!("read")),
        ("/tools/0/functionDeclarations/0/parameters", json!({})),
        ("/contents/0/role", json!("model")),
        ("/contents/0/role", json!("function")),
        ("/contents/0/parts", json!([])),
        ("/contents/0/parts/0/text", json!("")),
        ("/contents/1/parts/0/thoughtSignature", json!("")),
        ("/contents/1/parts/0/thought", json!(true)),
        ("/contents/1/parts/1/text", json!("both")),
        ("/contents/1/parts/1/functionCall/args", json!("{}")),
        ("/contents/1/parts/1/functionCall/name", json!("list")),
        ("/contents/1/parts/1/functionCall/id", json!("c2")),
        ("/contents/2/parts/0/functionResponse/id", Value::Null),
        ("/contents/2/parts/0/functionResponse/response", json!("x")),
        ("/contents/2/parts/0", json!({"text": "x"})),
        ("/contents/4/role", json!("model")),
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
    let unsigned = encode(&conversations::switched(&HUNG, "c"), "gemini-2.5-pro", None);
    assert!(check_signatures(&unsigned).is_err());
}

fn chunk(parts: &Value, finish: &Value) -> String {
    let data = json!({
        "candidates": [{
            "content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0,
            "safetyRatings": [],
        }],
        "usageMetadata": {
            "promptTokenCount": 130, "cachedContentTokenCount": 100, "candidatesTokenCount": 1,
            "totalTokenCount": 131,
        },
        "modelVersion": "gemini-4-argon", "responseId": "r1",
    });
    event("", &data)
}

fn end(finish: &str) -> String {
    let data = json!({
        "candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": finish}],
        "usageMetadata": {
            "promptTokenCount": 130, "candidatesTokenCount": 20, "thoughtsTokenCount": 40,
            "toolUsePromptTokenCount": 5, "totalTokenCount": 195,
        },
    });
    event("", &data)
}

/// A chunk with nothing that we know.
const UNKNOWN: &str = "data: {\"vault\":1,\"candidates\":[{\"content\":{\"parts\":\
                       [{\"executableCode\":{\"code\":\"1\"}}]},\"grounding\":{}}]}\n\n";

fn everything() -> String {
    let open = Value::Null;
    let part = |part: Value| chunk(&json!([part]), &open);
    [
        part(json!({"text": "Hm, ", "thought": true})),
        part(json!({"text": "é.", "thought": true})),
        part(json!({"text": "Rea"})),
        part(json!({"text": "ding 🦀."})),
        part(json!({"text": "Soon.", "thoughtSignature": "Ci/+=="})),
        part(json!({"text": "Now."})),
        chunk(
            &json!([
                {"functionCall": {"id": "fc-1", "name": "read", "args": {"path": "a"}},
                 "thoughtSignature": "CiQB"},
                {"functionCall": {"name": "list"}},
            ]),
            &open,
        ),
        chunk(&json!([]), &open),
        part(json!({"text": "", "thoughtSignature": "Late"})),
        end("STOP"),
    ]
    .concat()
}

fn text(text: &str, item: Option<&str>) -> AnswerBlock {
    AnswerBlock::Text {
        text: text.to_owned(),
        item: item.map(str::to_owned),
    }
}

#[test]
fn an_answer_of_everything_is_read_in_any_pieces() {
    let (deltas, response) = read_in_every_way(&Gemini, &everything(), UNKNOWN);

    let expected = [
        Delta::Thinking("Hm, ".to_owned()),
        Delta::Thinking("é.".to_owned()),
        Delta::Text("Rea".to_owned()),
        Delta::Text("ding 🦀.".to_owned()),
        Delta::Text("Soon.".to_owned()),
        Delta::Text("Now.".to_owned()),
        Delta::Call("read".to_owned()),
        Delta::Call("list".to_owned()),
    ];
    assert_eq!(deltas, expected);
    let expected = Response {
        blocks: vec![
            AnswerBlock::Thinking {
                text: "Hm, é.".to_owned(),
                payload: None,
            },
            text("Reading 🦀.", None),
            text("Soon.", Some("{\"thoughtSignature\":\"Ci/+==\"}")),
            text("Now.", None),
            AnswerBlock::Call {
                id: Some("fc-1".to_owned()),
                name: "read".to_owned(),
                arguments: "{\"path\":\"a\"}".to_owned(),
                item: Some("{\"id\":\"fc-1\",\"thoughtSignature\":\"CiQB\"}".to_owned()),
            },
            AnswerBlock::Call {
                id: None,
                name: "list".to_owned(),
                arguments: "{}".to_owned(),
                item: None,
            },
            AnswerBlock::Thinking {
                text: String::new(),
                payload: Some("{\"text\":\"\",\"thoughtSignature\":\"Late\"}".to_owned()),
            },
        ],
        stop: StopReason::Calls,
        usage: Amounts {
            input: Some(35),
            cache_read: Some(100),
            cache_write: None,
            output: Some(60),
            reasoning: Some(40),
            cost_nano_usd: None,
        },
    };
    assert_eq!(response, Ok(expected));
}

#[test]
fn no_beginning_of_an_answer_passes_for_whole() {
    assert_no_beginning_is_whole(&Gemini, &everything(), "\"finishReason\":\"STOP\"");
}

fn outcome(parts: &[String]) -> Outcome {
    read(&Gemini, &[parts.concat().as_bytes()])
}

#[test]
fn stop_reasons_are_told_apart() {
    let other = |word: &str| StopReason::Other(word.to_owned());
    let cases = [
        ("STOP", StopReason::End),
        ("MAX_TOKENS", StopReason::Length),
        ("CONTINUATION", StopReason::Length),
        ("SAFETY", StopReason::Refused),
        ("RECITATION", StopReason::Refused),
        ("LANGUAGE", StopReason::Refused),
        ("BLOCKLIST", StopReason::Refused),
        ("PROHIBITED_CONTENT", StopReason::Refused),
        ("SPII", StopReason::Refused),
        ("MALFORMED_FUNCTION_CALL", other("MALFORMED_FUNCTION_CALL")),
        ("UNEXPECTED_TOOL_CALL", other("UNEXPECTED_TOOL_CALL")),
        ("OTHER", other("OTHER")),
    ];
    for (word, stop) in cases {
        let (_, response) = outcome(&[end(word)]);

        let response = response.unwrap();
        assert_eq!((response.stop, response.blocks), (stop, Vec::new()));
    }
}

#[test]
fn a_blocked_prompt_is_a_refusal_with_words() {
    let data = json!({
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 9},
    });
    let (_, result) = outcome(&[event("", &data)]);

    let error = result.unwrap_err();
    assert_eq!(error.kind, FailureKind::BadRequest);
    assert!(error.message.contains("PROHIBITED_CONTENT"), "{error}");
}

#[test]
fn an_error_inside_the_stream_is_named() {
    let error = json!({"error": {"code": 503, "message": "Busy", "status": "UNAVAILABLE"}});
    for data in [error.clone(), json!([error])] {
        let (deltas, result) = outcome(&[
            chunk(&json!([{"text": "a"}]), &Value::Null),
            event("", &data),
            end("STOP"),
        ]);

        assert_eq!(deltas, [Delta::Text("a".to_owned())]);
        let error = result.unwrap_err();
        assert_eq!(error.kind, FailureKind::Unavailable);
        assert_eq!(error.message, "Busy");
    }
}

#[test]
fn malformed_chunks_are_named() {
    let nameless = json!([{"functionCall": {"args": {}}}]);
    let cases = [
        "data: {\"candidates\n\n".to_owned(),
        chunk(&nameless, &Value::Null),
    ];
    for case in cases {
        let (_, result) = outcome(&[case, end("STOP")]);

        assert_eq!(result.unwrap_err().kind, FailureKind::Malformed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(500, 20_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_damaged_answer_never_panics(changes in changes()) {
        read_changed(&Gemini, &everything(), &changes);
    }
}
