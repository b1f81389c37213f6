//! Agents attached to a screen: they answer, repeat questions after a restart, and detach.

use std::sync::Arc;
use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_core::data::AnsweredBy;
use ikigai_engine::{Answer, Listing, ListingView, Outcome, UiEvent, UserInput, UserRequest};
use ikigai_store::ReadLog as _;
use ikigai_testkit::Step;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::fakes::{FakeCall, calling};
use crate::support::{TestJob, World, dies_after};

/// Returns all events that a screen gets.
fn screen(world: &World) -> UnboundedReceiver<(AgentId, UiEvent)> {
    let (sender, told) = unbounded_channel();
    let observer = move |agent, _: &str, update: &UiEvent| {
        let _ = sender.send((agent, update.clone()));
    };
    world.engine.observe(Arc::new(observer), true);
    told
}

/// Reads events until a turn ends; returns its outcome and the events before.
async fn until_ended(told: &mut UnboundedReceiver<(AgentId, UiEvent)>) -> (Outcome, Vec<UiEvent>) {
    let mut before = Vec::new();
    loop {
        match told.recv().await.unwrap().1 {
            UiEvent::Ended(outcome) => return (outcome, before),
            update => before.push(update),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attended_agent_answers_what_is_typed_and_is_left() {
    let world = World::new();
    let mut told = screen(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    world.provider.will_say("hello yourself");

    let typed = UserRequest::parse("hello");
    world.engine.say(agent, typed).await.unwrap();
    let (outcome, before) = until_ended(&mut told).await;
    world.engine.leave().await;

    assert_eq!(outcome, Outcome::Completed);
    assert!(before.contains(&UiEvent::Text("hello yourself".to_owned())));
    let record = world.engine.find("src").await.unwrap();
    assert!(record.owner.is_none(), "the lease is given back");
}

#[tokio::test(start_paused = true)]
async fn a_question_is_asked_again_after_a_restart_and_its_answer_resumes() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let agent = worker.agent().state.agent();
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked")]));
    dies_after(100, &mut worker, TestJob::Say("go")).await;
    let world = world.restarted();
    let mut told = screen(&world);

    let record = world.engine.agents().await.unwrap().remove(0);
    world.engine.activate(&record).await.unwrap();
    let call = loop {
        if let UiEvent::Question(question) = told.recv().await.unwrap().1 {
            break question.call;
        }
    };
    let asked_only = world.provider.requests().len();
    world.provider.will_say("done");
    let answer = UserRequest::Answer {
        call,
        answer: Answer::Once,
        by: AnsweredBy::User,
    };
    world.engine.say(agent, answer).await.unwrap();
    let (outcome, before) = until_ended(&mut told).await;

    let is_question = |update: &UiEvent| matches!(update, UiEvent::Question(_));
    assert!(!before.iter().any(is_question), "it is answered already");
    assert_eq!(asked_only, 1, "nothing is sent by itself");
    assert_eq!(outcome, Outcome::Completed);
    assert_eq!(call_log.began(), ["asked"]);
}

/// E18: the output of a listing comes first, then its row.
#[tokio::test(start_paused = true)]
async fn a_listing_is_shown_and_then_stored() {
    let world = World::new();
    let mut told = screen(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();

    let request = listing("/help", ListingView::Overlay);
    world.engine.say(agent, request).await.unwrap();
    let update = told.recv().await.unwrap().1;

    assert!(
        matches!(&update, UiEvent::Preview { line, output, .. } if line == "/help" && output.contains("/rewind"))
    );
    let update = told.recv().await.unwrap().1;
    assert!(matches!(&update, UiEvent::Stored(row) if row.kind.name() == "command"));
}

/// E18: the row of a listing has at most 32 KB, whole lines and a note.
#[tokio::test(start_paused = true)]
async fn a_long_listing_is_stored_in_part() {
    let world = World::new();
    let mut told = screen(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    let lines: Vec<_> = (0..5000).map(|line| format!("line {line} ä\n")).collect();
    let long = lines.concat();

    let request = listing("/keys", ListingView::Text(long.clone()));
    world.engine.say(agent, request).await.unwrap();
    let UiEvent::Stored(row) = told.recv().await.unwrap().1 else {
        panic!("no row")
    };

    let stored = row.content.clone().unwrap();
    let (listed, note) = stored.rsplit_once('\n').unwrap();
    assert!((31 * 1024..=32 * 1024).contains(&stored.len()));
    assert!(long.starts_with(&format!("{listed}\n")), "whole lines");
    assert_eq!(note, "… 31 KB more, not stored");
}

fn listing(line: &str, view: ListingView) -> UserRequest {
    let UserInput::Command(command) = UserInput::parse(line) else {
        panic!("{line} is no command");
    };
    UserRequest::List(Listing { command, view })
}

/// Leaving stops a turn that has only just begun, instead of waiting for it.
#[tokio::test(start_paused = true)]
async fn what_was_just_said_does_not_keep_anybody_from_leaving() {
    let world = World::new();
    let _told = screen(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    world.provider.will([Step::Hang]);
    let typed = UserRequest::parse("hello");
    world.engine.say(agent, typed).await.unwrap();

    let left = timeout(Duration::from_mins(1), world.engine.leave()).await;

    assert!(left.is_ok());
    let record = world.engine.find("src").await.unwrap();
    assert!(record.owner.is_none(), "the lease is given back");
    assert_eq!(world.kinds(agent).await.last().unwrap(), "interrupted");
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_is_told_counts_as_work_until_it_has_seen_to_it() {
    let world = World::new();
    let _told = screen(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    let mut activity = world.engine.subscribe();
    let is_idle = || world.engine.is_idle() && world.engine.is_caught_up(agent);
    activity.wait_for(|_| is_idle()).await.unwrap();

    for request in [
        UserRequest::parse("/mark"),
        listing("/help", ListingView::Overlay),
    ] {
        world.engine.say(agent, request).await.unwrap();
        assert!(!is_idle());
        activity.wait_for(|_| is_idle()).await.unwrap();
    }

    assert_eq!(world.kinds(agent).await.last().unwrap(), "command");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_let_go_of_is_stopped_and_can_be_taken_over() {
    let world = World::new();
    let mut told = screen(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    world.provider.will([Step::Hang]);
    let typed = UserRequest::parse("hello");
    world.engine.say(agent, typed).await.unwrap();
    while told.recv().await.unwrap().1 != UiEvent::Began {}

    let worked = world.engine.release(agent).await;
    let released = world.engine.find("src").await.unwrap();
    world.provider.will_say("I go on");
    world.engine.take_over(&[agent]).await.unwrap();
    let mut outcome = until_ended(&mut told).await.0;
    if outcome != Outcome::Completed {
        outcome = until_ended(&mut told).await.0;
    }

    assert_eq!(worked, Some(true));
    assert!(released.owner.is_none(), "the lease is given back");
    assert_eq!(outcome, Outcome::Completed);
}

/// A stop that arrives during a command has nothing to stop; the agent still ends.
#[tokio::test(start_paused = true)]
async fn a_command_and_leaving_in_one_burst_store_the_command_and_end() {
    for lines in [
        vec!["/mark x"],
        vec!["/mark x", "/mark y"],
        vec!["/mark x", "!true"],
    ] {
        let world = World::new();
        let _told = screen(&world);
        let agent = world.engine.activate_new("/src", "/src").await.unwrap();
        for line in &lines {
            let typed = UserRequest::parse(*line);
            world.engine.say(agent, typed).await.unwrap();
        }

        world.engine.leave().await;

        assert!(world.engine.active_agents().is_empty(), "{lines:?}");
        let record = world.engine.find("src").await.unwrap();
        assert!(record.owner.is_none(), "the lease is given back: {lines:?}");
        let kinds = world.kinds(agent).await;
        let marks = lines.iter().filter(|line| line.starts_with("/mark"));
        let stored = kinds.iter().filter(|kind| *kind == "mark");
        assert_eq!(stored.count(), marks.count(), "{lines:?}: {kinds:?}");
    }
}

/// A message after a command is stored as mail; leaving begins no turn.
#[tokio::test(start_paused = true)]
async fn a_message_after_a_command_waits_as_mail_when_the_program_leaves() {
    let world = World::new();
    let _told = screen(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    for line in ["/mark x", "hello"] {
        let typed = UserRequest::parse(line);
        world.engine.say(agent, typed).await.unwrap();
    }

    world.engine.leave().await;

    let waiting = world.log().queued_mail(agent).await.unwrap();
    let texts: Vec<_> = waiting.iter().map(|mail| &*mail.text).collect();
    assert_eq!(texts, ["hello"]);
    assert!(world.provider.requests().is_empty());
}

/// A screen gets settlement rows once, whether it opens the agent before or after supervision.
#[tokio::test(start_paused = true)]
async fn a_screen_gets_the_rows_of_a_settlement_once_in_either_order() {
    for supervises_first in [true, false] {
        let world = World::new();
        let mut worker = world.root().await;
        let agent = worker.agent().state.agent();
        let partial = Step::Say("so far".to_owned());
        world.provider.will([partial, Step::Hang]);
        dies_after(100, &mut worker, TestJob::Say("go")).await;
        let world = world.restarted();
        let mut told = screen(&world);
        let record = world.engine.agents().await.unwrap().remove(0);

        if supervises_first {
            world.engine.supervise().await.unwrap();
            world.engine.activate(&record).await.unwrap();
        } else {
            world.engine.activate(&record).await.unwrap();
            world.engine.supervise().await.unwrap();
        }
        world.engine.leave().await;

        let mut settled = Vec::new();
        while let Ok((of, update)) = told.try_recv() {
            if let UiEvent::Settled(row) = update {
                assert_eq!(of, agent);
                settled.push(row);
            }
        }
        let rows = world.rows(agent).await;
        let kinds = world.kinds(agent).await;
        assert_eq!(kinds.last().unwrap(), "interrupted");
        assert_eq!(settled.len(), 2, "{supervises_first}: {settled:?}");
        assert_eq!(settled, rows[rows.len() - 2..], "{supervises_first}");
    }
}
