//! From a row to a message: three outcomes, and the message of each kind.

use ikigai_core::data::{AssistantData, SystemOrigin, UserData};
use ikigai_core::kind::StoredKind;
use ikigai_core::load::{LoadError, Loaded, Part, load};
use ikigai_core::message::{BlockItem, Payload};
use ikigai_core::render::{Shown, render};
use ikigai_core::{
    Block, CannotProject, Event, Kind, Message, Micros, Role, Row, RowRef, Seq, data,
};
use ikigai_testkit::{IdSource, TestLog, check_request, target};

use crate::table;

/// Returns a stored row of the given parts.
pub(crate) fn row(kind: &str, content: Option<&str>, data: Option<&str>) -> Row {
    Row {
        at: RowRef::new(IdSource::new(1).agent(), Seq(7)),
        kind: StoredKind::of(kind),
        content: content.map(str::to_owned),
        data: data.map(str::to_owned),
        created_at: Micros(0),
        author: None,
    }
}

/// Returns the outcome for a message without response number and call.
fn alone(message: Message) -> Loaded {
    Loaded::Message(Part {
        message,
        response: None,
        answers: None,
        tool: None,
    })
}

/// Returns the kinds that are no part of the conversation.
fn metadata_kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| !kind.is_conversation())
}

/// Texts that are often handled wrongly.
const TEXTS: [&str; 7] = [
    "hello",
    "",
    " \n\t ",
    "{\"tool_call_id\":\"x\"}",
    "a\0b\u{2400}",
    "\u{feff}e\u{301}🏳️‍🌈\u{202e}",
    "\"\\\r\n",
];

/// S0-12 S2-17: a message, nothing and an error are distinct outcomes.
#[test]
fn load_outcomes_are_distinct() {
    let message = load(&row("user", Some("hi"), None));
    let nothing = load(&row("mark", None, None));
    let error = load(&row("user", None, None));

    assert_eq!(message, Ok(alone(Message::text(Role::User, "hi"))));
    assert_eq!(nothing, Ok(Loaded::Nothing));
    assert_eq!(error, Err(LoadError::NoContent));
}

/// S0-6 S0-19 S2-10 S2-43a: one text block, equal to the content.
#[test]
fn load_user_row() {
    for text in TEXTS {
        let loaded = load(&row("user", Some(text), None));

        assert_eq!(loaded, Ok(alone(Message::text(Role::User, text))));
    }
}

/// S0-7 S0-21 S2-11 S2-43b: an assistant message whose text block equals the content.
#[test]
fn load_assistant_row() {
    for text in TEXTS {
        let loaded = load(&row("assistant", Some(text), None));

        assert_eq!(loaded, Ok(alone(Message::text(Role::Assistant, text))));
    }
}

/// S0-9 S0-22 S2-12 S2-43c: a tool call is built from the data, never from the content.
#[test]
fn load_tool_call_row() {
    let data = r#"{"tool_call_id":"c1","name":"ls","arguments":"{\"path\":\".\"}"}"#;
    let expected = Ok(alone(Message::tool_call("c1", "ls", "{\"path\":\".\"}")));
    let misleading = r#"{"tool_call_id":"no","name":"rm","arguments":"no"}"#;
    for content in [None, Some(""), Some("ls ."), Some(misleading)] {
        assert_eq!(load(&row("tool_call", content, Some(data))), expected);
    }
    let error = load(&row("tool_call", Some(misleading), None));
    assert_eq!(error, Err(LoadError::NoData));
}

/// S0-10 S0-23 S2-13 S2-43d: a tool result is built from the data, never from the content.
#[test]
fn load_tool_result_row() {
    let data = r#"{"tool_call_id":"c1","name":"ls","output":"a\nb","success":true}"#;
    let misleading = r#"{"tool_call_id":"no","name":"rm","output":"no","success":false}"#;
    for content in [None, Some(""), Some("2 lines"), Some(misleading)] {
        let Ok(Loaded::Message(part)) = load(&row("tool_result", content, Some(data))) else {
            panic!("it is a message");
        };
        assert_eq!(part.message, Message::tool_result("c1", "a\nb", false));
    }
    let error = load(&row("tool_result", Some(misleading), None));
    assert_eq!(error, Err(LoadError::NoData));
}

/// S0-5 S0-20 S2-15 S2-44a: a system row adds no message; its content is the system prompt.
#[test]
fn load_system_row_sets_prompt_only() {
    for text in TEXTS {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("hi"));
        let stored = text.replace('\0', "\u{2400}");

        log.append(agent, Event::system(text, SystemOrigin::Typed));

        for agent in [log.live(agent), log.replayed(agent)] {
            assert_eq!(agent.state.system(), Some(stored.as_str()));
            let messages = [Message::text(Role::User, "hi")];
            assert_eq!(agent.view.conversation().messages(), messages);
        }
        let slot = Some(stored).filter(|text| !text.trim().is_empty());
        let request = log.request(agent, &target("p", "m")).unwrap();
        assert_eq!(request.system, slot);
    }
}

/// S0-11 S0-24 S0-25: every kind that is not conversation loads as a successful nothing.
#[test]
fn load_metadata_rows_yield_nothing() {
    let data = [
        None,
        Some(""),
        Some("{}"),
        Some("null"),
        Some("not JSON"),
        Some(r#"{"tool_call_id":"c","name":"n","arguments":"{}","output":"o","text":"t"}"#),
    ];
    for kind in metadata_kinds() {
        for content in [None, Some(""), Some("text")] {
            for data in data {
                let loaded = load(&row(kind.name(), content, data));
                assert_eq!(loaded, Ok(Loaded::Nothing), "{kind} {content:?} {data:?}");
            }
        }
    }
}

/// S4-12: rows that are not conversation load, replay and render without their content.
#[test]
fn metadata_rows_without_content_are_fine() {
    let mut log = TestLog::default();
    let agent = log.root();
    let first = log.append(agent, Event::user("hi"));
    let without_content = table::all().into_iter().filter(|(event, content, data)| {
        // A rewind must lead to a reachable row, which the table's one does not.
        let is_metadata = !event.kind().is_conversation() && content.is_none();
        is_metadata && event.kind() != Kind::Rewind && data.as_ref() != Some(&"{}".into())
    });
    let mut kinds = Vec::new();
    for (event, ..) in without_content {
        kinds.push(event.kind());
        log.append(agent, event);
    }
    let head = log.live(agent).state.head();
    let via = data::Via::Rewind;
    let rewind = Event::rewind(RowRef::new(agent, head), first, via);
    log.append(agent, rewind);
    kinds.push(Kind::Rewind);
    for kind in [
        Kind::Clear,
        Kind::Mark,
        Kind::Rewind,
        Kind::AgentKilled,
        Kind::Usage,
        Kind::Interrupted,
        Kind::Summary,
        Kind::Command,
    ] {
        assert!(kinds.contains(&kind), "{kind}");
    }
    // Older rows have no data either; without a target a rewind would be reported.
    for kind in metadata_kinds().filter(|kind| *kind != Kind::Rewind) {
        log.inject(agent, kind.name(), None, None, kind == Kind::Clear);
    }
    log.append(agent, Event::user("again"));

    for agent in [log.live(agent), log.replayed(agent)] {
        for shown in agent.view.scrollback() {
            assert!(!matches!(shown, Shown::Warning(_)), "{shown}");
        }
        assert_eq!(agent.view.entries().len(), 12);
    }
    for row in log.rows(agent) {
        assert!(!matches!(render(&row), Shown::Warning(_)), "{row:?}");
    }
    assert!(log.request(agent, &target("p", "m")).is_ok());
}

/// S4-18: a conversation row without content is reported.
///
/// It never causes a crash or an empty text in a request.
#[test]
fn conversation_row_without_content_is_reported() {
    for kind in ["user", "assistant"] {
        for data in [None, Some(r#"{"origin":"typed","typed":"x","response":1}"#)] {
            let mut log = TestLog::default();
            let agent = log.root();
            log.inject(agent, kind, None, data, false);
            let nobody = log.request(agent, &target("p", "m"));
            log.append(agent, Event::user("one"));
            log.append(agent, Event::assistant(1, "two"));
            log.inject(agent, kind, None, data, false);
            log.append(agent, Event::user("three"));

            let request = log.request(agent, &target("p", "m")).unwrap();

            assert_eq!(nobody, Err(CannotProject::NoUserMessage));
            let messages = [
                Message::text(Role::User, "one"),
                Message::text(Role::Assistant, "two"),
                Message::text(Role::User, "three"),
            ];
            assert_eq!(request.messages, messages);
            for living in [log.live(agent), log.replayed(agent)] {
                let line = format!(
                    "event #{agent}.4 of kind `{kind}` is skipped: {}",
                    LoadError::NoContent
                );
                assert_eq!(living.view.scrollback().nth(3), Some(Shown::Warning(line)));
                assert_eq!(living.view.conversation().messages(), messages);
            }
        }
    }
}

/// S4-18: nor do empty or blank texts become empty blocks of a request.
#[test]
fn blank_texts_make_no_block_of_a_request() {
    for blank in ["", " ", "\n\t\u{a0}\u{2003}"] {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user(blank));
        log.append(agent, Event::assistant(1, "unasked"));
        log.append(agent, Event::user("one"));
        log.append(agent, Event::assistant(2, blank));
        log.append(agent, Event::user(blank));
        log.append(agent, Event::user("two"));

        let request = log.request(agent, &target("p", "m")).unwrap();

        assert_eq!(check_request(&request, &target("p", "m")), Ok(()));
        let texts = ["one", "two"].map(|text| Message::text(Role::User, text));
        assert_eq!(request.messages, texts);
    }
}

/// S0-8 D16: data of system, user and assistant rows never changes the text.
///
/// Only `opaque` of it reaches the message, the rest stays with the row.
#[test]
fn row_metadata_kept_out_of_text() {
    let hostile = r#"{"text":"no","content":"no","output":"no","typed":"no","origin":"mail",
        "shell":{"command":"no","exit":1},"response":4,"provider":"p","model":"m","level":"high",
        "stop":"end_turn","tool_call_id":"no","name":"no","arguments":"no","role":"system",
        "opaque":{"thinking":[{"text":"hm","provider":"p","model":"m","payload":"sig"}],
        "item":{"provider":"p","model":"m","payload":"{\"id\":\"i\"}"}}}"#;

    let user = load(&row("user", Some("yes"), Some(hostile)));
    let assistant = load(&row("assistant", Some("yes"), Some(hostile)));

    assert_eq!(user, Ok(alone(Message::text(Role::User, "yes"))));
    let payload = |text: &str| Payload {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        payload: text.to_owned(),
    };
    let thinking = Block::Thinking {
        text: "hm".to_owned(),
        payload: Some(payload("sig")),
    };
    let text = "yes".to_owned();
    let message = Message {
        role: Role::Assistant,
        blocks: vec![thinking, Block::Text { text }],
        metadata: vec![BlockItem {
            block: 1,
            item: payload("{\"id\":\"i\"}"),
        }],
    };
    let part = Part {
        message,
        response: Some(4),
        answers: None,
        tool: None,
    };
    assert_eq!(assistant, Ok(Loaded::Message(part)));

    let mut log = TestLog::default();
    let agent = log.root();
    log.inject(agent, "system", Some("be kind"), Some(hostile), true);
    log.inject(agent, "user", Some("yes"), Some(hostile), false);
    log.inject(agent, "assistant", Some("yes"), Some(hostile), false);
    let replayed = log.replayed(agent);
    assert_eq!(replayed.state.system(), Some("be kind"));
    let row = &replayed.view.entries()[2].row;
    assert_eq!(row.data.as_deref(), Some(hostile));
    let kept: AssistantData = data::read(row.data.as_deref());
    let kept = (kept.provider, kept.model, kept.level, kept.stop);
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(kept, (of("p"), of("m"), of("high"), of("end_turn")));
    let typed = data::read::<UserData>(Some(hostile)).typed;
    assert_eq!(typed, of("no"));
}

/// S0-15: only messages are appended to the conversation, in the order of the rows.
#[test]
fn loader_appends_only_messages_in_order() {
    let mut log = TestLog::default();
    let agent = log.root();
    let mut expected = Vec::new();
    for round in 0..3 {
        for kind in metadata_kinds().filter(|kind| !matches!(kind, Kind::Clear | Kind::Rewind)) {
            log.inject(agent, kind.name(), Some("no"), Some("{}"), false);
        }
        log.inject(agent, "bogus", Some("no"), None, false);
        log.inject(agent, "tool_call", Some("no"), Some("{}"), false);
        log.append(agent, Event::system("no", SystemOrigin::Typed));
        let text = format!("question {round}");
        log.append(agent, Event::user(&text));
        expected.push(Message::text(Role::User, text));
        let call = log.append(agent, Event::tool_call(round, "c", "ls", "{}"));
        expected.push(Message::tool_call("c", "ls", "{}"));
        log.append(agent, Event::mark(None));
        log.append(agent, Event::tool_result(call, "c", "ls", "out", true));
        expected.push(Message::tool_result("c", "out", false));
        let text = format!("answer {round}");
        log.append(agent, Event::assistant(round, &text));
        expected.push(Message::text(Role::Assistant, text));
    }

    for agent in [log.live(agent), log.replayed(agent)] {
        assert_eq!(agent.view.conversation().messages(), expected);
    }
}

/// D2a: tool data of an older shape is sent and shown like any other.
#[test]
fn tool_data_of_an_older_shape_is_loaded_into_blocks() {
    let older = r#"{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}"#;
    let result = r#"{"tool_call_id":"c1","output":"out","success":true}"#;
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("list"));
    log.inject(agent, "tool_call", None, Some(older), false);
    log.inject(agent, "tool", None, Some(result), false);

    let replayed = log.replayed(agent);

    let loaded: Vec<_> = replayed
        .view
        .entries()
        .iter()
        .map(|entry| entry.loaded.clone())
        .collect();
    let call = Message::tool_call("c1", "ls", "{}");
    let answer = Message::tool_result("c1", "out", false);
    assert_eq!(
        loaded,
        [
            Ok(alone(Message::text(Role::User, "list"))),
            Ok(alone(call.clone())),
            Ok(alone(answer.clone())),
        ]
    );
    let request = log.request(agent, &target("p", "m")).unwrap();
    assert_eq!(request.messages[1..], [call, answer]);
    let shown: Vec<_> = replayed.view.scrollback().skip(1).collect();
    let shown: Vec<_> = shown.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["→ ls: {}", "← : out"]);
}

/// D2b: after any number of restores every row is as it was, byte for byte.
#[test]
fn load_leaves_log_untouched() {
    let odd =
        " {\"tool_call_id\" :\"c\",\n\"tool_name\":\"ls\", \"tool_args\": \"{ }\",\"x\":1e2} ";
    let mut log = TestLog::default();
    let agent = log.root();
    let rows = [
        ("user", Some("hi\r\n"), Some("{ }")),
        ("tool_call", Some("shown"), Some(odd)),
        (
            "tool",
            None,
            Some("{\"output\":\"o\", \"tool_call_id\":\"c\"}"),
        ),
        ("tool_result", None, Some("{broken")),
        ("bogus", Some("?"), Some("??")),
        ("assistant", None, None),
    ];
    for (kind, content, data) in rows {
        log.inject(agent, kind, content, data, false);
    }
    let before = log.rows(agent);

    for _ in 0..3 {
        let replayed = log.replayed(agent);
        assert_eq!(replayed.view.scrollback().count(), rows.len());
        let _ = log.assembled(agent, &target("p", "m"));
    }

    let after = log.rows(agent);
    assert_eq!(after, before);
    for (row, (kind, content, data)) in after.iter().zip(rows) {
        let stored = (row.kind.name(), row.content.as_deref(), row.data.as_deref());
        assert_eq!(stored, (kind, content, data));
    }
}
