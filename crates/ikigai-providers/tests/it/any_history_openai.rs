//! Requests of any history pass the published rules of OpenAI-compatible services.

use ikigai_core::message::{Block, Payload, Role};
use ikigai_core::project::{ToolFacts, ToolSpec};
use ikigai_core::{Request, Target};
use ikigai_providers::catalogue::{ThinkingStyle, ThinkingValue};
use ikigai_providers::dialect::{Order, Quirks};
use ikigai_testkit::generate::{History, OWN, actions};
use ikigai_testkit::wire::{self, requests_of};
use ikigai_testkit::{cases, target};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::support::dialect;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: cases(500, 20_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Payloads of blocks: ones that the dialects create, and foreign ones.
const PAYLOADS: [&str; 12] = [
    r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}"#,
    r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gBBB","status":null}"#,
    r#"{"type":"reasoning","id":"rs_3","content":[{"type":"reasoning_text","text":"hm"}]}"#,
    r#"{"type":"reasoning","id":"rs_4","summary":[]}"#,
    r#"{"id":"msg_1","phase":"final_answer","after":"rs_1"}"#,
    r#"{"id":"fc_1","after":"rs_4"}"#,
    r#"{"id":"fc_2"}"#,
    r#"{"field":"reasoning_content"}"#,
    r#"{"field":"think"}"#,
    r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"AAAA"}]}"#,
    r#"{"signature":"s"}"#,
    "no json",
];

/// Replaces the generator's payloads.
fn hang(request: &mut Request, mut payloads: impl Iterator<Item = &'static str>) {
    let mut swap = |payload: &mut Payload| {
        payloads
            .next()
            .unwrap_or_default()
            .clone_into(&mut payload.payload);
    };
    for message in &mut request.messages {
        for block in &mut message.blocks {
            if let Block::Thinking {
                payload: Some(payload),
                ..
            } = block
            {
                swap(payload);
            }
        }
        for item in &mut message.metadata {
            swap(&mut item.item);
        }
    }
}

fn targets() -> [Target; 2] {
    let mut stranger = target("stranger", OWN.1);
    stranger.tools.push(ToolSpec {
        name: "bash".to_owned(),
        description: "runs a command".to_owned(),
        parameters: json!({"type": "object"}),
        facts: ToolFacts::default(),
    });
    [target(OWN.0, OWN.1), stranger]
}

fn quirks() -> impl Strategy<Value = Quirks> {
    any::<[bool; 6]>().prop_map(|bits| Quirks {
        old_max_tokens: bits[0],
        echoes_reasoning: bits[1],
        cache_key: bits[2],
        no_encrypted_reasoning: bits[3],
        short_call_ids: bits[4],
        alternating_roles: bits[5],
    })
}

fn order<'a>(
    request: &'a Request,
    thinking: Option<&'a ThinkingValue>,
    quirks: Quirks,
) -> Order<'a> {
    Order {
        request,
        model: OWN.1,
        thinking,
        max_output: 4000,
        cache_key: "agent",
        quirks,
    }
}

/// Returns the conversation in a body.
fn list(name: &str, body: &Value) -> Vec<Value> {
    let key = if name == "chat" { "messages" } else { "input" };
    body[key].as_array().unwrap().clone()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn prop_any_history_is_taken_by_openai_and_its_like(
        actions in actions(30),
        picks in vec(0..1000_usize, 4),
        payloads in vec(select(&PAYLOADS[..]), 1..8),
        effort in select(&[None, Some("none"), Some("high")][..]),
        quirks in quirks(),
    ) {
        let history = History::of(&actions);
        let thinking = effort.map(|word| ThinkingValue {
            style: ThinkingStyle::Effort,
            value: json!(word),
        });
        for target in targets() {
            for mut request in requests_of(&history, &picks, &target) {
                hang(&mut request, payloads.iter().copied().cycle());
                let order = order(&request, thinking.as_ref(), quirks);

                let responses = dialect("responses").encode(&order);
                let chat = dialect("chat").encode(&order);

                prop_assert_eq!(wire::responses::check(&responses), Ok(()), "{}", responses);
                prop_assert_eq!(wire::chat::check(&chat), Ok(()), "{}", chat);
                if quirks.alternating_roles {
                    prop_assert_eq!(wire::chat::check_turns(&chat), Ok(()), "{}", chat);
                }
                if quirks.short_call_ids {
                    prop_assert_eq!(wire::chat::check_short_ids(&chat), Ok(()), "{}", chat);
                }
            }
        }
    }

    /// A longer request begins with the same bytes as an earlier one, so prompt caches hit.
    #[test]
    fn prop_encodings_grow_at_their_end(
        actions in actions(30),
        picks in vec(0..1000_usize, 2),
        payloads in vec(select(&PAYLOADS[..]), 1..8),
        quirks in quirks(),
    ) {
        // Merging two messages of one role depends on the second one.
        let quirks = Quirks { alternating_roles: false, ..quirks };
        let history = History::of(&actions);
        for mut request in requests_of(&history, &picks, &target(OWN.0, OWN.1)) {
            hang(&mut request, payloads.iter().copied().cycle());
            for name in ["responses", "chat"] {
                let whole = list(name, &dialect(name).encode(&order(&request, None, quirks)));
                for length in 1..request.messages.len() {
                    let mut earlier = request.clone();
                    earlier.messages.truncate(length);
                    if earlier.messages.last().is_none_or(|last| last.role == Role::Assistant) {
                        continue;
                    }
                    let part = list(name, &dialect(name).encode(&order(&earlier, None, quirks)));
                    prop_assert!(whole.starts_with(&part), "{} {:?} {:?}", name, part, whole);
                }
            }
        }
    }
}
