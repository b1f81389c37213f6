use ikigai_core::Micros;

use super::*;

fn agent() -> AgentId {
    AgentId::from_random([1; 16]).unwrap()
}

fn line(number: u8, text: &str) -> Submission {
    Submission {
        id: MailId(u128::from(number)),
        at: Micros(i64::from(number)),
        input: UserInput::parse(text),
    }
}

fn pending(submission: Submission) -> PendingMessage {
    let agent = agent();
    PendingMessage { agent, submission }
}

#[test]
fn a_line_that_is_received_at_once_leaves_no_trace() {
    let (mut outbox, now) = (Outbox::default(), Instant::now());

    outbox.send(agent(), line(1, "hello"), now);
    outbox.tick(now);
    outbox.mark_received(MailId(1));

    assert_eq!(outbox.take_actions(), []);
    assert_eq!(outbox.due(), None);
    assert_eq!(outbox.state(0), Some(SubmissionState::Received));
}

#[test]
fn a_message_that_is_not_stored_is_saved_and_tried_until_it_is() {
    let (mut outbox, now) = (Outbox::default(), Instant::now());
    outbox.send(agent(), line(1, "hello"), now);

    outbox.mark_unstored(MailId(1), "no room", now);
    let saved = outbox.take_actions();
    let later = outbox.due().unwrap();
    outbox.tick(later);
    let stored = outbox.take_actions();
    outbox.mark_unstored(MailId(1), "no room", later);
    outbox.mark_saved(MailId(1), false);
    let again = outbox.due().unwrap();
    outbox.tick(again);

    assert_eq!(saved, [OutboxAction::Save(pending(line(1, "hello")))]);
    assert_eq!(stored, [OutboxAction::Store(pending(line(1, "hello")))]);
    assert_eq!(outbox.take_actions(), stored);
    assert!(outbox.pending().all(OutboxEntry::is_in_memory));
    let state = SubmissionState::Pending("no room".to_owned());
    assert_eq!(outbox.state(0), Some(state));
    outbox.mark_received(MailId(1));
    assert_eq!(outbox.take_actions(), [OutboxAction::Drop(MailId(1))]);
}

#[test]
fn messages_of_an_agent_are_stored_one_after_the_other() {
    let (mut outbox, now) = (Outbox::default(), Instant::now());
    outbox.send(agent(), line(1, "one"), now);
    outbox.mark_unstored(MailId(1), "no room", now);
    assert!(outbox.send_behind(agent(), &line(2, "two"), now));
    assert!(!outbox.send_behind(agent(), &line(3, "/mark"), now));
    outbox.take_actions();

    outbox.tick(now + RETRY_PAUSE);
    let first = outbox.take_actions();
    outbox.mark_received(MailId(1));
    outbox.tick(now + RETRY_PAUSE);
    let then = outbox.take_actions();

    assert_eq!(first, [OutboxAction::Store(pending(line(1, "one")))]);
    assert_eq!(
        then,
        [
            OutboxAction::Drop(MailId(1)),
            OutboxAction::Store(pending(line(2, "two")))
        ]
    );
}

#[test]
fn two_equal_messages_are_told_apart_by_their_ids() {
    let (mut outbox, now) = (Outbox::default(), Instant::now());
    for number in [1, 2] {
        outbox.send(agent(), line(number, "same"), now);
        outbox.mark_unstored(MailId(number.into()), "no room", now);
    }

    let taken = outbox.take_back(agent()).unwrap();

    assert_eq!(taken.submission.id, MailId(2));
    assert!(outbox.has(MailId(1)));
}

#[test]
fn commands_of_a_former_process_are_not_run_again() {
    let (mut outbox, now) = (Outbox::default(), Instant::now());
    let left = [line(1, "hello"), line(2, "!rm x")].map(pending);

    let commands = outbox.restore(left.to_vec(), now);
    outbox.tick(now);

    assert_eq!(commands, left[1..]);
    let actions = [
        OutboxAction::Drop(MailId(2)),
        OutboxAction::Store(left[0].clone()),
    ];
    assert_eq!(outbox.take_actions(), actions);
}
