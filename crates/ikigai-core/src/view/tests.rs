use std::sync::Arc;

use serde_json::json;

use super::{Entry, View};
use crate::event::{Event, Row};
use crate::ids::{AgentId, Micros, RowRef, Seq};
use crate::kind::{Kind, StoredKind};
use crate::message::Message;
use crate::project::{Budget, Request, Target, assemble, messages_up_to, rows_behind, used_tokens};
use crate::render::Shown;
use crate::state::AgentState;

/// Everything that consumers make of a view.
#[derive(Debug, PartialEq)]
struct Made {
    request: Request,
    conversation: Vec<Message>,
    summarised: Vec<Message>,
    tokens: u64,
    rows_behind: Vec<Vec<RowRef>>,
    scrollback: Vec<Shown>,
    turns: Vec<RowRef>,
    busy: Option<bool>,
}

fn make_all(state: &AgentState, view: &View) -> Made {
    let target = Target::default();
    let budget = Budget::new(1_000_000, None);
    let newest = view.entries.back().map(Entry::at).unwrap();
    let behind = |index| rows_behind(state, view, &target, &budget, index);
    Made {
        request: assemble(state, view, &target, &budget).unwrap(),
        conversation: view.conversation().messages().to_vec(),
        summarised: messages_up_to(state, view, &target, newest),
        tokens: used_tokens(state, view, &target),
        rows_behind: (0..8).map(behind).collect(),
        scrollback: view.scrollback().collect(),
        turns: view.turn_starts(state.path()),
        busy: view.is_busy(state.path()),
    }
}

/// Folds a turn with calls, one of them failed and one stored in an older shape.
fn turn_with_calls() -> (AgentState, View) {
    let agent = AgentId::from_random([7; 16]).unwrap();
    let first = RowRef::new(agent, Seq(2));
    let second = RowRef::new(agent, Seq(4));
    let older = r#"{"id":"c3","type":"function","function":{"name":"ls","arguments":"{}"}}"#;
    let older_result = r#"{"tool_call_id":"c3","output":"old","success":true}"#;
    let row = |event: Event| event.into_row(agent, Micros(1));
    let mut rows: Vec<_> = [
        Event::user("list"),
        Event::tool_call(1, "c1", "ls", "{\"a\":1}"),
        Event::tool_result(first, "c1", "ls", "one", true),
        Event::tool_call(1, "c2", "rm", "{}"),
        Event::tool_result(second, "c2", "rm", "no", false),
        Event::tool_call(2, "c3", "ls", "{}"),
        Event::tool_result(second, "c3", "ls", "old", true),
        Event::assistant(3, "done"),
    ]
    .into_iter()
    .map(row)
    .collect();
    (rows[5].content, rows[5].data) = (None, Some(older.to_owned()));
    (rows[6].content, rows[6].data) = (None, Some(older_result.to_owned()));
    let mut state = AgentState::new(agent);
    let mut view = View::default();
    for (seq, new) in (1..).zip(rows) {
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
    (state, view)
}

/// D2a S0-18: tool data is parsed once, at load.
///
/// Requests, summaries, counts and the scrollback do not change when the JSON of a loaded row
/// does: they get its blocks.
#[test]
fn tool_data_parsed_once_at_load() {
    let (state, view) = turn_with_calls();
    let expected = make_all(&state, &view);
    assert_eq!(expected.request.messages.len(), 8);
    let others = [
        None,
        Some("no JSON".to_owned()),
        Some(
            json!({
                "tool_call_id": "other", "name": "other", "arguments": "other", "response": 9,
                "output": "other", "success": false, "call": {"agent": "other", "seq": 1},
            })
            .to_string(),
        ),
    ];

    for other in others {
        let mut changed = view.clone();
        for entry in &mut changed.entries {
            if let Some(Kind::ToolCall | Kind::ToolResult) = entry.kind() {
                let row = Row {
                    data: other.clone(),
                    ..(*entry.row).clone()
                };
                entry.row = Arc::new(row);
            }
        }

        assert_eq!(make_all(&state, &changed), expected, "{other:?}");
    }
}
