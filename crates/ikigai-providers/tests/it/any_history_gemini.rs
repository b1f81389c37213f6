//! Requests of any history follow Gemini's rules.

use ikigai_core::{Block, Request, Target};
use ikigai_providers::catalogue::{ThinkingStyle, ThinkingValue};
use ikigai_providers::dialect::{Dialect, Order, Quirks};
use ikigai_providers::dialects::gemini::Gemini;
use ikigai_testkit::generate::{History, OWN, actions};
use ikigai_testkit::wire::gemini::{check, check_signatures};
use ikigai_testkit::wire::{requests_of, successive_requests};
use ikigai_testkit::{cases, target};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversations::tools;
use crate::payloads::translate;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: cases(500, 20_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

const NEW: &str = "gemini-3.8-flash";
const OLD: &str = "gemini-2.5-pro";

fn encode(request: &Request, model: &str, thinking: Option<&ThinkingValue>) -> Value {
    Gemini.encode(&Order {
        request,
        model,
        thinking,
        max_output: 8000,
        cache_key: "agent",
        quirks: Quirks::default(),
    })
}

/// Adds signatures as Gemini attaches them to parts, and calls with and without id.
fn with_payloads(mut request: Request) -> Request {
    let thinking = |text: &str| {
        let text = if text == "thought 0" { "" } else { " " };
        json!({"text": text, "thoughtSignature": "t"}).to_string()
    };
    let item = |block: &Block| match block {
        Block::ToolCall { id, .. } if id.len() % 3 == 0 => json!({"id": id}),
        Block::ToolCall { id, .. } if id.len() % 3 == 1 => {
            json!({"id": id, "thoughtSignature": "c"})
        }
        _ => json!({"thoughtSignature": "p"}),
    };
    translate(&mut request, thinking, |block| item(block).to_string());
    request
}

fn targets() -> [Target; 3] {
    let mut equipped = target(OWN.0, OWN.1);
    equipped.tools = tools();
    [equipped, target(OWN.0, OWN.1), target("stranger", OWN.1)]
}

fn thinking() -> impl Strategy<Value = Option<ThinkingValue>> {
    let values = [
        None,
        Some((ThinkingStyle::Level, json!("MINIMAL"))),
        Some((ThinkingStyle::Budget, json!(0))),
        Some((ThinkingStyle::Budget, json!(32_768))),
        Some((ThinkingStyle::None, Value::Null)),
    ];
    let value = |(style, value)| ThinkingValue { style, value };
    proptest::sample::select(values.map(|case| case.map(value)).to_vec())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_request_to_gemini_keeps_its_rules(
        actions in actions(30),
        picks in vec(0..1000_usize, 4),
        thinking in thinking(),
    ) {
        let history = History::of(&actions);
        for target in targets() {
            for request in requests_of(&history, &picks, &target) {
                for request in [with_payloads(request.clone()), request] {
                    let body = encode(&request, OLD, thinking.as_ref());
                    prop_assert_eq!(check(&body), Ok(()), "{:#}", body);

                    let body = encode(&request, NEW, thinking.as_ref());
                    prop_assert_eq!(check(&body), Ok(()), "{:#}", body);
                    prop_assert_eq!(check_signatures(&body), Ok(()), "{:#}", body);
                    let contents = body["contents"].as_array().unwrap();
                    prop_assert_eq!(contents.len(), request.messages.len());
                }
            }
        }
    }

    #[test]
    fn requests_to_gemini_extend_their_predecessor(actions in actions(30)) {
        let history = History::of(&actions);
        for target in targets() {
            for (earlier, later) in successive_requests(&history, &target) {
                let earlier = encode(&with_payloads(earlier), NEW, None);
                let later = encode(&with_payloads(later), NEW, None);

                prop_assert_eq!(&earlier["systemInstruction"], &later["systemInstruction"]);
                prop_assert_eq!(&earlier["tools"], &later["tools"]);
                let (before, after) = (earlier["contents"].as_array(), later["contents"].as_array());
                let extends = after.unwrap().starts_with(before.unwrap());
                prop_assert!(extends, "{:#} {:#}", earlier, later);
            }
        }
    }
}
