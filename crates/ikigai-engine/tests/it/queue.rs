//! Messages to a busy agent: mail from the user, delivered at the next boundary.

use std::time::Duration;

use ikigai_core::Role;
use ikigai_core::data::{self, UserData, UserOrigin};
use ikigai_engine::{Outcome, UiEvent, UserInput, UserRequest};
use ikigai_store::{MailState, ReadLog, StoreError};
use ikigai_testkit::{CommitFault, Step, check_request};

use crate::fakes::{FakeCall, calling};
use crate::support::{TestJob, World, active_agents, interrupt, is_stored, say, target_of};

fn says(text: &str) -> UserRequest {
    UserRequest::Line(UserInput::Message(text.to_owned()))
}

/// Returns a reaction that sends `requests` at the first event that matches `when`.
fn once(
    when: impl Fn(&UiEvent) -> bool + Send,
    requests: Vec<UserRequest>,
) -> impl FnMut(&UiEvent) -> Vec<UserRequest> + Send {
    let mut requests = Some(requests);
    move |update| {
        let now = when(update);
        now.then(|| requests.take()).flatten().unwrap_or_default()
    }
}

/// Predicate on events.
type Told = fn(&UiEvent) -> bool;

fn is_running(update: &UiEvent) -> bool {
    matches!(update, UiEvent::Running(_))
}

fn is_text(update: &UiEvent) -> bool {
    matches!(update, UiEvent::Text(_))
}

/// Texts of the user's messages in the newest request.
fn said_in_last_request(world: &World) -> Vec<String> {
    let request = world.provider.requests().pop().unwrap();
    let messages = request
        .messages
        .iter()
        .filter(|message| message.role == Role::User);
    let blocks = messages.flat_map(|message| message.blocks.iter());
    blocks
        .filter_map(|block| match block {
            ikigai_core::Block::Text { text } => Some(text.clone()),
            _ => None,
        })
        .collect()
}

/// E10f: a message to a busy agent is mail of its user until the next boundary. Its `user` row with
/// `origin` typed is in the transaction that consumes it; several keep their order.
#[tokio::test(start_paused = true)]
async fn queued_input_is_mail_from_the_user() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will(calling(&[FakeCall::new("look", "one")]));
    world
        .provider
        .will([Step::Say("well".to_owned()), Step::Finish]);
    world.provider.will_say("indeed");
    let mut first = once(is_running, vec![says("a"), says("b")]);
    let mut second = once(is_text, vec![says("c")]);

    let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), |update| {
        [first(update), second(update)].concat()
    })
    .await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    let kinds = world.kinds(id).await;
    let round = [
        "tool_call",
        "usage",
        "tool_result",
        "user",
        "user",
        "assistant",
        "usage",
    ];
    assert_eq!(kinds[3..10], round);
    assert_eq!(kinds[10..], ["user", "assistant", "usage"]);
    let rows = world.rows(id).await;
    let mail = world.log().mail(id).await.unwrap();
    let delivered: Vec<_> = mail
        .iter()
        .map(|mail| (&*mail.text, mail.state, mail.shown_by))
        .collect();
    let by = |index: usize| Some(rows[index].at);
    assert_eq!(
        delivered,
        [
            ("a", MailState::Delivered, by(6)),
            ("b", MailState::Delivered, by(7)),
            ("c", MailState::Delivered, by(10)),
        ]
    );
    for (index, text) in [(6, "a"), (7, "b"), (10, "c")] {
        assert_eq!(rows[index].content.as_deref(), Some(text));
        let user: UserData = data::read(rows[index].data.as_deref());
        assert_eq!(user.origin, Some(UserOrigin::Typed));
    }
    assert_eq!(said_in_last_request(&world), ["go", "a", "b", "c"]);
    let queued: Vec<_> = told
        .iter()
        .filter(|update| matches!(update, UiEvent::Queued { .. }))
        .collect();
    assert_eq!(queued.len(), 3);
    let request = world.provider.requests().pop().unwrap();
    check_request(&request, &target_of(&worker)).unwrap();
}

/// E10f: a message and its delivery are one transaction. A crash at any commit around it still
/// sends the message exactly once.
#[tokio::test(start_paused = true)]
async fn a_queued_message_survives_a_crash_and_goes_with_the_next_turn() {
    // Commits: the message, the answer, the mail, the result, the delivery.
    for nth in 3..=5 {
        let (world, _) = World::with_fakes();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        world
            .provider
            .will(calling(&[FakeCall::new("look", "one")]));
        world.store.fail_commit(nth, CommitFault::WrittenAndSilent);
        let turn = active_agents(
            &mut worker,
            TestJob::Say("go"),
            once(is_running, vec![says("queued")]),
        );
        tokio::time::timeout(Duration::from_secs(100), turn)
            .await
            .unwrap_err();

        let restarted = world.restarted();
        let mut worker = restarted.reopened().await;
        restarted.provider.will_say("done");
        say(&mut worker, "typed").await.unwrap();

        let rows = restarted.rows(id).await.into_iter();
        let said: Vec<_> = rows
            .filter(|row| row.kind.name() == "user")
            .filter_map(|row| row.content)
            .collect();
        assert_eq!(said, ["go", "queued", "typed"], "died at commit {nth}");
        let mail = restarted.log().mail(id).await.unwrap();
        assert_eq!(mail.len(), 1);
        assert_eq!(mail[0].state, MailState::Delivered);
    }
}

/// A call that awaits approval is closed before queued messages are delivered. The log then shows
/// why it was not run.
#[tokio::test(start_paused = true)]
async fn open_calls_are_closed_before_what_waited_is_taken_in() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked")]));
    let is_question = |update: &UiEvent| matches!(update, UiEvent::Question(_));
    let turn = active_agents(
        &mut worker,
        TestJob::Say("go"),
        once(is_question, vec![says("queued")]),
    );
    tokio::time::timeout(Duration::from_secs(100), turn)
        .await
        .unwrap_err();

    let restarted = world.restarted();
    let mut worker = restarted.reopened().await;
    restarted.provider.will_say("done");
    say(&mut worker, "typed").await.unwrap();

    let kinds = restarted.kinds(id).await;
    let closed = [
        "tool_call",
        "usage",
        "interrupted",
        "tool_result",
        "user",
        "user",
        "assistant",
    ];
    assert_eq!(kinds[3..10], closed);
}

/// E10c: a queued message that its user withdraws is never delivered.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_taken_back_is_not_sent() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will(calling(&[FakeCall::new("look", "one")]));
    world.provider.will_say("done");

    let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), |update| match update {
        UiEvent::Running(_) => vec![says("keep"), says("drop")],
        UiEvent::Queued { mail, text } if text == "drop" => vec![UserRequest::TakeBack(*mail)],
        _ => Vec::new(),
    })
    .await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert!(told.iter().any(|update| is_taken_back(update, "drop")));
    assert_eq!(said_in_last_request(&world), ["go", "keep"]);
    let mail = world.log().mail(id).await.unwrap();
    let states: Vec<_> = mail.iter().map(|mail| mail.state).collect();
    assert_eq!(states, [MailState::Delivered, MailState::Withdrawn]);
}

/// E10c: a message that was queued when the process died can still be withdrawn.
#[tokio::test(start_paused = true)]
async fn a_message_of_a_former_process_can_be_taken_back() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will([Step::Say("hm".to_owned()), Step::Hang]);
    let turn = active_agents(
        &mut worker,
        TestJob::Say("go"),
        once(is_text, vec![says("queued")]),
    );
    tokio::time::timeout(Duration::from_secs(9), turn)
        .await
        .unwrap_err();
    let restarted = world.restarted();
    let mut worker = restarted.reopened().await;
    let mail = restarted.log().mail(id).await.unwrap()[0].id;
    restarted
        .provider
        .will([Step::Say("on".to_owned()), Step::Finish]);

    let take_back = once(is_text, vec![UserRequest::TakeBack(mail)]);
    let (outcome, told) = active_agents(&mut worker, TestJob::Resume, take_back).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert!(told.iter().any(|update| is_taken_back(update, "queued")));
    let state = restarted.log().mail(id).await.unwrap()[0].state;
    assert_eq!(state, MailState::Withdrawn);
}

/// E10c: an interrupt by the user sends nothing and returns the queued messages. This holds while
/// the model answers, while tools run and just after the last result.
#[tokio::test(start_paused = true)]
async fn an_interrupt_hands_back_what_waited() {
    let is_result = |update: &UiEvent| is_stored(update, "tool_result");
    let moments: [(&str, Told); 3] = [
        ("streaming", is_text),
        ("running", is_running),
        ("break", is_result),
    ];
    for (name, moment) in moments {
        let (world, _) = World::with_fakes();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        if name == "streaming" {
            world
                .provider
                .will([Step::Say("hm".to_owned()), Step::Hang]);
        } else {
            world
                .provider
                .will(calling(&[FakeCall::new("look", "one")]));
        }
        let said = vec![says("a"), says("b"), interrupt()];

        let (outcome, told) =
            active_agents(&mut worker, TestJob::Say("go"), once(moment, said)).await;

        assert!(
            matches!(outcome.unwrap(), Outcome::Interrupted(_)),
            "{name}"
        );
        let back: Vec<_> = told
            .iter()
            .filter_map(|update| match update {
                UiEvent::TakenBack { text, .. } => Some(&**text),
                _ => None,
            })
            .collect();
        assert_eq!(back, ["a", "b"], "{name}");
        let mail = world.log().mail(id).await.unwrap();
        assert!(
            mail.iter().all(|mail| mail.state == MailState::Withdrawn),
            "{name}"
        );
        assert_eq!(world.provider.requests().len(), 1, "{name}");
    }
}

/// A message that cannot be stored is returned with the reason. If the commit's outcome is unknown,
/// the engine looks it up and sends a stored message once.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_not_stored_is_handed_back() {
    let faults = [
        (
            CommitFault::Refused(StoreError::Full("no room".into())),
            false,
        ),
        (CommitFault::LostUnknown, false),
        (CommitFault::WrittenUnknown, true),
    ];
    for (fault, is_stored) in faults {
        let shown = format!("{fault:?}");
        let (world, _) = World::with_fakes();
        let mut worker = world.root().await;
        world
            .provider
            .will(calling(&[FakeCall::new("look", "one")]));
        world.provider.will_say("done");
        world.store.fail_commit(3, fault);

        let said = once(is_running, vec![says("said meanwhile")]);
        let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), said).await;

        assert_eq!(outcome.unwrap(), Outcome::Completed, "{shown}");
        let back = told.iter().any(|update| {
            matches!(update, UiEvent::NotStored { input, reason, .. } if input.line() == "said meanwhile" && !reason.is_empty())
        });
        assert_eq!(back, !is_stored, "{shown}");
        let sent = said_in_last_request(&world).contains(&"said meanwhile".to_owned());
        assert_eq!(sent, is_stored, "{shown}");
    }
}

/// Messages queued when a turn fails are sent with the next turn.
#[tokio::test(start_paused = true)]
async fn what_waited_for_a_turn_that_failed_goes_with_the_next() {
    let world = World::new();
    let mut worker = world.root().await;
    world
        .provider
        .will([Step::Say("hm".to_owned()), Step::Hang]);
    world.provider.will_say("done");

    let said = once(is_text, vec![says("queued")]);
    let (outcome, _) = active_agents(&mut worker, TestJob::Say("go"), said).await;
    say(&mut worker, "typed").await.unwrap();

    assert!(matches!(outcome.unwrap(), Outcome::Failed(_)));
    assert_eq!(said_in_last_request(&world), ["go", "queued", "typed"]);
}

fn is_taken_back(update: &UiEvent, message: &str) -> bool {
    matches!(update, UiEvent::TakenBack { text, .. } if text == message)
}
