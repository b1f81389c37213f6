//! The window: summaries that replace a range, and turns left out for lack of space.

use ikigai_core::data::{SummaryData, Via};
use ikigai_core::project::estimate_tokens;
use ikigai_core::{
    AgentId, Block, Budget, CannotProject, Event, Message, Request, Role, RowRef, project,
};
use ikigai_store::Agent;
use ikigai_testkit::{TestLog, check_request, target};

/// Appends a turn of a question and its answer; returns its first and last row.
fn turn(log: &mut TestLog, agent: AgentId, number: u64) -> (RowRef, RowRef) {
    let first = log.append(agent, Event::user(format!("q{number}")));
    let answer = Event::assistant(number, format!("a{number}"));
    (first, log.append(agent, answer))
}

/// Returns the texts of the next request in order.
fn texts(log: &TestLog, agent: AgentId) -> Vec<String> {
    let request = log.assembled(agent, &target("p", "m"));
    texts_of(&request)
}

fn texts_of(request: &Request) -> Vec<String> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let words = blocks.map(|block| match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.clone(),
        Block::ToolCall { id, .. } => format!("call {id}"),
        Block::ToolResult { content, .. } => content.clone(),
        Block::Image(image) => image.hash.clone(),
    });
    words.collect()
}

/// A summary to write: its text, the first and the last turn of its range.
type Range = (Option<&'static str>, usize, usize);

fn undo(summary: RowRef) -> Event {
    let data = SummaryData {
        undo: Some(summary),
        ..SummaryData::default()
    };
    Event::Summary { text: None, data }
}

/// E2a: a summary's text replaces its range, and a cut leaves the range out.
///
/// No row is copied or removed.
#[test]
fn summary_stands_for_its_range() {
    let mut log = TestLog::default();
    let agent = log.root();
    let turns: Vec<_> = (1..=4)
        .map(|number| turn(&mut log, agent, number))
        .collect();
    let whole = ["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"];
    assert_eq!(texts(&log, agent), whole);
    let rows = log.rows(agent);

    // In the middle, at the beginning, overlapping and nested; with a text and without.
    let cases: [(&[Range], &[&str]); 7] = [
        (&[(Some("S"), 1, 2)], &["q1", "a1", "S", "q4", "a4"]),
        (&[(None, 1, 2)], &["q1", "a1", "q4", "a4"]),
        (
            &[(Some(" \n"), 0, 0)],
            &["q2", "a2", "q3", "a3", "q4", "a4"],
        ),
        (&[(None, 0, 2)], &["q4", "a4"]),
        (&[(Some("S"), 1, 1), (Some("T"), 0, 2)], &["T", "q4", "a4"]),
        (
            &[(Some("S"), 0, 1), (Some("T"), 1, 2)],
            &["S", "T", "q4", "a4"],
        ),
        (&[(Some("S"), 0, 1), (None, 1, 2)], &["S", "q4", "a4"]),
    ];
    for (summaries, expected) in cases {
        for (text, first, last) in summaries {
            let (from, to) = (turns[*first].0, turns[*last].1);
            log.append(agent, Event::summary(*text, from, to));
        }

        assert_eq!(texts(&log, agent), expected);
        let replayed = log.replayed(agent);
        assert_eq!(replayed, log.live(agent));
        assert_eq!(replayed.view.conversation().len(), whole.len());
        // Back to before the summaries for the next case.
        let head = RowRef::new(agent, replayed.state.head());
        log.append(agent, Event::rewind(turns[3].1, head, Via::Rewind));
        assert_eq!(texts(&log, agent), whole);
    }
    assert_eq!(log.rows(agent)[..rows.len()], rows);
}

/// E2a: the text is said by the user's role, and the request is one that can be sent.
#[test]
fn summary_text_is_a_message_of_the_user() {
    let mut log = TestLog::default();
    let agent = log.root();
    let (from, to) = turn(&mut log, agent, 1);
    log.append(agent, Event::summary(Some("S"), from, to));
    log.append(agent, Event::user("q2"));

    let request = log.request(agent, &target("p", "m")).unwrap();

    assert_eq!(check_request(&request, &target("p", "m")), Ok(()));
    let said = ["S", "q2"].map(|text| Message::text(Role::User, text));
    assert_eq!(request.messages, said);
}

/// E2a: a range that is not on the path covers nothing.
#[test]
fn summary_of_what_is_not_there_covers_nothing() {
    let mut log = TestLog::default();
    let agent = log.root();
    let (left_from, left_to) = turn(&mut log, agent, 9);
    log.append(agent, Event::Clear);
    let (from, to) = turn(&mut log, agent, 1);
    let (_, newest) = turn(&mut log, agent, 2);
    let later = RowRef::new(agent, ikigai_core::Seq(99));
    let elsewhere = RowRef::new(log.ids.agent(), from.seq);
    let cases = [
        (left_from, left_to),
        (left_from, to),
        (from, later),
        (elsewhere, to),
        (from, elsewhere),
        (newest, from),
    ];
    for (from, to) in cases {
        log.append(agent, Event::summary(Some("S"), from, to));

        assert_eq!(texts(&log, agent), ["q1", "a1", "q2", "a2"], "{from} {to}");
    }
}

/// E2b: a summary with `undo` takes back the one it names.
///
/// Both follow the path through rewinds and forks.
#[test]
fn summary_is_undone_and_follows_the_path() {
    let mut log = TestLog::default();
    let agent = log.root();
    let one = turn(&mut log, agent, 1);
    let two = turn(&mut log, agent, 2);
    let first = log.append(agent, Event::summary(Some("S"), one.0, one.1));
    let second = log.append(agent, Event::summary(Some("T"), one.0, two.1));
    let ranges = |log: &TestLog, agent| log.replayed(agent).state.summaries();
    assert_eq!(texts(&log, agent), ["T"]);

    let undone = log.append(agent, undo(second));

    assert_eq!(texts(&log, agent), ["S", "q2", "a2"]);
    assert_eq!(ranges(&log, agent), [(first, one.0, one.1)]);
    // Undoing an undone summary, another kind of row or an `undo` changes nothing.
    for nothing in [
        second,
        two.0,
        undone,
        RowRef::new(log.ids.agent(), first.seq),
    ] {
        log.append(agent, undo(nothing));
        assert_eq!(texts(&log, agent), ["S", "q2", "a2"]);
    }
    let data = SummaryData {
        from: Some(one.0),
        to: Some(two.1),
        undo: Some(two.0),
        ..SummaryData::default()
    };
    let text = Some("neither".to_owned());
    let both = log.append(agent, Event::Summary { text, data });
    assert_eq!(texts(&log, agent), ["S", "q2", "a2"]);
    assert_eq!(ranges(&log, agent), [(first, one.0, one.1)]);

    // Back to before the undo, before the second summary, and before both; then on again.
    let mut head = both;
    for (target, expected) in [
        (second, vec!["T"]),
        (first, vec!["S", "q2", "a2"]),
        (two.1, vec!["q1", "a1", "q2", "a2"]),
        (undone, vec!["S", "q2", "a2"]),
        (second, vec!["T"]),
    ] {
        head = log.append(agent, Event::rewind(target, head, Via::Rewind));
        assert_eq!(texts(&log, agent), expected);

        let order = log.order(&format!("child-{}", head.seq));
        let child = log.fork(agent, order);
        assert_eq!(texts(&log, child), expected);
        assert_eq!(ranges(&log, child), ranges(&log, agent));
        head = RowRef::new(agent, log.live(agent).state.head());
    }

    // A child can undo an inherited summary without an effect on its parent.
    let order = log.order("undoing");
    let child = log.fork(agent, order);
    log.append(child, undo(second));
    assert_eq!(texts(&log, child), ["S", "q2", "a2"]);
    assert_eq!(texts(&log, agent), ["T"]);
    log.append(agent, Event::Clear);
    assert_eq!(ranges(&log, agent), []);
}

/// E2d: cuts without text of an older store leave their range out as before.
///
/// There is no note, and no message is kept.
#[test]
fn cuts_of_older_stores_mean_what_they_meant() {
    let mut log = TestLog::default();
    let agent = log.root();
    let inject = |log: &mut TestLog, kind: &str, content: Option<&str>, data: &str| {
        let data = data.replace("AGENT", &agent.to_string());
        log.inject(agent, kind, content, Some(&data), kind == "summary");
    };
    let call = r#"{"tool_call_id":"c1","name":"bash","arguments":"{}","response":1}"#;
    let result = r#"{"tool_call_id":"c1","name":"bash","output":"3 files","success":true}"#;
    inject(&mut log, "user", Some("never touch prod.db"), "{}");
    inject(&mut log, "tool_call", None, call);
    inject(&mut log, "tool_result", None, result);
    inject(
        &mut log,
        "assistant",
        Some("there are 3"),
        r#"{"response":2}"#,
    );
    let first = log.live(agent).state.head().0 - 3;
    let cut = |from: u64, to: u64| {
        let row = |seq: u64| format!(r#"{{"agent":"AGENT","seq":{seq}}}"#);
        format!(r#"{{"from":{},"to":{}}}"#, row(from), row(to))
    };
    inject(&mut log, "user", Some("and now?"), "{}");
    inject(&mut log, "summary", None, &cut(first, first + 3));

    assert_eq!(texts(&log, agent), ["and now?"]);
    let request = log.request(agent, &target("p", "m")).unwrap();
    assert_eq!(check_request(&request, &target("p", "m")), Ok(()));
    assert_eq!(log.replayed(agent), log.live(agent));

    inject(&mut log, "assistant", Some("fine"), r#"{"response":3}"#);
    inject(&mut log, "user", Some("go on"), "{}");
    let to = first + 6;
    inject(&mut log, "summary", Some(""), &cut(first, to));
    assert_eq!(texts(&log, agent), ["go on"]);

    // A new summary covers old cuts, and the user's messages that they left out stay left out.
    inject(&mut log, "assistant", Some("done"), r#"{"response":4}"#);
    inject(&mut log, "summary", Some("S"), &cut(first, to + 3));
    inject(&mut log, "user", Some("thanks"), "{}");
    assert_eq!(texts(&log, agent), ["S", "thanks"]);
    assert_eq!(log.replayed(agent), log.live(agent));
}

/// Six turns of about a hundred tokens, the last with a tool call of a long output.
fn long_history(log: &mut TestLog, output: &str) -> AgentId {
    let agent = log.root();
    for number in 1..=5 {
        let words = format!("q{number} {}", "word ".repeat(60));
        log.append(agent, Event::user(words));
        let call = Event::tool_call(2 * number, "c", "ls", "{}");
        let call = log.append(agent, call);
        log.append(agent, Event::tool_result(call, "c", "ls", "short", true));
        log.append(
            agent,
            Event::assistant(2 * number + 1, format!("a{number}")),
        );
    }
    log.append(agent, Event::user("q6"));
    let call = log.append(agent, Event::tool_call(12, "c", "ls", "{}"));
    log.append(agent, Event::tool_result(call, "c", "ls", output, true));
    agent
}

fn sent(agent: &Agent, window: u64) -> Request {
    let target = target("p", "m");
    let budget = Budget::new(window, None);
    let request = project(&agent.state, &agent.view, &target, &budget).unwrap();
    assert_eq!(check_request(&request, &target), Ok(()));
    request
}

/// Returns the number of the first question that is sent.
fn first_question(request: &Request) -> u64 {
    let first = &texts_of(request)[0];
    first[1..2].parse().unwrap()
}

/// E2e: turns that do not fit are left out whole, oldest first.
///
/// The last turn is always sent, with its tool outputs cut if necessary.
#[test]
fn too_small_a_window_leaves_out_oldest_turns() {
    let mut log = TestLog::default();
    let output = "0123456789é\n".repeat(2000);
    let agent = long_history(&mut log, &output);
    let agent = log.replayed(agent);
    let whole = sent(&agent, u64::MAX);
    assert_eq!(first_question(&whole), 1);

    let mut previous = 1;
    for window in (0..12_000).rev().step_by(50) {
        let request = sent(&agent, window);

        // Always a tail of whole turns: the oldest go first, and none comes back.
        let first = first_question(&request);
        assert!((previous..=6).contains(&first), "{previous} {first}");
        previous = first;
        let skipped = whole.messages.len() - request.messages.len();
        let (last, others) = request.messages.split_last().unwrap();
        let same = &whole.messages[skipped..whole.messages.len() - 1];
        // Repeated ids are renamed based on the messages within the window.
        assert_eq!(others.len(), same.len());
        assert_eq!(others[0], same[0]);
        let Block::ToolResult { content, .. } = &last.blocks[0] else {
            panic!("the last message is the tool's");
        };
        if first < 6 {
            assert_eq!(content, &output);
        } else if content != &output {
            let (head, rest) = content.split_once("\n[").unwrap();
            let (note, tail) = rest.split_once("]\n").unwrap();
            assert!(output.starts_with(head) && output.ends_with(tail));
            let missing = output.len() - head.len() - tail.len();
            assert_eq!(
                note,
                format!("{missing} bytes are left out to fit the window")
            );
        }
        let needed: u64 = texts_of(&request)
            .iter()
            .map(|text| estimate_tokens(text))
            .sum();
        let shortest = 512 / 4 + 100;
        assert!(needed <= window.max(shortest), "{needed} of {window}");
    }
    assert_eq!(previous, 6);
}

/// E2e: the projection applies the window, not the budget's cap.
///
/// The engine applies the cap by a context row.
#[test]
fn cap_of_the_budget_leaves_out_nothing() {
    let mut log = TestLog::default();
    let agent = long_history(&mut log, "short");
    let agent = log.replayed(agent);
    let capped = Budget::new(1 << 20, Some(10));

    let request = project(&agent.state, &agent.view, &target("p", "m"), &capped).unwrap();

    assert_eq!(request, sent(&agent, u64::MAX));
}

/// E2e: the last turn is sent into any window that the fixed parts do not exceed.
#[test]
fn last_turn_is_sent_into_any_window() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("q1"));
    log.append(agent, Event::assistant(1, "a1"));
    log.append(agent, Event::user("long ".repeat(1000)));
    let request = sent(&log.replayed(agent), 0);
    assert_eq!(
        request.messages,
        [Message::text(Role::User, "long ".repeat(1000))]
    );

    let prompt = "be ".repeat(100);
    log.append(
        agent,
        Event::system(&prompt, ikigai_core::data::SystemOrigin::Typed),
    );
    let replayed = log.replayed(agent);
    let budget = Budget::new(10, None);
    let refused = project(&replayed.state, &replayed.view, &target("p", "m"), &budget);
    let needed = estimate_tokens(&prompt);
    let expected = CannotProject::NoRoom {
        needed,
        window: 10,
        largest: vec![("system prompt".to_owned(), needed)],
    };
    assert_eq!(refused, Err(expected));
}
