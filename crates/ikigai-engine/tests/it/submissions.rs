//! Typed lines with an id: nothing typed is lost, and nothing is stored twice.

use std::sync::Arc;
use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_engine::{Submission, UiEvent, UserInput, UserRequest};
use ikigai_store::{MailState, ReadLog as _, StoreError};
use ikigai_testkit::{CommitFault, Step};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::support::World;

type Updates = UnboundedReceiver<UiEvent>;

/// Deadline for each update.
const PATIENCE: Duration = Duration::from_mins(1);

fn full() -> StoreError {
    StoreError::Full("no room".into())
}

fn observed(world: &World) -> Updates {
    let (sender, updates) = unbounded_channel();
    let observer = move |_: AgentId, _: &str, update: &UiEvent| {
        let _ = sender.send(update.clone());
    };
    world.engine.observe(Arc::new(observer), true);
    updates
}

async fn until(updates: &mut Updates, is_it: impl Fn(&UiEvent) -> bool) -> Vec<UiEvent> {
    let mut seen = Vec::new();
    loop {
        let update = timeout(PATIENCE, updates.recv()).await;
        let update = update.unwrap().unwrap();
        seen.push(update.clone());
        if is_it(&update) {
            return seen;
        }
    }
}

async fn submit(world: &World, agent: AgentId, line: &str) -> Submission {
    let submission = world.engine.submission(UserInput::parse(line));
    let request = UserRequest::Submit(submission.clone());
    world.engine.say(agent, request).await.unwrap();
    submission
}

/// Texts of the messages in an agent's log.
async fn messages(world: &World, agent: AgentId) -> Vec<String> {
    let rows = world.rows(agent).await.into_iter();
    let users = rows.filter(|row| row.kind.name() == "user");
    users.filter_map(|row| row.content).collect()
}

/// Store faults for the commit of a message to an idle agent.
fn faults() -> [fn(&World); 3] {
    [
        |world| world.store.fail_commit(1, CommitFault::Refused(full())),
        |world| {
            world.store.fail_commit(1, CommitFault::WrittenUnknown);
            world.store.fail_read_after_commit(1, full());
        },
        |world| {
            world.store.fail_commit(1, CommitFault::LostUnknown);
            world.store.fail_read_after_commit(1, full());
        },
    ]
}

#[tokio::test(start_paused = true)]
async fn a_message_that_could_not_be_stored_is_stored_once_when_the_store_is_back() {
    for (nth, fail) in faults().into_iter().enumerate() {
        let world = World::new();
        let mut updates = observed(&world);
        let agent = world.engine.activate_new("/src", "/src").await.unwrap();
        fail(&world);

        let submission = submit(&world, agent, "hello").await;
        let unstored = until(
            &mut updates,
            |update| matches!(update, UiEvent::Unstored { id, .. } if *id == submission.id),
        );
        let seen = unstored.await;
        world.provider.will_say("hi");
        for _ in 0..2 {
            let stored = world.engine.store_pending(agent, &submission).await;
            stored.unwrap();
        }
        // The next message shows that the agent still works.
        world.provider.will_say("yes");
        let again = submit(&world, agent, "again").await;
        until(&mut updates, |update| {
            *update == UiEvent::Received(again.id)
        })
        .await;

        assert!(
            !seen.contains(&UiEvent::Received(submission.id)),
            "fault {nth}"
        );
        let mut said = messages(&world, agent).await;
        let queued = world.log().queued_mail(agent).await.unwrap();
        said.extend(queued.into_iter().map(|mail| mail.text));
        said.sort();
        assert_eq!(said, ["again", "hello"], "fault {nth}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_message_is_stored_once_after_a_restart() {
    for (nth, fail) in faults().into_iter().enumerate() {
        let world = World::new();
        let mut updates = observed(&world);
        let agent = world.engine.activate_new("/src", "/src").await.unwrap();
        fail(&world);
        let submission = submit(&world, agent, "hello").await;
        until(&mut updates, |update| {
            matches!(update, UiEvent::Unstored { .. })
        })
        .await;

        let world = world.restarted();
        for _ in 0..2 {
            let stored = world.engine.store_pending(agent, &submission).await;
            stored.unwrap();
        }

        let mail = world.log().mail(agent).await.unwrap();
        let rows = messages(&world, agent).await.len();
        let queued = mail.iter().filter(|mail| mail.state == MailState::Queued);
        assert_eq!(rows + queued.count(), 1, "fault {nth}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_could_not_be_stored_is_handed_back_and_its_agent_lives() {
    let world = World::new();
    let mut updates = observed(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    world.store.go_away(full);

    let submission = submit(&world, agent, "/mark x").await;
    let seen = until(&mut updates, |update| {
        matches!(update, UiEvent::NotStored { .. })
    })
    .await;

    let back = UiEvent::NotStored {
        id: Some(submission.id),
        input: UserInput::parse("/mark x"),
        reason: "no space left for the database".to_owned(),
    };
    assert_eq!(seen.last(), Some(&back));
    world.store.come_back();
    let submission = submit(&world, agent, "/mark x").await;
    until(&mut updates, |update| {
        *update == UiEvent::Received(submission.id)
    })
    .await;
    assert_eq!(world.kinds(agent).await[2..], ["mark", "command"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_queued_during_a_turn_is_received_under_its_id() {
    let world = World::new();
    let mut updates = observed(&world);
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    world
        .provider
        .will([Step::Say("hm".to_owned()), Step::Hang]);
    submit(&world, agent, "go").await;
    until(&mut updates, |update| matches!(update, UiEvent::Text(_))).await;

    let twins = [
        submit(&world, agent, "same").await,
        submit(&world, agent, "same").await,
    ];
    until(&mut updates, |update| {
        *update == UiEvent::Received(twins[1].id)
    })
    .await;
    let take_back = UserRequest::TakeBack(twins[0].id);
    world.engine.say(agent, take_back).await.unwrap();
    let seen = until(&mut updates, |update| {
        matches!(update, UiEvent::TakenBack { .. })
    })
    .await;

    let taken = UiEvent::TakenBack {
        mail: twins[0].id,
        text: "same".to_owned(),
    };
    assert_eq!(seen.last(), Some(&taken));
    let mail = world.log().mail(agent).await.unwrap();
    let states: Vec<_> = mail.iter().map(|mail| (mail.id, mail.state)).collect();
    let expected = [
        (twins[0].id, MailState::Withdrawn),
        (twins[1].id, MailState::Queued),
    ];
    assert_eq!(states, expected);
}

/// A message typed while `!command` runs is durable; an exit does not send it.
#[tokio::test]
async fn a_message_sent_while_a_shell_command_runs_is_queued_and_not_sent_while_leaving() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path().to_str().unwrap();
    let world = World::new();
    let mut updates = observed(&world);
    let agent = world.engine.activate_new(here, here).await.unwrap();
    submit(&world, agent, "!echo ready; sleep 60").await;
    until(&mut updates, |update| matches!(update, UiEvent::Printed(_))).await;

    let message = submit(&world, agent, "after that").await;
    submit(&world, agent, "!echo later > later").await;
    until(&mut updates, |update| {
        *update == UiEvent::Received(message.id)
    })
    .await;
    world.engine.leave().await;

    let mail = world.log().mail(agent).await.unwrap();
    assert_eq!(mail.len(), 1);
    assert_eq!(mail[0].state, MailState::Queued);
    assert!(world.provider.requests().is_empty(), "nothing is sent");
    assert!(!place.path().join("later").exists(), "nothing more is run");
    let shell = messages(&world, agent).await;
    assert_eq!(shell.len(), 1, "{shell:?}");
    assert!(shell[0].ends_with("(stopped)"), "{shell:?}");
}

/// An agent with an unread message counts as working, so the next process resumes its turn.
#[tokio::test(start_paused = true)]
async fn a_released_agent_with_an_unread_message_is_resumed() {
    let world = World::new();
    let agent = world.engine.activate_new("/src", "/src").await.unwrap();
    for _ in 0..2 {
        world.provider.will_say("hi");
    }

    submit(&world, agent, "hello").await;
    let worked = world.engine.release(agent).await;
    world.engine.take_over(&[agent]).await.unwrap();
    let mut activity = world.engine.subscribe();
    while world.engine.is_working(agent) != Some(false) {
        timeout(PATIENCE, activity.changed())
            .await
            .unwrap()
            .unwrap();
    }

    assert_eq!(worked, Some(true));
    let rows = world.rows(agent).await;
    let answer = rows.iter().find(|row| row.kind.name() == "assistant");
    assert_eq!(answer.and_then(|row| row.content.as_deref()), Some("hi"));
}
