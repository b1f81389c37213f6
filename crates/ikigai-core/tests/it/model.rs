//! Rows that reach the model, and rows that never do.

use std::collections::BTreeSet;

use ikigai_core::data::{
    AgentKilledData, Amounts, AssistantData, Category, Cause, CommandData, ErrorData, ForkContext,
    ForkData, ForkRole, KilledBy, Opaque, StoredThinking, SystemOrigin, UsageData, Via,
};
use ikigai_core::fork::ForkOrder;
use ikigai_core::load::{Loaded, load};
use ikigai_core::project::{ToolFacts, ToolSpec, assemble};
use ikigai_core::{
    AgentId, Block, Budget, CannotProject, Event, Kind, Message, Request, Role, RowRef, Target,
    project,
};
use ikigai_store::Agent;
use ikigai_testkit::{TestLog, check_request, target};
use serde_json::{Map, Value, json};

use crate::source;
use crate::table;

fn model() -> Target {
    target("p", "m")
}

/// Returns the next request after checking it.
fn sent(log: &TestLog, agent: AgentId) -> Request {
    let request = log.request(agent, &model()).unwrap();
    assert_eq!(check_request(&request, &model()), Ok(()));
    request
}

fn settings(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn said(role: Role, text: &str) -> Message {
    Message::text(role, text)
}

/// Returns a history with one event of each kind that requests contain.
fn exchange() -> Vec<Event> {
    let opaque = Opaque {
        thinking: Some(vec![StoredThinking {
            text: Some("hm".to_owned()),
            provider: Some("p".to_owned()),
            model: Some("m".to_owned()),
            payload: Some("sig".to_owned()),
        }]),
        item: None,
    };
    let data = AssistantData {
        response: Some(1),
        opaque: Some(opaque),
        ..AssistantData::default()
    };
    let text = "look".to_owned();
    vec![
        Event::system("be kind", SystemOrigin::Start),
        Event::user("one"),
        Event::Assistant { text, data },
        Event::tool_call(1, "c1", "ls", "{}"),
        Event::tool_call(1, "c2", "ls", "{"),
        Event::assistant(2, "done"),
        Event::user("two"),
        Event::tool_call(3, "c3", "ls", ""),
        Event::user("three"),
    ]
}

/// S0-1 S3-1: after a restart the exchange is on screen.
///
/// The next request is the one that an unbroken run would have sent.
#[test]
fn restart_preserves_next_request() {
    let mut log = TestLog::default();
    let agent = log.root();
    let mut requests = 0;
    for event in exchange() {
        let is_call = event.kind() == Kind::ToolCall;
        let row = log.append(agent, event);
        if is_call {
            log.append(agent, Event::tool_result(row, "c", "ls", "out", true));
        }

        let (unbroken, restarted) = (log.live(agent), log.replayed(agent));

        let ask = |agent: &Agent| {
            let budget = Budget::new(1000, None);
            project(&agent.state, &agent.view, &model(), &budget)
        };
        assert_eq!(ask(&restarted), ask(&unbroken));
        requests += u32::from(ask(&unbroken).is_ok());
        let shown: Vec<_> = restarted.view.scrollback().collect();
        assert_eq!(shown, unbroken.view.scrollback().collect::<Vec<_>>());
        assert_eq!(shown.len(), log.rows(agent).len());
    }
    assert_eq!(requests, 6);
    let screen: Vec<_> = log.replayed(agent).view.scrollback().collect();
    assert_eq!(screen[1].to_string(), "❯ one");
    assert_eq!(screen[2].to_string(), "● look");
}

/// D3a: for every target the system prompt is in the system slot, never in the messages.
#[test]
fn system_prompt_in_system_slot() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("one"));
    log.append(agent, Event::system("be kind", SystemOrigin::Typed));
    log.append(agent, Event::user("two"));
    for (provider, model) in [("p", "m"), ("q", "n"), ("", "")] {
        let request = log.request(agent, &target(provider, model)).unwrap();

        assert_eq!(
            json!(request),
            json!({
                "system": "be kind",
                "messages": [
                    {"role": "user", "blocks": [{"type": "text", "text": "one"}]},
                    {"role": "user", "blocks": [{"type": "text", "text": "two"}]}
                ]
            })
        );
    }
}

/// D3b: the prompt is the newest own `system` row, on the path or not.
///
/// Without one it is the row that the fork names.
#[test]
fn newest_own_system_row_wins() {
    let mut log = TestLog::default();
    let root = log.root();
    let prompt = |log: &TestLog, agent| {
        let (live, replayed) = (log.live(agent), log.replayed(agent));
        assert_eq!(live.state, replayed.state);
        replayed.state.system().map(str::to_owned)
    };
    let of = |text: &str| Some(text.to_owned());
    let first = log.append(root, Event::user("one"));
    assert_eq!(prompt(&log, root), None);
    log.append(root, Event::system("A", SystemOrigin::Start));
    let newest = log.append(root, Event::system("B", SystemOrigin::Typed));
    assert_eq!(prompt(&log, root), of("B"));
    // A row without text is bad, and changes nothing.
    log.inject(root, "system", None, None, true);
    assert_eq!(prompt(&log, root), of("B"));

    log.append(root, Event::rewind(first, newest, Via::Rewind));
    assert_eq!(prompt(&log, root), of("B"));

    // A child gets its parent's prompt at the time of the fork, for any fork point.
    let order = ForkOrder {
        at: Some(first),
        ..log.order("child")
    };
    let child = log.fork(root, order);
    let order = log.order("grandchild");
    let grandchild = log.fork(child, order);
    log.append(root, Event::system("C", SystemOrigin::Typed));
    log.append(root, Event::Clear);
    for agent in [child, grandchild] {
        assert_eq!(prompt(&log, agent), of("B"));
    }
    log.append(child, Event::system("D", SystemOrigin::Typed));
    log.append(child, Event::Clear);
    let order = ForkOrder {
        context: ForkContext::Fresh,
        ..log.order("fresh")
    };
    let fresh = log.fork(child, order);
    let prompts = [root, child, grandchild, fresh].map(|agent| prompt(&log, agent));
    assert_eq!(prompts, [of("C"), of("D"), of("B"), of("D")]);
    let empty = log.append(child, Event::system("", SystemOrigin::Typed));
    assert_eq!(prompt(&log, child), of(""));
    assert_eq!(log.live(child).state.system_row(), Some(empty));
}

/// E3a: the slot holds the prompt, then the pinned documents in pin order.
///
/// Each has a heading with its path. A pin without a hash is left out; the settings name it.
#[test]
fn system_slot_is_prompt_then_pins() {
    let pins = json!({"pins": [
        {"path": "b/AGENTS.md", "hash": "h2"},
        {"path": "gone.md"},
        {"path": "null.md", "hash": null},
        {"path": "a.md", "hash": "h1"},
        {"hash": "h1"},
        {"path": "unknown.md", "hash": "h9"},
        {"path": "again.md", "hash": "h2"}
    ]});
    let mut target = model();
    target.documents = [("h1", "first\n"), ("h2", "# second"), ("h3", "unpinned")]
        .map(|(hash, text)| (hash.to_owned(), text.to_owned()))
        .into();
    let documents =
        "# b/AGENTS.md\n\n# second\n\n# a.md\n\nfirst\n\n\n# again.md\n\n# second".to_owned();
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("one"));
    let slot = |log: &TestLog| log.request(agent, &target).unwrap().system;
    assert_eq!(slot(&log), None);

    log.append(agent, Event::set("pin", settings(&pins)));

    assert_eq!(slot(&log), Some(documents.clone()));
    log.append(agent, Event::system("be kind", SystemOrigin::Typed));
    assert_eq!(slot(&log), Some(format!("be kind\n\n{documents}")));
    let state = log.replayed(agent).state;
    let unread = state.settings().pins.iter().flatten();
    let unread: Vec<_> = unread
        .filter(|pin| pin.hash.is_none())
        .map(|pin| pin.path.as_deref())
        .collect();
    assert_eq!(unread, [Some("gone.md"), Some("null.md")]);
    // Pins are settings: they outlive a clear, and a set of none takes them away.
    log.append(agent, Event::Clear);
    log.append(agent, Event::user("two"));
    assert_eq!(slot(&log), Some(format!("be kind\n\n{documents}")));
    log.append(agent, Event::set("pin", settings(&json!({"pins": []}))));
    assert_eq!(slot(&log), Some("be kind".to_owned()));
}

fn killed(agent: AgentId) -> Event {
    Event::AgentKilled(AgentKilledData {
        target: Some(agent),
        killed: Some(vec![agent]),
        by: Some(KilledBy::User),
    })
}

/// Returns events that must not change a request, each with a word that would be noticed.
fn metadata(agent: AgentId) -> Vec<Event> {
    let fork = ForkData {
        role: Some(ForkRole::Parent),
        child_uuid: Some(agent),
        ..ForkData::default()
    };
    let command = CommandData {
        command: Some("betrayed".to_owned()),
        args: Some("betrayed".to_owned()),
        echo: Some("/betrayed".to_owned()),
        ..CommandData::default()
    };
    let usage = UsageData {
        response: Some(1),
        amounts: Amounts {
            input: Some(77_777),
            ..Amounts::default()
        },
        ..UsageData::default()
    };
    vec![
        Event::mark(Some("betrayed")),
        Event::mark(None),
        killed(agent),
        Event::Usage(usage),
        Event::Fork {
            text: "Forked child betrayed".to_owned(),
            data: Box::new(fork),
        },
        Event::Command {
            output: Some("betrayed".to_owned()),
            data: command,
        },
    ]
}

/// S3-25 S3-27 S3-36 S4-3: the list is made of user, assistant and tool rows only.
///
/// Of the others only a summary's text and the note about an interrupt appear.
#[test]
fn only_conversation_kinds_reach_the_model() {
    let mut log = TestLog::default();
    let agent = log.root();
    let before = log.append(agent, Event::user("forgotten"));
    let head = log.append(agent, Event::rewind(before, before, Via::Rewind));
    log.append(agent, Event::Clear);
    let from = log.append(agent, Event::user("in the range"));
    let to = log.append(agent, Event::assistant(1, "in the range"));
    log.append(agent, Event::summary(Some("the gist"), from, to));
    log.append(agent, Event::user("one"));
    for event in metadata(agent) {
        log.append(agent, event);
    }
    log.append(agent, Event::assistant(2, "partial"));
    log.append(agent, Event::interrupted(Cause::User));
    let data = ErrorData {
        category: Some(Category::Provider),
        ..ErrorData::default()
    };
    let text = "betrayed".to_owned();
    log.append(agent, Event::Error { text, data });
    log.append(agent, Event::user("two"));

    let request = sent(&log, agent);

    let note = "[The user interrupted this turn.]";
    assert_eq!(
        request.messages,
        [
            said(Role::User, "the gist"),
            said(Role::User, "one"),
            said(Role::Assistant, "partial"),
            said(Role::User, note),
            said(Role::User, "two"),
        ]
    );
    for word in ["betrayed", "77777", "forgotten", "in the range"] {
        assert!(!json!(request).to_string().contains(word), "{word}");
    }
    assert!(log.live(agent).state.holds(head) == Some(true));
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// D14 S4-10: rows of other kinds yield no message, and the request type has no place for them.
#[test]
fn request_type_has_no_place_for_other_kinds() {
    for (event, ..) in table::all() {
        let kind = event.kind();
        if kind.is_conversation() {
            continue;
        }
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::Clear);

        let row = log.append(agent, event);

        assert_eq!(load(&log.row(row)), Ok(Loaded::Nothing), "{kind}");
        let replayed = log.replayed(agent);
        assert!(replayed.view.conversation().is_empty(), "{kind}");
        let budget = Budget::new(u64::MAX, None);
        let request = assemble(&replayed.state, &replayed.view, &model(), &budget).unwrap();
        assert_eq!(json!(request), json!({"messages": []}), "{kind}");
    }

    let mut log = TestLog::default();
    let agent = log.root();
    for event in exchange() {
        log.append(agent, event);
    }
    let mut target = model();
    target.tools.push(ToolSpec {
        name: "ls".to_owned(),
        description: "lists".to_owned(),
        parameters: json!({}),
        facts: ToolFacts::default(),
    });
    let request = json!(log.request(agent, &target).unwrap());
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(keys(&request), set(&["system", "messages", "tools"]));
    for message in request["messages"].as_array().unwrap() {
        assert_eq!(keys(message), set(&["role", "blocks"]));
        let roles = ["user", "assistant", "tool"];
        assert!(roles.contains(&message["role"].as_str().unwrap()));
        for block in message["blocks"].as_array().unwrap() {
            let fields: BTreeSet<String> = match block["type"].as_str().unwrap() {
                "text" => set(&["type", "text"]),
                "tool_call" => set(&["type", "id", "name", "arguments"]),
                "tool_result" => set(&["type", "tool_call_id", "content", "is_error"]),
                "thinking" => set(&["type", "text", "payload"]),
                other => panic!("{other}"),
            };
            assert_eq!(keys(block), fields);
        }
    }
}

/// S4-15: only the projection and the summary module construct requests.
///
/// Neither the summary module nor a provider can read rows: they name no store and no type that
/// holds rows.
#[test]
fn requests_are_constructed_in_two_modules() {
    const SUMMARY: &str = "ikigai-core/src/summary.rs";
    let mut makers = Vec::new();
    let mut readers = Vec::new();
    for (path, text) in source::all_of_the_workspace() {
        let imports_it = path.starts_with("ikigai-core/") || text.contains("ikigai_core::");
        if imports_it && source::constructs(&text, "Request") {
            makers.push(path.clone());
        }
        let rows = [
            "Row",
            "NewRow",
            "Event",
            "View",
            "AgentState",
            "ikigai_store",
        ];
        let reads = rows.iter().any(|name| source::names(&text, name));
        if (path.starts_with("ikigai-providers") || path == SUMMARY) && reads {
            readers.push(path);
        }
    }
    makers.sort();
    assert_eq!(makers, ["ikigai-core/src/project.rs", SUMMARY]);
    assert_eq!(readers, Vec::<String>::new());
}

/// S4-11 S4-14: metadata rows at any position do not change the request's JSON.
///
/// The rows that a clear or rewind leaves are sent, with current settings, as if they were the
/// whole history.
#[test]
fn metadata_rows_do_not_change_the_request() {
    let plain = |events: &[Event]| {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append_all(agent, events.to_vec());
        (
            json!(log.request(agent, &model()).unwrap()).to_string(),
            agent,
        )
    };
    let (expected, agent) = plain(&exchange());
    for metadata in metadata(agent) {
        let events = exchange().into_iter();
        let strewn = events.flat_map(|event| [metadata.clone(), event, metadata.clone()]);
        assert_eq!(plain(&strewn.collect::<Vec<_>>()).0, expected);
    }
    let everything = metadata(agent).into_iter();
    let events = exchange().into_iter();
    let strewn = events.flat_map(|event| everything.clone().chain([event]));
    assert_eq!(plain(&strewn.collect::<Vec<_>>()).0, expected);

    // After a clear, and after a rewind to each row of the exchange that can be answered.
    let cleared: Vec<_> = exchange()
        .into_iter()
        .chain([Event::Clear])
        .chain(exchange())
        .collect();
    assert_eq!(plain(&cleared).0, expected);
    let prompt = Event::system("of now", SystemOrigin::Typed);
    for kept in 1..exchange().len() {
        let mut log = TestLog::default();
        let agent = log.root();
        let rows = log.append_all(agent, exchange());
        let head = log.append(agent, prompt.clone());
        log.append(agent, Event::rewind(rows[kept], head, Via::Undo));
        log.append(agent, Event::user("on"));
        let mut left = exchange();
        left.truncate(kept + 1);
        left.extend([prompt.clone(), Event::user("on")]);

        let request = json!(sent(&log, agent)).to_string();

        assert_eq!(request, plain(&left).0);
    }
}

/// S4-13: the rows that once made a request with an empty object in it.
#[test]
fn regression_clear_system_killed_user() {
    let modern = |log: &mut TestLog, agent| {
        let killed = killed(agent);
        log.append(agent, Event::Clear);
        log.append(agent, Event::system("be kind", SystemOrigin::Clear));
        log.append(agent, killed);
        log.append(agent, Event::user("hi"));
    };
    let older = |log: &mut TestLog, agent| {
        log.inject(agent, "clear", None, None, true);
        log.inject(agent, "system", Some("be kind"), None, true);
        log.inject(agent, "agent_killed", None, None, false);
        log.inject(agent, "user", Some("hi"), None, false);
    };
    let bare: &[Event] = &[];
    let used = &exchange()[..];
    for before in [bare, used] {
        for write in [&modern as &dyn Fn(&mut TestLog, AgentId), &older] {
            let mut log = TestLog::default();
            let agent = log.root();
            if !before.is_empty() {
                log.append_all(agent, before.to_vec());
            }

            write(&mut log, agent);

            let expected = Request {
                system: Some("be kind".to_owned()),
                messages: vec![said(Role::User, "hi")],
                ..Request::default()
            };
            assert_eq!(sent(&log, agent), expected);
        }
    }
}

/// S4-1 S4-2: a user message can be sent and answered after kill, mark, rewind and clear, in any
/// combination.
#[test]
fn chat_works_after_kill_mark_rewind_clear() {
    type Step = fn(&mut TestLog, AgentId) -> RowRef;
    let steps: [Step; 4] = [
        |log, agent| log.append(agent, killed(agent)),
        |log, agent| log.append(agent, Event::mark(Some("x"))),
        |log, agent| {
            let head = RowRef::new(agent, log.live(agent).state.head());
            let first = RowRef::new(agent, ikigai_core::Seq(1));
            log.append(agent, Event::rewind(first, head, Via::Rewind))
        },
        |log, agent| log.append(agent, Event::Clear),
    ];
    for combination in 0..256 {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("first"));
        log.append(agent, Event::tool_call(1, "c", "ls", "{}"));
        for place in 0..4 {
            steps[combination >> (2 * place) & 3](&mut log, agent);

            let asked = log.append(agent, Event::user(format!("question {place}")));
            let request = sent(&log, agent);
            let question = said(Role::User, &format!("question {place}"));
            assert_eq!(request.messages.last(), Some(&question));
            log.append(agent, Event::assistant(2 + place, "answer"));
            let live = log.live(agent);
            assert_eq!(live.view.is_busy(live.state.path()), Some(false));
            assert_eq!(live, log.replayed(agent));
            let unasked = log.request(agent, &model());
            assert_eq!(unasked, Err(CannotProject::NoUserMessage));
            assert!(live.state.path().contains(asked));
        }
    }
}

/// S0-14 S1-4: replay and loading produce no wire JSON.
///
/// The sources of core and store name no field of a provider's format, except for the older
/// shape that is read. Blocks are equal for all stored shapes.
#[test]
fn no_wire_form_before_serializer() {
    let wire = [
        "tool_calls",
        "tool_use",
        "tool_use_id",
        "input_schema",
        "max_tokens",
        "function_call",
        "function_call_output",
        "functionCall",
        "functionResponse",
        "systemInstruction",
        "content_block",
        "reasoning_content",
        "image_url",
    ];
    for (path, text) in source::all_of_the_workspace() {
        if path.starts_with("ikigai-core/") || path.starts_with("ikigai-store/") {
            let found: Vec<_> = wire
                .iter()
                .filter(|word| source::names(&text, word))
                .collect();
            assert!(found.is_empty(), "{path} {found:?}");
            let function = text.contains("\"function\"");
            assert!(!function || path == "ikigai-core/src/load.rs", "{path}");
        }
    }

    let shapes = [
        r#"{"tool_call_id":"c1","name":"ls","arguments":"{}"}"#,
        r#"{"tool_call_id":"c1","tool_name":"ls","tool_args":"{}"}"#,
        r#"{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}"#,
    ];
    for data in shapes {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("go"));
        log.inject(agent, "tool_call", None, Some(data), false);

        let request = sent(&log, agent);

        let block = Block::ToolCall {
            id: "c1".to_owned(),
            name: "ls".to_owned(),
            arguments: "{}".to_owned(),
        };
        assert_eq!(request.messages[1].blocks, [block]);
    }
}
