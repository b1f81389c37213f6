//! Rendering of rows, and handling of bad rows.

use ikigai_core::data::{
    AgentKilledData, Amounts, Category, Cause, CommandData, ErrorData, FilesData, ForkData,
    InterruptedData, KilledBy, MarkData, ProcessData, ProcessState, RewindData, SummaryData,
    SystemOrigin, UsageData, Via,
};
use ikigai_core::load::{LoadError, load};
use ikigai_core::render::{Said, Shown, render};
use ikigai_core::state::ApplyError;
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, AgentState, Event, Kind, Message, Micros, Role, RowRef, Seq};
use ikigai_store::{ReadLog, Status};
use ikigai_testkit::{TestLog, block_on, check_request, target};
use serde_json::{Value, json};

use crate::reading::{kinds, said, shown};

fn command(output: &str, args: &str, echo: Option<&str>) -> Event {
    Event::Command {
        output: Some(output.to_owned()),
        data: CommandData {
            command: Some("say".to_owned()),
            args: Some(args.to_owned()),
            echo: echo.map(str::to_owned),
            ..CommandData::default()
        },
    }
}

#[test]
fn a_warning_is_read_from_its_severity_or_from_the_sign_of_older_rows() {
    let mut log = TestLog::default();
    let agent = log.root();
    let printed = |output, echo| command(output, "", Some(echo));
    let mut field = printed("no row", "/say");
    if let Event::Command { data, .. } = &mut field {
        data.severity = Some(Severity::Warning);
    }
    let cases = [
        (field, Severity::Warning, "no row"),
        (printed("⚠ no row", "/say"), Severity::Warning, "no row"),
        (printed("fine ⚠", "/say"), Severity::Info, "fine ⚠"),
        // A program may print any character.
        (printed("⚠ hot", "!!sensors"), Severity::Info, "⚠ hot"),
    ];

    for (event, severity, output) in cases {
        let at = log.append(agent, event);

        let shown = render(&log.row(at));
        let Shown::Command {
            output: drawn,
            severity: read,
            ..
        } = &shown
        else {
            panic!("{shown:?}")
        };
        assert_eq!((*read, drawn.as_str()), (severity, output));
        assert!(shown.to_string().ends_with(&severity.signed(output)));
    }
}

/// S3-22b: arguments and output round-trip, except that U+0000 in output becomes U+2400.
#[test]
fn command_text_round_trips() {
    let all_of_unicode: String = ('\u{1}'..=char::MAX).collect();
    let cases = [
        ("", ""),
        ("'a' \"b\" `c` \\ \\n", "'a' \"b\" `c` \\ \\n"),
        ("one\ntwo\r\n\tthree", "one\ntwo\r\n\tthree"),
        ("e\u{301} is not é", "e\u{301} is not é"),
        ("nul \0 and \0", "nul \u{2400} and \u{2400}"),
        (&all_of_unicode, &all_of_unicode),
    ];
    let mut log = TestLog::default();
    let agent = log.root();

    for (text, restored) in cases {
        let at = log.append(agent, command(text, text, Some(text)));

        let row = log.row(at);
        let data: CommandData = ikigai_core::data::read(row.data.as_deref());
        assert!(row.content.as_deref() == Some(restored));
        assert!(data.args.as_deref() == Some(text) && data.echo.as_deref() == Some(text));
        assert!(!row.data.unwrap().contains('\0'));
        let expected = Shown::Command {
            echo: text.to_owned(),
            output: restored.to_owned(),
            severity: Severity::Info,
        };
        assert!(log.replayed(agent).view.scrollback().last() == Some(expected));
    }
}

/// S3-23 S3-44: a command is a row of kind `command`.
///
/// Its output is the content; the command, its arguments and its echo are the data.
#[test]
fn command_row_shape() {
    let agent = TestLog::default().root();
    let event = command("hello", "  hello ", Some("/say   hello "));

    let row = event.into_row(agent, Micros(1));

    let data: Value = serde_json::from_str(row.data.as_deref().unwrap()).unwrap();
    assert_eq!(row.kind.name(), "command");
    assert_eq!(row.content.as_deref(), Some("hello"));
    assert_eq!(
        data,
        json!({"command": "say", "args": "  hello ", "echo": "/say   hello "})
    );
}

fn word(text: &str) -> String {
    text.to_owned()
}

/// Returns one event of each conversation kind with its rendering.
fn conversation(agent: AgentId) -> Vec<(Event, Shown)> {
    vec![
        (
            Event::system("be terse", SystemOrigin::Typed),
            Shown::System(word("be terse")),
        ),
        (
            Event::user("why?"),
            Shown::User {
                text: word("why?"),
                sent: None,
                said: Said::Typed,
            },
        ),
        (
            Event::assistant(1, "so"),
            Shown::Assistant {
                thinking: Vec::new(),
                text: word("so"),
            },
        ),
        (
            Event::tool_call(1, "c", "ls", "{}"),
            Shown::ToolCall {
                thinking: Vec::new(),
                name: word("ls"),
                text: word("{}"),
                arguments: word("{}"),
            },
        ),
        (
            Event::tool_result(RowRef::new(agent, Seq(4)), "c", "ls", "a", true),
            Shown::ToolResult {
                name: word("ls"),
                text: word("a"),
                output: word("a"),
                success: true,
                call: Some(RowRef::new(agent, Seq(4))),
            },
        ),
    ]
}

fn process_data(state: ProcessState) -> ProcessData {
    ProcessData {
        process: Some(1),
        state: Some(state),
        ..ProcessData::default()
    }
}

fn files(agent: AgentId) -> Event {
    Event::Files(FilesData {
        call: Some(RowRef::new(agent, Seq(2))),
        ..FilesData::default()
    })
}

fn process(state: ProcessState) -> Event {
    Event::Process {
        command: word("make"),
        data: process_data(state),
    }
}

/// Returns one event of each kind with its rendering.
fn one_of_each(agent: AgentId) -> Vec<(Event, Shown)> {
    let first = RowRef::new(agent, Seq(1));
    let amounts = Amounts {
        input: Some(2),
        output: Some(3),
        ..Amounts::default()
    };
    let usage = UsageData {
        response: Some(1),
        amounts: amounts.clone(),
        ..UsageData::default()
    };
    let killed = AgentKilledData {
        target: Some(agent),
        killed: Some(vec![agent]),
        by: Some(KilledBy::User),
    };
    let failed = ErrorData {
        category: Some(Category::Provider),
        ..ErrorData::default()
    };
    let forked = ForkData::default();
    let mut all = conversation(agent);
    all.extend([
        (Event::mark(Some("here")), Shown::Mark(Some(word("here")))),
        (
            Event::Fork {
                text: word("Forked child"),
                data: Box::new(forked),
            },
            Shown::Forked {
                text: word("Forked child"),
                role: None,
                other: None,
                name: None,
            },
        ),
        (
            command("out", "", Some("/say")),
            Shown::Command {
                echo: word("/say"),
                output: word("out"),
                severity: Severity::Info,
            },
        ),
        (command("out", "", None), Shown::Nothing),
        (Event::AgentKilled(killed), Shown::Killed(vec![agent])),
        (Event::Usage(usage), Shown::Usage(amounts)),
        (
            Event::interrupted(Cause::User),
            Shown::Interrupted(Some(Cause::User)),
        ),
        (
            Event::Error {
                text: word("overloaded"),
                data: failed,
            },
            Shown::Failed {
                category: Some(Category::Provider),
                status: None,
                text: word("overloaded"),
            },
        ),
        (
            Event::summary(Some("short"), first, first),
            Shown::Summary {
                range: Some((first, first)),
                text: Some(word("short")),
                elides: false,
                undo: None,
            },
        ),
        (
            Event::rewind(
                RowRef::new(agent, Seq(14)),
                RowRef::new(agent, Seq(14)),
                Via::Undo,
            ),
            Shown::Rewound(RewindData {
                target: Some(RowRef::new(agent, Seq(14))),
                from: Some(RowRef::new(agent, Seq(14))),
                via: Some(Via::Undo),
                ..RewindData::default()
            }),
        ),
        (process(ProcessState::Started), Shown::Nothing),
        (files(agent), Shown::Nothing),
        (
            process(ProcessState::Ended),
            Shown::ProcessEnded {
                command: word("make"),
                data: process_data(ProcessState::Ended),
            },
        ),
        (Event::Clear, Shown::Cleared),
    ]);
    all
}

/// S3-26: the scrollback gets every row on the path, of any kind.
#[test]
fn scrollback_gets_all_kinds() {
    let mut log = TestLog::default();
    let agent = log.root();
    let mut events = one_of_each(agent);
    let (clear, cleared) = events.pop().unwrap();
    let expected: Vec<_> = events.iter().map(|(_, shown)| shown.clone()).collect();
    for (event, _) in events {
        log.append(agent, event);
    }

    for agent in [log.live(agent), log.replayed(agent)] {
        assert_eq!(agent.view.scrollback().collect::<Vec<_>>(), expected);
    }

    log.append(agent, clear);
    let scrollback: Vec<_> = log.replayed(agent).view.scrollback().collect();
    assert_eq!(scrollback, [cleared]);
}

/// S3-29: every kind renders with all fields, with required fields only, and with the
/// largest numbers.
#[test]
fn every_kind_renders_without_error() {
    let mut log = TestLog::default();
    let agent = log.root();
    let events = one_of_each(agent);
    for kind in Kind::ALL {
        assert!(
            events.iter().any(|(event, _)| event.kind() == kind),
            "{kind} is missing"
        );
    }

    for (event, expected) in events {
        let row = log.append(agent, event);
        let shown = render(&log.row(row));
        assert_eq!(shown, expected);
        assert_eq!(shown.to_string().is_empty(), shown == Shown::Nothing);
    }

    let huge = Amounts {
        input: Some(u64::MAX),
        cache_read: Some(u64::MAX),
        cache_write: Some(1),
        ..Amounts::default()
    };
    let bare = [
        Event::Mark(MarkData::default()),
        command("", "", Some("/say")),
        Event::Command {
            output: None,
            data: CommandData::default(),
        },
        Event::AgentKilled(AgentKilledData::default()),
        Event::Usage(UsageData {
            amounts: huge,
            ..UsageData::default()
        }),
        Event::Interrupted(InterruptedData::default()),
        Event::Summary {
            text: None,
            data: SummaryData::default(),
        },
    ];
    for event in bare {
        let row = log.append(agent, event);
        let shown = render(&log.row(row));
        assert!(!matches!(shown, Shown::Warning(_)), "{shown}");
        assert!(!shown.to_string().contains('⚠'));
    }
}

/// D3c: system rows are in the scrollback, and not among the messages.
#[test]
fn system_rows_are_shown() {
    let mut log = TestLog::default();
    let agent = log.root();
    for origin in [SystemOrigin::Start, SystemOrigin::Typed] {
        log.append(agent, Event::system(format!("{origin:?}"), origin));
    }

    for agent in [log.live(agent), log.replayed(agent)] {
        let scrollback: Vec<_> = agent.view.scrollback().collect();
        let expected = ["Start", "Typed"].map(|text| Shown::System(text.to_owned()));
        assert_eq!(scrollback, expected);
        assert!(agent.view.conversation().is_empty());
    }
}

/// S2-29: errors keep their text after their rows are dropped.
#[test]
fn validation_error_outlives_input() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.inject(agent, "bogus", None, None, false);
    log.inject(
        agent,
        "tool_call",
        None,
        Some(r#"{"tool_call_id":"x"}"#),
        false,
    );
    let rows = log.rows(agent);
    let out_of_order = AgentState::new(agent).apply(&rows[1]).unwrap_err();
    let mut refused = Event::user("x").into_row(agent, Micros(1));
    refused.content = None;
    let insert_error = refused.check().unwrap_err();
    let load_errors = [load(&rows[0]).unwrap_err(), load(&rows[1]).unwrap_err()];
    let kind_error = String::from("nonsense").parse::<Kind>().unwrap_err();

    drop((rows, refused, log));

    assert_eq!(load_errors[0].to_string(), "unknown kind `bogus`");
    assert_eq!(
        load_errors[1].to_string(),
        "the field `name` is missing or not a string"
    );
    assert_eq!(
        insert_error.to_string(),
        "a row of kind `user` needs content"
    );
    assert_eq!(kind_error.to_string(), "`nonsense` is not a kind of event");
    assert!(matches!(
        out_of_order,
        ApplyError::OutOfOrder { head: Seq(0), .. }
    ));
}

/// D4c S0-13 S2-16 S2-44e: a row of unknown kind is a load error and one warning on screen.
///
/// The warning names the kind; the row is never a message and does not prevent a restore.
#[test]
fn unknown_kind_at_load_is_reported_and_skipped() {
    let endless = "x".repeat(1_000_000);
    for kind in [
        "bogus",
        "",
        "User",
        "tool_calls",
        "Ünïcode\n\u{1b}[2J",
        &endless,
    ] {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("before"));
        log.inject(agent, kind, Some("text"), Some(r#"{"response":1}"#), false);
        log.append(agent, Event::user("after"));
        let row = log.row(RowRef::new(agent, Seq(2)));
        assert!(matches!(load(&row), Err(LoadError::UnknownKind(_))));

        for agent in [log.live(agent), log.replayed(agent)] {
            assert_eq!(said(&agent), ["before", "after"]);
            let lines = shown(&agent);
            assert_eq!((&*lines[0], &*lines[2]), ("❯ before", "❯ after"));
            assert!(
                lines[1].starts_with(&format!("⚠ event {}", row.at)),
                "{}",
                lines[1]
            );
            assert!(lines[1].chars().count() < 300);
            assert!(!lines[1].contains(char::is_control), "{:?}", lines[1]);
        }
        let request = log.request(agent, &target("p", "m")).unwrap();
        let expected = ["before", "after"].map(|text| Message::text(Role::User, text));
        assert_eq!(request.messages, expected);
        assert_eq!(row.kind.name(), kind);
    }
}

/// Returns rows that violate the rules of their kind.
fn bad_rows() -> Vec<(&'static str, Option<&'static str>, Option<&'static str>)> {
    vec![
        ("bogus", Some("x"), None),
        ("user", None, None),
        ("assistant", None, Some(r#"{"response":1}"#)),
        ("system", None, None),
        ("tool_call", Some("x"), None),
        ("tool_call", Some("x"), Some("")),
        ("tool_call", None, Some("{")),
        ("tool_call", None, Some("[]")),
        (
            "tool_call",
            None,
            Some(r#"{"tool_call_id":"x","name":1,"arguments":""}"#),
        ),
        ("tool_result", None, Some("null")),
        ("tool_result", None, Some(r#"{"output":"x"}"#)),
        ("tool", None, Some(r#"{"tool_call_id":"x"}"#)),
        ("rewind", None, None),
        ("rewind", None, Some(r#"{"target":{"agent":"x","seq":1}}"#)),
    ]
}

/// D15a: a bad row gives one warning that names agent, number and kind.
///
/// All other rows and agents are restored, including agents that inherit the bad row.
#[test]
fn bad_row_never_blocks_restore() {
    for (kind, content, data) in bad_rows() {
        let mut log = TestLog::default();
        let other = log.root();
        log.append(other, Event::user("elsewhere"));
        let agent = log.root();
        log.append(agent, Event::user("before"));
        log.inject(agent, kind, content, data, true);
        log.append(agent, Event::user("after"));
        let child = log.fork(agent, log.order("child"));

        for agent in [log.live(agent), log.replayed(agent), log.replayed(child)] {
            assert_eq!(said(&agent), ["before", "after"]);
            assert_eq!(kinds(&agent)[..3], ["user", kind, "user"]);
            let lines = shown(&agent);
            let bad = RowRef::new(agent.view.entries()[1].at().agent, Seq(2));
            assert!(
                lines[1].starts_with(&format!("⚠ event {bad} of kind `{kind}`")),
                "{lines:?}"
            );
            assert_eq!(lines.iter().filter(|line| line.contains('⚠')).count(), 1);
        }
        assert_eq!(log.replayed(agent), log.live(agent));
        assert_eq!(said(&log.replayed(other)), ["elsewhere"]);
    }
}

/// D15b: an agent with bad rows is still running after a restore, and can be talked to.
#[test]
fn bad_row_never_kills_agent() {
    let mut log = TestLog::default();
    let agent = log.root();
    for (kind, content, data) in bad_rows() {
        log.inject(agent, kind, content, data, true);
    }
    log.append(agent, Event::user("still there?"));
    for (kind, content, data) in bad_rows() {
        log.inject(agent, kind, content, data, true);
    }
    let record = |log: &TestLog| block_on(log.store.agent(agent)).unwrap().unwrap();

    let restored = log.replayed(agent);

    assert_eq!(record(&log).status, Status::Running);
    assert_eq!(restored.view.is_busy(restored.state.path()), Some(true));
    let to = target("p", "m");
    let request = log.request(agent, &to).unwrap();
    assert_eq!(check_request(&request, &to), Ok(()));
    assert_eq!(
        request.messages,
        [Message::text(Role::User, "still there?")]
    );

    log.append(agent, Event::assistant(1, "yes"));
    let answered = log.replayed(agent);
    assert_eq!(said(&answered), ["still there?", "yes"]);
    assert_eq!(answered.view.is_busy(answered.state.path()), Some(false));
    assert_eq!(record(&log).status, Status::Running);
}

/// Omitted rows are not sent, and the turn continues.
#[test]
fn omitted_rows_leave_the_request_and_the_turn_goes_on() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("look"));
    let refused = log.append(agent, Event::user("something refused"));
    let data = ErrorData {
        category: Some(Category::Omitted),
        omit: Some(vec![refused]),
        ..ErrorData::default()
    };

    log.append(
        agent,
        Event::Error {
            text: "refused".to_owned(),
            data,
        },
    );

    let to = target("p", "m");
    let request = log.request(agent, &to).unwrap();
    let sent = serde_json::to_string(&request).unwrap();
    assert_eq!(check_request(&request, &to), Ok(()));
    assert!(
        sent.contains("look") && !sent.contains("something refused"),
        "{sent}"
    );
    let restored = log.replayed(agent);
    assert_eq!(restored.view.is_busy(restored.state.path()), Some(true));
}

#[test]
fn a_fork_point_that_is_not_there_ends_the_path_and_the_rest_is_restored() {
    let mut log = TestLog::new(3);
    let other = log.root();
    let agent = log.root();
    let nowhere = RowRef::new(other, Seq(7));
    let data = format!(
        r#"{{"role":"child","parent_uuid":"{other}","context":"inherit","fork_point":{{"agent":"{other}","seq":7}}}}"#
    );
    log.inject(
        agent,
        "fork",
        Some("Forked from nowhere"),
        Some(&data),
        true,
    );
    log.append(agent, Event::user("still here"));

    let replayed = log.replayed(agent);
    let live = log.live(agent);

    assert_eq!(replayed, live);
    assert_eq!(replayed.missing, Some(nowhere));
    assert_eq!(replayed.view.entries().len(), 2);
    assert!(replayed.view.is_complete(replayed.state.path()));
    let request = log.request(agent, &target("a", "b")).unwrap();
    assert_eq!(request.messages, [Message::text(Role::User, "still here")]);
}
