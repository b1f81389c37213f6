//! Forged rows: no content of the log causes a panic.

use ikigai_core::data::ForkContext;
use ikigai_core::load::load;
use ikigai_core::render::render;
use ikigai_core::{AgentId, Budget, CannotProject, Event, Kind, project};
use ikigai_testkit::{TestLog, cases, check_request, target};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::reading::{said, shown};

/// A row to be forged: its kind, its text and its data.
type Forged = (String, Option<String>, Option<String>);

fn kind_name() -> impl Strategy<Value = String> {
    let known: Vec<_> = Kind::ALL
        .iter()
        .map(|kind| kind.name().to_owned())
        .collect();
    prop_oneof![20 => prop::sample::select(known), 1 => Just("tool".to_owned()), 1 => ".*"]
}

/// Generates any JSON, mostly objects with known keys.
fn json_value() -> impl Strategy<Value = Value> {
    const KEYS: [&str; 27] = [
        "agent",
        "arguments",
        "cache_read",
        "call",
        "category",
        "cause",
        "context",
        "echo",
        "fork_point",
        "from",
        "function",
        "input",
        "name",
        "omit",
        "opaque",
        "output",
        "response",
        "resume",
        "role",
        "seq",
        "set",
        "settings",
        "success",
        "target",
        "to",
        "tool_call_id",
        "undo",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u64..12).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,9}".prop_map(Value::from),
        prop::sample::select(vec!["child", "parent", "inherit", "fresh", "retry"])
            .prop_map(Value::from),
        // Stands for a row of one of the agents.
        (0_u64..2, 0_u64..12).prop_map(|(agent, seq)| json!({"agent": agent, "seq": seq})),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(KEYS.to_vec()), inner, 0..7)
                .prop_map(|map| json!(map)),
        ]
    })
}

fn forged() -> impl Strategy<Value = Forged> {
    let data = prop_oneof![
        12 => json_value().prop_map(|value| value.to_string()),
        1 => "\\PC{0,20}",
        1 => Just("[".repeat(100_000)),
    ];
    (
        kind_name(),
        prop::option::of(".{0,20}"),
        prop::option::weighted(0.9, data),
    )
}

/// Replaces agent numbers by the ids of real agents.
fn with_agents(data: &str, agents: &[AgentId]) -> String {
    let mut data = data.to_owned();
    for (number, agent) in agents.iter().enumerate() {
        data = data.replace(
            &format!(r#""agent":{number},"#),
            &format!(r#""agent":"{agent}","#),
        );
    }
    data
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(500, 20_000)) })]

    /// S2-30: no stored row causes a panic, with any bytes.
    ///
    /// The restored state equals the live one, and every request is valid.
    #[test]
    fn fuzz_external_input_never_panics(
        rows in prop::collection::vec((any::<bool>(), forged()), 0..24),
        window in prop_oneof![Just(u64::MAX), 0_u64..200],
    ) {
        let mut log = TestLog::default();
        let parent = log.root();
        log.append(parent, Event::user("one"));
        let child = log.fork(parent, log.order("child"));
        let agents = [parent, child];
        for (to_child, (kind, content, data)) in rows {
            let data = data.map(|data| with_agents(&data, &agents));
            let agent = agents[usize::from(to_child)];
            log.inject(agent, &kind, content.as_deref(), data.as_deref(), true);
        }
        let mut order = log.order("heir");
        order.context = if window % 2 == 0 { ForkContext::Fresh } else { ForkContext::Inherit };
        let heir = log.fork(child, order);

        for agent in [parent, child, heir] {
            let live = log.live(agent);
            let replayed = log.replayed(agent);
            prop_assert!(replayed == live);
            prop_assert!(ikigai_core::state::ReadSnapshot::read(&live.state.to_snapshot()).is_some());
            for entry in live.view.entries() {
                let _ = load(&entry.row);
                let _ = render(&entry.row).to_string();
            }
            let _ = (shown(&live), said(&live), live.state.summaries());
            prop_assert!(live.view.is_busy(live.state.path()).is_some());
            let to = target("p", "m");
            match project(&live.state, &live.view, &to, &Budget::new(window, Some(window / 2))) {
                Ok(request) => prop_assert_eq!(check_request(&request, &to), Ok(())),
                Err(CannotProject::NoUserMessage | CannotProject::NoRoom { .. }) => {}
            }
        }
    }
}
