//! The request checkers themselves: a body that breaks a rule does not pass.

use ikigai_testkit::wire;
use serde_json::{Value, json};

/// Returns a valid body.
fn responses() -> Value {
    serde_json::from_str(include_str!("golden/responses_several_calls.json")).unwrap()
}

fn chat() -> Value {
    serde_json::from_str(include_str!("golden/chat_several_calls.json")).unwrap()
}

/// Takes an item out of a list of the body.
fn without(mut body: Value, list: &str, index: usize) -> Value {
    body[list].as_array_mut().unwrap().remove(index);
    body
}

fn with(mut body: Value, place: &str, value: Value) -> Value {
    let (parent, key) = place.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap()[key] = value;
    body
}

#[test]
fn the_checker_of_responses_refuses_what_the_service_refuses() {
    assert_eq!(wire::responses::check(&responses()), Ok(()));
    let table = [
        (with(responses(), "/temperature", json!(1)), "temperature"),
        (with(responses(), "/store", json!(true)), "stored"),
        (with(responses(), "/tools", json!([])), "tools"),
        (with(responses(), "/input", json!([])), "input"),
        (with(responses(), "/max_output_tokens", json!(1)), "16"),
        (
            with(responses(), "/reasoning/effort", json!("huge")),
            "effort",
        ),
        // Missing: the item after reasoning, a call, an output.
        (
            without(without(responses(), "input", 5), "input", 6),
            "following item",
        ),
        (without(responses(), "input", 3), "no tool call"),
        (without(responses(), "input", 6), "no output"),
        (
            with(responses(), "/input/4/encrypted_content", json!("")),
            "not persisted",
        ),
        (with(responses(), "/input/4/id", json!("rs_1")), "duplicate"),
        (
            with(responses(), "/input/5/call_id", json!("call_1")),
            "again",
        ),
        (with(responses(), "/input/5/call_id", json!("a b")), "legal"),
        (
            with(responses(), "/input/5/arguments", json!("")),
            "arguments",
        ),
        (
            with(responses(), "/input/5/id", json!("x".repeat(65))),
            "64",
        ),
        (with(responses(), "/input/6/output", json!("")), "output"),
        (with(responses(), "/input/0/content", json!([])), "content"),
        (with(responses(), "/input/0/role", json!("tool")), "role"),
        (
            with(responses(), "/input/0/role", json!("assistant")),
            "output_text",
        ),
    ];
    for (number, (body, named)) in table.into_iter().enumerate() {
        let refused = wire::responses::check(&body).unwrap_err();
        assert!(refused.contains(named), "{number}: {refused}");
    }
}

#[test]
fn the_checker_of_chat_refuses_what_servers_refuse() {
    assert_eq!(wire::chat::check(&chat()), Ok(()));
    let call = "/messages/2/tool_calls/1";
    let table = [
        (with(chat(), "/temperature", json!(1)), "temperature"),
        (with(chat(), "/max_tokens", json!(1)), "two limits"),
        (with(chat(), "/tools", json!([])), "tools"),
        (without(chat(), "messages", 3), "followed"),
        (without(chat(), "messages", 2), "no call"),
        (without(chat(), "messages", 6), "nothing to answer"),
        (with(chat(), "/messages/1/content", json!(" ")), "blank"),
        (with(chat(), "/messages/1/role", json!("system")), "role"),
        (with(chat(), "/messages/2/tool_calls", json!([])), "empty"),
        (with(chat(), "/messages/5/content", Value::Null), "content"),
        (
            with(chat(), &format!("{call}/id"), json!("call_1")),
            "again",
        ),
        (with(chat(), &format!("{call}/id"), json!("é")), "legal"),
        (
            with(chat(), &format!("{call}/function/name"), json!("a b")),
            "legal",
        ),
        (
            with(chat(), &format!("{call}/function/arguments"), json!("{")),
            "arguments",
        ),
    ];
    for (number, (body, named)) in table.into_iter().enumerate() {
        let refused = wire::chat::check(&body).unwrap_err();
        assert!(refused.contains(named), "{number}: {refused}");
    }
}
