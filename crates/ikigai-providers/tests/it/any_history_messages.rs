//! Requests of any history follow Anthropic's rules.

use ikigai_core::{Request, Target};
use ikigai_providers::catalogue::{ThinkingStyle, ThinkingValue};
use ikigai_providers::dialect::{Dialect, Order, Quirks};
use ikigai_providers::dialects::messages::{Messages, locate};
use ikigai_testkit::generate::{History, OWN, actions};
use ikigai_testkit::wire::messages::{check, unmarked};
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

fn encode(request: &Request, thinking: Option<&ThinkingValue>) -> Value {
    Messages.encode(&Order {
        request,
        model: OWN.1,
        thinking,
        max_output: 8000,
        cache_key: "agent",
        quirks: Quirks::default(),
    })
}

/// Replaces thinking payloads by Anthropic's: a signature, or redacted data.
fn with_payloads(mut request: Request) -> Request {
    let thinking = |text: &str| match text {
        "thought 0" => "{\"signature\":\"s\"}".to_owned(),
        _ => "{\"data\":\"d\"}".to_owned(),
    };
    translate(&mut request, thinking, |_| "{}".to_owned());
    request
}

fn targets() -> [Target; 3] {
    let mut equipped = target(OWN.0, OWN.1);
    equipped.tools = tools();
    [equipped, target(OWN.0, OWN.1), target("stranger", OWN.1)]
}

fn thinking() -> impl Strategy<Value = Option<ThinkingValue>> {
    let (adaptive, budget) = (ThinkingStyle::Adaptive, ThinkingStyle::Budget);
    let values = [
        None,
        Some((adaptive, json!("max"))),
        Some((adaptive, json!("between_tools"))),
        Some((budget, json!(1024))),
        Some((budget, json!(32_000))),
        Some((budget, json!("disabled"))),
        Some((ThinkingStyle::None, Value::Null)),
    ];
    let value = |(style, value)| ThinkingValue { style, value };
    proptest::sample::select(values.map(|case| case.map(value)).to_vec())
}

/// Returns the blocks of the conversation, each with its role.
fn blocks_of(body: &Value) -> Vec<(&Value, &Value)> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages
        .flat_map(|message| {
            let blocks = message["content"].as_array().into_iter().flatten();
            blocks.map(|block| (&message["role"], block))
        })
        .collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_request_to_anthropic_keeps_its_rules(
        actions in actions(30),
        picks in vec(0..1000_usize, 4),
        thinking in thinking(),
    ) {
        let history = History::of(&actions);
        for target in targets() {
            for request in requests_of(&history, &picks, &target) {
                let body = encode(&request, thinking.as_ref());
                prop_assert_eq!(check(&body), Ok(()), "{:#}", body);

                let body = encode(&with_payloads(request), thinking.as_ref());
                prop_assert_eq!(check(&body), Ok(()), "{:#}", body);
            }
        }
    }

    #[test]
    fn requests_to_anthropic_extend_their_predecessor(actions in actions(30)) {
        let history = History::of(&actions);
        for target in targets() {
            for (earlier, later) in successive_requests(&history, &target) {
                let earlier = unmarked(&encode(&with_payloads(earlier), None));
                let later = unmarked(&encode(&with_payloads(later), None));

                prop_assert_eq!(&earlier["system"], &later["system"]);
                if !target.tools.is_empty() {
                    prop_assert_eq!(&earlier["tools"], &later["tools"]);
                }
                let extends = blocks_of(&later).starts_with(&blocks_of(&earlier));
                prop_assert!(extends, "{:#} {:#}", earlier, later);
            }
        }
    }

    /// The block that a refusal names is found again in the message that it came from.
    #[test]
    fn a_named_block_is_found_in_the_request(actions in actions(30)) {
        let history = History::of(&actions);
        for request in requests_of(&history, &[0], &target(OWN.0, OWN.1)) {
            let request = with_payloads(request);
            let body = encode(&request, None);
            let messages = body["messages"].as_array().unwrap();
            let mut expected = 0;
            for (index, message) in messages.iter().enumerate() {
                for block in 0..message["content"].as_array().unwrap().len() {
                    let words = format!("messages.{index}.content.{block}: is bad");
                    let found = locate(&request, &words).unwrap();
                    prop_assert!(found == expected || found == expected + 1);
                    expected = found;
                }
            }
            prop_assert_eq!(expected + 1, request.messages.len());
        }
    }
}
