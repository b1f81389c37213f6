//! Turns that ended early: interrupted, or refused by a provider.

use ikigai_core::data::{
    AssistantData, Category, Cause, ErrorData, Opaque, StoredThinking, Tagged, Via,
};
use ikigai_core::{AgentId, Block, Budget, Event, Message, Request, Role, RowRef, Target, project};
use ikigai_testkit::{TestLog, check_request, target};

fn model() -> Target {
    target("p", "m")
}

/// Returns the next request after checking it.
fn sent(log: &TestLog, agent: AgentId) -> Request {
    let request = log.request(agent, &model()).unwrap();
    assert_eq!(check_request(&request, &model()), Ok(()));
    request
}

fn said(role: Role, text: &str) -> Message {
    Message::text(role, text)
}

const NOTES: [(Cause, &str); 4] = [
    (Cause::User, "[The user interrupted this turn.]"),
    (
        Cause::Exit,
        "[The program was left before this turn was finished.]",
    ),
    (
        Cause::Crash,
        "[The program stopped unexpectedly before this turn was finished.]",
    ),
    (
        Cause::Kill,
        "[This agent was killed before this turn was finished.]",
    ),
];

/// Appends an interrupted turn with a finished call, a stopped one and partial text.
fn interrupted(log: &mut TestLog, cause: Cause) -> AgentId {
    let agent = log.root();
    log.append(agent, Event::user("go"));
    let done = log.append(agent, Event::tool_call(1, "c1", "ls", "{}"));
    let stopped = log.append(agent, Event::tool_call(1, "c2", "ls", "{}"));
    log.append(agent, Event::tool_result(done, "c1", "ls", "out", true));
    log.append(
        agent,
        Event::tool_result(stopped, "c2", "ls", "stopped", false),
    );
    log.append(agent, Event::assistant(2, "part of"));
    log.append(agent, Event::interrupted(cause));
    agent
}

/// N2a: user message, call/result pairs and partial text stay, followed by a note that says by
/// which cause.
#[test]
fn interrupted_turn_stays_in_context() {
    for (cause, note) in NOTES {
        let mut log = TestLog::default();
        let agent = interrupted(&mut log, cause);
        log.append(agent, Event::user("on"));

        let request = sent(&log, agent);

        let mut calls = Message::tool_call("c1", "ls", "{}");
        calls
            .blocks
            .extend(Message::tool_call("c2", "ls", "{}").blocks);
        let mut results = Message::tool_result("c1", "out", false);
        results
            .blocks
            .extend(Message::tool_result("c2", "stopped", true).blocks);
        assert_eq!(
            request.messages,
            [
                said(Role::User, "go"),
                calls,
                results,
                said(Role::Assistant, "part of"),
                said(Role::User, note),
                said(Role::User, "on"),
            ]
        );
    }

    // Nothing had come yet; twice in a row; without a cause; and with no turn before it at all.
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::interrupted(Cause::Kill));
    log.append(agent, Event::user("one"));
    log.append(agent, Event::interrupted(Cause::User));
    log.inject(agent, "interrupted", None, None, false);
    log.append(agent, Event::user("two"));
    let texts = ["one", NOTES[0].1, "[This turn was interrupted.]", "two"];
    assert_eq!(
        sent(&log, agent).messages,
        texts.map(|text| said(Role::User, text))
    );
}

/// N2b: the first request after an interrupt is the same live and after a restart.
#[test]
fn interrupted_turn_same_after_restart() {
    for (cause, _) in NOTES {
        let mut log = TestLog::default();
        let agent = interrupted(&mut log, cause);
        log.append(agent, Event::user("on"));
        let budget = Budget::new(u64::MAX, None);

        let live = log.live(agent);
        let request = project(&live.state, &live.view, &model(), &budget);

        assert_eq!(request, Ok(sent(&log, agent)));
    }
}

const LEFT_OUT: &str = "[This was left out because the provider refused it.]";

fn omit(rows: &[RowRef]) -> Event {
    let data = ErrorData {
        category: Some(Category::Omitted),
        status: Some(400),
        attempts: Some(1),
        omit: Some(rows.to_vec()),
    };
    let text = "refused".to_owned();
    Event::Error { text, data }
}

/// Appends an unfinished turn: user, signed text, two calls, their results, user.
fn refused(log: &mut TestLog) -> (AgentId, Vec<RowRef>) {
    let some = |text: &str| Some(text.to_owned());
    let opaque = Opaque {
        thinking: Some(vec![StoredThinking {
            text: some("hm"),
            provider: some("p"),
            model: some("m"),
            payload: some("sig"),
        }]),
        item: Some(Tagged {
            provider: some("p"),
            model: some("m"),
            payload: some("id"),
        }),
    };
    let data = AssistantData {
        response: Some(1),
        opaque: Some(opaque),
        ..AssistantData::default()
    };
    let text = "look".to_owned();
    let agent = log.root();
    let mut rows = vec![
        log.append(agent, Event::user("go")),
        log.append(agent, Event::Assistant { text, data }),
        log.append(agent, Event::tool_call(1, "c1", "ls", "{}")),
        log.append(agent, Event::tool_call(1, "c2", "ls", "{}")),
    ];
    for (call, id) in [(2, "c1"), (3, "c2")] {
        let result = Event::tool_result(rows[call], id, "ls", "out", true);
        rows.push(log.append(agent, result));
    }
    rows.push(log.append(agent, Event::user("on")));
    (agent, rows)
}

fn outline(request: &Request) -> Vec<String> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let words = blocks.map(|block| match block {
        Block::Text { text } => text.replace(LEFT_OUT, "-"),
        Block::Thinking { text, .. } => format!("({text})"),
        Block::ToolCall { id, .. } => id.clone(),
        Block::ToolResult { content, .. } => content.replace(LEFT_OUT, "-"),
        Block::Image(image) => image.hash.clone(),
    });
    words.collect()
}

/// Later projections leave out the rows that a provider refused, and as little as possible.
///
/// A block's payload goes before the block, and a call goes with its result.
#[test]
fn refused_items_are_left_out_and_the_request_stays_valid() {
    let whole = ["go", "(hm)", "look", "c1", "c2", "out", "out", "on"];
    let cases: [(&[usize], &[&str]); 8] = [
        (&[], &whole),
        (&[0], &["-", "(hm)", "look", "c1", "c2", "out", "out", "on"]),
        (&[1], &["go", "look", "c1", "c2", "out", "out", "on"]),
        (&[2], &["go", "(hm)", "look", "c2", "out", "on"]),
        (&[2, 3], &["go", "(hm)", "look", "on"]),
        (&[4], &["go", "(hm)", "look", "c1", "c2", "-", "out", "on"]),
        (&[6], &["go", "(hm)", "look", "c1", "c2", "out", "out", "-"]),
        (&[0, 1, 2, 3, 4, 5, 6], &["-", "look", "-"]),
    ];
    for (omitted, expected) in cases {
        let mut log = TestLog::default();
        let (agent, rows) = refused(&mut log);
        assert_eq!(outline(&sent(&log, agent)), whole);
        let named: Vec<_> = omitted.iter().map(|index| rows[*index]).collect();
        let nowhere = RowRef::new(log.ids.agent(), rows[0].seq);

        let refusal = log.append(agent, omit(&[named, vec![nowhere]].concat()));

        let request = sent(&log, agent);
        assert_eq!(outline(&request), expected);
        let hung = request.messages.iter().any(|it| !it.metadata.is_empty());
        assert_eq!(hung, !omitted.contains(&1));
        // The turn continues, equally live, after a restart and in a child.
        let live = log.live(agent);
        assert_eq!(live.view.is_busy(live.state.path()), Some(true));
        assert_eq!(live, log.replayed(agent));
        assert_eq!(live.view.conversation().len(), rows.len());
        let order = log.order("child");
        let child = log.fork(agent, order);
        assert_eq!(outline(&sent(&log, child)), expected);
        // The row is on the path like any other: going back before it takes it back.
        log.append(agent, Event::rewind(rows[6], refusal, Via::Rewind));
        assert_eq!(outline(&sent(&log, agent)), whole);
    }
}
