//! Limits of a turn. A turn that exceeds one ends with a row that names it.

use std::time::Duration;

use ikigai_core::data::{self, Category, ErrorData, Verdict};
use ikigai_core::settings::Approve;
use ikigai_engine::{Answer, Limits, Outcome, UiEvent, UserInput, UserRequest};

use crate::fakes::{FakeCall, calling};
use crate::support::{TestJob, World, active_agents, say};

fn limited(limits: Limits) -> (World, crate::fakes::CallLog) {
    let (world, call_log) = World::with_fakes();
    let world = world.equipped(move |engine| engine.with_limits(limits));
    (world, call_log)
}

/// Returns the reason in the last row for the end of the turn.
async fn limit_row(world: &World, id: ikigai_core::AgentId) -> String {
    let last = world.rows(id).await.pop().unwrap();
    assert_eq!(last.kind.name(), "error");
    let data: ErrorData = data::read(last.data.as_deref());
    assert_eq!(data.category, Some(Category::Limit));
    last.content.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_stops_asking_is_stopped() {
    let (world, call_log) = limited(Limits {
        requests: 3,
        ..Limits::default()
    });
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    for label in ["a", "b", "c", "d"] {
        world
            .provider
            .will(calling(&[FakeCall::new("look", label)]));
    }

    let outcome = say(&mut worker, "go").await.unwrap();

    let reason = "limit reached: 3 requests in one turn";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    assert_eq!(limit_row(&world, id).await, reason);
    assert_eq!(world.provider.requests().len(), 3);
    assert_eq!(call_log.began(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_request_of_a_turn_offers_no_tools_so_that_it_ends_with_an_answer() {
    let (world, call_log) = limited(Limits {
        requests: 2,
        ..Limits::default()
    });
    let mut worker = world.root().await;
    world.provider.will(calling(&[FakeCall::new("look", "a")]));
    world.provider.will_say("what I know by now");

    let outcome = say(&mut worker, "go").await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    assert_eq!(call_log.began(), ["a"]);
    let requests = world.provider.requests();
    let offered: Vec<_> = requests
        .iter()
        .map(|request| request.tools.is_empty())
        .collect();
    assert_eq!(offered, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_calls_too_often_is_stopped_and_its_calls_are_closed() {
    let (world, call_log) = limited(Limits {
        calls: 3,
        ..Limits::default()
    });
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let look = |label| FakeCall::new("look", label);
    world.provider.will(calling(&[look("a"), look("b")]));
    world.provider.will(calling(&[look("c"), look("d")]));

    let outcome = say(&mut worker, "go").await.unwrap();

    let reason = "limit reached: 3 tool calls in one turn";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    assert_eq!(limit_row(&world, id).await, reason);
    assert_eq!(call_log.began(), ["a", "b"]);
    let closed = &world.results(id).await[2..];
    assert_eq!(closed.len(), 2);
    for result in closed {
        assert_eq!(result.verdict, Verdict::Interrupted);
        assert_eq!(result.output, format!("not run: {reason}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_takes_too_long_is_stopped() {
    let (world, call_log) = limited(Limits {
        time: Duration::from_mins(10),
        ..Limits::default()
    });
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let long = FakeCall::new("look", "long")
        .writing(&["a"])
        .taking(Duration::from_hours(1));
    let next = FakeCall::new("look", "next").reading(&["a"]);
    world.provider.will(calling(&[long, next]));

    let outcome = say(&mut worker, "go").await.unwrap();

    let reason = "the turn did not finish within 600 s";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    assert_eq!(limit_row(&world, id).await, reason);
    assert_eq!(call_log.began(), ["long"]);
    let came: Vec<_> = world
        .results(id)
        .await
        .into_iter()
        .map(|came| came.output)
        .collect();
    assert_eq!(came, ["long so far", "not run: the turn took too long"]);
}

/// A question waits without limit: time spent waiting only for the user does not count.
#[tokio::test(start_paused = true)]
async fn a_question_may_wait_longer_than_a_turn() {
    let (world, call_log) = limited(Limits {
        time: Duration::from_mins(10),
        ..Limits::default()
    });
    let mut worker = world.root().await;
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked")]));
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked again")]));
    world.provider.will_say("done");

    // A user who answers once a day.
    let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    let person = async {
        while let Some(call) = questions.recv().await {
            tokio::time::sleep(Duration::from_hours(24)).await;
            let by = ikigai_core::data::AnsweredBy::User;
            let answer = Answer::Once;
            sender
                .send(UserRequest::Answer { call, answer, by })
                .await
                .unwrap();
        }
    };
    let mut tell = |update| {
        if let UiEvent::Question(question) = update {
            asked.send(question.call).unwrap();
        }
    };
    let mut desk = ikigai_engine::FrontEnd::new(&mut receiver, &mut tell);
    let outcome = tokio::select! {
        outcome = worker.turn("go", &mut desk) => outcome.unwrap(),
        () = person => unreachable!("the turn ends first"),
    };

    assert_eq!(outcome, Outcome::Completed);
    assert_eq!(call_log.began(), ["asked", "asked again"]);
}

/// A queued message begins a new turn with full limits.
#[tokio::test(start_paused = true)]
async fn a_queued_message_begins_a_turn_with_limits_of_its_own() {
    let (world, _) = limited(Limits {
        requests: 2,
        ..Limits::default()
    });
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    world.provider.will(calling(&[FakeCall::new("look", "a")]));
    world.provider.will_say("done");
    world.provider.will(calling(&[FakeCall::new("look", "b")]));
    world.provider.will_say("done again");
    let mut said = false;

    let (outcome, _) = active_agents(&mut worker, TestJob::Say("go"), |update| match update {
        UiEvent::Text(_) if !std::mem::replace(&mut said, true) => {
            vec![UserRequest::Line(UserInput::Message(
                "once more".to_owned(),
            ))]
        }
        _ => Vec::new(),
    })
    .await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert_eq!(world.provider.requests().len(), 4);
}
