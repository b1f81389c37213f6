//! Kinds: one closed list, and the properties of each kind.

use ikigai_core::data::{Cause, SystemOrigin};
use ikigai_core::kind::{LEGACY_TOOL, StoredKind, UnknownKind};
use ikigai_core::load::{LoadError, Loaded, load};
use ikigai_core::render::{Shown, render};
use ikigai_core::{Event, Kind, Message, Micros, Row, RowRef, Seq, is_conversation_kind};
use ikigai_testkit::{IdSource, TestLog, target};

use crate::source;

/// The names as the requirements list them.
const NAMES: [&str; 17] = [
    "system",
    "user",
    "assistant",
    "tool_call",
    "tool_result",
    "clear",
    "mark",
    "rewind",
    "fork",
    "command",
    "agent_killed",
    "usage",
    "interrupted",
    "error",
    "summary",
    "process",
    "files",
];

fn row(kind: &str, content: Option<&str>, data: Option<&str>) -> Row {
    Row {
        at: RowRef::new(IdSource::new(1).agent(), Seq(1)),
        kind: StoredKind::of(kind),
        content: content.map(str::to_owned),
        data: data.map(str::to_owned),
        created_at: Micros(0),
        author: None,
    }
}

/// D17a S3-31: the kinds are one closed enum, and each name parses and prints back to itself.
#[test]
fn kind_names_round_trip() {
    assert_eq!(Kind::ALL.map(Kind::name), NAMES);
    for kind in Kind::ALL {
        let name = kind.to_string();

        assert_eq!(name, kind.name());
        assert_eq!(name.parse(), Ok(kind));
        assert_eq!(StoredKind::of(&name), StoredKind::Known(kind));
        assert_eq!(StoredKind::Known(kind).to_string(), name);
    }
    for name in ["tool", "", "User", "user ", " user", "tool-call", "bogus"] {
        assert_eq!(name.parse::<Kind>(), Err(UnknownKind(name.to_owned())));
        assert_eq!(StoredKind::of(name).name(), name);
    }
}

/// D17b S3-30: insert rule, renderer and relevance each match all kinds of the enum.
///
/// No `match` has a catch-all arm, so a kind without a decision does not compile.
#[test]
fn every_kind_has_insert_rule_renderer_and_relevance() {
    let deciders = [
        ("kind.rs", "pub const fn insert_rule("),
        ("kind.rs", "pub const fn is_conversation("),
        ("load.rs", "pub fn load("),
        ("render.rs", "pub(crate) fn render_loaded("),
        ("event.rs", "pub fn is_control("),
        ("event.rs", "pub const fn kind("),
    ];
    for (file, signature) in deciders {
        let body = source::function(file, signature);

        let catch_all = body.lines().find(|line| source::is_catch_all(line));
        assert_eq!(catch_all, None, "{signature}");
        for kind in Kind::ALL {
            let variant = format!("{kind:?}");
            assert!(source::names(&body, &variant), "{signature} {variant}");
        }
    }
}

/// S0-4 S0-16: rows, replay, loader and renderer share the enum.
///
/// No other source file of the program lists the names of the kinds, and none is renamed.
#[test]
fn one_kind_enum_from_store_to_renderer() {
    let lists: Vec<_> = source::all_of_the_workspace()
        .into_iter()
        // Dialects have their own words, some spelled like kinds.
        .filter(|(path, _)| !path.starts_with("ikigai-providers/src/dialects/"))
        .filter(|(path, _)| !path.starts_with("ikigai-testkit/"))
        .filter(|(_, text)| {
            let literal = |name: &&&str| text.contains(&format!("\"{name}\""));
            NAMES.iter().filter(literal).count() > 3
        })
        .map(|(path, _)| path)
        .collect();
    assert_eq!(lists, ["ikigai-core/src/kind.rs"]);

    for name in NAMES.into_iter().chain([LEGACY_TOOL, "bogus"]) {
        let mut log = TestLog::default();
        let agent = log.root();
        log.inject(agent, name, None, Some("{}"), true);

        let replayed = log.replayed(agent);
        let row = &replayed.view.entries()[0].row;
        assert_eq!(
            (row.kind.clone(), row.kind.name()),
            (StoredKind::of(name), name)
        );
        if let Some(Shown::Warning(line)) = replayed.view.scrollback().next() {
            assert!(line.contains(&format!("of kind `{name}`")), "{line}");
        }
    }
}

/// S2-14 S2-44b: a stored row of the legacy kind `tool` loads exactly like `tool_result`.
#[test]
fn legacy_tool_kind_loads_as_tool_result() {
    let cases = [
        Some(r#"{"tool_call_id":"c1","name":"ls","output":"a b","success":true}"#),
        Some(r#"{"tool_call_id":"c1","output":"","success":false,"summary":"s"}"#),
        Some(r#"{"tool_call_id":"c1"}"#),
        Some(r#"{"output":"a"}"#),
        Some("[]"),
        Some("{"),
        Some(""),
        None,
    ];
    for data in cases {
        for content in [None, Some("shown")] {
            let legacy = row(LEGACY_TOOL, content, data);
            let modern = row("tool_result", content, data);

            assert_eq!(load(&legacy), load(&modern), "{data:?}");
            assert_eq!(legacy.kind.read_as(), Some(Kind::ToolResult));
            assert!(load(&legacy).is_err() || render(&legacy) == render(&modern));
        }
    }

    let ended = |kind: &str| {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("list"));
        log.append(agent, Event::tool_call(1, "c1", "ls", "{}"));
        log.inject(agent, kind, None, cases[0], false);
        log.request(agent, &target("p", "m")).unwrap()
    };
    assert_eq!(ended(LEGACY_TOOL), ended("tool_result"));
    assert_eq!(
        ended(LEGACY_TOOL).messages[2],
        Message::tool_result("c1", "a b", false)
    );
}

/// S4-4 S4-5 S4-6: true for the five conversation kinds and for the legacy `tool`.
#[test]
fn conversation_kinds_are_true() {
    for name in [
        "system",
        "user",
        "assistant",
        "tool_call",
        "tool_result",
        "tool",
    ] {
        assert!(is_conversation_kind(Some(name)), "{name}");
    }
}

/// S4-7: false for every other kind of the enum.
#[test]
fn metadata_kinds_are_false() {
    let metadata = &NAMES[5..];
    assert_eq!(metadata.len(), 12);
    for name in metadata {
        assert!(!is_conversation_kind(Some(name)), "{name}");
    }
}

/// S4-8 S4-9 D4b: false, without error or panic, for an absent kind and every other string.
#[test]
fn unknown_or_absent_kind_is_false() {
    assert!(!is_conversation_kind(None));
    let long = "user".repeat(1 << 16);
    let others = [
        "",
        " ",
        "bogus",
        "USER",
        "User",
        "Tool",
        "tool ",
        "\u{0}",
        "user\0",
        "tool_calls",
        "\u{1f5a4}",
        "\u{ff55}ser",
        &long,
    ];
    for name in others {
        assert!(!is_conversation_kind(Some(name)), "{name:?}");
        let loaded = load(&row(name, Some("text"), None));
        assert!(matches!(loaded, Err(LoadError::UnknownKind(_))), "{name:?}");
    }
}

/// S3-9: the `user` row made from a fork's prompt is owned by the child.
#[test]
fn fork_prompt_row_owned_by_child() {
    let mut log = TestLog::default();
    let parent = log.root();
    log.append(parent, Event::user("hello"));
    let order = log.order("child");

    let child = log.fork(
        parent,
        ikigai_core::fork::ForkOrder {
            prompt: Some("do this".into()),
            system: None,
            ..order
        },
    );

    let texts = |agent| -> Vec<_> {
        let rows = log.rows(agent).into_iter();
        rows.filter(|row| row.kind == StoredKind::Known(Kind::User))
            .map(|row| (row.at.agent, row.content, row.data))
            .collect()
    };
    let said = |agent, text: &str, origin: &str| {
        let data = format!(r#"{{"origin":"{origin}"}}"#);
        (agent, Some(text.to_owned()), Some(data))
    };
    assert_eq!(texts(child), [said(child, "do this", "fork")]);
    assert_eq!(texts(parent), [said(parent, "hello", "typed")]);
    let nothing = load(&log.rows(child)[0]);
    assert_eq!(nothing, Ok(Loaded::Nothing));
}

/// Rows have an author if a person caused them, not the program or the model.
#[test]
fn persons_cause_what_they_type_and_decide() {
    let set = |command: &str| Event::set(command, serde_json::Map::new());
    let cases = [
        (Event::system("prompt", SystemOrigin::Start), false),
        (Event::system("prompt", SystemOrigin::Typed), true),
        (Event::Clear, true),
        (Event::interrupted(Cause::User), true),
        (Event::interrupted(Cause::Crash), false),
        (set("start"), true),
        (set("tools"), false),
        (Event::resume(), false),
        (Event::set_pins(Vec::new(), false), false),
    ];

    for (event, is_of_person) in cases {
        assert_eq!(event.is_of_person(), is_of_person, "{event:?}");
    }
}
