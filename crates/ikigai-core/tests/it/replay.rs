//! Replay: from rows back to the agent.

use ikigai_core::data::{
    AssistantData, ForkContext, Opaque, StoredThinking, SystemOrigin, Tagged, Via,
};
use ikigai_core::message::{BlockItem, Payload};
use ikigai_core::{
    AgentId, AgentState, Block, Event, Message, Micros, Role, Row, RowRef, Seq, Span, StoredKind,
    View,
};
use ikigai_store::{Agent, AgentEffect, Batch, Effect, Log, Status};
use ikigai_testkit::{TestLog, block_on};
use serde_json::{Value, json};

use crate::reading::{kinds, places, said};
use crate::source::{self, all_of_the_workspace};

/// Appends a question, a call with its result, and an answer.
fn tool_turn(log: &mut TestLog, agent: AgentId, response: u64, word: &str) {
    let id = format!("call_{word}");
    log.append(agent, Event::user(format!("read {word}")));
    let call = log.append(agent, Event::tool_call(response, &id, "read", word));
    let result = Event::tool_result(call, &id, "read", format!("text of {word}"), true);
    log.append(agent, result);
    log.append(
        agent,
        Event::assistant(response + 1, format!("{word} is read")),
    );
}

fn tool_messages(word: &str) -> [Message; 4] {
    let id = format!("call_{word}");
    [
        Message::text(Role::User, format!("read {word}")),
        Message::tool_call(&id, "read", word),
        Message::tool_result(&id, format!("text of {word}"), false),
        Message::text(Role::Assistant, format!("{word} is read")),
    ]
}

/// S0-2 S0-3 S3-21: one view gives scrollback and conversation, at any length.
#[test]
fn restore_fills_view_and_conversation() {
    let mut log = TestLog::default();
    let agent = log.root();
    tool_turn(&mut log, agent, 1, "a");
    let scrollback = ["❯ read a", "→ read: a", "← read: text of a", "● a is read"];
    let messages = tool_messages("a");

    let mut restored = block_on(Agent::restore(&log.store, agent)).unwrap();

    for read in 0..=4 {
        let shown: Vec<_> = restored
            .view
            .scrollback()
            .map(|row| row.to_string())
            .collect();
        assert_eq!(shown, scrollback[4 - read..]);
        assert_eq!(
            restored.view.conversation().messages(),
            &messages[4 - read..]
        );
        let more = block_on(restored.lengthen(&log.store, 1)).unwrap();
        assert_eq!(more, read < 4);
    }
}

/// S1-1 S1-10 S1-11: tool rows come out of replay as those of the other conversation kinds do.
#[test]
fn replay_includes_tool_rows() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::system("be terse", SystemOrigin::Start));
    tool_turn(&mut log, agent, 1, "a");

    let replayed = log.replayed(agent);

    let expected = ["system", "user", "tool_call", "tool_result", "assistant"];
    assert_eq!(kinds(&replayed), expected);
    assert_eq!(replayed, log.live(agent));
}

/// S1-2 S1-13: content and data of tool rows come out of replay as they were stored.
#[test]
fn replay_preserves_tool_data() {
    let large = format!(
        r#"{{"tool_call_id":"x","output":"{}","success":true}}"#,
        "é".repeat(9_999)
    );
    let cases = [
        (
            "tool_call",
            None,
            r#"{"tool_call_id":"x","name":"n","arguments":"{ \"a\" : 1 }"}"#,
        ),
        (
            "tool_call",
            Some(""),
            r#" { "name" : "n", "tool_call_id":"x","arguments":"" } "#,
        ),
        (
            "tool_call",
            Some("shown"),
            r#"{"id":"x","type":"function","function":{"name":"n","arguments":"\u00e9"}}"#,
        ),
        (
            "tool_result",
            Some("→\n"),
            r#"{"tool_call_id":"x","output":"\u0000","success":1.0}"#,
        ),
        (
            "tool",
            Some("old"),
            r#"{"tool_call_id":"x","output":"o","summary":null}"#,
        ),
        ("tool_result", None, &large),
        ("tool_result", Some("bad"), "{"),
    ];
    let mut log = TestLog::default();
    let agent = log.root();
    for (kind, content, data) in cases {
        log.inject(agent, kind, content, Some(data), false);
    }

    let replayed = log.replayed(agent);

    let rows: Vec<_> = replayed
        .view
        .entries()
        .iter()
        .map(|entry| &entry.row)
        .collect();
    let parts = rows
        .iter()
        .map(|row| (row.kind.name(), row.content.as_deref(), row.data.as_deref()));
    let expected = cases.map(|(kind, content, data)| (kind, content, Some(data)));
    assert_eq!(parts.collect::<Vec<_>>(), expected);
}

/// S1-3 S1-12: a question, a call, its result and the answer replay as these four in this order.
#[test]
fn replay_full_tool_conversation_in_order() {
    let mut log = TestLog::default();
    let agent = log.root();
    tool_turn(&mut log, agent, 1, "a");

    let replayed = log.replayed(agent);

    assert_eq!(
        kinds(&replayed),
        ["user", "tool_call", "tool_result", "assistant"]
    );
    assert_eq!(replayed.view.conversation().messages(), tool_messages("a"));
}

/// S1-14: all pairs of call and result replay.
#[test]
fn replay_multiple_tool_pairs() {
    let words = ["a", "b", "c", "d"];
    let mut log = TestLog::default();
    let agent = log.root();
    for (response, word) in (1..).step_by(2).zip(words) {
        tool_turn(&mut log, agent, response, word);
    }

    let replayed = log.replayed(agent);

    let expected: Vec<_> = words.into_iter().flat_map(tool_messages).collect();
    assert_eq!(replayed.view.conversation().messages(), expected);
}

/// S0-26 S0-27: restored messages equal the stored ones in number, roles and blocks.
#[test]
fn restored_conversation_count_roles_blocks() {
    let tag = |payload: &str| Payload {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        payload: payload.to_owned(),
    };
    let opaque = Opaque {
        thinking: Some(vec![StoredThinking {
            text: Some("hm".to_owned()),
            provider: Some("p".to_owned()),
            model: Some("m".to_owned()),
            payload: Some("signed".to_owned()),
        }]),
        item: Some(Tagged {
            provider: Some("p".to_owned()),
            model: Some("m".to_owned()),
            payload: Some("item".to_owned()),
        }),
    };
    let data = AssistantData {
        response: Some(1),
        opaque: Some(opaque),
        ..AssistantData::default()
    };
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("why?"));
    log.append(agent, Event::mark(None));
    log.append(
        agent,
        Event::Assistant {
            text: "because".to_owned(),
            data,
        },
    );
    tool_turn(&mut log, agent, 2, "a");

    let replayed = log.replayed(agent);

    let thought = Message {
        role: Role::Assistant,
        blocks: vec![
            Block::Thinking {
                text: "hm".to_owned(),
                payload: Some(tag("signed")),
            },
            Block::Text {
                text: "because".to_owned(),
            },
        ],
        metadata: vec![BlockItem {
            block: 1,
            item: tag("item"),
        }],
    };
    let mut expected = vec![Message::text(Role::User, "why?"), thought];
    expected.extend(tool_messages("a"));
    assert_eq!(replayed.view.conversation().messages(), expected);
}

/// S3-15: a child sees each ancestor up to the fork point, killed or not.
///
/// No ancestor sees a child's rows.
#[test]
fn child_sees_ancestors_up_to_fork_point() {
    let mut log = TestLog::default();
    let grandparent = log.root();
    log.append(grandparent, Event::user("g1"));
    let parent = log.fork(grandparent, log.order("parent-1"));
    log.append(grandparent, Event::user("g2"));
    log.append(parent, Event::user("p1"));
    let child = log.fork(parent, log.order("child"));
    log.append(parent, Event::user("p2"));
    log.append(child, Event::user("c1"));
    let kill = |agent| {
        Effect::Agent(AgentEffect::SetStatus {
            agent,
            status: Status::Dead,
        })
    };
    let killed = Batch {
        with: vec![kill(grandparent), kill(parent)],
        ..Batch::default()
    };
    block_on(log.store.commit(killed)).unwrap();
    log.append(child, Event::user("c2"));

    let cases = [
        (grandparent, vec!["g1", "g2"]),
        (parent, vec!["g1", "p1", "p2"]),
        (child, vec!["g1", "p1", "c1", "c2"]),
    ];

    for (agent, expected) in cases {
        assert_eq!(said(&log.replayed(agent)), expected);
        assert_eq!(log.replayed(agent), log.live(agent));
    }
}

/// S3-16: the end of an ancestor's range is fixed, that of the leaf goes with its rows.
#[test]
fn range_start_exclusive_end_inclusive() {
    let mut log = TestLog::default();
    let parent = log.root();
    log.append(parent, Event::user("one"));
    let last = log.append(parent, Event::user("two"));
    let child = log.fork(parent, log.order("child"));
    let spans = |log: &TestLog| -> Vec<Span> { log.replayed(child).state.path().spans().collect() };

    assert_eq!(
        spans(&log),
        [
            Span::new(parent, Seq(1), last.seq),
            Span::new(child, Seq(1), Seq(1))
        ]
    );

    log.append(parent, Event::user("three"));
    log.append(child, Event::user("four"));

    assert_eq!(
        spans(&log),
        [
            Span::new(parent, Seq(1), last.seq),
            Span::new(child, Seq(1), Seq(2))
        ]
    );
}

/// D7: a fork point is absent or a reference, also to an inherited row.
///
/// 0 reads as absent and is never written.
#[test]
fn fork_point_is_a_reference_or_absent() {
    let mut log = TestLog::default();
    let grandparent = log.root();
    let empty = log.fork(grandparent, log.order("empty"));
    let first = log.append(grandparent, Event::user("g"));
    log.append(grandparent, Event::user("later"));
    let parent = log.fork(grandparent, log.order("parent-1"));
    let zero = RowRef::new(grandparent, Seq(0));
    let mut at_inherited = log.order("inherited");
    at_inherited.at = Some(first);
    let inherited = log.fork(parent, at_inherited);
    let mut at_zero = log.order("zero");
    at_zero.at = Some(zero);
    let written_zero = log.fork(grandparent, at_zero);
    let mut raw = |data: Value| {
        let agent = log.root();
        log.inject(
            agent,
            "fork",
            Some("Forked from"),
            Some(&data.to_string()),
            true,
        );
        agent
    };
    let cases = [
        (
            raw(json!({"role": "child", "fork_point": first})),
            vec!["g"],
        ),
        (
            raw(json!({"role": "child", "context": "inherit", "fork_point": first})),
            vec!["g"],
        ),
        (
            raw(json!({"role": "child", "fork_message_id": 2, "fork_point": null})),
            vec![],
        ),
        (raw(json!({"role": "child", "fork_message_id": 2})), vec![]),
        (raw(json!({"role": "child", "fork_point": zero})), vec![]),
        (raw(json!({"role": "child", "fork_point": 2})), vec![]),
        (
            raw(json!({"role": "child", "context": "fresh", "fork_point": first})),
            vec![],
        ),
        (raw(json!({"role": "parent", "fork_point": first})), vec![]),
        (empty, vec![]),
        (inherited, vec!["g"]),
        (written_zero, vec![]),
    ];

    for (agent, expected) in cases {
        let replayed = log.replayed(agent);
        assert_eq!(said(&replayed), expected, "{:?}", log.rows(agent)[0].data);
        assert_eq!(replayed, log.live(agent));
    }
    for agent in [empty, written_zero] {
        let data: Value =
            serde_json::from_str(log.rows(agent)[0].data.as_deref().unwrap()).unwrap();
        assert_eq!(
            (&data["fork_point"], &data["fork_message_id"]),
            (&Value::Null, &Value::Null)
        );
    }
}

/// S3-18: ranges are found from the leaf back to the root and replayed oldest first.
///
/// The walk follows rewinds and fork points; it ends at a root, a fresh fork or the nearest clear.
#[test]
fn ranges_walk_up_and_play_oldest_first() {
    let mut log = TestLog::default();
    let top = log.root();
    log.append(top, Event::user("forgotten"));
    log.append(top, Event::Clear);
    let kept = log.append(top, Event::user("t3"));
    let left = log.append(top, Event::user("left"));
    log.append(top, Event::rewind(kept, left, Via::Rewind));
    log.append(top, Event::user("t6"));
    let middle = log.fork(top, log.order("middle"));
    let from = log.append(middle, Event::user("left too"));
    log.append(middle, Event::rewind(kept, from, Via::Undo));
    log.append(middle, Event::user("m4"));
    let leaf = log.fork(middle, log.order("leaf"));
    log.append(leaf, Event::user("l2"));
    let mut fresh = log.order("fresh");
    fresh.context = ForkContext::Fresh;
    let fresh = log.fork(leaf, fresh);
    let below = log.fork(fresh, log.order("below"));

    let span = |agent, from, to| Span::new(agent, Seq(from), Seq(to));
    let cases = [
        (
            top,
            vec![span(top, 2, 3), span(top, 5, 7)],
            vec!["t3", "t6"],
        ),
        (
            middle,
            vec![span(top, 2, 3), span(middle, 3, 5)],
            vec!["t3", "m4"],
        ),
        (
            leaf,
            vec![span(top, 2, 3), span(middle, 3, 4), span(leaf, 1, 3)],
            vec!["t3", "m4", "l2"],
        ),
        (fresh, vec![span(fresh, 1, 2)], vec![]),
        (below, vec![span(fresh, 1, 1), span(below, 1, 1)], vec![]),
    ];

    for (agent, spans, texts) in cases {
        let replayed = log.replayed(agent);
        assert_eq!(replayed.state.path().spans().collect::<Vec<_>>(), spans);
        assert_eq!(said(&replayed), texts);
        let rows = spans.iter().flat_map(|span| {
            (span.from.0..=span.to.0).map(|seq| RowRef::new(span.agent, Seq(seq)))
        });
        assert_eq!(places(&replayed), rows.collect::<Vec<_>>());
        assert_eq!(replayed, log.live(agent));
    }
}

/// S3-17 D12a: rows are ordered by sequence number, not by time.
#[test]
fn order_ignores_timestamps() {
    let agent = TestLog::default().root();
    let fold = |times: [i64; 4]| {
        let mut state = AgentState::new(agent);
        let mut view = View::default();
        let events = [
            Event::user("one"),
            Event::mark(Some("here")),
            Event::user("two"),
            Event::user("three"),
        ];
        for ((seq, event), time) in (1..).zip(events).zip(times) {
            let new = event.into_row(agent, Micros(time));
            let row = Row {
                at: RowRef::new(agent, Seq(seq)),
                kind: StoredKind::Known(new.kind),
                content: new.content,
                data: new.data,
                created_at: new.created_at,
                author: None,
            };
            let applied = state.apply(&row).unwrap();
            view.apply(row, applied.change);
        }
        let scrollback: Vec<_> = view.scrollback().collect();
        (state, view.conversation(), scrollback)
    };

    let expected = fold([1, 2, 3, 4]);

    for times in [[7, 7, 7, 7], [4, 3, 2, 1], [0, i64::MAX, i64::MIN, 0]] {
        assert_eq!(fold(times), expected);
    }
}

/// S3-19 S3-20: one restore function gives an agent's state at any of its rows.
///
/// No other code of the workspace computes state or messages from rows.
#[test]
fn agent_replay_is_the_only_replay() {
    let mut log = TestLog::default();
    let parent = log.root();
    log.append(parent, Event::user("one"));
    let agent = log.fork(parent, log.order("child"));
    let mut lived = vec![log.live(agent)];
    let first = log.append(agent, Event::user("two"));
    lived.push(log.live(agent));
    let head = log.append(agent, Event::Clear);
    lived.push(log.live(agent));
    log.append(agent, Event::rewind(first, head, Via::Undo));
    lived.push(log.live(agent));

    for (seq, lived) in (1..).zip(lived) {
        let at = RowRef::new(agent, Seq(seq));
        let mut restored = block_on(Agent::restore_at(&log.store, at)).unwrap();
        block_on(restored.know_all(&log.store)).unwrap();
        block_on(restored.read_all(&log.store)).unwrap();
        assert_eq!(restored, lived);
    }

    let sources = all_of_the_workspace();
    let users = |uses: &dyn Fn(&str) -> bool| -> Vec<String> {
        let using = sources.iter().filter(|(_, text)| uses(text));
        using.map(|(file, _)| file.clone()).collect()
    };
    // Only `Agent` folds rows; the testkit applies the rows of the logs that it writes.
    let folds = |text: &str| {
        let declares = text.contains("pub struct AgentState");
        source::calls_on(text, "AgentState") && !declares
    };
    assert_eq!(
        users(&folds),
        [
            "ikigai-store/src/history.rs",
            "ikigai-testkit/src/stores/maker.rs"
        ]
    );
    let views = |text: &str| source::calls_on(text, "View");
    assert_eq!(users(&views), ["ikigai-store/src/history.rs"]);
    // The others take one row alone: to check, search or draw it, or to run its call.
    let loads = |text: &str| source::imports(text, "load", "load");
    let mut loaders = users(&loads);
    loaders.retain(|file| !file.starts_with("ikigai-testkit/"));
    assert_eq!(
        loaders,
        [
            "ikigai-core/src/find.rs",
            "ikigai-core/src/render.rs",
            "ikigai-core/src/view.rs",
            "ikigai-engine/src/calls.rs",
            "ikigai-store/src/legacy/rows.rs",
            "ikigai/src/log.rs",
        ]
    );
}
