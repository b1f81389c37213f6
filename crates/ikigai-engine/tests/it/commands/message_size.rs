//! Messages over half of the budget: refused before anything is stored.

use std::fs;
use std::sync::Arc;

use ikigai_core::AgentId;
use ikigai_engine::{EngineError, UiEvent, UserInput, UserRequest, Worker};
use ikigai_store::ReadLog as _;
use tokio::sync::mpsc::unbounded_channel;

use super::support::agent_in_a_directory;
use crate::fakes::{FakeCall, calling};
use crate::support::{World, attended_line, say};

/// Window in tokens; messages may use half of it.
const WINDOW: u64 = 10_000;

/// Returns a text of about this many tokens.
fn text_of(tokens: usize) -> String {
    "abc ".repeat(tokens)
}

async fn refused_line(worker: &mut Worker, line: &str) -> EngineError {
    let (mut requests, mut tell) = (tokio::sync::mpsc::channel(1).1, |_| {});
    let mut desk = ikigai_engine::FrontEnd::new(&mut requests, &mut tell);
    worker
        .line(UserInput::parse(line), &mut desk)
        .await
        .unwrap_err()
}

fn is_long(error: &EngineError) -> bool {
    matches!(error, EngineError::LongMessage { most: 5_000, .. })
}

#[tokio::test]
async fn a_message_over_half_of_the_budget_is_refused_and_nothing_is_stored() {
    let world = World::with_window(WINDOW);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let before = world.kinds(id).await;

    let error = say(&mut worker, &text_of(5_100)).await.unwrap_err();

    assert!(is_long(&error), "{error:?}");
    let text = error.to_string();
    assert!(
        text.starts_with("the message has about 5.1k tokens; at most 5.0k, half of the budget"),
        "{text}"
    );
    assert_eq!(world.kinds(id).await, before);
    assert_eq!(world.provider.requests().len(), 0);
    world.provider.will_say("fine");
    say(&mut worker, &text_of(4_900)).await.unwrap();
}

#[tokio::test]
async fn the_configured_budget_counts_and_not_the_window() {
    let world =
        World::with_window(100 * WINDOW).equipped(|engine| engine.with_window_tokens(Some(WINDOW)));
    let mut worker = world.root().await;

    let error = say(&mut worker, &text_of(5_100)).await.unwrap_err();

    assert!(is_long(&error), "{error:?}");
}

#[tokio::test]
async fn mentioned_files_count() {
    let world = World::with_window(WINDOW);
    let (place, mut worker) = agent_in_a_directory(&world).await;
    fs::write(place.path().join("a.md"), text_of(3_000)).unwrap();
    fs::write(place.path().join("b.md"), text_of(3_000)).unwrap();
    let id = worker.agent().state.agent();
    let before = world.kinds(id).await;

    let error = say(&mut worker, "compare @a.md @b.md").await.unwrap_err();

    assert!(is_long(&error), "{error:?}");
    assert_eq!(world.kinds(id).await, before);
    world.provider.will_say("fine");
    say(&mut worker, "read @a.md").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_long_message_during_a_turn_is_handed_back() {
    let (world, _) = World::with_fakes();
    let world = world.equipped(|engine| engine.with_window_tokens(Some(WINDOW)));
    let (_place, mut worker) = agent_in_a_directory(&world).await;
    let long = text_of(5_100);
    world
        .provider
        .will(calling(&[FakeCall::new("change", "slow")]));
    world.provider.will_say("done");

    let (_, told) = attended_line(&mut worker, "work", |update| match update {
        UiEvent::Running(_) => vec![UserRequest::Line(UserInput::Message(long.clone()))],
        _ => Vec::new(),
    })
    .await;

    let is_back = |update: &UiEvent| {
        matches!(update, UiEvent::NotStored { input, reason, .. }
            if input.line() == long && reason.contains("half of the budget"))
    };
    assert!(told.iter().any(is_back), "{told:#?}");
    let agent = worker.agent().state.agent();
    assert!(world.log().mail(agent).await.unwrap().is_empty());
}

#[tokio::test]
async fn long_mail_and_fork_prompts_are_refused_and_leave_no_row() {
    let world = World::with_window(WINDOW);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let name = world.latest().await.name;
    let before = world.kinds(id).await;
    let long = text_of(5_100);

    for line in [
        format!("/send {name} {long}"),
        format!("/fork {long}"),
        format!("/fork \"short\" \"{long}\""),
    ] {
        let error = refused_line(&mut worker, &line).await;
        assert!(is_long(&error), "{error:?}");
    }

    assert_eq!(world.kinds(id).await, before);
    assert_eq!(world.engine.agents().await.unwrap().len(), 1);
    assert!(world.log().mail(id).await.unwrap().is_empty());
    let posted = world.engine.post(id, &long).await.unwrap_err();
    assert!(is_long(&posted), "{posted:?}");
    let pending = world.engine.submission(UserInput::Message(long));
    let error = world.engine.store_pending(id, &pending).await.unwrap_err();
    assert!(is_long(&error), "{error:?}");
    assert!(world.log().mail(id).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_front_end_hands_a_long_message_back_and_listens_on() {
    let world = World::with_window(WINDOW);
    let (sender, mut updates) = unbounded_channel();
    let observer = move |_: AgentId, _: &str, update: &UiEvent| {
        let _ = sender.send(update.clone());
    };
    world.engine.observe(Arc::new(observer), true);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    let long = text_of(5_100);
    let submission = world.engine.submission(UserInput::Message(long.clone()));
    for request in [
        UserRequest::Line(UserInput::Message(long.clone())),
        UserRequest::parse(format!("/fork {long}")),
        UserRequest::Submit(submission),
    ] {
        world.engine.say(agent, request).await.unwrap();
        loop {
            match updates.recv().await.unwrap() {
                UiEvent::NotStored { input, reason, .. } => {
                    assert!(input.line().ends_with(&long), "{input:?}");
                    assert!(reason.contains("half of the budget"), "{reason}");
                    break;
                }
                UiEvent::Warning(text) => panic!("the agent ended: {text}"),
                _ => {}
            }
        }
    }
    world.provider.will_say("here");
    let hello = UserRequest::Line(UserInput::Message("hello".to_owned()));
    world.engine.say(agent, hello).await.unwrap();
    while !matches!(updates.recv().await.unwrap(), UiEvent::Ended(_)) {}
    assert_eq!(world.provider.requests().len(), 1);
}
