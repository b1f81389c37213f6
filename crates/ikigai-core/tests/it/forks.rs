//! Forks: rows that parent and child share, and the rows that each receives.

use ikigai_core::data::{ForkContext, SystemOrigin, Via};
use ikigai_core::fork::ForkOrder;
use ikigai_core::{AgentId, Event, Message, Role, Row, RowRef, Seq};
use ikigai_store::Agent;
use ikigai_testkit::{TestLog, block_on, target};
use serde_json::{Map, Value, json};

use crate::reading::{kinds, places, said, shown};

fn data_of(row: &Row) -> Value {
    serde_json::from_str(row.data.as_deref().unwrap()).unwrap()
}

fn set(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Creates a root with settings, a system prompt and one exchange: five rows.
fn parent_of(log: &mut TestLog) -> AgentId {
    let parent = log.root();
    let settings = json!({"name": "root", "workdir": "/a", "approve": "ask"});
    log.append(parent, Event::set("start", set(&settings)));
    log.append(parent, Event::system("be terse", SystemOrigin::Start));
    log.append(parent, Event::user("hello"));
    log.append(parent, Event::assistant(1, "hi"));
    log.append(parent, Event::mark(Some("here")));
    parent
}

fn fresh(log: &TestLog, name: &str) -> ForkOrder {
    let mut order = log.order(name);
    order.context = ForkContext::Fresh;
    order
}

/// S3-2 S2-39 S2-46: an inheriting child equals its parent at any fork point.
#[test]
fn inheriting_child_equals_parent_at_fork() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);
    let head = log.append(parent, Event::user("left behind"));
    log.append(
        parent,
        Event::rewind(RowRef::new(parent, Seq(4)), head, Via::Undo),
    );
    log.append(parent, Event::user("again"));
    let rows = log.live(parent).state.head().0;

    for seq in 1..=rows {
        let at = RowRef::new(parent, Seq(seq));
        let mut then = block_on(Agent::restore_at(&log.store, at)).unwrap();
        block_on(then.read_all(&log.store)).unwrap();
        let mut order = log.order(&format!("child-{seq}"));
        order.at = Some(at);

        let child = log.fork(parent, order);

        for child in [log.live(child), log.replayed(child)] {
            let inherited = child.view.entries().len() - 1;
            assert_eq!(places(&child)[..inherited], places(&then));
            assert_eq!(shown(&child)[..inherited], shown(&then));
            assert_eq!(child.view.conversation(), then.view.conversation());
        }
    }
}

/// S3-28 S3-41: a child is the same at its fork and after a restart, inheriting or fresh.
#[test]
fn fork_and_restart_give_same_child() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);
    let mut prompted = log.order("prompted");
    prompted.prompt = Some("go".into());
    let mut earlier = log.order("earlier");
    earlier.at = Some(RowRef::new(parent, Seq(3)));
    let orders = [log.order("plain"), prompted, earlier, fresh(&log, "fresh")];

    for order in orders {
        let child = log.fork(parent, order);

        let at_fork = log.live(child);
        log.append(parent, Event::user("later"));
        let restarted = log.replayed(child);

        assert_eq!(restarted, at_fork);
        assert_eq!(shown(&restarted), shown(&at_fork));
        assert_eq!(restarted.view.conversation(), at_fork.view.conversation());
    }
}

/// D10b: a fresh child has a system row and no ancestor's rows, also after a restart.
#[test]
fn fresh_child_stays_fresh_after_restart() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);
    let mut order = fresh(&log, "fresh");
    order.prompt = Some("go".into());
    let child = log.fork(parent, order);
    log.append(parent, Event::user("later"));

    for fresh in [log.live(child), log.replayed(child)] {
        assert_eq!(kinds(&fresh), ["fork", "system", "user"]);
        assert!(places(&fresh).iter().all(|row| row.agent == child));
        assert_eq!(said(&fresh), ["go"]);
        assert_eq!(fresh.state.system(), Some("be terse"));
        assert_eq!(fresh.state.system_row(), Some(RowRef::new(child, Seq(2))));
        assert_eq!(fresh.state.marks().count(), 0);
    }
    let request = log.request(child, &target("p", "m")).unwrap();
    assert_eq!(request.system.as_deref(), Some("be terse"));
    assert_eq!(request.messages, [Message::text(Role::User, "go")]);
}

/// D10c S3-32: both histories get a `fork` row, for forks by users and by calls.
///
/// This holds for inheriting and fresh children.
#[test]
fn both_fork_rows_always_written() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);
    let call = log.append(parent, Event::tool_call(2, "c", "fork", "{}"));
    let mut number = 0;
    for context in [ForkContext::Inherit, ForkContext::Fresh] {
        for call in [None, Some(call)] {
            number += 1;
            let mut order = log.order(&format!("child-{number}"));
            (order.context, order.call) = (context, call);
            let before = log.rows(parent);

            let child = log.fork(parent, order);

            let rows = log.rows(parent);
            assert_eq!(rows[..before.len()], before);
            let added: Vec<_> = rows[before.len()..]
                .iter()
                .map(|row| row.kind.name())
                .collect();
            assert_eq!(added, ["fork"]);
            assert_eq!(log.rows(child)[0].kind.name(), "fork");
        }
    }
}

/// S3-33: text and data of the parent's row.
#[test]
fn parent_fork_row_shape() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);
    let call = log.append(parent, Event::tool_call(2, "c", "fork", "{}"));
    let mut by_tool = log.order("by-tool");
    by_tool.call = Some(call);
    let cases = [
        (
            log.order("plain"),
            json!({"fork_message_id": 6, "fork_point": {"agent": parent, "seq": 6}}),
        ),
        (
            fresh(&log, "fresh"),
            json!({"fork_message_id": null, "fork_point": null}),
        ),
        (
            by_tool,
            json!({"fork_message_id": 8, "fork_point": {"agent": parent, "seq": 8}, "call": call}),
        ),
    ];

    for (order, mut expected) in cases {
        let name = order.name.clone();
        let child = log.fork(parent, order);

        let row = log.rows(parent).pop().unwrap();
        expected["role"] = json!("parent");
        expected["child_uuid"] = json!(child);
        expected["child_name"] = json!(name);
        assert!(
            row.content
                .as_deref()
                .unwrap()
                .starts_with(&format!("Forked child {child}"))
        );
        assert_eq!(data_of(&row), expected);
    }
}

/// S3-34 S3-43: the child's row has the choice of context and all settings, and no time
/// in its data.
#[test]
fn child_fork_row_shape() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);
    let mut other_model = log.order("other");
    other_model.set = set(&json!({"model": {"provider": "p", "model": "m"}, "approve": null}));
    let mut at_inherited = log.order("early");
    at_inherited.at = Some(RowRef::new(parent, Seq(1)));
    let settings = json!({"workdir": "/a", "approve": "ask"});
    let changed = json!({"workdir": "/a", "model": {"provider": "p", "model": "m"}});
    let system = json!({"agent": parent, "seq": 2});
    let at = |seq| json!({"agent": parent, "seq": seq});
    let cases = [
        (
            log.order("plain"),
            "inherit",
            at(5),
            settings.clone(),
            system.clone(),
        ),
        (other_model, "inherit", at(6), changed, system.clone()),
        (at_inherited, "inherit", at(1), settings.clone(), system),
        (
            fresh(&log, "fresh"),
            "fresh",
            Value::Null,
            settings,
            Value::Null,
        ),
    ];

    for (order, context, fork_point, mut settings, system) in cases {
        settings["name"] = json!(order.name);
        let mut expected = json!({
            "role": "child",
            "parent_uuid": parent,
            "fork_message_id": fork_point["seq"],
            "fork_point": fork_point,
            "context": context,
            "parent_name": "root",
            "settings": settings,
        });
        if !system.is_null() {
            expected["system"] = system;
        }

        let child = log.fork(parent, order);

        let row = &log.rows(child)[0];
        assert!(
            row.content
                .as_deref()
                .unwrap()
                .starts_with(&format!("Forked from {parent}"))
        );
        assert_eq!(data_of(row), expected);
    }
}

/// S3-35: the two rows differ in `role`, and each names the other's agent.
#[test]
fn fork_rows_refer_to_each_other() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);

    for order in [log.order("plain"), fresh(&log, "fresh")] {
        let child = log.fork(parent, order);

        let told = data_of(log.rows(parent).last().unwrap());
        let first = data_of(&log.rows(child)[0]);
        assert_eq!(
            (&told["role"], &first["role"]),
            (&json!("parent"), &json!("child"))
        );
        assert_eq!(
            (&told["child_uuid"], &first["parent_uuid"]),
            (&json!(child), &json!(parent))
        );
        assert_eq!(
            (&told["parent_uuid"], &first["child_uuid"]),
            (&Value::Null, &Value::Null)
        );
    }
}

/// D13a S3-38: the default fork point is the row before the parent's `fork` row.
///
/// It may be any row or mark that the parent can reach.
#[test]
fn fork_point_excludes_parents_fork_row() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);
    let head = log.append(parent, Event::user("left behind"));
    let (mark, _) = log.live(parent).state.marks().next().unwrap();
    log.append(
        parent,
        Event::rewind(RowRef::new(parent, Seq(3)), head, Via::Undo),
    );
    let first = log.fork(parent, log.order("first"));
    let second = log.fork(parent, log.order("second"));
    let mut at = |agent, name: &str, row| {
        let mut order = log.order(name);
        order.at = Some(row);
        log.fork(agent, order)
    };
    let at_mark = at(parent, "at-mark", mark);
    let at_left = at(parent, "at-left", head);
    let at_inherited = at(at_left, "at-inherited", RowRef::new(parent, Seq(3)));

    let cases = [
        (first, "command system user rewind fork"),
        // The row about the first fork is inherited, the one about its own is not.
        (second, "command system user rewind fork fork"),
        (at_mark, "command system user assistant mark fork"),
        (at_left, "command system user assistant mark user fork fork"),
        (at_inherited, "command system user fork"),
    ];

    for (child, expected) in cases {
        let replayed = log.replayed(child);
        let about_itself = format!("Forked child {child}");
        assert_eq!(kinds(&replayed).join(" "), expected);
        assert!(!shown(&replayed).join("\n").contains(&about_itself));
    }
}

/// E20: a child starts with its parent's current settings and system prompt, at any fork point.
///
/// Settings that the fork names take precedence.
#[test]
fn child_starts_with_parents_settings_of_now() {
    let mut log = TestLog::default();
    let parent = parent_of(&mut log);
    log.append(
        parent,
        Event::set("workdir", set(&json!({"workdir": "/b"}))),
    );
    log.append(parent, Event::system("be kind", SystemOrigin::Typed));
    let expected = json!({"workdir": "/b", "approve": "ask"});
    let mut named = expected.clone();
    named["approve"] = json!("all");
    let early = Some(RowRef::new(parent, Seq(1)));
    let inherit = ForkContext::Inherit;
    let cases = [
        ("now", inherit, None, json!({}), &expected),
        ("at", inherit, early, json!({}), &expected),
        ("fresh", ForkContext::Fresh, None, json!({}), &expected),
        ("named", inherit, early, json!({"approve": "all"}), &named),
    ];
    let mut children = Vec::new();
    for (name, context, at, changes, settings) in cases {
        let mut order = log.order(name);
        (order.context, order.at, order.set) = (context, at, set(&changes));
        let mut settings = settings.clone();
        settings["name"] = json!(name);
        children.push((log.fork(parent, order), settings));
    }

    log.append(
        parent,
        Event::set("workdir", set(&json!({"workdir": "/c"}))),
    );
    log.append(parent, Event::system("be wild", SystemOrigin::Typed));

    for (child, settings) in children {
        for child in [log.live(child), log.replayed(child)] {
            assert_eq!(Value::Object(child.state.settings().as_set()), settings);
            assert_eq!(child.state.system(), Some("be kind"));
        }
    }
}
