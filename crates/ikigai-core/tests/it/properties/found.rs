//! Small regression cases that property tests found, one test each.

use ikigai_core::data::{AssistantData, Cause, Shell, ToolCallData, UserData};
use ikigai_core::project::is_full;
use ikigai_core::{AgentId, Budget, Event, RowRef, Seq, View, project};
use ikigai_testkit::{TestLog, target};

use super::{references_of, rows_of};

/// Returns a view of the newest `count` rows of an agent.
fn tail(log: &TestLog, agent: AgentId, count: usize) -> View {
    let rows = rows_of(&log.replayed(agent).view);
    let mut view = View::default();
    view.prepend(rows.into_iter().rev().take(count).collect());
    view
}

/// D11e
#[test]
fn a_list_in_place_of_an_object_names_no_target() {
    for data in [
        "[{\"agent\":\"<own>\",\"seq\":1}]",
        "{\"target\":[\"<own>\",1]}",
    ] {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("one"));
        log.append(agent, Event::user("two"));
        let data = data.replace("<own>", &agent.to_string());

        let applied = log.inject(agent, "rewind", None, Some(&data), true);

        assert!(applied.warning.is_some());
        let all = [1, 2, 3].map(|seq| RowRef::new(agent, Seq(seq)));
        assert_eq!(references_of(&log.replayed(agent).view), all);
    }
}

/// E7b
#[test]
fn a_view_that_begins_inside_a_response_does_not_tell_whether_it_calls() {
    let mut log = TestLog::default();
    let agent = log.root();
    let call = Event::tool_call(1, "a", "read", "{}");
    let texts = [Event::assistant(1, "one"), Event::assistant(1, "two")];
    log.append_all(agent, [call].into_iter().chain(texts).collect());
    let state = log.replayed(agent).state;

    let told = [1, 2, 3].map(|count| tail(&log, agent, count).is_busy(state.path()));

    assert_eq!(told, [None, None, Some(true)]);
}

/// E7b N1c
#[test]
fn rows_without_a_number_belong_to_one_response_only_as_neighbours() {
    let shell = UserData {
        shell: Some(Shell::default()),
        ..UserData::default()
    };
    let line = Event::User {
        text: "ls".to_owned(),
        data: shell,
    };
    for between in [
        line,
        Event::assistant(1, "of another"),
        Event::interrupted(Cause::User),
    ] {
        let mut log = TestLog::default();
        let agent = log.root();
        let call = ToolCallData {
            tool_call_id: Some("a".to_owned()),
            name: Some("read".to_owned()),
            arguments: Some("{}".to_owned()),
            ..ToolCallData::default()
        };
        let call = Event::ToolCall {
            shown: None,
            data: call,
        };
        let text = Event::Assistant {
            text: "done".to_owned(),
            data: AssistantData::default(),
        };
        log.append_all(agent, vec![call, between, text]);

        let replayed = log.replayed(agent);

        assert_eq!(replayed.view.is_busy(replayed.state.path()), Some(false));
    }
}

/// E2e N1d
#[test]
fn a_turn_without_words_of_the_user_goes_with_the_one_before() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("read it"));
    log.append(agent, Event::assistant(1, "what?"));
    log.append(agent, Event::user(" "));
    let call = log.append(agent, Event::tool_call(2, "a", "read", "{}"));
    log.append(agent, Event::tool_result(call, "a", "read", "text", true));
    let replayed = log.replayed(agent);
    let target = target("demo", "one");
    let none = Budget::new(0, None);

    let request = project(&replayed.state, &replayed.view, &target, &none);

    assert_eq!(request, log.request(agent, &target));
    assert!(request.is_ok());
    let newest = tail(&log, agent, 3);
    assert!(!is_full(&replayed.state, &newest, &target, &none));
}

/// E2a
#[test]
fn a_view_that_begins_inside_a_summarised_range_yields_the_same_request() {
    let mut log = TestLog::default();
    let agent = log.root();
    let first = log.append(agent, Event::user("one"));
    log.append(agent, Event::assistant(1, "two"));
    let last = log.append(agent, Event::mark(None));
    log.append(agent, Event::user("three"));
    log.append(agent, Event::assistant(2, "four"));
    log.append(agent, Event::summary(Some("summed up"), first, last));
    log.append(agent, Event::user("five"));
    let state = log.replayed(agent).state;
    let target = target("demo", "one");
    let window = |window| Budget::new(window, None);
    let whole = |budget| project(&state, &tail(&log, agent, 7), &target, &budget);

    for room in [0, 12, 20, 30, 40, u64::MAX] {
        let begun = project(&state, &tail(&log, agent, 5), &target, &window(room));

        assert_eq!(begun, whole(window(room)), "with room for {room}");
    }
}
