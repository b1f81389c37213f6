mod pictures;

use std::time::Duration;

use ikigai_core::data::{
    AgentKilledData, Amounts, Category, Cause, CommandData, ErrorData, ForkData, ForkRole, Merge,
    RewindData, Shell, SummaryData, SystemOrigin, ToolCallData, ToolResultData, UsageData,
    UserData, UserOrigin, Verdict, Via,
};
use ikigai_core::render::{Names, render};
use ikigai_core::{Event, Micros, Row, Seq, StoredKind};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::width::width;

fn agent(byte: u8) -> AgentId {
    AgentId::from_random([byte; 16]).unwrap()
}

fn own() -> AgentId {
    agent(1)
}

fn at(seq: u64) -> RowRef {
    RowRef::new(own(), Seq(seq))
}

fn name_of(agent_id: AgentId) -> Option<String> {
    (agent_id == agent(2)).then(|| "count-src".to_owned())
}

fn context(width: u16) -> RenderContext<'static> {
    RenderContext {
        width,
        symbols: Symbols::Utf8,
        names: Names {
            own: Some(own()),
            name_of: &name_of,
        },
    }
}

/// The event as read from a store.
fn stored(event: Event) -> Shown {
    let row = event.into_row(own(), Micros(0));
    render(&Row {
        at: at(7),
        kind: StoredKind::Known(row.kind),
        content: row.content,
        data: row.data,
        created_at: row.created_at,
        author: row.author,
    })
}

fn drawn(shown: &Shown, fold: FoldState, context: &RenderContext<'_>) -> Vec<String> {
    let lines = block(shown, fold, context).lines;
    lines.iter().map(TextLine::text).collect()
}

fn user(text: &str, data: UserData) -> Event {
    Event::User {
        text: text.to_owned(),
        data,
    }
}

fn result(name: &str, shown: &str, output: &str, success: bool) -> Event {
    Event::ToolResult {
        shown: Some(shown.to_owned()),
        data: ToolResultData {
            tool_call_id: Some("c".to_owned()),
            name: Some(name.to_owned()),
            output: Some(output.to_owned()),
            success: Some(success),
            call: Some(at(3)),
            verdict: Some(Verdict::Ran),
            ..ToolResultData::default()
        },
    }
}

/// One event of every kind and form, with these words.
fn every_form(word: &str) -> Vec<Event> {
    let mut all = messages(word);
    all.extend(tool_events(word));
    all.extend(moves(word));
    all.extend(endings(word));
    all
}

fn messages(word: &str) -> Vec<Event> {
    let typed = UserData {
        typed: Some(word.to_owned()),
        ..UserData::default()
    };
    let shell = |command, exit| UserData {
        shell: Some(Shell { command, exit }),
        ..UserData::default()
    };
    let merge = |agent| UserData {
        merge: Some(Merge {
            agent,
            from: Some(Seq(1)),
            to: Some(Seq(41)),
        }),
        ..typed.clone()
    };
    let mail = |from| UserData {
        origin: Some(UserOrigin::Mail),
        from,
        ..typed.clone()
    };
    let fork = UserData {
        origin: Some(UserOrigin::Fork),
        ..UserData::default()
    };
    let ran = format!("$ {word}\n{word}\n(exit 1)");
    vec![
        Event::system(word, SystemOrigin::Typed),
        Event::user(word),
        user(&format!("more {word}"), typed.clone()),
        user(word, fork),
        user(word, mail(Some(agent(2)))),
        user(word, mail(None)),
        user(&ran, shell(Some(word.to_owned()), Some(1))),
        user(word, shell(None, None)),
        user(word, merge(Some(agent(2)))),
        user(word, merge(None)),
        Event::assistant(1, word),
        thinking(word, word),
    ]
}

fn thinking(thought: &str, text: &str) -> Event {
    let data = json!({"response": 1, "opaque": {"thinking": [{"text": thought}]}});
    Event::Assistant {
        text: text.to_owned(),
        data: serde_json::from_value(data).unwrap(),
    }
}

fn tool_events(word: &str) -> Vec<Event> {
    let hunk = format!("a\n@@ -1,2 +3,4 @@\n+{word}\n-{word}\n {word}\n{word}");
    let many = format!("{word}\nmore\nlines\nhere\nand\nthere\nend");
    vec![
        Event::tool_call(1, "c", word, word),
        Event::tool_call(1, "c", "bash", json!({"key": word, word: 1}).to_string()),
        result(word, word, word, true),
        result("bash", word, &many, false),
        result("file_edit", &hunk, "", true),
    ]
}

fn rewind(via: Via, files: Vec<String>) -> Event {
    Event::Rewind(RewindData {
        restored: None,
        target: Some(at(4)),
        from: Some(at(9)),
        via: Some(via),
        files: Some(files),
        turns: Some(2),
    })
}

fn fork(role: ForkRole, other: Option<AgentId>, name: &str) -> Event {
    Event::Fork {
        text: format!("Forked child {} ({name})", agent(2)),
        data: Box::new(ForkData {
            role: Some(role),
            child_uuid: other,
            ..ForkData::default()
        }),
    }
}

fn command(echo: &str, output: &str) -> Event {
    Event::Command {
        output: Some(output.to_owned()),
        data: CommandData {
            echo: Some(echo.to_owned()),
            ..CommandData::default()
        },
    }
}

fn moves(word: &str) -> Vec<Event> {
    let files = || vec![word.to_owned(); 12];
    vec![
        Event::Clear,
        Event::mark(Some(word)),
        Event::mark(None),
        rewind(Via::Rewind, files()),
        rewind(Via::Undo, files()),
        rewind(Via::Redo, files()),
        rewind(Via::Retry, files()),
        fork(ForkRole::Parent, Some(agent(2)), word),
        fork(ForkRole::Child, None, word),
        command(word, word),
        command(&format!("!!{word}"), &format!("$ {word}\n{word}\n(exit 0)")),
    ]
}

fn error(category: Category, status: Option<u16>, text: &str) -> Event {
    Event::Error {
        text: text.to_owned(),
        data: ErrorData {
            category: Some(category),
            status,
            ..ErrorData::default()
        },
    }
}

fn summary(text: Option<&str>, undo: Option<RowRef>) -> Event {
    Event::Summary {
        text: text.map(str::to_owned),
        data: SummaryData {
            from: Some(at(1)),
            to: Some(at(5)),
            undo,
            ..SummaryData::default()
        },
    }
}

fn killed() -> Event {
    Event::AgentKilled(AgentKilledData {
        target: Some(own()),
        killed: Some(vec![own(), agent(2)]),
        by: None,
    })
}

fn endings(word: &str) -> Vec<Event> {
    let usage = UsageData {
        amounts: Amounts {
            input: Some(1),
            ..Amounts::default()
        },
        ..UsageData::default()
    };
    vec![
        killed(),
        Event::Usage(usage),
        Event::interrupted(Cause::User),
        Event::interrupted(Cause::Exit),
        Event::interrupted(Cause::Crash),
        Event::interrupted(Cause::Kill),
        error(Category::Provider, Some(401), word),
        error(Category::Provider, None, word),
        error(Category::Limit, None, word),
        error(Category::Budget, None, word),
        error(Category::Omitted, Some(400), word),
        error(Category::Internal, None, word),
        summary(Some(word), None),
        summary(None, None),
        summary(None, Some(at(5))),
    ]
}

fn check(shown: &Shown, context: &RenderContext<'_>) -> Result<(), TestCaseError> {
    for fold in [FoldState::Folded, FoldState::Open] {
        for line in block(shown, fold, context).lines {
            prop_assert!(line.lead <= line.spans.len());
            let mut total = 0;
            for span in &line.spans {
                let steers = |c: char| c.is_control() || c == '\u{202e}' || c == '\u{2028}';
                prop_assert!(!span.text.contains(steers), "{line:?} of {shown:?}");
                total += width(&span.text);
            }
            prop_assert!(total <= usize::from(context.width), "{line:?} of {shown:?}");
        }
    }
    Ok(())
}

/// Text that attacks the terminal or its reader.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[a-z日本👩\u{301}\u{200d}]{0,40}",
        Just("\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}1m".to_owned()),
        Just("\r\n\r\t\0\u{7f}\u{8}".to_owned()),
        Just("\u{202e}\u{2066}\u{2028}\u{feff}".to_owned()),
        Just("\n@@ -1 +1 @@\n+x\n# h\n```rust\n| a | b |\n|---|---|\n| 1 | 2\n".to_owned()),
        "[\\PC\n]{0,60}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_from_outside_reaches_the_screen_as_it_is(word in hostile(), columns in 1..130_u16, ascii in any::<bool>()) {
        let symbols = if ascii { Symbols::Ascii } else { Symbols::Utf8 };
        let call = |_| Some(word.clone());
        let context = RenderContext { width: columns, symbols, names: Names { own: None, name_of: &call } };
        for event in every_form(&word) {
            check(&stored(event), &context)?;
        }
        for shown in [Shown::Warning(word.clone()), Shown::Nothing] {
            check(&shown, &context)?;
        }
        let turn = TurnSummary { clock: word.clone(), ..TurnSummary::default() };
        let line = turn_line(&turn, symbols).text();
        prop_assert!(!line.contains(char::is_control));
    }
}

#[test]
fn what_says_nothing_has_its_sign() {
    let silent = ["", "x"].map(|word| {
        let events = every_form(word).into_iter();
        events
            .filter(|event| {
                block(&stored(event.clone()), FoldState::Folded, &context(80))
                    .lines
                    .is_empty()
            })
            .map(|event| event.kind().name())
            .collect::<Vec<_>>()
    });

    assert_eq!(silent[0], ["system", "command", "usage"]);
    assert_eq!(silent[1], ["usage"]);
}

#[test]
fn a_terminal_without_unicode_gets_none_of_ours() {
    let context = RenderContext {
        symbols: Symbols::Ascii,
        ..context(70)
    };
    let long = "word ".repeat(2000) + "\n- [ ] a\n\n> b\n\n|c|d|\n|-|-|\n\n---\n";
    for event in every_form("word").into_iter().chain(every_form(&long)) {
        let shown = stored(event);
        for fold in [FoldState::Folded, FoldState::Open] {
            for line in drawn(&shown, fold, &context) {
                assert!(line.is_ascii(), "{line}");
            }
        }
    }
}

#[test]
fn figures_are_short() {
    let spans = [
        (0, "0 s"),
        (430, "0.4 s"),
        (12_999, "12 s"),
        (125_000, "2 min 5 s"),
        (7_200_000, "2 h"),
        (187_200_000, "2 d 4 h"),
    ];
    for (millis, expected) in spans {
        assert_eq!(duration(Duration::from_millis(millis)), expected);
    }
}

#[test]
fn the_line_after_a_turn_tells_what_is_known() {
    let turn = TurnSummary {
        took: Duration::from_secs(12),
        tools: 3,
        tokens: 2100,
        cost_nano_usd: Some(12_000_000),
        clock: "14:03".to_owned(),
    };
    let short = TurnSummary {
        took: Duration::from_secs(1),
        ..TurnSummary::default()
    };

    assert_eq!(
        turn_line(&turn, Symbols::Utf8).text(),
        "12 s · 3 tools · 2.1k tokens · $0.01 · 14:03"
    );
    assert_eq!(turn_line(&short, Symbols::Utf8).text(), "1 s");
}

#[test]
fn a_result_is_folded_to_its_first_lines() {
    let output = (1..=41)
        .map(|n| format!("line {n}"))
        .collect::<Vec<_>>()
        .join("\n");
    let shown = stored(result("bash", "exit 0 · 41 lines", &output, true));

    let folded = block(&shown, FoldState::Folded, &context(80));
    let open = block(&shown, FoldState::Open, &context(80));

    assert_eq!(
        drawn(&shown, FoldState::Folded, &context(80)),
        [
            "← bash: exit 0 · 41 lines",
            "  line 1",
            "  line 2",
            "  line 3",
            "  … 38 more lines"
        ]
    );
    assert_eq!(folded.folded, Some(38));
    assert_eq!((open.lines.len(), open.folded), (42, None));
    assert_eq!(
        drawn(&shown, FoldState::Folded, &context(40)),
        ["← bash: exit 0 · 41 lines"]
    );
}

#[test]
fn a_single_line_more_is_shown_instead_of_counted() {
    let shown = stored(result("bash", "exit 0 · 4 lines", "1\n2\n3\n4\n", true));

    assert_eq!(
        drawn(&shown, FoldState::Folded, &context(80)),
        ["← bash: exit 0 · 4 lines", "  1", "  2", "  3", "  4"]
    );
}

#[test]
fn a_status_is_in_the_title_of_a_folded_result_only() {
    let rows = |title: &str, output: &str, fold| {
        let shown = stored(result("bash", title, output, true));
        drawn(&shown, fold, &context(80))
    };

    for (title, output, shown) in [
        (
            "exit 0 · 1 line",
            "text\n[exit 0, 1.2 s]\n",
            "exit 0 · 1 line · 1.2 s",
        ),
        ("exit 0", "[exit 0, 1.2 s]\n", "exit 0 · 1.2 s"),
        (
            "process 1: ran, 2 lines",
            "text\n[process 1: ran, 2 lines]\n",
            "process 1: ran, 2 lines",
        ),
    ] {
        let folded = rows(title, output, FoldState::Folded);
        assert_eq!(folded[0], format!("← bash: {shown}"));
        assert!(!folded.iter().any(|row| row.contains('[')), "{folded:?}");
        let open = rows(title, output, FoldState::Open);
        assert!(open.iter().any(|row| row.contains('[')), "{open:?}");
    }
    for (title, output) in [("exit 10", "[exit 1, 1.2 s]"), ("1 line", "[package]")] {
        let folded = rows(title, output, FoldState::Folded);
        assert!(folded.iter().any(|row| row.contains('[')), "{folded:?}");
    }
}

#[test]
fn the_first_line_of_an_error_is_not_repeated() {
    let error = "`a.rs` does not hold `old_string`:\n   4  fn main()\n\n(edit 2 of 2)";
    let shown = stored(result(
        "file_edit",
        "`a.rs` does not hold `old_string`:",
        error,
        false,
    ));

    assert_eq!(
        drawn(&shown, FoldState::Folded, &context(80)),
        [
            "✗ file_edit: `a.rs` does not hold `old_string`:",
            "     4  fn main()",
            "  ",
            "  (edit 2 of 2)"
        ]
    );
}

#[test]
fn a_huge_message_costs_what_is_seen_of_it() {
    let shown = Shown::User {
        text: "x".repeat(5_000_000),
        sent: None,
        said: Said::Typed,
    };

    let folded = block(&shown, FoldState::Folded, &context(80));

    assert_eq!(folded.lines.len(), LONG + 1);
    assert_eq!(folded.lines[LONG].text(), "  … 5.0 MB more");
}

/// Blocks of Unicode whose signs common monospace fonts have.
const COMMON_BLOCKS: [std::ops::RangeInclusive<char>; 8] = [
    ' '..='~',
    '\u{a0}'..='\u{ff}',
    '\u{2010}'..='\u{2027}',
    '\u{2190}'..='\u{21ff}',
    '\u{2500}'..='\u{257f}',
    '\u{2580}'..='\u{25ff}',
    '\u{2600}'..='\u{26ff}',
    '\u{2701}'..='\u{27bf}',
];

#[test]
fn every_sign_is_in_a_block_that_common_monospace_fonts_have() {
    let signs = [
        Sign::User,
        Sign::Assistant,
        Sign::Thought,
        Sign::Call,
        Sign::Result,
        Sign::Failed,
        Sign::Warning,
        Sign::Mark,
        Sign::Rewound,
        Sign::Redone,
        Sign::Forked,
        Sign::Mail,
        Sign::Merged,
        Sign::Shell,
        Sign::More,
        Sign::Dot,
        Sign::To,
        Sign::Rule,
        Sign::Bullet,
        Sign::Quote,
        Sign::Done,
        Sign::Open,
        Sign::Column,
        Sign::Cross,
        Sign::Dash,
    ];
    for sign in signs {
        for character in sign.text(Symbols::Utf8).chars() {
            let is_common = COMMON_BLOCKS.iter().any(|block| block.contains(&character));
            assert!(is_common, "{sign:?}: {character}");
        }
        assert!(sign.text(Symbols::Ascii).is_ascii(), "{sign:?}");
    }
}
