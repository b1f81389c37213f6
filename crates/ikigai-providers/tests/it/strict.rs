//! Requirements of strict servers of the Chat dialect.

use ikigai_core::message::{Message, Role};
use ikigai_providers::ProviderError;
use ikigai_providers::answer::FailureKind;
use ikigai_providers::dialect::{Order, Quirks};
use ikigai_providers::dialects::chat::locate;
use ikigai_providers::presets::preset;
use ikigai_testkit::wire::chat::{check, check_short_ids, check_turns};
use serde_json::{Value, json};

use crate::matrix::{request, results};
use crate::support::dialect;

const ALTERNATING: Quirks = Quirks {
    old_max_tokens: true,
    echoes_reasoning: false,
    cache_key: false,
    no_encrypted_reasoning: true,
    short_call_ids: false,
    alternating_roles: true,
};

const SHORT: Quirks = Quirks {
    short_call_ids: true,
    alternating_roles: false,
    ..ALTERNATING
};

fn order(request: &ikigai_core::Request, quirks: Quirks) -> Order<'_> {
    Order {
        request,
        model: "m",
        thinking: None,
        max_output: 100,
        cache_key: "",
        quirks,
    }
}

/// Returns the messages after the system prompt.
fn messages(spoken: Vec<Message>, quirks: Quirks) -> Vec<Value> {
    let request = request(spoken);
    let body = dialect("chat").encode(&order(&request, quirks));
    assert_eq!(check(&body), Ok(()), "{body}");
    body["messages"].as_array().unwrap()[1..].to_vec()
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn calls(ids: &[&str]) -> Message {
    let mut message = Message::tool_call(ids[0], "ls", "{}");
    for id in &ids[1..] {
        message
            .blocks
            .extend(Message::tool_call(*id, "ls", "{}").blocks);
    }
    message
}

#[test]
fn neighbours_of_one_role_become_one_message() {
    let spoken = vec![
        user("one"),
        user("two"),
        Message::text(Role::Assistant, "three"),
        user("four"),
    ];

    let alternating = messages(spoken.clone(), ALTERNATING);
    let plain = messages(spoken, SHORT);

    let expected = [
        json!({"role": "user", "content": "one\n\ntwo"}),
        json!({"role": "assistant", "content": "three"}),
        json!({"role": "user", "content": "four"}),
    ];
    assert_eq!(alternating, expected);
    assert_eq!(plain.len(), 4, "only for those who want it");
}

#[test]
fn somebody_speaks_between_a_result_and_a_user() {
    let spoken = vec![
        user("list"),
        calls(&["call_1"]),
        results(&[("call_1", "a", false)]),
        user("stop"),
        user("what was it?"),
    ];

    let alternating = messages(spoken, ALTERNATING);

    let roles: Vec<_> = alternating.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(alternating[4]["content"], "stop\n\nwhat was it?");
}

/// A refusal of a merged message names no message to leave out.
#[test]
fn a_refusal_names_no_message_that_was_put_together() {
    let spoken = vec![
        user("one"),
        user("two"),
        calls(&["call_1"]),
        results(&[("call_1", "a", false)]),
        user("three"),
    ];
    let request = request(spoken);
    let named = |index: usize| {
        let mut error = ProviderError::new(FailureKind::BadRequest, "no");
        error.names_message = Some(index);
        locate(&order(&request, ALTERNATING), &error)
    };

    // System, the two users, the call, its result, the filler, the last user.
    let expected = [None, None, Some(2), Some(3), None, Some(4), None];
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(named), expected);
}

#[test]
fn ids_are_made_nine_letters_and_digits_and_the_same_ones_every_time() {
    let spoken = vec![
        user("list"),
        calls(&["call_1", "aB3dE6gH9", "toolu_01-x"]),
        results(&[
            ("call_1", "a", false),
            ("aB3dE6gH9", "b", false),
            ("toolu_01-x", "c", false),
        ]),
        calls(&["call_2"]),
        results(&[("call_2", "d", false)]),
    ];

    let whole = messages(spoken.clone(), SHORT);
    let part = messages(spoken[..3].to_vec(), SHORT);
    let plain = messages(spoken, ALTERNATING);

    let body = json!({"messages": whole});
    assert_eq!(check_short_ids(&body), Ok(()), "{body}");
    assert_eq!(whole[1]["tool_calls"][1]["id"], "aB3dE6gH9", "it fits");
    assert!(whole.starts_with(&part));
    assert_eq!(plain[1]["tool_calls"][0]["id"], "call_1");
    let first = whole[1]["tool_calls"][0]["id"].as_str();
    assert_eq!(first, Some("9gD2Dimct"), "also in the next version");
}

/// A valid id is replaced if it was already generated for another call.
#[test]
fn an_id_is_given_once() {
    let made_up = messages(
        vec![
            user("list"),
            calls(&["call_1"]),
            results(&[("call_1", "a", false)]),
        ],
        SHORT,
    );
    let taken = made_up[1]["tool_calls"][0]["id"].as_str().unwrap();

    // The checker refuses an id that occurs again.
    let both = messages(
        vec![
            user("list"),
            calls(&["call_1", taken]),
            results(&[("call_1", "a", false), (taken, "b", false)]),
        ],
        SHORT,
    );

    assert_eq!(both[2]["tool_call_id"], json!(taken));
    assert_ne!(both[3]["tool_call_id"], json!(taken));
}

#[test]
fn mistral_is_strict_in_both() {
    let quirks = preset("mistral").unwrap().quirks;
    let spoken = vec![
        user("list"),
        calls(&["call_1"]),
        results(&[("call_1", "a", false)]),
        user("and?"),
    ];

    let body = json!({"messages": messages(spoken, quirks)});

    assert_eq!(check_turns(&body), Ok(()));
    assert_eq!(check_short_ids(&body), Ok(()));
}
