//! Calls and results: every call that is sent has its one result, directly after it.

use ikigai_core::data::{ForkContext, Via};
use ikigai_core::fork::ForkOrder;
use ikigai_core::project::Request;
use ikigai_core::{AgentId, Block, Event, Message, Role, RowRef, Seq};
use ikigai_testkit::{TestLog, check_request, target};
use serde_json::json;

const OPEN: &str = "No outcome was recorded for this call.";
const PARENTS: &str = "This call belongs to your parent. Do not repeat it.";

fn call(response: u64, id: &str) -> Event {
    Event::tool_call(response, id, "ls", "{}")
}

fn result(call: RowRef, id: &str, output: &str) -> Event {
    Event::tool_result(call, id, "ls", output, true)
}

/// Returns the next request after checking it against the providers' rules.
fn sent(log: &TestLog, agent: AgentId) -> Request {
    let request = log.request(agent, &target("p", "m")).unwrap();
    assert_eq!(check_request(&request, &target("p", "m")), Ok(()));
    request
}

/// Returns the results of a request, in order: id, content, whether it is an error.
fn results(request: &Request) -> Vec<(&str, &str, bool)> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks
        .filter_map(|block| match block {
            Block::ToolResult {
                tool_call_id,
                content,
                is_error,
                ..
            } => Some((tool_call_id.as_str(), content.as_str(), *is_error)),
            _ => None,
        })
        .collect()
}

/// N1a S1-17: a call without a result is sent with a synthesised one.
///
/// No row is written for it.
#[test]
fn call_without_result_gets_synthesised_result() {
    // A crash: nothing follows the call. An interrupt: only the row about it does.
    for interrupted in [false, true] {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("go"));
        log.append(agent, call(1, "c1"));
        if interrupted {
            log.append(agent, Event::interrupted(ikigai_core::data::Cause::Crash));
        }
        log.append(agent, Event::user("on"));
        let rows = log.rows(agent);

        assert_eq!(results(&sent(&log, agent)), [("c1", OPEN, true)]);
        assert_eq!(log.rows(agent), rows);
    }

    // A rewind between the call and its result, and the result that comes late after all.
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("go"));
    let one = log.append(agent, call(1, "c1"));
    let done = log.append(agent, result(one, "c1", "out"));
    log.append(agent, Event::rewind(one, done, Via::Rewind));
    assert_eq!(results(&sent(&log, agent)), [("c1", OPEN, true)]);
    log.append(agent, result(one, "c1", "late"));
    assert_eq!(results(&sent(&log, agent)), [("c1", "late", false)]);
}

/// N1a S1-17: in a child's request, an ancestor's open call gets a separate result.
#[test]
fn open_calls_of_an_ancestor_are_explained_to_the_child() {
    let mut log = TestLog::default();
    let root = log.root();
    log.append(
        root,
        Event::set("name", json!({"name": "boss"}).as_object().unwrap().clone()),
    );
    log.append(root, Event::user("go"));
    let other = log.append(root, call(1, "c1"));
    let made_by = log.append(root, call(1, "c2"));
    let fork = |log: &mut TestLog, parent, name: &str, call| {
        let order = ForkOrder {
            call,
            prompt: Some("work".into()),
            ..log.order(name)
        };
        log.fork(parent, order)
    };

    let child = fork(&mut log, root, "child", Some(made_by));

    let child_says =
        format!("You are child ({child}), the child made by this call; your parent is boss.");
    let expected = [("c1", PARENTS, false), ("c2", child_says.as_str(), false)];
    assert_eq!(results(&sent(&log, child)), expected);
    // The child's results do not change the state of the parent's calls.
    assert_eq!(
        results(&log.assembled(root, &target("p", "m"))),
        [("c1", OPEN, true), ("c2", OPEN, true)]
    );
    log.append(root, result(other, "c1", "one"));
    assert_eq!(results(&sent(&log, child)), expected);

    // Later names, and leaving the row of the fork, change nothing.
    log.append(
        child,
        Event::set(
            "name",
            json!({"name": "elsewhere"}).as_object().unwrap().clone(),
        ),
    );
    log.append(
        root,
        Event::set(
            "name",
            json!({"name": "president"}).as_object().unwrap().clone(),
        ),
    );
    let head = RowRef::new(child, log.live(child).state.head());
    log.append(child, Event::rewind(made_by, head, Via::Rewind));
    assert_eq!(results(&sent(&log, child)), expected);

    // A grandchild sees the row of its parent's fork on its path, and its own.
    log.append(child, Event::user("split"));
    let again = log.append(child, call(1, "c3"));
    let grandchild = fork(&mut log, child, "grandchild", Some(again));
    let says = format!(
        "You are grandchild ({grandchild}), the child made by this call; your parent is elsewhere."
    );
    let told = results_of(&log, grandchild);
    assert_eq!(told.last().unwrap().1, says);
    assert_eq!(
        told[..2],
        [owned(("c1", PARENTS, false)), owned(("c2", PARENTS, false))]
    );
    // Its path left the row of the child's fork by the rewind above; one that did not has it.
    let head = RowRef::new(child, log.live(child).state.head());
    log.append(
        child,
        Event::rewind(RowRef::new(child, Seq(2)), head, Via::Rewind),
    );
    let nephew = fork(&mut log, child, "nephew", None);
    assert_eq!(
        results_of(&log, nephew),
        [owned(expected[0]), owned(expected[1])]
    );
}

fn owned(result: (&str, &str, bool)) -> (String, String, bool) {
    (result.0.to_owned(), result.1.to_owned(), result.2)
}

fn results_of(log: &TestLog, agent: AgentId) -> Vec<(String, String, bool)> {
    results(&sent(log, agent)).into_iter().map(owned).collect()
}

/// N1a: a fresh child has no open call to explain, and a fork by a person names none.
#[test]
fn fresh_children_have_no_calls_of_their_parent() {
    let mut log = TestLog::default();
    let root = log.root();
    log.append(root, Event::user("go"));
    let made_by = log.append(root, call(1, "c1"));
    let order = ForkOrder {
        context: ForkContext::Fresh,
        call: Some(made_by),
        prompt: Some("work".into()),
        ..log.order("fresh")
    };

    let fresh = log.fork(root, order);

    assert_eq!(
        sent(&log, fresh).messages,
        [Message::text(Role::User, "work")]
    );
}

/// N1b S1-16: a result answers the call that it names.
///
/// A result of no call in the window, or of an answered one, is left out of the request and stays
/// in the scrollback.
#[test]
fn result_answers_its_call_or_is_left_out() {
    let mut log = TestLog::default();
    let agent = log.root();
    let nowhere = RowRef::new(agent, Seq(99));
    log.append(agent, Event::user("go"));
    log.append(agent, result(nowhere, "c1", "before any call"));
    let one = log.append(agent, call(1, "c1"));
    let two = log.append(agent, call(1, "c1"));
    log.append(agent, result(nowhere, "c1", "names no row"));
    log.append(
        agent,
        result(RowRef::new(agent, Seq(1)), "c1", "names no call"),
    );
    log.append(agent, result(one, "other id", "first"));
    log.append(agent, result(one, "c1", "again"));
    log.append(agent, result(two, "c1", "second"));

    let request = sent(&log, agent);

    let answers: Vec<_> = results(&request)
        .into_iter()
        .map(|(_, output, _)| output)
        .collect();
    assert_eq!(answers, ["first", "second"]);
    let shown = log.replayed(agent).view.scrollback().count();
    assert_eq!(shown, log.rows(agent).len());
}

/// A result as older programs wrote it, without the row of its call.
fn older_result(log: &mut TestLog, agent: AgentId, id: &str, output: &str) {
    let data = json!({"tool_call_id": id, "output": output, "success": true}).to_string();
    log.inject(agent, "tool", None, Some(&data), false);
}

/// N1b S1-16: an older result answers the newest earlier call of its id that has none yet.
#[test]
fn older_result_answers_the_newest_open_call_of_its_id() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("go"));
    older_result(&mut log, agent, "c1", "too early");
    for response in [1, 2, 3] {
        log.append(agent, call(response, "c1"));
    }
    log.append(agent, call(4, "c2"));
    older_result(&mut log, agent, "c1", "third");
    older_result(&mut log, agent, "c1", "second");
    older_result(&mut log, agent, "none", "of another");
    older_result(&mut log, agent, "c2", "of c2");
    older_result(&mut log, agent, "c1", "first");
    older_result(&mut log, agent, "c1", "one too many");

    let request = sent(&log, agent);

    let answers: Vec<_> = results(&request)
        .into_iter()
        .map(|(_, output, _)| output)
        .collect();
    assert_eq!(answers, ["first", "second", "third", "of c2"]);
}

/// N1b S1-16: calls and results are paired on the path, also where a summary replaces one.
///
/// A result of a summarised call answers no older call of the same id, and a call stays answered
/// by a summarised result.
#[test]
fn summarised_halves_are_not_paired_anew() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("one"));
    log.append(agent, call(1, "c1"));
    log.append(agent, Event::interrupted(ikigai_core::data::Cause::User));
    let from = log.append(agent, Event::user("two"));
    log.append(agent, call(2, "c1"));
    let to = log.append(agent, Event::interrupted(ikigai_core::data::Cause::User));
    log.append(agent, Event::user("three"));
    older_result(&mut log, agent, "c1", "of the second");
    log.append(agent, Event::summary(Some("short"), from, to));

    assert_eq!(results(&sent(&log, agent)), [("c1", OPEN, true)]);

    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("one"));
    let one = log.append(agent, call(1, "c1"));
    let from = log.append(agent, Event::user("two"));
    let to = log.append(agent, result(one, "c1", "in the range"));
    log.append(agent, Event::user("three"));
    log.append(agent, result(one, "c1", "again"));
    log.append(agent, Event::summary(Some("short"), from, to));

    assert_eq!(results(&sent(&log, agent)), [("c1", OPEN, true)]);
}

/// N1c: neighbouring rows of one response are one assistant turn.
///
/// Its results follow directly in the order of the calls, for any order of the rows.
#[test]
fn parallel_results_reordered_to_call_order() {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("go"));
        log.append(agent, Event::assistant(1, "look"));
        let calls: Vec<_> = ["c0", "c1", "c2"]
            .into_iter()
            .map(|id| log.append(agent, call(1, id)))
            .collect();
        for index in order {
            let (id, output) = (format!("c{index}"), format!("out {index}"));
            log.append(agent, result(calls[index], &id, &output));
            log.append(agent, Event::mark(None));
        }
        log.append(agent, call(2, "c3"));

        let request = sent(&log, agent);

        let of = |role, blocks| Message {
            role,
            blocks,
            metadata: Vec::new(),
        };
        let call_block = |id: &str| Message::tool_call(id, "ls", "{}").blocks.remove(0);
        let answer = |id: &str, output: &str, is_error| {
            let mut message = Message::tool_result(id, output, is_error);
            message.blocks.remove(0)
        };
        let text = "look".to_owned();
        let expected = [
            Message::text(Role::User, "go"),
            of(
                Role::Assistant,
                vec![
                    Block::Text { text },
                    call_block("c0"),
                    call_block("c1"),
                    call_block("c2"),
                ],
            ),
            of(
                Role::Tool,
                vec![
                    answer("c0", "out 0", false),
                    answer("c1", "out 1", false),
                    answer("c2", "out 2", false),
                ],
            ),
            of(Role::Assistant, vec![call_block("c3")]),
            of(Role::Tool, vec![answer("c3", OPEN, true)]),
        ];
        assert_eq!(request.messages, expected);
    }
}

/// Returns the shape of a request: each message by its role and how many blocks it has.
fn outline(request: &Request) -> String {
    let messages = request.messages.iter().map(|message| {
        let role = match message.role {
            Role::User => 'u',
            Role::Assistant => 'a',
            Role::Tool => 't',
        };
        format!("{role}{}", message.blocks.len())
    });
    messages.collect::<Vec<_>>().join(" ")
}

/// N1c: rows with equal agent and response number form one response.
///
/// Older rows without a number form one response with their neighbours.
#[test]
fn responses_are_told_apart_by_agent_and_number() {
    let add_older = |log: &mut TestLog, agent, id: &str| {
        let data = json!({"tool_call_id": id, "name": "ls", "arguments": "{}"}).to_string();
        log.inject(agent, "tool_call", None, Some(&data), false);
    };
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("go"));
    log.append(agent, call(1, "a"));
    log.append(agent, call(1, "b"));
    log.append(agent, call(2, "c"));
    add_older(&mut log, agent, "d");
    add_older(&mut log, agent, "e");
    older_result(&mut log, agent, "d", "out");
    add_older(&mut log, agent, "f");
    assert_eq!(outline(&sent(&log, agent)), "u1 a2 t2 a1 t1 a2 t2 a1 t1");

    // A child's first response has the number of its parent's, and is another.
    let order = log.order("child");
    let child = log.fork(agent, order);
    log.append(child, call(1, "g"));
    log.append(child, call(1, "h"));
    assert_eq!(
        outline(&sent(&log, child)),
        "u1 a2 t2 a1 t1 a2 t2 a1 t1 a2 t2"
    );
}

/// N1e: ids are stored as received; repeated and illegal ids are renamed when sent.
///
/// The new name depends only on the row of the call. An id is illegal if a provider refuses it.
#[test]
fn call_ids_stored_as_they_came_renamed_when_sent() {
    let longest = "x".repeat(64);
    let too_long = "x".repeat(65);
    let kept = ["c1", "A-z_09", "-", longest.as_str()];
    let renamed = [
        "c1",
        "",
        " ",
        "a b",
        "a.b",
        "call:1",
        "é",
        "c1\n",
        "\0",
        too_long.as_str(),
        "-",
    ];
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("go"));
    let mut expected = Vec::new();
    for id in kept {
        log.append(agent, call(1, id));
        expected.push(id.to_owned());
    }
    for id in renamed {
        let at = log.append(agent, call(1, id));
        expected.push(format!("{agent}_{}", at.seq));
    }
    // An id that is what another would be renamed to.
    let forged = format!("{agent}_{}", log.live(agent).state.head().0 + 2);
    log.append(agent, call(1, &forged));
    expected.push(forged.clone());
    let at = log.append(agent, call(1, "c1"));
    expected.push(format!("{agent}_{}_1", at.seq));
    let stored = log.rows(agent);

    let request = sent(&log, agent);

    let ids: Vec<_> = results(&request)
        .into_iter()
        .map(|(id, ..)| id.to_owned())
        .collect();
    assert_eq!(ids, expected);
    let calls = request.messages[1].blocks.iter().map(|block| match block {
        Block::ToolCall { id, .. } => id.clone(),
        other => panic!("{other:?}"),
    });
    assert_eq!(calls.collect::<Vec<_>>(), expected);
    let as_they_came: Vec<_> = kept.into_iter().chain(renamed).collect();
    for (row, id) in stored[1..].iter().zip(as_they_came) {
        let data: serde_json::Value = row.data.as_ref().unwrap().parse().unwrap();
        assert_eq!(data["tool_call_id"], id);
    }

    // More rows, a restart and another agent that inherits them change no name.
    log.append(agent, Event::user("on"));
    let order = log.order("child");
    let child = log.fork(agent, order);
    assert_eq!(sent(&log, agent).messages[..3], request.messages);
    assert_eq!(sent(&log, child).messages[1], request.messages[1]);
}

/// N1e: tool names are sent in a form that every provider accepts, for any called name.
#[test]
fn tool_names_are_legal_when_sent() {
    let cases = [
        ("ls", "ls"),
        ("", "unknown"),
        ("a.b c", "a_b_c"),
        ("né", "n_"),
    ];
    for (stored, expected) in cases {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("go"));
        log.append(agent, Event::tool_call(1, "c1", stored, "{}"));

        let request = sent(&log, agent);

        assert_eq!(
            request.messages[1],
            Message::tool_call("c1", expected, "{}")
        );
    }
}
