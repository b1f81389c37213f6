//! One conversation, carried from provider to provider.

use ikigai_core::data::{AssistantData, Opaque, StoredThinking, ToolCallData};
use ikigai_core::{AgentId, Event};
use ikigai_providers::dialect::{Order, Quirks};
use ikigai_providers::dialects;
use ikigai_testkit::wire;
use ikigai_testkit::{TestLog, target};
use serde_json::Value;

type Check = fn(&Value) -> Result<(), String>;

/// Thinking payload that each dialect wants back.
const PROVIDERS: [(&str, &str); 4] = [
    (
        "responses",
        r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"opaque of responses"}"#,
    ),
    ("chat", r#"{"field":"reasoning_content"}"#),
    ("messages", r#"{"signature":"opaque of messages"}"#),
    ("gemini", r#"{"thoughtSignature":"opaque of gemini"}"#),
];

fn thought(provider: &str, payload: &str) -> Opaque {
    let thinking = StoredThinking {
        text: Some(format!("a thought of {provider}")),
        provider: Some(provider.to_owned()),
        model: Some("model".to_owned()),
        payload: Some(payload.to_owned()),
    };
    Opaque {
        thinking: Some(vec![thinking]),
        item: None,
    }
}

/// Returns a log with one turn of each provider.
///
/// A turn has thinking, text, two calls with their results, and an answer.
fn carried_through_all() -> (TestLog, AgentId) {
    let mut log = TestLog::new(5);
    let agent = log.root();
    let mut response = 0;
    for (provider, payload) in PROVIDERS {
        response += 1;
        log.append(agent, Event::user(format!("a question for {provider}")));
        let said = Event::Assistant {
            text: "I look.".to_owned(),
            data: AssistantData {
                response: Some(response),
                opaque: Some(thought(provider, payload)),
                ..AssistantData::default()
            },
        };
        let call = |id: &str| {
            let data = ToolCallData {
                tool_call_id: Some(id.to_owned()),
                name: Some("file_read".to_owned()),
                arguments: Some(r#"{"file_path":"a.txt"}"#.to_owned()),
                response: Some(response),
                opaque: None,
            };
            Event::ToolCall { shown: None, data }
        };
        let rows = log.append_all(agent, vec![said, call("call_1"), call("not legal!")]);
        for (row, id) in [(rows[2], "not legal!"), (rows[1], "call_1")] {
            let result = Event::tool_result(row, id, "file_read", "some text", id == "call_1");
            log.append(agent, result);
        }
        response += 1;
        log.append(
            agent,
            Event::assistant(response, format!("An answer of {provider}.")),
        );
    }
    log.append(agent, Event::user("and now?"));
    (log, agent)
}

fn encoded(log: &TestLog, agent: AgentId, name: &str) -> Value {
    let request = log.request(agent, &target(name, "model")).unwrap();
    let dialect = dialects::by_name(name).unwrap();
    dialect.encode(&Order {
        request: &request,
        model: "model",
        thinking: None,
        max_output: 4_000,
        cache_key: "conversation",
        quirks: Quirks::default(),
    })
}

/// S0-28: a restored conversation passes the request checker of every provider.
///
/// It has text, thinking and tool pairs, and each turn came from another provider.
#[test]
fn restored_conversation_serialises_for_all_providers() {
    let (log, agent) = carried_through_all();
    let checks: [Check; 4] = [
        wire::responses::check,
        wire::chat::check,
        wire::messages::check,
        wire::gemini::check,
    ];

    for ((name, _), check) in PROVIDERS.into_iter().zip(checks) {
        let body = encoded(&log, agent, name);
        assert_eq!(check(&body), Ok(()), "{name}: {body}");
    }
}

#[test]
fn opaque_payloads_go_to_whom_they_came_from_and_to_nobody_else() {
    let (log, agent) = carried_through_all();

    for (name, _) in PROVIDERS {
        let body = encoded(&log, agent, name).to_string();
        for (other, _) in PROVIDERS.into_iter().filter(|(other, _)| *other != "chat") {
            let found = body.contains(&format!("opaque of {other}"));
            assert_eq!(found, name == other, "{other} in a request to {name}");
        }
    }
}
