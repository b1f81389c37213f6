//! Settings and snapshots: state folded from an agent's own rows.

use ikigai_core::data::{SystemOrigin, Via};
use ikigai_core::{Event, RowRef, Seq, Settings};
use ikigai_store::{AgentEffect, Batch, Effect, Log, ReadLog, Snapshot};
use ikigai_testkit::{TestLog, block_on};
use serde_json::{Map, Value, json};

fn set(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// N4a: settings are folded from the agent's own `fork` and `command` rows alone.
///
/// Only structured values count, on the path or not.
#[test]
fn settings_are_a_fold_of_own_events() {
    let mut log = TestLog::default();
    let parent = log.root();
    let start = json!({"name": "root", "workdir": "/a", "toolset": ["read"], "approve": "ask"});
    log.append(parent, Event::set("start", set(&start)));
    let agent = log.fork(parent, log.order("child"));
    let mut expected = start.clone();
    expected["name"] = json!("child");
    let settings = |value: &Value| serde_json::from_value::<Settings>(value.clone()).unwrap();
    assert_eq!(log.replayed(agent).state.settings(), &settings(&expected));

    let model = json!({"provider": "p", "model": "m", "level": "high"});
    let everything = json!({
        "model": model, "name": "other", "workdir": "/b", "toolset": [], "approve": "all",
        "pins": [{"path": "p", "hash": "h"}], "rules": [{"tool": "t", "pattern": "*"}],
        "budget_tokens": 7, "spend": {"usd": 0.5, "tokens": 9},
    });
    let mut without_rules = everything.clone();
    without_rules.as_object_mut().unwrap().remove("rules");
    let cases = [
        (
            json!({"command": "all", "set": everything}),
            everything.clone(),
        ),
        (
            json!({"command": "rules", "set": {"rules": null}}),
            without_rules.clone(),
        ),
        // The typed command line is never parsed again.
        (
            json!({"command": "model", "args": "q/n", "echo": "/model q/n"}),
            without_rules.clone(),
        ),
        (
            json!({"command": "bad", "set": {"workdir": 5, "toolset": "x"}}),
            without_rules.clone(),
        ),
        (
            json!({"command": "bad", "set": "workdir"}),
            without_rules.clone(),
        ),
        (
            json!({"command": "unknown", "set": {"colour": "red"}}),
            without_rules.clone(),
        ),
    ];
    for (data, expected) in cases {
        log.inject(
            agent,
            "command",
            Some("workdir /c"),
            Some(&data.to_string()),
            true,
        );
        assert_eq!(
            log.replayed(agent).state.settings(),
            &settings(&expected),
            "{data}"
        );
    }

    let head = log.append(
        agent,
        Event::set("workdir", set(&json!({"workdir": "/off"}))),
    );
    log.append(
        agent,
        Event::rewind(RowRef::new(agent, Seq(1)), head, Via::Rewind),
    );
    log.append(
        parent,
        Event::set("workdir", set(&json!({"workdir": "/parent"}))),
    );
    without_rules["workdir"] = json!("/off");
    assert_eq!(
        log.replayed(agent).state.settings(),
        &settings(&without_rules)
    );
    assert_eq!(log.replayed(agent), log.live(agent));
}

/// N4c: inherited settings never override those of the fork or of the child.
#[test]
fn child_model_survives_restart() {
    let model = |name: &str| set(&json!({"model": {"provider": "p", "model": name}}));
    let name_of = |log: &TestLog, agent| {
        let settings = log.replayed(agent).state.settings().clone();
        settings.model.and_then(|model| model.model)
    };
    let mut log = TestLog::default();
    let parent = log.root();
    log.append(parent, Event::set("model", model("first")));
    let mut order = log.order("child");
    order.set = model("child's");
    let child = log.fork(parent, order);
    log.append(parent, Event::set("model", model("second")));
    let heir = log.fork(child, log.order("heir"));

    assert_eq!(name_of(&log, parent).as_deref(), Some("second"));
    assert_eq!(name_of(&log, child).as_deref(), Some("child's"));
    assert_eq!(name_of(&log, heir).as_deref(), Some("child's"));

    log.append(child, Event::set("model", model("third")));

    assert_eq!(name_of(&log, child).as_deref(), Some("third"));
    assert_eq!(name_of(&log, heir).as_deref(), Some("child's"));
    assert_eq!(log.replayed(child), log.live(child));
}

/// N4d: no clear or rewind changes a setting or the system prompt.
#[test]
fn clear_and_rewind_keep_settings() {
    let mut log = TestLog::default();
    let agent = log.root();
    let first = log.append(agent, Event::user("one"));
    let prompt = Event::system("be terse", SystemOrigin::Typed);
    log.append(agent, prompt);
    let head = log.append(agent, Event::set("workdir", set(&json!({"workdir": "/a"}))));
    let before = log.live(agent).state;

    let changes = [Event::rewind(first, head, Via::Rewind), Event::Clear];

    for change in changes {
        log.append(agent, change);
        for state in [log.live(agent).state, log.replayed(agent).state] {
            assert_eq!(state.settings(), before.settings());
            assert_eq!(state.system(), Some("be terse"));
            assert_eq!(state.system_row(), before.system_row());
        }
    }
}

/// A snapshot shortens reading and changes no state; an unreadable one counts as absent.
#[test]
fn snapshots_change_no_state() {
    let mut log = TestLog::default();
    let parent = log.root();
    let start = json!({"name": "root", "workdir": "/a"});
    log.append(parent, Event::set("start", set(&start)));
    log.append(parent, Event::system("be terse", SystemOrigin::Start));
    let agent = log.fork(parent, log.order("child"));
    log.append(agent, Event::set("workdir", set(&json!({"workdir": "/b"}))));
    let folded = log.live(agent).state.to_snapshot();
    let upto = log.append(agent, Event::user("one"));
    log.append(
        agent,
        Event::set("toolset", set(&json!({"toolset": ["read"]}))),
    );
    let expected = log.live(agent);

    let cases = [
        folded.as_str(),
        "",
        "{",
        "[]",
        "null",
        "{}",
        r#"{"settings":{"name":"x"}}"#,
    ];

    for folded in cases {
        let snapshot = Snapshot {
            upto,
            folded: folded.to_owned(),
        };
        let with = vec![Effect::PutSnapshot(snapshot)];
        block_on(log.store.commit(Batch {
            with,
            ..Batch::default()
        }))
        .unwrap();
        assert_eq!(log.replayed(agent), expected, "{folded}");
    }
}

/// The store's columns of an agent are a cache; no state is read from them.
#[test]
fn state_is_read_from_rows_and_not_from_the_agent_row() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::set("start", set(&json!({"name": "right"}))));
    let before = log.replayed(agent);
    let rename = Effect::Agent(AgentEffect::SetName {
        agent,
        name: "wrong".to_owned(),
    });

    block_on(log.store.commit(Batch {
        with: vec![rename],
        ..Batch::default()
    }))
    .unwrap();

    let record = block_on(log.store.agent(agent)).unwrap().unwrap();
    assert_eq!(record.name, "wrong");
    assert_eq!(log.replayed(agent), before);
    assert_eq!(before.state.settings().name.as_deref(), Some("right"));
}
